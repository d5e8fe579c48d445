/* SPDX-License-Identifier: Apache-2.0 */
/* Events, as pages or as a stream whose event ids let a client continue. Progress has no
 * notification, so its streams poll a few times a second. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/internal.h"
#include "api/core/sse.h"
#include "api/v1/v1_sessions.h"
#include "base/clock.h"
#include "engine/event_watch.h"
#include "service/service_admin.h"
#include "engine/start_progress.h"

enum { BATCH = 200, KINDS_MAX = 500, KEY_CHECK_MS = 1000 };

/* ---- events ---------------------------------------------------------------------------------- */

static void put_event(struct json_out *j, const struct store_event *e)
{
	json_out_object(j, NULL);
	json_out_i64(j, "id", e->id);
	json_out_str(j, "kind", e->kind);
	json_out_text(j, "session", e->session);
	json_out_text(j, "key", e->key);
	json_out_text(j, "user", e->user);
	json_out_text(j, "tenant", e->tenant);
	json_out_text(j, "exec", e->exec);
	json_out_text(j, "actor", e->cause.actor);
	json_out_i64_if(j, "version", e->version, e->version);
	json_out_i64(j, "at", e->cause.at);
	api_put_cause(j, "cause", &e->cause);
	api_put_raw(j, "data", e->data, "{}");
	json_out_end(j);
}

struct events {
	struct api_call *c;
	struct store_event_filter by;
	bool given; /* the client gave a start */

	/* of a stream */
	struct event_watch watch;
	atomic_bool news; /* there may be events that it has not read */
	bool more; /* there are: the client reads slowly */
	int64_t read_ms, spoke_ms; /* clock_mono_ms() of the last look and the last event */
};

static int parse_since(struct api_call *c, struct events *e, struct err *err)
{
	const char *last = http_header(c->rq, "Last-Event-ID");
	char *end;

	e->given = last || http_query(c->rq, "since");
	if (api_query_int(c, "since", 0, INT64_MAX, &e->by.after, err) < 0)
		return -1;
	if (!last)
		return 0;
	errno = 0;
	e->by.after = strtoll(last, &end, 10);
	if (errno || *end || *last < '0' || *last > '9')
		return err_set(err, ERR_INVALID, "Last-Event-ID: not a valid event id");
	return 0;
}

/* `before` asks for the page below an event, so it implies the newest first. */
static int parse_order(struct api_call *c, struct events *e, struct err *err)
{
	const char *order = http_query(c->rq, "order"), *kinds = http_query(c->rq, "kind");

	if (api_query_int(c, "before", 1, INT64_MAX, &e->by.before, err) < 0)
		return -1;
	if (order && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0)
		return err_set(err, ERR_INVALID, "order: must be \"asc\" or \"desc\"");
	if (order && strcmp(order, "asc") == 0 && e->by.before)
		return err_set(err, ERR_INVALID, "order: before= returns the newest first");
	e->by.newest_first = e->by.before || (order && strcmp(order, "desc") == 0);
	if (kinds && (!*kinds || strlen(kinds) > KINDS_MAX))
		return err_set(err, ERR_INVALID, "kind: must have 1 to %d bytes", KINDS_MAX);
	e->by.kinds = kinds;
	return 0;
}

/* Without a session in the query a user token sees the events of its user. */
static int parse_sessions(struct api_call *c, struct events *e, struct err *err)
{
	const char *session = http_query(c->rq, "session"), *user = http_query(c->rq, "user");

	if (!session && *c->session)
		session = c->session;
	if (session && v1_session_id(c, session, &e->by.session, err) < 0)
		return -1;
	if (user && !*user)
		return err_set(err, ERR_INVALID, "user: empty");
	if (user && *c->user && strcmp(user, c->user) != 0)
		return err_set(err, ERR_DENIED, "user: this token is for another user");
	e->by.user = !user && !session && *c->user ? c->user : user;
	/* events without a session, such as those of keys, are for tenant keys */
	e->by.of_sessions = c->scope < API_TENANT;
	return 0;
}

static int parse_query(struct api_call *c, struct events *e, struct err *err)
{
	*e = (struct events){ .c = c, .by.tenant = c->caller.tenant };
	if (parse_sessions(c, e, err) < 0 || parse_order(c, e, err) < 0)
		return -1;
	if (api_query_flag(c, "all")) {
		if (c->scope != API_ADMIN)
			return err_set(err, ERR_DENIED, "all: requires a key with scope \"admin\"");
		e->by.tenant = NULL;
	}
	return parse_since(c, e, err);
}

/* Number of events sent; -1: stop. */
static int send_new_events(struct api_call *c, struct events *e)
{
	auto_fini(store_event_list_fini) struct store_event_list l = { 0 };
	struct err ignored;
	int64_t newest;

	if (engine_last_event(c->engine, &newest, &ignored) < 0 ||
	    engine_list_events(c->engine, &e->by, BATCH, &l, &ignored) < 0) {
		e->news = true;
		return ignored.code == ERR_UNAVAILABLE ? 0 : -1;
	}
	for (size_t i = 0; i < l.count; i++) {
		const struct store_event *v = &l.items[i];
		struct json_out j;

		e->by.after = v->id;
		api_out(&j);
		put_event(&j, v);
		if (sse_send(c, v->id, v->kind, &j) < 0)
			return -1;
	}
	/* so that the next poll does not read again what the filter left out */
	if (l.count < BATCH && newest > e->by.after)
		e->by.after = newest;
	return (int)l.count;
}

static void on_event(void *arg)
{
	struct events *e = arg;

	if (!atomic_exchange(&e->news, true))
		http_stream_wake(e->c->rq);
}

/* Events of others are news too, so a busy service does not make each stream read all the time. */
static bool is_due(const struct events *e)
{
	return e->more || (e->news && clock_mono_ms() - e->read_ms >= SSE_LOOK_MS);
}

/* -1: stop. */
static int send_due_events(struct events *e)
{
	int n = BATCH;

	e->news = false; /* before reading, so that nothing is missed */
	e->read_ms = clock_mono_ms();
	while (n == BATCH && !http_stream_is_full(e->c->rq)) {
		n = send_new_events(e->c, e);
		if (n > 0)
			e->spoke_ms = e->read_ms;
	}
	e->more = n == BATCH;
	return n;
}

/* The removal of the key is an event, but its checks are a second apart. */
static int step_events(void *arg)
{
	struct events *e = arg;
	int ms;

	if (is_due(e) && send_due_events(e) < 0)
		return -1;
	ms = sse_keep(e->c, &e->spoke_ms);
	if (ms > SSE_LOOK_MS && e->news)
		return SSE_LOOK_MS;
	if (ms > KEY_CHECK_MS &&
	    (clock_mono_ms() - e->read_ms < KEY_CHECK_MS || api_call_key_expires(e->c)))
		return KEY_CHECK_MS;
	return ms;
}

static void events_free(void *arg)
{
	struct events *e = arg;

	event_watch_remove(e->c->engine, &e->watch);
	free(e);
}

static int stream_events(struct api_call *c, const struct events *query, struct err *err)
{
	struct events *e;

	if (query->by.newest_first)
		return err_set(err, ERR_INVALID, "order: a stream is in the order of events");
	if (api_take(c, TENANT_STREAMS, 1, err) < 0)
		return -1;
	e = calloc(1, sizeof(*e));
	if (!e)
		return err_sys(err, ENOMEM, "stream");
	e->c = c;
	e->by = query->by;
	e->news = true;
	e->spoke_ms = clock_mono_ms();
	e = arena_keep(c->arena, e, events_free);
	if (!e)
		return err_sys(err, ENOMEM, "stream");
	if (!query->given && engine_last_event(c->engine, &e->by.after, err) < 0)
		return -1;
	if (sse_begin(c) < 0)
		return 0;
	event_watch_add(c->engine, &e->watch, on_event, e);
	api_call_detach(c, step_events, e);
	return 0;
}

int v1_list_events(struct api_call *c, struct err *err)
{
	auto_fini(store_event_list_fini) struct store_event_list l = { 0 };
	int64_t limit = 100;
	struct json_out j;
	struct events e;

	if (parse_query(c, &e, err) < 0 ||
	    api_query_int(c, "limit", 1, STORE_PAGE_MAX, &limit, err) < 0)
		return -1;
	if (sse_is_requested(c))
		return stream_events(c, &e, err);
	if (engine_list_events(c->engine, &e.by, (unsigned)limit, &l, err) < 0)
		return -1;
	api_list(&j, "events");
	for (size_t i = 0; i < l.count; i++)
		put_event(&j, &l.items[i]);
	json_out_end(&j);
	/* upwards it is always present: later events follow it */
	if (e.by.newest_first)
		json_out_i64_if(&j, "next", l.next, l.next);
	else
		json_out_i64(&j, "next", l.count ? l.items[l.count - 1].id : e.by.after);
	return api_reply(c, 200, &j, err);
}

/* ---- progress -------------------------------------------------------------------------------- */

static bool is_same(const struct progress_state *a, const struct progress_state *b)
{
	return a->updated == b->updated && a->status == b->status && a->step == b->step &&
	       strcmp(a->stage, b->stage) == 0 && strcmp(a->message, b->message) == 0;
}

struct progress {
	struct api_call *c;
	const char *session; /* NULL: of the engine */
	struct progress_state last;
	unsigned silent_ms;
};

/* Until the session is ready or has failed. For the engine, only ready ends it: a failed start is
 * retried. */
static int step_progress(void *arg)
{
	struct progress *p = arg;
	struct progress_state now;
	struct err ignored;

	if (progress_get(p->c->engine, p->session, &now, &ignored) == 0 &&
	    !is_same(&now, &p->last)) {
		p->last = now;
		p->silent_ms = 0;
		if (sse_send_progress(p->c, &now) < 0 || now.status == PROGRESS_READY ||
		    (p->session && now.status == PROGRESS_ERROR))
			return -1;
	}
	return sse_is_open(p->c, &p->silent_ms) ? SSE_LOOK_MS : -1;
}

static int stream_progress(struct api_call *c, const char *session, struct err *err)
{
	struct progress *p = arena_alloc(c->arena, sizeof(*p));
	char *copy = session ? arena_text(c->arena, session, strlen(session)) : NULL;

	if (!p || (session && !copy))
		return err_sys(err, ENOMEM, "stream");
	*p = (struct progress){ .c = c, .session = copy, .last.updated = -1 };
	if (sse_begin(c) == 0)
		api_call_detach(c, step_progress, p);
	return 0;
}

static int reply_progress(struct api_call *c, const char *session, struct err *err)
{
	struct progress_state now;
	struct json_out j;

	if (sse_is_requested(c))
		return api_take(c, TENANT_STREAMS, 1, err) < 0 ? -1
							       : stream_progress(c, session, err);
	if (progress_get(c->engine, session, &now, err) < 0)
		return -1;
	api_out(&j);
	sse_put_progress(&j, &now);
	return api_reply(c, 200, &j, err);
}

int v1_get_progress(struct api_call *c, struct err *err)
{
	return reply_progress(c, NULL, err);
}

int v1_get_session_progress(struct api_call *c, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };

	return api_session(c, &s, err) < 0 ? -1 : reply_progress(c, s.id, err);
}
