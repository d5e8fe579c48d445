/* SPDX-License-Identifier: Apache-2.0 */
/* Adopts what the last engine left: running sandboxes are connected, unfinished work is finished
 * or undone, and what no record names is removed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/internal.h"
#include "template/templates.h"
#include "engine/keeper_conn.h"
#include "layers/layers_sync.h"
#include "service/startup_adopt.h"
#include "session/reconcile.h"
#include "session/session.h"
#include "snapshot/snapshot_archive.h"
#include "project/switch_commit.h"

struct names { /* of sandboxes that a record names */
	char (*ids)[STORE_ID];
	size_t count;
};

static int add_name(struct names *l, const char *id, struct err *err)
{
	char(*added)[STORE_ID] = *id ? vec_push(&l->ids, &l->count, SIZE_MAX) : NULL;

	if (!*id)
		return 0;
	if (!added)
		return err_sys(err, ENOMEM, "adoption");
	memcpy(added, id, STORE_ID);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The wall clock may have been set back while no engine ran: no deadline is later than the
 * session's own timeouts allow. */
static int bound_deadlines(struct session *n, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	int64_t now = engine_now(n->engine);

	if (n->rec.state != SESSION_ACTIVE ||
	    (n->rec.started_at <= now && n->rec.last_activity_at <= now))
		return 0;
	if (store_session_copy(&n->rec, &s, err) < 0)
		return -1;
	if (s.started_at > now)
		s.started_at = now;
	s.last_activity_at = now;
	session_record_retime(&s, now);
	return session_update(n, &s, "clock", err);
}

/* A session that cannot be reconciled now is retried at its next use, and by the timers. */
static void adopt_one(struct engine *e, const char *id)
{
	auto_call(session_unlock) struct session *n = NULL;
	struct err later;

	if (session_lock(e, NULL, id, &n, &later) < 0)
		return;
	if (reconcile_session(n, &later) == 0)
		(void)bound_deadlines(n, &later);
}

/* Adds the ids, or the sandboxes, of all sessions in these states (0: any). */
static int add_names(struct engine *e, uint64_t states, bool sandboxes, struct names *to,
		     struct err *err)
{
	struct store_session_filter f = { .states = states };
	struct store_page page = { .limit = 200 };
	int r = 0;

	do {
		auto_fini(store_session_list_fini) struct store_session_list l = { 0 };

		WITH_STORE(e, st)
		r = store_session_list(st, &f, page, &l, err);
		for (size_t i = 0; r == 0 && i < l.count; i++)
			r = add_name(to, sandboxes ? l.items[i].sandbox : l.items[i].id, err);
		page.after = l.next;
	} while (r == 0 && page.after);
	return r;
}

/* A sandbox that no record names was never acknowledged, or is being destroyed. */
static int remove_strays(struct engine *e, struct err *err)
{
	struct names named = { 0 };
	struct keeper_listing l = { 0 };
	struct err later; /* one that cannot be removed now is a stray at the next start, too */
	int r = add_names(e, 0, true, &named, err);

	if (r == 0)
		r = keeper_conn_list(e, &l, err);
	if (named.count > 1)
		qsort(named.ids, named.count, sizeof(*named.ids), by_name);
	for (size_t i = 0; r == 0 && i < l.count; i++) {
		if (l.items[i].what != KEEPER_IS_LAYER &&
		    (named.count == 0 ||
		     !bsearch(l.items[i].id, named.ids, named.count, sizeof(*named.ids), by_name)))
			(void)keeper_conn_destroy(e, l.items[i].id, &later);
	}
	keeper_listing_fini(&l);
	free(named.ids);
	return r;
}

int startup_adopt(struct engine *e, struct err *err)
{
	uint64_t unfinished = SM_BIT(SESSION_PROVISIONING) | SM_BIT(SESSION_ACTIVE) |
			      SM_BIT(SESSION_HIBERNATING) | SM_BIT(SESSION_RESTORING) |
			      SM_BIT(SESSION_FAILED) | SM_BIT(SESSION_DESTROYING);
	struct names ids = { 0 };
	int r = add_names(e, unfinished, false, &ids, err);

	for (size_t i = 0; r == 0 && i < ids.count; i++)
		adopt_one(e, ids.ids[i]);
	free(ids.ids);
	if (r == 0)
		r = remove_strays(e, err);
	if (r == 0)
		r = templates_reconcile(e, err);
	if (r == 0)
		r = switch_recover(e, err);
	if (r == 0) {
		snapshot_clean_imports(e);
		layers_sync_all(e);
	}
	return r;
}
