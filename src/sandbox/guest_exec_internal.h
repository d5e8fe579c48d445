/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of exec.h share: nobody else includes this. */
#ifndef LODGE_SANDBOX_GUEST_EXEC_INTERNAL_H
#define LODGE_SANDBOX_GUEST_EXEC_INTERNAL_H

#include "sandbox/guest_exec.h"

enum { EXEC_STREAMS = 2 };

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
	bool adopting; /* events say nothing yet: the logs are not here */
	bool forgotten; /* lodge-init was told to */
	bool hold, stdin_open, stdin_busy;
	pid_t pid;
	struct stream streams[EXEC_STREAMS];
	struct guest_exec_result result;
	struct err err;
	struct guest_exec_ops ops;
	void *arg;
};

/* Listens for `id`; nothing was sent yet. */
int guest_exec_alloc(struct sandbox *sb, uint64_t id, const struct guest_exec_ops *ops, void *arg,
		     struct guest_exec **ret, struct err *err);
/* A message with an agent_exit's facts came; `text` may be NULL. */
void guest_exec_take_end(struct guest_exec *x, const struct agent_exit *e, const char *text);
/* The logs reach this far. False if that cannot be. */
bool guest_exec_advance(struct guest_exec *x, const struct agent_progress *p);
/* No bytes: answered when everything sent before, by whomever, is in. */
int guest_exec_probe_stdin(struct guest_exec *x, struct err *err);

/* exec_log.c */
uint64_t guest_exec_log_size(uint64_t wanted);
int guest_exec_log_new(uint64_t log_bytes, struct err *err);

#endif
