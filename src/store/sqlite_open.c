/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/schema.h"

enum { OPEN_WAIT_MS = 3000, REOPEN_MS = 1000, RESERVE_BYTES = 1 << 20 };

/* Nothing here changes the file: that comes after it has been found to be ours and whole. With this
 * lock mode SQLite keeps the index of the log in its own memory: safe before 3.51.3, and no other
 * program gets in. */
static const char *const before[] = {
	"PRAGMA locking_mode = EXCLUSIVE",
	"PRAGMA trusted_schema = OFF",
	"PRAGMA cell_size_check = ON",
};
static const char *const after[] = {
	"PRAGMA synchronous = FULL",
	"PRAGMA foreign_keys = ON",
	"PRAGMA journal_size_limit = 8388608",
};

int64_t store_changes(struct store *st)
{
	return st->changes + (st->sql ? sqlite3_total_changes64(st->sql) : 0);
}

void store_relax(struct store *st, bool on)
{
	static const char *const how[] = { "PRAGMA synchronous = FULL",
					   "PRAGMA synchronous = NORMAL" };

	/* one that stayed relaxed would acknowledge what is not there: it is opened again */
	if (st->sql && sqlite3_exec(st->sql, how[on], NULL, NULL, NULL) != SQLITE_OK && !on)
		st->failed = true;
}

static bool make_reserve(const char *path)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return errno == EEXIST;
	if (posix_fallocate(fd, 0, RESERVE_BYTES) == 0)
		return true;
	(void)unlink(path);
	return false;
}

bool store_reserve(struct store *st, bool keep)
{
	auto_free char *path = NULL;

	if (asprintf(&path, "%s-reserve", st->path) < 0) {
		path = NULL;
		return false;
	}
	return keep ? make_reserve(path) : unlink(path) == 0;
}

static void disconnect(struct store *db)
{
	for (size_t i = 0; i < db->nstatements; i++)
		sqlite3_finalize(db->statements[i].stmt);
	db->nstatements = 0;
	if (db->failed) /* leave the log as it is for the next to recover from */
		sqlite3_db_config(db->sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_close(db->sql);
	db->sql = NULL;
}

static void db_free(struct store *db)
{
	disconnect(db);
	if (db->owner >= 0)
		close(db->owner); /* last: from here on it is another's */
	free(db);
}
DEFINE_AUTO(struct store *, db_free);

void store_close(struct store *st)
{
	if (st)
		db_free(st);
}

static struct store *db_new(const char *path, const char *const *schema)
{
	size_t size = strlen(path) + 1;
	struct store *db = calloc(1, sizeof(*db) + size);

	if (!db)
		return NULL;
	db->owner = -1;
	db->schema = schema;
	memcpy(db->path, path, size);
	return db;
}

/* Makes the database if there never was one. */
static int find_or_make(const char *path, const char *const *schema, struct err *err)
{
	auto_free char *log = NULL;
	struct stat st;

	if (stat(path, &st) == 0)
		return st.st_size > 0
			       ? 0
			       : err_set(err, ERR_INTERNAL,
					 "%s is empty: its content was lost; restore a copy", path);
	if (errno != ENOENT)
		return err_sys(err, errno, "%s", path);
	if (asprintf(&log, "%s-wal", path) < 0) {
		log = NULL;
		return err_sys(err, ENOMEM, "%s", path);
	}
	if (stat(log, &st) == 0)
		return err_set(err, ERR_INTERNAL,
			       "%s is missing but its log %s is there; restore a copy", path, log);
	return sqlite_make(path, schema, err);
}

static int apply(struct store *db, const char *const *settings, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		int rc = sqlite3_exec(db->sql, settings[i], NULL, NULL, NULL);

		if (rc != SQLITE_OK)
			return db_fail(db, rc, err);
	}
	return 0;
}

/* Whether the first row of a pragma is this word; what it was instead is in `ret`. */
static int answers(struct store *db, const char *sql, const char *want, char *ret, size_t size,
		   struct err *err)
{
	auto_call(db_reset) sqlite3_stmt *stmt = NULL;
	const char *said;
	int row;

	if (db_start(db, sql, NULL, 0, &stmt, err) < 0)
		return -1;
	row = db_next(db, stmt, err);
	if (row < 0)
		return -1;
	said = row ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
	snprintf(ret, size, "%s", said ? said : "no answer");
	return strcmp(ret, want) == 0;
}

static int check_whole(struct store *db, struct err *err)
{
	char said[128];
	int ok = answers(db, "PRAGMA quick_check(1)", "ok", said, sizeof(said), err);

	if (ok == 0)
		return err_set(err, ERR_INTERNAL,
			       "%s is damaged (%s); it is left as it is: restore a copy", db->path,
			       said);
	return ok < 0 ? -1 : 0;
}

static int use_log(struct store *db, struct err *err)
{
	char said[128];
	int ok = answers(db, "PRAGMA journal_mode = WAL", "wal", said, sizeof(said), err);

	if (ok == 0)
		return err_set(err, ERR_UNAVAILABLE, "%s: no write-ahead log here (%s)", db->path,
			       said);
	return ok < 0 ? -1 : 0;
}

static int take_up(struct store *db, struct err *err)
{
	int version;

	if (sqlite3_db_readonly(db->sql, "main") == 1)
		return err_set(err, ERR_UNAVAILABLE, "%s: cannot be written to", db->path);
	if (apply(db, before, ARRAY_LEN(before), err) < 0 ||
	    sqlite_identify(db, db->schema, &version, err) < 0 || check_whole(db, err) < 0)
		return -1;
	if (use_log(db, err) < 0 || apply(db, after, ARRAY_LEN(after), err) < 0)
		return -1;
	return sqlite_migrate(db, db->schema, version, err);
}

static int connect_to(struct store *db, struct err *err)
{
	int rc = sqlite3_open_v2(db->path, &db->sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
				 NULL);

	if (rc != SQLITE_OK)
		return db_fail(db, rc, err);
	/* an engine that was killed a moment ago may not be all gone yet */
	(void)sqlite3_busy_timeout(db->sql, OPEN_WAIT_MS);
	return take_up(db, err);
}

int sqlite_open(const char *path, const char *socket, const char *const *schema, struct store **ret,
		struct err *err)
{
	auto_call(db_free) struct store *db = db_new(path, schema);

	if (!db)
		return err_sys(err, ENOMEM, "%s", path);
	if (sqlite_owner_take(path, socket, &db->owner, err) < 0 ||
	    find_or_make(path, schema, err) < 0)
		return -1;
	if (connect_to(db, err) < 0)
		return -1;
	*ret = steal_ptr(&db);
	(void)store_reserve(*ret, true);
	return 0;
}

/* A page whose sync failed counts as written although it may never reach the disk. So the log is
 * not gone on with: all of it is written once more, into the database, and synced there. */
static int settle_log(struct store *db, struct err *err)
{
	int rc = sqlite3_wal_checkpoint_v2(db->sql, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

	return rc == SQLITE_OK ? 0 : db_fail(db, rc, err);
}

int sqlite_reopen(struct store *db, struct err *err)
{
	if (clock_mono_ms() < db->retry_at)
		return err_set(
			err, ERR_UNAVAILABLE,
			"%s failed a moment ago: nothing is written until it is opened again",
			db->path);
	db->retry_at = clock_mono_ms() + REOPEN_MS;
	if (db->sql)
		db->changes += sqlite3_total_changes64(db->sql);
	disconnect(db);
	if (connect_to(db, err) < 0 || settle_log(db, err) < 0)
		return -1;
	db->failed = false;
	return 0;
}

int store_open_sqlite(const char *path, const char *socket, struct store **ret, struct err *err)
{
	return sqlite_open(path, socket, schema_files, ret, err);
}
