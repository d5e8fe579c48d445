/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FILE_BYTES = 1 << 20,
	/* A deletion writes some 20 pages, so this is for more than ten of them before the log is
	 * used again from its start. */
	LOG_BYTES = 1 << 20,
	STEP_BYTES = 256 << 10, /* a write is smaller; the log grows in such steps, too */
	CHECKPOINT_FRAMES = 1000, /* SQLite's default */
	HEADER_BYTES = 32, /* of the log */
	FRAME_BYTES = 24, /* of each page in it */
};

static _Thread_local enum store_reserve_use reserve_use;

enum store_reserve_use store_reserve_set(enum store_reserve_use use)
{
	enum store_reserve_use was = reserve_use;

	reserve_use = use;
	return was;
}

/* ---- the log --------------------------------------------------------------------------------- */

static int64_t log_used(const struct store *db)
{
	return HEADER_BYTES + db->log.frames * (db->log.page_bytes + FRAME_BYTES);
}

/* A checkpoint of all frames lets the next write begin at the start of the log. */
static int checkpoint(struct store *db, int how)
{
	int frames = 0, done = 0;
	int rc = sqlite3_wal_checkpoint_v2(db->sql, NULL, how, &frames, &done);

	if (rc == SQLITE_OK && frames == done)
		db->log.frames = 0;
	return rc;
}

/* Replaces SQLite's own, which only checkpoints: there can be one. */
static int on_commit(void *arg, sqlite3 *sql, const char *name, int frames)
{
	struct store *db = arg;

	(void)sql;
	(void)name;
	db->log.frames = frames;
	if (frames >= CHECKPOINT_FRAMES)
		(void)checkpoint(db, SQLITE_CHECKPOINT_PASSIVE); /* the next commit tries again */
	return SQLITE_OK;
}

/* False: the disk is full. SQLite takes the zeros behind the last frame for what they are. Its
 * locks are on the database file, so closing a descriptor of the log releases none. */
static bool extend_log(struct store *db)
{
	auto_call(sqlite3_free) char *path = sqlite3_mprintf("%s-wal", db->path);
	auto_close int fd = path ? open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	int64_t size = log_used(db) + LOG_BYTES + 2 * (int64_t)STEP_BYTES;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return true;
	db->log.bytes = st.st_size;
	if (st.st_size >= size)
		return true;
	r = posix_fallocate(fd, 0, size);
	if (r == 0)
		db->log.bytes = size;
	return r != ENOSPC && r != EDQUOT; /* another error is for the write to report */
}

/* For the checkpoint, which writes to the database file what is new in the log. */
static void extend_database(struct store *db)
{
	int step = STEP_BYTES;
	int64_t pages = 0, size;
	struct err ignored;

	if (db_number(db, "PRAGMA page_count", NULL, 0, &pages, &ignored) < 0)
		return;
	size = pages * db->log.page_bytes + STEP_BYTES;
	(void)sqlite3_file_control(db->sql, NULL, SQLITE_FCNTL_CHUNK_SIZE, &step);
	(void)sqlite3_file_control(db->sql, NULL, SQLITE_FCNTL_SIZE_HINT, &size);
}

/* What must be left after a write of this thread. */
static int64_t log_rest(void)
{
	static const int64_t rests[] = {
		[STORE_RESERVE_KEEP] = LOG_BYTES, [STORE_RESERVE_HALF] = LOG_BYTES / 2
	};

	return rests[reserve_use] + STEP_BYTES;
}

static bool has_rest(const struct store *db)
{
	return reserve_use == STORE_RESERVE_ALL || db->log.bytes - log_used(db) >= log_rest();
}

int sqlite_reserve_check(struct store *db, struct err *err)
{
	if (has_rest(db) || extend_log(db))
		return 0;
	(void)checkpoint(db, SQLITE_CHECKPOINT_RESTART);
	return has_rest(db) ? 0 : db_fail(db, SQLITE_FULL, err);
}

int sqlite_reserve_start(struct store *db, struct err *err)
{
	db->log.frames = db->log.bytes = 0;
	if (db_number(db, "PRAGMA page_size", NULL, 0, &db->log.page_bytes, err) < 0)
		return -1;
	(void)sqlite3_wal_hook(db->sql, on_commit, db);
	return 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool make_file(const char *path)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return errno == EEXIST;
	if (posix_fallocate(fd, 0, FILE_BYTES) == 0)
		return true;
	(void)unlink(path);
	return false;
}

bool store_reserve(struct store *st, bool keep)
{
	auto_call(sqlite3_free) char *path = sqlite3_mprintf("%s-reserve", st->path);

	if (!path)
		return false;
	if (!keep)
		return unlink(path) == 0;
	if (st->sql && !st->failed) {
		(void)extend_log(st);
		extend_database(st);
	}
	return make_file(path);
}
