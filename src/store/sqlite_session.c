/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "store/record_check.h"
#include "store/sqlite_sandbox.h"
#include "store/sqlite_user.h"

/* ---- reading ------------------------------------------------------------------------------- */

static int read_bindings(struct store *db, struct store_session *s, struct err *err)
{
	struct {
		struct store_binding *items;
		size_t count;
		int64_t next;
	} l;

	if (db_get_list(db, COLUMNS_SELECT(binding, "WHERE session = ?1 ORDER BY kind, key"),
			DB_VALUES(db_text(s->id)), &columns_binding, &l, err) < 0)
		return -1;
	s->bindings = l.items;
	s->nbindings = l.count;
	return 0;
}

static int get_session(struct store *db, const char *sql, const struct db_value *values, size_t n,
		       const char *what, const char *name, struct store_session *ret,
		       struct err *err)
{
	struct store_session s = { 0 };

	if (db_get_record(db, sql, values, n, &columns_session, &s, what, name, err) < 0)
		return -1;
	if (read_bindings(db, &s, err) < 0) {
		store_session_fini(&s);
		return -1;
	}
	*ret = s;
	return 0;
}

int store_session_get(struct store *st, const char *id, struct store_session *ret, struct err *err)
{
	return get_session(st, COLUMNS_SELECT(session, "WHERE id = ?1"), DB_VALUES(db_text(id)),
			   "session", id, ret, err);
}

int store_session_find(struct store *st, const char *tenant, const struct store_binding *by,
		       struct store_session *ret, struct err *err)
{
	return get_session(st,
			   COLUMNS_SELECT(session,
					  "WHERE id = (SELECT session FROM binding"
					  " WHERE tenant = ?1 AND kind = ?2 AND key = ?3)"),
			   DB_VALUES(db_text(tenant), db_text(by->kind), db_text(by->key)),
			   "session of", by->key, ret, err);
}

int store_session_find_sandbox(struct store *st, const char *sandbox, struct store_session *ret,
			       struct err *err)
{
	return get_session(st, COLUMNS_SELECT(session, "WHERE sandbox = ?1"),
			   DB_VALUES(db_text(sandbox)), "session of sandbox", sandbox, ret, err);
}

static int get_sessions(struct store *db, const char *sql, const struct db_value *values, size_t n,
			struct store_page page, struct store_session_list *ret, struct err *err)
{
	struct store_session_list l;

	if (db_get_page(db, sql, values, n, &columns_session, page, &l, err) < 0)
		return -1;
	for (size_t i = 0; i < l.count; i++)
		if (read_bindings(db, &l.items[i], err) < 0) {
			store_session_list_fini(&l);
			return -1;
		}
	*ret = l;
	return 0;
}

#define TENANT_AND_USER "WHERE (?1 IS NULL OR tenant = ?1) AND (?2 IS NULL OR user = ?2)"
#define FILTER                                                                                     \
	" AND (?3 IS NULL OR project = ?3) AND (?4 = 0 OR (1 << state) & ?4)"                      \
	" AND (?5 IS NULL OR EXISTS (SELECT 1 FROM json_each(session.metadata) AS m"               \
	" WHERE m.key = ?5 AND m.type = 'text' AND m.value = ?6))"                                 \
	" AND (?7 IS NULL OR template = ?7) AND (?8 IS NULL OR policy = ?8)"

/* The values ?1 to ?8, as two arguments. */
#define FILTER_VALUES(f)                                                                           \
	DB_VALUES(db_text((f)->tenant), db_text((f)->user), db_text((f)->project),                 \
		  db_int((int64_t)(f)->states), db_text((f)->meta_key), db_text((f)->meta_value),  \
		  db_text((f)->template), db_text((f)->policy))

int store_session_list(struct store *st, const struct store_session_filter *f,
		       struct store_page page, struct store_session_list *ret, struct err *err)
{
	/* Two statements, so that the one with a user uses its index. */
	const char *sql =
		f->tenant && f->user
			? COLUMNS_SELECT(session, "WHERE tenant = ?1 AND user = ?2" FILTER DB_PAGE)
			: COLUMNS_SELECT(session, TENANT_AND_USER FILTER DB_PAGE);

	if (check_session_filter(f, err) < 0)
		return -1;
	return get_sessions(st, sql, FILTER_VALUES(f), page, ret, err);
}

int store_session_count(struct store *st, const struct store_session_filter *f, int64_t *ret,
			struct err *err)
{
	/* A query by template alone uses its index. */
	const char *sql = f->template ? "SELECT count(*) FROM session " TENANT_AND_USER
					" AND template = ?7" FILTER
				      : "SELECT count(*) FROM session " TENANT_AND_USER FILTER;

	if (check_session_filter(f, err) < 0)
		return -1;
	return db_number(st, sql, FILTER_VALUES(f), ret, err);
}

/* There is no cursor in these two: callers process the list and query again. */
int store_session_find_due(struct store *st, int64_t now, unsigned limit,
			   struct store_session_list *ret, struct err *err)
{
	return get_sessions(
		st,
		COLUMNS_SELECT(session,
			       "WHERE due_at > 0 AND due_at <= ?1 ORDER BY due_at, seq LIMIT ?2"),
		DB_VALUES(db_int(now), db_int(limit)), (struct store_page){ .limit = limit }, ret,
		err);
}

int store_session_find_deep(struct store *st, uint64_t states, unsigned depth, unsigned limit,
			    struct store_session_list *ret, struct err *err)
{
	static const char sql[] = COLUMNS_SELECT(
		session, "AS s WHERE layer IS NOT NULL AND (1 << state) & ?1 AND ?2 < ("
			 "WITH RECURSIVE down (id, n) AS (SELECT s.layer, 1 UNION ALL"
			 " SELECT l.parent, n + 1 FROM down JOIN layer AS l ON l.id = down.id"
			 " WHERE l.parent IS NOT NULL AND n <= ?2) SELECT max(n) FROM down)"
			 " ORDER BY seq LIMIT ?3");

	return get_sessions(st, sql,
			    DB_VALUES(db_int((int64_t)states), db_int(depth), db_int(limit)),
			    (struct store_page){ .limit = limit }, ret, err);
}

/* ---- writing, inside a transaction --------------------------------------------------------- */

/* The bindings of a record are sorted: this is the one that callers see. */
static void copy_key(const struct store_session *s, char ret[STORE_KEY])
{
	for (size_t i = 0; i < s->nbindings; i++)
		if (strcmp(s->bindings[i].kind, "key") == 0) {
			memcpy(ret, s->bindings[i].key, STORE_KEY);
			return;
		}
}

static int add_event(struct store *db, const struct store_session *s, const struct store_event *ev,
		     struct err *err)
{
	struct store_event e;

	if (!ev)
		return 0;
	e = *ev; /* shares ev->data, which the caller owns */
	memcpy(e.tenant, s->tenant, sizeof(e.tenant));
	memcpy(e.session, s->id, sizeof(e.session));
	memcpy(e.user, s->user, sizeof(e.user));
	copy_key(s, e.key);
	e.version = s->version;
	db->events++;
	return db_run_record(db, COLUMNS_INSERT(event), &columns_event, &e, err);
}

static int bind_key(struct store *db, const char *tenant, const struct store_binding *b,
		    const char *session, struct err *err)
{
	if (db_run(db, "INSERT INTO binding (tenant, kind, key, session) VALUES (?1, ?2, ?3, ?4)",
		   DB_VALUES(db_text(tenant), db_text(b->kind), db_text(b->key), db_text(session)),
		   err) < 0)
		return err_ctx(err, "%s %s", b->kind, b->key);
	return 0;
}

static int check_policy_exists(struct store *db, const struct store_session *s, struct err *err)
{
	int64_t there;

	if (!*s->policy)
		return 0;
	if (db_number(db, "SELECT count(*) FROM policy WHERE tenant = ?1 AND name = ?2",
		      DB_VALUES(db_text(s->tenant), db_text(s->policy)), &there, err) < 0)
		return -1;
	return there ? 0 : err_set(err, ERR_CONFLICT, "policy %s does not exist", s->policy);
}

static int insert_session(struct store *db, struct store_session *s, const struct store_event *ev,
			  struct err *err)
{
	s->version = 1;
	if (check_policy_exists(db, s, err) < 0 ||
	    db_run_record(db, COLUMNS_INSERT(session), &columns_session, s, err) < 0)
		return err_ctx(err, "session %s", s->id);
	s->seq = sqlite3_last_insert_rowid(db->sql);
	for (size_t i = 0; i < s->nbindings; i++)
		if (bind_key(db, s->tenant, &s->bindings[i], s->id, err) < 0)
			return -1;
	return add_event(db, s, ev, err);
}

/* 1: written; 0: not the current version, or no such session. */
static int update_record(struct store *db, struct store_session *s, const struct store_event *ev,
			 struct err *err)
{
	static const char sql[] = "UPDATE session SET version = :version + 1, " COLUMNS_SET(
		session_state) " WHERE id = :id AND version = :version";
	int changed = db_run_record(db, sql, &columns_session, s, err);

	if (changed <= 0)
		return changed;
	s->version++;
	return add_event(db, s, ev, err) < 0 ? -1 : 1;
}

static int insert_tombstone(struct store *db, const struct store_session *s, struct err *err)
{
	struct store_tombstone t = { .created_at = s->created_at, .cause = s->cause };

	memcpy(t.session, s->id, sizeof(t.session));
	memcpy(t.tenant, s->tenant, sizeof(t.tenant));
	memcpy(t.user, s->user, sizeof(t.user));
	/* Keep the first cause. */
	if (db_run_record(db, COLUMNS_INSERT(tombstone) " ON CONFLICT DO NOTHING",
			  &columns_tombstone, &t, err) < 0)
		return -1;
	if (db_run(db,
		   "INSERT OR REPLACE INTO tombstone_key (tenant, kind, key, session) "
		   "SELECT tenant, kind, key, session FROM binding WHERE session = ?1",
		   DB_VALUES(db_text(s->id)), err) < 0)
		return -1;
	return db_run(db, "DELETE FROM binding WHERE session = ?1", DB_VALUES(db_text(s->id)), err);
}

static int begin_change(struct store *db, const struct store_session *s,
			const struct store_event *ev, struct err *err)
{
	if (check_session(s, err) < 0 || (ev && check_record(&columns_event, ev, err) < 0))
		return -1;
	return db_begin(db, err);
}

/* ---- the calls ----------------------------------------------------------------------------- */

int store_session_create(struct store *st, struct store_session *s, const struct store_event *ev,
			 struct err *err)
{
	int64_t seq = s->seq, version = s->version;

	if (begin_change(st, s, ev, err) < 0)
		return -1;
	if (db_end(st, insert_session(st, s, ev, err), err) == 0)
		return 0;
	s->seq = seq;
	s->version = version;
	return -1;
}

/* Fails with the current record after an update that found another version. */
static int fail_with_current(struct store *st, const struct store_session *s,
			     struct store_session *ret_now, struct err *err)
{
	struct store_session now;

	if (store_session_get(st, s->id, &now, err) < 0)
		return -1;
	err_set(err, ERR_CONFLICT, "session %s is at version %lld, not %lld", s->id,
		(long long)now.version, (long long)s->version);
	if (ret_now)
		*ret_now = now;
	else
		store_session_fini(&now);
	return -1;
}

static int write_session(struct store *st, struct store_session *s, const struct store_event *ev,
			 bool destroyed, struct store_session *ret_now, struct err *err)
{
	int64_t version = s->version;
	int written;

	if (begin_change(st, s, ev, err) < 0)
		return -1;
	written = sqlite_sandbox_note_end(st, s, destroyed, err);
	if (written >= 0)
		written = update_record(st, s, ev, err);
	if (written > 0 && destroyed && insert_tombstone(st, s, err) < 0)
		written = -1;
	if (db_end(st, written, err) < 0) {
		s->version = version;
		return err_ctx(err, "session %s", s->id);
	}
	return written > 0 ? 0 : fail_with_current(st, s, ret_now, err);
}

int store_session_update(struct store *st, struct store_session *s, const struct store_event *ev,
			 struct store_session *ret_now, struct err *err)
{
	return write_session(st, s, ev, false, ret_now, err);
}

int store_session_mark_destroyed(struct store *st, struct store_session *s,
				 const struct store_event *ev, struct store_session *ret_now,
				 struct err *err)
{
	return write_session(st, s, ev, true, ret_now, err);
}

int store_session_remove(struct store *st, const char *id, struct err *err)
{
	return db_change(st, "DELETE FROM session WHERE id = ?1", DB_VALUES(db_text(id)), "session",
			 id, err);
}

static int delete_session(struct store *db, const struct store_session *s,
			  const struct store_event *ev, struct err *err)
{
	int gone;

	if (db_run(db, "DELETE FROM binding WHERE session = ?1", DB_VALUES(db_text(s->id)), err) <
	    0)
		return -1;
	gone = db_run(db, "DELETE FROM session WHERE id = ?1 AND version = ?2",
		      DB_VALUES(db_text(s->id), db_int(s->version)), err);
	if (gone == 0)
		return err_set(err, ERR_NOT_FOUND, "session %s does not exist or has changed",
			       s->id);
	return gone < 0 ? -1 : add_event(db, s, ev, err);
}

int store_session_retract(struct store *st, const struct store_session *s,
			  const struct store_event *ev, struct err *err)
{
	if (begin_change(st, s, ev, err) < 0)
		return -1;
	return db_end(st, delete_session(st, s, ev, err), err);
}

static int raise_version(struct store *db, const char *session, struct err *err)
{
	return db_run(db, "UPDATE session SET version = version + 1 WHERE id = ?1",
		      DB_VALUES(db_text(session)), err);
}

static int remove_key(struct store *db, const char *tenant, const struct store_binding *b,
		      const char *session, struct err *err)
{
	int changed = db_run(
		db,
		"DELETE FROM binding "
		"WHERE tenant = ?1 AND kind = ?2 AND key = ?3 AND session = ?4",
		DB_VALUES(db_text(tenant), db_text(b->kind), db_text(b->key), db_text(session)),
		err);

	if (changed == 0)
		return err_set(err, ERR_CONFLICT, "%s %s does not belong to session %s", b->kind,
			       b->key, session);
	return changed < 0 ? -1 : raise_version(db, session, err);
}

static int move_key(struct store *db, const char *tenant, const struct store_binding *key,
		    const char *from, const char *to, const struct store_user *u, struct err *err)
{
	if (from && remove_key(db, tenant, key, from, err) < 0)
		return -1;
	if (to && (bind_key(db, tenant, key, to, err) < 0 || raise_version(db, to, err) < 0))
		return -1;
	return u ? sqlite_user_put(db, u, err) : 0;
}

int store_session_rebind(struct store *st, const char *tenant, const struct store_binding *key,
			 const char *from, const char *to, const struct store_user *u,
			 struct err *err)
{
	if (check_record(&columns_binding, key, err) < 0 || db_begin(st, err) < 0)
		return -1;
	return db_end(st, move_key(st, tenant, key, from, to, u, err), err);
}

/* ---- tombstones ---------------------------------------------------------------------------- */

int store_tombstone_get(struct store *st, const char *session, struct store_tombstone *ret,
			struct err *err)
{
	return db_get_record(st, COLUMNS_SELECT(tombstone, "WHERE session = ?1"),
			     DB_VALUES(db_text(session)), &columns_tombstone, ret,
			     "tombstone of session", session, err);
}

int store_tombstone_find(struct store *st, const char *tenant, const struct store_binding *by,
			 struct store_tombstone *ret, struct err *err)
{
	return db_get_record(st,
			     COLUMNS_SELECT(tombstone,
					    "WHERE session = (SELECT session FROM tombstone_key"
					    " WHERE tenant = ?1 AND kind = ?2 AND key = ?3)"),
			     DB_VALUES(db_text(tenant), db_text(by->kind), db_text(by->key)),
			     &columns_tombstone, ret, "tombstone of", by->key, err);
}

int store_tombstone_prune(struct store *st, int64_t before, struct err *err)
{
	return db_write(st, "DELETE FROM tombstone WHERE cause_at < ?1", DB_VALUES(db_int(before)),
			err);
}
