/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that ask lodged have in common: options, the client, how answers and failures
 * are said, and what the exit status is. */
#ifndef LODGE_CLI_CORE_API_CMD_H
#define LODGE_CLI_CORE_API_CMD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/err.h"
#include "cli/core/limit_options.h"
#include "cli/core/options.h"
#include "cli/core/text_table.h"
#include "cli/core/target.h"
#include "client/client.h"

DEFINE_AUTO(json_t *, json_decref);
#define auto_json auto_call(json_decref)

enum { ASK_PATH = 8192, ASK_FAILED = 1 };

/* All options of all these commands: each command has those that its table names. */
struct api_cmd {
	struct template spec; /* first: limit_opt.h */
	struct client *client;
	const char *session, *user, *state, *project, *fragment, *tenant, *scope, *name, *key;
	const char *template, *snapshot, *policy, *reason, *count, *by, *since, *expires;
	const char *file, *allow, *deny, *idle, *lifetime, *max_active, *on_exceed;
	const char *memory, *cpus, *pids, *disk, *workdir, *timeout, *signal, *script;
	const char *unset, *id, *team, *title, *role, *sandboxes, *cpu;
	json_t *env; /* NULL: none */
	bool json, yes, quiet, all, stop, follow, once, keys, oci, look;
	bool tty, interactive, detach, fresh, no_keys;
	int argc; /* operands */
	char **argv;
	bool told; /* a failure that was said already */
	bool wrong; /* it is the command line's fault */
	int failed; /* the exit status when it is the service's */
	bool threads; /* some are at work until the process ends */
};

/* A failure of the command line that only the command itself can see: exit status 2. */
#define api_cmd_wrong(a, err, ...) ((a)->wrong = true, err_set((err), ERR_INVALID, __VA_ARGS__))

/* The exit status, or -1 with err. */
typedef int api_cmd_fn(struct api_cmd *a, struct err *err);

struct api_cmd_command {
	struct cli_option_command opt;
	int least, most; /* operands; most < 0: any number */
	/* Of those whose exit status is that of a command inside: 125, and not 1 or 2. */
	int failed, misused;
	bool prompt; /* the service answers at once, or it is not well: see api_cmd_be_prompt() */
	bool new_helps; /* where there is no session, one that is made would do */
	api_cmd_fn *check; /* what is wrong with the command line in other ways; may be NULL */
	api_cmd_fn *run;
};

/* Options, operands, client, command, exit status: 0, 1 it failed, 2 a wrong call, 125 lodged
 * could not be asked, 141 nobody reads the output. */
int api_cmd_main(const struct api_cmd_command *cmd, int argc, char **argv);

/* From here on a service that says nothing for half a minute is not waited for: of what is not
 * long by its nature, and waits for no room. */
void api_cmd_be_prompt(struct api_cmd *a);

/* A command of several: argv[1] is the name of one; without a name it is the first. */
struct api_cmd_family {
	const char *name; /* "lodge keys" */
	const char *summary;
	const struct ask_sub {
		const char *name;
		const struct api_cmd_command *command;
		const char *summary;
	} * subs; /* one without a command ends them */
};
int api_cmd_family_main(const struct api_cmd_family *f, int argc, char **argv);

/* ---- options --------------------------------------------------------------------------------- */

cli_option_fn ask_session, ask_user, ask_state, ask_project, ask_fragment, ask_tenant, ask_scope;
cli_option_fn ask_name, ask_key, ask_template, ask_snapshot, ask_policy, ask_reason, ask_count,
	ask_by;
cli_option_fn ask_since, ask_expires, ask_file, ask_allow, ask_deny, ask_idle, ask_lifetime;
cli_option_fn ask_max_active, ask_on_exceed, ask_memory, ask_cpus, ask_pids, ask_disk, ask_workdir;
cli_option_fn ask_timeout, ask_signal, ask_script, ask_env;
cli_option_fn ask_unset, ask_id, ask_team, ask_title, ask_role, ask_sandboxes, ask_cpu, ask_oci,
	ask_look;
cli_option_fn ask_json, ask_yes, ask_quiet, ask_all, ask_stop, ask_follow, ask_once, ask_keys;
cli_option_fn ask_tty, ask_interactive, ask_detach, ask_fresh, ask_no_keys;

/* What the service says of a field that an option filled, it says of the option then. */
void api_cmd_name_option(const struct api_cmd *a, struct err *err);

/* --help of those with --yes. */
#define ASK_ASKS "On a terminal it asks first, and --yes answers; elsewhere it does not ask.\n"

/* clang-format off */
#define ASK_OPTIONS                                                                                \
	{ "json", 0, NULL, ask_json, "as JSON" },                                                  \
	WHERE_OPT_TABLE
/* clang-format on */

/* ---- asking ---------------------------------------------------------------------------------- */

/* client_call() of a path with parts, as client_path() makes it. */
#define api_cmd_call(a, method, body, ret, err, ...)                                               \
	({                                                                                         \
		char path_[ASK_PATH];                                                              \
		client_path(path_, sizeof(path_), (err), __VA_ARGS__) < 0                          \
			? -1                                                                       \
			: client_call((a)->client, (method), path_, (body), (ret), (err));         \
	})
/* All of a list, as {"member": [...]}. The path is whole. */
int api_cmd_list(struct api_cmd *a, const char *path, const char *member, json_t **ret,
		 struct err *err);
/* A member to a JSON body, if there is one. Negative: no memory. */
int api_cmd_put(json_t *body, const char *name, const char *value);
/* A text of a command line or an error, cleaned if it is no UTF-8. */
json_t *api_cmd_string(const char *text);
/* --memory, --cpus, --pids and --disk as the limits of a session. */
int api_cmd_put_limits(struct api_cmd *a, json_t *body, struct err *err);
/* Whether a session could be called by this key: one that looks like an id, or like key:..., means
 * something else there. */
int api_cmd_check_key(struct api_cmd *a, const char *what, const char *key, struct err *err);
/* "2h" as so many milliseconds. */
int api_cmd_put_ms(struct api_cmd *a, json_t *body, const char *name, const char *option,
		   const char *value, struct err *err);
/* A number of an option within bounds; without a value *ret stays. */
int api_cmd_count_of(struct api_cmd *a, const char *option, const char *value, uint64_t least,
		     uint64_t most, uint64_t *ret, struct err *err);
/* Adds `name=value` to the query of a path, encoded; a NULL value adds nothing. */
int api_cmd_query(char *path, size_t size, const char *name, const char *value, struct err *err);

/* The snapshot of a session by id or name; ret has its record. */
int api_cmd_find_snapshot(struct api_cmd *a, const char *ref, const char *which, json_t **ret,
			  struct err *err);

/* ---- saying ---------------------------------------------------------------------------------- */

/* The answer as JSON, or by `people`. Returns the exit status 0, or -1. */
typedef void api_cmd_write_fn(struct api_cmd *a, const json_t *answer);
int api_cmd_write(struct api_cmd *a, const json_t *answer, api_cmd_write_fn *people,
		  struct err *err);
int api_cmd_write_json(const json_t *answer, struct err *err);
/* One of many, each in one line. */
int api_cmd_write_line(const json_t *answer, struct err *err);
/* printf() of texts that others wrote, cleaned as a whole. */
void api_cmd_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "lodge: what: why" on standard error; goes on with an exit status of 1. */
void api_cmd_complain(struct api_cmd *a, const char *what, struct err *err);

/* A word for people whose standard error is a terminal, behind what was printed. */
void api_cmd_hint(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, wherever that goes. */
void api_cmd_remark(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* On a terminal: asks, and only "y" or "yes" is one. Elsewhere, and with --yes, true without a
 * word. */
bool api_cmd_sure(const struct api_cmd *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Members of answers; "" and -1 where there is none. Dots lead into objects; "" is j itself. */
const char *api_cmd_text(const json_t *j, const char *path);
int64_t api_cmd_number(const json_t *j, const char *path);
bool api_cmd_is(const json_t *j, const char *path, const char *text);
/* The key of a session, or its id. */
const char *api_cmd_called(const json_t *session);

/* After a failure with one of so many: says it and goes on; -1: no use in that. */
int api_cmd_go_on(struct api_cmd *a, const char *what, int of, struct err *err);
/* For each operand `one`, and which are gone then. */
typedef int api_cmd_remove_fn(struct api_cmd *a, const char *which, struct err *err);
int api_cmd_remove_each(struct api_cmd *a, api_cmd_remove_fn *one, struct err *err);
/* For each operand as a session, `one`; what it failed for is said, and the others go on. */
typedef int api_cmd_one_fn(struct api_cmd *a, const char *ref, json_t **ret, struct err *err);
int api_cmd_each(struct api_cmd *a, api_cmd_one_fn *one, api_cmd_write_fn *people, struct err *err);

#endif
