/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record_check.h"
#include "store/sqlite_db.h"

int store_event_append(struct store *st, struct store_event *e, struct err *err)
{
	if (db_write_record(st, COLUMNS_INSERT(event), &columns_event, e, err) < 0)
		return -1;
	e->id = sqlite3_last_insert_rowid(st->sql);
	return 0;
}

#define EVENTS COLUMNS_SELECT(event, "WHERE (?1 IS NULL OR tenant = ?1)")
#define AFTER " AND id > :after ORDER BY id LIMIT :limit"

int store_event_since(struct store *st, int64_t id, const char *tenant, const char *session,
		      unsigned limit, struct store_event_list *ret, struct err *err)
{
	/* Two statements, so that the one with a session uses its index. */
	const char *sql =
		session ? EVENTS " AND session = ?2" AFTER : EVENTS " AND ?2 IS NULL" AFTER;
	struct store_page page = { .after = id, .limit = limit };

	if (check_filter("tenant", tenant, err) < 0 || check_filter("session", session, err) < 0)
		return -1;
	return db_get_page(st, sql, DB_VALUES(db_text(tenant), db_text(session)), &columns_event,
			   page, ret, err);
}

int store_event_last(struct store *st, int64_t *ret, struct err *err)
{
	return db_number(st, "SELECT seq FROM sqlite_sequence WHERE name = 'event'", NULL, 0, ret,
			 err);
}

int store_event_prune(struct store *st, int64_t before, struct err *err)
{
	return db_write(st, "DELETE FROM event WHERE cause_at < ?1", DB_VALUES(db_int(before)),
			err);
}
