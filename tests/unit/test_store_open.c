/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_open.h"

#include "base/array.h"
#include "store/schema.h"
#include "store_dir.h"

#define OPEN()                                                                                     \
	auto_call(store_close) struct store *st = NULL;                                            \
	struct err err = { 0 };                                                                    \
	forget();                                                                                  \
	st = reopen(&err);                                                                         \
	CHECK(st)
#define COUNT "SELECT count(*) FROM event"

static int append(struct store *st, int n)
{
	struct store_event e = { .kind = "tick", .cause.text = "something to fill a page with" };
	struct err err;

	while (n-- > 0)
		if (store_event_append(st, &e, &err) < 0)
			return -1;
	return 0;
}

static void sql(const char *text) /* through another connection, while no store is open */
{
	sqlite3 *db;

	sqlite3_open(path, &db);
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		printf("# %s: %s\n", text, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static int64_t size_of(const char *name)
{
	struct stat st;

	return stat(name, &st) < 0 ? -1 : (int64_t)st.st_size;
}

/* ---- refused files ------------------------------------------------------------------------- */

static bool refused(enum err_code code, const char *words)
{
	struct err err = { 0 };
	struct store *st = reopen(&err);

	if (!st && err.code == code && strstr(err.msg, words))
		return true;
	printf("# %s: %d %s\n", st ? "opened" : "refused", err.code, err.msg);
	store_close(st);
	return false;
}

static void fill(const char *bytes, size_t len, off_t at)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (pwrite(fd, bytes, len, at) < 0)
		printf("# %s: %m\n", path);
	close(fd);
}

/* From the header; the file has room behind its last page. */
static int64_t pages_in_file(void)
{
	unsigned char h[32] = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (pread(fd, h, sizeof(h), 0) < 0)
		printf("# %s: %m\n", path);
	close(fd);
	return (int64_t)h[28] << 24 | h[29] << 16 | h[30] << 8 | h[31];
}

static void a_damaged_file_is_refused_unchanged(void)
{
	char junk[4096];
	int64_t before;

	OPEN();
	CHECK(!append(st, 60));
	store_close(steal_ptr(&st));
	before = size_of(path);
	memset(junk, 0xa5, sizeof(junk));
	fill(junk, sizeof(junk), pages_in_file() / 2 * 4096);
	CHECK(refused(ERR_INTERNAL, "is damaged") && size_of(path) == before);
	fill(junk, 100, 0);
	CHECK(refused(ERR_INTERNAL, "is damaged") && size_of(path) == before);
}

static void a_lost_file_is_not_replaced_by_an_empty_one(void)
{
	char log[128];

	OPEN();
	store_close(steal_ptr(&st));
	CHECK(truncate(path, 0) == 0);
	CHECK(refused(ERR_INTERNAL, "is empty") && size_of(path) == 0);
	unlink(path);
	snprintf(log, sizeof(log), "%s-wal", path);
	close(open(log, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	CHECK(refused(ERR_INTERNAL, "is missing, but its log") && size_of(path) == -1);
}

static void a_newer_or_foreign_file_is_refused(void)
{
	OPEN();
	store_close(steal_ptr(&st));
	sql("PRAGMA user_version = 1000");
	CHECK(refused(ERR_INVALID,
		      "was written by a newer lodge (schema 1000, this version supports"));
	forget();
	sql("CREATE TABLE x (y)");
	CHECK(refused(ERR_INVALID, "is not a lodge database"));
	forget();
	fill("hello, this is no database at all, just some text", 49, 0);
	CHECK(refused(ERR_INTERNAL, "is damaged"));
}

static void second_opener(void)
{
	char want[64];

	snprintf(want, sizeof(want), "is in use by process %d (/run/lodge.sock)", (int)getppid());
	CHECK(refused(ERR_CONFLICT, want));
}

static void a_second_opener_gets_the_owners_pid(void)
{
	OPEN();
	CHECK(in_child(second_opener));
	CHECK(refused(ERR_CONFLICT,
		      "is in use by process")); /* this process cannot open it either */
	store_close(steal_ptr(&st));
	st = reopen(&err);
	CHECK(st);
}

static void other_programs_cannot_open_it(void)
{
	sqlite3 *other;

	OPEN();
	CHECK(!append(st, 1));
	sqlite3_open(path, &other);
	CHECK(sqlite3_exec(other, "SELECT * FROM session", NULL, NULL, NULL) == SQLITE_BUSY);
	sqlite3_close(other);
	CHECK(!append(st, 1));
}

static void open_as_other_user(void)
{
	if (getuid() == 0)
		CHECK(setgid(65534) == 0 && setuid(65534) == 0);
	CHECK(refused(ERR_UNAVAILABLE, path));
}

static void a_directory_that_cannot_be_written_is_a_clear_error(void)
{
	OPEN();
	CHECK(!append(st, 1));
	store_close(steal_ptr(&st));
	CHECK(chmod(dir, 0555) == 0);
	CHECK(in_child(open_as_other_user));
	CHECK(chmod(dir, 0777) == 0);
	CHECK(in_child(open_as_other_user)); /* another process still owns the files */
	st = reopen(&err);
	CHECK(st && pragma(st, COUNT) == 1);
}

/* ---- migrations ---------------------------------------------------------------------------- */

enum { SCHEMA_MAX = 64 };

/* Copies all schema files and adds one; returns the number of the built-in ones. */
static int one_more(const char *schema[static SCHEMA_MAX], const char *more)
{
	int n = 0;

	for (; schema_files[n] && n < SCHEMA_MAX - 2; n++)
		schema[n] = schema_files[n];
	schema[n] = more;
	schema[n + 1] = NULL;
	return n;
}

static void an_older_file_is_copied_and_migrated(void)
{
	const char *schema[SCHEMA_MAX];
	int n = one_more(schema, "CREATE TABLE more (x INTEGER) STRICT");
	char copy[128], said[64];

	OPEN();
	CHECK(!append(st, 3));
	store_close(steal_ptr(&st));
	CHECK(!sqlite_open(path, "x", schema, &st, &err));
	CHECK(pragma(st, "PRAGMA user_version") == n + 1 &&
	      pragma(st, "SELECT count(*) FROM more") == 0);
	CHECK(pragma(st, COUNT) == 3);
	store_close(steal_ptr(&st));
	snprintf(said, sizeof(said), "newer lodge (schema %d, this version supports %d)", n + 1, n);
	CHECK(refused(ERR_INVALID, said));
	snprintf(copy, sizeof(copy), "%s.v%d", path, n);
	CHECK(rename(copy, path) == 0);
	st = reopen(&err);
	CHECK(st && pragma(st, COUNT) == 3);
}

static void a_file_of_the_first_version_is_migrated(void)
{
	const char *const first[] = { schema_files[0], NULL };
	struct store_session s = { .id = "s1", .tenant = "t" };
	struct store_policy p = { .tenant = "t", .name = "one" };
	struct store_event_list events = { 0 };

	OPEN();
	store_close(steal_ptr(&st));
	CHECK(unlink(path) == 0);
	CHECK(!sqlite_open(path, "x", first, &st, &err));
	store_close(steal_ptr(&st));
	sql("INSERT INTO event (tenant, session, kind, version, cause_at)"
	    " VALUES ('t', 's0', 'create', 1, 5)");
	st = reopen(&err);
	CHECK(st && pragma(st, COUNT) == 1);
	CHECK(!store_event_since(st, 0, "t", "s0", 10, &events, &err) && events.count == 1 &&
	      !*events.items[0].key && !*events.items[0].user);
	store_event_list_fini(&events);
	CHECK(!store_policy_add(st, &p, &err));
	strcpy(s.policy, "one");
	CHECK(!store_session_create(st, &s, NULL, &err));
}

/* Until schema 5 one time was both the first expiry and the most of an extension. */
static void sessions_of_schema_4_keep_their_lifetime(void)
{
	const char *schema[SCHEMA_MAX] = { NULL };
	struct store_session s;

	OPEN();
	store_close(steal_ptr(&st));
	CHECK(unlink(path) == 0);
	memcpy(schema, schema_files, 4 * sizeof(*schema));
	CHECK(!sqlite_open(path, "x", schema, &st, &err));
	store_close(steal_ptr(&st));
	sql("INSERT INTO session (id, version, tenant, state, runtime, on_idle, on_expire, paused, "
	    "generation, incarnation, created_at, started_at, last_activity_at, idle_timeout_ms, "
	    "max_lifetime_ms, hibernate_at, expires_at, due_at, memory_bytes, disk_bytes, "
	    "cause_at) "
	    "VALUES ('awake', 1, 't', 2, 2, 0, 0, 0, 0, 0, 5, 6, 7, 60, 600, 67, 606, 67, 0, 0, 0),"
	    "('asleep', 1, 't', 4, 1, 0, 0, 0, 1, 1, 5, 6, 7, 60, 600, 0, 0, 0, 0, 0, 70)");
	st = reopen(&err);
	CHECK(st && !store_session_get(st, "awake", &s, &err));
	CHECK(s.lifetime_ms == 600 && s.max_lifetime_ms == 600 && s.expires_at == 606);
	CHECK(!s.delete_after_ms && !s.hibernated_at);
	store_session_fini(&s);
	CHECK(!store_session_get(st, "asleep", &s, &err));
	CHECK(s.lifetime_ms == 600 && !s.delete_after_ms && s.hibernated_at == 70);
	store_session_fini(&s);
}

static void a_migration_that_fails_changes_nothing(void)
{
	const char *schema[SCHEMA_MAX];
	int n = one_more(schema, "CREATE TABLE more (x INTEGER) STRICT; SELECT nonsense;");
	char said[32];

	OPEN();
	CHECK(!append(st, 3));
	store_close(steal_ptr(&st));
	CHECK(sqlite_open(path, "x", schema, &st, &err) == -1 && !st);
	snprintf(said, sizeof(said), "schema %d: ", n + 1);
	CHECK(strstr(err.msg, said) && strstr(err.msg, "nonsense"));
	st = reopen(&err);
	CHECK(st && pragma(st, "PRAGMA user_version") == n);
	CHECK(pragma(st, "SELECT count(*) FROM sqlite_schema WHERE name = 'more'") == 0);
	CHECK(pragma(st, COUNT) == 3);
}

static void an_incomplete_file_is_created_again(void)
{
	char half[128];

	forget();
	snprintf(half, sizeof(half), "%s.new", path);
	close(open(half, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	auto_call(store_close) struct store *st = reopen(&(struct err){ 0 });
	CHECK(st && size_of(half) == -1);
}

int main(void)
{
	if (!make_dir())
		return 99;
	RUN(a_damaged_file_is_refused_unchanged);
	RUN(a_lost_file_is_not_replaced_by_an_empty_one);
	RUN(a_newer_or_foreign_file_is_refused);
	RUN(a_second_opener_gets_the_owners_pid);
	RUN(other_programs_cannot_open_it);
	RUN(a_directory_that_cannot_be_written_is_a_clear_error);
	RUN(an_older_file_is_copied_and_migrated);
	RUN(a_file_of_the_first_version_is_migrated);
	RUN(sessions_of_schema_4_keep_their_lifetime);
	RUN(a_migration_that_fails_changes_nothing);
	RUN(an_incomplete_file_is_created_again);
	remove_dir();
	return tap_done();
}
