/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_db.h"

#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "base/test_hook.h"
#include "store/record_check.h"
#include "store/sqlite_open.h"
#include "store/sqlite_reserve.h"

/* Callers prepend the name of the record. */
static int fail_constraint(int extended, const char *why, struct err *err)
{
	switch (extended) {
	case SQLITE_CONSTRAINT_UNIQUE:
	case SQLITE_CONSTRAINT_PRIMARYKEY:
		return err_set(err, ERR_CONFLICT, "already exists");
	case SQLITE_CONSTRAINT_FOREIGNKEY:
		return err_set(err, ERR_CONFLICT, "refers to a missing record, or is still in use");
	default:
		return err_set(err, ERR_INVALID, "%s", why);
	}
}

/* Callers of the API see it, so it has no path. */
static int fail_full(struct err *err)
{
	err_set(err, ERR_LIMIT,
		"the server's disk is full: the database cannot grow; delete sessions or "
		"snapshots, or free space on the server");
	err->sys = ENOSPC;
	return -1;
}

int db_fail(struct store *db, int rc, struct err *err)
{
	const char *why = db->sql ? sqlite3_errmsg(db->sql) : sqlite3_errstr(rc);
	int extended = db->sql ? sqlite3_extended_errcode(db->sql) : rc;

	switch (rc & 0xff) {
	case SQLITE_CONSTRAINT:
		return fail_constraint(extended, why, err);
	case SQLITE_FULL:
		return fail_full(err);
	case SQLITE_NOMEM:
		return err_sys(err, ENOMEM, "%s", db->path);
	case SQLITE_TOOBIG:
		return err_set(err, ERR_INVALID, "%s", why);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(err, ERR_UNAVAILABLE, "%s: in use by another program", db->path);
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return err_set(err, ERR_UNAVAILABLE, "%s: not writable (%s)", db->path, why);
	case SQLITE_CANTOPEN:
		return err_set(err, ERR_UNAVAILABLE, "%s: cannot open the database (%s)", db->path,
			       sqlite3_errstr(extended));
	case SQLITE_IOERR:
		if (extended == SQLITE_IOERR_NOMEM)
			return err_sys(err, ENOMEM, "%s", db->path);
		if (db->sql && sqlite3_system_errno(db->sql) == ENOSPC)
			return fail_full(err);
		db->failed = true;
		return err_set(err, ERR_UNAVAILABLE, "%s: %s (%d)", db->path, why, extended);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		db->failed = true;
		return err_set(err, ERR_INTERNAL,
			       "%s is damaged (%s) and was left unchanged: restore a backup",
			       db->path, why);
	default:
		return err_set(err, ERR_INTERNAL, "%s: %s (%d)", db->path, why, extended);
	}
}

int db_exec(struct store *db, const char *sql, struct err *err)
{
	int rc = sqlite3_exec(db->sql, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : db_fail(db, rc, err);
}

/* ---- statements ---------------------------------------------------------------------------- */

static int prepare(struct store *db, const char *sql, sqlite3_stmt **ret, struct err *err)
{
	sqlite3_stmt *stmt;
	int rc;

	for (size_t i = 0; i < db->nstatements; i++)
		if (db->statements[i].text == sql) {
			*ret = db->statements[i].stmt;
			return 0;
		}
	if (db->nstatements == DB_STATEMENTS)
		return err_set(err, ERR_INTERNAL, "more than %d statements", DB_STATEMENTS);
	rc = sqlite3_prepare_v3(db->sql, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL);
	if (rc != SQLITE_OK)
		return db_fail(db, rc, err);
	db->statements[db->nstatements].text = sql;
	db->statements[db->nstatements++].stmt = stmt;
	*ret = stmt;
	return 0;
}

static int bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
	if (!text || !text[0])
		return sqlite3_bind_null(stmt, at);
	return sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC);
}

static int bind_value(sqlite3_stmt *stmt, int at, const struct db_value *v)
{
	switch (v->type) {
	case DB_INT:
		return sqlite3_bind_int64(stmt, at, v->num);
	case DB_TEXT:
		return bind_text(stmt, at, v->ptr);
	case DB_BLOB:
		return sqlite3_bind_blob64(stmt, at, v->ptr, v->len, SQLITE_STATIC);
	}
	return SQLITE_MISUSE;
}

int db_start(struct store *db, const char *sql, const struct db_value *values, size_t n,
	     sqlite3_stmt **ret, struct err *err)
{
	sqlite3_stmt *stmt = NULL;

	if (prepare(db, sql, &stmt, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		int rc = bind_value(stmt, (int)i + 1, &values[i]);

		if (rc != SQLITE_OK) {
			db_fail(db, rc, err);
			db_reset(stmt);
			return -1;
		}
	}
	*ret = stmt;
	return 0;
}

int db_next(struct store *db, sqlite3_stmt *stmt, struct err *err)
{
	int rc = sqlite3_step(stmt);

	if (rc == SQLITE_ROW)
		return 1;
	return rc == SQLITE_DONE ? 0 : db_fail(db, rc, err);
}

static int step_to_end(struct store *db, sqlite3_stmt *stmt, struct err *err)
{
	int row;

	do {
		row = db_next(db, stmt, err);
	} while (row > 0);
	return row < 0 ? -1 : sqlite3_changes(db->sql);
}

int db_run(struct store *db, const char *sql, const struct db_value *values, size_t n,
	   struct err *err)
{
	auto_call(db_reset) sqlite3_stmt *stmt = NULL;

	if (db_start(db, sql, values, n, &stmt, err) < 0)
		return -1;
	return step_to_end(db, stmt, err);
}

/* Like db_run(), as its own transaction. */
static int run_alone(struct store *db, const char *sql, const struct db_value *values, size_t n,
		     struct err *err)
{
	int changed;

	if (db_begin(db, err) < 0)
		return -1;
	changed = db_run(db, sql, values, n, err);
	return db_end(db, changed, err) < 0 ? -1 : changed;
}

int db_write(struct store *db, const char *sql, const struct db_value *values, size_t n,
	     struct err *err)
{
	return run_alone(db, sql, values, n, err) < 0 ? -1 : 0;
}

int db_change(struct store *db, const char *sql, const struct db_value *values, size_t n,
	      const char *what, const char *name, struct err *err)
{
	int changed = run_alone(db, sql, values, n, err);

	if (changed == 0)
		return err_set(err, ERR_NOT_FOUND, "%s %s does not exist", what, name);
	return changed < 0 ? err_ctx(err, "%s %s", what, name) : 0;
}

int db_number(struct store *db, const char *sql, const struct db_value *values, size_t n,
	      int64_t *ret, struct err *err)
{
	auto_call(db_reset) sqlite3_stmt *stmt = NULL;
	int row;

	if (db_start(db, sql, values, n, &stmt, err) < 0)
		return -1;
	row = db_next(db, stmt, err);
	if (row < 0)
		return -1;
	*ret = row ? sqlite3_column_int64(stmt, 0) : 0;
	return 0;
}

/* ---- records ------------------------------------------------------------------------------- */

static int bind_column(sqlite3_stmt *stmt, int at, const struct column *c, const void *record)
{
	const char *member = (const char *)record + c->offset;

	switch (c->kind) {
	case COLUMN_SEQ:
		return sqlite3_bind_null(stmt, at);
	case COLUMN_NUM:
		return sqlite3_bind_int64(stmt, at, columns_get_num(c, record));
	case COLUMN_TEXT:
		return bind_text(stmt, at, member);
	case COLUMN_STRING:
		return sqlite3_bind_text(stmt, at, member, -1, SQLITE_STATIC);
	case COLUMN_OWNED:
		return bind_text(stmt, at, *(char *const *)member);
	case COLUMN_BYTES:
		return sqlite3_bind_blob(stmt, at, member, (int)c->size, SQLITE_STATIC);
	}
	return SQLITE_MISUSE;
}

static int bind_record(struct store *db, sqlite3_stmt *stmt, const struct columns *s,
		       const void *record, struct err *err)
{
	int count = sqlite3_bind_parameter_count(stmt);
	size_t hint = 0;

	for (int i = 1; i <= count; i++) {
		const char *name = sqlite3_bind_parameter_name(stmt, i); /* ":name" */
		const struct column *c = name ? columns_find(s, name + 1, &hint) : NULL;
		int rc = c ? bind_column(stmt, i, c, record) : SQLITE_MISUSE;

		if (!c)
			return err_set(err, ERR_INTERNAL, "table %s has no column %s", s->table,
				       name ? name + 1 : "?");
		if (rc != SQLITE_OK)
			return db_fail(db, rc, err);
	}
	return 0;
}

int db_run_record(struct store *db, const char *sql, const struct columns *s, const void *record,
		  struct err *err)
{
	auto_call(db_reset) sqlite3_stmt *stmt = NULL;

	if (db_start(db, sql, NULL, 0, &stmt, err) < 0 || bind_record(db, stmt, s, record, err) < 0)
		return -1;
	return step_to_end(db, stmt, err);
}

int db_write_record(struct store *db, const char *sql, const struct columns *s, const void *record,
		    struct err *err)
{
	int changed;

	if (check_record(s, record, err) < 0 || db_begin(db, err) < 0)
		return -1;
	changed = db_run_record(db, sql, s, record, err);
	return db_end(db, changed, err) < 0 ? -1 : changed;
}

int db_add_record(struct store *db, const char *sql, const struct columns *s, const void *record,
		  const char *name, int64_t *ret_seq, struct err *err)
{
	if (check_record(s, record, err) < 0 || db_begin(db, err) < 0)
		return -1;
	if (db_end(db, db_run_record(db, sql, s, record, err), err) < 0)
		return err_ctx(err, "%s %s", s->table, name);
	*ret_seq = sqlite3_last_insert_rowid(db->sql);
	return 0;
}

/* A column longer than its member was not written by lodge. */
static int read_bounded(struct store *db, const void *bytes, size_t len, char *ret, size_t size,
			struct err *err)
{
	if (len > size)
		return err_set(err, ERR_INTERNAL, "%s: column has %zu bytes, the maximum is %zu",
			       db->path, len, size);
	if (len > 0)
		memcpy(ret, bytes, len);
	memset(ret + len, 0, size - len);
	return 0;
}

static int read_column(struct store *db, sqlite3_stmt *stmt, int col, const struct column *f,
		       void *record, struct err *err)
{
	char *member = (char *)record + f->offset;
	const char *text;

	switch (f->kind) {
	case COLUMN_SEQ:
	case COLUMN_NUM:
		columns_set_num(f, record, sqlite3_column_int64(stmt, col));
		return 0;
	case COLUMN_BYTES:
		return read_bounded(db, sqlite3_column_blob(stmt, col),
				    (size_t)sqlite3_column_bytes(stmt, col), member, f->size, err);
	case COLUMN_TEXT:
	case COLUMN_STRING:
		text = (const char *)sqlite3_column_text(stmt, col);
		if (read_bounded(db, text, (size_t)sqlite3_column_bytes(stmt, col), member,
				 f->size - 1, err) < 0)
			return -1;
		member[f->size - 1] = '\0';
		return 0;
	case COLUMN_OWNED:
		text = (const char *)sqlite3_column_text(stmt, col);
		*columns_owned(f, record) = text ? strdup(text) : NULL;
		return text && !*columns_owned(f, record) ? err_sys(err, ENOMEM, "read") : 0;
	}
	return -1;
}

/* `record` must be zeroed, and is zeroed again on failure. */
static int read_record(struct store *db, sqlite3_stmt *stmt, const struct columns *s, void *record,
		       struct err *err)
{
	for (size_t i = 0; i < s->count; i++)
		if (read_column(db, stmt, (int)i, &s->fields[i], record, err) < 0) {
			columns_fini(s, record);
			return -1;
		}
	return 0;
}

struct list { /* as every store_*_list */
	char *items;
	size_t count;
	int64_t next;
};
_Static_assert(sizeof(struct list) == sizeof(struct store_session_list), "the same members");

static void bind_page(sqlite3_stmt *stmt, const struct store_page *page)
{
	int after = sqlite3_bind_parameter_index(stmt, ":after");
	int limit = sqlite3_bind_parameter_index(stmt, ":limit");

	if (after > 0)
		sqlite3_bind_int64(stmt, after, page->after);
	if (limit > 0)
		sqlite3_bind_int64(stmt, limit, (int64_t)page->limit + 1);
}

/* All rows if `page` is NULL. */
static int get_records(struct store *db, const char *sql, const struct db_value *values, size_t n,
		       const struct store_page *page, const struct columns *s, struct list *ret,
		       struct err *err)
{
	auto_call(db_reset) sqlite3_stmt *stmt = NULL;
	struct list l = { 0 };
	int row;

	if (db_start(db, sql, values, n, &stmt, err) < 0)
		return -1;
	if (page)
		bind_page(stmt, page);
	while ((row = db_next(db, stmt, err)) > 0) {
		void *record = vec_push_bytes(&l.items, &l.count, s->size, SIZE_MAX);

		row = record ? read_record(db, stmt, s, record, err)
			     : err_sys(err, errno, "list of %zu records", l.count);
		if (row < 0)
			break;
	}
	if (row < 0) {
		while (l.count > 0)
			columns_fini(s, l.items + --l.count * s->size);
		free(l.items);
		return -1;
	}
	memcpy(ret, &l, sizeof(l));
	return 0;
}

int db_get_list(struct store *db, const char *sql, const struct db_value *values, size_t n,
		const struct columns *s, void *ret, struct err *err)
{
	return get_records(db, sql, values, n, NULL, s, ret, err);
}

int db_get_page(struct store *db, const char *sql, const struct db_value *values, size_t n,
		const struct columns *s, struct store_page page, void *ret, struct err *err)
{
	struct list l;

	if (check_page(page, err) < 0 || get_records(db, sql, values, n, &page, s, &l, err) < 0)
		return -1;
	if (l.count > page.limit) {
		columns_fini(s, l.items + --l.count * s->size);
		l.next = columns_get_num(&s->fields[0], l.items + (l.count - 1) * s->size);
	}
	memcpy(ret, &l, sizeof(l));
	return 0;
}

int db_get_record(struct store *db, const char *sql, const struct db_value *values, size_t n,
		  const struct columns *s, void *ret, const char *what, const char *name,
		  struct err *err)
{
	struct list l;

	if (get_records(db, sql, values, n, NULL, s, &l, err) < 0)
		return -1;
	if (l.count == 0)
		return err_set(err, ERR_NOT_FOUND, "%s %s does not exist", what, name);
	memcpy(ret, l.items, s->size); /* All these queries return at most one row. */
	free(l.items);
	return 0;
}

/* ---- transactions -------------------------------------------------------------------------- */

int db_begin(struct store *db, struct err *err)
{
	if ((db->failed && sqlite_reopen(db, err) < 0) || sqlite_reserve_check(db, err) < 0)
		return -1;
	return db_run(db, "BEGIN IMMEDIATE", NULL, 0, err) < 0 ? -1 : 0;
}

int db_end(struct store *db, int result, struct err *err)
{
	struct err ignored;

	hook_crash("store-commit");
	if (result >= 0 && db_run(db, "COMMIT", NULL, 0, err) >= 0) {
		hook_crash("store-committed");
		return 0;
	}
	/* SQLite rolls back by itself on some failures. */
	if (!sqlite3_get_autocommit(db->sql))
		db_run(db, "ROLLBACK", NULL, 0, &ignored);
	return -1;
}
