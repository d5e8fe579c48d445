/* SPDX-License-Identifier: Apache-2.0 */
/* lodge templates add: creates a template from a root file system, an image or a snapshot. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/core/progress_bar.h"
#include "cli/copy/tar_child.h"
#include "cli/admin/cmd_templates.h"
#include "cli/core/cleanup.h"
#include "sandbox/template/oci_image.h"

DEFINE_AUTO(struct client_stream *, client_close);

/* ---- sources --------------------------------------------------------------------------------- */

struct source {
	const char *path;
	int fd; /* of an archive */
	int64_t size; /* -1: unknown */
	bool oci;
	struct tar_child tar; /* of a directory */
};

static void close_source(struct source *s)
{
	tar_abort(&s->tar);
	if (s->fd > STDIN_FILENO)
		close(s->fd);
}
static int open_source(const struct template_opts *o, struct source *s, struct err *err)
{
	struct stat st;

	s->path = o->a.argv[1];
	s->oci = o->oci;
	s->fd = strcmp(s->path, "-") == 0 ? STDIN_FILENO
					  : open(s->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (s->fd < 0 || fstat(s->fd, &st) < 0)
		return err_sys(err, errno, "%.160s", s->path);
	s->size = S_ISREG(st.st_mode) ? st.st_size : -1;
	if (!S_ISDIR(st.st_mode))
		return 0;
	s->oci = s->oci || oci_image_is_layout(s->fd);
	return tar_pack_root(&s->tar, s->path, err);
}

/* ---- undoing --------------------------------------------------------------------------------- */

/* A template that has its files, but not its settings yet. */
struct created {
	struct client *client;
	const char *name;
	bool exists;
};

static void remove_created(void *arg)
{
	struct created *m = arg;
	struct err ignored;
	char path[API_PATH];

	if (m->exists &&
	    client_path(path, sizeof(path), &ignored, "/v1/templates/%s", m->name) == 0)
		(void)client_call(m->client, "DELETE", path, NULL, NULL, &ignored);
	m->exists = false;
}

/* ---- sending --------------------------------------------------------------------------------- */

struct sending {
	struct source *source;
	struct progress progress;
	bool complete; /* from then on signals are held */
};

static void show_progress(void *arg, uint64_t bytes)
{
	progress_bar_at(&((struct sending *)arg)->progress, bytes);
}

/* Fails if tar could not read everything. From here on the service may create the template at any
 * time, so signals wait for its answer. */
static int finish_source(void *arg, struct err *err)
{
	struct sending *s = arg;

	progress_bar_end(&s->progress);
	if (s->source->tar.pid > 0 && tar_finish(&s->source->tar, err) < 0)
		return -1;
	cleanup_hold();
	s->complete = true;
	return 0;
}

static int send_source(struct api_cmd *a, struct sending *s, struct created *m, json_t **ret,
		       struct err *err)
{
	auto_call(client_close) struct client_stream *stream = NULL;
	char url[API_PATH];
	struct client_request rq = { .method = "POST",
				     .path = url,
				     .body_fd = s->source->tar.fd >= 0 ? s->source->tar.fd
								       : s->source->fd,
				     .has_body_fd = true,
				     .sent = show_progress,
				     .whole = finish_source,
				     .arg = s };
	int r;

	if (client_path(url, sizeof(url), err, "/v1/templates/%s", m->name) < 0 ||
	    api_cmd_query(url, sizeof(url), "format", s->source->oci ? "oci" : NULL, err) < 0)
		return -1;
	progress_bar_begin(&s->progress, s->source->path, s->source->size, a->quiet);
	r = client_open(a->client, &rq, &stream, err);
	progress_bar_end(&s->progress);
	if (r < 0)
		return -1;
	m->exists = true; /* signals are held */
	r = client_read_json(stream, ret, err);
	return r ? r : err_set(err, ERR_UNAVAILABLE, "unexpected response: it is empty");
}

/* An archive has only files, and an image has settings of its own: ours are sent afterwards. */
static int send_settings(struct template_opts *o, const struct created *m, json_t *answer,
			 struct err *err)
{
	auto_json json_t *body = json_object(), *now = NULL;

	if (!templates_is_set(o))
		return 0;
	if (templates_spec(o, json_object_get(answer, "template"), body, err) < 0 ||
	    api_cmd_call(&o->a, "PATCH", body, &now, err, "/v1/templates/%s", m->name) < 0)
		return -1;
	return json_object_set(answer, "template", json_object_get(now, "template"));
}

/* The connection broke. If the service still answers, it closed the connection, and its error was
 * lost because we were still sending. */
static void explain(struct api_cmd *a, bool complete, struct err *err)
{
	struct err why = { 0 };
	int r = api_cmd_call(a, "GET", NULL, NULL, &why, "/v1/templates/%s", a->argv[0]);

	if (r == 0 || (complete && why.code == ERR_NOT_FOUND))
		err_ctx(err, "the template may exist (see lodge templates)");
	else if (why.code == ERR_NOT_FOUND)
		err_set(err, ERR_INVALID,
			"lodged closed the connection: the archive is damaged, not a tar, or "
			"exceeds template_size or template_time; no template was created");
}

static int create(struct template_opts *o, struct source *source, json_t **ret, struct err *err)
{
	struct api_cmd *a = &o->a;
	struct created m = { .client = a->client, .name = a->argv[0] };
	struct sending s = { .source = source };
	int r;

	if (cleanup_set(remove_created, &m, err) < 0)
		return -1;
	r = send_source(a, &s, &m, ret, err);
	if (s.complete)
		cleanup_release();
	if (r < 0 && !m.exists && err->code == ERR_UNAVAILABLE && err->sys)
		explain(a, s.complete, err);
	if (r < 0 || send_settings(o, &m, *ret, err) < 0) {
		r = -1;
		cleanup_hold();
		remove_created(&m);
		cleanup_release();
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
			"to allow root: lodge templates set %s --root\n",
			member_text(t, "name"));
	api_cmd_print("created %s%s%s", member_text(t, "name"), size < 0 ? "" : ", ",
		      size < 0 ? "" : human_bytes((uint64_t)size, bytes));
}

/* Fails early, before gigabytes are sent. */
static int check_policy(struct template_opts *o, struct err *err)
{
	return o->policy ? api_cmd_call(&o->a, "GET", NULL, NULL, err, "/v1/policies/%s", o->policy)
			 : 0;
}

static int create_from_source(struct template_opts *o, json_t **ret, struct err *err)
{
	auto_fini(close_source) struct source s = {
		.fd = -1, .tar = { .fd = -1, .target = -1, .stage = -1 }
	};

	if (check_policy(o, err) < 0 || open_source(o, &s, err) < 0)
		return -1;
	return create(o, &s, ret, err);
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
			"template \"%.63s\" already exists (remove it with: lodge templates rm "
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
	  "SOURCE is a tar of an OCI image layout" },
	CLI_SECTION("Settings of its sessions"),
	CLI_INCLUDE(templates_spec_options, 0),
	CLI_SECTION("Output"),
	OPTION_QUIET("show no progress"),
	API_OPTIONS,
	{ NULL },
};

const struct command templates_add = {
	.name = "templates add",
	.usage = "NAME SOURCE [OPTION...]\n"
		 "       lodge templates add NAME --snapshot SNAPSHOT [OPTION...]",
	.summary = "create a template from a directory, tar or snapshot",
	.about = "SOURCE is a directory, a tar of a root file system (also .gz .xz .zst .bz2; -\n"
		 "reads stdin) or an OCI image layout.\n",
	.options = options,
	.more = "`lodge template add` creates one on this machine, for `lodge run`.\n",
	.size = sizeof(struct template_opts),
	.least = 1,
	.most = 2,
	.check = check,
	.run = run,
	.init = templates_init,
	.fini = templates_fini,
};
