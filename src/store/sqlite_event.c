/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record_check.h"
#include "store/sqlite_db.h"

int sqlite_event_insert(struct store *db, const struct store_event *ev, int64_t *ret_id,
			struct err *err)
{
	if (db_run_record(db, COLUMNS_INSERT(event), &columns_event, ev, err) < 0)
		return -1;
	*ret_id = sqlite3_last_insert_rowid(db->sql);
	return 0;
}

int store_event_append(struct store *st, struct store_event *e, struct err *err)
{
	int64_t id = 0;

	if (check_event(e, err) < 0 || db_begin(st, err) < 0)
		return -1;
	if (db_end(st, sqlite_event_insert(st, e, &id, err), err) < 0)
		return -1;
	e->id = id;
	return 0;
}

int store_event_since(struct store *st, int64_t id, const char *tenant, const char *session,
		      unsigned limit, struct store_event_list *ret, struct err *err)
{
	const char *sql =
		session ? COLUMNS_SELECT(event) " WHERE id > ?1"
						" AND (?2 IS NULL OR tenant = ?2) AND session = ?3"
						" ORDER BY id LIMIT ?4"
			: COLUMNS_SELECT(
				  event) " WHERE id > ?1"
					 " AND (?2 IS NULL OR tenant = ?2) ORDER BY id LIMIT ?4";
	struct store_page page = { .after = id, .limit = limit };

	if (check_page(page, err) < 0 || check_filter("tenant", tenant, err) < 0 ||
	    check_filter("session", session, err) < 0)
		return -1;
	return db_get_list(
		st, sql,
		DB_VALUES(db_int(id), db_text(tenant), db_text(session), db_int(limit + 1)),
		&columns_event, limit, ret, err);
}

int store_event_last(struct store *st, int64_t *ret, struct err *err)
{
	return db_number(st, "SELECT seq FROM sqlite_sequence WHERE name = 'event'", NULL, 0, ret,
			 err);
}

int store_event_prune(struct store *st, int64_t before, struct err *err)
{
	return db_write(st, "DELETE FROM event WHERE cause_at < ?1", DB_VALUES(db_int(before)),
			err) < 0
		       ? -1
		       : 0;
}
