/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/core/commands.h"
#include "cli/core/limit_options.h"
#include "cli/local/local_run.h"
#include "cli/core/terminal.h"
#include "sandbox/home_dir.h"
#include "sandbox/keeper_client.h"

enum { STREAM_LOG = 1 << 20 };

struct dir_opt {
	int fd;
	char path[KEEPER_PATH_SIZE];
	bool writable;
};

struct run_opts {
	struct template over; /* first: limit_opt.h; what the command line says */
	struct template base; /* what the template says */
	const char *template, *home, *text, *hostname;
	uint32_t timeout_ms;
	bool json, tty, interactive;
	enum keeper_store store; /* 0: not said */
	struct dir_opt dirs[KEEPER_BINDS_MAX];
	size_t ndirs;
};

/* ---- options --------------------------------------------------------------------------------- */

static int set_template(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)name;
	(void)err;
	((struct run_opts *)ctx)->template = value;
	return 0;
}

static int set_home(void *ctx, const char *name, const char *value, struct err *err)
{
	((struct run_opts *)ctx)->home = value;
	return *value ? 0 : err_set(err, ERR_INVALID, "%s: empty", name);
}

static int set_text(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)name;
	(void)err;
	((struct run_opts *)ctx)->text = value;
	return 0;
}

static int set_hostname(void *ctx, const char *name, const char *value, struct err *err)
{
	char id[KEEPER_ID_SIZE] = { 0 };

	if (snprintf(id, sizeof(id), "%s", value) >= (int)sizeof(id) || !keeper_id_is_valid(id))
		return err_set(err, ERR_INVALID,
			       "%s: \"%.70s\" is not made of a-z, 0-9, '.', '_', '-'", name, value);
	((struct run_opts *)ctx)->hostname = value;
	return 0;
}

static int set_timeout(void *ctx, const char *name, const char *value, struct err *err)
{
	uint64_t ms;

	if (units_parse_ms(name, value, &ms, err) < 0)
		return -1;
	if (ms > INT32_MAX)
		return err_set(err, ERR_INVALID, "%s: \"%.20s\" is longer than 24 days", name,
			       value);
	((struct run_opts *)ctx)->timeout_ms = (uint32_t)ms;
	return 0;
}

static int set_net(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)ctx;
	if (strcmp(value, "none") != 0)
		return err_set(err, ERR_INVALID, "%s: \"%.40s\" is not known, only \"none\" is",
			       name, value);
	return 0;
}

static int set_store(void *ctx, const char *name, const char *value, struct err *err)
{
	struct run_opts *o = ctx;

	if (!strcmp(value, "memory"))
		o->store = KEEPER_STORE_MEMORY;
	else if (!strcmp(value, "disk"))
		o->store = KEEPER_STORE_DISK;
	else
		return err_set(err, ERR_INVALID, "%s: \"%.40s\" is neither memory nor disk", name,
			       value);
	return 0;
}

/* Cuts ":rw" or ":ro" off. */
static void cut_mode(char *spec, bool *writable)
{
	char *colon = strrchr(spec, ':');

	*writable = colon && !strcmp(colon, ":rw");
	if (*writable || (colon && !strcmp(colon, ":ro")))
		*colon = '\0';
}

/* Opened with the caller's own rights: the keeper, which has more, never sees the name. */
static int open_dir(const char *name, const char *host, struct dir_opt *d, struct err *err)
{
	int need = R_OK | X_OK | (d->writable ? W_OK : 0);

	d->fd = open(host, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (d->fd < 0)
		return err_sys(err, errno, "%s: %s", name, host);
	if (faccessat(AT_FDCWD, host, need, AT_EACCESS) < 0) {
		int e = errno;

		close(d->fd);
		return err_sys(err, e, "%s: %s", name, host);
	}
	return 0;
}

static int set_dir(void *ctx, const char *name, const char *value, struct err *err)
{
	struct run_opts *o = ctx;
	struct dir_opt d = { .fd = -1 };
	auto_free char *spec = strdup(value);
	char *path;
	size_t n;

	if (!spec)
		return err_sys(err, ENOMEM, "%s", name);
	if (o->ndirs == KEEPER_BINDS_MAX)
		return err_set(err, ERR_INVALID, "%s: at most %d directories", name,
			       KEEPER_BINDS_MAX);
	cut_mode(spec, &d.writable);
	path = strrchr(spec, ':');
	if (!path || path == spec)
		return err_set(err, ERR_INVALID, "%s: \"%.100s\" is not HOSTDIR:PATH[:rw]", name,
			       value);
	*path++ = '\0';
	n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	if (n < sizeof(d.path))
		memcpy(d.path, path, n);
	if (!keeper_path_is_valid(d.path))
		return err_set(err, ERR_INVALID,
			       "%s: \"%.100s\" is not an absolute path without \".\" and \"..\"",
			       name, path);
	if (open_dir(name, spec, &d, err) < 0)
		return -1;
	o->dirs[o->ndirs++] = d;
	return 0;
}

static int set_tty(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)name;
	(void)value;
	(void)err;
	((struct run_opts *)ctx)->tty = true;
	return 0;
}

static int set_interactive(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)name;
	(void)value;
	(void)err;
	((struct run_opts *)ctx)->interactive = true;
	return 0;
}

static int set_json(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)name;
	(void)value;
	(void)err;
	((struct run_opts *)ctx)->json = true;
	return 0;
}

static const struct cli_option options[] = {
	{ "template", 0, "NAME", set_template, "what it starts from (default: host)" },
	{ "command", 'c', "TEXT", set_text, "bash text to run instead of COMMAND" },
	LIMIT_OPT_TABLE,
	{ "timeout", 0, "TIME", set_timeout,
	  "end everything after 30s, 500ms, 2h (default: never)" },
	{ "net", 0, "none", set_net, "network: none (the default)" },
	{ "dir", 0, "HOST:PATH[:rw]", set_dir, "show a directory inside, read-only or writable" },
	{ "store", 0, "memory|disk", set_store, "where its files are" },
	{ "hostname", 0, "NAME", set_hostname, "name of the machine inside (default: lodge)" },
	{ "tty", 't', NULL, set_tty, "give it a terminal" },
	{ "interactive", 'i', NULL, set_interactive, "pass stdin on even from a terminal" },
	{ "json", 0, NULL, set_json, "one JSON object instead of the output" },
	{ "home", 0, "DIR", set_home, "where lodge keeps its data" },
	{ NULL },
};

static const struct cli_option_command command = {
	.name = "lodge run",
	.usage = "[OPTION...] [--] COMMAND [ARGUMENT...]\n       lodge run [OPTION...] -c TEXT",
	.summary = "Runs a command in a sandbox made for it, and removes it afterwards.",
	.opts = options,
	.more = "Exit status: the command's; 128+N when killed by signal N; 124 after --timeout;\n"
		"125 when lodge failed; 126 COMMAND cannot be executed; 127 it is not there.\n",
	.stops_at_operand = true,
};

/* ---- the sandbox ----------------------------------------------------------------------------- */

static bool has_limit(const struct run_opts *o, const char *name)
{
	for (unsigned i = 0; template_limit_name(i); i++)
		if (!strcmp(template_limit_name(i), name))
			return o->base.limits_set & 1u << i;
	return false;
}

/* In memory unless more is asked than fits there. */
static void choose_store(const struct run_opts *o, struct sandbox_spec *spec)
{
	struct limits *l = &spec->limits;
	bool large = has_limit(o, "disk_bytes") && l->disk_bytes > l->memory_bytes;

	spec->store = o->store ? o->store : large ? KEEPER_STORE_DISK : KEEPER_STORE_MEMORY;
	if (spec->store == KEEPER_STORE_MEMORY && l->disk_bytes > l->memory_bytes)
		l->disk_bytes = l->memory_bytes;
}

static int fill_spec(const struct run_opts *o, struct sandbox_spec *spec,
		     struct sandbox_bind *binds, struct err *err)
{
	spec->template = o->template;
	spec->hostname = o->hostname;
	if (template_apply(&o->base, spec, err) < 0)
		return -1;
	if (spec->class == KEEPER_CLASS_USER && (!spec->uid || !spec->gid))
		return err_set(err, ERR_INVALID, "user 0 needs --root");
	choose_store(o, spec);
	for (size_t i = 0; i < o->ndirs; i++)
		binds[i] = (struct sandbox_bind){ o->dirs[i].fd, o->dirs[i].path,
						  o->dirs[i].writable };
	spec->binds = binds;
	spec->nbinds = o->ndirs;
	return 0;
}

/* A limit that was asked for and does nothing here must not go unnoticed. */
static void warn_unenforced(const struct run_opts *o, const struct sandbox_spec *spec,
			    struct keeper_client *k)
{
	unsigned features;
	struct err ignored;

	if (spec->store == KEEPER_STORE_DISK && has_limit(o, "inodes"))
		fprintf(stderr,
			"lodge: --inodes is not enforced on disk, where --disk bounds files too\n");
	if (!o->base.limits_set || keeper_client_features(k, &features, &ignored) < 0)
		return;
	if (!(features & KEEPER_HAS_CGROUP) &&
	    (has_limit(o, "memory_bytes") || has_limit(o, "cpu_milli") || has_limit(o, "pids")))
		fprintf(stderr, "lodge: memory, cpu and process limits are not enforced here "
				"(see lodge doctor)\n");
	if (!(features & KEEPER_HAS_DISK_LIMIT) && spec->store == KEEPER_STORE_DISK &&
	    has_limit(o, "disk_bytes"))
		fprintf(stderr, "lodge: the disk limit is not enforced here (see lodge doctor)\n");
}

/* ---- the command ----------------------------------------------------------------------------- */

static int add_term(struct run_opts *o, struct err *err)
{
	const char *term = getenv("TERM");
	char text[128];

	if (!o->tty || !term || strlen(term) > 100)
		return 0;
	snprintf(text, sizeof(text), "TERM=%s", term);
	return template_set_env(&o->base, text, err);
}

static int begin(struct run_opts *o, struct local_run *r, char **argv)
{
	struct guest_exec_spec x = {
		.argv = (const char *const *)argv,
		.text = o->text,
		.env = (const char *const *)o->base.env,
		.cwd = o->base.workdir,
		.user = o->base.user,
		.timeout_ms = o->timeout_ms,
		.log_bytes = o->json ? r->limits.output_bytes : STREAM_LOG,
		.hold = !o->json,
		.pty = o->tty,
	};
	uint32_t uid, gid;

	/* a number is the default user of the sandbox already; an ordinary user has no other */
	if (x.user && template_parse_user(x.user, &uid, &gid, &r->err) > 0)
		x.user = NULL;
	r->feed = (o->interactive || o->tty || !isatty(STDIN_FILENO)) && !terminal_no_input();
	r->collect = o->json;
	r->tty = o->tty;
	r->timeout_ms = o->timeout_ms;
	x.stdin_open = r->feed;
	if (o->tty)
		terminal_size(&x.rows, &x.cols);
	return guest_exec_begin(r->sb, &x, &r->x, &r->err);
}

/* What only the keeper can tell of a command that went wrong: a sandbox that is gone fell victim to
 * its own memory limit, and a limit on disk is not the free space that a guest sees. */
static void find_cause(struct local_run *r)
{
	struct keeper_stats st;
	struct err ignored;
	bool gone = guest_exec_state(r->x) == GUEST_EXEC_FAILED;

	if (!gone && r->store == KEEPER_STORE_MEMORY)
		return; /* lodge-init sees all of that itself */
	if (sandbox_stats(r->sb, &st, &ignored) < 0)
		return;
	r->oom = gone && st.oom_kills > 0;
	r->disk_full = st.disk_full;
}

static int run_in(struct run_opts *o, struct local_run *r, char **argv)
{
	int n;

	if (begin(o, r, argv) < 0)
		return cli_option_fail(CLI_EXIT_FAILED, &r->err);
	if (o->tty)
		terminal_raw(STDIN_FILENO);
	n = local_run_loop(r);
	terminal_restore();
	if (n < 0 && guest_exec_state(r->x) == GUEST_EXEC_FAILED && !guest_exec_pid(r->x) &&
	    r->err.code)
		return cli_option_fail(local_run_start_status(&r->err, o->text ? "bash" : argv[0]),
				       &r->err);
	find_cause(r);
	return o->json ? local_run_report_json(r) : local_run_report(r);
}

/* A layer is known to sessions only. */
static int need_own_files(const struct run_opts *o, struct err *err)
{
	return o->base.layer ? err_set(err, ERR_INVALID,
				       "template \"%s\" is made of a snapshot: only sessions can "
				       "start from it",
				       o->template)
			     : 0;
}

static int load_base(struct run_opts *o, const char *home, struct err *err)
{
	if (template_load(home, o->template, &o->base, err) == 0)
		return 0;
	return err->code == ERR_NOT_FOUND
		       ? err_set(err, ERR_NOT_FOUND,
				 "template \"%.63s\": there is none (see lodge template ls)",
				 o->template)
		       : -1;
}

static int run_with(struct run_opts *o, const char *home, char **argv)
{
	auto_call(keeper_client_free) struct keeper_client *k = NULL;
	auto_call(sandbox_free) struct sandbox *sb = NULL;
	struct keeper_client_opts how = { .home = home, .oneshot = true };
	struct sandbox_spec spec = sandbox_spec_default();
	struct sandbox_bind binds[KEEPER_BINDS_MAX];
	struct local_run r = { 0 };
	int status;

	if (load_base(o, home, &r.err) < 0 || need_own_files(o, &r.err) < 0 ||
	    add_term(o, &r.err) < 0 || template_merge(&o->base, &o->over, &r.err) < 0 ||
	    fill_spec(o, &spec, binds, &r.err) < 0 || keeper_client_spawn(&how, &k, &r.err) < 0)
		return cli_option_fail(CLI_EXIT_FAILED, &r.err);
	if (sandbox_new(k, &spec, &sb, &r.err) < 0)
		return cli_option_fail(CLI_EXIT_FAILED, &r.err);
	warn_unenforced(o, &spec, k);
	r.keeper = k;
	r.sb = sb;
	r.limits = spec.limits;
	r.store = spec.store;
	status = run_in(o, &r, argv);
	guest_exec_free(r.x);
	return status;
}

static int checked_run(struct run_opts *o, int argc, char **argv, struct err *err)
{
	char home[HOME_DIR_SIZE];
	int first, n = cli_option_parse(&command, argc, argv, o, &first, err);

	if (n)
		return n < 0 ? -1 : 0;
	if (!o->text && first == argc)
		return err_set(err, ERR_INVALID, "no command (try lodge run -- COMMAND)");
	if (o->text && first < argc)
		return err_set(err, ERR_INVALID, "-c: takes no further command");
	if (!o->text && !argv[first][0])
		return err_set(err, ERR_INVALID, "the command is empty");
	if (o->json && o->tty)
		return err_set(err, ERR_INVALID, "--json and --tty do not go together");
	if (home_dir_find(o->home, home, err) < 0)
		return -1;
	return run_with(o, home, argv + first);
}

int cmd_run(int argc, char **argv)
{
	struct run_opts o = { .template = "host" };
	struct err err;
	int status;

	template_init(&o.over);
	template_init(&o.base);
	status = checked_run(&o, argc, argv, &err);
	if (status < 0)
		status = cli_option_fail(CLI_EXIT_FAILED, &err);
	for (size_t i = 0; i < o.ndirs; i++)
		close(o.dirs[i].fd);
	template_fini(&o.over);
	template_fini(&o.base);
	return status;
}
