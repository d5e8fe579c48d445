/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_open.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file_io.h"
#include "store/schema.h"
#include "store/sqlite_migrate.h"
#include "store/sqlite_reserve.h"

enum { OPEN_WAIT_MS = 3000, REOPEN_MS = 1000 };

/* These settings do not change the file: it is written only once it is known to be an intact lodge
 * database. In this locking mode SQLite keeps the index of the write-ahead log in its own memory:
 * that is safe with versions before 3.51.3 too, and excludes other programs. */
static const char settings_before_check[] = "PRAGMA locking_mode = EXCLUSIVE;"
					    "PRAGMA trusted_schema = OFF;"
					    "PRAGMA cell_size_check = ON";
static const char settings_after_check[] = "PRAGMA synchronous = FULL;"
					   "PRAGMA foreign_keys = ON;"
					   "PRAGMA journal_size_limit = 8388608";

int64_t store_changes(struct store *st)
{
	return st->changes + (st->sql ? sqlite3_total_changes64(st->sql) : 0);
}

void store_relax(struct store *st, bool on)
{
	static const char *const how[] = { "PRAGMA synchronous = FULL",
					   "PRAGMA synchronous = NORMAL" };

	/* A connection that stayed relaxed would acknowledge writes that are not durable, so it is
	 * opened again. */
	if (st->sql && sqlite3_exec(st->sql, how[on], NULL, NULL, NULL) != SQLITE_OK && !on)
		st->failed = true;
}

/* ---- the owner ----------------------------------------------------------------------------- */

/* A lock besides SQLite's: that one reports only "busy", and is lost as soon as anything in this
 * process opens and closes the database file. */
enum { LOCK_TRIES = 100, LOCK_WAIT_US = 20000 };

/* True if the process recorded in the file is dead. */
static bool is_orphaned(int fd)
{
	char text[512];
	long pid;

	if (file_read_fd(fd, text, sizeof(text)) <= 0)
		return false;
	pid = strtol(text, NULL, 10);
	return pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

static int fail_in_use(const char *path, int fd, struct err *err)
{
	char text[512], *socket;
	long pid;

	if (file_read_fd(fd, text, sizeof(text)) < 0)
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	pid = strtol(text, &socket, 10);
	if (pid <= 0 || *socket != ' ') /* The owner has not written its pid yet. */
		return err_set(err, ERR_CONFLICT, "%s is in use by another process", path);
	return err_set(err, ERR_CONFLICT,
		       "%s is in use by process %ld (%s); %s, or set LODGE_DATA to "
		       "another directory",
		       path, pid, socket + 1,
		       strcmp(socket + 1, "liblodge") == 0
			       ? "end that program, let both use one lodged"
			       : "connect to it there");
}

/* An owner killed during fork and exec leaves the lock to its child for a moment. */
static int lock_file(int fd)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK || !is_orphaned(fd))
			return -errno;
		usleep(LOCK_WAIT_US);
	}
	return -EWOULDBLOCK;
}

/* Locks `<path>.owner` and writes this process into it. The lock lasts as long as the descriptor is
 * open. If another process holds it, ERR_CONFLICT names that process and its socket. */
static int take_ownership(const char *path, const char *socket, int *ret, struct err *err)
{
	auto_call(sqlite3_free) char *name = sqlite3_mprintf("%s.owner", path);
	auto_close int fd = -1;
	int r;

	if (!name)
		return err_sys(err, ENOMEM, "%s", path);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		err_sys(err, errno, "%s", name);
		err->code = ERR_UNAVAILABLE;
		return -1;
	}
	r = lock_file(fd);
	if (r < 0)
		return r == -EWOULDBLOCK ? fail_in_use(path, fd, err)
					 : err_sys(err, -r, "lock %s", name);
	if (ftruncate(fd, 0) < 0 || dprintf(fd, "%ld %s\n", (long)getpid(), socket) < 0)
		return err_sys(err, errno, "%s", name);
	*ret = steal_fd(&fd);
	return 0;
}

/* ---- the connection ------------------------------------------------------------------------ */

static void disconnect(struct store *db)
{
	for (size_t i = 0; i < db->nstatements; i++)
		sqlite3_finalize(db->statements[i].stmt);
	db->nstatements = 0;
	if (db->failed) /* leave the log for the next open to recover from */
		sqlite3_db_config(db->sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_close(db->sql);
	db->sql = NULL;
}

static void db_free(struct store *db)
{
	disconnect(db);
	if (db->owner >= 0)
		close(db->owner); /* last: the lock may now be taken by another process */
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

/* Creates the database unless there has been one. */
static int create_if_missing(const char *path, const char *const *schema, struct err *err)
{
	auto_call(sqlite3_free) char *log = sqlite3_mprintf("%s-wal", path);
	struct stat st;

	if (!log)
		return err_sys(err, ENOMEM, "%s", path);
	if (stat(path, &st) == 0)
		return st.st_size > 0
			       ? 0
			       : err_set(err, ERR_INTERNAL,
					 "%s is empty, its content was lost: restore a backup",
					 path);
	if (errno != ENOENT)
		return err_sys(err, errno, "%s", path);
	if (stat(log, &st) == 0)
		return err_set(err, ERR_INTERNAL,
			       "%s is missing, but its log %s exists: restore a backup", path, log);
	return sqlite_make(path, schema, err);
}

/* 1 if the first row of a pragma is `want`, else 0; `ret` gets the row. */
static int pragma_is(struct store *db, const char *sql, const char *want, char *ret, size_t size,
		     struct err *err)
{
	auto_call(db_reset) sqlite3_stmt *stmt = NULL;
	const char *value;
	int row;

	if (db_start(db, sql, NULL, 0, &stmt, err) < 0)
		return -1;
	row = db_next(db, stmt, err);
	if (row < 0)
		return -1;
	value = row ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
	snprintf(ret, size, "%s", value ? value : "no value");
	return strcmp(ret, want) == 0;
}

static int check_integrity(struct store *db, struct err *err)
{
	char value[128];
	int ok = pragma_is(db, "PRAGMA quick_check(1)", "ok", value, sizeof(value), err);

	if (ok == 0)
		return err_set(err, ERR_INTERNAL,
			       "%s is damaged (%s) and was left unchanged: restore a backup",
			       db->path, value);
	return ok < 0 ? -1 : 0;
}

static int enable_wal(struct store *db, struct err *err)
{
	char value[128];
	int ok = pragma_is(db, "PRAGMA journal_mode = WAL", "wal", value, sizeof(value), err);

	if (ok == 0)
		return err_set(err, ERR_UNAVAILABLE,
			       "%s: the file system does not support a write-ahead log (%s)",
			       db->path, value);
	return ok < 0 ? -1 : 0;
}

static int prepare_file(struct store *db, struct err *err)
{
	int version;

	if (sqlite3_db_readonly(db->sql, "main") == 1)
		return err_set(err, ERR_UNAVAILABLE, "%s: not writable", db->path);
	if (db_exec(db, settings_before_check, err) < 0 ||
	    sqlite_identify(db, db->schema, &version, err) < 0 || check_integrity(db, err) < 0 ||
	    enable_wal(db, err) < 0 || db_exec(db, settings_after_check, err) < 0)
		return -1;
	if (sqlite_migrate(db, db->schema, version, err) < 0)
		return -1;
	return sqlite_reserve_start(db, err);
}

static int connect_db(struct store *db, struct err *err)
{
	int rc = sqlite3_open_v2(db->path, &db->sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
				 NULL);

	if (rc != SQLITE_OK)
		return db_fail(db, rc, err);
	/* An engine that was just killed may not have released the file yet. */
	(void)sqlite3_busy_timeout(db->sql, OPEN_WAIT_MS);
	return prepare_file(db, err);
}

int sqlite_open(const char *path, const char *socket, const char *const *schema, struct store **ret,
		struct err *err)
{
	auto_call(db_free) struct store *db = db_new(path, schema);

	if (!db)
		return err_sys(err, ENOMEM, "%s", path);
	if (take_ownership(path, socket, &db->owner, err) < 0 ||
	    create_if_missing(path, schema, err) < 0 || connect_db(db, err) < 0)
		return -1;
	*ret = steal_ptr(&db);
	(void)store_reserve(*ret, true);
	return 0;
}

/* After a failed sync the kernel may report pages as written that never reach the disk. So the log
 * is not continued: a checkpoint writes all of it to the database and syncs that. */
static int checkpoint_log(struct store *db, struct err *err)
{
	int rc = sqlite3_wal_checkpoint_v2(db->sql, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

	return rc == SQLITE_OK ? 0 : db_fail(db, rc, err);
}

int sqlite_reopen(struct store *db, struct err *err)
{
	if (clock_mono_ms() < db->retry_at)
		return err_set(err, ERR_UNAVAILABLE,
			       "%s: I/O error; writing resumes once the file can be opened again",
			       db->path);
	db->retry_at = clock_mono_ms() + REOPEN_MS;
	if (db->sql)
		db->changes += sqlite3_total_changes64(db->sql);
	disconnect(db);
	if (connect_db(db, err) < 0 || checkpoint_log(db, err) < 0)
		return -1;
	db->failed = false;
	return 0;
}

int store_open_sqlite(const char *path, const char *socket, struct store **ret, struct err *err)
{
	return sqlite_open(path, socket, schema_files, ret, err);
}
