/* SPDX-License-Identifier: Apache-2.0 */
/* Fork and rollback. Both share layers; only the files of a running sandbox are copied. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "layers/layers.h"
#include "admit/quota.h"
#include "engine/disk_space.h"
#include "engine/keeper_conn.h"
#include "machine/machine.h"
#include "session/hibernate.h"
#include "session/resume.h"
#include "session/session.h"
#include "snapshot/fork.h"
#include "snapshot/snapshot.h"
#include "layers/snapshot_record.h"

enum { FORKS_MAX = 1000, DESTROY_ATTEMPTS = 3 };

/* Holds a snapshot, which must be one of this session. */
static int hold_own_snapshot(struct session *n, const struct caller *caller, const char *id,
			     const char *holder, struct store_snapshot *ret, struct err *err)
{
	struct store_snapshot s;

	if (snapshot_hold(n->engine, caller, id, holder, &s, err) < 0)
		return -1;
	if (strcmp(s.session, n->id) != 0) {
		layers_release(n->engine, s.layer, holder);
		return err_set(err, ERR_NOT_FOUND, "no snapshot %.64s", id);
	}
	*ret = s;
	return 0;
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* Holds the layer that the forks start from. */
static int hold_source(struct session *n, const struct caller *caller, const char *snapshot,
		       const char *holder, char ret[STORE_ID], struct err *err)
{
	char layer[STORE_ID];
	struct store_snapshot s;
	struct layer_reservation l;

	if (snapshot) {
		if (hold_own_snapshot(n, caller, snapshot, holder, &s, err) < 0)
			return -1;
		memcpy(ret, s.layer, sizeof(layer));
		return 0;
	} else if (n->rec.state == SESSION_ACTIVE) {
		if (session_copy_layer(n, &l, err) < 0)
			return -1;
		memcpy(layer, l.id, sizeof(layer));
	} else if (session_has_files(&n->rec)) {
		memcpy(layer, n->rec.layer, sizeof(layer));
	} else {
		return err_set(err, ERR_CONFLICT,
			       "cannot fork session %s: it has no files (state: %s)", n->id,
			       state_machine_name(&session_states, n->rec.state));
	}
	if (layers_hold(n->engine, layer, holder, err) < 0)
		return -1;
	memcpy(ret, layer, sizeof(layer));
	return 0;
}

/* NULL stays NULL. */
static int copy_text(const char *from, char **ret, struct err *err)
{
	if (!from)
		return 0;
	*ret = strdup(from);
	return *ret ? 0 : err_set(err, ERR_LIMIT, "out of memory");
}

static int make_record(const struct session *n, const char *layer, const struct store_binding *key,
		       struct store_session *ret, struct err *err)
{
	const struct store_session *from = &n->rec;
	int64_t now = engine_now(n->engine);
	/* a copy with a name of its own outlives a temporary source */
	int64_t delete_after = key ? n->engine->opts.delete_after_ms : from->delete_after_ms;
	auto_fini(store_session_fini) struct store_session s = {
		.state = SESSION_HIBERNATED,
		.runtime = SESSION_RUNTIME_RESUMABLE,
		.on_idle = from->on_idle,
		.on_expire = from->on_expire,
		.generation = 1,
		.created_at = now,
		.last_activity_at = now,
		.idle_timeout_ms = from->idle_timeout_ms,
		.lifetime_ms = from->lifetime_ms,
		.max_lifetime_ms = from->max_lifetime_ms,
		.delete_after_ms = delete_after,
		.hibernated_at = now,
		.memory_bytes = from->memory_bytes,
		.disk_bytes = from->disk_bytes
	};

	s.due_at = session_delete_at(&s);
	memcpy(s.tenant, from->tenant, sizeof(s.tenant));
	memcpy(s.user, from->user, sizeof(s.user));
	memcpy(s.template, from->template, sizeof(s.template));
	memcpy(s.policy, from->policy, sizeof(s.policy));
	memcpy(s.layer, layer, sizeof(s.layer));
	if (id_generate("ses_", s.id, err) < 0 || copy_text(from->spec, &s.spec, err) < 0 ||
	    copy_text(from->metadata, &s.metadata, err) < 0)
		return -1;
	if (key) {
		s.bindings = malloc(sizeof(*s.bindings));
		if (!s.bindings)
			return err_set(err, ERR_LIMIT, "out of memory");
		*s.bindings = *key;
		s.nbindings = 1;
	}
	*ret = steal_struct(&s);
	return 0;
}

static int create_fork(struct session *n, const char *layer, const struct store_binding *key,
		       const char *actor, struct store_session *ret, struct err *err)
{
	struct store_event ev = { .kind = "fork" };
	auto_fini(store_session_fini) struct store_session s = { 0 };
	auto_call(session_unlock) struct session *fork = NULL;

	snprintf(ev.cause.code, sizeof(ev.cause.code), "%s",
		 session_cause_name(SESSION_CAUSE_REQUESTED));
	snprintf(ev.cause.text, sizeof(ev.cause.text), "forked from session %s", n->id);
	snprintf(ev.cause.actor, sizeof(ev.cause.actor), "%s", actor ? actor : "");
	ev.cause.at = engine_now(n->engine);
	if (make_record(n, layer, key, &s, err) < 0 ||
	    quota_check(n->engine, &s, true, true, err) < 0)
		return -1;
	/* no caller knows the new session yet, so its lock is free */
	if (session_create(n->engine, &s, &ev, false, &fork, err) < 0)
		return -1;
	return store_session_copy(&fork->rec, ret, err);
}

static void destroy_forks(struct engine *e, const struct caller *caller,
			  struct store_session *forks, unsigned count)
{
	struct session_cause_opts why = { SESSION_CAUSE_ERROR,
					  "another session of this fork failed", caller->actor };
	struct err ignored;

	for (unsigned i = 0; i < count; i++) {
		struct session_ref ref = { .id = forks[i].id };

		(void)session_destroy(e, caller, &ref, &why, NULL, &ignored);
		store_session_fini(&forks[i]);
	}
}

static int create_forks(struct session *n, const struct caller *caller, const char *layer,
			unsigned count, const struct store_binding *keys, struct store_session *ret,
			struct err *err)
{
	for (unsigned i = 0; i < count; i++) {
		if (create_fork(n, layer, keys ? &keys[i] : NULL, caller->actor, &ret[i], err) <
		    0) {
			destroy_forks(n->engine, caller, ret, i);
			return -1;
		}
		hook_crash("fork:made");
	}
	return 0;
}

int session_fork(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		 const char *snapshot, unsigned count, const struct store_binding *keys,
		 struct store_session *ret, struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;
	auto_free struct store_session *forks = NULL;
	char holder[STORE_ID], layer[STORE_ID];
	int r;

	if (count < 1 || count > FORKS_MAX)
		return err_set(err, ERR_INVALID, "count: must be between 1 and %d, not %u",
			       FORKS_MAX, count);
	forks = calloc(count, sizeof(*forks));
	if (!forks)
		return err_set(err, ERR_LIMIT, "out of memory for %u sessions", count);
	if (session_lock_reconciled(e, caller, ref, 0, &n, err) < 0 ||
	    disk_space_check(e, err) < 0 || id_generate("fork:", holder, err) < 0 ||
	    hold_source(n, caller, snapshot, holder, layer, err) < 0)
		return -1;
	hook_crash("fork:held");
	r = create_forks(n, caller, layer, count, keys, forks, err);
	layers_release(e, layer, holder);
	if (r == 0)
		memcpy(ret, forks, count * sizeof(*forks));
	return r;
}

/* ---- rollback -------------------------------------------------------------------------------- */

struct rollback_target {
	char layer[STORE_ID], sandbox[STORE_ID];
};

static void set_target(struct store_session *s, void *arg)
{
	const struct rollback_target *t = arg;

	memcpy(s->layer, t->layer, sizeof(s->layer));
	memcpy(s->sandbox, t->sandbox, sizeof(s->sandbox));
}

/* When the record names another sandbox, the old one has no owner, and the next startup removes it
 * after a crash. The new sandbox takes over its capacity. */
static int replace_sandbox(struct session *n, const struct session_cause_opts *why,
			   struct rollback_target *t, struct err *err)
{
	struct machine *old = n->machine;
	char sandbox[STORE_ID];
	struct resume_result resumed;
	struct err ignored;

	memcpy(sandbox, n->rec.sandbox, sizeof(sandbox));
	if (id_generate("sbx_", t->sandbox, err) < 0)
		return -1;
	session_charge_cpu(n);
	death_count_commands(n);
	if (session_transition(n, SESSION_ROLLBACK, why, set_target, t, err) < 0)
		return -1;
	hook_crash("rollback:moved");
	session_set_machine(n, NULL);
	machine_close(old);
	/* try again if the keeper dies meanwhile: no record names the old sandbox */
	for (int i = 0;
	     i < DESTROY_ATTEMPTS && keeper_conn_destroy(n->engine, sandbox, &ignored) < 0; i++)
		continue;
	hook_crash("rollback:ended");
	return resume_restored(n, &resumed, err);
}

static int roll_back(struct session *n, const struct session_cause_opts *why,
		     struct rollback_target *t, struct err *err)
{
	char stack[KEEPER_LAYERS_MAX][STORE_ID];
	size_t depth;

	if (layers_list_stack(n->engine, t->layer, stack, &depth, err) < 0)
		return -1;
	return n->rec.state == SESSION_ACTIVE
		       ? replace_sandbox(n, why, t, err)
		       : session_transition(n, SESSION_ROLLBACK, why, set_target, t, err);
}

int session_rollback(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		     const char *snapshot, int64_t if_version, struct store_session *ret,
		     struct err *err)
{
	struct session_cause_opts why = { SESSION_CAUSE_REQUESTED, NULL, caller->actor };
	char text[STORE_TEXT], holder[STORE_ID];
	auto_call(session_unlock) struct session *n = NULL;
	struct rollback_target t = { 0 };
	struct store_snapshot s;
	int r;

	if (id_generate("fork:", holder, err) < 0 ||
	    session_lock_reconciled(e, caller, ref, if_version, &n, err) < 0 ||
	    hold_own_snapshot(n, caller, snapshot, holder, &s, err) < 0)
		return -1;
	memcpy(t.layer, s.layer, sizeof(t.layer));
	snprintf(text, sizeof(text), "rolled back to snapshot %s", s.id);
	why.text = text;
	r = roll_back(n, &why, &t, err);
	layers_release(e, s.layer, holder); /* the record refers to it now */
	if (r < 0)
		return -1;
	return ret ? store_session_copy(&n->rec, ret, err) : 0;
}
