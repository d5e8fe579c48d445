/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot names a layer, which never changes. Files are written first, then the rows of the
 * layer and of the snapshot, then the session's record. So after a crash no row refers to leftover
 * files, and the sweep removes them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test_hook.h"
#include "layers/layers.h"
#include "engine/name_check.h"
#include "engine/disk_space.h"
#include "engine/keeper_conn.h"
#include "layers/layers_sync.h"
#include "machine/machine_watch.h"
#include "session/hibernate.h"
#include "session/resume.h"
#include "session/session.h"
#include "session/session_spec.h"
#include "snapshot/snapshot.h"
#include "layers/snapshot_record.h"

enum {
	BUSY_MS = 20000, /* the keeper limits concurrent jobs */
	BUSY_US = 20000,
	CAPACITY_MS = 10000, /* another session may have taken the capacity of a stopped one */
};

/* ---- copying --------------------------------------------------------------------------------- */

static int copy_files(struct session *n, const char *layer, bool *ret_whole, uint64_t *ret_bytes,
		      struct err *err)
{
	int64_t until = clock_mono_ms() + BUSY_MS;
	int r;

	machine_set_frozen(n->machine, true);
	while ((r = keeper_conn_snapshot(n->engine, n->rec.sandbox, layer, ret_whole, ret_bytes,
					 err)) < 0) {
		if (err->sys != EBUSY || clock_mono_ms() > until)
			break;
		usleep(BUSY_US);
	}
	machine_set_frozen(n->machine, false);
	return r;
}

int session_copy_layer(struct session *n, struct layer_reservation *l, struct err *err)
{
	auto_call(layers_unreserve) struct layer_reservation *guard = l;
	char below[STORE_ID] = "", template[STORE_ID];
	uint64_t bytes = 0;
	bool whole = false;

	(void)guard;
	*l = (struct layer_reservation){ 0 };
	if (layers_reserve(n->engine, l, err) < 0 || session_flush(n, err) < 0 ||
	    copy_files(n, l->id, &whole, &bytes, err) < 0)
		return -1;
	hook_crash("snapshot:copied");
	if ((!whole && session_base_layer(n, below, err) < 0) ||
	    spec_base(n->engine, &n->rec, template, err) < 0 ||
	    layers_add(n->engine, l->id, below, template, bytes, err) < 0)
		return -1;
	hook_crash("snapshot:layered");
	layers_sync(n->engine, l->id);
	return 0;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static int check_name(struct session *n, const char *name, struct err *err)
{
	struct store_snapshot existing;
	struct err other = { 0 };

	if (!name)
		return 0;
	if (STORE_CALL(n->engine, store_snapshot_find, n->id, name, &existing, &other) == 0)
		return err_set(err, ERR_CONFLICT, "session %s already has a snapshot '%s': %s",
			       n->id, name, existing.id);
	if (other.code == ERR_NOT_FOUND)
		return 0;
	*err = other;
	return -1;
}

static int update_record(struct session *n, const struct store_snapshot *snap, const char *actor,
			 struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };

	if (store_session_copy(&n->rec, &s, err) < 0)
		return -1;
	s.generation = snap->generation;
	memcpy(s.snapshot, snap->id, sizeof(s.snapshot));
	return session_update_as(n, &s, "snapshot", actor, err);
}

/* Adds the snapshot of a layer that already has its row. */
static int add_snapshot(struct session *n, const char *layer, const struct snapshot_opts *opts,
			const char *actor, struct store_snapshot *ret, struct err *err)
{
	struct store_snapshot s = { .generation = n->rec.generation + 1,
				    .created_at = engine_now(n->engine) };
	struct store_layer l;
	struct err ignored;
	int r = -1;

	if (id_generate("snp_", s.id, err) < 0)
		return -1;
	memcpy(s.tenant, n->rec.tenant, sizeof(s.tenant));
	memcpy(s.session, n->id, sizeof(s.session));
	snprintf(s.name, sizeof(s.name), "%s", opts->name ? opts->name : "");
	snprintf(s.layer, sizeof(s.layer), "%s", layer);
	WITH_STORE(n->engine, st)
	{
		r = store_layer_get(st, layer, &l, err);
		s.bytes = r == 0 ? l.bytes : 0;
		if (r == 0)
			r = store_snapshot_add(st, &s, err);
	}
	if (r < 0)
		return -1;
	hook_crash("snapshot:named");
	if (update_record(n, &s, actor, err) < 0) {
		WITH_STORE(n->engine, st)
		(void)store_snapshot_remove(st, s.id, &ignored);
		return -1;
	}
	*ret = s;
	ret->bytes = snapshot_size(&l);
	return 0;
}

static int take_running(struct session *n, const struct snapshot_opts *opts, const char *actor,
			struct store_snapshot *ret, struct err *err)
{
	struct layer_reservation l;

	if (session_copy_layer(n, &l, err) < 0)
		return -1;
	return add_snapshot(n, l.id, opts, actor, ret, err);
}

/* The session has no sandbox. */
static int take_sealed(struct session *n, const struct snapshot_opts *opts, const char *actor,
		       struct store_snapshot *ret, struct err *err)
{
	if (!session_has_files(&n->rec))
		return err_set(err, ERR_CONFLICT,
			       "cannot snapshot session %s: it has no files (state: %s)", n->id,
			       state_machine_name(&session_states, n->rec.state));
	return add_snapshot(n, n->rec.layer, opts, actor, ret, err);
}

static int take_stopped(struct session *n, const struct snapshot_opts *opts, const char *actor,
			struct store_snapshot *ret, struct err *err)
{
	struct session_cause_opts why = { SESSION_CAUSE_REQUESTED, "to take a snapshot", actor };
	struct resume_result resumed;
	struct store_snapshot s;
	struct err second;
	int r, resume_r;

	if (hibernate_session(n, &why, err) < 0)
		return -1;
	r = take_sealed(n, opts, actor, &s, err);
	resume_r = resume_session(n, &why, CAPACITY_MS, &resumed, &second);
	if (r < 0)
		return -1;
	if (resume_r < 0) {
		*err = second;
		return err_ctx(err, "took snapshot %s, but could not resume its session", s.id);
	}
	*ret = s;
	return 0;
}

int session_snapshot(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		     const struct snapshot_opts *opts, struct store_snapshot *ret, struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;

	if (opts->name && name_check("name", opts->name, STORE_NAME, err) < 0)
		return -1;
	if (session_lock_reconciled(e, caller, ref, 0, &n, err) < 0 ||
	    check_name(n, opts->name, err) < 0 || disk_space_check(e, err) < 0)
		return -1;
	if (n->rec.state != SESSION_ACTIVE)
		return take_sealed(n, opts, caller->actor, ret, err);
	return opts->stop ? take_stopped(n, opts, caller->actor, ret, err)
			  : take_running(n, opts, caller->actor, ret, err);
}

/* ---- listing --------------------------------------------------------------------------------- */

int snapshot_list(struct engine *e, const struct caller *caller, const struct session_ref *session,
		  struct store_page page, struct store_snapshot_list *ret, struct err *err)
{
	struct store_snapshot_filter f = { .tenant = caller->tenant,
					   .session = session ? session->id : NULL };
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct store_snapshot_list l = { 0 };

	/* an id may be that of a destroyed session, because its snapshots outlive it */
	if (session && !f.session) {
		if (session_get(e, caller, session, &s, err) < 0)
			return -1;
		f.session = s.id;
	}
	if (snapshot_search(e, &f, page, &l, err) < 0)
		return -1;
	/* without snapshots the session must exist */
	if (session && session->id && !l.count && session_get(e, caller, session, &s, err) < 0) {
		store_snapshot_list_fini(&l);
		return -1;
	}
	*ret = l;
	return 0;
}

/* ---- deleting -------------------------------------------------------------------------------- */

/* The newest other snapshot of the same session; "": there is none. */
static int find_newest_other(struct engine *e, const struct store_snapshot *snap,
			     char ret[STORE_ID], struct err *err)
{
	struct store_snapshot_filter f = { .tenant = snap->tenant, .session = snap->session };
	struct store_page page = { .limit = STORE_PAGE_MAX };
	char newest[STORE_ID] = "";
	size_t count;

	do {
		struct store_snapshot_list l = { 0 };

		if (snapshot_search(e, &f, page, &l, err) < 0)
			return -1;
		count = l.count;
		for (size_t i = 0; i < count; i++) {
			page.after = l.items[i].seq;
			if (strcmp(l.items[i].id, snap->id) != 0)
				memcpy(newest, l.items[i].id, sizeof(newest));
		}
		store_snapshot_list_fini(&l);
	} while (count == page.limit);
	memcpy(ret, newest, sizeof(newest));
	return 0;
}

/* The newest snapshot in the session's record is informational, so a locked session is skipped. */
static void replace_in_record(struct engine *e, const struct store_snapshot *snap,
			      const char *actor)
{
	auto_call(session_unlock) struct session *n = NULL;
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct err ignored;

	if (!*snap->session || !session_trylock(e, snap->session, &n) ||
	    n->rec.state == SESSION_DESTROYING || strcmp(n->rec.snapshot, snap->id) != 0 ||
	    store_session_copy(&n->rec, &s, &ignored) < 0 ||
	    find_newest_other(e, snap, s.snapshot, &ignored) < 0)
		return;
	(void)session_update_as(n, &s, "snapshot_removed", actor, &ignored);
}

int snapshot_remove(struct engine *e, const struct caller *caller, const char *id, struct err *err)
{
	struct store_snapshot s = { 0 };
	int r;

	if (snapshot_get(e, caller, id, &s, err) < 0)
		return -1;
	replace_in_record(e, &s, caller->actor);
	r = STORE_CALL(e, store_snapshot_remove, id, err);
	return r < 0 && err->code == ERR_NOT_FOUND
		       ? err_set(err, ERR_NOT_FOUND, "no snapshot %.64s", id)
		       : r;
}
