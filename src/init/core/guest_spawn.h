/* SPDX-License-Identifier: Apache-2.0 */
/* One way for every process of a guest to come into being: commands, spare shells and workers get
 * the same confinement because the same function builds it. */
#ifndef LODGE_INIT_CORE_GUEST_SPAWN_H
#define LODGE_INIT_CORE_GUEST_SPAWN_H

#include "init/core/init_state.h"

enum spawn_step {
	GUEST_SPAWN_CLONE = 1,
	GUEST_SPAWN_GROUP,
	GUEST_SPAWN_SESSION,
	GUEST_SPAWN_STDIO,
	GUEST_SPAWN_TTY,
	GUEST_SPAWN_LIMITS,
	GUEST_SPAWN_USER,
	GUEST_SPAWN_CWD,
	GUEST_SPAWN_LANDLOCK,
	GUEST_SPAWN_FILTER,
	GUEST_SPAWN_EXEC,
	GUEST_SPAWN_INTERPRETER, /* the program is there, what its first line names is not */
	GUEST_SPAWN_STUCK,
};

enum { GUEST_SPAWN_TEXT_FD = 9 }; /* where a spare shell reads its command from */

struct spawn {
	const struct cred *cred;
	char **argv, **envp;
	const char *cwd; /* "" is home */
	const char *home;
	int stdio[3];
	int text_fd; /* -1, or becomes GUEST_SPAWN_TEXT_FD */
	int cgroup_fd; /* -1: no cgroup of its own */
	bool tty;
	bool bash; /* argv[0] stands for /bin/bash, wherever the path leads */
	bool or_sh; /* without that bash it is /bin/sh */
	const char *landlock; /* what it may execute, as AGENT_LANDLOCK has it; NULL: anything */
	bool landlock_required;
	void (*worker)(void *arg); /* instead of a program; never returns */
	void *arg;
	int keep[2]; /* -1, or the worker's descriptors: they become 3 and 4 */
	int step, error; /* set on failure */
};

/* The pid, or -1 with step and error set. Returns when the program is running, not before. */
pid_t guest_spawn_program(struct spawn *s);
/* The pid, or -1. What goes wrong later in the worker is its own to report. */
pid_t guest_spawn_worker(struct spawn *s);

/* What went wrong, in words. Always -1. */
int guest_spawn_explain(const struct spawn *s, struct err *err);

/* A process like this one, not sharing memory: for workers and shims. */
pid_t guest_spawn_fork(int cgroup_fd);

#endif
