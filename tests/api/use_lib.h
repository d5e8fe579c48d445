/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the programs of this directory: one home, one session, and helpers for both. */
#ifndef LODGE_TESTS_USE_LIB_H
#define LODGE_TESTS_USE_LIB_H

#include <lodge.h>
#include <stdlib.h>

#include "tap.h"

static const char *home; /* the first argument */
static struct lodge *lodge;
static const struct lodge_ref me = { .key = "me" };

/* Prints the library's error message if it fails. */
#undef RUN
#define RUN(fn)                                                                                    \
	do {                                                                                       \
		tap_run(fn, #fn);                                                                  \
		if (!tap_ok)                                                                       \
			printf("# the last error was: %s\n", lodge_last_error());                  \
	} while (0)
#define SIZED(type) .size = sizeof(struct type)
/* For calls that must fail: their results are not used. */
#define FAILS(call, want_code) ((call) == -1 && lodge_last_code() == (want_code))
#define NAMES(word) (strstr(lodge_last_error(), word) != NULL)

static inline int start(void)
{
	struct lodge_options o = { SIZED(lodge_options), .home = home };

	return lodge ? 0 : lodge_open(&o, &lodge);
}

static inline int enter_me(struct lodge_session **ret)
{
	struct lodge_want w = { SIZED(lodge_want), .keys = &me, .nkeys = 1 };

	return start() < 0 ? -1 : lodge_enter(lodge, &w, ret);
}

/* The output of the bash text without its last newline, which the caller frees; NULL on failure. */
static inline char *say(const struct lodge_ref *ref, const char *text)
{
	struct lodge_command c = { SIZED(lodge_command), .text = text };
	struct lodge_result *r = NULL;
	char *out = NULL;

	if (lodge_run(lodge, ref, &c, &r) == 0 && r->exit_code == 0) {
		out = strndup(r->out, r->out_len);
		out[strcspn(out, "\n")] = '\0';
	} else {
		printf("# %s: %s\n", text, r ? r->err : lodge_last_error());
	}
	lodge_free(r);
	return out;
}

static inline bool says(const struct lodge_ref *ref, const char *text, const char *want)
{
	char *got = say(ref, text);
	bool same = got && !strcmp(got, want);

	if (!same)
		printf("# %s: got '%s', want '%s'\n", text, got ? got : "(nothing)", want);
	free(got);
	return same;
}

/* Reads until the output contains `want`, or ends. */
static inline bool reads(struct lodge_exec *x, uint64_t *at, const char *want)
{
	char got[256] = "";
	size_t len = 0, n = 1;

	while (len < strlen(want) && n > 0) {
		if (lodge_exec_read(x, LODGE_STDOUT, *at, got + len, sizeof(got) - 1 - len, 20000,
				    &n) < 0)
			return false;
		len += n;
		*at += n;
	}
	if (strcmp(got, want))
		printf("# read '%s', want '%s'\n", got, want);
	return !strcmp(got, want);
}

static inline void everything_goes(void)
{
	struct lodge_sessions *all = NULL;
	struct lodge_room *room = NULL;

	CHECK(start() == 0 && lodge_cleanup(lodge, NULL, NULL) == 0);
	CHECK(lodge_list(lodge, NULL, &all) == 0 && all->count == 0);
	CHECK(lodge_room_get(lodge, &room) == 0 && room->active == 0);
	lodge_free(room);
	lodge_free(all);
}

/* Sessions outlive the program, so the last test of each program destroys them. */
static inline int leave(void)
{
	RUN(everything_goes);
	lodge_close(lodge);
	return tap_done();
}

#endif
