/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record_check.h"
#include "store/sqlite_db.h"

#define COLUMNS                                                                                    \
	"seq, tenant, name, max_active_per_user, on_exceed, idle_timeout_ms, max_lifetime_ms, "    \
	"network, limits, created_at, commands"

int store_policy_add(struct store *st, struct store_policy *p, struct err *err)
{
	if (check_policy(p, err) < 0)
		return -1;
	return db_add_record(db_of(st),
			     "INSERT INTO policy (" COLUMNS ") "
			     "VALUES (NULL, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
			     &shape_policy, p, "policy", p->name, &p->seq, err);
}

int store_policy_update(struct store *st, const struct store_policy *p, struct err *err)
{
	struct db *db = db_of(st);
	int changed;

	if (check_policy(p, err) < 0 || db_begin(db, err) < 0)
		return -1;
	changed = db_run_record(db,
				"UPDATE policy SET (max_active_per_user, on_exceed, "
				"idle_timeout_ms, max_lifetime_ms, network, limits, commands) "
				"= (?4, ?5, ?6, ?7, ?8, ?9, ?11) WHERE tenant = ?2 AND name = ?3",
				&shape_policy, p, err);
	if (changed == 0)
		changed = err_set(err, ERR_NOT_FOUND, "there is no policy %s", p->name);
	return db_end(db, changed, err);
}

int store_policy_get(struct store *st, const char *tenant, const char *name,
		     struct store_policy *ret, struct err *err)
{
	return db_get_record(
		db_of(st), "SELECT " COLUMNS " FROM policy WHERE tenant = ?1 AND name = ?2",
		DB_VALUES(db_text(tenant), db_text(name)), &shape_policy, ret, "policy", name, err);
}

int store_policy_list(struct store *st, const char *tenant, struct store_page page,
		      struct store_policy_list *ret, struct err *err)
{
	size_t count;
	void *items;

	if (check_page(page, err) < 0 || check_filter("tenant", tenant, err) < 0 ||
	    db_get_records(db_of(st),
			   "SELECT " COLUMNS " FROM policy WHERE (?1 IS NULL OR tenant = ?1) "
			   "AND seq > ?2 ORDER BY seq LIMIT ?3",
			   DB_VALUES(db_text(tenant), db_int(page.after), db_int(page.limit + 1)),
			   &shape_policy, &items, &count, err) < 0)
		return -1;
	*ret = (struct store_policy_list){ .items = items, .count = count };
	if (db_trim(&shape_policy, items, &ret->count, page.limit))
		ret->next = ret->items[page.limit - 1].seq;
	return 0;
}

static int refuse_if_named(struct db *db, const char *tenant, const char *name, struct err *err)
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
	struct db *db = db_of(st);
	int changed;

	if (db_begin(db, err) < 0)
		return -1;
	changed = refuse_if_named(db, tenant, name, err);
	if (changed == 0)
		changed = db_run(db, "DELETE FROM policy WHERE tenant = ?1 AND name = ?2",
				 DB_VALUES(db_text(tenant), db_text(name)), err);
	if (changed == 0)
		changed = err_set(err, ERR_NOT_FOUND, "there is no policy %s", name);
	return db_end(db, changed, err);
}
