/* SPDX-License-Identifier: Apache-2.0 */
/* What commands share while they run: the client, the operands, requests and output. */
#ifndef LODGE_CLI_CORE_API_CMD_H
#define LODGE_CLI_CORE_API_CMD_H

#include "cli/core/api_print.h"
#include "cli/core/api_request.h"
#include "cli/core/member.h"
#include "cli/core/target.h"

DEFINE_AUTO(struct client *, client_free);
DEFINE_AUTO(struct client_stream *, client_close);

/* The first member of the option struct of every command. */
struct api_cmd {
	const struct command *cmd;
	struct client *client; /* NULL: the command is local */
	bool json, yes, quiet;
	bool local; /* said; the command is already the one of this machine */
	int argc; /* operands */
	char **argv;
	const char *ref; /* of the session that api_cmd_each() is at */
	bool reported; /* a failure was printed, the exit status is 1 */
	bool misused; /* the command line is wrong */
	int failed; /* the exit status if the service refuses */
	bool threads; /* some use this struct until the process ends */
};

/* Options that many commands share. */
extern const struct cli_option api_options[]; /* --json and the target */
extern const struct cli_option yes_options[]; /* --yes, and these */
#define API_OPTIONS CLI_INCLUDE(api_options, 0)
/* clang-format off */
#define OPTION_JSON(text) { "json", 0, NULL, CLI_FLAG, offsetof(struct api_cmd, json), text }
#define OPTION_YES { "yes", 'y', NULL, CLI_FLAG, offsetof(struct api_cmd, yes), \
	  "do not ask (needed if input is not a terminal)", .old_letter = 'f' }, \
	{ "force", 0, NULL, CLI_FLAG, offsetof(struct api_cmd, yes), "the same", .old = true }
#define OPTION_LOCAL { "local", 0, NULL, CLI_FLAG, offsetof(struct api_cmd, local), \
	  "the templates of this machine, without a service" }
/* of commands that need no lodged */
#define OPTION_DATA(type, member) \
	{ "data", 0, "DIR", CLI_TEXT, offsetof(type, member), "data directory (LODGE_DATA)" }, \
	{ "home", 0, "DIR", CLI_TEXT, offsetof(type, member), "the same", .old = true }
#define OPTION_QUIET(text) { "quiet", 'q', NULL, CLI_FLAG, offsetof(struct api_cmd, quiet), text }
/* clang-format on */

/* The limits of a session, as `lodge create` and `lodge shell` take them. */
struct session_limits {
	const char *memory, *cpus, *pids, *disk, *file_size;
};
extern const struct cli_option session_limit_options[];

/* A mistake in the command line that only the command itself can find: exit status 2. */
#define api_cmd_misuse(a, err, ...) ((a)->misused = true, err_set((err), ERR_INVALID, __VA_ARGS__))

/* Parses, checks, connects and runs. Returns the exit status: 0, 1 the service refused, 2 wrong
 * usage, 125 no connection, 141 standard output was closed. */
int api_cmd_main(const struct command *cmd, int argc, char **argv);
/* From here on, waits at most 30 seconds for each answer: for requests that are not long by nature
 * and do not queue. */
void api_cmd_be_prompt(struct api_cmd *a);

/* For each operand as a session, `one`; a failure is printed and the others go on. --json prints
 * the answer for one operand as it is, and for several one line each. */
typedef int api_cmd_one_fn(struct api_cmd *a, const char *ref, json_t **ret, struct err *err);
int api_cmd_each(struct api_cmd *a, api_cmd_one_fn *one, command_print_fn *print, struct err *err);
/* For each operand `one`, which removes it. */
typedef int api_cmd_remove_fn(struct api_cmd *a, const char *which, struct err *err);
int api_cmd_remove_each(struct api_cmd *a, api_cmd_remove_fn *one, struct err *err);
/* {"removed": which} */
int api_cmd_write_removed(struct api_cmd *a, const char *which, struct err *err);
/* After a failure on one of `count` operands: prints it, for an exit status of 1, and returns 0, or
 * -1 to stop. */
int api_cmd_continue(struct api_cmd *a, const char *what, int count, struct err *err);

#endif
