/* SPDX-License-Identifier: Apache-2.0 */
/* lodge templates add: a root file system, an image or a snapshot for sessions to start from. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/core/progress_bar.h"
#include "cli/copy/tar_child.h"
#include "cli/admin/templates_cmd.h"
#include "cli/core/cleanup.h"
#include "sandbox/template/oci_image.h"

DEFINE_AUTO(struct client_stream *, client_close);

/* ---- sources --------------------------------------------------------------------------------- */

struct source {
	const char *path;
	int fd; /* of an archive */
	int64_t size; /* of it; -1: not known */
	bool oci;
	struct tar_child tar; /* of a directory */
};

static void close_source(struct source *s)
{
	tar_abort(&s->tar);
	if (s->fd > STDIN_FILENO)
		close(s->fd);
}

static int open_source(const struct api_cmd *a, struct source *s, struct err *err)
{
	struct stat st;

	s->path = a->argv[1];
	s->oci = a->oci;
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

/* ---- what is made ---------------------------------------------------------------------------- */

/* A template that has its files and not yet what was said of it. */
struct made {
	struct client *client;
	const char *name;
	bool there;
};

static void unmake(void *arg)
{
	struct made *m = arg;
	struct err ignored;
	char path[ASK_PATH];

	if (m->there && client_path(path, sizeof(path), &ignored, "/v1/templates/%s", m->name) == 0)
		(void)client_call(m->client, "DELETE", path, NULL, NULL, &ignored);
	m->there = false;
}

/* ---- sending --------------------------------------------------------------------------------- */

struct sending {
	struct source *source;
	struct progress progress;
	bool whole; /* signals are held since then */
};

static void has_sent(void *arg, uint64_t bytes)
{
	progress_bar_at(&((struct sending *)arg)->progress, bytes);
}

/* What tar could not read must not be missing from a template. From here on the service may make
 * it at any time: a signal waits until that is known. */
static int is_whole(void *arg, struct err *err)
{
	struct sending *s = arg;

	progress_bar_end(&s->progress);
	if (s->source->tar.pid > 0 && tar_finish(&s->source->tar, err) < 0)
		return -1;
	cleanup_hold();
	s->whole = true;
	return 0;
}

static int send_source(struct api_cmd *a, struct sending *s, struct made *m, json_t **ret,
		       struct err *err)
{
	auto_call(client_close) struct client_stream *stream = NULL;
	char url[ASK_PATH];
	struct client_request rq = { .method = "POST",
				     .path = url,
				     .body_fd = s->source->tar.fd >= 0 ? s->source->tar.fd
								       : s->source->fd,
				     .has_body_fd = true,
				     .sent = has_sent,
				     .whole = is_whole,
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
	m->there = true; /* signals are held */
	r = client_read_json(stream, ret, err);
	return r ? r : err_set(err, ERR_UNAVAILABLE, "an answer without a word");
}

/* An archive brings only files, and an image what it says: the rest is told afterwards. */
static int reconcile_session(struct api_cmd *a, const struct made *m, json_t *answer,
			     struct err *err)
{
	auto_json json_t *body = json_object(), *now = NULL;

	if (!templates_is_set(a))
		return 0;
	if (templates_spec(a, json_object_get(answer, "template"), body, err) < 0 ||
	    api_cmd_call(a, "PATCH", body, &now, err, "/v1/templates/%s", m->name) < 0)
		return -1;
	return json_object_set(answer, "template", json_object_get(now, "template"));
}

/* The connection broke. A service that is still there broke it off: while much is still to come it
 * cannot be heard, and what it had against the archive is not told. */
static void explain(struct api_cmd *a, bool whole, struct err *err)
{
	struct err why = { 0 };
	int r = api_cmd_call(a, "GET", NULL, NULL, &why, "/v1/templates/%s", a->argv[0]);

	if (r == 0 || (whole && why.code == ERR_NOT_FOUND))
		err_ctx(err, "lodge templates tells what came of it");
	else if (why.code == ERR_NOT_FOUND)
		err_set(err, ERR_INVALID,
			"lodged broke it off: it is damaged, no tar, or more than lodged takes "
			"(template_size, template_time); nothing was made");
}

static int make_of(struct api_cmd *a, struct source *source, json_t **ret, struct err *err)
{
	struct made m = { .client = a->client, .name = a->argv[0] };
	struct sending s = { .source = source };
	int r;

	if (cleanup_set(unmake, &m, err) < 0)
		return -1;
	r = send_source(a, &s, &m, ret, err);
	if (s.whole)
		cleanup_release();
	if (r < 0 && !m.there && err->code == ERR_UNAVAILABLE && err->sys)
		explain(a, s.whole, err);
	if (r < 0 || reconcile_session(a, &m, *ret, err) < 0) {
		r = -1;
		cleanup_hold();
		unmake(&m);
		cleanup_release();
	}
	cleanup_clear();
	return r < 0 ? -1 : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void say(struct api_cmd *a, const json_t *answer)
{
	const json_t *t = json_object_get(answer, "template");
	int64_t size = api_cmd_number(t, "size_bytes");
	char bytes[HUMAN_TEXT];

	(void)a;
	if (json_is_true(json_object_get(answer, "wants_root")) && api_cmd_is(t, "class", "user"))
		fprintf(stderr,
			"lodge: this image expects root; its sandboxes run as another user (lodge "
			"templates set %s --root gives them a root inside)\n",
			api_cmd_text(t, "name"));
	api_cmd_print("%s is there%s%s", api_cmd_text(t, "name"), size < 0 ? "" : ", ",
		      size < 0 ? "" : human_bytes((uint64_t)size, bytes));
}

/* Before gigabytes are sent for nothing. */
static int check_policy(struct api_cmd *a, struct err *err)
{
	return a->policy ? api_cmd_call(a, "GET", NULL, NULL, err, "/v1/policies/%s", a->policy)
			 : 0;
}

static int of_archive(struct api_cmd *a, json_t **ret, struct err *err)
{
	auto_fini(close_source) struct source s = {
		.fd = -1, .tar = { .fd = -1, .target = -1, .stage = -1 }
	};

	if (check_policy(a, err) < 0 || open_source(a, &s, err) < 0)
		return -1;
	return make_of(a, &s, ret, err);
}

static int of_snapshot(struct api_cmd *a, json_t **ret, struct err *err)
{
	auto_json json_t *body = json_object();

	if (api_cmd_put(body, "name", a->argv[0]) < 0 ||
	    api_cmd_put(body, "snapshot", a->snapshot) < 0 ||
	    api_cmd_put(body, "tenant", a->tenant) < 0)
		return err_set(err, ERR_INVALID, "a name is no text (UTF-8)");
	if (templates_spec(a, NULL, body, err) < 0)
		return -1;
	return client_call(a->client, "POST", "/v1/templates", body, ret, err);
}

static int check(struct api_cmd *a, struct err *err)
{
	if (a->argc != (a->snapshot ? 1 : 2))
		return api_cmd_wrong(a, err, "give a NAME and a SOURCE, or --snapshot SNAPSHOT");
	if (a->snapshot)
		return a->oci ? api_cmd_wrong(a, err, "--oci: a snapshot is no image") : 0;
	if (a->tenant)
		return api_cmd_wrong(a, err, "--tenant: only with --snapshot");
	if (strcmp(a->argv[1], "-") == 0 && isatty(STDIN_FILENO))
		return api_cmd_wrong(a, err,
				     "this reads an archive, not a terminal: add < FILE.tar");
	return limit_opt_check(&a->spec, err);
}

static int run(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if ((a->snapshot ? of_snapshot : of_archive)(a, &answer, err) < 0)
		return err->code == ERR_CONFLICT && strstr(err->msg, "there already")
			       ? err_set(err, ERR_CONFLICT,
					 "template \"%.63s\" is there already (lodge templates rm "
					 "%.63s)",
					 a->argv[0], a->argv[0])
			       : -1;
	return api_cmd_write(a, answer, say, err);
}

static const struct cli_option options[] = {
	{ "snapshot", 0, "SNAPSHOT", ask_snapshot, "make it of this snapshot, by its id" },
	{ "tenant", 0, "TENANT", ask_tenant, "whose snapshot it is (default: that of the key)" },
	{ "oci", 0, NULL, ask_oci, "SOURCE is a tar of an OCI image layout" },
	TEMPLATES_SPEC,
	{ "quiet", 'q', NULL, ask_quiet, "no progress on a terminal" },
	ASK_OPTIONS,
	{ NULL },
};

const struct api_cmd_command templates_add = {
	.opt = { .name = "lodge templates add",
		 .usage = "NAME SOURCE [OPTION...]\n       lodge templates add NAME --snapshot "
			  "SNAPSHOT [OPTION...]",
		 .summary = "Makes a template of the service: of a directory here, of a root file "
			    "system as a tar\n(also .gz .xz .zst .bz2; - is standard input), of an "
			    "OCI image layout or of a snapshot.",
		 .opts = options,
		 .more = "lodge template add is for lodge run on this machine.\n" },
	.least = 1,
	.most = 2,
	.check = check,
	.run = run,
};
