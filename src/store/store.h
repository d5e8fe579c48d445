/* SPDX-License-Identifier: Apache-2.0 */
/* What must survive a restart, behind one small table of calls per subject.
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

/* An event given to a change is appended in the same transaction, or not at all; NULL: none. Its
 * tenant, session and version are taken from the session. */
struct store_session_ops {
	/* The record with its bindings. Sets s->version and s->seq. CONFLICT if the id or one of
	 * the bindings is taken, or its policy is not there. */
	int (*create)(struct store *st, struct store_session *s, const struct store_event *ev,
		      struct err *err);
	int (*get)(struct store *st, const char *id, struct store_session *ret, struct err *err);
	int (*find)(struct store *st, const char *tenant, const struct store_binding *by,
		    struct store_session *ret, struct err *err);
	/* Writes all but tenant, user, created_at and bindings, if s->version is still the current
	 * one, and raises it. Otherwise CONFLICT, and *ret_now (if not NULL) is the current record.
	 */
	int (*update)(struct store *st, struct store_session *s, const struct store_event *ev,
		      struct store_session *ret_now, struct err *err);
	/* Like update; and the keys are free again, and s->cause becomes the tombstone. The record
	 * stays until remove(), so that a crash in between can be made good. */
	int (*bury)(struct store *st, struct store_session *s, const struct store_event *ev,
		    struct store_session *ret_now, struct err *err);
	/* The last trace but the tombstone. NOT_FOUND if it is gone already. */
	int (*remove)(struct store *st, const char *id, struct err *err);
	/* One that came to nothing, with its keys and without a tombstone; the event tells that it
	 * was. NOT_FOUND if it is gone already, or at another version. */
	int (*retract)(struct store *st, const struct store_session *s,
		       const struct store_event *ev, struct err *err);
	/* Moves a key from one session to another: CONFLICT unless it leads to `from` now. NULL:
	 * nowhere. Raises the version of both. With `u`, where that user is now is written in the
	 * same transaction. */
	int (*rebind)(struct store *st, const char *tenant, const struct store_binding *key,
		      const char *from, const char *to, const struct store_user *u,
		      struct err *err);
	/* In the order of creation. */
	int (*list)(struct store *st, const struct store_session_filter *f, struct store_page page,
		    struct store_session_list *ret, struct err *err);
	/* How many there are. */
	int (*count)(struct store *st, const struct store_session_filter *f, int64_t *ret,
		     struct err *err);
	/* Those with 0 < due_at <= now, the longest due first. There is no next page: what has been
	 * dealt with is not due any more. */
	int (*due)(struct store *st, int64_t now, unsigned limit, struct store_session_list *ret,
		   struct err *err);
	/* Those in `states` (bits 1 << state) whose files are a stack of more than `depth` layers,
	 * in the order of creation. */
	int (*deep)(struct store *st, uint64_t states, unsigned depth, unsigned limit,
		    struct store_session_list *ret, struct err *err);
};

struct store_tombstone_ops {
	int (*get)(struct store *st, const char *session, struct store_tombstone *ret,
		   struct err *err);
	/* The latest session that had this key. */
	int (*find)(struct store *st, const char *tenant, const struct store_binding *by,
		    struct store_tombstone *ret, struct err *err);
	int (*prune)(struct store *st, int64_t before, struct err *err);
};

/* A layer is referenced by the sessions, snapshots and layers that name it, and by whoever holds
 * it. A hold has its holder's name, so that taking or releasing it twice changes nothing. */
struct store_layer_ops {
	/* CONFLICT if it is there or its parent is not. */
	int (*add)(struct store *st, const struct store_layer *l, struct err *err);
	int (*get)(struct store *st, const char *id, struct store_layer *ret, struct err *err);
	/* It has been synced, and is this large. */
	int (*settle)(struct store *st, const char *id, int64_t bytes, struct err *err);
	/* Those that are not yet: by id, after this one ("" for the first). */
	int (*unsettled)(struct store *st, const char *after, unsigned limit,
			 struct store_layer_list *ret, struct err *err);
	int (*ref)(struct store *st, const char *id, const char *holder, struct err *err);
	int (*unref)(struct store *st, const char *id, const char *holder, struct err *err);
	/* Every hold whose holder's name begins so. */
	int (*release)(struct store *st, const char *prefix, struct err *err);
	int (*refs)(struct store *st, const char *id, int64_t *ret, struct err *err);
	/* Made before `before` (one just sealed is not named yet) and referenced by nothing. */
	int (*unreferenced)(struct store *st, int64_t before, unsigned limit,
			    struct store_layer_list *ret, struct err *err);
	/* CONFLICT while it is referenced. */
	int (*remove)(struct store *st, const char *id, struct err *err);
};

struct store_snapshot_ops {
	/* Sets s->seq. CONFLICT if the id or the name in the session is taken, or the layer is not
	 * there. */
	int (*add)(struct store *st, struct store_snapshot *s, struct err *err);
	int (*get)(struct store *st, const char *id, struct store_snapshot *ret, struct err *err);
	/* By its name in a session. */
	int (*find)(struct store *st, const char *session, const char *name,
		    struct store_snapshot *ret, struct err *err);
	/* Oldest first. */
	int (*list)(struct store *st, const struct store_snapshot_filter *f, struct store_page page,
		    struct store_snapshot_list *ret, struct err *err);
	int (*remove)(struct store *st, const char *id, struct err *err);
};

struct store_exec_ops {
	/* Sets e->seq. */
	int (*record)(struct store *st, struct store_exec *e, struct err *err);
	/* How it ended. CONFLICT if that is known already. */
	int (*finish)(struct store *st, const struct store_exec *e, struct err *err);
	/* Everything of this session that is still running got this state: its sandbox is gone. */
	int (*finish_all)(struct store *st, const char *session, uint8_t state, int64_t at,
			  struct err *err);
	int (*get)(struct store *st, const char *id, struct store_exec *ret, struct err *err);
	int (*list)(struct store *st, const char *session, struct store_page page,
		    struct store_exec_list *ret, struct err *err);
	/* Forgets those that ended before. */
	int (*prune)(struct store *st, int64_t before, struct err *err);
};

struct store_once_ops {
	/* CONFLICT if the key was used in this scope; *ret_first (if not NULL) is then that use. */
	int (*claim)(struct store *st, const struct store_once *o, struct store_once *ret_first,
		     struct err *err);
	/* The use of this key in this scope; o->target does not matter. */
	int (*find)(struct store *st, const struct store_once *o, struct store_once *ret,
		    struct err *err);
	int (*prune)(struct store *st, int64_t before, struct err *err);
};

struct store_event_ops {
	/* Sets e->id. For what goes with no change of a session. */
	int (*append)(struct store *st, struct store_event *e, struct err *err);
	/* After this id, in order; of one tenant and one session unless NULL. */
	int (*since)(struct store *st, int64_t id, const char *tenant, const char *session,
		     unsigned limit, struct store_event_list *ret, struct err *err);
	/* The newest id ever given; 0 before the first. */
	int (*last)(struct store *st, int64_t *ret, struct err *err);
	int (*prune)(struct store *st, int64_t before, struct err *err);
};

struct store_project_ops {
	/* Sets p->seq. */
	int (*add)(struct store *st, struct store_project *p, struct err *err);
	int (*get)(struct store *st, const char *tenant, const char *id, struct store_project *ret,
		   struct err *err);
	/* Those the user owns or is in the team of; all with NULL. Oldest first. */
	int (*list)(struct store *st, const char *tenant, const char *user, struct store_page page,
		    struct store_project_list *ret, struct err *err);
	/* With its fragments. */
	int (*remove)(struct store *st, const char *tenant, const char *id, struct err *err);
};

struct store_fragment_ops {
	/* With all its files, or not at all. Sets f->seq, f->files, f->bytes. CONFLICT if the id or
	 * a path is there already, or the project is not. */
	int (*add)(struct store *st, struct store_fragment *f, const struct store_file *files,
		   size_t nfiles, struct err *err);
	int (*get)(struct store *st, const char *tenant, const char *id, struct store_fragment *ret,
		   struct err *err);
	/* By path. */
	int (*files)(struct store *st, const char *tenant, const char *id,
		     struct store_file_list *ret, struct err *err);
	/* Newest first. */
	int (*list)(struct store *st, const char *tenant, const char *project,
		    struct store_page page, struct store_fragment_list *ret, struct err *err);
	int (*remove)(struct store *st, const char *tenant, const char *id, struct err *err);
};

struct store_user_ops {
	/* Made or changed. */
	int (*put)(struct store *st, const struct store_user *u, struct err *err);
	int (*get)(struct store *st, const char *tenant, const char *id, struct store_user *ret,
		   struct err *err);
	int (*list)(struct store *st, const char *tenant, struct store_page page,
		    struct store_user_list *ret, struct err *err);
};

struct store_team_ops {
	/* In the team with this role, from now on. */
	int (*put)(struct store *st, const struct store_member *m, struct err *err);
	int (*get)(struct store *st, const char *tenant, const char *team, const char *user,
		   struct store_member *ret, struct err *err);
	/* By user. */
	int (*list)(struct store *st, const char *tenant, const char *team,
		    struct store_member_list *ret, struct err *err);
	int (*remove)(struct store *st, const char *tenant, const char *team, const char *user,
		      struct err *err);
};

struct store_key_ops {
	/* Sets k->seq. */
	int (*add)(struct store *st, struct store_key *k, struct err *err);
	int (*find)(struct store *st, const uint8_t hash[STORE_HASH], struct store_key *ret,
		    struct err *err);
	/* Of one tenant unless NULL. */
	int (*list)(struct store *st, const char *tenant, struct store_page page,
		    struct store_key_list *ret, struct err *err);
	int (*remove)(struct store *st, const char *id, struct err *err);
};

struct store_policy_ops {
	/* Sets p->seq. CONFLICT if the tenant has one of this name. */
	int (*add)(struct store *st, struct store_policy *p, struct err *err);
	/* All but tenant, name and created_at. */
	int (*update)(struct store *st, const struct store_policy *p, struct err *err);
	int (*get)(struct store *st, const char *tenant, const char *name, struct store_policy *ret,
		   struct err *err);
	/* Of one tenant unless NULL. */
	int (*list)(struct store *st, const char *tenant, struct store_page page,
		    struct store_policy_list *ret, struct err *err);
	/* CONFLICT while a session names it. */
	int (*remove)(struct store *st, const char *tenant, const char *name, struct err *err);
};

struct store_quota_ops {
	int (*set)(struct store *st, const struct store_quota *q, struct err *err);
	/* NOT_FOUND if none was set. */
	int (*get)(struct store *st, const char *tenant, const char *user, struct store_quota *ret,
		   struct err *err);
	/* CPU time used, added to what was. */
	int (*charge)(struct store *st, const char *tenant, const char *user, int64_t cpu_ms,
		      struct err *err);
	/* What is used now. NULL: all users, all tenants. `states`: bits of what counts as active.
	 */
	int (*usage)(struct store *st, const char *tenant, const char *user, uint64_t states,
		     struct store_usage *ret, struct err *err);
};

struct store_environment_ops {
	/* In the place of an earlier one. */
	int (*put)(struct store *st, const struct store_environment *v, struct err *err);
	int (*get)(struct store *st, const char *template, struct store_environment *ret,
		   struct err *err);
	/* One that is not there is success. */
	int (*remove)(struct store *st, const char *template, struct err *err);
};

struct store {
	const struct store_session_ops *session;
	const struct store_tombstone_ops *tombstone;
	const struct store_layer_ops *layer;
	const struct store_snapshot_ops *snapshot;
	const struct store_exec_ops *exec;
	const struct store_once_ops *once;
	const struct store_event_ops *event;
	const struct store_project_ops *project;
	const struct store_fragment_ops *fragment;
	const struct store_user_ops *user;
	const struct store_team_ops *team;
	const struct store_key_ops *key;
	const struct store_policy_ops *policy;
	const struct store_quota_ops *quota;
	const struct store_environment_ops *environment;
	/* Rows written since it was opened: reading never raises it. */
	int64_t (*changes)(struct store *st);
	/* While it is on, what is written outlives this process at once, but a power loss only with
	 * the next write for which it is off: for what a power loss ends anyway. */
	void (*relax)(struct store *st, bool on);
	/* A little of the disk is held back, so that on a full one what makes room can still be
	 * written. keep: see to it that it is there; else give it up, once. Whether it is, or was.
	 */
	bool (*reserve)(struct store *st, bool keep);
	void (*close)(struct store *st);
};

/* The database `path`, made if there is none. It is this process's alone until it is closed;
 * `socket` is what another opener is told, beside the process id. A file that is damaged, of a
 * newer lodge or not ours is refused and left as it is. */
int store_open_sqlite(const char *path, const char *socket, struct store **ret, struct err *err);

void store_close(struct store *st); /* NULL is allowed */
DEFINE_AUTO(struct store *, store_close);

#endif
