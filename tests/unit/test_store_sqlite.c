/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_open.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "store_contract.h"
#include "store_dir.h"

/* These override the functions that SQLite calls. */
static int syncs;
static bool sync_fails;

static int count_sync(long call, int fd)
{
	syncs++;
	if (sync_fails)
		errno = EIO;
	return sync_fails ? -1 : (int)syscall(call, fd);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
	return count_sync(SYS_fsync, fd);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	return count_sync(SYS_fdatasync, fd);
}

static struct store *open_empty(void)
{
	struct err err;

	forget();
	return reopen(&err);
}

/* ---- settings ------------------------------------------------------------------------------ */

static void the_settings_are_applied(void)
{
	OPEN();
	CHECK(pragma(st, "PRAGMA synchronous") == 2);
	CHECK(pragma(st, "PRAGMA foreign_keys") == 1);
	CHECK(pragma(st, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'") ==
	      1);
	CHECK(pragma(st, "SELECT count(*) FROM pragma_locking_mode "
			 "WHERE locking_mode = 'exclusive'") == 1);
}

static void a_change_is_synced_before_it_is_acknowledged(void)
{
	struct store_event e = event("x");
	int before;

	OPEN();
	for (int i = 0; i < 20; i++) {
		before = syncs;
		CHECK(!store_event_append(st, &e, &err) && syncs > before);
		before = syncs;
		CHECK(last_event(st) == e.id && syncs == before);
	}
}

static void a_relaxed_change_is_synced_with_the_next_one(void)
{
	struct store_event e = event("x");
	int before;

	OPEN();
	CHECK(!store_event_append(st, &e, &err)); /* creates the header of the log */
	before = syncs;
	store_relax(st, true);
	for (int i = 0; i < 20; i++)
		CHECK(!store_event_append(st, &e, &err));
	store_relax(st, false);
	CHECK(syncs == before && pragma(st, "PRAGMA synchronous") == 2);
	CHECK(!store_event_append(st, &e, &err) && syncs > before);
}

static void write_relaxed_and_die(void)
{
	struct store_event e = event("x");
	struct err err;
	struct store *st = reopen(&err);

	CHECK(st);
	store_relax(st, true);
	for (int i = 0; i < 20; i++)
		CHECK(!store_event_append(st, &e, &err));
	raise(SIGKILL);
}

static void a_relaxed_change_outlives_the_process(void)
{
	struct err err;
	struct store *st;

	forget();
	(void)in_child(write_relaxed_and_die);
	st = reopen(&err);
	CHECK(st && last_event(st) == 20);
	store_close(st);
}

static const struct columns *const tables[] = {
	&columns_session,  &columns_tombstone, &columns_layer,	     &columns_snapshot,
	&columns_exec,	   &columns_once,      &columns_event,	     &columns_project,
	&columns_fragment, &columns_user,      &columns_member,	     &columns_key,
	&columns_policy,   &columns_quota,     &columns_environment, &columns_ended_sandbox,
};

/* The schema has these columns of these types, and no others. */
static void the_columns_of_the_records_are_those_of_the_schema(void)
{
	static const char *const types[] = {
		[COLUMN_SEQ] = "INTEGER", [COLUMN_NUM] = "INTEGER", [COLUMN_TEXT] = "TEXT",
		[COLUMN_STRING] = "TEXT", [COLUMN_OWNED] = "TEXT",  [COLUMN_BYTES] = "BLOB"
	};

	OPEN();
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		const struct columns *s = tables[i];
		sqlite3_stmt *stmt = NULL;
		size_t n = 0;

		for (; n < s->count; n++) {
			const char *type = "";

			printf("# %s.%s\n", s->table, s->fields[n].name);
			CHECK(!sqlite3_table_column_metadata(st->sql, "main", s->table,
							     s->fields[n].name, &type, NULL, NULL,
							     NULL, NULL));
			CHECK_STR(type, types[s->fields[n].kind]);
		}
		CHECK(!sqlite3_prepare_v2(st->sql, "SELECT name FROM pragma_table_info(?1)", -1,
					  &stmt, NULL));
		CHECK(!sqlite3_bind_text(stmt, 1, s->table, -1, SQLITE_STATIC));
		for (; sqlite3_step(stmt) == SQLITE_ROW; n--)
			CHECK(n > 0);
		sqlite3_finalize(stmt);
		CHECK(n == 0);
	}
}

static void a_parameter_without_a_column_is_an_error(void)
{
	struct store_layer l = { .id = "l" };

	OPEN();
	CHECK(db_run_record(st, "DELETE FROM layer WHERE id = :ident", &columns_layer, &l, &err) ==
	      -1);
	CHECK_STR(err.msg, "table layer has no column ident");
}

static void every_table_is_strict(void)
{
	OPEN();
	CHECK(pragma(st,
		     "SELECT count(*) FROM pragma_table_list WHERE type = 'table' AND NOT strict "
		     "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'") == 0);
	CHECK(pragma(st, "SELECT count(*) FROM pragma_table_list WHERE strict") > 15);
}

static void lookups_and_the_sweep_go_by_an_index(void)
{
	static const char *const queries[] = {
		"SELECT * FROM session WHERE id = 'x'",
		"SELECT * FROM session WHERE sandbox = 'x'",
		"SELECT * FROM ended_sandbox WHERE id = 'x'",
		"SELECT id FROM ended_sandbox WHERE session = 'x' ORDER BY cause_at DESC",
		"DELETE FROM ended_sandbox WHERE cause_at < 1",
		"SELECT session FROM binding WHERE tenant = 't' AND kind = 'k' AND key = 'x'",
		"SELECT * FROM session WHERE due_at > 0 AND due_at <= 5 ORDER BY due_at LIMIT 3",
		"SELECT * FROM session WHERE tenant = 't' AND user = 'u' AND seq > 5 ORDER BY seq",
		"SELECT * FROM snapshot WHERE tenant = 't' AND session = 's' AND seq > 5 "
		"ORDER BY seq",
		"SELECT * FROM snapshot AS n WHERE tenant = 't' AND seq > 5 AND (EXISTS "
		"(SELECT 1 FROM session AS s WHERE s.id = n.session AND s.user = 'u') OR EXISTS "
		"(SELECT 1 FROM tombstone AS t WHERE t.session = n.session AND t.user = 'u'))",
		"SELECT * FROM event WHERE id > 5 AND session = 's' ORDER BY id LIMIT 3",
		"DELETE FROM event WHERE cause_at < 5",
		"DELETE FROM exec WHERE state > 0 AND ended_at < 5",
	};

	OPEN();
	for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
		char text[320];

		snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", queries[i]);
		auto_call(db_reset) sqlite3_stmt *stmt = NULL;
		CHECK(sqlite3_prepare_v2(st->sql, text, -1, &stmt, NULL) == SQLITE_OK);
		while (sqlite3_step(stmt) == SQLITE_ROW)
			CHECK(strncmp((const char *)sqlite3_column_text(stmt, 3), "SCAN", 4) != 0);
		sqlite3_finalize(steal_ptr(&stmt));
	}
}

/* ---- durability ---------------------------------------------------------------------------- */

static void records_survive_reopening(void)
{
	struct store_binding b;
	struct store_session s = bound("s1", &b, "k"), got;
	struct store_event ev = event("created");

	OPEN();
	CHECK(!store_session_create(st, &s, &ev, &err));
	store_close(steal_ptr(&st));
	st = reopen(&err);
	CHECK(st && !store_session_find(st, "t", &b, &got, &err) && got.version == 1);
	store_session_fini(&got);
	CHECK(last_event(st) == 1 && store_changes(st) == 0);
}

static int ack_pipe;

/* Writes until it is killed, and reports each id once the store has acknowledged it. */
static void write_for_ever(void)
{
	struct err err;
	struct store *st = reopen(&err);

	for (int i = 0; st; i++) {
		struct store_binding b;
		struct store_session s;
		struct store_event ev = event("created");
		char id[24];

		snprintf(id, sizeof(id), "%d-%d", (int)getpid(), i);
		s = bound(id, &b, id);
		if (store_session_create(st, &s, &ev, &err) < 0 ||
		    store_session_update(st, &s, &ev, NULL, &err) < 0)
			_exit(1);
		if (write(ack_pipe, id, sizeof(id)) != sizeof(id))
			_exit(2);
	}
	_exit(3);
}

/* Number of acknowledged records that are missing or incomplete; *ret_seen: number of acknowledged
 * records. */
static int count_missing(struct store *st, int fd, int *ret_seen)
{
	char id[24];
	int missing = 0;

	while (read(fd, id, sizeof(id)) == sizeof(id)) {
		struct store_binding b = { .kind = "key" };
		struct store_session got;
		struct store_event_list l = { 0 };
		struct err err;

		strcpy(b.key, id);
		++*ret_seen;
		if (store_session_find(st, "t", &b, &got, &err) < 0) {
			missing++;
			continue;
		}
		missing += store_event_since(st, 0, NULL, id, 10, &l, &err) < 0 || l.count != 2 ||
			   got.version != 2;
		store_event_list_fini(&l);
		store_session_fini(&got);
	}
	return missing;
}

static void kill_9_loses_nothing_acknowledged(void)
{
	int seen = 0;

	forget();
	for (int round = 0; round < 12; round++) {
		auto_call(store_close) struct store *st = NULL;
		struct err err;
		int fds[2], status;
		pid_t pid;

		CHECK(pipe2(fds, O_CLOEXEC) == 0);
		fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
		ack_pipe = fds[1];
		fflush(stdout);
		pid = fork();
		if (pid == 0)
			write_for_ever();
		close(fds[1]);
		poll(&(struct pollfd){ .fd = fds[0], .events = POLLIN }, 1, 30000);
		usleep((unsigned)(20000 + 7919 * round));
		CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
		CHECK(WIFSIGNALED(status));
		st = reopen(&err);
		CHECK(st);
		CHECK(count_missing(st, fds[0], &seen) == 0);
		/* no partial transactions: as many events as versions */
		CHECK(pragma(st,
			     "SELECT (SELECT sum(version) FROM session) - count(*) FROM event") ==
		      0);
		close(fds[0]);
	}
	printf("# %d acknowledged writes, 12 kills\n", seen);
	CHECK(seen > 0);
}

/* ---- the disk fails ------------------------------------------------------------------------ */

/* Appends until it fails; returns the number of records. */
static int append_until_refused(struct store *st, struct err *err)
{
	static char data[32 << 10];
	int n = 0;

	if (!data[0]) {
		memset(data, ' ', sizeof(data) - 1);
		data[0] = '{';
		data[sizeof(data) - 2] = '}';
	}
	for (; n < 10000; n++) {
		struct store_event e = event("big");

		e.data = data;
		if (store_event_append(st, &e, err) < 0)
			break;
	}
	return n;
}

static void fill_small_disk(void)
{
	struct store_event e = event("small");
	struct err err = { 0 };
	struct store *st;
	int n;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		_exit(77);
	CHECK(mount("lodge-test", dir, "tmpfs", 0, "size=4m") == 0);
	st = reopen(&err);
	CHECK(st);
	n = append_until_refused(st, &err);
	CHECK(n > 10 && n < 200 && err.code == ERR_LIMIT && strstr(err.msg, "disk is full"));
	CHECK(last_event(st) == n);
	/* nothing is free, but the reserve is there; a part of it is for deletions only */
	CHECK(store_reserve_set(STORE_RESERVE_HALF) == STORE_RESERVE_KEEP);
	CHECK(!store_event_append(st, &e, &err) && e.id == ++n);
	n += append_until_refused(st, &err);
	CHECK(err.code == ERR_LIMIT && store_reserve_set(STORE_RESERVE_ALL) == STORE_RESERVE_HALF);
	CHECK(!store_event_append(st, &e, &err) && e.id == ++n);
	n += append_until_refused(st, &err);
	CHECK(err.code == ERR_LIMIT && last_event(st) == n);
	/* the file is for the case that it is used up */
	CHECK(store_reserve(st, false) && !store_reserve(st, false));
	CHECK(!store_event_append(st, &e, &err) && e.id == ++n);
	CHECK(store_reserve_set(STORE_RESERVE_KEEP) == STORE_RESERVE_ALL);
	CHECK(!store_event_prune(st, 1, &err) || err.code == ERR_LIMIT);
	store_close(st);
	CHECK(mount(NULL, dir, NULL, MS_REMOUNT, "size=64m") == 0);
	st = reopen(&err); /* the same works in the open store: see below */
	CHECK(st && pragma(st, "SELECT count(*) FROM event") == n);
	CHECK(!store_event_append(st, &e, &err) && e.id == n + 1);
	CHECK(mount(NULL, dir, NULL, MS_REMOUNT, "size=6m") == 0);
	CHECK(append_until_refused(st, &err) < 200 && err.code == ERR_LIMIT);
	CHECK(mount(NULL, dir, NULL, MS_REMOUNT, "size=64m") == 0);
	CHECK(!store_event_append(st, &e, &err));
	store_close(st);
}

static void a_full_disk_is_a_clear_error_and_passes(void)
{
	forget();
	if (geteuid() != 0)
		SKIP("needs root");
	CHECK(in_child(fill_small_disk));
}

static void fail_to_write(void)
{
	static const char waits[] = "writing resumes once the file can be opened again";
	struct store_event e = event("small");
	struct rlimit few = { 512 << 10, RLIM_INFINITY };
	struct err err = { 0 };
	struct store *st = reopen(&err);
	int64_t changed;
	int n;

	CHECK(st);
	signal(SIGXFSZ, SIG_IGN);
	CHECK(setrlimit(RLIMIT_FSIZE, &few) == 0);
	n = append_until_refused(st, &err);
	CHECK(n > 2 && n < 50 && err.code == ERR_UNAVAILABLE);
	changed = store_changes(st);
	/* The store is reopened with an empty log, but not again within the same second. */
	for (int i = 0; i < 100 && !strstr(err.msg, waits);
	     i++) /* more than once if that took longer */
		CHECK(append_until_refused(st, &err) < 50 && err.code == ERR_UNAVAILABLE);
	CHECK(strstr(err.msg, waits));
	CHECK(last_event(st) >= n); /* reads still work */
	few.rlim_cur = RLIM_INFINITY;
	CHECK(setrlimit(RLIMIT_FSIZE, &few) == 0);
	sleep(2);
	n = (int)last_event(st);
	CHECK(!store_event_append(st, &e, &err) &&
	      e.id == n + 1); /* it recovered without intervention */
	CHECK(store_changes(st) > changed);
	n++;
	store_close(st);
	st = reopen(&err);
	CHECK(st && pragma(st, "SELECT count(*) FROM event") == n);
	CHECK(!store_event_append(st, &e, &err) && e.id == n + 1);
	store_close(st);
}

static void after_an_io_error_it_is_reopened_before_writes(void)
{
	forget();
	CHECK(in_child(fail_to_write));
}

static void after_a_failed_sync_it_is_reopened_too(void)
{
	struct store_event e = event("x");
	int64_t n;

	OPEN();
	CHECK(!store_event_append(st, &e, &err));
	sync_fails = true;
	CHECK(store_event_append(st, &e, &err) == -1 && err.code == ERR_UNAVAILABLE);
	/* After a failed sync the store is reopened, which syncs too. */
	CHECK(store_event_append(st, &e, &err) == -1 && err.code == ERR_UNAVAILABLE);
	sync_fails = false;
	CHECK(store_event_append(st, &e, &err) == -1 && err.code == ERR_UNAVAILABLE);
	store_close(steal_ptr(&st));
	st = reopen(&err);
	CHECK(st);
	n = pragma(st, "SELECT count(*) FROM event"); /* it was not acknowledged, so both results
							 are correct */
	CHECK((n == 1 || n == 2) && !store_event_append(st, &e, &err) && e.id == n + 1);
}

/* ---- timing -------------------------------------------------------------------------------- */

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int compare_us(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static const char *spread(int64_t *us, int n)
{
	static char text[2][64];
	static int turn;

	qsort(us, (size_t)n, sizeof(us[0]), compare_us);
	turn = !turn;
	snprintf(text[turn], sizeof(text[turn]), "median %lld us, p99 %lld us",
		 (long long)us[n / 2], (long long)us[n * 99 / 100]);
	return text[turn];
}

/* Alternates with a plain write and fdatasync of the same size, to compare with the current speed
 * of the disk. */
static void a_commit_is_measured(void)
{
	enum { N = 300, BYTES = 6 * 4096 };
	static char block[BYTES];
	static int64_t us[N], bare[N];
	struct store_session s = session("s1");
	struct store_event ev = event("moved");
	auto_close int fd = -1;
	char name[192];

	OPEN();
	snprintf(name, sizeof(name), "%s/bare", dir);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && posix_fallocate(fd, 0, N * BYTES) == 0 && fsync(fd) == 0);
	CHECK(!store_session_create(st, &s, NULL, &err));
	for (int i = 0; i < N; i++) {
		us[i] = now_us();
		CHECK(!store_session_update(st, &s, &ev, NULL, &err));
		us[i] = now_us() - us[i];
		bare[i] = now_us();
		CHECK(write(fd, block, BYTES) == BYTES && fdatasync(fd) == 0);
		bare[i] = now_us() - bare[i];
	}
	printf("# update with event: %s; bare write and sync: %s\n", spread(us, N),
	       spread(bare, N));
}

int main(void)
{
	if (!make_dir())
		return 99;
	run_contract();
	RUN(the_settings_are_applied);
	RUN(a_change_is_synced_before_it_is_acknowledged);
	RUN(a_relaxed_change_is_synced_with_the_next_one);
	RUN(a_relaxed_change_outlives_the_process);
	RUN(the_columns_of_the_records_are_those_of_the_schema);
	RUN(a_parameter_without_a_column_is_an_error);
	RUN(every_table_is_strict);
	RUN(lookups_and_the_sweep_go_by_an_index);
	RUN(records_survive_reopening);
	RUN(kill_9_loses_nothing_acknowledged);
	RUN(a_full_disk_is_a_clear_error_and_passes);
	RUN(after_an_io_error_it_is_reopened_before_writes);
	RUN(after_a_failed_sync_it_is_reopened_too);
	RUN(a_commit_is_measured);
	remove_dir();
	return tap_done();
}
