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

enum { HOUR_MS = 3600 * 1000 };

static int charge(struct store *db, const char *tenant, const char *user, int64_t cpu_ms,
		  int64_t at, struct err *err)
{
	if (db_run(db,
		   "INSERT INTO cpu (tenant, user, ms) VALUES (?1, ifnull(?2, ''), ?3) "
		   "ON CONFLICT DO UPDATE SET ms = ms + ?3",
		   DB_VALUES(db_text(tenant), db_text(user), db_int(cpu_ms)), err) < 0)
		return -1;
	return db_run(
		db,
		"INSERT INTO cpu_hour (tenant, user, hour, ms)"
		" VALUES (?1, ifnull(?2, ''), ?3, ?4) ON CONFLICT DO UPDATE SET ms = ms + ?4",
		DB_VALUES(db_text(tenant), db_text(user), db_int(at / HOUR_MS), db_int(cpu_ms)),
		err);
}

int store_quota_charge(struct store *st, const char *tenant, const char *user, int64_t cpu_ms,
		       int64_t at, struct err *err)
{
	if (check_text("tenant", tenant, err) < 0 || db_begin(st, err) < 0)
		return -1;
	return db_end(st, charge(st, tenant, user, cpu_ms, at, err), err);
}

int store_quota_prune(struct store *st, int64_t before, struct err *err)
{
	return db_write(st, "DELETE FROM cpu_hour WHERE hour < ?1",
			DB_VALUES(db_int(before / HOUR_MS)), err);
}

#define USER_WORDS "u.id || char(10) || ifnull(u.name, '') || char(10) || ifnull(u.email, '')"
/* All users: those with a record, a session or a quota. */
#define ALL_USERS                                                                                  \
	"WITH RECURSIVE named (id) AS (SELECT id FROM user WHERE tenant = ?1"                      \
	" UNION SELECT user FROM session WHERE tenant = ?1 AND user IS NOT NULL"                   \
	" UNION SELECT user FROM quota WHERE tenant = ?1 AND user != ''),"                         \
	" u (id, name, email) AS (SELECT named.id, user.name, user.email FROM named"               \
	" LEFT JOIN user ON user.tenant = ?1 AND user.id = named.id)"
#define MATCHES                                                                                    \
	" WHERE (?2 IS NULL OR instr(lower(" USER_WORDS "), lower(?2)))"                           \
	" AND (?3 IS NULL OR u.id = ?3)"

int store_user_rows(struct store *st, const struct store_user_query *q,
		    struct store_user_row_list *ret, int64_t *ret_total, struct err *err)
{
	/* A layer that several sessions of a user share counts once. */
	static const char sql[] = ALL_USERS
		", owned (user, id) AS (SELECT user, layer FROM session WHERE tenant = ?1"
		" AND user IS NOT NULL AND layer IS NOT NULL AND NOT (1 << state) & ?5"
		" UNION SELECT s.user, p.layer FROM snapshot AS p JOIN session AS s"
		" ON s.id = p.session WHERE p.tenant = ?1 AND s.user IS NOT NULL"
		" UNION SELECT owned.user, l.parent FROM owned JOIN layer AS l ON l.id = owned.id"
		" WHERE l.parent IS NOT NULL)"
		" SELECT u.id, u.name, u.email, ifnull(s.n, 0), ifnull(s.active, 0),"
		" ifnull(s.memory, 0), ifnull(s.disk, 0), ifnull(s.used_at, 0), ifnull(c.ms, 0),"
		" ifnull(h.ms, 0), ifnull(f.bytes, 0), ifnull(q.sandboxes, 0),"
		" ifnull(q.memory_bytes, 0), ifnull(q.disk_bytes, 0), ifnull(q.cpu_ms, 0) FROM u"
		" LEFT JOIN (SELECT user, count(*) AS n, sum(((1 << state) & ?4) != 0) AS active,"
		" sum(memory_bytes * (((1 << state) & ?4) != 0)) AS memory,"
		" sum(disk_bytes) AS disk, max(last_activity_at) AS used_at"
		" FROM session WHERE tenant = ?1 GROUP BY user) AS s ON s.user = u.id"
		" LEFT JOIN cpu AS c ON c.tenant = ?1 AND c.user = u.id"
		" LEFT JOIN (SELECT user, sum(ms) AS ms FROM cpu_hour WHERE tenant = ?1"
		" AND hour >= ?6 GROUP BY user) AS h ON h.user = u.id"
		" LEFT JOIN (SELECT user, sum(bytes) AS bytes FROM owned JOIN layer USING (id)"
		" GROUP BY user) AS f ON f.user = u.id"
		" LEFT JOIN quota AS q ON q.tenant = ?1 AND q.user = u.id" MATCHES
		" ORDER BY ifnull(s.active, 0) = 0, s.used_at DESC, u.id LIMIT ?7";

	if (check_text("tenant", q->tenant, err) < 0 || check_filter("text", q->text, err) < 0 ||
	    check_filter("id", q->id, err) < 0 ||
	    db_number(st, ALL_USERS " SELECT count(*) FROM u" MATCHES,
		      DB_VALUES(db_text(q->tenant), db_text(q->text), db_text(q->id)), ret_total,
		      err) < 0)
		return -1;
	return db_get_list(st, sql,
			   DB_VALUES(db_text(q->tenant), db_text(q->text), db_text(q->id),
				     db_int((int64_t)q->states), db_int((int64_t)q->live),
				     db_int(q->since / HOUR_MS), db_int(STORE_USERS_MAX)),
			   &columns_user_row, ret, err);
}

int store_tenant_sessions(struct store *st, struct store_tenant_sum_list *ret, struct err *err)
{
	static const char sql[] = "SELECT tenant, state, count(*) FROM session"
				  " GROUP BY tenant, state ORDER BY min(seq)";

	return db_get_list(st, sql, NULL, 0, &columns_tenant_sum, ret, err);
}

int store_tenant_layers(struct store *st, uint64_t live, struct store_tenant_sum_list *ret,
			struct err *err)
{
	/* A layer that several sessions of a tenant share counts once. */
	static const char sql[] =
		"WITH RECURSIVE owned (tenant, id) AS (SELECT tenant, layer FROM session"
		" WHERE layer IS NOT NULL AND NOT (1 << state) & ?1"
		" UNION SELECT tenant, layer FROM snapshot"
		" UNION SELECT owned.tenant, l.parent FROM owned JOIN layer AS l"
		" ON l.id = owned.id WHERE l.parent IS NOT NULL)"
		" SELECT tenant, 0, sum(bytes) FROM owned JOIN layer USING (id) GROUP BY tenant";

	return db_get_list(st, sql, DB_VALUES(db_int((int64_t)live)), &columns_tenant_sum, ret,
			   err);
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
