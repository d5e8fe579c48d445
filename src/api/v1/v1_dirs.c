/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sessions/{id}/...: lists, archives and changes of directories. */
#include "api/v1/v1_dirs.h"

#include <stdio.h>
#include <stdlib.h>
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
	bool more, whole_path; /* what the pattern is compared with */
};

/* Joins `path` to `dir`; "": dir itself. Owned by the caller; NULL: out of memory. */
static char *join(const char *dir, const char *path)
{
	int n = (int)strlen(dir);
	char *text;

	while (n > 1 && dir[n - 1] == '/')
		n--;
	if (asprintf(&text, "%.*s%s%s", n, dir, n && *path && dir[n - 1] != '/' ? "/" : "", path) <
	    0)
		return NULL;
	return text;
}

static int add_entry(void *arg, const char *path, const struct agent_stat *st, const char *target)
{
	struct listing *l = arg;
	const char *name = l->whole_path ? path : v1_base_name(path);
	auto_free char *whole = NULL;

	if (++l->seen % GONE_EVERY == 0 && http_is_gone(l->rq))
		return 1;
	if (l->glob && !glob_match(l->glob, name))
		return 0;
	if (l->count++ < l->skip)
		return 0;
	if (l->told == l->max || l->j.len > PAGE_BYTES) {
		l->more = true;
		return 1;
	}
	l->told++;
	whole = join(l->given, path);
	if (whole)
		v1_put_entry(&l->j, NULL, whole, st, target);
	l->j.failed |= !whole;
	return l->j.failed;
}

/* A pattern that names directories is compared with paths, and goes as deep as they are. */
static int parse_glob(struct listing *l, int64_t *ret_depth, struct err *err)
{
	const char *glob = l->glob ? l->glob : "";
	bool deep = strstr(glob, "**") != NULL;
	int64_t depth = 1;

	if (strlen(glob) > GLOB_MAX)
		return err_set(err, ERR_INVALID, "glob: more than %d bytes", GLOB_MAX);
	if (*glob == '/')
		return err_set(err, ERR_INVALID,
			       "glob: must not begin with a slash; it is compared with paths below "
			       "the listed directory");
	for (const char *p = glob; *p; p++)
		depth += *p == '/';
	l->whole_path = deep || depth > 1;
	*ret_depth = deep || depth > DEPTH_MAX ? DEPTH_MAX : depth;
	return 0;
}

/* The cursor is a number of entries: each page lists and sorts the directory again. */
int v1_list(struct api_call *c, const struct v1_open_path *a, struct err *err)
{
	struct listing l = { .given = a->given,
			     .glob = http_query(c->rq, "glob"),
			     .rq = c->rq,
			     .max = LIST_DEFAULT };
	int64_t depth;

	if (parse_glob(&l, &depth, err) < 0 ||
	    api_query_int(c, "depth", 1, DEPTH_MAX, &depth, err) < 0 ||
	    api_query_int(c, "limit", 1, LIST_MAX, &l.max, err) < 0 ||
	    api_query_int(c, "after", 0, INT64_MAX / 2, &l.skip, err) < 0)
		return -1;
	api_list(&l.j, "entries");
	if (files_list(a->sb, a->user, a->path, (uint32_t)depth, add_entry, &l, err) < 0) {
		json_out_fini(&l.j);
		return -1;
	}
	api_list_end(&l.j, l.more ? l.skip + l.told : 0);
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

	return engine_zstd_pipe(t->engine, &(struct zstd_pipe_opts){ .back = t->in }, fd,
				t->in ? tar_in : tar_out, arg, err);
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
	auto_free char *path = join(given, ch->path);
	struct json_out j;

	if (!path)
		return -1;
	api_object(&j);
	json_out_str(&j, "kind", names[ch->kind]);
	api_put_path(&j, path);
	json_out_bool(&j, "is_dir", ch->is_dir);
	return sse_send(c, 0, "change", &j);
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

struct watch {
	struct api_call *c;
	const char *given;
	struct files_watch *files;
	unsigned silent_ms;
};

static void watch_free(void *arg)
{
	struct watch *w = arg;

	files_watch_free(w->files);
	free(w);
}

static int step_watch(void *arg)
{
	struct watch *w = arg;
	struct files_change ch;
	struct err err;
	int n = 1;

	while (n > 0 && !http_stream_is_full(w->c->rq)) {
		n = files_watch_next(w->files, 0, &ch, &err);
		if (n > 0)
			w->silent_ms = 0;
		if (n > 0 && !files_is_unfinished(ch.path) && send_change(w->c, w->given, &ch) < 0)
			return -1;
	}
	if (n < 0)
		send_end(w->c, &err);
	return n >= 0 && sse_is_open(w->c, &w->silent_ms) ? SSE_LOOK_MS : -1;
}

/* The first event is "ready": no later change is missed. The session counts as busy while it is
 * watched. */
int v1_watch_files(struct api_call *c, struct err *err)
{
	static const struct files_change ready = { .kind = AGENT_CHANGE_READY,
						   .is_dir = true,
						   .path = "" };
	struct v1_open_path a;
	struct watch *w;

	if (api_take(c, TENANT_STREAMS, 1, err) < 0 || v1_open_path(c, get_path(c), &a, err) < 0)
		return -1;
	w = arena_keep(c->arena, calloc(1, sizeof(*w)), watch_free);
	if (!w)
		return err_sys(err, ENOMEM, "watch");
	if (files_watch_new(a.sb, a.user, a.path, api_query_flag(c, "recursive"), &w->files, err) <
	    0)
		return -1;
	w->c = c;
	w->given = a.given;
	if (sse_begin(c) < 0 || send_change(c, a.given, &ready) < 0)
		return 0;
	http_stream_source(c->rq, files_watch_fd(w->files));
	api_call_detach(c, step_watch, w);
	return 0;
}
