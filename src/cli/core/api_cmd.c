/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/api_cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SILENT_MS = 30000, ID_LENGTH = 20 };

const struct cli_option api_options[] = {
	OPTION_JSON("print JSON"),
	CLI_INCLUDE(target_options, 0),
	{ NULL },
};

const struct cli_option yes_options[] = { OPTION_YES, API_OPTIONS, { NULL } };

const struct cli_option session_limit_options[] = {
	{ "memory", 'm', "SIZE", CLI_BYTES, offsetof(struct session_limits, memory),
	  "memory; swap is off (512M)", "limits.memory_bytes" },
	{ "cpus", 0, "N", CLI_MILLI, offsetof(struct session_limits, cpus),
	  "CPU cores, as 0.5 (a fair share)", "limits.cpu_milli" },
	{ "pids", 0, "N", CLI_COUNT, offsetof(struct session_limits, pids),
	  "processes and threads (256)", "limits.pids" },
	{ "pids-limit", 0, "N", CLI_COUNT, offsetof(struct session_limits, pids), "the same",
	  "limits.pids", .old = true },
	{ "disk", 0, "SIZE", CLI_BYTES, offsetof(struct session_limits, disk),
	  "disk space of its files (1G)", "limits.disk_bytes" },
	{ "file-size", 0, "SIZE", CLI_BYTES, offsetof(struct session_limits, file_size),
	  "size of a single file (1G)", "limits.file_bytes" },
	{ NULL },
};

/* ---- running --------------------------------------------------------------------------------- */

static bool is_unreachable(const struct err *err)
{
	return err->code == ERR_UNAVAILABLE && err->sys;
}

static int status_of(const struct api_cmd *a, const struct err *err)
{
	if (a->misused || err->sys == TARGET_NO_REF)
		return CLI_EXIT_USAGE;
	return is_unreachable(err) ? CLI_EXIT_FAILED : a->failed;
}

/* How many its path and its body need. */
static int request_operands(const struct command *cmd)
{
	int n = cmd->operand != NULL;

	for (const char *p = cmd->path; p && (p = strchr(p, '%')); p++)
		n++;
	return n;
}

static int check_operands(const struct command *cmd, int n, struct err *err)
{
	int least = cmd->most ? cmd->least : request_operands(cmd);
	int most = cmd->most ? cmd->most : least;

	if (n >= least && (most < 0 || n <= most))
		return 0;
	return err_set(err, ERR_INVALID, "too %s operands; usage: lodge %s%s%.*s",
		       n < least ? "few" : "many", cmd->name, *cmd->usage ? " " : "",
		       (int)strcspn(cmd->usage, "\n"), cmd->usage);
}

/* The rest of a NOT_FOUND message that begins like this; NULL: it does not. */
static const char *skip_prefix(const struct err *err, const char *prefix)
{
	size_t n = strlen(prefix);

	return err->code == ERR_NOT_FOUND && strncmp(err->msg, prefix, n) == 0 ? err->msg + n
									       : NULL;
}

/* Whether a command with this key can be suggested for copying: the shell must leave it alone, and
 * lodge must take it for a key. */
static bool is_plain_key(const char *key, size_t plain)
{
	return plain && *key != '-' && strcmp(key + plain, "'") == 0 && !target_is_id(key) &&
	       strncmp(key, "key:", 4) != 0;
}

/* Adds what to do about a session that does not exist. */
static void advise_session(const struct command *cmd, struct err *err)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._@+/:-";
	const char *key = skip_prefix(err, "no session with key '"),
		   *id = skip_prefix(err, "no session ses_");
	char more[sizeof(err->msg)] = " (see lodge ls)";
	size_t n = strspn(key ? key : id ? id : "", plain), has = strlen(err->msg);

	if (!key && (!id || id[n] || n == ID_LENGTH))
		return;
	if (id)
		snprintf(more, sizeof(more), " (if that is a key: key:ses_%s)", id);
	else if (cmd->new_helps && is_plain_key(key, n))
		snprintf(more, sizeof(more), " (create it: lodge create %.*s)", (int)n, key);
	if (has + strlen(more) < sizeof(err->msg))
		memcpy(err->msg + has, more, strlen(more) + 1);
}

/* The exit status of what run() returned. */
static int finish(struct api_cmd *a, int r, struct err *err)
{
	if (r >= 0)
		return cli_option_flush(r ? r : a->reported ? CLI_EXIT_REFUSED : 0);
	if (err->sys == EPIPE && ferror(stdout))
		return CLI_EXIT_UNREAD;
	api_cmd_name_option(a, err);
	advise_session(a->cmd, err);
	return cli_option_fail(status_of(a, err), err);
}

static int before_dashes(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return i;
	return argc;
}

/* Also if --json stands after the option that is wrong, but not in words of a command. */
static bool wants_json(const struct api_cmd *a, int argc, char **argv)
{
	for (int i = 1; i < argc && !a->json; i++)
		if (strcmp(argv[i], "--json") == 0)
			return !a->cmd->stops_at_operand;
	return a->json;
}

static int parse(struct api_cmd *a, int argc, char **argv, struct err *err)
{
	int first, r;

	if (a->cmd->keeps_dashes)
		argc = before_dashes(argc, argv);
	r = cli_option_parse(a->cmd, argc, argv, a, &first, err);
	if (r < 0 ? wants_json(a, argc, argv) : a->json)
		cli_option_json();
	if (r)
		return r;
	a->argc = argc - first;
	a->argv = argv + first;
	if (check_operands(a->cmd, a->argc, err) < 0)
		return -1;
	return a->cmd->check ? a->cmd->check(a, err) : 0;
}

void api_cmd_be_prompt(struct api_cmd *a)
{
	client_limit(a->client, SILENT_MS);
}

static int connect_and_run(struct api_cmd *a)
{
	auto_call(client_free) struct client *client = NULL;
	const struct command *cmd = a->cmd;
	struct err err = { 0 };
	int r;

	if (!cmd->local && target_client(&client, &err) < 0)
		return cli_option_fail(CLI_EXIT_FAILED, &err);
	a->client = client;
	if (cmd->prompt)
		api_cmd_be_prompt(a);
	r = finish(a, (cmd->run ? cmd->run : api_cmd_request)(a, &err), &err);
	if (a->threads)
		_exit(r);
	return r;
}

int api_cmd_main(const struct command *cmd, int argc, char **argv)
{
	auto_free struct api_cmd *a = calloc(1, cmd->size ? cmd->size : sizeof(*a));
	struct err err = { 0 };
	int r;

	if (!a)
		return CLI_EXIT_FAILED;
	a->cmd = cmd;
	a->failed = cmd->failed ? cmd->failed : CLI_EXIT_REFUSED;
	if (cmd->init)
		cmd->init(a);
	r = parse(a, argc, argv, &err);
	if (r < 0) {
		a->misused = true;
		r = cli_option_fail(status_of(a, &err), &err);
	} else {
		r = r > 0 ? 0 : connect_and_run(a);
	}
	if (cmd->fini)
		cmd->fini(a);
	return r;
}

/* ---- several operands ------------------------------------------------------------------------ */

/* {"operand": ..., "error": {...}}: the line of one of several operands. */
static void print_error_line(const char *operand, const struct err *err)
{
	auto_json json_t *line =
		json_pack("{s:o, s:{s:s, s:o}}", "operand", api_cmd_string(operand), "error",
			  "code", client_code(err), "message", api_cmd_string(err->msg));
	struct err ignored;

	(void)api_cmd_write_line(line, &ignored);
}

int api_cmd_continue(struct api_cmd *a, const char *what, int count, struct err *err)
{
	auto_free char *clean = NULL, *why = NULL;

	if (count == 1 || a->misused || is_unreachable(err))
		return -1;
	api_cmd_name_option(a, err);
	clean = human_clean_dup(what);
	why = human_clean_dup(err->msg);
	a->reported = true;
	fflush(stdout);
	fprintf(stderr, "lodge: %s: %s\n", clean ? clean : "", why ? why : "");
	return 0;
}

/* The answer for one operand: an object, or one line of several. */
static int write_answer(struct api_cmd *a, const json_t *answer, struct err *err)
{
	return a->argc == 1 ? api_cmd_write_json(answer, err) : api_cmd_write_line(answer, err);
}

static int continue_each(struct api_cmd *a, const char *operand, struct err *err)
{
	if (api_cmd_continue(a, operand, a->argc, err) < 0)
		return -1;
	if (a->json)
		print_error_line(operand, err);
	return 0;
}

int api_cmd_write_removed(struct api_cmd *a, const char *which, struct err *err)
{
	auto_json json_t *removed = json_pack("{s:o}", "removed", api_cmd_string(which));

	return write_answer(a, removed, err);
}

int api_cmd_remove_each(struct api_cmd *a, api_cmd_remove_fn *one, struct err *err)
{
	for (int i = 0; i < a->argc; i++) {
		if (one(a, a->argv[i], err) < 0) {
			if (continue_each(a, a->argv[i], err) < 0)
				return -1;
		} else if (!a->json) {
			api_cmd_print("removed %s", a->argv[i]);
		} else if (api_cmd_write_removed(a, a->argv[i], err) < 0) {
			return -1;
		}
	}
	return 0;
}

int api_cmd_each(struct api_cmd *a, api_cmd_one_fn *one, command_print_fn *print, struct err *err)
{
	char ref[TARGET_REF];

	for (int i = 0; i < a->argc; i++) {
		auto_json json_t *answer = NULL;

		if (target_ref(a->argv[i], ref, err) < 0)
			return -1;
		a->ref = ref;
		if (one(a, ref, &answer, err) < 0) {
			if (continue_each(a, a->argv[i], err) < 0)
				return -1;
		} else if (a->json && write_answer(a, answer, err) < 0) {
			return -1;
		} else if (!a->json && answer) {
			print(a, answer);
		}
	}
	return 0;
}
