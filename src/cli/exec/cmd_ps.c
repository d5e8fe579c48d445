/* SPDX-License-Identifier: Apache-2.0 */
/* lodge ps, logs, attach, kill: commands that run in a session, or ran. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/core/print_session.h"
#include "cli/exec/exec_job_output.h"
#include "cli/exec/tty_session.h"

/* ---- finding a command ----------------------------------------------------------------------- */

struct ps_opts {
	struct api_cmd a;
	bool all, follow;
	const char *signal, *tail;
};

static int find_newest(struct exec_job *j, const char *state, struct err *err)
{
	auto_json json_t *all = NULL;
	json_t *x;
	size_t i;

	if (exec_job_list(j, &all, err) < 0)
		return -1;
	json_array_foreach (all, i, x)
		if (!state || member_is(x, "state", state))
			snprintf(j->id, sizeof(j->id), "%s", member_text(x, "exec_id"));
	return *j->id ? 0
		      : err_set(err, ERR_NOT_FOUND, "%s has no %scommand (see lodge ps -a)", j->ref,
				state ? "running " : "");
}

/* SESSION [EXEC]; without EXEC the newest in this state, NULL: in any. */
static int find_job(struct api_cmd *a, const char *state, struct exec_job *j, struct err *err)
{
	const char *id = a->argc > 1 ? a->argv[1] : NULL;

	j->client = a->client;
	if (target_ref(a->argv[0], j->ref, err) < 0)
		return -1;
	if (!id)
		return find_newest(j, state, err);
	if (snprintf(j->id, sizeof(j->id), "%s", id) >= (int)sizeof(j->id) ||
	    strncmp(id, "exe_", 4) != 0)
		return err_set(err, ERR_INVALID,
			       "\"%.60s\" is not a command id: ids start with exe_ (see lodge ps)",
			       id);
	return 0;
}

/* ---- ps -------------------------------------------------------------------------------------- */

static int run_ps(struct api_cmd *a, struct err *err)
{
	auto_json json_t *all = NULL, *answer = NULL;
	struct exec_job j = { .client = a->client };
	int64_t ended = 0;

	if (target_ref(a->argv[0], j.ref, err) < 0 || exec_job_list(&j, &all, err) < 0)
		return -1;
	for (size_t i = json_array_size(all); !((struct ps_opts *)a)->all && i-- > 0;)
		if (!member_is(json_array_get(all, i), "state", "running")) {
			json_array_remove(all, i);
			ended++;
		}
	answer = json_pack("{s:O}", "execs", all);
	if (api_cmd_write(a, answer, api_cmd_print_answer, err) < 0)
		return -1;
	if (a->json || json_array_size(all))
		return 0;
	if (ended)
		api_cmd_hint("no running command; -a lists the %lld that ended", (long long)ended);
	else
		api_cmd_hint("no commands (run one: lodge exec)");
	return 0;
}

static const struct cli_option ps_options[] = {
	{ "all", 'a', NULL, CLI_FLAG, offsetof(struct ps_opts, all),
	  "also list those that ended in the last 7 days" },
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_ps = {
	.name = "ps",
	.usage = "[-a] [--json] SESSION",
	.summary = "list the commands of a session",
	.options = ps_options,
	.size = sizeof(struct ps_opts),
	.least = 1,
	.most = 1,
	.prompt = true,
	.run = run_ps,
	.rows = "execs",
	.fields = print_exec_fields,
};

/* ---- logs ------------------------------------------------------------------------------------ */

/* --tail N; "all" is as without it. */
static int parse_tail(struct api_cmd *a, struct exec_job *j, struct err *err)
{
	const char *tail = ((struct ps_opts *)a)->tail;

	j->tails = tail && strcmp(tail, "all") != 0;
	return j->tails ? api_cmd_count_of(a, "--tail", tail, 0, UINT32_MAX, &j->tail, err) : 0;
}

/* Reads what there is, writes the end of it, and goes on from there. */
static int follow_tail(struct exec_job *j, bool wait, struct err *err)
{
	bool keep = j->keep;

	j->keep = true;
	if (exec_job_follow(j, false, err) < 0)
		return -1;
	j->keep = keep;
	if (!keep && exec_job_write_tail(j, err) < 0)
		return -1;
	return wait && !j->end ? exec_job_follow(j, true, err) : 0;
}

static int run_logs(struct api_cmd *a, struct err *err)
{
	auto_fini(exec_job_fini) struct exec_job j = { .keep = a->json };
	bool follow = ((struct ps_opts *)a)->follow;

	if (parse_tail(a, &j, err) < 0 || find_job(a, NULL, &j, err) < 0 ||
	    (j.tails ? follow_tail : exec_job_follow)(&j, follow, err) < 0)
		return -1;
	if (j.tails)
		exec_job_cut_tail(&j);
	if (a->json)
		return !j.end && exec_job_get(&j, &j.end, err) < 0 ? -1
								   : exec_job_write_json(&j, err);
	if (j.gap && !j.tails)
		fputs("lodge: the oldest output was discarded (limit: output_bytes)\n", stderr);
	return 0;
}

static const struct cli_option logs_options[] = {
	{ "follow", 'f', NULL, CLI_FLAG, offsetof(struct ps_opts, follow),
	  "keep printing until it ends" },
	{ "tail", 0, "N", CLI_TEXT, offsetof(struct ps_opts, tail),
	  "only the last N lines of each stream (all)", .old_letter = 'n' },
	OPTION_JSON("print its record and output as JSON"),
	CLI_INCLUDE(target_options, 0),
	{ NULL },
};

const struct command cmd_logs = {
	.name = "logs",
	.usage = "[-f] [--tail N] [--json] SESSION [EXEC]",
	.summary = "print the output of a command",
	.options = logs_options,
	.more = "EXEC is the id of a command (see lodge ps); the default is the newest.\n",
	.size = sizeof(struct ps_opts),
	.least = 1,
	.most = 2,
	.run = run_logs,
};

/* ---- attach ---------------------------------------------------------------------------------- */

/* Only a command with a terminal can be resized. */
static int run_attach(struct api_cmd *a, struct err *err)
{
	static struct exec_job j; /* threads use it until the process exits */

	if (find_job(a, "running", &j, err) < 0)
		return -1;
	if (exec_job_resize(&j))
		return tty_session_job(&j, false, err);
	a->threads = true;
	if (exec_job_forward(&j, !isatty(STDIN_FILENO), err) < 0 ||
	    exec_job_follow(&j, true, err) < 0)
		return -1;
	exec_job_explain(&j);
	return exec_job_status(j.end);
}

const struct command cmd_attach = {
	.name = "attach",
	.usage = "SESSION [EXEC]",
	.summary = "reconnect to a running command",
	.options = target_options,
	.more = "EXEC is the id of a command (see lodge ps); the default is the newest that "
		"runs.\n\n"
		"A command with a terminal gets this one; press " TTY_DETACH_KEYS
		" to detach. For others, the\n"
		"retained output is printed from its start, standard input is sent unless it is a\n"
		"terminal, Ctrl-C interrupts the command and a second Ctrl-C detaches.\n\n"
		"Exit status: as lodge exec.\n",
	.least = 1,
	.most = 2,
	.failed = CLI_EXIT_FAILED,
	.run = run_attach,
};

/* ---- kill ------------------------------------------------------------------------------------ */

/* Without a signal, everything that the command started is killed too. */
static int run_kill(struct api_cmd *a, struct err *err)
{
	auto_json json_t *record = NULL;
	const char *signal = ((struct ps_opts *)a)->signal;
	struct exec_job j = { 0 };

	if (find_job(a, NULL, &j, err) < 0 ||
	    (signal ? exec_job_signal(&j, signal, err)
		    : api_cmd_call(a, "DELETE", NULL, NULL, err, JOB_URL, j.ref, j.id)) < 0)
		return -1;
	if (!a->json)
		return 0;
	return exec_job_get(&j, &record, err) < 0 ? -1 : api_cmd_write_json(record, err);
}

static const struct cli_option kill_options[] = {
	{ "signal", 's', "SIGNAL", CLI_TEXT, offsetof(struct ps_opts, signal),
	  "send this signal instead: TERM, SIGINT, 15", "signal" },
	OPTION_JSON("print its record as JSON"),
	CLI_INCLUDE(target_options, 0),
	{ NULL },
};

const struct command cmd_kill = {
	.name = "kill",
	.usage = "[-s SIGNAL] [--json] SESSION EXEC",
	.summary = "kill a command, or send it a signal",
	.options = kill_options,
	.more = "Without --signal, everything that the command started is killed too.\n",
	.size = sizeof(struct ps_opts),
	.least = 2,
	.most = 2,
	.prompt = true,
	.run = run_kill,
};
