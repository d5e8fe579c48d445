/* SPDX-License-Identifier: Apache-2.0 */
/* The records that survive a restart, in one SQLite database.
 *
 * Every call blocks and is made on a worker; calls on one store never overlap. What is passed in is
 * borrowed; what comes out through `ret` is the caller's. Out-parameters are untouched on failure,
 * except where a comment says otherwise. A change is whole and durable when its call has returned
 * 0, and has not happened when it has returned -1; the one exception is ERR_UNAVAILABLE, after
 * which a change may turn out to have happened when the store is opened again.
 *
 *   ERR_CONFLICT     another version, something there already, or something still in use
 *   ERR_NOT_FOUND    no such record
 *   ERR_INVALID      a record that no store would keep; a filter that is empty instead of NULL
 *   ERR_LIMIT        the disk is full, or there is no memory
 *   ERR_UNAVAILABLE  busy, read-only, or an I/O error; after the last the store only reads until it
 *                    is opened again
 *   ERR_INTERNAL     damaged, or a bug */
#ifndef LODGE_STORE_STORE_H
#define LODGE_STORE_STORE_H

#include "base/auto.h"
#include "base/err.h"
#include "store/record.h"

struct store;

/* One page of a list. `after` is the `next` of the page before, 0 for the first. */
struct store_page {
	int64_t after;
	unsigned limit; /* 1..STORE_PAGE_MAX */
};

struct store_session_filter { /* NULL, 0: any */
	const char *tenant, *user, *project, *template, *policy;
	uint64_t states; /* bits 1 << state */
	const char *meta_key, *meta_value; /* metadata has this text member */
};

struct store_snapshot_filter { /* NULL: any, but for the tenant */
	const char *tenant, *session;
	const char *user; /* whose session it was, as long as the store knows of that session */
};

/* ---- sessions -------------------------------------------------------------------------------- */

/* An event given to a change is appended in the same transaction, or not at all; NULL: none. Its
 * tenant, session and version are taken from the session. */
/* The record with its bindings. Sets s->version and s->seq. CONFLICT if the id or one of
 * the bindings is taken, or its policy is not there. */
int store_session_create(struct store *st, struct store_session *s, const struct store_event *ev,
			 struct err *err);
int store_session_get(struct store *st, const char *id, struct store_session *ret, struct err *err);
int store_session_find(struct store *st, const char *tenant, const struct store_binding *by,
		       struct store_session *ret, struct err *err);
/* Writes all but tenant, user, created_at and bindings, if s->version is still the current
 * one, and raises it. Otherwise CONFLICT, and *ret_now (if not NULL) is the current record.
 */
int store_session_update(struct store *st, struct store_session *s, const struct store_event *ev,
			 struct store_session *ret_now, struct err *err);
/* Like update; and the keys are free again, and s->cause becomes the tombstone. The record
 * stays until remove(), so that a crash in between can be made good. */
int store_session_bury(struct store *st, struct store_session *s, const struct store_event *ev,
		       struct store_session *ret_now, struct err *err);
/* The last trace but the tombstone. NOT_FOUND if it is gone already. */
int store_session_remove(struct store *st, const char *id, struct err *err);
/* One that came to nothing, with its keys and without a tombstone; the event tells that it
 * was. NOT_FOUND if it is gone already, or at another version. */
int store_session_retract(struct store *st, const struct store_session *s,
			  const struct store_event *ev, struct err *err);
/* Moves a key from one session to another: CONFLICT unless it leads to `from` now. NULL:
 * nowhere. Raises the version of both. With `u`, where that user is now is written in the
 * same transaction. */
int store_session_rebind(struct store *st, const char *tenant, const struct store_binding *key,
			 const char *from, const char *to, const struct store_user *u,
			 struct err *err);
/* In the order of creation. */
int store_session_list(struct store *st, const struct store_session_filter *f,
		       struct store_page page, struct store_session_list *ret, struct err *err);
/* How many there are. */
int store_session_count(struct store *st, const struct store_session_filter *f, int64_t *ret,
			struct err *err);
/* Those with 0 < due_at <= now, the longest due first. There is no next page: what has been
 * dealt with is not due any more. */
int store_session_due(struct store *st, int64_t now, unsigned limit, struct store_session_list *ret,
		      struct err *err);
/* Those in `states` (bits 1 << state) whose files are a stack of more than `depth` layers,
 * in the order of creation. */
int store_session_deep(struct store *st, uint64_t states, unsigned depth, unsigned limit,
		       struct store_session_list *ret, struct err *err);

/* ---- tombstones ------------------------------------------------------------------------------ */

int store_tombstone_get(struct store *st, const char *session, struct store_tombstone *ret,
			struct err *err);
/* The latest session that had this key. */
int store_tombstone_find(struct store *st, const char *tenant, const struct store_binding *by,
			 struct store_tombstone *ret, struct err *err);
int store_tombstone_prune(struct store *st, int64_t before, struct err *err);

/* ---- layers ---------------------------------------------------------------------------------- */

/* A layer is referenced by the sessions, snapshots and layers that name it, and by whoever holds
 * it. A hold has its holder's name, so that taking or releasing it twice changes nothing. */
/* CONFLICT if it is there or its parent is not. */
int store_layer_add(struct store *st, const struct store_layer *l, struct err *err);
int store_layer_get(struct store *st, const char *id, struct store_layer *ret, struct err *err);
/* It has been synced, and is this large. */
int store_layer_settle(struct store *st, const char *id, int64_t bytes, struct err *err);
/* Those that are not yet: by id, after this one ("" for the first). */
int store_layer_unsettled(struct store *st, const char *after, unsigned limit,
			  struct store_layer_list *ret, struct err *err);
int store_layer_ref(struct store *st, const char *id, const char *holder, struct err *err);
int store_layer_unref(struct store *st, const char *id, const char *holder, struct err *err);
/* Every hold whose holder's name begins so. */
int store_layer_release(struct store *st, const char *prefix, struct err *err);
int store_layer_refs(struct store *st, const char *id, int64_t *ret, struct err *err);
/* Made before `before` (one just sealed is not named yet) and referenced by nothing. */
int store_layer_unreferenced(struct store *st, int64_t before, unsigned limit,
			     struct store_layer_list *ret, struct err *err);
/* CONFLICT while it is referenced. */
int store_layer_remove(struct store *st, const char *id, struct err *err);

/* ---- snapshots ------------------------------------------------------------------------------- */

/* Sets s->seq. CONFLICT if the id or the name in the session is taken, or the layer is not
 * there. */
int store_snapshot_add(struct store *st, struct store_snapshot *s, struct err *err);
int store_snapshot_get(struct store *st, const char *id, struct store_snapshot *ret,
		       struct err *err);
/* By its name in a session. */
int store_snapshot_find(struct store *st, const char *session, const char *name,
			struct store_snapshot *ret, struct err *err);
/* Oldest first. */
int store_snapshot_list(struct store *st, const struct store_snapshot_filter *f,
			struct store_page page, struct store_snapshot_list *ret, struct err *err);
int store_snapshot_remove(struct store *st, const char *id, struct err *err);

/* ---- execs ----------------------------------------------------------------------------------- */

/* Sets e->seq. */
int store_exec_record(struct store *st, struct store_exec *e, struct err *err);
/* How it ended. CONFLICT if that is known already. */
int store_exec_finish(struct store *st, const struct store_exec *e, struct err *err);
/* Everything of this session that is still running got this state: its sandbox is gone. */
int store_exec_finish_all(struct store *st, const char *session, uint8_t state, int64_t at,
			  struct err *err);
int store_exec_get(struct store *st, const char *id, struct store_exec *ret, struct err *err);
int store_exec_list(struct store *st, const char *session, struct store_page page,
		    struct store_exec_list *ret, struct err *err);
/* Forgets those that ended before. */
int store_exec_prune(struct store *st, int64_t before, struct err *err);

/* ---- idempotency keys ------------------------------------------------------------------------ */

/* CONFLICT if the key was used in this scope; *ret_first (if not NULL) is then that use. */
int store_once_claim(struct store *st, const struct store_once *o, struct store_once *ret_first,
		     struct err *err);
/* The use of this key in this scope; o->target does not matter. */
int store_once_find(struct store *st, const struct store_once *o, struct store_once *ret,
		    struct err *err);
int store_once_prune(struct store *st, int64_t before, struct err *err);

/* ---- events ---------------------------------------------------------------------------------- */

/* Sets e->id. For what goes with no change of a session. */
int store_event_append(struct store *st, struct store_event *e, struct err *err);
/* After this id, in order; of one tenant and one session unless NULL. */
int store_event_since(struct store *st, int64_t id, const char *tenant, const char *session,
		      unsigned limit, struct store_event_list *ret, struct err *err);
/* The newest id ever given; 0 before the first. */
int store_event_last(struct store *st, int64_t *ret, struct err *err);
int store_event_prune(struct store *st, int64_t before, struct err *err);

/* ---- projects -------------------------------------------------------------------------------- */

/* Sets p->seq. */
int store_project_add(struct store *st, struct store_project *p, struct err *err);
int store_project_get(struct store *st, const char *tenant, const char *id,
		      struct store_project *ret, struct err *err);
/* Those the user owns or is in the team of; all with NULL. Oldest first. */
int store_project_list(struct store *st, const char *tenant, const char *user,
		       struct store_page page, struct store_project_list *ret, struct err *err);
/* With its fragments. */
int store_project_remove(struct store *st, const char *tenant, const char *id, struct err *err);

/* ---- fragments ------------------------------------------------------------------------------- */

/* With all its files, or not at all. Sets f->seq, f->files, f->bytes. CONFLICT if the id or
 * a path is there already, or the project is not. */
int store_fragment_add(struct store *st, struct store_fragment *f, const struct store_file *files,
		       size_t nfiles, struct err *err);
int store_fragment_get(struct store *st, const char *tenant, const char *id,
		       struct store_fragment *ret, struct err *err);
/* By path. */
int store_fragment_files(struct store *st, const char *tenant, const char *id,
			 struct store_file_list *ret, struct err *err);
/* Newest first. */
int store_fragment_list(struct store *st, const char *tenant, const char *project,
			struct store_page page, struct store_fragment_list *ret, struct err *err);
int store_fragment_remove(struct store *st, const char *tenant, const char *id, struct err *err);

/* ---- users ----------------------------------------------------------------------------------- */

/* Made or changed. */
int store_user_put(struct store *st, const struct store_user *u, struct err *err);
int store_user_get(struct store *st, const char *tenant, const char *id, struct store_user *ret,
		   struct err *err);
int store_user_list(struct store *st, const char *tenant, struct store_page page,
		    struct store_user_list *ret, struct err *err);

/* ---- teams ----------------------------------------------------------------------------------- */

/* In the team with this role, from now on. */
int store_team_put(struct store *st, const struct store_member *m, struct err *err);
int store_team_get(struct store *st, const char *tenant, const char *team, const char *user,
		   struct store_member *ret, struct err *err);
/* By user. */
int store_team_list(struct store *st, const char *tenant, const char *team,
		    struct store_member_list *ret, struct err *err);
int store_team_remove(struct store *st, const char *tenant, const char *team, const char *user,
		      struct err *err);

/* ---- API keys -------------------------------------------------------------------------------- */

/* Sets k->seq. */
int store_key_add(struct store *st, struct store_key *k, struct err *err);
int store_key_find(struct store *st, const uint8_t hash[STORE_HASH], struct store_key *ret,
		   struct err *err);
/* Of one tenant unless NULL. */
int store_key_list(struct store *st, const char *tenant, struct store_page page,
		   struct store_key_list *ret, struct err *err);
int store_key_remove(struct store *st, const char *id, struct err *err);

/* ---- policies -------------------------------------------------------------------------------- */

/* Sets p->seq. CONFLICT if the tenant has one of this name. */
int store_policy_add(struct store *st, struct store_policy *p, struct err *err);
/* All but tenant, name and created_at. */
int store_policy_update(struct store *st, const struct store_policy *p, struct err *err);
int store_policy_get(struct store *st, const char *tenant, const char *name,
		     struct store_policy *ret, struct err *err);
/* Of one tenant unless NULL. */
int store_policy_list(struct store *st, const char *tenant, struct store_page page,
		      struct store_policy_list *ret, struct err *err);
/* CONFLICT while a session names it. */
int store_policy_remove(struct store *st, const char *tenant, const char *name, struct err *err);

/* ---- quotas ---------------------------------------------------------------------------------- */

int store_quota_set(struct store *st, const struct store_quota *q, struct err *err);
/* NOT_FOUND if none was set. */
int store_quota_get(struct store *st, const char *tenant, const char *user, struct store_quota *ret,
		    struct err *err);
/* CPU time used, added to what was. */
int store_quota_charge(struct store *st, const char *tenant, const char *user, int64_t cpu_ms,
		       struct err *err);
/* What is used now. NULL: all users, all tenants. `states`: bits of what counts as active.
 */
int store_quota_usage(struct store *st, const char *tenant, const char *user, uint64_t states,
		      struct store_usage *ret, struct err *err);

/* ---- environments ---------------------------------------------------------------------------- */

/* In the place of an earlier one. */
int store_environment_put(struct store *st, const struct store_environment *v, struct err *err);
int store_environment_get(struct store *st, const char *template, struct store_environment *ret,
			  struct err *err);
/* One that is not there is success. */
int store_environment_remove(struct store *st, const char *template, struct err *err);

/* ---- the store itself ------------------------------------------------------------------------ */

/* Rows written since it was opened: reading never raises it. */
int64_t store_changes(struct store *st);
/* While it is on, what is written outlives this process at once, but a power loss only with
 * the next write for which it is off: for what a power loss ends anyway. */
void store_relax(struct store *st, bool on);
/* A little of the disk is held back, so that on a full one what makes room can still be
 * written. keep: see to it that it is there; else give it up, once. Whether it is, or was.
 */
bool store_reserve(struct store *st, bool keep);

/* The database `path`, made if there is none. It is this process's alone until it is closed;
 * `socket` is what another opener is told, beside the process id. A file that is damaged, of a
 * newer lodge or not ours is refused and left as it is. */
int store_open_sqlite(const char *path, const char *socket, struct store **ret, struct err *err);

void store_close(struct store *st); /* NULL is allowed */
DEFINE_AUTO(struct store *, store_close);

#endif
