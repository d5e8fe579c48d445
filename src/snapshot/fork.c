/* SPDX-License-Identifier: Apache-2.0 */
/* Other sessions from the same files, and a session back to files it had. Nothing is copied for
 * either but the files of a sandbox that runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "layers/layers.h"
#include "admit/quota.h"
#include "engine/keeper_conn.h"
#include "machine/machine.h"
#include "session/hibernate.h"
#include "session/resume.h"
#include "session/session.h"

enum { FORKS_MAX = 1000, ENDS_MAX = 3 };

/* A snapshot that this session made, held. */
static int own_snapshot(struct session *n, const struct caller *who, const char *id,
			const char *holder, struct store_snapshot *ret, struct err *err)
{
	struct store_snapshot s;

	if (snapshot_hold(n->engine, who, id, holder, &s, err) < 0)
		return -1;
	if (strcmp(s.session, n->id) != 0) {
		layers_release(n->engine, s.layer, holder);
		return err_set(err, ERR_NOT_FOUND, "no snapshot %.64s", id);
	}
	*ret = s;
	return 0;
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* The layer the others start from, held. */
static int hold_source(struct session *n, const struct caller *who, const char *snapshot,
		       const char *holder, char ret[STORE_ID], struct err *err)
{
	char layer[STORE_ID];
	struct store_snapshot s;
	struct layer_reservation l;

	if (snapshot) {
		if (own_snapshot(n, who, snapshot, holder, &s, err) < 0)
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
		return err_set(err, ERR_CONFLICT, "session %s is %s: nothing to fork", n->id,
			       state_machine_name(&session_states, n->rec.state));
	}
	if (layers_hold(n->engine, layer, holder, err) < 0)
		return -1;
	memcpy(ret, layer, sizeof(layer));
	return 0;
}

/* Strings that are NULL are none. */
static int copy_text(const char *from, char **ret, struct err *err)
{
	if (!from)
		return 0;
	*ret = strdup(from);
	return *ret ? 0 : err_set(err, ERR_LIMIT, "no memory for a session");
}

static int new_record(const struct session *n, const char *layer, const struct store_binding *key,
		      struct store_session *ret, struct err *err)
{
	const struct store_session *from = &n->rec;
	int64_t now = engine_now(n->engine);
	auto_fini(store_session_fini) struct store_session s = {
		.state = SESSION_HIBERNATED,
		.runtime = SESSION_RUNTIME_RESUMABLE,
		.on_idle = from->on_idle,
		.on_expire = from->on_expire,
		.generation = 1,
		.created_at = now,
		.last_activity_at = now,
		.idle_timeout_ms = from->idle_timeout_ms,
		.max_lifetime_ms = from->max_lifetime_ms,
		.memory_bytes = from->memory_bytes,
		.disk_bytes = from->disk_bytes
	};

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
			return err_set(err, ERR_LIMIT, "no memory for a session");
		*s.bindings = *key;
		s.nbindings = 1;
	}
	*ret = steal_struct(&s);
	return 0;
}

static int make_one(struct session *n, const char *layer, const struct store_binding *key,
		    const char *actor, struct store_session *ret, struct err *err)
{
	struct store_event ev = { .kind = "fork" };
	auto_fini(store_session_fini) struct store_session s = { 0 };
	auto_call(session_unlock) struct session *made = NULL;

	snprintf(ev.cause.code, sizeof(ev.cause.code), "%s",
		 session_cause_name(SESSION_CAUSE_REQUESTED));
	snprintf(ev.cause.text, sizeof(ev.cause.text), "from session %s", n->id);
	snprintf(ev.cause.actor, sizeof(ev.cause.actor), "%s", actor ? actor : "");
	ev.cause.at = engine_now(n->engine);
	if (new_record(n, layer, key, &s, err) < 0 ||
	    quota_check(n->engine, &s, true, true, err) < 0)
		return -1;
	/* nobody knows the new one yet: its turn is free */
	if (session_create(n->engine, &s, &ev, false, &made, err) < 0)
		return key && err->code == ERR_CONFLICT
			       ? err_ctx(err, "%s '%.64s'", key->kind, key->key)
			       : -1;
	return store_session_copy(&made->rec, ret, err);
}

static void take_back(struct engine *e, const struct caller *who, struct store_session *made,
		      unsigned count)
{
	struct session_cause_opts why = { SESSION_CAUSE_ERROR, "another one could not be made",
					  who->actor };
	struct err ignored;

	for (unsigned i = 0; i < count; i++) {
		struct session_ref ref = { .id = made[i].id };

		(void)session_destroy(e, who, &ref, &why, NULL, &ignored);
		store_session_fini(&made[i]);
	}
}

static int make_all(struct session *n, const struct caller *who, const char *layer, unsigned count,
		    const struct store_binding *keys, struct store_session *ret, struct err *err)
{
	for (unsigned i = 0; i < count; i++) {
		if (make_one(n, layer, keys ? &keys[i] : NULL, who->actor, &ret[i], err) < 0) {
			take_back(n->engine, who, ret, i);
			return -1;
		}
		hook_crash("fork:made");
	}
	return 0;
}

int session_fork(struct engine *e, const struct caller *who, const struct session_ref *ref,
		 const char *snapshot, unsigned count, const struct store_binding *keys,
		 struct store_session *ret, struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;
	auto_free struct store_session *made = NULL;
	char holder[STORE_ID], layer[STORE_ID];
	int r;

	if (count < 1 || count > FORKS_MAX)
		return err_set(err, ERR_INVALID, "count: 1 to %d, not %u", FORKS_MAX, count);
	made = calloc(count, sizeof(*made));
	if (!made)
		return err_set(err, ERR_LIMIT, "no memory for %u sessions", count);
	if (session_lock_reconciled(e, who, ref, 0, &n, err) < 0 ||
	    id_generate("fork:", holder, err) < 0 ||
	    hold_source(n, who, snapshot, holder, layer, err) < 0)
		return -1;
	hook_crash("fork:held");
	r = make_all(n, who, layer, count, keys, made, err);
	layers_release(e, layer, holder);
	if (r == 0)
		memcpy(ret, made, count * sizeof(*made));
	return r;
}

/* ---- rollback -------------------------------------------------------------------------------- */

struct fork_target {
	char layer[STORE_ID], sandbox[STORE_ID];
};

static void set_target(struct store_session *s, void *arg)
{
	const struct fork_target *t = arg;

	memcpy(s->layer, t->layer, sizeof(s->layer));
	memcpy(s->sandbox, t->sandbox, sizeof(s->sandbox));
}

/* The old sandbox is nobody's from the moment the record names another: what a crash leaves of it
 * the next start removes. Its place among the active ones goes to the new one. */
static int replace(struct session *n, const struct session_cause_opts *why, struct fork_target *t,
		   struct err *err)
{
	struct machine *old = n->machine;
	char sandbox[STORE_ID];
	struct resume_result woken;
	struct err ignored;

	memcpy(sandbox, n->rec.sandbox, sizeof(sandbox));
	if (id_generate("sbx_", t->sandbox, err) < 0)
		return -1;
	session_charge_cpu(n);
	if (session_transition(n, SESSION_ROLLBACK, why, set_target, t, err) < 0)
		return -1;
	hook_crash("rollback:moved");
	session_set_machine(n, NULL);
	machine_close(old);
	/* no record names it any more: a keeper that dies in the middle is not the end of it */
	for (int i = 0; i < ENDS_MAX && keeper_conn_destroy(n->engine, sandbox, &ignored) < 0; i++)
		continue;
	hook_crash("rollback:ended");
	return resume_restored(n, &woken, err);
}

static int go_back(struct session *n, const struct session_cause_opts *why, struct fork_target *t,
		   struct err *err)
{
	char stack[KEEPER_LAYERS_MAX][STORE_ID];
	size_t depth;

	if (layers_list_stack(n->engine, t->layer, stack, &depth, err) < 0)
		return -1;
	return n->rec.state == SESSION_ACTIVE
		       ? replace(n, why, t, err)
		       : session_transition(n, SESSION_ROLLBACK, why, set_target, t, err);
}

int session_rollback(struct engine *e, const struct caller *who, const struct session_ref *ref,
		     const char *snapshot, int64_t if_version, struct store_session *ret,
		     struct err *err)
{
	struct session_cause_opts why = { SESSION_CAUSE_REQUESTED, NULL, who->actor };
	char text[STORE_TEXT], holder[STORE_ID];
	auto_call(session_unlock) struct session *n = NULL;
	struct fork_target t = { 0 };
	struct store_snapshot s;
	int r;

	if (id_generate("fork:", holder, err) < 0 ||
	    session_lock_reconciled(e, who, ref, if_version, &n, err) < 0 ||
	    own_snapshot(n, who, snapshot, holder, &s, err) < 0)
		return -1;
	memcpy(t.layer, s.layer, sizeof(t.layer));
	snprintf(text, sizeof(text), "back to snapshot %s", s.id);
	why.text = text;
	r = go_back(n, &why, &t, err);
	layers_release(e, s.layer, holder); /* the record names it now */
	if (r < 0)
		return -1;
	return ret ? store_session_copy(&n->rec, ret, err) : 0;
}
