/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines from tables: the same table parses and prints --help. */
#ifndef LODGE_CLI_CORE_OPTIONS_H
#define LODGE_CLI_CORE_OPTIONS_H

#include <stdbool.h>

#include "base/err.h"

/* Exit statuses of lodge itself, in the manner of env(1). */
enum {
	CLI_EXIT_USAGE = 2, /* commands other than run */
	CLI_EXIT_TIMEOUT = 124,
	CLI_EXIT_FAILED = 125,
	CLI_EXIT_NOT_EXECUTABLE = 126,
	CLI_EXIT_NOT_FOUND = 127,
	CLI_EXIT_UNREAD = 128 + 13, /* as of those whom SIGPIPE ends */
};

/* value is NULL for an option without argument. */
typedef int cli_option_fn(void *ctx, const char *name, const char *value, struct err *err);

/* set_FIELD(), which sets this bool of the command's own struct opts. */
#define CLI_FLAG(field)                                                                            \
	static int set_##field(void *ctx, const char *name, const char *value, struct err *err)    \
	{                                                                                          \
		(void)name;                                                                        \
		(void)value;                                                                       \
		(void)err;                                                                         \
		((struct opts *)ctx)->field = true;                                                \
		return 0;                                                                          \
	}

struct cli_option {
	const char *name; /* without the dashes; NULL ends the table */
	char letter; /* 0: none */
	const char *arg; /* what --help calls its argument; NULL: it has none */
	cli_option_fn *set;
	const char *help;
};

struct cli_option_command {
	const char *name; /* "lodge run" */
	const char *usage; /* what follows the name */
	const char *summary; /* one sentence */
	const struct cli_option *opts;
	const char *more; /* behind the options; may be NULL */
	bool stops_at_operand; /* everything from the first operand on belongs to a command */
};

/* 1: --help was asked and printed; 0: operands are argv[*first] ... (options moved before them);
 * -1: err. */
int cli_option_parse(const struct cli_option_command *cmd, int argc, char **argv, void *ctx,
		     int *first, struct err *err);
void cli_option_help(const struct cli_option_command *cmd);
/* What --help would print is handed to fn instead, until it is set to NULL: completions are made of
 * the tables themselves. */
typedef void cli_option_help_fn(void *arg, const struct cli_option_command *cmd);
void cli_option_help_to(cli_option_help_fn *fn, void *arg);

/* "lodge: message" on stderr, one line, with what can be done about it; returns status. */
int cli_option_fail(int status, const struct err *err);
/* The status, unless not all of standard output could be written: 125 then, and 141 without a word
 * when its reader had enough. */
int cli_option_flush(int status);

#endif
