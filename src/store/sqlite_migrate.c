/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_migrate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* "lodg": identifies the file as a lodge database before its content is trusted. */
enum { APPLICATION = 0x6c6f6467 };
enum { OPEN_NEW = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX };

DEFINE_AUTO(sqlite3 *, sqlite3_close);

static int sync_directory_of(const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	auto_free char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	auto_close int fd = -1;

	if (!dir)
		return err_sys(err, ENOMEM, "%s", path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		return err_sys(err, errno, "sync the directory of %s", path);
	return 0;
}

static int rename_durably(const char *from, const char *to, struct err *err)
{
	if (rename(from, to) < 0)
		return err_sys(err, errno, "rename %s", from);
	return sync_directory_of(to, err);
}

/* Applies one file of schema/ and records its number in one transaction. */
static int apply(struct store *db, const char *sql, int version, struct err *err)
{
	char set[64];

	snprintf(set, sizeof(set), "PRAGMA user_version = %d", version);
	if (db_exec(db, "BEGIN IMMEDIATE", err) < 0)
		return -1;
	if (db_exec(db, sql, err) < 0 || db_exec(db, set, err) < 0 ||
	    db_exec(db, "COMMIT", err) < 0) {
		sqlite3_exec(db->sql, "ROLLBACK", NULL, NULL, NULL);
		return err_ctx(err, "schema %d", version);
	}
	return 0;
}

static int apply_from(struct store *db, const char *const *schema, int version, struct err *err)
{
	for (; schema[version]; version++)
		if (apply(db, schema[version], version + 1, err) < 0)
			return -1;
	return 0;
}

/* ---- a new one ----------------------------------------------------------------------------- */

static int remove_leftover(const char *name, struct err *err)
{
	auto_call(sqlite3_free) char *journal = sqlite3_mprintf("%s-journal", name);

	if (!journal)
		return err_sys(err, ENOMEM, "%s", name);
	if ((unlink(name) < 0 && errno != ENOENT) || (unlink(journal) < 0 && errno != ENOENT))
		return err_sys(err, errno, "remove %s", name);
	return 0;
}

static int create_file(struct store *db, const char *name, const char *const *schema,
		       struct err *err)
{
	auto_call(sqlite3_close) sqlite3 *sql = NULL;
	char mark[64];
	int rc;

	rc = sqlite3_open_v2(name, &sql, OPEN_NEW, NULL);
	db->sql = sql;
	if (rc != SQLITE_OK)
		return db_fail(db, rc, err);
	snprintf(mark, sizeof(mark), "PRAGMA application_id = %d", APPLICATION);
	return db_exec(db, mark, err) < 0 ? -1 : apply_from(db, schema, 0, err);
}

/* The file has another name until it is complete, so an empty file of the final name is always a
 * lost database, never a new one. */
int sqlite_make(const char *path, const char *const *schema, struct err *err)
{
	auto_free struct store *db = calloc(1, sizeof(*db) + strlen(path) + 1);
	auto_call(sqlite3_free) char *name = sqlite3_mprintf("%s.new", path);

	if (!db || !name)
		return err_sys(err, ENOMEM, "%s", path);
	memcpy(db->path, path, strlen(path) + 1);
	if (remove_leftover(name, err) < 0 || create_file(db, name, schema, err) < 0)
		return -1;
	return rename_durably(name, path, err);
}

/* ---- an older one -------------------------------------------------------------------------- */

static int copy_into(struct store *db, const char *name, struct err *err)
{
	auto_call(sqlite3_close) sqlite3 *to = NULL;
	sqlite3_backup *copy;
	int rc;

	rc = sqlite3_open_v2(name, &to, OPEN_NEW, NULL);
	if (rc == SQLITE_OK) {
		copy = sqlite3_backup_init(to, "main", db->sql, "main");
		if (copy)
			sqlite3_backup_step(copy, -1);
		rc = copy ? sqlite3_backup_finish(copy) : sqlite3_errcode(to);
	}
	if (rc == SQLITE_OK)
		return 0;
	return err_set(err, (rc & 0xff) == SQLITE_FULL ? ERR_LIMIT : ERR_UNAVAILABLE,
		       "back up to %s: %s", name, sqlite3_errstr(rc));
}

static int back_up(struct store *db, int version, struct err *err)
{
	auto_call(sqlite3_free) char *name = sqlite3_mprintf("%s.v%d", db->path, version);
	auto_call(sqlite3_free) char *half = sqlite3_mprintf("%s.v%d.new", db->path, version);

	if (!name || !half)
		return err_sys(err, ENOMEM, "%s", db->path);
	if (remove_leftover(half, err) < 0)
		return -1;
	if (copy_into(db, half, err) < 0) {
		unlink(half);
		return -1;
	}
	return rename_durably(half, name, err);
}

int sqlite_identify(struct store *db, const char *const *schema, int *ret_version, struct err *err)
{
	int64_t application, version;
	int newest = 0;

	while (schema[newest])
		newest++;
	if (db_number(db, "PRAGMA application_id", NULL, 0, &application, err) < 0 ||
	    db_number(db, "PRAGMA user_version", NULL, 0, &version, err) < 0)
		return -1;
	if (application != APPLICATION || version < 1)
		return err_set(err, ERR_INVALID, "%s is not a lodge database", db->path);
	if (version > newest)
		return err_set(
			err, ERR_INVALID,
			"%s was written by a newer lodge (schema %lld, this version supports %d)",
			db->path, (long long)version, newest);
	*ret_version = (int)version;
	return 0;
}

int sqlite_migrate(struct store *db, const char *const *schema, int version, struct err *err)
{
	if (!schema[version])
		return 0;
	if (back_up(db, version, err) < 0)
		return err_ctx(err, "backup before the migration");
	return apply_from(db, schema, version, err);
}
