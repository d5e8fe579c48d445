/* SPDX-License-Identifier: Apache-2.0 */
/* Hibernates a session: from a sandbox, running or dead, to sealed files. The layer has the id
 * of its sandbox, so that an interrupted seal is found again without a note. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/test_hook.h"
#include "machine/exec_reason.h"
#include "layers/layers_sync.h"
#include "machine/machine.h"
#include "session/hibernate.h"
#include "session/session.h"

enum { QUIET_WAIT_MS = 2000 };

static int record_layer(struct session *n, bool whole, struct err *err)
{
	struct store_layer l = { .bytes = (int64_t)n->disk_bytes,
				 .created_at = engine_now(n->engine) };
	struct store_layer there;
	int r = -1;

	memcpy(l.id, n->rec.sandbox, sizeof(l.id));
	if (spec_base(n->engine, &n->rec, l.template, err) < 0 ||
	    (!whole && session_base_layer(n, l.parent, err) < 0))
		return -1;
	WITH_STORE(n->engine, st)
	{
		r = store_layer_get(st, l.id, &there, err);
		if (r < 0 && err->code == ERR_NOT_FOUND)
			r = store_layer_add(st, &l, err);
	}
	return r;
}

static void set_layer(struct store_session *s, void *arg)
{
	snprintf(s->layer, sizeof(s->layer), "%s", (const char *)arg);
}

/* The writable files are gone. The state below them is older and must not be used silently: it
 * becomes a snapshot, and the session is empty. */
static int record_lost_files(struct session *n, struct err *err)
{
	struct store_snapshot snap = { .generation = n->rec.generation,
				       .created_at = engine_now(n->engine) };
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct session_cause_opts why = { SESSION_CAUSE_GONE, "its files were lost", "lodge" };
	char text[STORE_TEXT];

	/* the layer the record names may be the very files that are lost */
	if (session_base_layer(n, snap.layer, err) < 0)
		return -1;
	if (*snap.layer) {
		memcpy(snap.tenant, n->rec.tenant, sizeof(snap.tenant));
		memcpy(snap.session, n->id, sizeof(snap.session));
		if (id_generate("snp_", snap.id, err) < 0 ||
		    STORE_CALL(n->engine, store_snapshot_add, &snap, err) < 0)
			return -1;
		snprintf(text, sizeof(text),
			 "%s; the state before the last resume is kept as snapshot %s", why.text,
			 snap.id);
		why.text = text;
	}
	if (store_session_copy(&n->rec, &s, err) < 0)
		return -1;
	s.layer[0] = '\0';
	if (session_record_move(&s, SESSION_GONE, &why, engine_now(n->engine), err) < 0)
		return -1;
	death_record(n, &s, &why);
	if (session_update(n, &s, session_event_name(SESSION_GONE), err) < 0)
		return -1;
	death_count(n, &why);
	return 0;
}

/* A power loss may have undone the rename of the layer: then its files are back, with what had
 * reached the disk, and nothing else uses them. */
static int recover_files(struct session *n, struct err *err)
{
	static const struct session_cause_opts why = {
		SESSION_CAUSE_GONE, "the host stopped; data not yet on disk was lost", "lodge"
	};
	bool there;
	int64_t refs;

	if (!*n->rec.layer || n->layer_use == LAYER_BELOW)
		return record_lost_files(n, err);
	if (keeper_conn_has_layer(n->engine, n->rec.layer, &there, err) < 0 ||
	    STORE_CALL(n->engine, store_layer_refs, n->rec.layer, &refs, err) < 0)
		return -1;
	return there && refs == 1 ? session_transition(n, SESSION_SEALED, &why, NULL, NULL, err)
				  : record_lost_files(n, err);
}

static int finish(struct session *n, const struct session_cause_opts *why, struct err *err)
{
	char sandbox[STORE_ID];
	bool whole = false;
	struct store_exec end = exec_end_with_sandbox(engine_now(n->engine));

	memcpy(sandbox, n->rec.sandbox, sizeof(sandbox));
	if (n->machine) /* once: a retry has no machine */
		session_charge_cpu(n);
	if (keeper_conn_stop(n->engine, sandbox, err) < 0)
		return -1;
	hook_crash("hibernate:stopped");
	/* those of a sandbox that died while no engine ran; machine_close() ends the others */
	if (!n->machine && STORE_CALL(n->engine, store_exec_finish_all, n->id, &end, err) < 0)
		return -1;
	session_end_machine(n);
	if (keeper_conn_seal(n->engine, sandbox, sandbox, &whole, err) < 0)
		return err->code == ERR_NOT_FOUND ? recover_files(n, err) : -1;
	hook_crash("hibernate:sealed");
	if (record_layer(n, whole, err) < 0)
		return -1;
	hook_crash("hibernate:layered");
	if (session_transition(n, SESSION_SEALED, why, set_layer, sandbox, err) < 0)
		return -1;
	hook_crash("hibernate:done");
	layers_sync(n->engine, sandbox);
	return 0;
}

/* Hibernating frees memory, so on a full disk it may use the store's reserve; but only half of it,
 * because only deleting frees the disk. */
int hibernate_finish(struct session *n, const struct session_cause_opts *why, struct err *err)
{
	enum store_reserve_use was = store_reserve_set(STORE_RESERVE_HALF);
	int r = finish(n, why, err);

	(void)store_reserve_set(was);
	return r;
}

static int record_hibernation(struct session *n, const struct session_cause_opts *why,
			      struct err *err)
{
	enum store_reserve_use was = store_reserve_set(STORE_RESERVE_HALF);
	int r = session_transition(n, SESSION_EVENT_HIBERNATE, why, NULL, NULL, err);

	(void)store_reserve_set(was);
	return r;
}

int hibernate_session(struct session *n, const struct session_cause_opts *why, struct err *err)
{
	struct session_cause_opts failed = { SESSION_CAUSE_ERROR, err->msg, "lodge" };
	struct err second;

	if (keeper_conn_check_answers(n->engine, err) < 0)
		return -1; /* nothing has changed yet */
	if (n->machine) /* what is being read or written at this moment may finish */
		(void)machine_wait_idle(n->machine, QUIET_WAIT_MS);
	death_count_commands(n);
	if (record_hibernation(n, why, err) < 0)
		return -1;
	hook_crash("hibernate:recorded");
	if (hibernate_finish(n, why, err) == 0)
		return 0;
	/* a sandbox that could not be stopped stays; a stopped one is sealed by the next
	 * reconcile */
	if (n->machine && !machine_is_gone(n->machine))
		(void)session_transition(n, SESSION_ERROR, &failed, NULL, NULL, &second);
	return -1;
}

static int hibernate_if_active(struct session *n, const struct session_cause_opts *why,
			       struct err *err)
{
	return n->rec.state == SESSION_ACTIVE ? hibernate_session(n, why, err) : 0;
}

int session_hibernate_for(struct engine *e, const struct caller *caller,
			  const struct session_ref *ref, int64_t if_version,
			  const struct session_cause_opts *why, struct store_session *ret,
			  struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;

	if (session_lock_reconciled(e, caller, ref, if_version, &n, err) < 0)
		return -1;
	if (n->rec.state == SESSION_NONE)
		return err_set(err, ERR_CONFLICT, "session %s has nothing to keep yet", n->id);
	if (hibernate_if_active(n, why, err) < 0)
		return -1;
	return session_return_record(n, ret, err);
}

int session_hibernate(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		      int64_t if_version, struct store_session *ret, struct err *err)
{
	struct session_cause_opts why = session_cause_requested(caller);

	return session_hibernate_for(e, caller, ref, if_version, &why, ret, err);
}

static int archive(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		   int64_t if_version, enum session_event ev, struct store_session *ret,
		   struct err *err)
{
	enum session_state already = ev == SESSION_ARCHIVE ? SESSION_ARCHIVED : SESSION_HIBERNATED;
	struct session_cause_opts why = session_cause_requested(caller);
	auto_call(session_unlock) struct session *n = NULL;

	if (session_lock_reconciled(e, caller, ref, if_version, &n, err) < 0)
		return -1;
	if (ev == SESSION_ARCHIVE && hibernate_if_active(n, &why, err) < 0)
		return -1;
	if (n->rec.state != already && session_transition(n, ev, &why, NULL, NULL, err) < 0)
		return -1;
	return session_return_record(n, ret, err);
}

int session_archive(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		    int64_t if_version, struct store_session *ret, struct err *err)
{
	return archive(e, caller, ref, if_version, SESSION_ARCHIVE, ret, err);
}

int session_unarchive(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		      int64_t if_version, struct store_session *ret, struct err *err)
{
	return archive(e, caller, ref, if_version, SESSION_UNARCHIVE, ret, err);
}
