/* SPDX-License-Identifier: Apache-2.0 */
/* What commands share while they run: the client, the operands, requests, printed answers and
 * failures. */
#ifndef LODGE_CLI_CORE_API_CMD_H
#define LODGE_CLI_CORE_API_CMD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/member.h"
#include "cli/core/options.h"
#include "cli/core/target.h"
#include "cli/core/text_table.h"
#include "client/client.h"

DEFINE_AUTO(struct client *, client_free);
DEFINE_AUTO(struct client_stream *, client_close);

enum { API_PATH = 8192 };

/* The first member of the option struct of every command. */
struct api_cmd {
	const struct command *cmd;
	struct client *client; /* NULL: the command is local */
	bool json, yes, quiet;
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
extern const struct cli_option target_options[];
#define API_OPTIONS CLI_INCLUDE(api_options, 0)
/* clang-format off */
#define OPTION_JSON(text) { "json", 0, NULL, CLI_FLAG, offsetof(struct api_cmd, json), text }
#define OPTION_YES { "yes", 'y', NULL, CLI_FLAG, offsetof(struct api_cmd, yes), \
	  "do not ask (lodge asks only on a terminal)" }
#define OPTION_QUIET(text) { "quiet", 'q', NULL, CLI_FLAG, offsetof(struct api_cmd, quiet), text }
/* clang-format on */

/* The limits of a session, as `lodge new` and `lodge enter` take them. */
struct session_limits {
	const char *memory, *cpus, *pids, *disk;
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

/* ---- requests -------------------------------------------------------------------------------- */

/* The request that a->cmd declares. */
int api_cmd_request(struct api_cmd *a, struct err *err);
/* Options that were given into a body, by their fields. */
int api_cmd_fill(struct api_cmd *a, json_t *body, struct err *err);
/* The service names fields in its errors: names the option that filled the field instead. */
void api_cmd_name_option(struct api_cmd *a, struct err *err);

/* client_call() of a path with parts, as client_path() makes it. */
#define api_cmd_call(a, method, body, ret, err, ...)                                               \
	({                                                                                         \
		char path_[API_PATH];                                                              \
		client_path(path_, sizeof(path_), (err), __VA_ARGS__) < 0                          \
			? -1                                                                       \
			: client_call((a)->client, (method), path_, (body), (ret), (err));         \
	})
/* Every page of a list, as {"member": [...]}. */
int api_cmd_list(struct api_cmd *a, const char *path, const char *member, json_t **ret,
		 struct err *err);
/* A member of a request, unless value is NULL. `what` names the value in errors. */
int api_cmd_put(struct api_cmd *a, json_t *body, const char *name, const char *what,
		const char *value, struct err *err);
/* A text of a command line or an error; bytes that are not UTF-8 become '?'. */
json_t *api_cmd_string(const char *text);
/* Fails if SESSION would not lead to this key, because it reads as an id or as key:... */
int api_cmd_check_key(struct api_cmd *a, const char *what, const char *key, struct err *err);
/* A number within bounds; without a value *ret stays. */
int api_cmd_count_of(struct api_cmd *a, const char *option, const char *value, uint64_t least,
		     uint64_t most, uint64_t *ret, struct err *err);
/* Adds `name=value` to the query of a path, encoded; a NULL value adds nothing. */
int api_cmd_query(char *path, size_t size, const char *name, const char *value, struct err *err);
/* The record of a snapshot of a session, by id or name; which NULL: the newest. */
int api_cmd_find_snapshot(struct api_cmd *a, const char *ref, const char *which, json_t **ret,
			  struct err *err);

/* For each operand as a session, `one`; a failure is printed and the others go on. */
typedef int api_cmd_one_fn(struct api_cmd *a, const char *ref, json_t **ret, struct err *err);
int api_cmd_each(struct api_cmd *a, api_cmd_one_fn *one, command_print_fn *print, struct err *err);
/* For each operand `one`, which removes it. */
typedef int api_cmd_remove_fn(struct api_cmd *a, const char *which, struct err *err);
int api_cmd_remove_each(struct api_cmd *a, api_cmd_remove_fn *one, struct err *err);
/* After a failure on one of `count` operands: prints it and returns 0, or -1 to stop. */
int api_cmd_continue(struct api_cmd *a, const char *what, int count, struct err *err);

/* ---- output ---------------------------------------------------------------------------------- */

/* The answer as JSON, or by `print`. Returns 0, or -1. */
int api_cmd_write(struct api_cmd *a, const json_t *answer, command_print_fn *print,
		  struct err *err);
/* As the command declares it. */
void api_cmd_print_answer(struct api_cmd *a, const json_t *answer);
int api_cmd_write_json(const json_t *answer, struct err *err);
int api_cmd_write_line(const json_t *answer, struct err *err);
/* printf() and a newline; control characters become '?'. */
void api_cmd_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "lodge: what: why" on standard error; the exit status becomes 1. */
void api_cmd_complain(struct api_cmd *a, const char *what, struct err *err);
/* On standard error, after what was printed; a hint only if that is a terminal. */
void api_cmd_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void api_cmd_hint(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Asks on a terminal, where only "y" or "yes" is a yes. Elsewhere, and with --yes, true. */
bool api_cmd_confirm(const struct api_cmd *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A copy of text with {0} and {1} as operands and {n} as their number; NULL: no memory. */
char *api_cmd_expand(const struct api_cmd *a, const char *text);

#endif
