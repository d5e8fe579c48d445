/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that a command starts: its own, and those its arguments name if it starts others. */
#ifndef LODGE_SHELL_STARTED_PROGRAMS_H
#define LODGE_SHELL_STARTED_PROGRAMS_H

#include "shell/parser.h"

enum command_as {
	AS_COMMAND, /* a function, a builtin or a program */
	AS_NO_FUNCTION,
	AS_PROGRAM, /* no shell runs it */
};
/* Analyzes the words from `first` on as a command. */
int note_command(struct parser *p, size_t first, enum command_as as);
/* Notes a program that is unknown before the command runs; its text stands for its name. */
int note_unknown(struct parser *p, const struct word *w);
/* Some builtins expand the subscript in the name of a variable. */
int analyze_names(struct parser *p, size_t first);

#endif
