/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sessions/{id}/...: lists, archives and changes of directories. */
#include "api/v1/v1_dirs.h"

#include <string.h>

#include "api/core/pipe_stream.h"
#include "api/core/glob.h"
#include "api/core/sse.h"
#include "sandbox/files_stream.h"
#include "engine/zstd_pipe.h"

enum {
	LIST_DEFAULT = 1000,
	LIST_MAX = 10000, /* entries per response */
	DEPTH_MAX = 64,
	GLOB_MAX = 256,
	PAGE_BYTES = 4 << 20, /* a response with long names has fewer entries */
	GONE_EVERY = 256, /* entries between two checks for a disconnect */
};

/* ---- lists ----------------------------------------------------------------------------------- */

struct listing {
	struct json_out j;
	const char *given, *glob; /* glob NULL: all entries */
	struct http_request *rq;
	int64_t skip, max, count, told, seen;
	bool more, no_memory;
};

static int add_entry(void *arg, const char *path, const struct agent_stat *st, const char *target)
{
	struct listing *l = arg;
	const char *whole = strchr(l->glob ? l->glob : "", '/') ? path : v1_base_name(path);
	struct api_arena scratch = { 0 };
	struct api_call call = { .arena = &scratch };

	if (++l->seen % GONE_EVERY == 0 && http_is_gone(l->rq))
		return 1;
	if (l->glob && !glob_match(l->glob, whole))
		return 0;
	if (l->count++ < l->skip)
		return 0;
	if (l->told == l->max || l->j.len > PAGE_BYTES) {
		l->more = true;
		return 1;
	}
	l->told++;
	whole = v1_join(&call, l->given, path);
	if (whole)
		v1_put_entry(&l->j, NULL, whole, st, target);
	l->no_memory |= !whole;
	arena_fini(&scratch);
	return l->no_memory || l->j.failed;
}

/* The cursor is a number of entries: each page lists and sorts the directory again. */
int v1_list(struct api_call *c, const struct v1_open_path *a, struct err *err)
{
	struct listing l = { .given = a->given,
			     .glob = http_query(c->rq, "glob"),
			     .rq = c->rq,
			     .max = LIST_DEFAULT };
	int64_t depth = 1;

	if (api_query_int(c, "depth", 1, DEPTH_MAX, &depth, err) < 0 ||
	    api_query_int(c, "limit", 1, LIST_MAX, &l.max, err) < 0 ||
	    api_query_int(c, "after", 0, INT64_MAX / 2, &l.skip, err) < 0)
		return -1;
	if (l.glob && strlen(l.glob) > GLOB_MAX)
		return err_set(err, ERR_INVALID, "glob: more than %d bytes", GLOB_MAX);
	api_list(&l.j, "entries");
	if (files_list(a->sb, a->user, a->path, (uint32_t)depth, add_entry, &l, err) < 0) {
		json_out_fini(&l.j);
		return -1;
	}
	api_list_end(&l.j, l.more ? l.skip + l.told : 0);
	l.j.failed |= l.no_memory;
	return api_reply(c, 200, &l.j, err);
}

/* ---- archives -------------------------------------------------------------------------------- */

static const char *get_path(struct api_call *c)
{
	const char *path = http_query(c->rq, "path");

	return path ? path : "";
}

static const char zstd[] = "application/zstd";

/* "tar", "tar.zst", or the default from the header. */
static int parse_format(struct api_call *c, const char *header, bool *ret_packed, struct err *err)
{
	const char *type = http_header(c->rq, header);

	*ret_packed = type && strcasestr(type, zstd);
	return api_word("format", http_query(c->rq, "format"), "tar", "tar.zst", ret_packed, err);
}

struct tree {
	struct engine *engine;
	bool in, packed;
	struct v1_open_path at;
};

static int tar_out(void *arg, int fd, struct err *err)
{
	const struct tree *t = arg;

	return files_tar_out(t->at.sb, t->at.user, t->at.path, fd, err);
}

static int tar_in(void *arg, int fd, struct err *err)
{
	const struct tree *t = arg;

	return files_tar_in(t->at.sb, t->at.user, t->at.path, fd, 0, err);
}

static int packed(void *arg, int fd, struct err *err)
{
	const struct tree *t = arg;

	return engine_zstd_pipe(t->engine, t->in, fd, t->in ? tar_in : tar_out, arg, err);
}

int v1_read_archive(struct api_call *c, struct err *err)
{
	struct tree t = { .engine = c->engine };

	if (parse_format(c, "Accept", &t.packed, err) < 0 ||
	    v1_open_path(c, get_path(c), &t.at, err) < 0)
		return -1;
	http_set_header(c->rq, "X-Content-Type-Options", "nosniff");
	return pipe_stream_out(c, t.packed ? zstd : "application/x-tar",
			       t.packed ? packed : tar_out, &t, err);
}

/* Creates the directory if missing. Not atomic: entries unpacked before a failure stay. */
int v1_write_archive(struct api_call *c, struct err *err)
{
	struct tree t = { .engine = c->engine, .in = true };

	if (parse_format(c, "Content-Type", &t.packed, err) < 0 ||
	    v1_open_path(c, get_path(c), &t.at, err) < 0 ||
	    pipe_stream_in(c, t.packed ? packed : tar_in, &t, err) < 0)
		return -1;
	http_reply(c->rq, 204, NULL, NULL, 0);
	return 0;
}

/* ---- changes --------------------------------------------------------------------------------- */

static int send_change(struct api_call *c, const char *given, const struct files_change *ch)
{
	static const char *const names[] = {
		[AGENT_CHANGE_READY] = "ready",	  [AGENT_CHANGE_CREATE] = "create",
		[AGENT_CHANGE_WRITE] = "write",	  [AGENT_CHANGE_REMOVE] = "remove",
		[AGENT_CHANGE_RENAME] = "rename", [AGENT_CHANGE_CHMOD] = "chmod",
		[AGENT_CHANGE_LOST] = "lost",
	};
	struct api_arena scratch = { 0 };
	struct api_call call = { .arena = &scratch };
	const char *path = v1_join(&call, given, ch->path);
	struct json_out j;
	int r = -1;

	if (path) {
		api_object(&j);
		json_out_str(&j, "kind", names[ch->kind]);
		api_put_path(&j, path);
		json_out_bool(&j, "is_dir", ch->is_dir);
		r = sse_send(c, 0, "change", &j);
	}
	arena_fini(&scratch);
	return r;
}

/* The sandbox or the directory is gone. */
static void send_end(struct api_call *c, const struct err *err)
{
	struct json_out j;

	api_object(&j);
	json_out_str(&j, "code", api_error_code(err));
	json_out_str(&j, "message", api_status(err) == 500 ? "the watch has ended" : err->msg);
	(void)sse_send(c, 0, "end", &j);
}

static void stream_changes(struct api_call *c, const char *given, struct files_watch *w)
{
	struct files_change ch = { .kind = AGENT_CHANGE_READY, .is_dir = true, .path = "" };
	unsigned silent_ms = 0;
	struct err err;
	int n = 1;

	for (;;) {
		if (n > 0)
			silent_ms = 0;
		if (n > 0 && !files_is_unfinished(ch.path) && send_change(c, given, &ch) < 0)
			return;
		n = files_watch_next(w, SSE_LOOK_MS, &ch, &err);
		if (n < 0 || !sse_is_open(c, &silent_ms))
			break;
	}
	if (n < 0)
		send_end(c, &err);
}

/* The first event is "ready": no later change is missed. The session counts as busy while it is
 * watched. */
int v1_watch_files(struct api_call *c, struct err *err)
{
	auto_call(files_watch_free) struct files_watch *w = NULL;
	struct v1_open_path a;

	if (v1_open_path(c, get_path(c), &a, err) < 0 ||
	    files_watch_new(a.sb, a.user, a.path, api_query_flag(c, "recursive"), &w, err) < 0)
		return -1;
	if (sse_begin(c) == 0)
		stream_changes(c, a.given, w);
	return 0;
}
