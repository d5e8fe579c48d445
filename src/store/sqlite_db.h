/* SPDX-License-Identifier: Apache-2.0 */
/* One SQLite connection: cached statements, reading and writing of records, transactions, and the
 * translation of result codes to error codes. */
#ifndef LODGE_STORE_SQLITE_DB_H
#define LODGE_STORE_SQLITE_DB_H

#include <sqlite3.h>

#include "base/array.h"
#include "base/auto.h"
#include "store/columns.h"
#include "store/store.h"

enum { DB_STATEMENTS = 128 };

struct store {
	sqlite3 *sql;
	int owner; /* descriptor of the lock that excludes other processes; see sqlite_open.c */
	/* After an I/O error the content of the disk is unknown, so nothing is written until the
	 * file has been opened again. */
	bool failed;
	int64_t retry_at; /* monotonic milliseconds: earliest time of the next attempt */
	int64_t changes; /* of earlier connections that failed */
	uint64_t events; /* written; see store_event_writes() */
	struct {
		int64_t page_bytes;
		int64_t frames; /* in use */
		int64_t bytes; /* of the file; at least */
	} log; /* of sqlite_reserve.c: the write-ahead log */
	const char *const *schema;
	size_t nstatements;
	struct {
		const char *text; /* a literal: the same text has the same address */
		sqlite3_stmt *stmt;
	} statements[DB_STATEMENTS];
	char path[];
};

/* ---- values -------------------------------------------------------------------------------- */

struct db_value {
	enum { DB_INT, DB_TEXT, DB_BLOB } type;
	int64_t num;
	const void *ptr;
	size_t len;
};

static inline struct db_value db_int(int64_t v)
{
	return (struct db_value){ .type = DB_INT, .num = v };
}
static inline struct db_value db_text(const char *s) /* borrowed; NULL and "" are both NULL */
{
	return (struct db_value){ .type = DB_TEXT, .ptr = s && s[0] ? s : NULL };
}
static inline struct db_value db_blob(const void *p, size_t len) /* borrowed */
{
	return (struct db_value){ .type = DB_BLOB, .ptr = p ? p : "", .len = len };
}

/* Fills the last two arguments before `err`: ?1, ?2 and so on. */
#define DB_VALUES(...)                                                                             \
	(const struct db_value[]){ __VA_ARGS__ },                                                  \
		ARRAY_LEN(((const struct db_value[]){ __VA_ARGS__ }))

/* ---- statements ---------------------------------------------------------------------------- */

static inline void db_reset(sqlite3_stmt *stmt) /* makes it ready for reuse */
{
	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
}
DEFINE_AUTO(sqlite3_stmt *, db_reset);
DEFINE_AUTO(char *, sqlite3_free);

/* Runs one or more statements that are not needed again, without values. */
int db_exec(struct store *db, const char *sql, struct err *err);
/* Binds a statement to its values and leaves it before its first row. The caller owns it until
 * db_reset(). */
int db_start(struct store *db, const char *sql, const struct db_value *values, size_t n,
	     sqlite3_stmt **ret, struct err *err);
/* 1: a row; 0: no more rows. */
int db_next(struct store *db, sqlite3_stmt *stmt, struct err *err);

/* Runs a statement that returns no rows, inside a transaction. The number of rows it changed. */
int db_run(struct store *db, const char *sql, const struct db_value *values, size_t n,
	   struct err *err);
/* Like db_run(), as its own transaction. 0 or -1. */
int db_write(struct store *db, const char *sql, const struct db_value *values, size_t n,
	     struct err *err);
/* Like db_write(), but NOT_FOUND, naming `what` and `name`, if it changed no row. */
int db_change(struct store *db, const char *sql, const struct db_value *values, size_t n,
	      const char *what, const char *name, struct err *err);
/* Reads one number. */
int db_number(struct store *db, const char *sql, const struct db_value *values, size_t n,
	      int64_t *ret, struct err *err);

/* ---- records ------------------------------------------------------------------------------- */

/* Runs a statement whose parameters have the names of columns (:id). The number of rows it
 * changed. */
int db_run_record(struct store *db, const char *sql, const struct columns *s, const void *record,
		  struct err *err);
/* Like db_run_record() for a record that check_record() accepts, as its own transaction. */
int db_write_record(struct store *db, const char *sql, const struct columns *s, const void *record,
		    struct err *err);
/* The same for a new row: *ret_seq is its sequence number, `name` is for the error. */
int db_add_record(struct store *db, const char *sql, const struct columns *s, const void *record,
		  const char *name, int64_t *ret_seq, struct err *err);
/* Reads the first row. NOT_FOUND, naming `what` and `name`, if there is none. */
int db_get_record(struct store *db, const char *sql, const struct db_value *values, size_t n,
		  const struct columns *s, void *ret, const char *what, const char *name,
		  struct err *err);
/* Reads all rows into *ret, a store_*_list. */
int db_get_list(struct store *db, const char *sql, const struct db_value *values, size_t n,
		const struct columns *s, void *ret, struct err *err);
/* Reads one page into *ret. The query has the parameters :after and :limit behind all others. It
 * gets one row more than the page has: that row is dropped, and the sequence number (the first
 * column) of the row before it becomes `next`. */
int db_get_page(struct store *db, const char *sql, const struct db_value *values, size_t n,
		const struct columns *s, struct store_page page, void *ret, struct err *err);
#define DB_PAGE " AND seq > :after ORDER BY seq LIMIT :limit"

/* ---- transactions -------------------------------------------------------------------------- */

int db_begin(struct store *db, struct err *err);
/* Commits if `result` is not negative, else rolls back. 0, or -1 with `err` set. */
int db_end(struct store *db, int result, struct err *err);

/* Describes a failed call to SQLite. Returns -1. */
int db_fail(struct store *db, int rc, struct err *err);

#endif
