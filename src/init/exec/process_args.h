/* SPDX-License-Identifier: Apache-2.0 */
/* The strings of an AGENT_EXEC or AGENT_SPARE_SHELL as execve() wants them. */
#ifndef LODGE_INIT_EXEC_PROCESS_ARGS_H
#define LODGE_INIT_EXEC_PROCESS_ARGS_H

#include "init/core/passwd.h"

struct exec_args {
	struct agent_exec m;
	const char *strings; /* argv, one after the other */
	const char *env;
	size_t env_len; /* bytes of all variables */
	const char *cwd, *user_spec;
	const char *landlock; /* what it may execute; NULL: anything */
	char **argv, **envp;
	struct user user;
};

/* Borrows from the message and from buffers that the next call reuses. */
int exec_args_parse(struct exec_args *c, const void *msg, size_t len, struct err *err);

#endif
