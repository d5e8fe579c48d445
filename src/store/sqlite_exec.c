/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record_check.h"
#include "store/sqlite_db.h"

/* ---- execs --------------------------------------------------------------------------------- */

int store_exec_record(struct store *st, struct store_exec *e, struct err *err)
{
	return db_add_record(st, COLUMNS_INSERT(exec), &columns_exec, e, e->id, &e->seq, err);
}

int store_exec_get(struct store *st, const char *id, struct store_exec *ret, struct err *err)
{
	return db_get_record(st, COLUMNS_SELECT(exec, "WHERE id = ?1"), DB_VALUES(db_text(id)),
			     &columns_exec, ret, "exec", id, err);
}

int store_exec_finish(struct store *st, const struct store_exec *e, struct err *err)
{
	struct store_exec was;
	int changed = db_write_record(
		st, "UPDATE exec SET " COLUMNS_SET(exec_result) " WHERE id = :id AND state = 0",
		&columns_exec, e, err);

	if (changed != 0)
		return changed < 0 ? -1 : 0;
	if (store_exec_get(st, e->id, &was, err) < 0)
		return -1;
	store_exec_fini(&was);
	return err_set(err, ERR_CONFLICT, "exec %s has already ended", e->id);
}

int store_exec_finish_all(struct store *st, const char *session, const struct store_exec *end,
			  struct err *err)
{
	return db_write(st,
			"UPDATE exec SET state = ?2, exit_code = ?3, signal = ?4, ended_at = ?5,"
			" reason = ?6 WHERE session = ?1 AND state = 0",
			DB_VALUES(db_text(session), db_int(end->state), db_int(end->exit_code),
				  db_int(end->signal), db_int(end->ended_at), db_text(end->reason)),
			err);
}

int store_exec_count_running(struct store *st, const char *session, int64_t *ret, struct err *err)
{
	return db_number(st, "SELECT count(*) FROM exec WHERE session = ?1 AND state = 0",
			 DB_VALUES(db_text(session)), ret, err);
}

int store_exec_list(struct store *st, const char *session, struct store_page page,
		    struct store_exec_list *ret, struct err *err)
{
	return db_get_page(st, COLUMNS_SELECT(exec, "WHERE session = ?1" DB_PAGE),
			   DB_VALUES(db_text(session)), &columns_exec, page, ret, err);
}

int store_exec_prune(struct store *st, int64_t before, struct err *err)
{
	return db_write(st, "DELETE FROM exec WHERE state > 0 AND ended_at < ?1",
			DB_VALUES(db_int(before)), err);
}

/* ---- idempotency keys --------------------------------------------------------------------- */

int store_once_find(struct store *st, const struct store_once *o, struct store_once *ret,
		    struct err *err)
{
	return db_get_record(st,
			     COLUMNS_SELECT(once, "WHERE tenant = ?1 AND scope = ?2 AND key = ?3"),
			     DB_VALUES(db_text(o->tenant), db_text(o->scope), db_text(o->key)),
			     &columns_once, ret, "idempotency key", o->key, err);
}

int store_once_claim(struct store *st, const struct store_once *o, struct store_once *ret_first,
		     struct err *err)
{
	struct store_once first;
	int changed = db_write_record(st, COLUMNS_INSERT(once) " ON CONFLICT DO NOTHING",
				      &columns_once, o, err);

	if (changed != 0)
		return changed < 0 ? -1 : 0;
	if (store_once_find(st, o, &first, err) < 0)
		return -1;
	if (ret_first)
		*ret_first = first;
	return err_set(err, ERR_CONFLICT, "idempotency key %s was already used: %s", o->key,
		       first.target);
}

int store_once_prune(struct store *st, int64_t before, struct err *err)
{
	return db_write(st, "DELETE FROM once WHERE created_at < ?1", DB_VALUES(db_int(before)),
			err);
}
