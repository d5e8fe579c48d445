/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/core/api_cmd.h"
#include "cli/core/limit_options.h"
#include "cli/core/quantity.h"
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
	struct api_cmd a;
	struct template over; /* from the command line */
	struct template base; /* of the template */
	const char *template, *home, *script, *hostname;
	uint32_t timeout_ms;
	bool tty, interactive;
	enum keeper_store store; /* 0: not given */
	struct dirs {
		struct dir_opt items[KEEPER_BINDS_MAX];
		size_t count;
	} dirs;
};

/* ---- options --------------------------------------------------------------------------------- */

static int set_hostname(void *at, const char *name, const char *value, struct err *err)
{
	char id[KEEPER_ID_SIZE] = { 0 };

	if (snprintf(id, sizeof(id), "%s", value) >= (int)sizeof(id) || !keeper_id_is_valid(id))
		return err_set(err, ERR_INVALID,
			       "%s %.70s: must contain only a-z, 0-9, '.', '_' and '-'", name,
			       value);
	*(const char **)at = value;
	return 0;
}

static int set_timeout(void *at, const char *name, const char *value, struct err *err)
{
	uint64_t ms;

	if (quantity_ms(name, value, &ms, err) < 0)
		return -1;
	if (ms > INT32_MAX)
		return err_set(err, ERR_INVALID, "%s %.20s: must be at most 24 days", name, value);
	*(uint32_t *)at = (uint32_t)ms;
	return 0;
}

static int set_net(void *at, const char *name, const char *value, struct err *err)
{
	(void)at;
	if (strcmp(value, "none") != 0)
		return err_set(err, ERR_INVALID, "%s %.40s: must be none", name, value);
	return 0;
}

static int set_store(void *at, const char *name, const char *value, struct err *err)
{
	enum keeper_store *store = at;

	if (!strcmp(value, "memory"))
		*store = KEEPER_STORE_MEMORY;
	else if (!strcmp(value, "disk"))
		*store = KEEPER_STORE_DISK;
	else
		return err_set(err, ERR_INVALID, "%s %.40s: must be memory or disk", name, value);
	return 0;
}

/* Removes ":rw" or ":ro"; without one of them *writable stays. */
static void cut_mode(char *spec, bool *writable)
{
	char *colon = strrchr(spec, ':');

	if (!colon || (strcmp(colon, ":rw") != 0 && strcmp(colon, ":ro") != 0))
		return;
	*writable = colon[2] == 'w';
	*colon = '\0';
}

/* Opens it with the permissions of the caller: the keeper, which may be root, gets only the fd. */
static int open_dir(const char *name, const char *host, struct dir_opt *d, struct err *err)
{
	auto_close int fd = open(host, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int need = R_OK | X_OK | (d->writable ? W_OK : 0);

	if (fd < 0 && errno == ENOTDIR && faccessat(AT_FDCWD, host, F_OK, AT_EACCESS) == 0)
		return err_set(err, ERR_INVALID,
			       "%s: %.200s: only directories can be mounted, and this is a file",
			       name, host);
	if (fd < 0 || faccessat(AT_FDCWD, host, need, AT_EACCESS) < 0)
		return err_sys(err, errno, "%s: %s", name, host);
	d->fd = steal_fd(&fd);
	return 0;
}

static int add_mount(struct dirs *dirs, bool writable, const char *name, const char *value,
		     struct err *err)
{
	struct dir_opt d = { .fd = -1, .writable = writable };
	auto_free char *spec = strdup(value);
	char *path;
	size_t n;

	if (!spec)
		return err_sys(err, ENOMEM, "%s", name);
	if (dirs->count == KEEPER_BINDS_MAX)
		return err_set(err, ERR_INVALID, "%s: can be used at most %d times", name,
			       KEEPER_BINDS_MAX);
	cut_mode(spec, &d.writable);
	path = strrchr(spec, ':');
	if (!path || path == spec)
		return err_set(err, ERR_INVALID, "%s %.100s: must be HOSTDIR:PATH[:ro|:rw]", name,
			       value);
	*path++ = '\0';
	n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	if (n < sizeof(d.path))
		memcpy(d.path, path, n);
	if (strchr(spec, ':') && path[0] != '/')
		return err_set(err, ERR_INVALID, "%s %.100s: mode \"%.40s\" must be ro or rw", name,
			       value, path);
	if (!keeper_path_is_valid(d.path))
		return err_set(err, ERR_INVALID,
			       "%s %.100s: PATH must be absolute, without \".\" and \"..\"", name,
			       path);
	if (open_dir(name, spec, &d, err) < 0)
		return -1;
	dirs->items[dirs->count++] = d;
	return 0;
}

static int add_dir(void *at, const char *name, const char *value, struct err *err)
{
	return add_mount(at, false, name, value, err);
}

/* As docker: writable by default, and a HOSTDIR without a slash would be a named volume. */
static int add_volume(void *at, const char *name, const char *value, struct err *err)
{
	size_t n = strcspn(value, ":");

	if (value[n] && value[0] != '.' && !memchr(value, '/', n))
		return err_set(err, ERR_INVALID,
			       "%s %.100s: there are no named volumes; for a directory write "
			       "./%.100s",
			       name, value, value);
	return add_mount(at, true, name, value, err);
}

/* Options of docker run that have no meaning for a sandbox of one command. */
static int refuse(void *at, const char *name, const char *value, struct err *err)
{
	bool named = strcmp(name, "--name") == 0, ports = strstr(name, "-p") != NULL;

	(void)at;
	if (ports)
		return err_set(err, ERR_INVALID, "%s: sandboxes have no network", name);
	if (named)
		return err_set(err, ERR_INVALID,
			       "%s: this sandbox is deleted at its end; for one that stays: lodge "
			       "create %.60s, then lodge exec %.60s -- COMMAND",
			       name, value, value);
	return err_set(err, ERR_INVALID,
		       "%s: lodge run waits for its command; in the background: lodge exec -d "
		       "SESSION -- COMMAND",
		       name);
}

static int accept_flag(void *at, const char *name, const char *value, struct err *err)
{
	(void)at;
	(void)name;
	(void)value;
	(void)err;
	return 0;
}

/* ---- the sandbox ----------------------------------------------------------------------------- */

/* Memory, unless the disk limit is larger than the memory limit. */
static void choose_store(const struct run_opts *o, struct sandbox_spec *spec)
{
	struct limits *l = &spec->limits;
	bool large = template_has_limit(&o->base, "disk_bytes") && l->disk_bytes > l->memory_bytes;

	spec->store = o->store ? o->store : large ? KEEPER_STORE_DISK : KEEPER_STORE_MEMORY;
	if (spec->store == KEEPER_STORE_MEMORY && l->disk_bytes > l->memory_bytes)
		l->disk_bytes = l->memory_bytes;
}

/* The output is memory beside --memory, a quarter of it per stream at most. */
static int check_output(const struct run_opts *o, const struct limits *l, struct err *err)
{
	uint64_t max = limits_output_max(l->memory_bytes);
	char most[SIZE_TEXT], memory[SIZE_TEXT];

	if (!template_has_limit(&o->over, "output_bytes") || o->over.limits.output_bytes <= max)
		return 0;
	return err_set(err, ERR_INVALID, "--output: must be at most %s, a quarter of --memory (%s)",
		       units_format(max, most), units_format(l->memory_bytes, memory));
}

static int fill_spec(const struct run_opts *o, struct sandbox_spec *spec,
		     struct sandbox_bind *binds, struct err *err)
{
	spec->template = o->template;
	spec->hostname = o->hostname;
	if (template_apply(&o->base, spec, err) < 0 || check_output(o, &spec->limits, err) < 0)
		return -1;
	if (spec->class == KEEPER_CLASS_USER && (!spec->uid || !spec->gid))
		return err_set(err, ERR_INVALID, "root needs --root");
	choose_store(o, spec);
	for (size_t i = 0; i < o->dirs.count; i++) {
		const struct dir_opt *d = &o->dirs.items[i];

		binds[i] = (struct sandbox_bind){ d->fd, d->path, d->writable };
	}
	spec->binds = binds;
	spec->nbinds = o->dirs.count;
	return 0;
}

/* Warns about limits that were set but cannot be enforced; --json lists the defaults too. */
static void warn_unenforced(const struct run_opts *o, const struct local_run *r)
{
	struct template set = { .limits_set = o->base.limits_set };
	char text[ENFORCEMENT_TEXT];

	template_demand_limits(&set);
	if (*enforcement_describe(&r->enforcement, r->store, set.demand, text))
		fprintf(stderr, "lodge: NOT enforced on this host: %s; see lodge doctor\n", text);
}

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
		.text = o->script,
		.env = (const char *const *)o->base.env,
		.cwd = o->base.workdir,
		.user = o->base.user,
		.timeout_ms = o->timeout_ms,
		.log_bytes = o->a.json ? r->limits.output_bytes : STREAM_LOG,
		.hold = !o->a.json,
		.pty = o->tty,
	};
	uint32_t uid, gid;

	/* a numeric user is already the default user of the sandbox */
	if (x.user && template_parse_user(x.user, &uid, &gid, &r->err) > 0)
		x.user = NULL;
	r->feed = o->tty || ((o->interactive || !isatty(STDIN_FILENO)) && !terminal_no_input());
	r->collect = o->a.json;
	r->tty = o->tty;
	r->timeout_ms = o->timeout_ms;
	x.stdin_open = r->feed;
	if (o->tty)
		terminal_size(&x.rows, &x.cols);
	return guest_exec_begin(r->sb, &x, &r->x, &r->err);
}

/* Asks the keeper for what lodge-init cannot know: whether the memory limit ended the whole
 * sandbox, and whether the disk limit was reached. */
static void find_cause(struct local_run *r)
{
	struct keeper_stats st;
	struct err ignored;
	bool gone = guest_exec_state(r->x) == GUEST_EXEC_FAILED;

	if (!gone && r->store == KEEPER_STORE_MEMORY)
		return; /* lodge-init reports all of it */
	if (sandbox_stats(r->sb, &st, &ignored) < 0)
		return;
	r->oom = gone && st.oom_kills > 0;
	r->disk_full = st.disk_full;
}

static bool is_template(const struct run_opts *o, const char *name)
{
	struct err ignored;
	char home[HOME_DIR_SIZE];
	struct template t;
	bool there;

	if (!template_name_is_valid(name) || home_dir_find(o->home, home, &ignored) < 0)
		return false;
	there = template_load(home, name, &t, &ignored) == 0;
	template_fini(&t);
	return there;
}

/* `docker run IMAGE` has an image where lodge run has a command, `lodge exec SESSION` a session. */
static void hint_command(const struct run_opts *o, char *const *argv, char *buf, size_t size)
{
	const char *command = argv[0];

	if (is_template(o, command))
		snprintf(buf, size, " (to start from this template: --template %s)", command);
	else if (strchr(command, ':'))
		snprintf(buf, size, " (lodge run takes no image; see --template)");
	else if (!argv[1] && strpbrk(command, CLI_SHELL_CHARS))
		snprintf(buf, size, " (to run it as a script: lodge run -c SCRIPT)");
	else if (argv[1] && !strpbrk(command, "/" CLI_SHELL_CHARS))
		snprintf(buf, size, " (if %.64s is a session: lodge exec %.64s -- %.64s%s)",
			 command, command, argv[1], argv[2] ? " ..." : "");
}

static int fail_start(const struct run_opts *o, struct local_run *r, char *const *argv)
{
	int status = local_run_start_status(&r->err, o->script ? "bash" : argv[0]);
	size_t n = strlen(r->err.msg);

	if (status == CLI_EXIT_NOT_FOUND && !o->script)
		hint_command(o, argv, r->err.msg + n, sizeof(r->err.msg) - n);
	return cli_option_fail(status, &r->err);
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
		return fail_start(o, r, argv);
	find_cause(r);
	return local_run_report(r);
}

static int load_base(struct run_opts *o, const char *home, struct err *err)
{
	if (template_load(home, o->template, &o->base, err) < 0)
		return err->code == ERR_NOT_FOUND
			       ? err_set(err, ERR_NOT_FOUND,
					 "no template \"%.63s\" (see lodge template ls)",
					 o->template)
			       : -1;
	return o->base.layer ? err_set(err, ERR_INVALID,
				       "template \"%s\" was created from a snapshot: only "
				       "sessions can start from it",
				       o->template)
			     : 0;
}

static int run_with(struct run_opts *o, const char *home, char **argv)
{
	auto_call(keeper_client_free) struct keeper_client *k = NULL;
	auto_call(sandbox_free) struct sandbox *sb = NULL;
	struct keeper_client_opts how = { .home = home, .oneshot = true };
	struct sandbox_spec spec = sandbox_spec_default();
	struct sandbox_bind binds[KEEPER_BINDS_MAX];
	struct local_run r = { 0 };
	struct err ignored;
	int status;

	if (load_base(o, home, &r.err) < 0 || add_term(o, &r.err) < 0 ||
	    template_merge(&o->base, &o->over, &r.err) < 0 ||
	    fill_spec(o, &spec, binds, &r.err) < 0 || keeper_client_spawn(&how, &k, &r.err) < 0 ||
	    sandbox_new(k, &spec, &sb, &r.err) < 0)
		return cli_option_fail(CLI_EXIT_FAILED, &r.err);
	r.keeper = k;
	r.sb = sb;
	r.limits = spec.limits;
	r.store = spec.store;
	if (keeper_client_enforcement(k, &r.enforcement, &ignored) == 0)
		warn_unenforced(o, &r);
	status = run_in(o, &r, argv);
	guest_exec_free(r.x);
	return status;
}

static int check(struct api_cmd *a, struct err *err)
{
	const struct run_opts *o = (struct run_opts *)a;

	if (!o->script && !a->argc)
		return err_set(err, ERR_INVALID, "COMMAND is missing (try lodge run -- COMMAND)");
	if (o->script && a->argc)
		return err_set(err, ERR_INVALID, "use either -c or COMMAND, not both");
	if (!o->script && !a->argv[0][0])
		return err_set(err, ERR_INVALID, "COMMAND must not be empty");
	if (a->json && o->tty)
		return err_set(err, ERR_INVALID, "--json and --tty cannot be combined");
	return 0;
}

static int run(struct api_cmd *a, struct err *err)
{
	struct run_opts *o = (struct run_opts *)a;
	char home[HOME_DIR_SIZE];

	return home_dir_find(o->home, home, err) < 0 ? -1 : run_with(o, home, a->argv);
}

static void init(struct api_cmd *a)
{
	struct run_opts *o = (struct run_opts *)a;

	o->template = "host";
	template_init(&o->over);
	template_init(&o->base);
}

static void fini(struct api_cmd *a)
{
	struct run_opts *o = (struct run_opts *)a;

	for (size_t i = 0; i < o->dirs.count; i++)
		close(o->dirs.items[i].fd);
	template_fini(&o->over);
	template_fini(&o->base);
}

static const struct cli_option options[] = {
	CLI_SECTION("Command"),
	{ "command", 'c', "SCRIPT", CLI_ANY, offsetof(struct run_opts, script),
	  "run a bash script" },
	{ "timeout", 0, "TIME", CLI_SET, offsetof(struct run_opts, timeout_ms),
	  "kill it after TIME, as 30s (never)", .set = set_timeout },
	{ "interactive", 'i', NULL, CLI_FLAG, offsetof(struct run_opts, interactive),
	  "send input even from a terminal" },
	{ "tty", 't', NULL, CLI_FLAG, offsetof(struct run_opts, tty), "allocate a terminal" },
	OPTION_JSON("print output and result as JSON"),
	CLI_SECTION("Sandbox"),
	{ "template", 0, "NAME", CLI_ANY, offsetof(struct run_opts, template),
	  "template to start from (host)" },
	{ "dir", 0, "HOSTDIR:PATH[:rw]", CLI_SET, offsetof(struct run_opts, dirs),
	  "mount a directory, read-only unless :rw (repeatable)", .set = add_dir },
	{ "volume", 'v', "HOSTDIR:PATH[:ro]", CLI_SET, offsetof(struct run_opts, dirs),
	  "the same, but writable unless :ro (repeatable)", .set = add_volume },
	{ "store", 0, "memory|disk", CLI_SET, offsetof(struct run_opts, store),
	  "where its files are (memory, unless --disk is larger)", .set = set_store },
	{ "hostname", 0, "NAME", CLI_SET, offsetof(struct run_opts, hostname),
	  "host name in the sandbox (lodge)", .set = set_hostname },
	{ "net", 0, "none", CLI_SET, 0, "network: none (default)", .set = set_net },
	{ "network", 0, "none", CLI_SET, 0, "the same", .set = set_net, .old = true },
	{ "rm", 0, NULL, CLI_SET, 0, "always so", .set = accept_flag, .old = true },
	{ "name", 0, "NAME", CLI_SET, 0, "", .set = refuse, .old = true },
	{ "detach", 'd', NULL, CLI_SET, 0, "", .set = refuse, .old = true },
	{ "publish", 'p', "PORTS", CLI_SET, 0, "", .set = refuse, .old = true },
	OPTION_DATA(struct run_opts, home),
	CLI_SECTION("Limits and environment"),
	CLI_INCLUDE(template_options, offsetof(struct run_opts, over)),
	CLI_INCLUDE(require_options, offsetof(struct run_opts, over)),
	{ NULL },
};

const struct command cmd_run = {
	.name = "run",
	.usage = "[OPTION...] [--] COMMAND [ARG...]\n"
		 "       lodge run [OPTION...] -c SCRIPT",
	.summary = "run one command in a throwaway sandbox",
	.about = "Needs no service: the sandbox is created for the command and deleted "
		 "afterwards.\n",
	.options = options,
	.more = "Exit status\n"
		"  the command's own, or 128+N if signal N killed it\n"
		"  2    wrong usage\n"
		"  124  --timeout expired\n"
		"  125  lodge failed\n"
		"  126  COMMAND is not executable\n"
		"  127  COMMAND was not found\n",
	.size = sizeof(struct run_opts),
	.most = -1,
	.failed = CLI_EXIT_FAILED,
	.stops_at_operand = true,
	.local = true,
	.check = check,
	.run = run,
	.init = init,
	.fini = fini,
};
