/* SPDX-License-Identifier: Apache-2.0 */
/* lodge template create: creates a template from a root file system, an image or a snapshot. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/core/progress_bar.h"
#include "cli/copy/tar_child.h"
#include "cli/admin/cmd_template.h"
#include "cli/core/cleanup.h"
#include "sandbox/template/oci_image.h"

/* ---- sources --------------------------------------------------------------------------------- */

struct upload {
	struct progress progress; /* first: progress_bar_at() gets the upload */
	struct api_cmd *a;
	const char *path;
	int fd; /* of an archive */
	int64_t size; /* -1: unknown */
	bool oci;
	struct tar_child tar; /* of a directory */
	bool complete; /* all is sent; from then on signals are held */
	bool exists; /* the template has its files, but not its settings yet */
};

static void close_source(struct upload *u)
{
	tar_abort(&u->tar);
	if (u->fd > STDIN_FILENO)
		close(u->fd);
}

static int open_source(struct upload *u, struct err *err)
{
	struct stat st;

	u->fd = strcmp(u->path, "-") == 0 ? STDIN_FILENO
					  : open(u->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (u->fd < 0 || fstat(u->fd, &st) < 0)
		return err_sys(err, errno, "%.160s", u->path);
	u->size = S_ISREG(st.st_mode) ? st.st_size : -1;
	if (!S_ISDIR(st.st_mode))
		return 0;
	u->oci = u->oci || oci_image_is_layout(u->fd);
	return tar_pack_root(&u->tar, u->path, err);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void remove_created(void *arg)
{
	struct upload *u = arg;
	struct err ignored;

	if (u->exists)
		(void)api_cmd_call(u->a, "DELETE", NULL, NULL, &ignored, "/v1/templates/%s",
				   u->a->argv[0]);
	u->exists = false;
}

/* Fails if tar could not read everything. From here on the service may create the template at any
 * time, so signals wait for its answer. */
static int finish_source(void *arg, struct err *err)
{
	struct upload *u = arg;

	progress_bar_end(&u->progress);
	if (u->tar.pid > 0 && tar_finish(&u->tar, err) < 0)
		return -1;
	cleanup_hold();
	u->complete = true;
	return 0;
}

static int send_source(struct upload *u, json_t **ret, struct err *err)
{
	auto_call(client_close) struct client_stream *stream = NULL;
	char url[API_PATH];
	struct client_request rq = { .method = "POST",
				     .path = url,
				     .body_fd = u->tar.fd >= 0 ? u->tar.fd : u->fd,
				     .has_body_fd = true,
				     .sent = progress_bar_at,
				     .whole = finish_source,
				     .arg = u };
	int r;

	if (client_path(url, sizeof(url), err, "/v1/templates/%s", u->a->argv[0]) < 0 ||
	    api_cmd_query(url, sizeof(url), "format", u->oci ? "oci" : NULL, err) < 0)
		return -1;
	progress_bar_begin(&u->progress, u->path, u->size, u->a->quiet);
	r = client_open(u->a->client, &rq, &stream, err);
	progress_bar_end(&u->progress);
	if (r < 0)
		return -1;
	u->exists = true; /* signals are held */
	r = client_read_json(stream, ret, err);
	return r ? r : err_set(err, ERR_UNAVAILABLE, "unexpected response: it is empty");
}

/* An archive has only files, and an image has settings of its own: ours are sent afterwards. */
static int send_settings(struct template_opts *o, json_t *answer, struct err *err)
{
	auto_json json_t *body = json_object(), *now = NULL;

	if (!templates_is_set(o))
		return 0;
	if (templates_spec(o, json_object_get(answer, "template"), body, err) < 0 ||
	    api_cmd_call(&o->a, "PATCH", body, &now, err, "/v1/templates/%s", o->a.argv[0]) < 0)
		return -1;
	return json_object_set(answer, "template", json_object_get(now, "template"));
}

/* The connection broke. If the service still answers, it closed the connection, and its error was
 * lost because we were still sending. */
static void explain(const struct upload *u, struct err *err)
{
	struct err why = { 0 };
	int r = api_cmd_call(u->a, "GET", NULL, NULL, &why, "/v1/templates/%s", u->a->argv[0]);

	if (r == 0 || (u->complete && why.code == ERR_NOT_FOUND))
		err_ctx(err, "the template may exist (see lodge template)");
	else if (why.code == ERR_NOT_FOUND)
		err_set(err, ERR_INVALID,
			"lodged closed the connection: the archive is damaged, not a tar, or "
			"exceeds template_size or template_time; no template was created");
}

static int create_from_source(struct template_opts *o, json_t **ret, struct err *err)
{
	struct api_cmd *a = &o->a;
	auto_fini(
		close_source) struct upload u = { .a = a,
						  .path = a->argv[1],
						  .oci = o->oci,
						  .fd = -1,
						  .tar = { .fd = -1, .target = -1, .stage = -1 } };
	int r;

	/* a policy that is missing fails before gigabytes are sent */
	if ((o->policy &&
	     api_cmd_call(a, "GET", NULL, NULL, err, "/v1/policies/%s", o->policy) < 0) ||
	    open_source(&u, err) < 0 || cleanup_set(remove_created, &u, err) < 0)
		return -1;
	r = send_source(&u, ret, err);
	if (u.complete)
		cleanup_release();
	if (r < 0 && !u.exists && err->code == ERR_UNAVAILABLE && err->sys)
		explain(&u, err);
	if (r < 0 || send_settings(o, *ret, err) < 0) {
		r = -1;
		cleanup_run();
	}
	cleanup_clear();
	return r < 0 ? -1 : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void print_added(struct api_cmd *a, const json_t *answer)
{
	const json_t *t = json_object_get(answer, "template");
	int64_t size = member_number(t, "size_bytes");
	char bytes[HUMAN_TEXT];

	(void)a;
	if (member_true(answer, "wants_root") && member_is(t, "class", "user"))
		fprintf(stderr,
			"lodge: this image expects root, but its sandboxes run as another user; "
			"to allow root: lodge template set %s --root\n",
			member_text(t, "name"));
	api_cmd_print("created %s%s%s", member_text(t, "name"), size < 0 ? "" : ", ",
		      size < 0 ? "" : human_bytes((uint64_t)size, bytes));
}

static int create_from_snapshot(struct template_opts *o, json_t **ret, struct err *err)
{
	struct api_cmd *a = &o->a;
	auto_json json_t *body = json_object();

	if (api_cmd_put(a, body, "name", "NAME", a->argv[0], err) < 0 ||
	    api_cmd_put(a, body, "snapshot", "--snapshot", o->snapshot, err) < 0 ||
	    api_cmd_put(a, body, "tenant", "--tenant", o->tenant, err) < 0 ||
	    templates_spec(o, NULL, body, err) < 0)
		return -1;
	return client_call(a->client, "POST", "/v1/templates", body, ret, err);
}

static int check(struct api_cmd *a, struct err *err)
{
	const struct template_opts *o = (struct template_opts *)a;

	if (a->argc != (o->snapshot ? 1 : 2))
		return api_cmd_misuse(a, err, "name a SOURCE, or --snapshot SNAPSHOT");
	if (o->snapshot)
		return o->oci ? api_cmd_misuse(a, err, "--oci: cannot be used with --snapshot") : 0;
	if (o->tenant)
		return api_cmd_misuse(a, err, "--tenant: needs --snapshot");
	if (strcmp(a->argv[1], "-") == 0 && isatty(STDIN_FILENO))
		return api_cmd_misuse(
			a, err, "refusing to read an archive from a terminal: add < FILE.tar");
	return limit_opt_check(&o->spec, err);
}

static int run(struct api_cmd *a, struct err *err)
{
	struct template_opts *o = (struct template_opts *)a;
	auto_json json_t *answer = NULL;

	if ((o->snapshot ? create_from_snapshot : create_from_source)(o, &answer, err) == 0)
		return api_cmd_write(a, answer, print_added, err);
	if (err->code == ERR_CONFLICT &&
	    (strstr(err->msg, "already exists") || strstr(err->msg, "there already")))
		err_set(err, ERR_CONFLICT,
			"template \"%.63s\" already exists (remove it with: lodge template rm "
			"%.63s)",
			a->argv[0], a->argv[0]);
	return -1;
}

static const struct cli_option options[] = {
	CLI_SECTION("Source"),
	{ "snapshot", 0, "SNAPSHOT", CLI_TEXT, offsetof(struct template_opts, snapshot),
	  "create it from this snapshot, by its id" },
	{ "tenant", 0, "TENANT", CLI_TEXT, offsetof(struct template_opts, tenant),
	  "tenant of the snapshot (that of your key)" },
	{ "oci", 0, NULL, CLI_FLAG, offsetof(struct template_opts, oci),
	  "refuse a SOURCE that is not an image" },
	CLI_SECTION("Settings of its sessions"),
	CLI_INCLUDE(templates_spec_options, 0),
	CLI_SECTION("Output"),
	OPTION_QUIET("show no progress"),
	OPTION_LOCAL,
	API_OPTIONS,
	{ NULL },
};

const struct command template_create = {
	.name = "template create",
	.usage = "NAME SOURCE [OPTION...]\n"
		 "       lodge template create NAME --snapshot SNAPSHOT [OPTION...]",
	.summary = "create a template from a directory, tar or snapshot",
	.about = "SOURCE is a directory, a tar of a root file system (also .gz .xz .zst .bz2; -\n"
		 "reads stdin) or an image: a file from docker save, or an OCI image layout.\n",
	.options = options,
	.alias = "add",
	.twin = &local_template_create,
	.size = sizeof(struct template_opts),
	.least = 1,
	.most = 2,
	.check = check,
	.run = run,
	.init = templates_init,
	.fini = templates_fini,
};
