/* SPDX-License-Identifier: Apache-2.0 */
/* A session's record in words. */
#ifndef LODGE_CLI_CORE_PRINT_SESSION_H
#define LODGE_CLI_CORE_PRINT_SESSION_H

#include <jansson.h>

#include "cli/core/human.h"
#include "cli/core/text_table.h"

/* What print_state() may say. */
#define SAY_STATES                                                                                 \
	"none provisioning active paused hibernating hibernated restoring archived failed "        \
	"destroying"
/* "active", "paused", "hibernated" ... */
const char *print_state(const json_t *session);
enum tint print_state_tint(const json_t *session);
/* "name (its id)", or the id alone: for sentences. Returns buf. */
char *print_name(const json_t *session, char *buf, size_t size);
/* Why something is as it is: "asked by given 3m ago: a sentence". Empty: nobody said. */
char *print_cause(const json_t *cause, char *buf, size_t size);
/* "2026-11-16 09:43:25 (in 5m)" or "(3m ago)"; "" for none. */
char *print_when(int64_t ms, char *buf, size_t size);

/* Commands of a session as a table. */
void print_execs(const json_t *execs);

/* A line of a table of two columns; nothing for an empty value. */
extern const struct text_table_column say_lines[2];
void print_line(struct text_table *t, const char *name, const char *value);

#endif
