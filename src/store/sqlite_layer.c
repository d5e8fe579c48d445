/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "store/record_check.h"
#include "store/sqlite_db.h"

/* ---- layers -------------------------------------------------------------------------------- */

int store_layer_add(struct store *st, const struct store_layer *l, struct err *err)
{
	if (check_record(&columns_layer, l, err) < 0)
		return -1;
	if (strcmp(l->id, l->parent) == 0) /* It would keep itself referenced forever. */
		return err_set(err, ERR_INVALID, "layer %s is its own parent", l->id);
	if (db_write_record(st, COLUMNS_INSERT(layer), &columns_layer, l, err) < 0)
		return err_ctx(err, "layer %s", l->id);
	return 0;
}

int store_layer_get(struct store *st, const char *id, struct store_layer *ret, struct err *err)
{
	return db_get_record(st, COLUMNS_SELECT(layer, "WHERE id = ?1"), DB_VALUES(db_text(id)),
			     &columns_layer, ret, "layer", id, err);
}

int store_layer_mark_durable(struct store *st, const char *id, int64_t bytes, struct err *err)
{
	return db_change(st, "UPDATE layer SET durable = 1, bytes = ?2 WHERE id = ?1",
			 DB_VALUES(db_text(id), db_int(bytes)), "layer", id, err);
}

int store_layer_find_unsynced(struct store *st, const char *after, unsigned limit,
			      struct store_layer_list *ret, struct err *err)
{
	return db_get_page(
		st,
		COLUMNS_SELECT(layer,
			       "WHERE durable = 0 AND id > ifnull(?1, '') ORDER BY id LIMIT ?2"),
		DB_VALUES(db_text(after), db_int(limit)), &columns_layer,
		(struct store_page){ .limit = limit }, ret, err);
}

int store_layer_ref(struct store *st, const char *id, const char *holder, struct err *err)
{
	if (check_text("holder", holder, err) < 0)
		return -1;
	if (db_write(st,
		     "INSERT INTO layer_hold (layer, holder) VALUES (?1, ?2) "
		     "ON CONFLICT DO NOTHING",
		     DB_VALUES(db_text(id), db_text(holder)), err) < 0)
		return err_ctx(err, "layer %s", id);
	return 0;
}

int store_layer_unref(struct store *st, const char *id, const char *holder, struct err *err)
{
	return db_write(st, "DELETE FROM layer_hold WHERE layer = ?1 AND holder = ?2",
			DB_VALUES(db_text(id), db_text(holder)), err);
}

int store_layer_release(struct store *st, const char *prefix, struct err *err)
{
	if (check_text("prefix of a holder", prefix, err) < 0)
		return -1;
	return db_write(st, "DELETE FROM layer_hold WHERE substr(holder, 1, length(?1)) = ?1",
			DB_VALUES(db_text(prefix)), err);
}

int store_layer_refs(struct store *st, const char *id, int64_t *ret, struct err *err)
{
	return db_number(st,
			 "SELECT (SELECT count(*) FROM session WHERE layer = ?1)"
			 " + (SELECT count(*) FROM snapshot WHERE layer = ?1)"
			 " + (SELECT count(*) FROM layer WHERE parent = ?1)"
			 " + (SELECT count(*) FROM layer_hold WHERE layer = ?1)",
			 DB_VALUES(db_text(id)), ret, err);
}

int store_layer_find_unreferenced(struct store *st, int64_t before, unsigned limit,
				  struct store_layer_list *ret, struct err *err)
{
	static const char sql[] = COLUMNS_SELECT(
		layer, "AS l WHERE created_at < ?1"
		       " AND NOT EXISTS (SELECT 1 FROM session WHERE layer = l.id)"
		       /* sealed just now: the update of its session follows */
		       " AND NOT EXISTS (SELECT 1 FROM session WHERE sandbox = l.id)"
		       " AND NOT EXISTS (SELECT 1 FROM snapshot WHERE layer = l.id)"
		       " AND NOT EXISTS (SELECT 1 FROM layer WHERE parent = l.id)"
		       " AND NOT EXISTS (SELECT 1 FROM layer_hold WHERE layer = l.id)"
		       " ORDER BY created_at, id LIMIT ?2");

	return db_get_page(st, sql, DB_VALUES(db_int(before), db_int(limit)), &columns_layer,
			   (struct store_page){ .limit = limit }, ret, err);
}

int store_layer_remove(struct store *st, const char *id, struct err *err)
{
	/* Foreign keys make this fail while the layer is referenced. */
	return db_change(st, "DELETE FROM layer WHERE id = ?1", DB_VALUES(db_text(id)), "layer", id,
			 err);
}

/* ---- snapshots ----------------------------------------------------------------------------- */

int store_snapshot_add(struct store *st, struct store_snapshot *s, struct err *err)
{
	return db_add_record(st, COLUMNS_INSERT(snapshot), &columns_snapshot, s, s->id, &s->seq,
			     err);
}

int store_snapshot_get(struct store *st, const char *id, struct store_snapshot *ret,
		       struct err *err)
{
	return db_get_record(st, COLUMNS_SELECT(snapshot, "WHERE id = ?1"), DB_VALUES(db_text(id)),
			     &columns_snapshot, ret, "snapshot", id, err);
}

int store_snapshot_find(struct store *st, const char *session, const char *name,
			struct store_snapshot *ret, struct err *err)
{
	return db_get_record(st, COLUMNS_SELECT(snapshot, "WHERE session = ?1 AND name = ?2"),
			     DB_VALUES(db_text(session), db_text(name)), &columns_snapshot, ret,
			     "snapshot", name, err);
}

#define OF_TENANT COLUMNS_SELECT(snapshot, "AS n WHERE tenant = ?1")
#define OF_USER                                                                                    \
	" AND (?3 IS NULL"                                                                         \
	" OR EXISTS (SELECT 1 FROM session AS s WHERE s.id = n.session AND s.user = ?3)"           \
	" OR EXISTS (SELECT 1 FROM tombstone AS t WHERE t.session = n.session AND t.user = ?3))"

int store_snapshot_list(struct store *st, const struct store_snapshot_filter *f,
			struct store_page page, struct store_snapshot_list *ret, struct err *err)
{
	/* Two statements, so that the one with a session uses the whole index. */
	const char *sql = f->session ? OF_TENANT " AND session = ?2" OF_USER DB_PAGE
				     : OF_TENANT OF_USER DB_PAGE;

	if (check_snapshot_filter(f, err) < 0)
		return -1;
	return db_get_page(st, sql,
			   DB_VALUES(db_text(f->tenant), db_text(f->session), db_text(f->user)),
			   &columns_snapshot, page, ret, err);
}

int store_snapshot_imported(struct store *st, const char *tenant, int64_t *ret, struct err *err)
{
	return db_number(st,
			 "SELECT ifnull(sum(bytes), 0) FROM layer WHERE id IN (SELECT layer"
			 " FROM snapshot WHERE tenant = ?1 AND session IS NULL)",
			 DB_VALUES(db_text(tenant)), ret, err);
}

int store_snapshot_remove(struct store *st, const char *id, struct err *err)
{
	return db_change(st, "DELETE FROM snapshot WHERE id = ?1", DB_VALUES(db_text(id)),
			 "snapshot", id, err);
}
