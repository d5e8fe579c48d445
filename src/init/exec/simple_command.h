/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes shell texts that are one simple command, without a shell. */
#ifndef LODGE_INIT_EXEC_SIMPLE_COMMAND_H
#define LODGE_INIT_EXEC_SIMPLE_COMMAND_H

#include <stdbool.h>

enum { SIMPLE_COMMAND_PATH_SIZE = 1024 };

/* True only if bash would do nothing with the text but exec one existing program: words of plain
 * characters and quoted strings without expansions, the first neither builtin nor keyword.
 * ret: the path of the program, of plain characters too. */
bool simple_command_parse(const char *text, char **envp, char ret[SIMPLE_COMMAND_PATH_SIZE]);

#endif
