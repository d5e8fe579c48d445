/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_db.h"

int store_tombstone_get(struct store *st, const char *session, struct store_tombstone *ret,
			struct err *err)
{
	return db_get_record(st, COLUMNS_SELECT(tombstone, "WHERE session = ?1"),
			     DB_VALUES(db_text(session)), &columns_tombstone, ret,
			     "tombstone of session", session, err);
}

int store_tombstone_find(struct store *st, const char *tenant, const struct store_binding *by,
			 struct store_tombstone *ret, struct err *err)
{
	return db_get_record(st,
			     COLUMNS_SELECT(tombstone,
					    "WHERE session = (SELECT session FROM tombstone_key"
					    " WHERE tenant = ?1 AND kind = ?2 AND key = ?3)"),
			     DB_VALUES(db_text(tenant), db_text(by->kind), db_text(by->key)),
			     &columns_tombstone, ret, "tombstone of", by->key, err);
}

int store_tombstone_prune(struct store *st, int64_t before, struct err *err)
{
	return db_write(st, "DELETE FROM tombstone WHERE cause_at < ?1", DB_VALUES(db_int(before)),
			err);
}
