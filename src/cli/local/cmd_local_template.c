/* SPDX-License-Identifier: Apache-2.0 */
/* lodge template: the templates of this machine. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/copy/tar_child.h"
#include "cli/core/api_cmd.h"
#include "cli/core/limit_options.h"
#include "sandbox/home_dir.h"
#include "sandbox/keeper_client.h"
#include "sandbox/template/template.h"
#include "sandbox/template/template_fill.h"
#include "sandbox/template/template_json.h"

struct local_opts {
	struct api_cmd a;
	const char *home;
	struct template t; /* that add creates */
};

/* clang-format off */
#define OPTION_HOME                                                                                \
	{ "home", 0, "DIR", CLI_TEXT, offsetof(struct local_opts, home), "data directory of lodge" }
/* clang-format on */

static void show_progress(void *arg, const struct archive_unpack *u)
{
	(void)arg;
	if (u->total)
		fprintf(stderr, "\runpacking %3d %%  %llu MB",
			(int)(100 * u->done / (u->total > u->done ? u->total : u->done)),
			(unsigned long long)(u->done >> 20));
	else
		fprintf(stderr, "\runpacking %llu MB", (unsigned long long)(u->done >> 20));
}

/* ---- sources --------------------------------------------------------------------------------- */

struct source {
	const char *path;
	int fd;
	struct stat st;
	bool is_dir, is_oci;
	struct oci_image image;
};

static int open_source(const char *path, struct source *s, struct template *t, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	s->path = path;
	if (fd < 0 || fstat(fd, &s->st) < 0)
		return err_sys(err, errno, "%s", path);
	s->is_dir = S_ISDIR(s->st.st_mode);
	s->is_oci = s->is_dir && oci_image_is_layout(fd);
	if (!s->is_dir && !S_ISREG(s->st.st_mode))
		return err_set(err, ERR_INVALID, "%s: must be a directory or a file", path);
	if (s->is_oci) {
		struct oci_image_files from = { oci_image_open_at, &fd };

		return oci_image_open(&from, t, &s->image, err) < 0 ? err_ctx(err, "%s", path) : 0;
	}
	s->fd = steal_fd(&fd);
	return 0;
}

static void close_source(struct source *s)
{
	if (s->fd >= 0)
		close(s->fd);
	oci_image_close(&s->image);
}

/* tar(1) reads the directory with the permissions of the caller. A sandbox that binds the directory
 * would see every other owner as nobody. */
static int unpack_dir(struct archive_unpack *u, const char *dir, unsigned flags, struct err *err)
{
	auto_fini(tar_abort) struct tar_child t = { .fd = -1, .target = -1, .stage = -1 };

	if (tar_pack_root(&t, dir, err) < 0 || archive_unpack_tar(u, t.fd, "/", flags, err) < 0)
		return -1;
	return tar_finish(&t, err);
}

static int unpack_source(struct archive_unpack *u, struct keeper_client *k, struct source *s,
			 struct err *err)
{
	unsigned features, flags;

	if (keeper_client_features(k, &features, err) < 0)
		return -1;
	flags = template_fill_flags(features);
	if (s->is_oci)
		return template_fill_layers(u, &s->image, flags, err);
	if (s->is_dir)
		return unpack_dir(u, s->path, flags, err);
	u->total = (uint64_t)s->st.st_size;
	return archive_unpack_tar(u, s->fd, "/", flags, err);
}

/* ---- add ------------------------------------------------------------------------------------- */

/* ERR_NOT_FOUND if there are none. */
static int delete_files(struct keeper_client *k, const char *name, struct err *err)
{
	struct keeper_request r = keeper_client_request(KEEPER_TEMPLATE_DROP, NULL);

	snprintf(r.template, sizeof(r.template), "%s", name);
	return keeper_client_call(k, &r, NULL, 0, NULL, NULL, err);
}

static int new_host(void *arg, struct sandbox **ret, struct err *err)
{
	struct sandbox_spec spec = template_fill_host_spec(0);

	return sandbox_new(arg, &spec, ret, err);
}

static int fill(struct keeper_client *k, struct sandbox *sb, struct source *s, struct template *t,
		struct err *err)
{
	struct archive_unpack u = { .into = sb,
				    .need_host = new_host,
				    .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
				    .arg = k };
	int r = unpack_source(&u, k, s, err);

	if (u.progress)
		fprintf(stderr, "\r%40s\r", "");
	sandbox_free(u.host);
	t->made.bytes = u.bytes;
	return r;
}

static int build(const char *home, const char *name, struct source *s, struct template *t,
		 struct err *err)
{
	auto_call(keeper_client_free) struct keeper_client *k = NULL;
	auto_call(sandbox_free) struct sandbox *sb = NULL;
	struct keeper_client_opts how = { .home = home, .oneshot = true };
	struct sandbox_spec spec = template_fill_spec(0);
	struct err ignored;

	if (keeper_client_spawn(&how, &k, err) < 0 || sandbox_new(k, &spec, &sb, err) < 0)
		return -1;
	t->made.at = clock_wall_ms();
	t->made.from = strdup(s->is_oci ? "oci" : s->is_dir ? "directory" : "tar");
	if (!t->made.from)
		return err_sys(err, ENOMEM, "template");
	if (fill(k, sb, s, t, err) < 0 || template_fill_user(sb, t, err) < 0)
		return err_ctx(err, "%s", s->path);
	/* an interrupted add or rm leaves files without a template.json */
	delete_files(k, name, &ignored);
	if (sandbox_seal(sb, name, err) < 0)
		return -1;
	if (template_save(home, name, t, err) < 0) {
		delete_files(k, name, &ignored);
		return -1;
	}
	return 0;
}

static int check_name(const char *home, const char *name, struct err *err)
{
	struct template t;
	int r;

	if (!template_name_is_valid(name))
		return err_set(
			err, ERR_INVALID,
			"template \"%.64s\": a name contains only a-z, 0-9, '.', '_' and '-'",
			name);
	if (template_is_builtin(name))
		return err_set(err, ERR_INVALID, "template \"%s\" is built in", name);
	r = template_load(home, name, &t, err);
	template_fini(&t);
	if (r == 0 || err->code != ERR_NOT_FOUND)
		return err_set(
			err, ERR_CONFLICT,
			"template \"%s\" already exists (remove it with: lodge template rm %s)",
			name, name);
	return 0;
}

static int run_add(struct api_cmd *a, struct err *err)
{
	struct template *t = &((struct local_opts *)a)->t;
	auto_fini(close_source) struct source s = { .fd = -1 };
	char home[HOME_DIR_SIZE];

	if (home_dir_find(((struct local_opts *)a)->home, home, err) < 0 ||
	    check_name(home, a->argv[0], err) < 0 || limit_opt_check(t, err) < 0 ||
	    open_source(a->argv[1], &s, t, err) < 0)
		return -1;
	if (s.is_oci && s.image.wants_root && !t->user && t->class != KEEPER_CLASS_ROOT)
		fprintf(stderr, "lodge: this image expects root, but its sandboxes run as uid "
				"1000; --root allows root\n");
	return build(home, a->argv[0], &s, t, err);
}

static void init(struct api_cmd *a)
{
	template_init(&((struct local_opts *)a)->t);
}

static void fini(struct api_cmd *a)
{
	template_fini(&((struct local_opts *)a)->t);
}

static const struct cli_option options[] = {
	CLI_SECTION("Defaults of its sandboxes"),
	CLI_INCLUDE(template_options, offsetof(struct local_opts, t)),
	CLI_INCLUDE(require_options, offsetof(struct local_opts, t)),
	CLI_SECTION("This machine"),
	OPTION_HOME,
	{ NULL },
};

static const struct command template_add = {
	.name = "template add",
	.usage = "NAME SOURCE [OPTION...]",
	.summary = "create a template from a directory, tar or OCI image",
	.about =
		"SOURCE is a directory, a tar of a root file system (also .gz .xz .zst) or an OCI\n"
		"image layout.\n",
	.options = options,
	.more = "`lodge templates add` creates one of a service, for sessions.\n",
	.size = sizeof(struct local_opts),
	.least = 2,
	.most = 2,
	.local = true,
	.run = run_add,
	.init = init,
	.fini = fini,
};

/* ---- ls -------------------------------------------------------------------------------------- */

struct listing {
	const char *home;
	struct json_out *json; /* NULL: print a table */
};

static const char *class_name(const struct template *t)
{
	return t->class == KEEPER_CLASS_ROOT ? "root" : "user";
}

static void put_template(struct json_out *j, const char *name, const struct template *t,
			 const char *problem)
{
	json_out_object(j, NULL);
	json_out_str(j, "name", name);
	json_out_bool(j, "builtin", template_is_builtin(name));
	json_out_str(j, "class", class_name(t));
	json_out_str(j, "user", t->user);
	json_out_str(j, "workdir", t->workdir);
	json_out_array(j, "env");
	for (size_t i = 0; i < t->nenv; i++)
		json_out_str(j, NULL, t->env[i]);
	json_out_end(j);
	json_out_object(j, "limits");
	for (unsigned i = 0; template_limit_name(i); i++)
		if (t->limits_set & 1u << i)
			json_out_u64(j, template_limit_name(i), template_limit_value(t, i));
	json_out_end(j);
	if (problem)
		json_out_str(j, "error", problem);
	json_out_end(j);
}

static void print_limits(const struct template *t)
{
	char text[SIZE_TEXT];

	for (unsigned i = 0; template_limit_name(i); i++) {
		const char *name = template_limit_name(i), *bytes = strstr(name, "_bytes");
		uint64_t v = template_limit_value(t, i);

		if (!(t->limits_set & 1u << i))
			continue;
		if (bytes)
			printf(" %.*s=%s", (int)(bytes - name), name, units_format(v, text));
		else
			printf(" %s=%llu", name, (unsigned long long)v);
	}
}

static int list_one(void *arg, const char *name)
{
	struct listing *l = arg;
	struct template t;
	struct err err = { 0 };
	const char *problem = NULL;

	if (template_load(l->home, name, &t, &err) < 0)
		problem = err.msg;
	if (l->json) {
		put_template(l->json, name, &t, problem);
	} else if (problem) {
		printf("%-20s %s\n", name, problem);
	} else {
		printf("%-20s %-5s %-12s %-20s", name, class_name(&t), t.user ? t.user : "-",
		       t.workdir ? t.workdir : "-");
		print_limits(&t);
		putchar('\n');
	}
	template_fini(&t);
	return 0;
}

static int run_ls(struct api_cmd *a, struct err *err)
{
	char home[HOME_DIR_SIZE];
	auto_fini(json_out_fini) struct json_out j = { 0 };
	struct listing l = { .home = home, .json = a->json ? &j : NULL };
	auto_free char *text = NULL;

	json_out_init(&j, 16 << 20);
	json_out_object(&j, NULL);
	json_out_array(&j, "templates");
	if (home_dir_find(((struct local_opts *)a)->home, home, err) < 0)
		return -1;
	if (!a->json)
		printf("%-20s %-5s %-12s %-20s %s\n", "NAME", "CLASS", "USER", "WORKDIR", "LIMITS");
	list_one(&l, "host");
	if (template_each(home, list_one, &l, err) < 0)
		return -1;
	json_out_end(&j);
	json_out_end(&j);
	text = json_out_take(&j, NULL);
	if (!text)
		return err_set(err, ERR_LIMIT, "cannot list templates as JSON: more than 16 MiB");
	if (a->json)
		puts(text);
	return 0;
}

static const struct cli_option ls_options[] = { OPTION_JSON("print JSON"), OPTION_HOME, { NULL } };

static const struct command template_ls = {
	.name = "template ls",
	.usage = "[--json]",
	.summary = "list the templates of this machine",
	.options = ls_options,
	.size = sizeof(struct local_opts),
	.local = true,
	.run = run_ls,
};

/* ---- rm -------------------------------------------------------------------------------------- */

static int remove_template(const char *home, const char *name, struct err *err)
{
	auto_call(keeper_client_free) struct keeper_client *k = NULL;
	struct keeper_client_opts how = { .home = home, .oneshot = true };

	if (keeper_client_spawn(&how, &k, err) < 0)
		return -1;
	/* an earlier rm may have been interrupted after it removed the files */
	if (delete_files(k, name, err) < 0 && err->code != ERR_NOT_FOUND)
		return -1;
	return template_remove(home, name, err);
}

static int check_removable(const char *home, const char *name, struct err *err)
{
	struct template t;
	bool of_snapshot;
	int r;

	if (template_is_builtin(name))
		return err_set(err, ERR_INVALID, "template \"%s\" is built in", name);
	r = template_load(home, name, &t, err);
	of_snapshot = t.layer != NULL;
	template_fini(&t);
	if (of_snapshot)
		return err_set(err, ERR_CONFLICT,
			       "template \"%s\" was created from a snapshot: only lodged can "
			       "remove it",
			       name);
	/* one that is damaged can be removed */
	return r < 0 && (err->code == ERR_NOT_FOUND || !template_name_is_valid(name)) ? -1 : 0;
}

static int run_rm(struct api_cmd *a, struct err *err)
{
	char home[HOME_DIR_SIZE];

	if (home_dir_find(((struct local_opts *)a)->home, home, err) < 0 ||
	    check_removable(home, a->argv[0], err) < 0)
		return -1;
	if (!api_cmd_confirm(a, "Delete template %s?", a->argv[0]))
		return err_set(err, ERR_INVALID, "cancelled: no template was deleted");
	return remove_template(home, a->argv[0], err);
}

static const struct cli_option rm_options[] = { OPTION_YES, OPTION_HOME, { NULL } };

static const struct command template_rm = {
	.name = "template rm",
	.usage = "NAME [--yes]",
	.summary = "delete a template",
	.options = rm_options,
	.size = sizeof(struct local_opts),
	.least = 1,
	.most = 1,
	.local = true,
	.run = run_rm,
};

static const struct command *const subs[] = {
	&template_add,
	&template_ls,
	&template_rm,
	NULL,
};

const struct command cmd_template = {
	.name = "template",
	.usage = "",
	.summary = "manage what lodge run starts from",
	.more = "`lodge templates` manages those of a service, for sessions.\n",
	.subs = subs,
	.needs_sub = true,
};
