/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record_check.h"
#include "store/sqlite_db.h"

int store_policy_add(struct store *st, struct store_policy *p, struct err *err)
{
	return db_add_record(st, COLUMNS_INSERT(policy), &columns_policy, p, p->name, &p->seq, err);
}

int store_policy_update(struct store *st, const struct store_policy *p, struct err *err)
{
	int changed =
		db_write_record(st,
				"UPDATE policy SET " COLUMNS_SET(
					policy_rules) " WHERE tenant = :tenant AND name = :name",
				&columns_policy, p, err);

	if (changed == 0)
		return err_set(err, ERR_NOT_FOUND, "policy %s does not exist", p->name);
	return changed < 0 ? -1 : 0;
}

int store_policy_get(struct store *st, const char *tenant, const char *name,
		     struct store_policy *ret, struct err *err)
{
	return db_get_record(st, COLUMNS_SELECT(policy, "WHERE tenant = ?1 AND name = ?2"),
			     DB_VALUES(db_text(tenant), db_text(name)), &columns_policy, ret,
			     "policy", name, err);
}

int store_policy_list(struct store *st, const char *tenant, struct store_page page,
		      struct store_policy_list *ret, struct err *err)
{
	if (check_filter("tenant", tenant, err) < 0)
		return -1;
	return db_get_page(st, COLUMNS_SELECT(policy, "WHERE (?1 IS NULL OR tenant = ?1)" DB_PAGE),
			   DB_VALUES(db_text(tenant)), &columns_policy, page, ret, err);
}

static int check_unused(struct store *db, const char *tenant, const char *name, struct err *err)
{
	int64_t users;

	if (db_number(db, "SELECT count(*) FROM session WHERE tenant = ?1 AND policy = ?2",
		      DB_VALUES(db_text(tenant), db_text(name)), &users, err) < 0)
		return -1;
	return users ? err_set(err, ERR_CONFLICT, "policy %s is in use by %lld session%s", name,
			       (long long)users, users == 1 ? "" : "s")
		     : 0;
}

int store_policy_remove(struct store *st, const char *tenant, const char *name, struct err *err)
{
	int changed;

	if (db_begin(st, err) < 0)
		return -1;
	changed = check_unused(st, tenant, name, err);
	if (changed == 0)
		changed = db_run(st, "DELETE FROM policy WHERE tenant = ?1 AND name = ?2",
				 DB_VALUES(db_text(tenant), db_text(name)), err);
	if (changed == 0)
		changed = err_set(err, ERR_NOT_FOUND, "policy %s does not exist", name);
	return db_end(st, changed, err);
}
