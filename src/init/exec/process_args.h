/* SPDX-License-Identifier: Apache-2.0 */
/* The strings of an AGENT_EXEC or AGENT_SPARE_SHELL, in the form that execve() takes. */
#ifndef LODGE_INIT_EXEC_PROCESS_ARGS_H
#define LODGE_INIT_EXEC_PROCESS_ARGS_H

#include "init/core/passwd.h"

struct process_args {
	struct agent_exec m;
	const char *strings; /* argv, packed */
	const char *env;
	size_t env_len; /* bytes of all variables */
	const char *cwd, *user_spec;
	const char *landlock; /* programs it may execute; NULL: any */
	char **argv, **envp;
	struct passwd_user user;
};

/* Borrows from the message and from buffers that the next call reuses. */
int process_args_parse(struct process_args *c, const void *msg, size_t len, struct err *err);

#endif
