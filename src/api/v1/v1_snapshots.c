/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/snapshots, and fork and rollback of sessions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/pipe_stream.h"
#include "api/core/internal.h"
#include "api/v1/v1_sessions.h"
#include "snapshot/snapshot.h"
#include "snapshot/fork.h"
#include "snapshot/snapshot_archive.h"
#include "layers/snapshot_record.h"

enum { FORKS_MAX = 100 };

static int put_snapshot(struct api_call *c, struct json_out *j, const char *key,
			const struct store_snapshot *s, struct err *err)
{
	struct session_ref ref = { .id = s->session };
	auto_fini(store_session_fini) struct store_session of = { 0 };
	bool there = *s->session && session_get(c->engine, &c->caller, &ref, &of, err) == 0;

	if (*s->session && !there && err->code != ERR_NOT_FOUND)
		return -1;
	api_put_snapshot(j, key, s, there ? &of : NULL);
	return 0;
}

static int reply_snapshot(struct api_call *c, unsigned status, const struct store_snapshot *s,
			  struct err *err)
{
	auto_fini(json_out_fini) struct json_out j;

	api_object(&j);
	return put_snapshot(c, &j, "snapshot", s, err) < 0 ? -1 : api_reply(c, status, &j, err);
}

static int reply_list(struct api_call *c, const struct store_snapshot_list *l, struct err *err)
{
	auto_fini(json_out_fini) struct json_out j;

	api_list(&j, "snapshots");
	for (size_t i = 0; i < l->count; i++)
		if (put_snapshot(c, &j, NULL, &l->items[i], err) < 0)
			return -1;
	api_list_end(&j, l->next);
	return api_reply(c, 200, &j, err);
}

/* ---- snapshots of a session ------------------------------------------------------------------ */

int v1_create_snapshot(struct api_call *c, struct err *err)
{
	struct snapshot_opts w = { 0 };
	struct store_snapshot s;
	struct session_ref ref;
	bool live = true;
	json_t *b;

	if (api_ref(c, c->params[0], &ref, err) < 0 || api_body(c, "name live", &b, err) < 0 ||
	    api_str(b, "name", &w.name, err) < 0 || api_bool(b, "live", &live, err) < 0)
		return -1;
	w.stop = !live;
	if (session_snapshot(c->engine, &c->caller, &ref, &w, &s, err) < 0)
		return -1;
	return reply_snapshot(c, 201, &s, err);
}

int v1_list_session_snapshots(struct api_call *c, struct err *err)
{
	auto_fini(store_snapshot_list_fini) struct store_snapshot_list l = { 0 };
	struct store_page page;
	struct session_ref ref;

	if (api_ref(c, c->params[0], &ref, err) < 0 || api_page(c, &page, err) < 0 ||
	    snapshot_list(c->engine, &c->caller, &ref, page, &l, err) < 0)
		return -1;
	return reply_list(c, &l, err);
}

/* Only finds snapshots of this session. */
int v1_delete_session_snapshot(struct api_call *c, struct err *err)
{
	auto_fini(store_session_fini) struct store_session rec = { 0 };
	struct store_snapshot s;

	if (api_session(c, &rec, err) < 0 ||
	    snapshot_get(c->engine, &c->caller, c->params[1], &s, err) < 0)
		return -1;
	if (strcmp(s.session, rec.id) != 0)
		return err_set(err, ERR_NOT_FOUND, "no snapshot %.64s", c->params[1]);
	if (snapshot_remove(c->engine, &c->caller, s.id, err) < 0)
		return -1;
	http_reply(c->rq, 204, NULL, NULL, 0);
	return 0;
}

static int reply_forks(struct api_call *c, struct store_session *made, unsigned count,
		       struct err *err)
{
	struct json_out j;

	api_list(&j, "sessions");
	for (unsigned i = 0; i < count; i++) {
		api_put_session(c, &j, NULL, &made[i]);
		store_session_fini(&made[i]);
	}
	return api_reply(c, 201, &j, err);
}

int v1_fork_session(struct api_call *c, struct err *err)
{
	auto_free struct store_session *made = NULL;
	struct store_binding key = { .kind = "key" };
	const char *snapshot = NULL;
	struct session_ref ref;
	int64_t count = 1;
	json_t *b;

	if (api_ref(c, c->params[0], &ref, err) < 0 ||
	    api_body(c, "count key snapshot", &b, err) < 0 ||
	    api_int(b, "count", 1, FORKS_MAX, &count, err) < 0 ||
	    api_str(b, "snapshot", &snapshot, err) < 0)
		return -1;
	if (count != 1 && json_is_string(json_object_get(b, "key")))
		return err_set(err, ERR_INVALID,
			       "key: only allowed with count 1"); /* it is unique */
	if (api_copy(b, "key", key.key, sizeof(key.key), err) < 0)
		return -1;
	if (*c->session)
		return err_set(err, ERR_DENIED, "this token is for one session only");
	made = calloc((size_t)count, sizeof(*made));
	if (!made)
		return err_sys(err, ENOMEM, "fork");
	if (session_fork(c->engine, &c->caller, &ref, snapshot, (unsigned)count,
			 *key.key ? &key : NULL, made, err) < 0)
		return -1;
	return reply_forks(c, made, (unsigned)count, err);
}

int v1_roll_back_session(struct api_call *c, struct err *err)
{
	struct store_session s = { 0 };
	const char *snapshot = NULL;
	struct session_ref ref;
	int64_t version = 0;
	json_t *b;

	if (api_ref(c, c->params[0], &ref, err) < 0 ||
	    api_body(c, "snapshot if_version", &b, err) < 0 ||
	    api_str(b, "snapshot", &snapshot, err) < 0 ||
	    api_int(b, "if_version", 1, INT64_MAX, &version, err) < 0)
		return -1;
	if (!snapshot || !*snapshot)
		return err_set(err, ERR_INVALID, "snapshot: missing");
	if (session_rollback(c->engine, &c->caller, &ref, snapshot, version, &s, err) < 0)
		return -1;
	return v1_reply_session(c, 200, &s, err);
}

/* ---- all snapshots --------------------------------------------------------------------------- */

static int check_filter(void *arg, const char *name, const char *value)
{
	return *value ? 0 : err_set(arg, ERR_INVALID, "%s: empty", name);
}

/* Filters for user and session tokens, as in v1_snapshot(). */
static int parse_filter(struct api_call *c, struct store_snapshot_filter *ret, struct err *err)
{
	const char *session = http_query(c->rq, "session");

	if (http_query_each(c->rq, check_filter, err) != 0)
		return -1;
	ret->user = http_query(c->rq, "user");
	if (*c->user && ret->user && strcmp(ret->user, c->user) != 0)
		return err_set(err, ERR_DENIED, "user: this token is for another user");
	if (*c->user)
		ret->user = c->user;
	if (!session && *c->session)
		session = c->session;
	return session ? v1_session_id(c, session, &ret->session, err) : 0;
}

int v1_list_snapshots(struct api_call *c, struct err *err)
{
	struct store_snapshot_filter f = { .tenant = c->caller.tenant };
	auto_fini(store_snapshot_list_fini) struct store_snapshot_list l = { 0 };
	struct store_page page;

	if (api_page(c, &page, err) < 0 || parse_filter(c, &f, err) < 0 ||
	    snapshot_search(c->engine, &f, page, &l, err) < 0)
		return -1;
	return reply_list(c, &l, err);
}

int v1_get_snapshot(struct api_call *c, struct err *err)
{
	struct store_snapshot s;

	return v1_snapshot(c, c->params[0], &s, err) < 0 ? -1 : reply_snapshot(c, 200, &s, err);
}

int v1_delete_snapshot(struct api_call *c, struct err *err)
{
	struct store_snapshot s;

	if (v1_snapshot(c, c->params[0], &s, err) < 0 ||
	    snapshot_remove(c->engine, &c->caller, s.id, err) < 0)
		return -1;
	http_reply(c->rq, 204, NULL, NULL, 0);
	return 0;
}

/* ---- archives -------------------------------------------------------------------------------- */

struct archive_transfer {
	struct api_call *call;
	const char *template, *name;
	struct store_snapshot snap;
};

static int export_archive(void *arg, int fd, struct err *err)
{
	struct archive_transfer *x = arg;

	return snapshot_export(x->call->engine, &x->call->caller, x->snap.id, fd, err);
}

static int import_archive(void *arg, int fd, struct err *err)
{
	struct archive_transfer *x = arg;

	return snapshot_import(x->call->engine, &x->call->caller, x->template, x->name, fd,
			       &x->snap, err);
}

int v1_export_snapshot(struct api_call *c, struct err *err)
{
	struct archive_transfer x = { .call = c };
	char name[STORE_ID + 64];

	if (v1_snapshot(c, c->params[0], &x.snap, err) < 0)
		return -1;
	snprintf(name, sizeof(name), "attachment; filename=\"%s.tar.zst\"", x.snap.id);
	http_set_header(c->rq, "Content-Disposition", name);
	return pipe_stream_out(c, "application/zstd", export_archive, &x, err);
}

int v1_import_snapshot(struct api_call *c, struct err *err)
{
	struct archive_transfer x = { .call = c,
				      .template = http_query(c->rq, "template"),
				      .name = http_query(c->rq, "name") };
	struct err ignored;

	if (pipe_stream_in(c, import_archive, &x, err) < 0) {
		if (*x.snap.id) /* of a body that continues after the end of the archive */
			(void)snapshot_remove(c->engine, &c->caller, x.snap.id, &ignored);
		return -1;
	}
	return reply_snapshot(c, 201, &x.snap, err);
}
