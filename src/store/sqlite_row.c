/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as rows of a table. */
#include "store/record_check.h"
#include "store/sqlite_db.h"

#define KEY "(SELECT key FROM binding WHERE session = s.id AND kind = 'key' ORDER BY key LIMIT 1)"
#define LAYERS                                                                                     \
	"CASE WHEN s.layer IS NULL THEN 0 ELSE ("                                                  \
	"WITH RECURSIVE down (id, n) AS (SELECT s.layer, 1 UNION ALL"                              \
	" SELECT l.parent, n + 1 FROM down JOIN layer AS l ON l.id = down.id"                      \
	" WHERE l.parent IS NOT NULL AND n < 64)"                                                  \
	" SELECT ifnull(sum(l.bytes), 0) FROM down JOIN layer AS l ON l.id = down.id) END"
/* Everything a person may remember of a session; newlines keep two parts from matching as one. */
#define WORDS                                                                                      \
	"s.id || char(10) || ifnull(s.user, '') || char(10) || ifnull(s.project, '') || char(10)"  \
	" || ifnull(s.template, '') || char(10) || ifnull("                                        \
	"(SELECT group_concat(key, char(10)) FROM binding WHERE session = s.id), '')"
#define WHERE                                                                                      \
	" WHERE (?1 IS NULL OR s.tenant = ?1) AND (?2 IS NULL OR s.user = ?2)"                     \
	" AND (?3 IS NULL OR s.project = ?3) AND (?4 = 0 OR (1 << s.state) & ?4)"                  \
	" AND (?5 IS NULL OR EXISTS (SELECT 1 FROM json_each(s.metadata) AS m"                     \
	" WHERE m.key = ?5 AND m.type = 'text' AND m.value = ?6))"                                 \
	" AND (?7 IS NULL OR s.id = ?7) AND (?8 IS NULL OR instr(lower(" WORDS "), lower(?8)))"

/* The values ?1 to ?8. */
#define VALUES(q, states)                                                                          \
	db_text((q)->by.tenant), db_text((q)->by.user), db_text((q)->by.project), db_int(states),  \
		db_text((q)->by.meta_key), db_text((q)->by.meta_value), db_text((q)->id),          \
		db_text((q)->text)

int store_session_rows(struct store *st, const struct store_row_query *q,
		       struct store_row_list *ret, struct err *err)
{
	static const char sql[] =
		"SELECT s.seq, s.id, s.tenant, s.user, s.project, s.template, s.sandbox, s.state,"
		" s.runtime, s.on_idle, s.on_expire, s.paused, s.created_at, s.last_activity_at,"
		" s.hibernate_at, s.expires_at, s.due_at, s.memory_bytes, s.disk_bytes, s.cause,"
		" s.cause_text, s.cause_actor, s.cause_at, " KEY ", " LAYERS
		" FROM session AS s" WHERE " ORDER BY ?9 = 2 AND s.sandbox IS NULL,"
		" CASE ?9 WHEN 0 THEN s.seq ELSE s.last_activity_at END * ?10, s.seq * ?10"
		" LIMIT ?11 OFFSET ?12";

	if (check_row_query(q, err) < 0)
		return -1;
	return db_get_list(st, sql,
			   DB_VALUES(VALUES(q, (int64_t)q->by.states), db_int(q->order),
				     db_int(q->descending ? -1 : 1), db_int(q->limit),
				     db_int(q->offset)),
			   &columns_row, ret, err);
}

int store_session_count_states(struct store *st, const struct store_row_query *q,
			       int64_t ret[static STORE_STATES], struct err *err)
{
	static const char sql[] =
		"SELECT s.state, count(*) FROM session AS s" WHERE " GROUP BY s.state";
	auto_call(db_reset) sqlite3_stmt *stmt = NULL;
	int row;

	if (check_row_query(q, err) < 0 ||
	    db_start(st, sql, DB_VALUES(VALUES(q, 0)), &stmt, err) < 0)
		return -1;
	for (int i = 0; i < STORE_STATES; i++)
		ret[i] = 0;
	while ((row = db_next(st, stmt, err)) > 0) {
		int64_t state = sqlite3_column_int64(stmt, 0);

		if (state >= 0 && state < STORE_STATES)
			ret[state] = sqlite3_column_int64(stmt, 1);
	}
	return row;
}
