/* SPDX-License-Identifier: Apache-2.0 */
/* Shared declarations of guest_exec*.c. */
#ifndef LODGE_SANDBOX_GUEST_EXEC_INTERNAL_H
#define LODGE_SANDBOX_GUEST_EXEC_INTERNAL_H

#include "sandbox/guest_exec.h"

enum { GUEST_EXEC_STREAMS = 2 };

struct stream {
	int fd; /* the log; -1: none */
	uint64_t start, end;
};

struct guest_exec {
	struct agent *agent; /* borrowed; NULL once its connection ended */
	uint64_t id, log_bytes;
	enum guest_exec_state state;
	bool used_spare_shell;
	bool pty;
	bool ended; /* EXITED or FAILED */
	bool adopting; /* ignore events: the logs have not arrived */
	bool forgotten; /* AGENT_FORGET was sent */
	bool hold, stdin_open, stdin_busy;
	pid_t pid;
	struct stream streams[GUEST_EXEC_STREAMS];
	struct guest_exec_result result;
	struct err err;
	struct guest_exec_ops ops;
	void *arg;
};

/* A handle that listens for events of `id`. Sends nothing. */
int guest_exec_alloc(struct sandbox *sb, uint64_t id, const struct guest_exec_ops *ops, void *arg,
		     struct guest_exec **ret, struct err *err);
/* Ends the exec with this result; `text` may be NULL. */
void guest_exec_set_result(struct guest_exec *x, const struct agent_exit *e, const char *text);
/* Updates the ranges of the logs. False if they are invalid. */
bool guest_exec_advance(struct guest_exec *x, const struct agent_progress *p);
/* Sends an empty write, whose reply comes when all input sent before is written. */
int guest_exec_probe_stdin(struct guest_exec *x, struct err *err);

#endif
