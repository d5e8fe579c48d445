/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record_check.h"
#include "store/sqlite_db.h"

int store_environment_put(struct store *st, const struct store_environment *v, struct err *err)
{
	if (check_text("data", v->data, err) < 0)
		return -1;
	return db_write_record(st, COLUMNS_REPLACE(environment), &columns_environment, v, err) < 0
		       ? -1
		       : 0;
}

int store_environment_get(struct store *st, const char *template, struct store_environment *ret,
			  struct err *err)
{
	return db_get_record(st, COLUMNS_SELECT(environment, "WHERE template = ?1"),
			     DB_VALUES(db_text(template)), &columns_environment, ret,
			     "environment of", template, err);
}

int store_environment_remove(struct store *st, const char *template, struct err *err)
{
	return db_write(st, "DELETE FROM environment WHERE template = ?1",
			DB_VALUES(db_text(template)), err);
}
