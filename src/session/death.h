/* SPDX-License-Identifier: Apache-2.0 */
/* How the sandbox of a session ended. The record keeps the last end until the next one. */
#ifndef LODGE_SESSION_DEATH_H
#define LODGE_SESSION_DEATH_H

#include "engine/session_state.h"

struct session;

/* What is known about an end before the record says so. */
struct session_death {
	unsigned code; /* enum session_death_code; 0: that of the cause */
	int signal; /* that killed lodge-init; 0: none, or unknown */
	char text[STORE_TEXT];
	int64_t commands; /* that ran */
};

/* The sandbox ended by itself: asks the keeper how. why->text becomes the sentence; it belongs to
 * the session. With the session's lock. */
void death_explain(struct session *n, struct session_cause_opts *why);
/* Counts the commands that end with the sandbox. Before its machine is closed. */
void death_count_commands(struct session *n);
/* Sets s->last_death, for the record that is written next. The old one stays if memory is short. */
void death_record(struct session *n, struct store_session *s, const struct session_cause_opts *why);
/* Counts the end after the record that has it was written, and forgets what was known of it. */
void death_count(struct session *n, const struct session_cause_opts *why);
/* Something is known that is not stored yet. With the session's lock, or engine.mutex. */
bool death_is_pending(const struct session *n);

#endif
