/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of known commands; internal to this directory. */
#ifndef LODGE_SHELL_SHELL_TABLES_H
#define LODGE_SHELL_SHELL_TABLES_H

#include <stdbool.h>
#include <stddef.h>

/* The directories of programs named without a slash. */
extern const char *const shell_path[]; /* NULL-terminated, without a slash at the end */

enum builtin_kind {
	BUILTIN_NONE, /* not a builtin */
	BUILTIN_PLAIN, /* starts nothing */
	BUILTIN_NAMES, /* takes names of variables, whose subscripts are expanded */
	BUILTIN_EVAL,
	BUILTIN_SOURCE, /* runs something outside the text: a file, the history, a library */
	BUILTIN_EXEC,
	BUILTIN_COMMAND,
	BUILTIN_BUILTIN,
	BUILTIN_TRAP,
	BUILTIN_ALIAS,
	BUILTIN_CALLBACK, /* -C TEXT */
	BUILTIN_MAPFILE, /* the same, and a variable name */
	BUILTIN_DECLARE, /* NAME=VALUE, and -n, which makes a name refer to another */
	BUILTIN_EXPORT, /* NAME=VALUE */
	BUILTIN_READ,
	BUILTIN_PRINTF,
	BUILTIN_HASH,
	BUILTIN_SET,
};
enum builtin_kind builtin_of(const char *name, size_t len);

enum starter_kind {
	STARTER_COMMAND, /* options, operands, then a command */
	STARTER_XARGS, /* and its last arguments come from its input */
	STARTER_SHELL, /* -c TEXT */
	STARTER_TEXT, /* options, then words that form a text */
	STARTER_SU, /* options and operands in any order, -c TEXT among them */
	STARTER_FIND,
};

/* A program that starts others. */
struct starter {
	const char *name;
	enum starter_kind kind;
	const char *letters; /* options with an argument */
	const char *words; /* the same for long options, each between blanks */
	const char *flags; /* long options without an argument, or only after a = */
	unsigned operands; /* before the command */
	bool assigns; /* NAME=VALUE may precede it */
	char text; /* the letter of an option whose argument is a text; 0: none */
	const char *text_word; /* the same, long */
};
const struct starter *starter_of(const char *name, size_t len); /* NULL: none */

/* The length of "/bin/" before a name; 0 if it is not in a directory of shell_path. */
size_t path_prefix(const char *s, size_t len);

#endif
