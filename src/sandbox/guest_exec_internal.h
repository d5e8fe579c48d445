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

struct exec {
	struct agent *agent; /* borrowed; NULL once its connection ended */
	uint64_t id, log_bytes;
	enum exec_state state;
	bool armed;
	bool pty;
	bool ended; /* EXITED or FAILED */
	bool adopting; /* events say nothing yet: the logs are not here */
	bool forgotten; /* lodge-init was told to */
	bool hold, stdin_open, stdin_busy;
	pid_t pid;
	struct stream streams[EXEC_STREAMS];
	struct exec_result result;
	struct err err;
	struct exec_ops ops;
	void *arg;
};

/* Listens for `id`; nothing was sent yet. */
int exec_alloc(struct sandbox *sb, uint64_t id, const struct exec_ops *ops, void *arg,
	       struct exec **ret, struct err *err);
/* A message with an agent_exit's facts came; `text` may be NULL. */
void exec_take_end(struct exec *x, const struct agent_exit *e, const char *text);
/* The logs reach this far. False if that cannot be. */
bool exec_advance(struct exec *x, const struct agent_progress *p);
/* No bytes: answered when everything sent before, by whomever, is in. */
int exec_probe_stdin(struct exec *x, struct err *err);

/* exec_log.c */
uint64_t exec_log_size(uint64_t wanted);
int exec_log_new(uint64_t log_bytes, struct err *err);

#endif
