/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines from tables: the same table parses and prints --help. */
#ifndef LODGE_CLI_CORE_OPTIONS_H
#define LODGE_CLI_CORE_OPTIONS_H

#include <stdbool.h>

#include "base/err.h"

/* Exit statuses of lodge itself, in the manner of env(1). */
enum {
	OPT_EXIT_USAGE = 2, /* commands other than run */
	OPT_EXIT_TIMEOUT = 124,
	OPT_EXIT_FAILED = 125,
	OPT_EXIT_NOT_EXECUTABLE = 126,
	OPT_EXIT_NOT_FOUND = 127,
	OPT_EXIT_UNREAD = 128 + 13, /* as of those whom SIGPIPE ends */
};

/* value is NULL for an option without argument. */
typedef int opt_fn(void *ctx, const char *name, const char *value, struct err *err);

/* set_FIELD(), which sets this bool of the command's own struct opts. */
#define OPT_FLAG(field)                                                                            \
	static int set_##field(void *ctx, const char *name, const char *value, struct err *err)    \
	{                                                                                          \
		(void)name;                                                                        \
		(void)value;                                                                       \
		(void)err;                                                                         \
		((struct opts *)ctx)->field = true;                                                \
		return 0;                                                                          \
	}

struct opt {
	const char *name; /* without the dashes; NULL ends the table */
	char letter; /* 0: none */
	const char *arg; /* what --help calls its argument; NULL: it has none */
	opt_fn *set;
	const char *help;
};

struct opt_command {
	const char *name; /* "lodge run" */
	const char *usage; /* what follows the name */
	const char *summary; /* one sentence */
	const struct opt *opts;
	const char *more; /* behind the options; may be NULL */
	bool stops_at_operand; /* everything from the first operand on belongs to a command */
};

/* 1: --help was asked and printed; 0: operands are argv[*first] ... (options moved before them);
 * -1: err. */
int opt_parse(const struct opt_command *cmd, int argc, char **argv, void *ctx, int *first,
	      struct err *err);
void opt_help(const struct opt_command *cmd);
/* What --help would print is handed to fn instead, until it is set to NULL: completions are made of
 * the tables themselves. */
typedef void opt_help_fn(void *arg, const struct opt_command *cmd);
void opt_help_to(opt_help_fn *fn, void *arg);

/* "lodge: message" on stderr, one line, with what can be done about it; returns status. */
int opt_fail(int status, const struct err *err);
/* The status, unless not all of standard output could be written: 125 then, and 141 without a word
 * when its reader had enough. */
int opt_flush(int status);

#endif
