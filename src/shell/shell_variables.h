/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SHELL_SHELL_VARIABLES_H
#define LODGE_SHELL_SHELL_VARIABLES_H

#include "shell/parser.h"
#include "shell/shell_tables.h"

/* True for variables such as PS4 and LD_PRELOAD, which make a shell or loader start other programs.
 */
bool shell_is_setting(const char *name, size_t len);

/* Checks a word NAME=VALUE, or a name that gets a value. */
int note_assigned(struct parser *p, const struct word *w);
/* Checks for an assignment after "${". */
int note_expansion(struct parser *p);
/* Analyzes a builtin that sets variables or options. */
int analyze_setting(struct parser *p, size_t first, enum builtin_kind kind);

#endif
