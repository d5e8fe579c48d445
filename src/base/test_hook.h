/* SPDX-License-Identifier: Apache-2.0 */
/* Points where the test suite can kill or hold a process or disable one isolation step. Only builds
 * with -Dtest_hooks=true have them. In other builds hook_crash() and hook_hold() do nothing,
 * hook_weak() is false and hook_env() an empty environment, so these variables have no effect.
 *
 *   LODGE_CRASH_AT=step            the process that reaches this step dies as if by SIGKILL
 *   LODGE_HOLD_AT=step=path        the process that reaches this step waits while `path` exists
 *   LODGE_WEAKEN=name[,name...]    this isolation step is omitted, to prove that a test detects it
 */
#ifndef LODGE_BASE_TEST_HOOK_H
#define LODGE_BASE_TEST_HOOK_H

#include <stdbool.h>
#include <stddef.h>

#ifdef LODGE_TEST_HOOKS

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct hook_vars {
	bool read;
	const char *crash, *weaken;
};

/* Reads the variables once per source file, so that they cannot change while a sandbox starts. */
static inline const struct hook_vars *hook_vars(void)
{
	static struct hook_vars v;

	if (!v.read)
		v = (struct hook_vars){ true, getenv("LODGE_CRASH_AT"), getenv("LODGE_WEAKEN") };
	return &v;
}

static inline void hook_crash(const char *step)
{
	const char *at = hook_vars()->crash;

	if (!at || strcmp(at, step) != 0)
		return;
	/* System calls without libc: this may run in a child of clone3(CLONE_VM). */
	syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
	/* The kernel protects PID 1 of a namespace from its own SIGKILL. */
	syscall(SYS_exit_group, 128 + SIGKILL);
}

static inline void hook_hold(const char *step)
{
	const char *at = getenv("LODGE_HOLD_AT");
	size_t len = strlen(step);

	if (!at || strncmp(at, step, len) != 0 || at[len] != '=')
		return;
	while (access(at + len + 1, F_OK) == 0)
		usleep(1000);
}

static inline bool hook_weak(const char *name)
{
	const char *p = hook_vars()->weaken;
	size_t len = strlen(name), word;

	for (; p && *p; p += word + (p[word] == ',')) {
		word = strcspn(p, ",");
		if (word == len && memcmp(p, name, len) == 0)
			return true;
	}
	return false;
}

/* The environment of lodge-init: these two variables only. */
static inline char **hook_env(void)
{
	static char *env[3];
	size_t n = 0;

	if (hook_weak("env"))
		return environ;
	for (char **e = environ; *e && n < 2; e++)
		if (!strncmp(*e, "LODGE_CRASH_AT=", 15) || !strncmp(*e, "LODGE_WEAKEN=", 13))
			env[n++] = *e;
	env[n] = NULL;
	return env;
}

#else

#define hook_crash(step) ((void)0)
#define hook_hold(step) ((void)0)

static inline bool hook_weak(const char *name)
{
	(void)name;
	return false;
}

static inline char **hook_env(void)
{
	static char *none[1];

	return none;
}

#endif
#endif
