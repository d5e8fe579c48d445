/* SPDX-License-Identifier: Apache-2.0 */
/* lodge ps, logs, attach, kill: the commands of a session that were started before. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/core/commands.h"
#include "cli/core/print_session.h"
#include "cli/exec/tty_session.h"

/* ---- what they share ------------------------------------------------------------------------- */

static int list(struct api_cmd *a, const char *ref, json_t **ret, struct err *err)
{
	char path[ASK_PATH];

	if (client_path(path, sizeof(path), err, "/v1/sessions/%s/execs", ref) < 0)
		return -1;
	return api_cmd_list(a, path, "execs", ret, err);
}

static int find_newest(struct api_cmd *a, struct exec_job *j, const char *state, struct err *err)
{
	auto_json json_t *all = NULL;
	json_t *x;
	size_t i;

	if (list(a, j->ref, &all, err) < 0)
		return -1;
	json_array_foreach (json_object_get(all, "execs"), i, x)
		if (!state || api_cmd_is(x, "state", state))
			snprintf(j->id, sizeof(j->id), "%s", api_cmd_text(x, "exec_id"));
	return *j->id ? 0
		      : err_set(err, ERR_NOT_FOUND, "no command of %s %s (lodge ps -a lists them)",
				j->ref, state ? state : "is known");
}

/* SESSION [EXEC]; without EXEC the newest of this state, NULL: of any. */
static int take_job(struct api_cmd *a, const char *state, struct exec_job *j, struct err *err)
{
	const char *id = a->argc > 1 ? a->argv[1] : NULL;

	j->client = a->client;
	if (target_ref(a->argv[0], j->ref, err) < 0)
		return -1;
	if (!id)
		return find_newest(a, j, state, err);
	if (snprintf(j->id, sizeof(j->id), "%s", id) >= (int)sizeof(j->id) ||
	    strncmp(id, "exe_", 4) != 0)
		return err_set(err, ERR_INVALID,
			       "\"%.60s\" is no command: their ids begin with exe_ (lodge ps)", id);
	return 0;
}

/* ---- ps -------------------------------------------------------------------------------------- */

static void say_ps(struct api_cmd *a, const json_t *answer)
{
	(void)a;
	print_execs(json_object_get(answer, "execs"));
}

static void hint_at(int64_t ended)
{
	if (ended)
		api_cmd_hint("nothing runs; -a lists the %lld that ended", (long long)ended);
	else
		api_cmd_hint("no commands (lodge exec runs one)");
}

static int run_ps(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char ref[WHERE_REF];
	int64_t ended = 0;
	json_t *all;

	if (target_ref(a->argv[0], ref, err) < 0 || list(a, ref, &answer, err) < 0)
		return -1;
	all = json_object_get(answer, "execs");
	for (size_t i = json_array_size(all); !a->all && i-- > 0;)
		if (!api_cmd_is(json_array_get(all, i), "state", "running")) {
			json_array_remove(all, i);
			ended++;
		}
	if (api_cmd_write(a, answer, say_ps, err) < 0)
		return -1;
	if (!a->json && !json_array_size(all))
		hint_at(ended);
	return 0;
}

static const struct cli_option ps_options[] = {
	{ "all", 'a', NULL, ask_all, "also those that have ended, of the last 7 days" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_ps(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge ps",
			 .usage = "[-a] [--json] SESSION",
			 .summary = "Lists the commands of a session that run.",
			 .opts = ps_options },
		.least = 1,
		.most = 1,
		.prompt = true,
		.run = run_ps,
	};

	return api_cmd_main(&command, argc, argv);
}

/* ---- logs ------------------------------------------------------------------------------------ */

static int run_logs(struct api_cmd *a, struct err *err)
{
	auto_fini(exec_job_fini) struct exec_job j = { .keep = a->json };

	if (take_job(a, NULL, &j, err) < 0 || exec_job_follow(&j, a->follow, err) < 0)
		return -1;
	if (a->json)
		return !j.end && exec_job_look(&j, &j.end, err) < 0 ? -1
								    : exec_job_say_kept(&j, err);
	if (j.gap)
		fputs("lodge: the beginning is not kept any more\n", stderr);
	return 0;
}

static const struct cli_option logs_options[] = {
	{ "follow", 'f', NULL, ask_follow, "go on until it ends" },
	{ "json", 0, NULL, ask_json, "one JSON object: its record, with the output" },
	WHERE_OPT_TABLE,
	{ NULL },
};

int cmd_logs(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge logs",
			 .usage = "[-f] [--json] SESSION [EXEC]",
			 .summary = "Shows what a command wrote; without EXEC the newest.",
			 .opts = logs_options },
		.least = 1,
		.most = 2,
		.run = run_logs,
	};

	return api_cmd_main(&command, argc, argv);
}

/* ---- attach ---------------------------------------------------------------------------------- */

/* A terminal can be resized, nothing else can. */
static int run_attach(struct api_cmd *a, struct err *err)
{
	static struct exec_job j; /* threads have it to the end */

	if (take_job(a, "running", &j, err) < 0)
		return -1;
	if (exec_job_resize(&j))
		return tty_session_job(&j, false, err);
	a->threads = true;
	if (exec_job_catch(&j, err) < 0 || (!isatty(STDIN_FILENO) && exec_job_feed(&j, err) < 0) ||
	    exec_job_follow(&j, true, err) < 0)
		return -1;
	exec_job_remark(&j);
	return exec_job_status(j.end);
}

static const struct cli_option attach_options[] = {
	WHERE_OPT_TABLE,
	{ NULL },
};

int cmd_attach(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge attach",
			 .usage = "SESSION [EXEC]",
			 .summary = "Follows a command that runs, without EXEC the newest of them.",
			 .opts = attach_options,
			 .more = "A command with a terminal gets this one; " SCREEN_KEYS
				 " leaves it running. "
				 "Of others the\noutput that is kept is shown from its beginning, "
				 "ctrl-c "
				 "interrupts the command,\ntwice leaves it, and standard input is "
				 "passed on if "
				 "it is no terminal.\nExit status: the command's, as with lodge "
				 "exec.\n" },
		.least = 1,
		.most = 2,
		.failed = CLI_EXIT_FAILED,
		.run = run_attach,
	};

	return api_cmd_main(&command, argc, argv);
}

/* ---- kill ------------------------------------------------------------------------------------ */

/* Without a signal everything it started ends with it. */
static int run_kill(struct api_cmd *a, struct err *err)
{
	auto_json json_t *record = NULL;
	struct exec_job j = { 0 };
	char path[JOB_PATH];

	if (take_job(a, NULL, &j, err) < 0 ||
	    (a->signal && exec_job_signal(&j, a->signal, err) < 0))
		return -1;
	if (!a->signal && (exec_job_path(&j, "", path, err) < 0 ||
			   client_call(j.client, "DELETE", path, NULL, NULL, err) < 0))
		return -1;
	if (!a->json)
		return 0;
	return exec_job_look(&j, &record, err) < 0 ? -1 : api_cmd_write_json(record, err);
}

static const struct cli_option kill_options[] = {
	{ "signal", 's', "SIGNAL", ask_signal, "send this one to its processes: TERM, SIGINT, 15" },
	{ "json", 0, NULL, ask_json, "its record afterwards, as JSON" },
	WHERE_OPT_TABLE,
	{ NULL },
};

int cmd_kill(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge kill",
			 .usage = "[-s SIGNAL] [--json] SESSION EXEC",
			 .summary =
				 "Ends a command with everything it started, or sends it a signal.",
			 .opts = kill_options },
		.least = 2,
		.most = 2,
		.prompt = true,
		.run = run_kill,
	};

	return api_cmd_main(&command, argc, argv);
}
