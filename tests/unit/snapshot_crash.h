/* SPDX-License-Identifier: Apache-2.0 */
/* The engine dies during operations on snapshots. After any step the next engine finds the session
 * usable with its files, no snapshot without files, and nothing on disk without a record. */
#ifndef LODGE_TESTS_SESSION_SNAPSHOT_CRASH_H
#define LODGE_TESTS_SESSION_SNAPSHOT_CRASH_H

#include "snapshot_cases.h"
#include "snapshot/snapshot.h"
#include "snapshot/fork.h"
#include "snapshot/snapshot_archive.h"
#include "count_active.h"
#include "service/engine_open.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>

extern char **environ;

/* ---- the child that is killed at a step ------------------------------------------------------ */

static struct store_snapshot newest(void)
{
	struct store_page page = { .limit = 100 };
	struct store_snapshot s = { 0 };
	struct store_snapshot_list l;

	if (snapshot_list(engine, &me, NULL, page, &l, &err) < 0)
		return s;
	if (l.count)
		s = l.items[l.count - 1];
	store_snapshot_list_fini(&l);
	return s;
}

static void do_snapshot(void)
{
	struct store_snapshot s;

	(void)take("a", "dying", &s);
}

static void do_rollback(void)
{
	(void)roll_back("a", newest().id);
}

static void do_fork(void)
{
	struct session_ref a = key("a");
	struct store_binding keys[2] = { { "key", "x" }, { "key", "y" } };
	struct store_session made[2];

	(void)session_fork(engine, &me, &a, NULL, 2, keys, made, &err);
}

static void do_collect(void)
{
	forget_snapshots();
	collect_all();
}

static void do_import(void)
{
	FILE *p = popen("tar -C /etc -cf - hostname | zstd -q", "r");
	struct store_snapshot s;

	if (p && snapshot_import(engine, &me, NULL, "dying", fileno(p), &s, &err) < 0)
		printf("# %s\n", err.msg);
}

static void do_flatten(void)
{
	struct store_snapshot s;

	for (int i = 0; i <= LAYERS_FLATTEN; i++)
		if (!says("a", "true", "") || !hibernate("a") || !take("a", NULL, &s))
			return;
	timers_collect(engine);
}

static const struct {
	const char *step;
	void (*act)(void);
	const char *files; /* possible content of f in the session afterwards; NULL: either */
	bool dir; /* only with that kind of storage */
} deaths[] = {
	{ "snapshot:copied", do_snapshot, "two\n" },
	{ "snapshot:layered", do_snapshot, "two\n" },
	{ "snapshot:named", do_snapshot, "two\n" },
	{ "rollback:moved", do_rollback, "one\n" },
	{ "rollback:ended", do_rollback, "one\n" },
	{ "fork:held", do_fork, "two\n" },
	{ "fork:made", do_fork, "two\n" },
	{ "collect:dropped", do_collect, "two\n" },
	{ "import:sealed", do_import, "two\n" },
	{ "flatten:layered", do_flatten, "two\n", true },
	{ "flatten:used", do_flatten, "two\n", true },
};
enum { DEATHS = sizeof(deaths) / sizeof(deaths[0]) };

/* Does not return if the step is reached. */
static int die(const char *which, const char *where, const char *when)
{
	size_t i = (size_t)atoi(which);

	snprintf(home, sizeof(home), "%s", where);
	the_time = atoll(when);
	if (why_not || i >= DEATHS)
		return 1;
	if (!engine && engine_open(&(struct engine_opts){ .home = home,
							  .keeper_program = keeper,
							  .no_threads = true,
							  .clock = fake_time },
				   &engine, &err) < 0) {
		printf("# %s\n", err.msg);
		return 1;
	}
	deaths[i].act();
	return 0;
}

/* ---- checks after the crash ------------------------------------------------------------------ */

static bool kill_at(size_t i)
{
	char which[8], when[32], hook[64], self[] = "/proc/self/exe";
	char *argv[] = { self, which, home, when, NULL }, *env[256];
	size_t n = 0;
	int status;
	pid_t pid;

	snprintf(which, sizeof(which), "%zu", i);
	snprintf(when, sizeof(when), "%lld", (long long)the_time);
	snprintf(hook, sizeof(hook), "LODGE_CRASH_AT=%s", deaths[i].step);
	for (; environ[n] && n < 254; n++)
		env[n] = environ[n];
	env[n++] = hook;
	env[n] = NULL;
	if (posix_spawn(&pid, self, NULL, NULL, argv, env) != 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return true;
	printf("# %s: not come to (%#x)\n", deaths[i].step, (unsigned)status);
	return false;
}

/* Every layer on disk has a row, every snapshot has its files, every sandbox has a session. */
static bool everything_has_a_record(void)
{
	struct store_page page = { .limit = 100 };
	struct store_snapshot_list l;
	struct keeper_listing k;
	unsigned sandboxes = 0;
	bool good = true;

	if (keeper_listing_read(engine, &k, &err) < 0)
		return false;
	for (size_t i = 0; i < k.count; i++) {
		struct store_layer row;
		int r = 0;

		if (k.items[i].what == KEEPER_IS_LAYER)
			WITH_STORE(engine, st)
		r = store_layer_get(st, k.items[i].id, &row, &err);
		else sandboxes++;
		if (r < 0)
			printf("# layer %s has no row\n", k.items[i].id);
		good = good && r == 0;
	}
	if (snapshot_list(engine, &me, NULL, page, &l, &err) < 0)
		return false;
	for (size_t i = 0; i < l.count; i++)
		if (!keeper_listing_has_layer(&k, l.items[i].layer)) {
			printf("# snapshot %s has no files\n", l.items[i].id);
			good = false;
		}
	store_snapshot_list_fini(&l);
	keeper_listing_fini(&k);
	if (sandboxes != count_active(engine)) {
		printf("# %u sandboxes, %u active\n", sandboxes, count_active(engine));
		return false;
	}
	return good;
}

/* The keeper of the killed engine needs a moment to end, and a home has one keeper only. */
static bool open_again(void)
{
	char path[64];
	struct stat st;
	bool gone = false;

	if (stat(home, &st) < 0)
		return false;
	snprintf(path, sizeof(path), "/run/lodge/%llx.%llx/d", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	for (int i = 0; i < 4800 && !gone; i++, nap(25)) {
		auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		gone = fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0;
	}
	return gone && open_engine((struct engine_opts){ 0 });
}

static bool survives(size_t i)
{
	struct store_snapshot s, last;

	if (!enter("a") || !says("a", "echo one > f", "") || !take("a", "first", &s) ||
	    !says("a", "echo two > f", ""))
		return false;
	close_engine();
	if (!kill_at(i) || !open_again())
		return false;
	collect_all();
	last = newest();
	if (!everything_has_a_record() || !says("a", "cat f", deaths[i].files))
		return false;
	if (*last.id && !strcmp(last.name, "dying") && *last.session &&
	    (!roll_back("a", last.id) || !says("a", "cat f", "two\n")))
		return false;
	return says("a", "echo on > f; cat f", "on\n") && hibernate("a") &&
	       says("a", "cat f", "on\n");
}

static size_t at;

static void dies(void)
{
	if (deaths[at].dir && !is_dir_store)
		SKIP("stacks do not grow on btrfs");
	FRESH();
	CHECK(survives(at));
	clean();
	forget_snapshots();
	collect_all();
	CHECK(on_disk() == 0);
}

static int run_crashes(int argc, char **argv, bool dir)
{
	find_keeper();
	if (argc == 4)
		return die(argv[1], argv[2], argv[3]);
#ifndef LODGE_TEST_HOOKS
	why_not = "needs a build with -Dtest_hooks=true";
#endif
	new_home(dir);
	for (at = 0; at < DEATHS; at++)
		tap_run(dies, deaths[at].step);
	remove_home();
	return tap_done();
}

#endif
