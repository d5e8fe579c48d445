/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions somebody works with, or whose sandbox lives: one operation at a time has a session's
 * turn, and the record it left is what everybody else sees. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/test_hook.h"
#include "engine/internal.h"
#include "session/query.h"
#include "session/reconcile.h"
#include "session/session.h"

enum {
	TURN_MS = 120000, /* only a copy of many files takes longer */
	LAG_MAX_MS = 10000, /* how far the store may lag behind in the timers */
	LAG_PART = 16, /* and which part of the idle time */
};

DEFINE_AUTO(struct store_session *, store_session_fini);

static size_t bucket_of(const char *id)
{
	uint32_t h = 2166136261u;

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 16777619u;
	return h % ENTRY_BUCKETS;
}

/* ---- the table; all with engine.mutex ---------------------------------------------------------
 */

static struct entry *find(struct engine *e, const char *id)
{
	struct entry *n = e->buckets[bucket_of(id)];

	while (n && strcmp(n->id, id) != 0)
		n = n->next;
	return n;
}

static struct entry *add(struct engine *e, const char *id)
{
	struct entry **head = &e->buckets[bucket_of(id)];
	struct entry *n = calloc(1, sizeof(*n));
	pthread_condattr_t attr;

	if (!n)
		return NULL;
	n->engine = e;
	snprintf(n->id, sizeof(n->id), "%s", id);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&n->turn, &attr);
	pthread_condattr_destroy(&attr);
	n->next = *head;
	*head = n;
	return n;
}

static void drop(struct entry *n)
{
	struct entry **p = &n->engine->buckets[bucket_of(n->id)];

	while (*p != n)
		p = &(*p)->next;
	*p = n->next;
	store_session_fini(&n->rec);
	pthread_cond_destroy(&n->turn);
	free(n);
}

/* One with nothing alive behind it is only a copy of what the store has. */
static void unref(struct entry *n)
{
	if (--n->refs == 0 && !n->live && !n->dirty && !n->room && !n->failures)
		drop(n);
}

void entry_each(struct engine *e, entry_each_fn *fn, void *arg)
{
	pthread_mutex_lock(&e->mutex);
	for (size_t i = 0; i < ENTRY_BUCKETS; i++)
		for (struct entry *n = e->buckets[i]; n; n = n->next)
			fn(n, arg);
	pthread_mutex_unlock(&e->mutex);
}

void entries_free(struct engine *e)
{
	for (size_t i = 0; i < ENTRY_BUCKETS; i++)
		while (e->buckets[i])
			drop(e->buckets[i]);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static int wait_turn(struct engine *e, struct entry *n, struct err *err)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += TURN_MS / 1000;
	while (n->busy)
		if (pthread_cond_timedwait(&n->turn, &e->mutex, &until) == ETIMEDOUT && n->busy)
			return err_set(err, ERR_UNAVAILABLE, "session %s is busy (%s)", n->id,
				       sm_name(&session_sm, n->rec.state));
	n->busy = true;
	return 0;
}

static int load(struct entry *n, struct err *err)
{
	return n->loaded && !n->doubtful ? 0 : entry_reload(n, err);
}

static int take(struct engine *e, const char *id, struct entry **ret, struct err *err)
{
	struct entry *n;
	int r;

	pthread_mutex_lock(&e->mutex);
	n = find(e, id);
	if (!n)
		n = add(e, id);
	if (!n) {
		pthread_mutex_unlock(&e->mutex);
		return err_sys(err, ENOMEM, "session");
	}
	n->refs++;
	r = wait_turn(e, n, err);
	if (r < 0)
		unref(n);
	pthread_mutex_unlock(&e->mutex);
	if (r < 0)
		return -1;
	*ret = n;
	return 0;
}

/* Whose it is, before anybody waits for it: another tenant must not even learn that it is busy. */
static int check_tenant(struct engine *e, const char *tenant, const char *id, struct err *err)
{
	struct store_session s;
	struct entry *n;
	bool known, same = false;
	int r = -1;

	pthread_mutex_lock(&e->mutex);
	n = find(e, id);
	known = n && n->loaded;
	if (known)
		same = strcmp(n->rec.tenant, tenant) == 0;
	pthread_mutex_unlock(&e->mutex);
	if (!known) {
		DB (e, st)
			r = st->session->get(st, id, &s, err);
		if (r < 0 && err->code != ERR_NOT_FOUND)
			return -1;
		same = r == 0 && strcmp(s.tenant, tenant) == 0;
		if (r == 0)
			store_session_fini(&s);
	}
	return same ? 0 : ref_unknown(&(struct session_ref){ .id = id }, err);
}

int entry_take(struct engine *e, const char *tenant, const char *id, struct entry **ret,
	       struct err *err)
{
	auto_call(entry_give) struct entry *n = NULL;

	if (!*id || strlen(id) >= STORE_ID)
		return ref_unknown(&(struct session_ref){ .id = id }, err);
	if (tenant && check_tenant(e, tenant, id, err) < 0)
		return -1;
	if (take(e, id, &n, err) < 0)
		return -1;
	if (load(n, err) < 0)
		return err->code == ERR_NOT_FOUND
			       ? ref_unknown(&(struct session_ref){ .id = id }, err)
			       : -1;
	if (tenant && strcmp(n->rec.tenant, tenant) != 0)
		return ref_unknown(&(struct session_ref){ .id = id }, err);
	*ret = steal_ptr(&n);
	return 0;
}

int entry_try(struct engine *e, const char *id, struct entry **ret)
{
	struct entry *n;
	struct err ignored;

	pthread_mutex_lock(&e->mutex);
	n = find(e, id);
	if (n && n->busy) {
		pthread_mutex_unlock(&e->mutex);
		return 0;
	}
	if (!n)
		n = add(e, id);
	if (n) {
		n->refs++;
		n->busy = true;
	}
	pthread_mutex_unlock(&e->mutex);
	if (!n)
		return 0;
	if (load(n, &ignored) < 0) {
		entry_give(n);
		return 0;
	}
	*ret = n;
	return 1;
}

void entry_give(struct entry *n)
{
	struct engine *e;

	if (!n)
		return;
	e = n->engine;
	pthread_mutex_lock(&e->mutex);
	n->busy = false;
	pthread_cond_signal(&n->turn);
	unref(n);
	pthread_mutex_unlock(&e->mutex);
}

/* ---- which one ------------------------------------------------------------------------------- */

static int id_of(struct engine *e, const struct caller *who, const struct session_ref *ref,
		 char ret[STORE_ID], struct err *err)
{
	struct store_binding by;
	struct store_session s;
	int r = -1;

	if (ref->id) {
		if (strlen(ref->id) >= STORE_ID)
			return err_set(err, ERR_NOT_FOUND, "no such session");
		snprintf(ret, STORE_ID, "%s", ref->id);
		return 0;
	}
	if (ref_binding(ref, &by, err) < 0)
		return -1;
	DB (e, st)
		r = st->session->find(st, who->tenant, &by, &s, err);
	if (r < 0)
		return err->code == ERR_NOT_FOUND ? ref_unknown(ref, err) : -1;
	snprintf(ret, STORE_ID, "%s", s.id);
	store_session_fini(&s);
	return 0;
}

int entry_find(struct engine *e, const struct caller *who, const struct session_ref *ref,
	       struct entry **ret, struct err *err)
{
	char id[STORE_ID];
	struct entry *n = NULL;

	if (id_of(e, who, ref, id, err) < 0 || entry_take(e, who->tenant, id, &n, err) < 0)
		return err->code == ERR_NOT_FOUND ? ref_gone(e, who, ref, err) : -1;
	if (n->rec.state == SESSION_DESTROYING) {
		entry_give(n);
		err_set(err, ERR_NOT_FOUND, "session %s is being destroyed", id);
		return ref_gone(e, who, ref, err);
	}
	*ret = n;
	return 0;
}

int entry_use(struct engine *e, const struct caller *who, const struct session_ref *ref,
	      int64_t if_version, struct entry **ret, struct err *err)
{
	auto_call(entry_give) struct entry *n = NULL;

	if (entry_find(e, who, ref, &n, err) < 0)
		return -1;
	if (if_version && n->rec.version != if_version)
		return err_set(err, ERR_CONFLICT, "session %s has version %lld, not %lld", n->id,
			       (long long)n->rec.version, (long long)if_version);
	if (settle(n, err) < 0)
		return -1;
	*ret = steal_ptr(&n);
	return 0;
}

int entry_peek(struct engine *e, const char *id, struct store_session *ret)
{
	struct entry *n;
	struct err ignored;
	int found = 0;

	pthread_mutex_lock(&e->mutex);
	n = find(e, id);
	if (n && n->loaded)
		found = store_session_copy(&n->rec, ret, &ignored) == 0;
	pthread_mutex_unlock(&e->mutex);
	return found;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void publish(struct entry *n, struct store_session *s)
{
	struct store_session old;

	pthread_mutex_lock(&n->engine->mutex);
	old = n->rec;
	n->rec = *s;
	n->loaded = true;
	n->dirty = n->doubtful = false;
	pthread_mutex_unlock(&n->engine->mutex);
	memset(s, 0, sizeof(*s));
	store_session_fini(&old);
}

static struct store_event event_of(const char *kind, const struct store_cause *cause, int64_t now)
{
	struct store_event ev = { .cause = *cause };

	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	ev.cause.at = now;
	return ev;
}

static int write_cause(struct entry *n, struct store_session *s, const char *kind,
		       const struct store_cause *cause, struct err *err)
{
	struct store_event ev = event_of(kind, cause, engine_now(n->engine));
	int r = -1;

	if (n->relaxed)
		DB_RELAXED(n->engine, st)
	r = st->session->update(st, s, &ev, NULL, err);
	else DB (n->engine, st) r = st->session->update(st, s, &ev, NULL, err);
	if (r < 0) {
		n->doubtful = err->code == ERR_UNAVAILABLE;
		return -1;
	}
	publish(n, s);
	return 0;
}

int entry_write(struct entry *n, struct store_session *s, const char *kind, struct err *err)
{
	return write_cause(n, s, kind, &s->cause, err);
}

int entry_change(struct entry *n, struct store_session *s, const char *kind, const char *actor,
		 struct err *err)
{
	struct store_cause cause = { .code = "asked" };

	snprintf(cause.actor, sizeof(cause.actor), "%s", actor);
	return write_cause(n, s, kind, &cause, err);
}

int entry_move(struct entry *n, enum session_event ev, const struct session_why *why,
	       entry_set_fn *set, void *arg, struct err *err)
{
	struct store_session s = { 0 };
	auto_call(store_session_fini) struct store_session *guard = &s;
	struct store_cause cause = { .code = "" };

	if (store_session_copy(&n->rec, &s, err) < 0 ||
	    session_move(&s, ev, why, engine_now(n->engine), err) < 0)
		return -1;
	if (set)
		set(&s, arg);
	snprintf(cause.code, sizeof(cause.code), "%s", session_cause_name(why->cause));
	snprintf(cause.text, sizeof(cause.text), "%s", why->text ? why->text : "");
	snprintf(cause.actor, sizeof(cause.actor), "%s", why->actor ? why->actor : "");
	(void)guard;
	return write_cause(n, &s, session_event_name(ev), &cause, err);
}

int entry_create(struct engine *e, struct store_session *s, const struct store_event *ev,
		 bool relaxed, struct entry **ret, struct err *err)
{
	auto_call(entry_give) struct entry *n = NULL;
	int r = -1;

	if (take(e, s->id, &n, err) < 0)
		return -1;
	if (relaxed)
		DB_RELAXED(e, st)
	r = st->session->create(st, s, ev, err);
	else DB (e, st) r = st->session->create(st, s, ev, err);
	if (r < 0)
		return -1;
	hook_crash("enter:created");
	publish(n, s);
	n->relaxed = relaxed;
	*ret = steal_ptr(&n);
	return 0;
}

/* A command must not cost a commit: the timers may run ahead of the store, which a crash then finds
 * a little early. The sweep looks here before it believes the store. */
void entry_touch(struct entry *n)
{
	static const struct session_why none = { .cause = SESSION_CAUSE_NONE };
	struct engine *e = n->engine;
	int64_t lag = n->rec.idle_timeout_ms / LAG_PART, due = n->rec.due_at;
	struct err ignored;

	if (n->rec.state != SESSION_ACTIVE)
		return;
	pthread_mutex_lock(&e->mutex);
	(void)session_move(&n->rec, SESSION_USE, &none, engine_now(e), &ignored);
	if (!n->dirty)
		n->written_due = due;
	n->dirty = true;
	pthread_mutex_unlock(&e->mutex);
	if (n->rec.due_at - n->written_due > (lag < LAG_MAX_MS ? lag : LAG_MAX_MS))
		(void)entry_flush(n, &ignored); /* the next one tries again */
}

int entry_flush(struct entry *n, struct err *err)
{
	struct store_session s = { 0 };
	auto_call(store_session_fini) struct store_session *guard = &s;
	int r = -1;

	if (!n->dirty)
		return 0;
	if (store_session_copy(&n->rec, &s, err) < 0)
		return -1;
	DB (n->engine, st)
		r = st->session->update(st, &s, NULL, NULL, err);
	if (r < 0)
		return -1;
	(void)guard;
	publish(n, &s);
	return 0;
}

int entry_reload(struct entry *n, struct err *err)
{
	struct store_session s;
	int r = -1;

	DB (n->engine, st)
		r = st->session->get(st, n->id, &s, err);
	if (r < 0)
		return -1;
	publish(n, &s);
	return 0;
}

void entry_forget(struct entry *n)
{
	pthread_mutex_lock(&n->engine->mutex);
	store_session_fini(&n->rec);
	memset(&n->rec, 0, sizeof(n->rec));
	n->loaded = n->dirty = false;
	n->failures = 0;
	pthread_mutex_unlock(&n->engine->mutex);
}

void entry_set_live(struct entry *n, struct live *live)
{
	pthread_mutex_lock(&n->engine->mutex);
	n->live = live;
	pthread_mutex_unlock(&n->engine->mutex);
}

struct names {
	char (*ids)[STORE_ID];
	size_t count, cap;
};

static void note_dirty(struct entry *n, void *arg)
{
	struct names *l = arg;

	if (n->dirty && l->count < l->cap)
		memcpy(l->ids[l->count++], n->id, STORE_ID);
}

static void count_dirty(struct entry *n, void *arg)
{
	((struct names *)arg)->cap += n->dirty;
}

void entries_flush(struct engine *e)
{
	struct names l = { 0 };
	struct err ignored;

	entry_each(e, count_dirty, &l);
	l.ids = l.cap ? calloc(l.cap, sizeof(*l.ids)) : NULL;
	if (!l.ids)
		return;
	entry_each(e, note_dirty, &l);
	for (size_t i = 0; i < l.count; i++) {
		struct entry *n;

		if (!entry_try(e, l.ids[i], &n))
			continue;
		(void)entry_flush(n, &ignored);
		entry_give(n);
	}
	free(l.ids);
}
