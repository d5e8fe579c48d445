/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record_check.h"
#include "store/sqlite_db.h"

#define COLUMNS                                                                                    \
	"seq, id, tenant, session, incarnation, number, state, background, timed_out, "            \
	"oom_killed, "                                                                             \
	"truncated, exit_code, signal, started_at, ended_at, stdout_bytes, stderr_bytes, cpu_ms, " \
	"max_rss_bytes, hits, command"

/* ---- commands ------------------------------------------------------------------------------ */

int store_exec_record(struct store *st, struct store_exec *e, struct err *err)
{
	if (check_exec(e, err) < 0)
		return -1;
	return db_add_record(db_of(st),
			     "INSERT INTO exec (" COLUMNS ") VALUES (NULL, ?2, ?3, ?4, ?5, ?6, "
			     "?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, "
			     "?20, ?21)",
			     &shape_exec, e, "exec", e->id, &e->seq, err);
}

int store_exec_get(struct store *st, const char *id, struct store_exec *ret, struct err *err)
{
	return db_get_record(db_of(st), "SELECT " COLUMNS " FROM exec WHERE id = ?1",
			     DB_VALUES(db_text(id)), &shape_exec, ret, "exec", id, err);
}

int store_exec_finish(struct store *st, const struct store_exec *e, struct err *err)
{
	struct db *db = db_of(st);
	struct store_exec was;
	int changed;

	if (check_exec(e, err) < 0 || db_begin(db, err) < 0)
		return -1;
	changed = db_run_record(db,
				"UPDATE exec SET (state, timed_out, oom_killed, truncated, "
				"exit_code, signal, ended_at, stdout_bytes, stderr_bytes, cpu_ms, "
				"max_rss_bytes, hits) = (?7, ?9, ?10, ?11, ?12, ?13, ?15, ?16, "
				"?17, ?18, ?19, ?20) WHERE id = ?2 AND state = 0",
				&shape_exec, e, err);
	if (db_end(db, changed, err) < 0)
		return -1;
	if (changed > 0)
		return 0;
	if (store_exec_get(st, e->id, &was, err) < 0)
		return -1;
	store_exec_fini(&was);
	return err_set(err, ERR_CONFLICT, "exec %s has ended already", e->id);
}

int store_exec_finish_all(struct store *st, const char *session, uint8_t state, int64_t at,
			  struct err *err)
{
	int changed = db_write(db_of(st),
			       "UPDATE exec SET state = ?2, ended_at = ?3 "
			       "WHERE session = ?1 AND state = 0",
			       DB_VALUES(db_text(session), db_int(state), db_int(at)), err);

	return changed < 0 ? -1 : 0;
}

int store_exec_list(struct store *st, const char *session, struct store_page page,
		    struct store_exec_list *ret, struct err *err)
{
	size_t count;
	void *items;

	if (check_page(page, err) < 0 ||
	    db_get_records(db_of(st),
			   "SELECT " COLUMNS " FROM exec WHERE session = ?1 AND seq > ?2 "
			   "ORDER BY seq LIMIT ?3",
			   DB_VALUES(db_text(session), db_int(page.after), db_int(page.limit + 1)),
			   &shape_exec, &items, &count, err) < 0)
		return -1;
	*ret = (struct store_exec_list){ .items = items, .count = count };
	if (db_trim(&shape_exec, items, &ret->count, page.limit))
		ret->next = ret->items[page.limit - 1].seq;
	return 0;
}

int store_exec_prune(struct store *st, int64_t before, struct err *err)
{
	int changed = db_write(db_of(st), "DELETE FROM exec WHERE state > 0 AND ended_at < ?1",
			       DB_VALUES(db_int(before)), err);

	return changed < 0 ? -1 : 0;
}

/* ---- keys of repeated requests ------------------------------------------------------------- */

int store_once_find(struct store *st, const struct store_once *o, struct store_once *ret,
		    struct err *err)
{
	return db_get_record(db_of(st),
			     "SELECT tenant, scope, key, target, created_at FROM once "
			     "WHERE tenant = ?1 AND scope = ?2 AND key = ?3",
			     DB_VALUES(db_text(o->tenant), db_text(o->scope), db_text(o->key)),
			     &shape_once, ret, "use of", o->key, err);
}

int store_once_claim(struct store *st, const struct store_once *o, struct store_once *ret_first,
		     struct err *err)
{
	struct db *db = db_of(st);
	struct store_once first;
	int changed;

	if (check_once(o, err) < 0 || db_begin(db, err) < 0)
		return -1;
	changed = db_run_record(db,
				"INSERT INTO once (tenant, scope, key, target, created_at) "
				"VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
				&shape_once, o, err);
	if (db_end(db, changed, err) < 0)
		return -1;
	if (changed > 0)
		return 0;
	if (store_once_find(st, o, &first, err) < 0)
		return -1;
	if (ret_first)
		*ret_first = first;
	return err_set(err, ERR_CONFLICT, "%s was used already: %s", o->key, first.target);
}

int store_once_prune(struct store *st, int64_t before, struct err *err)
{
	int changed = db_write(db_of(st), "DELETE FROM once WHERE created_at < ?1",
			       DB_VALUES(db_int(before)), err);

	return changed < 0 ? -1 : 0;
}
