/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the local terminal to that of a command in a session, and reconnects without losing
 * output. */
#ifndef LODGE_CLI_EXEC_TTY_SESSION_H
#define LODGE_CLI_EXEC_TTY_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/exec/exec_job.h"

#define TTY_DETACH_KEYS "ctrl-] d"

struct tty_session {
	struct exec_job *job; /* without an id, opening starts a new shell and sets it */
	const char *query; /* of a new shell: "" or "&cwd=..." */
	bool no_keys; /* no detach keys */
	bool from_start; /* print all of its output, not only the last of it */
	bool detached; /* how it ended */

	/* private */
	struct client_ws *ws;
	struct retry retry;
	uint64_t at; /* offset of the next byte of output */
	bool knows_at, raw, tty, eof, armed, in_line;
	char typed[4096]; /* while disconnected */
	size_t typed_len;
	int eof_ms; /* until the end of a pipe is sent again */
	int signals; /* signalfd */
	int detached_by; /* a signal; 0: none */
	int64_t replay_ms; /* until then the terminal may reply to queries in replayed output */
};

int tty_session_open(struct tty_session *s, struct err *err);
/* Runs until the command ends or the user detaches. Returns the exit status of lodge, or -1. */
int tty_session_run(struct tty_session *s, struct err *err);
void tty_session_fini(struct tty_session *s);

/* All of that for a running command; from_start: one that was just started. */
int tty_session_job(struct exec_job *j, bool from_start, struct err *err);

#endif
