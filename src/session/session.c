/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in memory. One call at a time holds a session's lock; all others see the record that
 * it published. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/test_hook.h"
#include "engine/internal.h"
#include "session/query.h"
#include "session/reconcile.h"
#include "session/session.h"
#include "machine/machine.h"

enum {
	LOCK_WAIT_MS = 120000, /* only a copy of many files takes longer */
	LAG_MAX_MS = 10000, /* how far the store may lag behind in the timers */
	LAG_PART = 16, /* and which part of the idle time */
};

static size_t bucket_of(const char *id)
{
	uint32_t h = 2166136261u;

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 16777619u;
	return h % SESSION_BUCKETS;
}

/* ---- the table; all with engine.mutex ---------------------------------------------------------
 */

static struct session *find_session(struct engine *e, const char *id)
{
	struct session *n = e->sessions[bucket_of(id)];

	while (n && strcmp(n->id, id) != 0)
		n = n->next;
	return n;
}

static struct session *add_session(struct engine *e, const char *id)
{
	struct session **head = &e->sessions[bucket_of(id)];
	struct session *n = calloc(1, sizeof(*n));
	pthread_condattr_t attr;

	if (!n)
		return NULL;
	n->engine = e;
	snprintf(n->id, sizeof(n->id), "%s", id);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&n->unlocked, &attr);
	pthread_condattr_destroy(&attr);
	n->next = *head;
	*head = n;
	return n;
}

static void free_session(struct session *n)
{
	struct session **p = &n->engine->sessions[bucket_of(n->id)];

	while (*p != n)
		p = &(*p)->next;
	*p = n->next;
	store_session_fini(&n->rec);
	pthread_cond_destroy(&n->unlocked);
	free(n);
}

/* Without a machine or unwritten changes it is only a copy of the store's record. */
static void unref_session(struct session *n)
{
	if (--n->refs == 0 && !n->machine && !n->dirty && !n->has_capacity && !n->probe_failures)
		free_session(n);
}

void session_each(struct engine *e, session_each_fn *fn, void *arg)
{
	pthread_mutex_lock(&e->mutex);
	for (size_t i = 0; i < SESSION_BUCKETS; i++)
		for (struct session *n = e->sessions[i]; n; n = n->next)
			fn(n, arg);
	pthread_mutex_unlock(&e->mutex);
}

void sessions_free(struct engine *e)
{
	for (size_t i = 0; i < SESSION_BUCKETS; i++)
		while (e->sessions[i])
			free_session(e->sessions[i]);
}

/* ---- lock ------------------------------------------------------------------------------------ */

static int wait_unlocked(struct engine *e, struct session *n, struct err *err)
{
	struct timespec until = clock_deadline(CLOCK_MONOTONIC, LOCK_WAIT_MS);

	while (n->locked)
		if (pthread_cond_timedwait(&n->unlocked, &e->mutex, &until) == ETIMEDOUT &&
		    n->locked)
			return err_set(err, ERR_UNAVAILABLE, "session %s is busy (%s)", n->id,
				       state_machine_name(&session_states, n->rec.state));
	n->locked = true;
	return 0;
}

static int load_record(struct session *n, struct err *err)
{
	return n->loaded && !n->stale ? 0 : session_reload(n, err);
}

static int lock_by_id(struct engine *e, const char *id, struct session **ret, struct err *err)
{
	struct session *n;
	int r;

	pthread_mutex_lock(&e->mutex);
	n = find_session(e, id);
	if (!n)
		n = add_session(e, id);
	if (!n) {
		pthread_mutex_unlock(&e->mutex);
		return err_sys(err, ENOMEM, "session");
	}
	n->refs++;
	r = wait_unlocked(e, n, err);
	if (r < 0)
		unref_session(n);
	pthread_mutex_unlock(&e->mutex);
	if (r < 0)
		return -1;
	*ret = n;
	return 0;
}

/* Checked before waiting: another tenant must not even learn that the session is busy. */
static int check_tenant(struct engine *e, const char *tenant, const char *id, struct err *err)
{
	struct store_session s;
	struct session *n;
	bool known, same = false;
	int r = -1;

	pthread_mutex_lock(&e->mutex);
	n = find_session(e, id);
	known = n && n->loaded;
	if (known)
		same = strcmp(n->rec.tenant, tenant) == 0;
	pthread_mutex_unlock(&e->mutex);
	if (!known) {
		WITH_STORE(e, st)
		r = store_session_get(st, id, &s, err);
		if (r < 0 && err->code != ERR_NOT_FOUND)
			return -1;
		same = r == 0 && strcmp(s.tenant, tenant) == 0;
		if (r == 0)
			store_session_fini(&s);
	}
	return same ? 0 : session_ref_not_found(&(struct session_ref){ .id = id }, err);
}

int session_lock(struct engine *e, const char *tenant, const char *id, struct session **ret,
		 struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;

	if (!*id || strlen(id) >= STORE_ID)
		return session_ref_not_found(&(struct session_ref){ .id = id }, err);
	if (tenant && check_tenant(e, tenant, id, err) < 0)
		return -1;
	if (lock_by_id(e, id, &n, err) < 0)
		return -1;
	if (load_record(n, err) < 0)
		return err->code == ERR_NOT_FOUND
			       ? session_ref_not_found(&(struct session_ref){ .id = id }, err)
			       : -1;
	if (tenant && strcmp(n->rec.tenant, tenant) != 0)
		return session_ref_not_found(&(struct session_ref){ .id = id }, err);
	*ret = steal_ptr(&n);
	return 0;
}

int session_trylock(struct engine *e, const char *id, struct session **ret)
{
	struct session *n;
	struct err ignored;

	pthread_mutex_lock(&e->mutex);
	n = find_session(e, id);
	if (n && n->locked) {
		pthread_mutex_unlock(&e->mutex);
		return 0;
	}
	if (!n)
		n = add_session(e, id);
	if (n) {
		n->refs++;
		n->locked = true;
	}
	pthread_mutex_unlock(&e->mutex);
	if (!n)
		return 0;
	if (load_record(n, &ignored) < 0) {
		session_unlock(n);
		return 0;
	}
	*ret = n;
	return 1;
}

void session_unlock(struct session *n)
{
	struct engine *e;

	if (!n)
		return;
	e = n->engine;
	pthread_mutex_lock(&e->mutex);
	n->locked = false;
	pthread_cond_signal(&n->unlocked);
	unref_session(n);
	pthread_mutex_unlock(&e->mutex);
}

/* ---- lock by reference ----------------------------------------------------------------------- */

static int resolve_ref(struct engine *e, const struct caller *caller, const struct session_ref *ref,
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
	if (session_ref_binding(ref, &by, err) < 0)
		return -1;
	WITH_STORE(e, st)
	r = store_session_find(st, caller->tenant, &by, &s, err);
	if (r < 0)
		return err->code == ERR_NOT_FOUND ? session_ref_not_found(ref, err) : -1;
	snprintf(ret, STORE_ID, "%s", s.id);
	store_session_fini(&s);
	return 0;
}

int session_lock_ref(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		     struct session **ret, struct err *err)
{
	char id[STORE_ID];
	struct session *n = NULL;

	if (resolve_ref(e, caller, ref, id, err) < 0 ||
	    session_lock(e, caller->tenant, id, &n, err) < 0)
		return err->code == ERR_NOT_FOUND ? session_ref_gone(e, caller, ref, err) : -1;
	if (n->rec.state == SESSION_DESTROYING) {
		session_unlock(n);
		err_set(err, ERR_NOT_FOUND, "session %s is being destroyed", id);
		return session_ref_gone(e, caller, ref, err);
	}
	*ret = n;
	return 0;
}

int session_lock_reconciled(struct engine *e, const struct caller *caller,
			    const struct session_ref *ref, int64_t if_version, struct session **ret,
			    struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;

	if (session_lock_ref(e, caller, ref, &n, err) < 0)
		return -1;
	if (if_version && n->rec.version != if_version)
		return err_set(err, ERR_CONFLICT, "session %s has version %lld, not %lld", n->id,
			       (long long)n->rec.version, (long long)if_version);
	if (reconcile_session(n, err) < 0)
		return -1;
	*ret = steal_ptr(&n);
	return 0;
}

int session_copy_record(struct engine *e, const char *id, struct store_session *ret)
{
	struct session *n;
	struct err ignored;
	int found = 0;

	pthread_mutex_lock(&e->mutex);
	n = find_session(e, id);
	if (n && n->loaded)
		found = store_session_copy(&n->rec, ret, &ignored) == 0;
	pthread_mutex_unlock(&e->mutex);
	return found;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void publish(struct session *n, struct store_session *s)
{
	struct store_session old;

	pthread_mutex_lock(&n->engine->mutex);
	old = n->rec;
	n->rec = *s;
	n->loaded = true;
	n->dirty = n->stale = false;
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

static int write_cause(struct session *n, struct store_session *s, const char *kind,
		       const struct store_cause *cause, struct err *err)
{
	struct store_event ev = event_of(kind, cause, engine_now(n->engine));
	int r = -1;

	if (n->relaxed)
		WITH_STORE_RELAXED(n->engine, st)
	r = store_session_update(st, s, &ev, NULL, err);
	else WITH_STORE(n->engine, st) r = store_session_update(st, s, &ev, NULL, err);
	if (r < 0) {
		n->stale = err->code == ERR_UNAVAILABLE;
		return -1;
	}
	publish(n, s);
	return 0;
}

int session_update(struct session *n, struct store_session *s, const char *kind, struct err *err)
{
	return write_cause(n, s, kind, &s->cause, err);
}

int session_update_as(struct session *n, struct store_session *s, const char *kind,
		      const char *actor, struct err *err)
{
	struct store_cause cause = { .code = "asked" };

	snprintf(cause.actor, sizeof(cause.actor), "%s", actor);
	return write_cause(n, s, kind, &cause, err);
}

int session_transition(struct session *n, enum session_event ev,
		       const struct session_cause_opts *why, session_edit_fn *set, void *arg,
		       struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct store_cause cause = { .code = "" };

	if (store_session_copy(&n->rec, &s, err) < 0 ||
	    session_record_move(&s, ev, why, engine_now(n->engine), err) < 0)
		return -1;
	if (set)
		set(&s, arg);
	snprintf(cause.code, sizeof(cause.code), "%s", session_cause_name(why->cause));
	snprintf(cause.text, sizeof(cause.text), "%s", why->text ? why->text : "");
	snprintf(cause.actor, sizeof(cause.actor), "%s", why->actor ? why->actor : "");
	return write_cause(n, &s, session_event_name(ev), &cause, err);
}

int session_create(struct engine *e, struct store_session *s, const struct store_event *ev,
		   bool relaxed, struct session **ret, struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;
	int r = -1;

	if (lock_by_id(e, s->id, &n, err) < 0)
		return -1;
	if (relaxed)
		WITH_STORE_RELAXED(e, st)
	r = store_session_create(st, s, ev, err);
	else WITH_STORE(e, st) r = store_session_create(st, s, ev, err);
	if (r < 0)
		return -1;
	hook_crash("enter:created");
	publish(n, s);
	n->relaxed = relaxed;
	*ret = steal_ptr(&n);
	return 0;
}

/* An exec must not cost a commit: the deadlines in memory may be later than those in the store,
 * and after a crash a deadline is a little early. The timers check here before they trust the
 * store. */
void session_touch(struct session *n)
{
	static const struct session_cause_opts none = { .cause = SESSION_CAUSE_NONE };
	struct engine *e = n->engine;
	int64_t lag = n->rec.idle_timeout_ms / LAG_PART, due = n->rec.due_at;
	struct err ignored;

	if (n->rec.state != SESSION_ACTIVE)
		return;
	pthread_mutex_lock(&e->mutex);
	(void)session_record_move(&n->rec, SESSION_USE, &none, engine_now(e), &ignored);
	if (!n->dirty)
		n->stored_due_at = due;
	n->dirty = true;
	pthread_mutex_unlock(&e->mutex);
	if (n->rec.due_at - n->stored_due_at > (lag < LAG_MAX_MS ? lag : LAG_MAX_MS))
		(void)session_flush(n, &ignored); /* the next one tries again */
}

int session_flush(struct session *n, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	int r = -1;

	if (!n->dirty)
		return 0;
	if (store_session_copy(&n->rec, &s, err) < 0)
		return -1;
	WITH_STORE(n->engine, st)
	r = store_session_update(st, &s, NULL, NULL, err);
	if (r < 0)
		return -1;
	publish(n, &s);
	return 0;
}

int session_reload(struct session *n, struct err *err)
{
	struct store_session s;
	int r = -1;

	WITH_STORE(n->engine, st)
	r = store_session_get(st, n->id, &s, err);
	if (r < 0)
		return -1;
	publish(n, &s);
	return 0;
}

void session_forget(struct session *n)
{
	pthread_mutex_lock(&n->engine->mutex);
	store_session_fini(&n->rec);
	memset(&n->rec, 0, sizeof(n->rec));
	n->loaded = n->dirty = false;
	n->probe_failures = 0;
	pthread_mutex_unlock(&n->engine->mutex);
}

void session_set_machine(struct session *n, struct machine *machine)
{
	pthread_mutex_lock(&n->engine->mutex);
	n->machine = machine;
	pthread_mutex_unlock(&n->engine->mutex);
}

struct names {
	char (*ids)[STORE_ID];
	size_t count, cap;
};

static void note_dirty(struct session *n, void *arg)
{
	struct names *l = arg;

	if (n->dirty && l->count < l->cap)
		memcpy(l->ids[l->count++], n->id, STORE_ID);
}

static void count_dirty(struct session *n, void *arg)
{
	((struct names *)arg)->cap += n->dirty;
}

void sessions_flush(struct engine *e)
{
	struct names l = { 0 };
	struct err ignored;

	session_each(e, count_dirty, &l);
	l.ids = l.cap ? calloc(l.cap, sizeof(*l.ids)) : NULL;
	if (!l.ids)
		return;
	session_each(e, note_dirty, &l);
	for (size_t i = 0; i < l.count; i++) {
		struct session *n;

		if (!session_trylock(e, l.ids[i], &n))
			continue;
		(void)session_flush(n, &ignored);
		session_unlock(n);
	}
	free(l.ids);
}

struct search {
	const char *session;
	struct machine *found;
};

static void match_machine(struct session *n, void *arg)
{
	struct search *s = arg;

	if (!s->found && n->machine && strcmp(n->id, s->session) == 0)
		s->found = machine_ref(n->machine);
}

struct machine *session_find_machine(struct engine *e, const char *session)
{
	struct search s = { .session = session };

	session_each(e, match_machine, &s);
	return s.found;
}

int session_return_record(struct session *n, struct store_session *ret, struct err *err)
{
	return ret ? store_session_copy(&n->rec, ret, err) : 0;
}

int session_require_active(const struct session *n, const char *what, struct err *err)
{
	bool over = n->rec.state == SESSION_ACTIVE;

	if (session_is_active(&n->rec, engine_now(n->engine)))
		return 0;
	return err_set(err, ERR_CONFLICT, "session %s is %s: nothing to %s", n->id,
		       over ? "about to expire" : state_machine_name(&session_states, n->rec.state),
		       what);
}
