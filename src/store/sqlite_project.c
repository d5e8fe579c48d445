/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "store/record_check.h"
#include "store/sqlite_db.h"

/* ---- projects ------------------------------------------------------------------------------ */

int store_project_add(struct store *st, struct store_project *p, struct err *err)
{
	return db_add_record(st, COLUMNS_INSERT(project), &columns_project, p, p->id, &p->seq, err);
}

int store_project_get(struct store *st, const char *tenant, const char *id,
		      struct store_project *ret, struct err *err)
{
	return db_get_record(st, COLUMNS_SELECT(project, "WHERE tenant = ?1 AND id = ?2"),
			     DB_VALUES(db_text(tenant), db_text(id)), &columns_project, ret,
			     "project", id, err);
}

int store_project_list(struct store *st, const char *tenant, const char *user,
		       struct store_page page, struct store_project_list *ret, struct err *err)
{
	static const char sql[] = COLUMNS_SELECT(
		project, "AS p WHERE tenant = ?1 AND (?2 IS NULL OR owner = ?2"
			 " OR EXISTS (SELECT 1 FROM member"
			 " WHERE tenant = ?1 AND team = p.team AND user = ?2))" DB_PAGE);

	if (check_filter("user", user, err) < 0)
		return -1;
	return db_get_page(st, sql, DB_VALUES(db_text(tenant), db_text(user)), &columns_project,
			   page, ret, err);
}

static int remove_project(struct store *db, const char *tenant, const char *id, struct err *err)
{
	int changed = db_run(db, "DELETE FROM project WHERE tenant = ?1 AND id = ?2",
			     DB_VALUES(db_text(tenant), db_text(id)), err);

	if (changed == 0)
		return err_set(err, ERR_NOT_FOUND, "project %s does not exist", id);
	return changed < 0 ? -1
			   : db_run(db,
				    "UPDATE user SET project = NULL, fragment = NULL "
				    "WHERE tenant = ?1 AND project = ?2",
				    DB_VALUES(db_text(tenant), db_text(id)), err);
}

int store_project_remove(struct store *st, const char *tenant, const char *id, struct err *err)
{
	if (db_begin(st, err) < 0)
		return -1;
	return db_end(st, remove_project(st, tenant, id, err), err);
}

/* ---- fragments ----------------------------------------------------------------------------- */

static int insert_files(struct store *db, int64_t fragment, const struct store_file *files,
			size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (db_run(db,
			   "INSERT INTO fragment_file (fragment, path, data) VALUES (?1, ?2, ?3)",
			   DB_VALUES(db_int(fragment), db_text(files[i].path),
				     db_blob(files[i].data, files[i].size)),
			   err) < 0)
			return err_ctx(err, "%s", files[i].path);
	return 0;
}

static int insert_fragment(struct store *db, struct store_fragment *f,
			   const struct store_file *files, size_t n, struct err *err)
{
	if (db_run_record(db, COLUMNS_INSERT(fragment), &columns_fragment, f, err) < 0)
		return -1;
	f->seq = sqlite3_last_insert_rowid(db->sql);
	return insert_files(db, f->seq, files, n, err);
}

int store_fragment_add(struct store *st, struct store_fragment *f, const struct store_file *files,
		       size_t nfiles, struct err *err)
{
	struct store_fragment new = *f;

	if (check_record(&columns_fragment, f, err) < 0 || check_files(files, nfiles, err) < 0 ||
	    db_begin(st, err) < 0)
		return -1;
	new.files = (int64_t)nfiles;
	new.bytes = 0;
	for (size_t i = 0; i < nfiles; i++)
		new.bytes += (int64_t)files[i].size;
	if (db_end(st, insert_fragment(st, &new, files, nfiles, err), err) < 0)
		return err_ctx(err, "fragment %s", f->id);
	*f = new;
	return 0;
}

int store_fragment_get(struct store *st, const char *tenant, const char *id,
		       struct store_fragment *ret, struct err *err)
{
	return db_get_record(st, COLUMNS_SELECT(fragment, "WHERE tenant = ?1 AND id = ?2"),
			     DB_VALUES(db_text(tenant), db_text(id)), &columns_fragment, ret,
			     "fragment", id, err);
}

static int read_file(struct store_file_list *l, sqlite3_stmt *stmt, struct err *err)
{
	const char *path = (const char *)sqlite3_column_text(stmt, 0);
	const void *data = sqlite3_column_blob(stmt, 1);
	size_t size = (size_t)sqlite3_column_bytes(stmt, 1);
	struct store_file *f = vec_push(&l->items, &l->count, STORE_FILES_MAX);

	if (!f)
		return err_sys(err, errno, "files");
	f->path = path ? strdup(path) : NULL;
	f->data = data ? malloc(size) : NULL;
	if (!f->path || (size > 0 && !f->data))
		return err_sys(err, ENOMEM, "files");
	f->size = size;
	if (size > 0)
		memcpy(f->data, data, size);
	return 0;
}

int store_fragment_files(struct store *st, const char *tenant, const char *id,
			 struct store_file_list *ret, struct err *err)
{
	auto_call(db_reset) sqlite3_stmt *stmt = NULL;
	struct store_file_list l = { 0 };
	struct store_fragment f;
	int row;

	if (store_fragment_get(st, tenant, id, &f, err) < 0 ||
	    db_start(st, "SELECT path, data FROM fragment_file WHERE fragment = ?1 ORDER BY path",
		     DB_VALUES(db_int(f.seq)), &stmt, err) < 0)
		return -1;
	while ((row = db_next(st, stmt, err)) > 0) {
		row = read_file(&l, stmt, err);
		if (row < 0)
			break;
	}
	if (row < 0) {
		store_file_list_fini(&l);
		return -1;
	}
	*ret = l;
	return 0;
}

int store_fragment_list(struct store *st, const char *tenant, const char *project,
			struct store_page page, struct store_fragment_list *ret, struct err *err)
{
	return db_get_page(
		st,
		COLUMNS_SELECT(fragment,
			       "WHERE tenant = ?1 AND project = ?2"
			       " AND (:after = 0 OR seq < :after) ORDER BY seq DESC LIMIT :limit"),
		DB_VALUES(db_text(tenant), db_text(project)), &columns_fragment, page, ret, err);
}

int store_fragment_remove(struct store *st, const char *tenant, const char *id, struct err *err)
{
	return db_change(st, "DELETE FROM fragment WHERE tenant = ?1 AND id = ?2",
			 DB_VALUES(db_text(tenant), db_text(id)), "fragment", id, err);
}
