/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the programs that a bash text would start, without running it and without access to the
 * disk. The result is advice, not a security boundary; programs that are unknown until the text
 * runs are reported as unknown.
 *
 * A text has at most SHELL_TEXT_MAX bytes, SHELL_DEPTH_MAX nested levels and SHELL_WORDS_MAX
 * commands; time and memory grow with its length only. */
#ifndef LODGE_SHELL_SHELL_H
#define LODGE_SHELL_SHELL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "base/err.h"

enum {
	SHELL_TEXT_MAX = 128 * 1024,
	SHELL_DEPTH_MAX = 64,
	SHELL_WORDS_MAX = 4096,
};

enum shell_kind {
	SHELL_PROGRAM,
	SHELL_BUILTIN,
	SHELL_FUNCTION, /* the text defines it */
	SHELL_UNKNOWN, /* a program that is unknown until it runs */
	SHELL_SETTING, /* a variable or option that makes a shell start programs no word names */
};

struct shell_word {
	char *name; /* owned; "ls" for "/bin/ls" too; for an unknown one its text */
	size_t offset; /* of the word's first byte in the text */
	unsigned line, column; /* from 1; columns are bytes */
	enum shell_kind kind;
};

struct shell_words {
	struct shell_word *items; /* owned, in the order of the text */
	size_t count;
};

/* ERR_INVALID: bash would reject the text too, and the message says where; ERR_LIMIT with sys
 * E2BIG: the text is too long. */
int shell_parse(const char *text, size_t len, struct shell_words *ret, struct err *err);
/* Offsets refer to the arguments joined by blanks. */
int shell_parse_argv(const char *const *argv, struct shell_words *ret, struct err *err);
void shell_words_fini(struct shell_words *w);
DEFINE_AUTO(struct shell_words *, shell_words_fini);

#endif
