/* SPDX-License-Identifier: Apache-2.0 */
/* How the records of sessions and their commands are printed. */
#ifndef LODGE_CLI_CORE_PRINT_SESSION_H
#define LODGE_CLI_CORE_PRINT_SESSION_H

#include <jansson.h>

#include "cli/core/field.h"
#include "cli/core/human.h"

/* What print_state() returns. */
#define SESSION_STATES                                                                             \
	"none provisioning active paused hibernating hibernated restoring archived failed "        \
	"destroying"
/* "active", "paused", "hibernated" ... */
const char *print_state(const json_t *session);
extern field_fn print_session_state, print_session_key;
enum tint print_state_tint(const json_t *session);
/* "key (id)", or the id alone. Returns buf. */
char *print_name(const json_t *session, char *buf, size_t size);
/* "idle_timeout by timer, 3m ago: text"; "" for no cause. */
char *print_cause(const json_t *cause, char *buf, size_t size);
/* "2026-11-16 09:43:25 (in 5m)" or "(3m ago)"; "" for none. */
char *print_when(int64_t ms, char *buf, size_t size);

/* The key of a session, or its id if it has none. */
const char *print_key(const json_t *session);

/* Commands of a session, as a table. */
extern const struct field print_exec_fields[];

#endif
