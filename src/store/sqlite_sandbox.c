/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_sandbox.h"

#define KEPT "64" /* per session */

#define NOTE_END                                                                                   \
	"INSERT OR REPLACE INTO ended_sandbox"                                                     \
	" (id, tenant, session, cause, cause_text, cause_actor, cause_at)"                         \
	" SELECT sandbox, tenant, id, :cause, :cause_text, :cause_actor, :cause_at FROM session"   \
	" WHERE id = :id AND version = :version AND sandbox IS NOT NULL"

int sqlite_sandbox_note_end(struct store *db, const struct store_session *s, bool destroyed,
			    struct err *err)
{
	int added =
		db_run_record(db, destroyed ? NOTE_END : NOTE_END " AND sandbox IS NOT :sandbox",
			      &columns_session, s, err);

	if (added <= 0)
		return added;
	return db_run_record(
		db,
		"DELETE FROM ended_sandbox WHERE session = :id AND id NOT IN (SELECT "
		"id FROM ended_sandbox WHERE session = :id ORDER BY cause_at DESC LIMIT " KEPT ")",
		&columns_session, s, err);
}

int store_ended_sandbox_get(struct store *st, const char *id, struct store_ended_sandbox *ret,
			    struct err *err)
{
	return db_get_record(st, COLUMNS_SELECT(ended_sandbox, "WHERE id = ?1"),
			     DB_VALUES(db_text(id)), &columns_ended_sandbox, ret, "sandbox", id,
			     err);
}

int store_ended_sandbox_prune(struct store *st, int64_t before, struct err *err)
{
	return db_write(st, "DELETE FROM ended_sandbox WHERE cause_at < ?1",
			DB_VALUES(db_int(before)), err);
}
