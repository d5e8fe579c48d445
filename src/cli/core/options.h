/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines as tables: one row is one option, and parsing, --help, completion, request bodies
 * and the names in error messages all come from it. */
#ifndef LODGE_CLI_CORE_OPTIONS_H
#define LODGE_CLI_CORE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Exit statuses of lodge itself, following env(1). */
enum {
	CLI_EXIT_REFUSED = 1, /* the service refused */
	CLI_EXIT_USAGE = 2,
	CLI_EXIT_TIMEOUT = 124,
	CLI_EXIT_FAILED = 125,
	CLI_EXIT_NOT_EXECUTABLE = 126,
	CLI_EXIT_NOT_FOUND = 127,
	CLI_EXIT_UNREAD = 128 + 13, /* as if killed by SIGPIPE */
};

/* A program whose name has one of these was most likely meant as a script. */
#define CLI_SHELL_CHARS " \t\n;&|<>$`*"

/* at: the address in the option struct. value: NULL if the option takes none. Returns 0 or -1. */
typedef int cli_option_fn(void *at, const char *name, const char *value, struct err *err);

enum cli_option_kind {
	CLI_FLAG, /* bool */
	CLI_SET, /* calls set() */
	/* The others are a const char *, converted when a request is made. */
	CLI_TEXT, /* not empty */
	CLI_ANY, /* may be empty */
	CLI_MS,
	CLI_BYTES,
	CLI_MILLI,
	CLI_COUNT, /* at least 1 */
	CLI_AMOUNT, /* at least 0 */
	CLI_LIST, /* with commas: an array of texts */
	/* Rows that are no options: */
	CLI_HEADING, /* name is the title of a section of --help */
	CLI_GROUP, /* the rows of `group`, whose struct is at `at` */
};

struct cli_option {
	const char *name; /* without the dashes; NULL ends the table */
	char letter; /* 0: none; one letter means the same in all commands */
	const char *arg; /* what --help calls its argument; NULL: it takes none */
	enum cli_option_kind kind;
	size_t at; /* in the option struct of the command, or of the group */
	const char *help; /* at most 60 characters */
	const char *field; /* the member of the request it fills, as "limits.pids"; NULL: none */
	cli_option_fn *set;
	const struct cli_option *group;
	bool shared; /* every command has it: only `lodge --help` lists it */
	char old_letter; /* accepted but not listed, because other commands use it otherwise */
	bool old; /* another name of the row before it: accepted, but listed nowhere */
};

/* clang-format off */
#define CLI_SECTION(title) { .name = (title), .kind = CLI_HEADING }
#define CLI_INCLUDE(table, offset) \
	{ .name = "", .kind = CLI_GROUP, .group = (table), .at = (offset) }
/* clang-format on */

struct command;

/* Calls fn for each option, groups included; at is NULL if opts is. Ends with the first result that
 * is not 0, and returns it. */
typedef int cli_option_visit_fn(const struct cli_option *o, void *at, void *arg);
int cli_option_each(const struct cli_option *table, void *opts, cli_option_visit_fn *fn, void *arg);
/* The same for the options that a command has only with --local. */
int cli_option_each_of_twin(const struct command *cmd, cli_option_visit_fn *fn, void *arg);
/* The text of an option that has one; NULL if it was not given. */
const char *cli_option_text(const struct cli_option *o, const void *at);

/* 1: --help was given and printed; 0: operands are argv[*first] ... (options moved before them);
 * -1: err. */
int cli_option_parse(const struct command *cmd, int argc, char **argv, void *opts, int *first,
		     struct err *err);

/* "lodge: message" on stderr, one line, with what can be done about it; returns status. After
 * cli_option_json(), which --json means, also {"error":{"code":...,"message":...}} on stdout. */
int cli_option_fail(int status, const struct err *err);
void cli_option_json(void);
/* The status, unless standard output could not be written completely: then 125, or 141 without a
 * message if its reader closed it. */
int cli_option_flush(int status);

#endif
