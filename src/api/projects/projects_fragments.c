/* SPDX-License-Identifier: Apache-2.0 */
/* /api/projects/{project}/fragments: saved sets of files. Files arrive in one body in memory, and
 * are sent one by one. */
#include <stdlib.h>
#include <string.h>

#include "api/core/internal.h"
#include "api/projects/projects.h"
#include "project/project.h"

enum {
	SMALL = 1 << 20, /* a response below this size needs no slot of the gate */
	/* one file as JSON: up to twice its bytes, and its path */
	FILE_JSON_MAX = 2 * FRAGMENT_BYTES_MAX + 8 * FRAGMENT_PATH_MAX,
};

/* Writes the members of a fragment. */
static void put_fragment(struct json_out *j, const struct store_fragment *f)
{
	json_out_str(j, "id", f->id);
	json_out_str(j, "projectId", f->project);
	json_out_text(j, "title", f->title);
	json_out_text(j, "snapshotId", f->snapshot);
	json_out_i64(j, "fileCount", f->files);
	json_out_i64(j, "bytes", f->bytes);
	api_put_iso(j, "createdAt", f->created_at);
}

static int parse_fragment(const json_t *b, struct fragment_opts *ret, struct err *err)
{
	if (api_str(b, "id", &ret->id, err) < 0 || api_str(b, "title", &ret->title, err) < 0 ||
	    api_str(b, "snapshotId", &ret->snapshot, err) < 0 ||
	    api_bool(b, "fromSandbox", &ret->from_sandbox, err) < 0)
		return -1;
	ret->map = api_member(b, "files");
	return 0;
}

int projects_create_fragment(struct api_call *c, struct err *err)
{
	struct fragment_opts want = { 0 };
	struct fragment_add_result added;
	struct json_out j;
	const char *user = NULL;
	json_t *b;

	if (api_body(c, NULL, &b, err) < 0 || parse_fragment(b, &want, err) < 0 ||
	    projects_user(c, b, &user, err) < 0 ||
	    fragment_add(c->engine, &c->caller, user, c->params[0], &want, &added, err) < 0)
		return -1;
	api_object(&j);
	put_fragment(&j, &added.fragment);
	json_out_u64(&j, "skipped", added.skipped);
	return api_reply(c, 201, &j, err);
}

int projects_list_fragments(struct api_call *c, struct err *err)
{
	auto_fini(store_fragment_list_fini) struct store_fragment_list l = { 0 };
	struct store_page page;
	struct json_out j;
	const char *user = NULL;

	if (projects_user(c, NULL, &user, err) < 0 || api_page(c, &page, err) < 0 ||
	    fragment_list(c->engine, &c->caller, user, c->params[0], page, &l, err) < 0)
		return -1;
	api_list(&j, "fragments");
	for (size_t i = 0; i < l.count; i++) {
		json_out_object(&j, NULL);
		put_fragment(&j, &l.items[i]);
		json_out_end(&j);
	}
	api_list_end(&j, l.next);
	return api_reply(c, 200, &j, err);
}

/* ---- one fragment with its files ------------------------------------------------------------- */

/* Sends a part of a JSON document: leaves out `skip` closing bytes, and as many at the start unless
 * it is the first part. Ends the writer. */
static int send_part(struct api_call *c, struct json_out *j, const char *before, size_t from,
		     size_t skip)
{
	size_t len;
	auto_free char *text = json_out_take(j, &len);

	if (!text || (*before && http_stream_write(c->rq, before, strlen(before)) < 0))
		return -1;
	return http_stream_write(c->rq, text + from, len - from - skip);
}

/* {"id": ..., "files": {} } without its last two braces. */
static int send_head(struct api_call *c, const struct store_fragment *f)
{
	struct json_out j;

	api_object(&j);
	put_fragment(&j, f);
	json_out_object(&j, "files");
	json_out_end(&j);
	json_out_end(&j);
	return send_part(c, &j, "", 0, 2);
}

/* {"PATH": "CONTENT"} without its braces. */
static int send_file(struct api_call *c, struct store_file *f, bool first)
{
	struct store_file_list one = { .items = f, .count = 1 };
	struct json_out j;

	json_out_init(&j, FILE_JSON_MAX);
	fragment_files_to_json(&j, NULL, &one);
	return send_part(c, &j, first ? "" : ",", 1, 1);
}

static int send_all(struct api_call *c, const struct store_fragment *f,
		    const struct store_file_list *files)
{
	if (send_head(c, f) < 0)
		return -1;
	for (size_t i = 0; i < files->count; i++)
		if (send_file(c, &files->items[i], i == 0) < 0)
			return -1;
	return http_stream_write(c->rq, "}}\n", 3);
}

static int find_fragment(struct api_call *c, const char *user, struct store_fragment *ret,
			 struct store_file_list *files, struct err *err)
{
	return fragment_get(c->engine, &c->caller, user, c->params[0], c->params[1], ret, files,
			    err);
}

int projects_get_fragment(struct api_call *c, struct err *err)
{
	auto_fini(store_file_list_fini) struct store_file_list files = { 0 };
	struct store_fragment f;
	const char *user = NULL;

	if (projects_user(c, NULL, &user, err) < 0 || find_fragment(c, user, &f, NULL, err) < 0 ||
	    (f.bytes > SMALL && body_gate_enter(c, err) < 0) ||
	    find_fragment(c, user, &f, &files, err) < 0)
		return -1;
	if (http_stream_begin(c->rq, 200, "application/json") < 0)
		return 0;
	if (strcmp(http_method(c->rq), "HEAD") != 0 && send_all(c, &f, &files) < 0)
		http_stream_abort(c->rq);
	return 0;
}

int projects_delete_fragment(struct api_call *c, struct err *err)
{
	struct store_fragment f;
	struct json_out j;
	const char *user = NULL;

	if (projects_user(c, NULL, &user, err) < 0 || find_fragment(c, user, &f, NULL, err) < 0 ||
	    fragment_remove(c->engine, &c->caller, user, c->params[0], c->params[1], err) < 0)
		return -1;
	api_object(&j);
	put_fragment(&j, &f);
	return api_reply(c, 200, &j, err);
}
