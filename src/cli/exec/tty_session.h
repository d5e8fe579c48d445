/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's terminal as that of a command in a session: what is typed goes there, what it writes
 * comes here, and a connection that breaks is made again without losing a byte of it. */
#ifndef LODGE_CLI_EXEC_TTY_SESSION_H
#define LODGE_CLI_EXEC_TTY_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/exec/exec_job.h"
#include "cli/core/retry.h"

#define SCREEN_KEYS "ctrl-] d"

struct tty_session {
	struct client *client;
	const char *ref; /* of the session */
	const char *query; /* for a new shell: more of the query, "" or "&cwd=..." */
	bool no_keys; /* nothing typed is for lodge itself */

	char id[JOB_ID]; /* the command; "": a new shell is started */
	bool from_start; /* all of its output, not only the last of it */

	/* inside */
	struct client_ws *ws;
	struct retry again;
	uint64_t at; /* where in the output the next byte is */
	bool knows_at, raw, tty, eof, armed, in_line;
	char typed[4096]; /* while nobody was there */
	size_t typed_len;
	int eof_ms; /* until the end of a pipe is told again */
	int signals; /* signalfd */
	int left_by; /* a signal; 0: none */
	int64_t replay_ms; /* until then the terminal answers questions that were asked before */
};

enum screen_end { SCREEN_EXIT, SCREEN_DETACHED, SCREEN_LEFT };

/* Connects; *ret_outcome: what became of the session for it ("resumed", ...), or "". */
int tty_session_open(struct tty_session *s, char ret_outcome[32], struct err *err);
/* Until the command ends, or somebody leaves. *ret_status is lodge's own then. */
int tty_session_run(struct tty_session *s, enum screen_end *ret, int *ret_status, struct err *err);
void tty_session_fini(struct tty_session *s);

/* All of it for a command of a session that runs; from_start: which was started for it. */
int tty_session_job(const struct exec_job *j, bool from_start, struct err *err);

#endif
