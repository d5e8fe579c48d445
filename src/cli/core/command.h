/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of lodge. Most are one HTTP request and a way to print its answer, and are a row of
 * these; the others have a function. */
#ifndef LODGE_CLI_CORE_COMMAND_H
#define LODGE_CLI_CORE_COMMAND_H

#include <jansson.h>

#include "cli/core/field.h"
#include "cli/core/options.h"

struct api_cmd;

/* The exit status, or -1 with err. */
typedef int command_fn(struct api_cmd *a, struct err *err);
typedef int command_fill_fn(struct api_cmd *a, json_t *body, struct err *err);
typedef void command_print_fn(struct api_cmd *a, const json_t *answer);

struct command {
	const char *name; /* "key create" */
	const char *usage; /* what follows the name; NULL in a command of several */
	const char *summary; /* an imperative phrase of at most 60 characters */
	const struct cli_option *options; /* NULL: only --help */
	size_t size; /* of its option struct, which begins with struct api_cmd; 0: only that */
	const char *alias; /* another word for the last of its name, which is not listed; or NULL */
	const char *about; /* paragraphs of --help before the options, and */
	const char *more; /* behind them; both may be NULL */
	int least, most; /* operands; most < 0: any number, 0: those of the request */
	int failed; /* the exit status if the service refuses; 0: 1 */
	bool stops_at_operand; /* everything from the first operand on belongs to a command */
	bool keeps_dashes; /* words after -- are no operands, but stay in argv */
	bool local; /* needs no lodged */
	bool prompt; /* lodged answers at once: see api_cmd_be_prompt() */
	bool new_helps; /* suggest `lodge create` if there is no such session */
	command_fn *check; /* of the command line; NULL: nothing more to check */
	command_fn *run; /* NULL: api_cmd_request() */
	void (*init)(struct api_cmd *a), (*fini)(struct api_cmd *a); /* of options; may be NULL */

	/* The request. Options with a field go to its query (GET, DELETE) or to its body. */
	const char *method, *path; /* %s of the path are operands */
	const char *operand; /* the member of the body that the only one fills */
	bool sessions; /* one request for each operand, which is a session */
	bool each; /* one request for each operand, which is removed */
	command_fill_fn *fill; /* adds to the body */
	command_fn *explain; /* replaces an error of the service; returns -1 */
	const char *confirm, *confirm_many; /* asked before; {0} is an operand, {n} their number */
	const char *cancelled; /* the error if the answer is no */

	/* The answer. */
	const char *rows; /* the member that is a list; its records are printed by `fields` */
	bool paged;
	const char *record; /* or the member that is one record; "": the answer itself */
	const struct field *fields;
	const char *plain; /* or the member to print alone; of a list with --quiet */
	const char *done; /* or a sentence, with {0} */
	const char *empty; /* a hint if the list is empty */
	command_print_fn *print; /* or a function */

	/* A command of several. Without a verb it is the first of them, which lists. */
	const struct command *const *subs; /* NULL ends them */
	const struct command *unnamed; /* or this one, if operands follow; NULL: never */

	/* What it is with --local: the same on this machine, without a service. It is also this one
	 * if no service can be found. NULL: there is no such. */
	const struct command *twin;
};

/* A row of `subs`. */
#define COMMAND(...) (&(const struct command){ __VA_ARGS__ })

/* The last word of its name. */
const char *command_verb(const struct command *cmd);
/* Whether this is its verb, or another word for it. */
bool command_is_called(const struct command *cmd, const char *word);
/* argv[0] is the name of the command. Returns the exit status. */
int command_main(const struct command *cmd, int argc, char **argv);

/* All of the following; NULL ends them. */
extern const struct command *const all_commands[];

/* sessions */
extern const struct command cmd_create, cmd_shell, cmd_ls, cmd_inspect, cmd_cp, cmd_stop, cmd_start,
	cmd_pause, cmd_unpause, cmd_extend, cmd_set, cmd_rm, cmd_prune;
/* commands in them */
extern const struct command cmd_exec, cmd_ps, cmd_logs, cmd_attach, cmd_kill;
extern const struct command cmd_snapshot, cmd_diff, cmd_fork, cmd_rollback, cmd_export, cmd_import;
extern const struct command cmd_user, cmd_cleanup, cmd_project, cmd_team, cmd_switch;
/* the service, and this machine */
extern const struct command cmd_status, cmd_top, cmd_events, cmd_template, cmd_key, cmd_policy,
	cmd_bench, cmd_login, cmd_run, cmd_doctor, cmd_completion;
/* rows with a file of their own, and what they are on this machine */
extern const struct command template_create, local_template_create, local_template_ls,
	local_template_rm;

#endif
