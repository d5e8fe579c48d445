/* SPDX-License-Identifier: Apache-2.0 */
/* The records that survive a restart, in one SQLite database.
 *
 * Calls block, so workers make them, and calls on one store never overlap. Arguments are borrowed;
 * the caller owns what it gets through `ret`. A failed call leaves its out-parameters unchanged
 * unless a comment says otherwise. A call that returns 0 has made its change completely and
 * durably; a call that returns -1 has changed nothing, except that after ERR_UNAVAILABLE the change
 * may turn out to be made when the store is opened again.
 *
 *   ERR_CONFLICT     another version, a record that already exists, or one still in use
 *   ERR_NOT_FOUND    no such record
 *   ERR_INVALID      an invalid record; a filter that is empty instead of NULL
 *   ERR_LIMIT        the disk is full, or out of memory
 *   ERR_UNAVAILABLE  busy, read-only, or an I/O error; after an I/O error the store is read-only
 * until it is opened again ERR_INTERNAL     a damaged database, or a bug */
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

struct store_session_filter { /* NULL or 0: any */
	const char *tenant, *user, *project, *template, *policy;
	uint64_t states; /* bits 1 << state */
	const char *meta_key, *meta_value; /* metadata has this text member */
};

struct store_snapshot_filter { /* NULL: any; a tenant is required */
	const char *tenant, *session;
	const char *user; /* owner of the session, while the store has its record or tombstone */
};

struct store_event_filter { /* NULL or 0: any */
	const char *tenant, *session, *user;
	const char *kinds; /* names with commas between them */
	int64_t after, before; /* exclusive bounds of the id */
	bool of_sessions; /* only events that belong to a session */
	bool newest_first;
};

/* ---- sessions -------------------------------------------------------------------------------- */

/* A change appends its event (if not NULL) in the same transaction. The store sets the tenant,
 * session and version of the event. */
/* Inserts the record and its bindings. Sets s->version and s->seq. CONFLICT if the id or a binding
 * is taken, or the policy does not exist. */
int store_session_create(struct store *st, struct store_session *s, const struct store_event *ev,
			 struct err *err);
int store_session_get(struct store *st, const char *id, struct store_session *ret, struct err *err);
int store_session_find(struct store *st, const char *tenant, const struct store_binding *by,
		       struct store_session *ret, struct err *err);
/* The session whose sandbox this is now. */
int store_session_find_sandbox(struct store *st, const char *sandbox, struct store_session *ret,
			       struct err *err);
/* Writes all but tenant, user, created_at and bindings if s->version is the current version, and
 * raises it. Otherwise CONFLICT, and *ret_now (if not NULL) gets the current record. */
int store_session_update(struct store *st, struct store_session *s, const struct store_event *ev,
			 struct store_session *ret_now, struct err *err);
/* Updates the record, frees its keys and turns s->cause into a tombstone. The record stays until
 * store_session_remove(), so that a crash in between can be repaired. */
int store_session_mark_destroyed(struct store *st, struct store_session *s,
				 const struct store_event *ev, struct store_session *ret_now,
				 struct err *err);
/* Deletes the record; the tombstone stays. NOT_FOUND if there is none. */
int store_session_remove(struct store *st, const char *id, struct err *err);
/* Deletes the record and keys of a session whose creation failed, without a tombstone; only the
 * event remains. NOT_FOUND if there is none at this version. */
int store_session_retract(struct store *st, const struct store_session *s,
			  const struct store_event *ev, struct err *err);
/* Moves a key from session `from` to session `to`; NULL stands for none. CONFLICT unless the key
 * belongs to `from`. Raises the version of both. Stores `u` (if not NULL) in the same transaction.
 */
int store_session_rebind(struct store *st, const char *tenant, const struct store_binding *key,
			 const char *from, const char *to, const struct store_user *u,
			 struct err *err);
/* Lists sessions in order of creation. */
int store_session_list(struct store *st, const struct store_session_filter *f,
		       struct store_page page, struct store_session_list *ret, struct err *err);
int store_session_count(struct store *st, const struct store_session_filter *f, int64_t *ret,
			struct err *err);
/* Sessions as rows of a table, `offset` of them left out. ORDER_LIVE puts those with a sandbox
 * first. */
struct store_row_query {
	struct store_session_filter by;
	const char *id; /* only this session; NULL: any */
	const char *text; /* part of the id, key, user, project or template; NULL: any */
	enum { STORE_ORDER_CREATED, STORE_ORDER_ACTIVE, STORE_ORDER_LIVE } order;
	bool descending;
	unsigned offset, limit; /* limit: 1..STORE_ROWS_MAX */
};
int store_session_rows(struct store *st, const struct store_row_query *q,
		       struct store_row_list *ret, struct err *err);
/* How many match, by state; the filter's own states are ignored. */
int store_session_count_states(struct store *st, const struct store_row_query *q,
			       int64_t ret[static STORE_STATES], struct err *err);
/* Lists sessions with 0 < due_at <= now, the longest due first. There is no next page: processed
 * sessions are no longer due. */
int store_session_find_due(struct store *st, int64_t now, unsigned limit,
			   struct store_session_list *ret, struct err *err);
/* Lists sessions in `states` (bits 1 << state) whose layer stack is deeper than `depth`, in order
 * of creation. */
int store_session_find_deep(struct store *st, uint64_t states, unsigned depth, unsigned limit,
			    struct store_session_list *ret, struct err *err);

/* ---- tombstones ------------------------------------------------------------------------------ */

int store_tombstone_get(struct store *st, const char *session, struct store_tombstone *ret,
			struct err *err);
/* Finds the latest deleted session that had this key. */
int store_tombstone_find(struct store *st, const char *tenant, const struct store_binding *by,
			 struct store_tombstone *ret, struct err *err);
int store_tombstone_prune(struct store *st, int64_t before, struct err *err);
/* store_session_update() and store_session_mark_destroyed() record the sandbox that a session loses
 * with s->cause; the newest 64 of each session are kept. */
int store_ended_sandbox_get(struct store *st, const char *id, struct store_ended_sandbox *ret,
			    struct err *err);
int store_ended_sandbox_prune(struct store *st, int64_t before, struct err *err);

/* ---- layers ---------------------------------------------------------------------------------- */

/* Sessions, snapshots, child layers and holds reference a layer. A hold has the name of its holder,
 * so taking or releasing it twice changes nothing. */
/* CONFLICT if the layer exists or its parent does not. */
int store_layer_add(struct store *st, const struct store_layer *l, struct err *err);
int store_layer_get(struct store *st, const char *id, struct store_layer *ret, struct err *err);
/* Marks a layer as durable and records its size. */
int store_layer_mark_durable(struct store *st, const char *id, int64_t bytes, struct err *err);
/* Lists layers that are not durable, by id, after this id ("" for the first page). */
int store_layer_find_unsynced(struct store *st, const char *after, unsigned limit,
			      struct store_layer_list *ret, struct err *err);
int store_layer_ref(struct store *st, const char *id, const char *holder, struct err *err);
int store_layer_unref(struct store *st, const char *id, const char *holder, struct err *err);
/* Releases every hold whose holder begins with `prefix`. */
int store_layer_release(struct store *st, const char *prefix, struct err *err);
int store_layer_refs(struct store *st, const char *id, int64_t *ret, struct err *err);
/* Lists unreferenced layers created before `before`: a layer that was just sealed has no reference
 * yet. */
int store_layer_find_unreferenced(struct store *st, int64_t before, unsigned limit,
				  struct store_layer_list *ret, struct err *err);
/* CONFLICT while the layer is referenced. */
int store_layer_remove(struct store *st, const char *id, struct err *err);

/* ---- snapshots ------------------------------------------------------------------------------- */

/* Sets s->seq. CONFLICT if the id or the name within the session is taken, or the layer does not
 * exist. */
int store_snapshot_add(struct store *st, struct store_snapshot *s, struct err *err);
int store_snapshot_get(struct store *st, const char *id, struct store_snapshot *ret,
		       struct err *err);
/* Finds a snapshot by its name within a session. */
int store_snapshot_find(struct store *st, const char *session, const char *name,
			struct store_snapshot *ret, struct err *err);
/* Oldest first. */
int store_snapshot_list(struct store *st, const struct store_snapshot_filter *f,
			struct store_page page, struct store_snapshot_list *ret, struct err *err);
/* The bytes of all snapshots that belong to no session, as far as they are counted. */
int store_snapshot_imported(struct store *st, const char *tenant, int64_t *ret, struct err *err);
int store_snapshot_remove(struct store *st, const char *id, struct err *err);

/* ---- execs ----------------------------------------------------------------------------------- */

/* Sets e->seq. */
int store_exec_record(struct store *st, struct store_exec *e, struct err *err);
/* Records the result. CONFLICT if the exec has ended before. */
int store_exec_finish(struct store *st, const struct store_exec *e, struct err *err);
/* Sets the state of all running execs of a session whose sandbox has ended. */
int store_exec_finish_all(struct store *st, const char *session, const struct store_exec *end,
			  struct err *err);
int store_exec_count_running(struct store *st, const char *session, int64_t *ret, struct err *err);
int store_exec_get(struct store *st, const char *id, struct store_exec *ret, struct err *err);
int store_exec_list(struct store *st, const char *session, struct store_page page,
		    struct store_exec_list *ret, struct err *err);
/* Deletes execs that ended before `before`. */
int store_exec_prune(struct store *st, int64_t before, struct err *err);
/* Deletes the oldest execs of a session but `max`. Those that run stay. */
int store_exec_trim(struct store *st, const char *session, int64_t max, struct err *err);
/* The same for all sessions; then for each tenant, and also for its events, tombstones, ended
 * sandboxes and idempotency keys: so many of each kind stay. */
int store_trim(struct store *st, int64_t execs_of_session, int64_t rows_of_tenant, struct err *err);

/* ---- idempotency keys ------------------------------------------------------------------------ */

/* CONFLICT if the key was used in this scope; *ret_first (if not NULL) gets the first use. */
int store_once_claim(struct store *st, const struct store_once *o, struct store_once *ret_first,
		     struct err *err);
/* Finds the use of a key in a scope; o->target is ignored. */
int store_once_find(struct store *st, const struct store_once *o, struct store_once *ret,
		    struct err *err);
int store_once_prune(struct store *st, int64_t before, struct err *err);

/* ---- events ---------------------------------------------------------------------------------- */

/* Appends an event that belongs to no change of a session's record. Sets e->id. */
int store_event_append(struct store *st, struct store_event *e, struct err *err);
/* In the order of their ids. `next` continues the list: as `after`, or as `before` if the newest
 * come first. */
int store_event_list(struct store *st, const struct store_event_filter *f, unsigned limit,
		     struct store_event_list *ret, struct err *err);
/* Lists events after this id, in order; NULL: of all tenants or sessions. */
int store_event_since(struct store *st, int64_t id, const char *tenant, const char *session,
		      unsigned limit, struct store_event_list *ret, struct err *err);
/* How many were written since the store was opened; also counts those that were rolled back. */
uint64_t store_event_writes(const struct store *st);
/* The highest id ever assigned; 0 before the first event. */
int store_event_last(struct store *st, int64_t *ret, struct err *err);
int store_event_prune(struct store *st, int64_t before, struct err *err);

/* ---- projects -------------------------------------------------------------------------------- */

/* Sets p->seq. */
int store_project_add(struct store *st, struct store_project *p, struct err *err);
int store_project_get(struct store *st, const char *tenant, const char *id,
		      struct store_project *ret, struct err *err);
/* Lists projects that the user owns or shares through a team, oldest first; NULL: all. */
int store_project_list(struct store *st, const char *tenant, const char *user,
		       struct store_page page, struct store_project_list *ret, struct err *err);
/* Deletes a project and its fragments; it is no longer the current project of any user. */
int store_project_remove(struct store *st, const char *tenant, const char *id, struct err *err);

/* ---- fragments ------------------------------------------------------------------------------- */

/* Inserts a fragment and its files in one transaction. Sets f->seq, f->files and f->bytes. CONFLICT
 * if the id or a path exists, or the project does not. */
int store_fragment_add(struct store *st, struct store_fragment *f, const struct store_file *files,
		       size_t nfiles, struct err *err);
int store_fragment_get(struct store *st, const char *tenant, const char *id,
		       struct store_fragment *ret, struct err *err);
/* Lists files by path. */
int store_fragment_files(struct store *st, const char *tenant, const char *id,
			 struct store_file_list *ret, struct err *err);
/* Newest first. */
int store_fragment_list(struct store *st, const char *tenant, const char *project,
			struct store_page page, struct store_fragment_list *ret, struct err *err);
int store_fragment_remove(struct store *st, const char *tenant, const char *id, struct err *err);

/* ---- users ----------------------------------------------------------------------------------- */

/* Inserts or updates a user. */
int store_user_put(struct store *st, const struct store_user *u, struct err *err);
int store_user_get(struct store *st, const char *tenant, const char *id, struct store_user *ret,
		   struct err *err);
int store_user_list(struct store *st, const char *tenant, struct store_page page,
		    struct store_user_list *ret, struct err *err);

struct store_user_query {
	const char *tenant;
	const char *id; /* only this user; NULL: any */
	const char *text; /* part of the id, name or email; NULL: any */
	uint64_t states; /* bits of the states that count as active */
	uint64_t live; /* of those whose files are in a sandbox, not in a layer */
	int64_t since; /* of cpu_day_ms */
};
/* Up to STORE_USERS_MAX: first those with an active session, then those used last. `ret_total` is
 * how many there are. */
int store_user_rows(struct store *st, const struct store_user_query *q,
		    struct store_user_row_list *ret, int64_t *ret_total, struct err *err);

/* ---- teams ----------------------------------------------------------------------------------- */

/* Adds a member or changes its role. */
int store_team_put(struct store *st, const struct store_member *m, struct err *err);
int store_team_get(struct store *st, const char *tenant, const char *team, const char *user,
		   struct store_member *ret, struct err *err);
/* Lists members by user. */
int store_team_list(struct store *st, const char *tenant, const char *team,
		    struct store_member_list *ret, struct err *err);
/* Lists teams that have members or projects, by name; those of a user, or with NULL all. */
int store_team_rows(struct store *st, const char *tenant, const char *user, struct store_page page,
		    struct store_team_row_list *ret, struct err *err);
int store_team_remove(struct store *st, const char *tenant, const char *team, const char *user,
		      struct err *err);

/* ---- API keys -------------------------------------------------------------------------------- */

/* Sets k->seq. */
int store_key_add(struct store *st, struct store_key *k, struct err *err);
int store_key_find(struct store *st, const uint8_t hash[STORE_HASH], struct store_key *ret,
		   struct err *err);
/* A NULL tenant lists those of all tenants. */
int store_key_list(struct store *st, const char *tenant, struct store_page page,
		   struct store_key_list *ret, struct err *err);
int store_key_remove(struct store *st, const char *id, struct err *err);

/* ---- policies -------------------------------------------------------------------------------- */

/* Sets p->seq. CONFLICT if the tenant has a policy of this name. */
int store_policy_add(struct store *st, struct store_policy *p, struct err *err);
/* Writes all columns but tenant, name and created_at. */
int store_policy_update(struct store *st, const struct store_policy *p, struct err *err);
int store_policy_get(struct store *st, const char *tenant, const char *name,
		     struct store_policy *ret, struct err *err);
/* A NULL tenant lists those of all tenants. */
int store_policy_list(struct store *st, const char *tenant, struct store_page page,
		      struct store_policy_list *ret, struct err *err);
/* CONFLICT while a session uses the policy. */
int store_policy_remove(struct store *st, const char *tenant, const char *name, struct err *err);

/* ---- quotas ---------------------------------------------------------------------------------- */

int store_quota_set(struct store *st, const struct store_quota *q, struct err *err);
/* NOT_FOUND if no quota is set. */
int store_quota_get(struct store *st, const char *tenant, const char *user, struct store_quota *ret,
		    struct err *err);
/* Adds CPU time to the usage, in total and of the hour of `at`. */
int store_quota_charge(struct store *st, const char *tenant, const char *user, int64_t cpu_ms,
		       int64_t at, struct err *err);
/* Deletes what was charged in hours before that of `before`; the totals stay. */
int store_quota_prune(struct store *st, int64_t before, struct err *err);
/* Current usage. NULL: of all tenants or users. `states`: bits of the states that count as active.
 */
int store_quota_usage(struct store *st, const char *tenant, const char *user, uint64_t states,
		      struct store_usage *ret, struct err *err);
/* How many sessions each tenant has in each state; the oldest tenants first. */
int store_tenant_sessions(struct store *st, struct store_tenant_sum_list *ret, struct err *err);
/* Bytes of the sealed files of each tenant, those of snapshots included, whatever the state is.
 * `live`: bits of the states whose files are in a sandbox, not in a layer. */
int store_tenant_layers(struct store *st, uint64_t live, struct store_tenant_sum_list *ret,
			struct err *err);

/* ---- environments ---------------------------------------------------------------------------- */

/* Replaces an earlier record of the template. */
int store_environment_put(struct store *st, const struct store_environment *v, struct err *err);
int store_environment_get(struct store *st, const char *template, struct store_environment *ret,
			  struct err *err);
/* Succeeds if there is none. */
int store_environment_remove(struct store *st, const char *template, struct err *err);

/* ---- the store itself ------------------------------------------------------------------------ */

/* Rows written since the store was opened. Reads never raise it. */
int64_t store_changes(struct store *st);
/* While relaxed, writes survive the end of this process at once, but a power loss only with the
 * next write that is not relaxed. For state that a power loss ends anyway. */
void store_relax(struct store *st, bool on);
/* Disk space is reserved, so that sessions can be destroyed on a full disk: a part of the
 * write-ahead log, which nobody else can take, and a file of 1 MiB for the case that it is used up.
 * keep: makes what is missing; else removes the file. True if the file exists, or existed. */
bool store_reserve(struct store *st, bool keep);
/* How much of the log's reserve writes of this thread may use. Returns the previous value. */
enum store_reserve_use {
	STORE_RESERVE_KEEP, /* the default */
	STORE_RESERVE_HALF, /* hibernating */
	STORE_RESERVE_ALL, /* deleting */
};
enum store_reserve_use store_reserve_set(enum store_reserve_use use);

/* Opens the database `path`, or creates it. No other process can open it until store_close(); their
 * error names this process and `socket`. Files that are damaged, written by a newer lodge or of
 * another program are rejected and left unchanged. */
int store_open_sqlite(const char *path, const char *socket, struct store **ret, struct err *err);

void store_close(struct store *st); /* accepts NULL */
DEFINE_AUTO(struct store *, store_close);

#endif
