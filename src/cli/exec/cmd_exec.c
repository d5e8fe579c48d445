/* SPDX-License-Identifier: Apache-2.0 */
/* lodge exec: a command in a session, as if it ran here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/core/commands.h"
#include "cli/exec/tty_session.h"
#include "cli/core/terminal.h"

/* ---- what is wanted -------------------------------------------------------------------------- */

/* Of a terminal only when asked for: the reader may be the shell that started us. */
static bool wants_stdin(const struct api_cmd *a)
{
	return a->interactive || (!a->detach && !isatty(STDIN_FILENO) && !terminal_no_input());
}

static int fill_body(struct api_cmd *a, json_t *body, struct err *err)
{
	if (api_cmd_put(body, "command", a->script) < 0 ||
	    api_cmd_put(body, "cwd", a->workdir) < 0 || api_cmd_put(body, "user", a->user) < 0)
		return api_cmd_wrong(a, err, "an option is no text (UTF-8)");
	if (json_object_set_new(body, "stdin_open", json_boolean(a->tty || wants_stdin(a))) < 0 ||
	    (a->env && json_object_set(body, "env", a->env) < 0) ||
	    (a->tty && json_object_set_new(body, "pty", exec_job_size()) < 0))
		return err_sys(err, ENOMEM, "command");
	if (!a->script && exec_job_put_words(a, body, a->argv + 1, err) < 0)
		return -1;
	return api_cmd_put_ms(a, body, "timeout_ms", "--timeout", a->timeout ? a->timeout : "0",
			      err);
}

/* ---- the three ways -------------------------------------------------------------------------- */

static int leave_it(struct api_cmd *a, struct exec_job *j, json_t *body, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (exec_job_start(j, body, &answer, err) < 0)
		return -1;
	if (a->json)
		return api_cmd_write_json(answer, err);
	api_cmd_print("%s", j->id);
	return 0;
}

static int on_terminal(struct exec_job *j, json_t *body, struct err *err)
{
	return exec_job_start(j, body, NULL, err) < 0 ? -1 : tty_session_job(j, true, err);
}

static int on_start(struct exec_job *j, void *arg, struct err *err)
{
	struct api_cmd *a = arg;

	a->threads = true;
	if (exec_job_catch(j, err) < 0)
		return -1;
	return wants_stdin(a) ? exec_job_feed(j, err) : 0;
}

static const char *program(const struct api_cmd *a)
{
	return a->argc > 1 ? a->argv[1] : NULL;
}

/* Of a program that is not there nobody else says so. */
static void say_missing(const struct api_cmd *a, const struct exec_job *j, int status)
{
	if (!program(a) || j->at[JOB_OUT] || j->at[JOB_ERR])
		return;
	if (status == CLI_EXIT_NOT_FOUND)
		fprintf(stderr, "lodge: %s: exit status 127, as of a program that is not there\n",
			program(a));
	if (status == CLI_EXIT_NOT_EXECUTABLE)
		fprintf(stderr, "lodge: %s: exit status 126, as of what cannot be executed\n",
			program(a));
}

static int in_front(struct api_cmd *a, struct exec_job *j, json_t *body, struct err *err)
{
	int status;

	j->keep = a->json;
	j->timeout_ms = (uint32_t)api_cmd_number(body, "timeout_ms");
	if (exec_job_stream(j, body, on_start, a, err) < 0)
		return -1;
	status = exec_job_status(j->end);
	if (a->json)
		return exec_job_say_kept(j, err) < 0 ? -1 : status;
	exec_job_remark(j);
	say_missing(a, j, status);
	return status;
}

/* lodged puts the command's name first when it cannot be started. */
static int failure_status(const struct api_cmd *a, const struct err *err)
{
	size_t n = program(a) ? strlen(program(a)) : 0;

	if (!n || strncmp(err->msg, program(a), n) != 0 || err->msg[n] != ':' ||
	    (err->code != ERR_INVALID && err->code != ERR_DENIED))
		return CLI_EXIT_FAILED;
	return strstr(err->msg + n, "not found") || strstr(err->msg + n, "No such file")
		       ? CLI_EXIT_NOT_FOUND
		       : CLI_EXIT_NOT_EXECUTABLE;
}

static int run(struct api_cmd *a, struct err *err)
{
	static struct exec_job j; /* threads have it to the end */
	auto_json json_t *body = json_object();
	int status;

	j.client = a->client;
	if (target_ref(a->argv[0], j.ref, err) < 0 || fill_body(a, body, err) < 0)
		return -1;
	status = a->detach ? leave_it(a, &j, body, err)
		 : a->tty  ? on_terminal(&j, body, err)
			   : in_front(a, &j, body, err);
	if (status < 0)
		a->failed = failure_status(a, err);
	return status;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct cli_option options[] = {
	{ "command", 'c', "TEXT", ask_script, "bash text to run instead of COMMAND" },
	{ "workdir", 'w', "PATH", ask_workdir, "working directory inside" },
	{ "env", 0, "NAME=VALUE", ask_env, "set a variable; may be repeated" },
	{ "user", 0, "USER", ask_user, "run as this user inside: name or uid[:gid]" },
	{ "timeout", 0, "TIME", ask_timeout,
	  "end everything after 30s, 500ms, 2h (default: never)" },
	{ "tty", 't', NULL, ask_tty, "give it a terminal" },
	{ "interactive", 'i', NULL, ask_interactive, "pass stdin on even from a terminal" },
	{ "detach", 'd', NULL, ask_detach, "do not wait: say its id, and leave it running" },
	{ "json", 0, NULL, ask_json, "one JSON object instead of the output" },
	WHERE_OPT_TABLE,
	{ NULL },
};

static int check(struct api_cmd *a, struct err *err);

static const struct api_cmd_command command = {
	.opt = { .name = "lodge exec",
		 .usage = "[OPTION...] SESSION [--] COMMAND [ARGUMENT...]\n"
			  "       lodge exec [OPTION...] SESSION -c TEXT",
		 .summary = "Runs a command in a session, which is resumed if it sleeps.",
		 .opts = options,
		 .more = "SESSION is a key, or an id (ses_...). ctrl-c interrupts the command; "
			 "twice leaves it.\n"
			 "Exit status: the command's; 128+N when killed by signal N; 124 after "
			 "--timeout;\n"
			 "125 when lodge failed; 126 COMMAND cannot be executed; 127 it is not "
			 "there.\n",
		 .stops_at_operand = true },
	.least = 1,
	.most = -1,
	.failed = CLI_EXIT_FAILED,
	.misused = CLI_EXIT_FAILED,
	.new_helps = true,
	.check = check,
	.run = run,
};

/* Options may also come between the session and the command. */
static int check(struct api_cmd *a, struct err *err)
{
	char *session = a->argv[0];
	int first, n = cli_option_parse(&command.opt, a->argc, a->argv, a, &first, err);

	if (n)
		return n;
	a->argc -= first - 1;
	a->argv += first - 1;
	a->argv[0] = session;
	if (!a->script && a->argc == 1)
		return err_set(err, ERR_INVALID, "exec: no command (try lodge exec --help)");
	if (a->script && a->argc > 1)
		return err_set(err, ERR_INVALID, "exec: either -c or a command");
	return 0;
}

int cmd_exec(int argc, char **argv)
{
	return api_cmd_main(&command, argc, argv);
}
