/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said about a shell text without being a shell. */
#ifndef LODGE_INIT_EXEC_SIMPLE_COMMAND_H
#define LODGE_INIT_EXEC_SIMPLE_COMMAND_H

#include <stdbool.h>

enum { WORDS_PATH_SIZE = 1024 };

/* True only if bash would do nothing with the text but exec one program that is there: words of
 * plain characters and quoted strings without expansions, the first neither builtin nor keyword.
 * ret: its path, of plain characters too. */
bool shell_words_is_one_program(const char *text, char **envp, char ret[WORDS_PATH_SIZE]);

#endif
