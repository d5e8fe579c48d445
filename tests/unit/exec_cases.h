/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of commands: an engine with threads and the machine's clock, and helpers to
 * start a command and read its output. */
#ifndef LODGE_TESTS_SESSION_RUN_H
#define LODGE_TESTS_SESSION_RUN_H

#include <sys/stat.h>

#include "engine/internal.h"
#include "service/engine_open.h"
#include "session_engine.h"

/* The keeper of an engine that was just killed may still be running. */
static inline bool open_busy(void)
{
	struct engine_opts o = { .home = home, .keeper_program = keeper };

	close_engine();
	for (int i = 0; i < 2400; i++) {
		if (engine_open(&o, &engine, &err) == 0)
			return true;
		nap(50);
	}
	printf("# %s\n", err.msg);
	return false;
}

#define BUSY()                                                                                     \
	do {                                                                                       \
		if (why_not)                                                                       \
			SKIP(why_not);                                                             \
		clean();                                                                           \
		CHECK(open_busy() && enter("a"));                                                  \
	} while (0)

static inline struct exec_handle *begin(struct exec_opts want)
{
	struct session_ref a = key("a");
	struct exec_handle *x = NULL;

	if (exec_start(engine, &me, &a, &want, &x, NULL, &err) < 0) {
		printf("# %s\n", err.msg);
		return NULL;
	}
	return x;
}

static inline bool ends(struct exec_handle *x, enum exec_state state)
{
	struct store_exec rec;
	bool same;

	if (exec_wait(x, 20000, &err) < 0 || exec_get_info(x, &rec, &err) < 0) {
		printf("# %s\n", err.msg);
		return false;
	}
	same = rec.state == state;
	if (!same)
		printf("# state %d, code %d, signal %d\n", rec.state, (int)rec.exit_code,
		       (int)rec.signal);
	store_exec_fini(&rec);
	return same;
}

/* Reads stdout from `offset` to its end. */
static inline bool wrote(struct exec_handle *x, uint64_t offset, const char *want)
{
	char buf[4096];
	size_t n = 1, len = 0;

	while (n && len < sizeof(buf) - 1) {
		if (exec_read(x, GUEST_EXEC_OUT, offset + len, buf + len, sizeof(buf) - 1 - len,
			      10000, &n, &err) < 0) {
			printf("# %s\n", err.msg);
			return false;
		}
		len += n;
	}
	buf[len] = '\0';
	if (strcmp(buf, want) == 0)
		return true;
	printf("# got '%s', want '%s'\n", buf, want);
	return false;
}

static inline bool reads(struct exec_handle *x, const char *want)
{
	char buf[256] = "";
	size_t len = 0, n;

	while (len < strlen(want)) {
		if (exec_read(x, GUEST_EXEC_OUT, len, buf + len, sizeof(buf) - len, 10000, &n,
			      &err) < 0 ||
		    !n)
			return false;
		len += n;
	}
	return len == strlen(want) && memcmp(buf, want, len) == 0;
}

static inline struct exec_handle *reopen(const char *id)
{
	struct exec_handle *x = NULL;

	if (exec_open(engine, &me, id, &x, &err) < 0)
		printf("# %s\n", err.msg);
	return x;
}

static inline bool row(const char *id, struct store_exec *ret)
{
	int r = -1;

	WITH_STORE(engine, st)
	r = store_exec_get(st, id, ret, &err);
	if (r == 0)
		store_exec_fini(ret);
	return r == 0;
}

static inline bool has_log(const char *session, const char *exec, const char *suffix)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/logs/%s/%s.%s", home, session, exec, suffix);
	return stat(path, &st) == 0;
}

#endif
