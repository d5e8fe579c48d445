/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record_check.h"
#include "store/sqlite_db.h"

int store_quota_set(struct store *st, const struct store_quota *q, struct err *err)
{
	return db_write_record(st, COLUMNS_REPLACE(quota), &columns_quota, q, err) < 0 ? -1 : 0;
}

int store_quota_get(struct store *st, const char *tenant, const char *user, struct store_quota *ret,
		    struct err *err)
{
	return db_get_record(st,
			     COLUMNS_SELECT(quota, "WHERE tenant = ?1 AND user = ifnull(?2, '')"),
			     DB_VALUES(db_text(tenant), db_text(user)), &columns_quota, ret,
			     "quota of", user, err);
}

int store_quota_charge(struct store *st, const char *tenant, const char *user, int64_t cpu_ms,
		       struct err *err)
{
	if (check_text("tenant", tenant, err) < 0)
		return -1;
	return db_write(st,
			"INSERT INTO cpu (tenant, user, ms) VALUES (?1, ifnull(?2, ''), ?3) "
			"ON CONFLICT DO UPDATE SET ms = ms + ?3",
			DB_VALUES(db_text(tenant), db_text(user), db_int(cpu_ms)), err);
}

#define USAGE                                                                                      \
	"SELECT count(*), sum(disk_bytes), sum(((1 << state) & ?3) != 0),"                         \
	" sum(memory_bytes * (((1 << state) & ?3) != 0)) FROM session WHERE "

static int count_sessions(struct store *db, const char *tenant, const char *user, uint64_t states,
			  struct store_usage *u, struct err *err)
{
	auto_call(db_reset) sqlite3_stmt *stmt = NULL;
	const char *sql = tenant && user ? USAGE "tenant = ?1 AND user = ?2"
					 : USAGE
				  "(?1 IS NULL OR tenant = ?1) AND (?2 IS NULL OR user = ?2)";

	if (db_start(db, sql, DB_VALUES(db_text(tenant), db_text(user), db_int((int64_t)states)),
		     &stmt, err) < 0 ||
	    db_next(db, stmt, err) < 0)
		return -1;
	u->sessions = sqlite3_column_int64(stmt, 0);
	u->disk_bytes = sqlite3_column_int64(stmt, 1);
	u->active = sqlite3_column_int64(stmt, 2);
	u->memory_bytes = sqlite3_column_int64(stmt, 3);
	return 0;
}

int store_quota_usage(struct store *st, const char *tenant, const char *user, uint64_t states,
		      struct store_usage *ret, struct err *err)
{
	struct store_usage u = { 0 };

	if (check_filter("tenant", tenant, err) < 0 || check_filter("user", user, err) < 0 ||
	    count_sessions(st, tenant, user, states, &u, err) < 0)
		return -1;
	if (db_number(st,
		      "SELECT sum(ms) FROM cpu WHERE (?1 IS NULL OR tenant = ?1) "
		      "AND (?2 IS NULL OR user = ?2)",
		      DB_VALUES(db_text(tenant), db_text(user)), &u.cpu_ms, err) < 0)
		return -1;
	*ret = u;
	return 0;
}
