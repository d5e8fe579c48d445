/* SPDX-License-Identifier: Apache-2.0 */
/* Starts every process of a guest. Commands, spare shells and workers get the same confinement
 * because the same function sets it up. */
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
	GUEST_SPAWN_INTERPRETER, /* the program exists, its #! interpreter does not */
	GUEST_SPAWN_STUCK,
};

enum { GUEST_SPAWN_TEXT_FD = 9 }; /* a spare shell reads its text from it */

struct spawn {
	const struct cred *cred;
	char **argv, **envp;
	const char *cwd; /* "" is home */
	const char *home;
	int stdio[3];
	int text_fd; /* 0: none; becomes GUEST_SPAWN_TEXT_FD */
	int cgroup_fd; /* -1: no cgroup of its own */
	bool tty;
	bool bash; /* argv[0] is /bin/bash, whatever PATH says */
	bool or_sh; /* use /bin/sh if there is no bash */
	const char *landlock; /* programs it may execute, as in AGENT_LANDLOCK; NULL: any */
	bool landlock_required;
	void (*worker)(void *arg); /* run instead of a program; never returns */
	void *arg;
	int keep[2]; /* descriptors of the worker, which become 3 and 4; -1: none */
	int step, error; /* set on failure */
};

/* The pid, or -1 with step and error set. Returns after exec. */
pid_t guest_spawn_program(struct spawn *s);
/* The pid, or -1. The worker reports its own later errors. */
pid_t guest_spawn_worker(struct spawn *s);

/* Sets err from step and error. Always -1. */
int guest_spawn_explain(const struct spawn *s, struct err *err);

/* The value of a variable, or NULL. */
const char *guest_spawn_env(char **envp, const char *name);

/* A plain fork, in the cgroup if there is one: for workers and subreapers. */
pid_t guest_spawn_fork(int cgroup_fd);

#endif
