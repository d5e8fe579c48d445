/* SPDX-License-Identifier: Apache-2.0 */
/* lodge template --local: the templates of this machine. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
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
#include "cli/core/human.h"
#include "cli/core/limit_options.h"
#include "sandbox/home_dir.h"
#include "sandbox/keeper_client.h"
#include "sandbox/template/image_fill.h"
#include "sandbox/template/template.h"
#include "sandbox/template/template_fill.h"
#include "sandbox/template/template_json.h"

struct local_opts {
	struct api_cmd a;
	const char *home;
	struct template t; /* that add creates */
};

#define OPTION_HOME OPTION_LOCAL, OPTION_DATA(struct local_opts, home)

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
	bool is_dir;
	bool is_image; /* for a tar, this is known once it is unpacked */
	struct oci_image image;
};

static int open_source(const char *path, struct source *s, struct template *t, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	s->path = path;
	if (fd < 0 || fstat(fd, &s->st) < 0)
		return err_sys(err, errno, "%s", path);
	s->is_dir = S_ISDIR(s->st.st_mode);
	s->is_image = s->is_dir && oci_image_is_layout(fd);
	if (!s->is_dir && !S_ISREG(s->st.st_mode))
		return err_set(err, ERR_INVALID, "%s: must be a directory or a file", path);
	if (s->is_image) {
		struct oci_image_files from = { oci_image_open_at, &fd };

		return oci_image_open(&from, OCI_IMAGE_LAYOUT, t, &s->image, err) < 0
			       ? err_ctx(err, "%s", path)
			       : 0;
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

static int unpack_source(struct archive_unpack *u, struct source *s, unsigned flags,
			 struct err *err)
{
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

static int create_target(void *arg, const char *template, struct sandbox **ret, struct err *err)
{
	struct sandbox_spec spec = template_fill_spec(0);

	spec.template = template;
	return sandbox_new(arg, &spec, ret, err);
}

static int seal_layer(void *arg, struct sandbox *sb, const char *name, struct err *err)
{
	(void)arg;
	if (sandbox_seal(sb, name, err) < 0)
		return -1;
	sandbox_free(sb);
	return 0;
}

static void destroy_target(void *arg, struct sandbox *sb)
{
	struct err ignored; /* the keeper ends it too */

	(void)arg;
	if (sb)
		(void)sandbox_destroy(sb, &ignored);
	sandbox_free(sb);
}

static void drop_layer(void *arg, const char *name)
{
	struct err in_use;

	(void)delete_files(arg, name, &in_use);
}

/* *sb receives a tar or a directory. If that is an image, its layers come into others, and *sb is
 * the last of them in the end. */
struct build {
	struct keeper_client *keeper;
	struct sandbox *into, *parts;
	struct image_fill image; /* also has the unpacker of other sources */
};

static int fill_image(struct build *b, struct source *s, struct err *err)
{
	b->parts = steal_ptr(&b->into);
	b->image.ops = (struct image_fill_ops){ create_target, seal_layer, destroy_target,
						drop_layer, b->keeper };
	return image_fill(&b->image, &s->image, &b->into, err);
}

static int fill_source(struct build *b, struct source *s, struct template *t, struct err *err)
{
	struct oci_image_files from = { image_fill_open_part, b->into };
	enum oci_image_kind kind;

	if (s->is_image)
		return fill_image(b, s, err);
	if (unpack_source(&b->image.unpack, s, b->image.flags, err) < 0 ||
	    oci_image_find(&from, &kind, err) < 0)
		return -1;
	s->is_image = kind != OCI_IMAGE_NONE;
	if (!s->is_image)
		return 0;
	return oci_image_open(&from, kind, t, &s->image, err) < 0 ? -1 : fill_image(b, s, err);
}

static int fill(struct build *b, struct source *s, struct template *t, struct err *err)
{
	struct archive_unpack *u = &b->image.unpack;
	unsigned features;
	int r;

	if (keeper_client_features(b->keeper, &features, err) < 0 ||
	    create_target(b->keeper, "empty", &b->into, err) < 0)
		return -1;
	b->image.flags = template_fill_flags(features);
	*u = (struct archive_unpack){ .into = b->into,
				      .need_host = new_host,
				      .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
				      .arg = b->keeper };
	r = fill_source(b, s, t, err);
	if (u->progress)
		fprintf(stderr, "\r%40s\r", "");
	t->made.bytes = u->bytes;
	if (r < 0 || template_fill_check(b->into, s->is_image, err) < 0 ||
	    template_fill_user(b->into, t, err) < 0)
		return -1;
	return template_fill_sync(b->into, err);
}

/* The data directory of a service belongs to its user, who must be able to write what root makes
 * there. Root takes that user's rights meanwhile: the user may have placed a link. */
static int save_as_owner(const char *home, const char *name, const struct template *t,
			 struct err *err)
{
	struct stat st;
	int r;

	if (geteuid() != 0 || stat(home, &st) < 0 || st.st_uid == 0)
		return template_save(home, name, t, err);
	if (setgroups(0, NULL) < 0 || setegid(st.st_gid) < 0 || seteuid(st.st_uid) < 0)
		return err_sys(err, errno, "switch to user %u, who owns %s", st.st_uid, home);
	r = template_save(home, name, t, err);
	if (r < 0 && err->sys == EACCES)
		err_ctx(err, "%s: user %u cannot write to it (chown -R %u:%u %s/templates)", home,
			st.st_uid, st.st_uid, st.st_gid, home);
	if (seteuid(0) < 0 || setegid(0) < 0)
		return err_sys(err, errno, "switch back to root");
	return r;
}

static int save(struct build *b, const char *home, const char *name, struct source *s,
		struct template *t, struct err *err)
{
	struct err ignored;

	t->made.at = clock_wall_ms();
	t->made.from = strdup(s->is_image ? "oci" : s->is_dir ? "directory" : "tar");
	if (!t->made.from)
		return err_sys(err, ENOMEM, "template");
	/* an interrupted add or rm leaves files without a template.json */
	delete_files(b->keeper, name, &ignored);
	if (sandbox_seal(b->into, name, err) < 0)
		return -1;
	if (save_as_owner(home, name, t, err) == 0)
		return 0;
	delete_files(b->keeper, name, &ignored);
	return -1;
}

static int build(const char *home, const char *name, struct source *s, struct template *t,
		 struct err *err)
{
	auto_call(keeper_client_free) struct keeper_client *k = NULL;
	struct keeper_client_opts how = { .home = home, .oneshot = true };
	struct build b = { 0 };
	int r;

	if (keeper_client_spawn(&how, &k, err) < 0)
		return -1;
	b.keeper = k;
	r = fill(&b, s, t, err) < 0 ? err_ctx(err, "%s", s->path) : save(&b, home, name, s, t, err);
	destroy_target(k, b.parts);
	sandbox_free(b.image.unpack.host);
	if (r < 0) {
		destroy_target(k, b.into);
		image_fill_undo(&b.image);
	} else {
		sandbox_free(b.into);
	}
	return r;
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
	    open_source(a->argv[1], &s, t, err) < 0 || build(home, a->argv[0], &s, t, err) < 0)
		return -1;
	if (s.image.wants_root && !t->user && t->class != KEEPER_CLASS_ROOT)
		fprintf(stderr, "lodge: this image expects root, but its sandboxes run as uid "
				"1000; --root allows root\n");
	return 0;
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

const struct command local_template_create = {
	.name = "template create",
	.usage = "NAME SOURCE [OPTION...]",
	.summary = "create a template from a directory, tar or OCI image",
	.about = "SOURCE is a directory, a tar of a root file system (also .gz .xz .zst) or an "
		 "image:\n"
		 "a file from docker save, or an OCI image layout as a directory or tar.\n",
	.options = options,
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
	struct json_out *json; /* NULL: print a table, */
	bool quiet; /* or only names */
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

/* The settings may come from an image that nobody trusts. */
static void print_row(const char *name, const struct template *t)
{
	auto_free char *user = human_clean_dup(t->user ? t->user : "-");
	auto_free char *workdir = human_clean_dup(t->workdir ? t->workdir : "-");

	printf("%-20s %-5s %-12s %-20s", name, class_name(t), user ? user : "?",
	       workdir ? workdir : "?");
	print_limits(t);
	putchar('\n');
}

static int list_one(void *arg, const char *name)
{
	struct listing *l = arg;
	struct template t;
	struct err err = { 0 };
	const char *problem = NULL;

	if (template_load(l->home, name, &t, &err) < 0)
		problem = err.msg;
	if (l->quiet) {
		puts(name);
	} else if (l->json) {
		put_template(l->json, name, &t, problem);
	} else if (problem) {
		char clean[sizeof(err.msg)];

		printf("%-20s %s\n", name, human_clean(problem, clean, sizeof(clean)));
	} else {
		print_row(name, &t);
	}
	template_fini(&t);
	return 0;
}

static int run_ls(struct api_cmd *a, struct err *err)
{
	char home[HOME_DIR_SIZE];
	auto_fini(json_out_fini) struct json_out j = { 0 };
	struct listing l = { .home = home, .json = a->json ? &j : NULL, .quiet = a->quiet };
	auto_free char *text = NULL;

	json_out_init(&j, 16 << 20);
	json_out_object(&j, NULL);
	json_out_array(&j, "templates");
	if (home_dir_find(((struct local_opts *)a)->home, home, err) < 0)
		return -1;
	if (!a->json && !a->quiet)
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
		human_put_json(text, stdout);
	return 0;
}

static const struct cli_option ls_options[] = {
	OPTION_QUIET("print only names"),
	OPTION_JSON("print JSON"),
	OPTION_HOME,
	{ NULL },
};

const struct command local_template_ls = {
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
	if (api_cmd_confirm(a, "no template was deleted", err, "Delete template %s?", a->argv[0]) <
	    0)
		return -1;
	return remove_template(home, a->argv[0], err);
}

static const struct cli_option rm_options[] = { OPTION_YES, OPTION_HOME, { NULL } };

const struct command local_template_rm = {
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
