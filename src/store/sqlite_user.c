/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_user.h"

#include "store/record_check.h"

/* ---- users --------------------------------------------------------------------------------- */

int sqlite_user_put(struct store *db, const struct store_user *u, struct err *err)
{
	if (check_record(&columns_user, u, err) < 0)
		return -1;
	return db_run_record(
		db,
		COLUMNS_INSERT(user) " ON CONFLICT (tenant, id) DO UPDATE SET " COLUMNS_SET(
			user_state),
		&columns_user, u, err);
}

int store_user_put(struct store *st, const struct store_user *u, struct err *err)
{
	if (db_begin(st, err) < 0)
		return -1;
	return db_end(st, sqlite_user_put(st, u, err), err);
}

int store_user_get(struct store *st, const char *tenant, const char *id, struct store_user *ret,
		   struct err *err)
{
	return db_get_record(st, COLUMNS_SELECT(user, "WHERE tenant = ?1 AND id = ?2"),
			     DB_VALUES(db_text(tenant), db_text(id)), &columns_user, ret, "user",
			     id, err);
}

int store_user_list(struct store *st, const char *tenant, struct store_page page,
		    struct store_user_list *ret, struct err *err)
{
	return db_get_page(st, COLUMNS_SELECT(user, "WHERE tenant = ?1" DB_PAGE),
			   DB_VALUES(db_text(tenant)), &columns_user, page, ret, err);
}

/* ---- teams --------------------------------------------------------------------------------- */

int store_team_put(struct store *st, const struct store_member *m, struct err *err)
{
	return db_write_record(st, COLUMNS_REPLACE(member), &columns_member, m, err) < 0 ? -1 : 0;
}

int store_team_get(struct store *st, const char *tenant, const char *team, const char *user,
		   struct store_member *ret, struct err *err)
{
	return db_get_record(
		st, COLUMNS_SELECT(member, "WHERE tenant = ?1 AND team = ?2 AND user = ?3"),
		DB_VALUES(db_text(tenant), db_text(team), db_text(user)), &columns_member, ret,
		"member", user, err);
}

int store_team_list(struct store *st, const char *tenant, const char *team,
		    struct store_member_list *ret, struct err *err)
{
	return db_get_list(st,
			   COLUMNS_SELECT(member, "WHERE tenant = ?1 AND team = ?2 ORDER BY user"),
			   DB_VALUES(db_text(tenant), db_text(team)), &columns_member, ret, err);
}

int store_team_rows(struct store *st, const char *tenant, const char *user, struct store_page page,
		    struct store_team_row_list *ret, struct err *err)
{
	static const char sql[] =
		"WITH m AS (SELECT team, count(*) AS n FROM member WHERE tenant = ?1 GROUP BY "
		"team),"
		" p AS (SELECT team, count(*) AS n FROM project"
		" WHERE tenant = ?1 AND team IS NOT NULL GROUP BY team),"
		" t AS (SELECT row_number() OVER (ORDER BY team) AS seq, team"
		" FROM (SELECT team FROM m UNION SELECT team FROM p)),"
		" r AS (SELECT team, role FROM member WHERE tenant = ?1 AND user = ?2)"
		" SELECT seq, t.team AS team, ifnull(m.n, 0) AS members, ifnull(p.n, 0) AS "
		"projects,"
		" ifnull(role, 0) AS role FROM t LEFT JOIN m ON m.team = t.team"
		" LEFT JOIN p ON p.team = t.team LEFT JOIN r ON r.team = t.team"
		" WHERE (?2 IS NULL OR role IS NOT NULL)" DB_PAGE;

	if (check_filter("user", user, err) < 0)
		return -1;
	return db_get_page(st, sql, DB_VALUES(db_text(tenant), db_text(user)), &columns_team_row,
			   page, ret, err);
}

int store_team_remove(struct store *st, const char *tenant, const char *team, const char *user,
		      struct err *err)
{
	int changed;

	if (db_begin(st, err) < 0)
		return -1;
	changed = db_run(st, "DELETE FROM member WHERE tenant = ?1 AND team = ?2 AND user = ?3",
			 DB_VALUES(db_text(tenant), db_text(team), db_text(user)), err);
	if (changed == 0)
		changed = err_set(err, ERR_NOT_FOUND, "%s is not in team %s", user, team);
	return db_end(st, changed, err);
}

/* ---- keys ---------------------------------------------------------------------------------- */

int store_key_add(struct store *st, struct store_key *k, struct err *err)
{
	return db_add_record(st, COLUMNS_INSERT(key), &columns_key, k, k->id, &k->seq, err);
}

int store_key_find(struct store *st, const uint8_t hash[STORE_HASH], struct store_key *ret,
		   struct err *err)
{
	return db_get_record(st, COLUMNS_SELECT(key, "WHERE hash = ?1"),
			     DB_VALUES(db_blob(hash, STORE_HASH)), &columns_key, ret, "API key",
			     "with this hash", err);
}

int store_key_list(struct store *st, const char *tenant, struct store_page page,
		   struct store_key_list *ret, struct err *err)
{
	if (check_filter("tenant", tenant, err) < 0)
		return -1;
	return db_get_page(st, COLUMNS_SELECT(key, "WHERE (?1 IS NULL OR tenant = ?1)" DB_PAGE),
			   DB_VALUES(db_text(tenant)), &columns_key, page, ret, err);
}

int store_key_remove(struct store *st, const char *id, struct err *err)
{
	return db_change(st, "DELETE FROM key WHERE id = ?1", DB_VALUES(db_text(id)), "key", id,
			 err);
}
