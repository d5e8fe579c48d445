/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in memory. One call at a time holds a session's lock; all others see the record that
 * it published. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/test_hook.h"
#include "base/vec.h"
#include "admit/quota.h"
#include "session/capacity.h"
#include "session/reconcile.h"
#include "session/session.h"
#include "session/usage.h"
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

	if (!n)
		return NULL;
	n->engine = e;
	snprintf(n->id, sizeof(n->id), "%s", id);
	cond_init(&n->unlocked);
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
	if (--n->refs == 0 && !n->machine && !n->dirty && !n->has_capacity && !n->probe_failures &&
	    !death_is_pending(n))
		free_session(n);
}

void session_each(struct engine *e, session_each_fn *fn, void *arg)
{
	MUTEX_GUARD(&e->mutex);
	for (size_t i = 0; i < SESSION_BUCKETS; i++)
		for (struct session *n = e->sessions[i]; n; n = n->next)
			fn(n, arg);
}

void sessions_free(struct engine *e)
{
	for (size_t i = 0; i < SESSION_BUCKETS; i++)
		while (e->sessions[i])
			free_session(e->sessions[i]);
}

/* ---- lock ------------------------------------------------------------------------------------ */

static int load_record(struct session *n, struct err *err)
{
	return n->loaded && !n->stale ? 0 : session_reload(n, err);
}

/* wait_ms 0: only if it is not locked. */
static int lock_by_id(struct engine *e, const char *id, int64_t wait_ms, struct session **ret,
		      struct err *err)
{
	int64_t until = clock_mono_ms() + wait_ms;
	struct session *n;

	MUTEX_GUARD(&e->mutex);
	n = find_session(e, id);
	if (!n)
		n = add_session(e, id);
	if (!n)
		return err_sys(err, ENOMEM, "session");
	n->refs++;
	while (n->locked && wait_ms && cond_wait_until(&n->unlocked, &e->mutex, until))
		;
	if (n->locked) {
		err_set(err, ERR_UNAVAILABLE, "session %s is busy (%s)", id,
			state_machine_name(&session_states, n->rec.state));
		unref_session(n);
		return -1;
	}
	n->locked = true;
	*ret = n;
	return 0;
}

static int not_found(const char *id, struct err *err)
{
	return session_ref_not_found(&(struct session_ref){ .id = id }, err);
}

/* Whether the record is in memory; if so, *ret_same: it belongs to the tenant. */
static bool compare_tenant(struct engine *e, const char *tenant, const char *id, bool *ret_same)
{
	const struct session *n;

	MUTEX_GUARD(&e->mutex);
	n = find_session(e, id);
	if (!n || !n->loaded)
		return false;
	*ret_same = strcmp(n->rec.tenant, tenant) == 0;
	return true;
}

/* Checked before waiting: another tenant must not even learn that the session is busy. */
static int check_tenant(struct engine *e, const char *tenant, const char *id, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	bool same = false;

	if (!compare_tenant(e, tenant, id, &same)) {
		if (STORE_CALL(e, store_session_get, id, &s, err) < 0 && err->code != ERR_NOT_FOUND)
			return -1;
		same = strcmp(s.tenant, tenant) == 0;
	}
	return same ? 0 : not_found(id, err);
}

int session_lock(struct engine *e, const char *tenant, const char *id, struct session **ret,
		 struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;

	if (!*id || strlen(id) >= STORE_ID)
		return not_found(id, err);
	if ((tenant && check_tenant(e, tenant, id, err) < 0) ||
	    lock_by_id(e, id, LOCK_WAIT_MS, &n, err) < 0 || !n)
		return -1;
	if (load_record(n, err) < 0)
		return err->code == ERR_NOT_FOUND ? not_found(id, err) : -1;
	if (tenant && strcmp(n->rec.tenant, tenant) != 0)
		return not_found(id, err);
	*ret = steal_ptr(&n);
	return 0;
}

int session_trylock(struct engine *e, const char *id, struct session **ret)
{
	auto_call(session_unlock) struct session *n = NULL;
	struct err ignored;

	if (lock_by_id(e, id, 0, &n, &ignored) < 0 || load_record(n, &ignored) < 0)
		return 0;
	*ret = steal_ptr(&n);
	return 1;
}

void session_unlock(struct session *n)
{
	if (!n)
		return;
	MUTEX_GUARD(&n->engine->mutex);
	n->locked = false;
	pthread_cond_signal(&n->unlocked);
	unref_session(n);
}

/* ---- lock by reference ----------------------------------------------------------------------- */

static int resolve_ref(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		       char ret[STORE_ID], struct err *err)
{
	struct store_binding by;
	struct store_session s;
	int r;

	if (ref->id && strlen(ref->id) >= STORE_ID)
		return err_set(err, ERR_NOT_FOUND, "no such session");
	if (ref->id && !session_ref_is_sandbox(ref)) {
		snprintf(ret, STORE_ID, "%s", ref->id);
		return 0;
	}
	if (!ref->id && session_ref_binding(ref, &by, err) < 0)
		return -1;
	r = ref->id ? STORE_CALL(e, store_session_find_sandbox, ref->id, &s, err)
		    : STORE_CALL(e, store_session_find, caller->tenant, &by, &s, err);
	if (r < 0)
		return err->code == ERR_NOT_FOUND ? session_ref_not_found(ref, err) : -1;
	snprintf(ret, STORE_ID, "%s", s.id);
	r = strcmp(s.tenant, caller->tenant); /* another tenant's is as unknown as none */
	store_session_fini(&s);
	return r ? session_ref_not_found(ref, err) : 0;
}

/* A call for a sandbox must not reach the one that replaced it. */
static int check_sandbox(const struct session *n, const struct caller *caller,
			 const struct session_ref *ref, struct err *err)
{
	if (!session_ref_is_sandbox(ref) || strcmp(n->rec.sandbox, ref->id) == 0)
		return 0;
	(void)session_ref_not_found(ref, err);
	return session_ref_gone(n->engine, caller, ref, err);
}

int session_lock_ref(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		     struct session **ret, struct err *err)
{
	char id[STORE_ID] = "";
	struct session *n = NULL;

	if (resolve_ref(e, caller, ref, id, err) < 0 ||
	    session_lock(e, caller->tenant, id, &n, err) < 0 || !n)
		return err->code == ERR_NOT_FOUND ? session_ref_gone(e, caller, ref, err) : -1;
	if (n->rec.state == SESSION_DESTROYING) {
		session_unlock(n);
		err_set(err, ERR_NOT_FOUND, "session %s is being destroyed", id);
		return session_ref_gone(e, caller, ref, err);
	}
	if (check_sandbox(n, caller, ref, err) < 0) {
		session_unlock(n);
		return -1;
	}
	*ret = n;
	return 0;
}

int session_check_version(const struct session *n, int64_t if_version, struct err *err)
{
	if (!if_version || n->rec.version == if_version)
		return 0;
	return err_set(err, ERR_CONFLICT, "session %s has version %lld, not %lld", n->id,
		       (long long)n->rec.version, (long long)if_version);
}

int session_lock_reconciled(struct engine *e, const struct caller *caller,
			    const struct session_ref *ref, int64_t if_version, struct session **ret,
			    struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;

	if (session_lock_ref(e, caller, ref, &n, err) < 0 || !n)
		return -1;
	if (session_check_version(n, if_version, err) < 0 || reconcile_session(n, err) < 0 ||
	    check_sandbox(n, caller, ref, err) < 0)
		return -1;
	*ret = steal_ptr(&n);
	return 0;
}

int session_copy_record(struct engine *e, const char *id, struct store_session *ret)
{
	struct session *n;
	struct err ignored;

	MUTEX_GUARD(&e->mutex);
	n = find_session(e, id);
	return n && n->loaded && store_session_copy(&n->rec, ret, &ignored) == 0;
}

int session_read_record(struct engine *e, const char *id, struct store_session *ret,
			struct err *err)
{
	if (session_copy_record(e, id, ret))
		return 0;
	return STORE_CALL(e, store_session_get, id, ret, err);
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

static int write_cause(struct session *n, struct store_session *s, const char *kind,
		       const struct store_cause *cause, struct err *err)
{
	struct store_event ev = { .cause = *cause };

	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	ev.cause.at = engine_now(n->engine);
	if (STORE_CALL_RELAXED(n->engine, n->relaxed, store_session_update, s, &ev, NULL, err) <
	    0) {
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
	struct session_cause_opts why = { SESSION_CAUSE_REQUESTED, NULL, actor };
	struct store_cause cause = session_cause_record(&why, 0);

	return write_cause(n, s, kind, &cause, err);
}

int session_transition(struct session *n, enum session_event ev,
		       const struct session_cause_opts *why, session_edit_fn *set, void *arg,
		       struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct store_cause cause = session_cause_record(why, 0);
	bool ends;

	if (store_session_copy(&n->rec, &s, err) < 0 ||
	    session_record_move(&s, ev, why, engine_now(n->engine), err) < 0)
		return -1;
	ends = n->rec.runtime == SESSION_RUNTIME_LIVE && !*s.sandbox;
	if (ends)
		death_record(n, &s, why);
	if (ev == SESSION_READY)
		memcpy(s.boot_id, n->engine->boot_id, sizeof(s.boot_id));
	if (set)
		set(&s, arg);
	if (write_cause(n, &s, session_event_name(ev), &cause, err) < 0)
		return -1;
	if (ends)
		death_count(n, why);
	return 0;
}

int session_create(struct engine *e, struct store_session *s, const struct store_event *ev,
		   bool relaxed, struct session **ret, struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;

	if (lock_by_id(e, s->id, LOCK_WAIT_MS, &n, err) < 0 ||
	    STORE_CALL_RELAXED(e, relaxed, store_session_create, s, ev, err) < 0)
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

	if (!n->dirty)
		return 0;
	if (store_session_copy(&n->rec, &s, err) < 0 ||
	    STORE_CALL(n->engine, store_session_update, &s, NULL, NULL, err) < 0)
		return -1;
	publish(n, &s);
	return 0;
}

void session_set_due(struct session *n, int64_t due)
{
	struct err ignored;

	pthread_mutex_lock(&n->engine->mutex);
	n->rec.due_at = due;
	n->dirty = true;
	pthread_mutex_unlock(&n->engine->mutex);
	(void)session_flush(n, &ignored); /* else it is written with the next change */
}

int session_reload(struct session *n, struct err *err)
{
	struct store_session s = { 0 };

	if (STORE_CALL(n->engine, store_session_get, n->id, &s, err) < 0)
		return -1;
	publish(n, &s);
	return 0;
}

void session_forget(struct session *n)
{
	MUTEX_GUARD(&n->engine->mutex);
	store_session_fini(&n->rec);
	memset(&n->rec, 0, sizeof(n->rec));
	n->loaded = n->dirty = false;
	n->probe_failures = 0;
	n->death = (struct session_death){ 0 };
}

void session_set_machine(struct session *n, struct machine *machine)
{
	MUTEX_GUARD(&n->engine->mutex);
	n->machine = machine;
}

struct names {
	char (*ids)[STORE_ID];
	size_t count;
};

static void add_dirty(struct session *n, void *arg)
{
	struct names *l = arg;
	char(*id)[STORE_ID] = n->dirty ? vec_push(&l->ids, &l->count, SIZE_MAX) : NULL;

	if (id)
		memcpy(id, n->id, STORE_ID);
}

void sessions_flush(struct engine *e)
{
	struct names l = { 0 };
	struct err ignored;

	session_each(e, add_dirty, &l);
	for (size_t i = 0; i < l.count; i++) {
		auto_call(session_unlock) struct session *n = NULL;

		if (session_trylock(e, l.ids[i], &n))
			(void)session_flush(n, &ignored);
	}
	free(l.ids);
}

void session_with(struct engine *e, const char *id, session_each_fn *fn, void *arg)
{
	struct session *n;

	MUTEX_GUARD(&e->mutex);
	n = find_session(e, id);
	if (n && n->loaded)
		fn(n, arg);
}

struct machine *session_find_machine(struct engine *e, const char *id)
{
	struct session *n;

	MUTEX_GUARD(&e->mutex);
	n = find_session(e, id);
	return n && n->machine ? machine_ref(n->machine) : NULL;
}

/* While the sandbox runs, the record names the layer that it was resumed from, so that it is
 * found if a power loss undoes the rename. A taken layer does not exist as a layer. */
int session_base_layer(struct session *n, char ret[STORE_ID], struct err *err)
{
	struct store_layer l;
	bool there;

	if (*n->rec.layer && n->layer_use == LAYER_UNKNOWN) {
		if (keeper_conn_has_layer(n->engine, n->rec.layer, &there, err) < 0)
			return -1;
		n->layer_use = there ? LAYER_BELOW : LAYER_TAKEN;
	}
	if (!*n->rec.layer || n->layer_use == LAYER_BELOW) {
		memcpy(ret, n->rec.layer, STORE_ID);
		return 0;
	}
	if (STORE_CALL(n->engine, store_layer_get, n->rec.layer, &l, err) < 0)
		return -1;
	memcpy(ret, l.parent, STORE_ID);
	return 0;
}

/* Nothing if the keeper no longer knows it, or fails. */
void session_charge_cpu(struct session *n)
{
	enum keeper_patience was = keeper_conn_set_patience(KEEPER_IMPATIENT);
	struct keeper_stats used;
	struct err ignored;

	n->disk_bytes = 0;
	if (keeper_conn_stats(n->engine, n->rec.sandbox, &used, &ignored) == 0) {
		n->disk_bytes = used.disk_bytes == UINT64_MAX ? 0 : used.disk_bytes;
		quota_charge(n->engine, &n->rec, used.cpu_us);
		usage_count(n, &used);
	}
	(void)keeper_conn_set_patience(was);
}

void session_end_machine(struct session *n)
{
	struct machine *v = n->machine;

	session_set_machine(n, NULL);
	machine_close(v);
	capacity_release_session(n);
	n->probe_failures = 0;
	n->limits_unsure = false; /* the next sandbox gets those of the record */
}

bool session_is_bound(const struct store_session *s, const struct store_binding *key)
{
	for (size_t i = 0; i < s->nbindings; i++)
		if (strcmp(s->bindings[i].kind, key->kind) == 0 &&
		    strcmp(s->bindings[i].key, key->key) == 0)
			return true;
	return false;
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
