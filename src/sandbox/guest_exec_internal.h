/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a command, for guest_exec*.c. */
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

#endif
