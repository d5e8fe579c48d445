/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on the number of records: with retention by time alone the database would grow with the
 * number of requests. */
#include "base/array.h"
#include "store/sqlite_db.h"

/* Of each owner with more than ?1 rows, those after the newest ?1. */
#define OLDEST(id, table, owner, order)                                                            \
	"(" id ") IN (SELECT " id " FROM (SELECT " id ", row_number() OVER (PARTITION BY " owner   \
	" ORDER BY " order " DESC) AS n FROM " table " WHERE " owner " IN (SELECT " owner          \
	" FROM " table " GROUP BY " owner " HAVING count(*) > ?1)) WHERE n > ?1)"

int store_exec_trim(struct store *st, const char *session, int64_t max, struct err *err)
{
	return db_write(st,
			"DELETE FROM exec WHERE session = ?1 AND state > 0 AND seq <= (SELECT seq"
			" FROM exec WHERE session = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)",
			DB_VALUES(db_text(session), db_int(max)), err);
}

int store_trim(struct store *st, int64_t execs_of_session, int64_t rows_of_tenant, struct err *err)
{
	const struct {
		const char *sql;
		int64_t max;
	} tables[] = {
		{ "DELETE FROM exec WHERE state > 0 AND " OLDEST("seq", "exec", "session", "seq"),
		  execs_of_session },
		{ "DELETE FROM exec WHERE state > 0 AND " OLDEST("seq", "exec", "tenant", "seq"),
		  rows_of_tenant },
		{ "DELETE FROM event WHERE " OLDEST("id", "event", "tenant", "id"),
		  rows_of_tenant },
		{ "DELETE FROM tombstone WHERE " OLDEST("session", "tombstone", "tenant",
							"cause_at"),
		  rows_of_tenant },
		{ "DELETE FROM ended_sandbox WHERE " OLDEST("id", "ended_sandbox", "tenant",
							    "cause_at"),
		  rows_of_tenant },
		{ "DELETE FROM once WHERE " OLDEST("tenant, scope, key", "once", "tenant",
						   "created_at"),
		  rows_of_tenant },
	};

	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		if (db_write(st, tables[i].sql, DB_VALUES(db_int(tables[i].max)), err) < 0)
			return -1;
	return 0;
}
