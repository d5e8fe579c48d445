/* SPDX-License-Identifier: Apache-2.0 */
/* An engine with its own home, a real keeper and a clock that tests set, for the tests of timers
 * and states. Needs $LODGE_BUILD (meson sets it) and a machine where sandboxes work. */
#ifndef LODGE_TESTS_SESSION_ENGINE_H
#define LODGE_TESTS_SESSION_ENGINE_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file_io.h"
#include "engine/engine.h"
#include "engine/internal.h"
#include "engine/keeper_conn.h"
#include "engine/session_state.h"
#include "session/session_api.h"
#include "service/engine_open.h"
#include "exec/exec_lookup.h"
#include "tap.h"
#include "sandbox/guest_exec_sync.h"
#include "tmp_name.h"
#include "exec_run.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };

static char home[TMP_NAME_SIZE], keeper[4096];
static atomic_llong the_time;
static struct engine *engine;
static struct err err;
static const char *why_not;
static const struct caller me = { "acme", "test" };

#define ENGINE(...)                                                                                \
	do {                                                                                       \
		if (why_not)                                                                       \
			SKIP(why_not);                                                             \
		CHECK(open_engine((struct engine_opts){ __VA_ARGS__ }));                           \
	} while (0)

/* The same with a new database, without the records of earlier tests. */
#define EMPTY_ENGINE()                                                                             \
	do {                                                                                       \
		if (why_not)                                                                       \
			SKIP(why_not);                                                             \
		clean();                                                                           \
		close_engine();                                                                    \
		remove_database();                                                                 \
		CHECK(open_engine((struct engine_opts){ 0 }));                                     \
	} while (0)

static inline int64_t fake_time(void *arg)
{
	(void)arg;
	return the_time;
}

static inline void pass(int64_t ms)
{
	the_time += ms;
}

/* Destroys everything of the previous test. */
static inline void clean(void)
{
	struct session_cleanup c;

	if (engine && session_cleanup(engine, &me, NULL, &c, &err) == 0)
		session_cleanup_fini(&c);
}

static inline void close_engine(void)
{
	engine_close(engine);
	engine = NULL;
}

static inline void remove_database(void)
{
	static const char *const names[] = { "lodge.db", "lodge.db-wal", "lodge.db-shm",
					     "lodge.db-reserve" };
	char file[128];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(file, sizeof(file), "%s/%s", home, names[i]);
		(void)unlink(file);
	}
}

static inline bool open_engine(struct engine_opts o)
{
	clean();
	close_engine();
	o.home = home;
	o.keeper_program = keeper;
	o.no_threads = true;
	o.clock = fake_time;
	if (engine_open(&o, &engine, &err) == 0)
		return true;
	printf("# %s\n", err.msg);
	return false;
}

static inline struct session_ref key(const char *name)
{
	return (struct session_ref){ .key = name };
}

/* `want` has everything but the key. */
static inline int enter_as(const char *name, struct session_opts want, enum session_outcome *ret)
{
	struct store_binding b = { .kind = "key" };
	struct session_enter_result got;

	snprintf(b.key, sizeof(b.key), "%s", name);
	want.keys = &b;
	want.nkeys = 1;
	if (session_enter(engine, &me, &want, &got, &err) < 0)
		return -1;
	if (ret)
		*ret = got.outcome;
	session_enter_result_fini(&got);
	return 0;
}

static inline bool enter(const char *name)
{
	if (enter_as(name, (struct session_opts){ .user = "ann" }, NULL) == 0)
		return true;
	printf("# %s\n", err.msg);
	return false;
}

/* The state, or -1; the record has no allocated members. */
static inline int look(const char *name, struct store_session *ret)
{
	struct store_session s;

	if (session_get(engine, &me, &(struct session_ref){ .key = name }, &s, &err) < 0)
		return -1;
	store_session_fini(&s);
	if (ret) {
		*ret = s;
		ret->spec = ret->metadata = NULL;
		ret->bindings = NULL;
		ret->nbindings = 0;
	}
	return s.state;
}

static inline bool is(const char *name, enum session_state state)
{
	int now = look(name, NULL);

	if (now == (int)state)
		return true;
	printf("# %s is %s\n", name,
	       now < 0 ? "not there" : state_machine_name(&session_states, (unsigned)now));
	return false;
}

static inline bool is_cause(const char *name, enum session_cause cause)
{
	struct store_session s;

	if (look(name, &s) < 0)
		return false;
	if (strcmp(s.cause.code, session_cause_name(cause)) == 0)
		return true;
	printf("# cause %s: %s\n", s.cause.code, s.cause.text);
	return false;
}

/* Starts a command that keeps running; the caller frees the handle. */
static inline struct exec_handle *start(const char *name, const char *text)
{
	struct session_ref ref = key(name);
	struct exec_handle *x = NULL;

	if (exec_start(engine, &me, &ref, &(struct exec_opts){ .text = text }, &x, NULL, &err) < 0)
		printf("# %s\n", err.msg);
	return x;
}

static inline bool runs(struct session_ref ref, const char *text, const char *want)
{
	struct exec_opts how = { .text = text, .timeout_ms = 120000 };
	struct guest_exec_output o;
	bool same;

	if (exec_run(engine, &me, &ref, &how, NULL, 0, &o, &err) < 0) {
		printf("# %s\n", err.msg);
		return false;
	}
	same = strcmp(o.out, want) == 0;
	if (!same)
		printf("# got '%s' '%s', want '%s'\n", o.out, o.err, want);
	guest_exec_output_fini(&o);
	return same;
}

static inline bool says(const char *name, const char *text, const char *want)
{
	return runs(key(name), text, want);
}

static inline void nap(long ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* Waits until there are so many processes, because starting and killing take a moment. */
/* As the keeper counts: with lodge's own processes. */
static inline int read_stats(const char *name, struct keeper_stats *ret)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct session_ref ref = key(name);

	if (session_get(engine, &me, &ref, &s, &err) < 0)
		return -1;
	return keeper_conn_stats(engine, s.sandbox, ret, &err);
}

static inline bool has_pids(const char *name, uint64_t want)
{
	struct keeper_stats st = { 0 };

	for (int i = 0; i < 2400; i++) {
		if (read_stats(name, &st) == 0 && st.pids == want)
			return true;
		nap(50);
	}
	printf("# %llu processes\n", (unsigned long long)st.pids);
	return false;
}

static inline void make_home(void)
{
	const char *build = getenv("LODGE_BUILD");
	struct timespec ts;

	setvbuf(stdout, NULL, _IOLBF, 0); /* a leak report must not lose earlier output */
	clock_gettime(CLOCK_REALTIME, &ts);
	the_time = (int64_t)ts.tv_sec * 1000;
	if (!realpath(build ? build : "build", keeper))
		keeper[0] = '\0';
	strncat(keeper, "/lodge-keeper", sizeof(keeper) - strlen(keeper) - 1);
	if (access(keeper, X_OK) < 0) {
		why_not = "needs lodge-keeper in $LODGE_BUILD";
		home[0] = '\0';
	} else if (!mkdtemp(tmp_name(home, "lodge-sessions"))) {
		why_not = "needs a directory of its own";
		home[0] = '\0';
	} else if (!open_engine((struct engine_opts){ 0 }) || !enter("first")) {
		why_not = "needs a machine where sandboxes work";
	}
}

static inline void remove_home(void)
{
	clean();
	close_engine();
	if (*home)
		file_remove_tree_at(AT_FDCWD, home);
}

#endif
