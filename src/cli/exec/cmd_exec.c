/* SPDX-License-Identifier: Apache-2.0 */
/* lodge exec: a command in a session, as if it ran here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/core/terminal.h"
#include "cli/exec/exec_job_output.h"
#include "cli/exec/tty_session.h"

struct exec_opts {
	struct api_cmd a;
	const char *script, *workdir, *user, *timeout;
	json_t *env; /* NULL: none */
	bool tty, interactive, detach;
};

/* ---- the request ----------------------------------------------------------------------------- */

/* A terminal is read only with -i: it may belong to the shell that started lodge. */
static bool sends_stdin(const struct exec_opts *o)
{
	return o->interactive || (!o->detach && !isatty(STDIN_FILENO) && !terminal_no_input());
}

static int fill_body(struct exec_opts *o, json_t *body, struct err *err)
{
	if (!o->timeout)
		o->timeout = "0";
	if (api_cmd_fill(&o->a, body, err) < 0)
		return -1;
	if (json_object_set_new(body, "stdin_open", json_boolean(o->tty || sends_stdin(o))) < 0 ||
	    (o->env && json_object_set(body, "env", o->env) < 0) ||
	    (o->tty && json_object_set_new(body, "pty", exec_job_size()) < 0))
		return err_sys(err, ENOMEM, "command");
	return o->script ? 0 : exec_job_put_words(&o->a, body, o->a.argv + 1, err);
}

/* ---- running --------------------------------------------------------------------------------- */

static const char *program(const struct api_cmd *a)
{
	return a->argc > 1 ? a->argv[1] : NULL;
}

static bool is_of_program(const struct api_cmd *a, int status)
{
	return program(a) && (status == CLI_EXIT_NOT_FOUND || status == CLI_EXIT_NOT_EXECUTABLE);
}

/* A status of 126 or 127 without any output usually comes from a missing program. */
static void explain_status(const struct api_cmd *a, const struct exec_job *j, int status)
{
	if (is_of_program(a, status) && !j->at[JOB_OUT] && !j->at[JOB_ERR])
		fprintf(stderr, "lodge: %s: exit status %d (%s?)\n", program(a), status,
			status == CLI_EXIT_NOT_FOUND ? "command not found" : "not executable");
}

/* One word that no program was found for, but a shell would understand, is a script. */
static void hint_script(const struct api_cmd *a, int status)
{
	if (is_of_program(a, status) && a->argc == 2 && strpbrk(program(a), CLI_SHELL_CHARS))
		fprintf(stderr, "lodge: to run it as a script: lodge exec %s -c SCRIPT\n",
			a->argv[0]);
}

/* A program that could not be executed has ended by now. */
static int detached_status(const struct api_cmd *a, struct exec_job *j, struct err *err)
{
	auto_json json_t *record = NULL;
	int status;

	if (exec_job_get(j, &record, err) < 0)
		return -1;
	status = exec_job_status(record);
	if (!is_of_program(a, status))
		return 0;
	explain_status(a, j, status);
	hint_script(a, status);
	return status;
}

static int run_detached(struct api_cmd *a, struct exec_job *j, json_t *body, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (exec_job_start(j, body, &answer, err) < 0)
		return -1;
	if (!a->json)
		api_cmd_print("%s", j->id);
	else if (api_cmd_write_json(answer, err) < 0)
		return -1;
	return strcmp(member_text(answer, "state"), "exited") ? 0 : detached_status(a, j, err);
}

static int run_attached(struct api_cmd *a, struct exec_job *j, json_t *body, struct err *err)
{
	int status;

	a->threads = true;
	j->keep = a->json;
	j->timeout_ms = (uint32_t)member_number(body, "timeout_ms");
	if (exec_job_stream(j, body, sends_stdin((struct exec_opts *)a), err) < 0)
		return -1;
	status = exec_job_status(j->end);
	if (a->json)
		return exec_job_write_json(j, err) < 0 ? -1 : status;
	exec_job_explain(j);
	explain_status(a, j, status);
	hint_script(a, status);
	return status;
}

static int run(struct api_cmd *a, struct err *err)
{
	static struct exec_job j; /* threads use it until the process exits */
	struct exec_opts *o = (struct exec_opts *)a;
	auto_json json_t *body = json_object();

	j.client = a->client;
	if (target_ref(a->argv[0], j.ref, err) < 0 || fill_body(o, body, err) < 0)
		return -1;
	if (o->detach)
		return run_detached(a, &j, body, err);
	if (!o->tty)
		return run_attached(a, &j, body, err);
	return exec_job_start(&j, body, NULL, err) < 0 ? -1 : tty_session_job(&j, true, err);
}

static int set_env(void *at, const char *name, const char *value, struct err *err)
{
	json_t **env = at;
	const char *eq = strchr(value, '=');

	if (!eq || eq == value)
		return err_set(err, ERR_INVALID, "%s %.60s: must be NAME=VALUE", name, value);
	if (!*env)
		*env = json_object();
	return json_object_setn_new(*env, value, (size_t)(eq - value), json_string(eq + 1)) < 0
		       ? err_set(err, ERR_INVALID, "%s: value is not valid UTF-8", name)
		       : 0;
}

static void fini(struct api_cmd *a)
{
	json_decref(((struct exec_opts *)a)->env);
}

/* Options may also stand between the session and the command. */
static int check(struct api_cmd *a, struct err *err)
{
	const struct exec_opts *o = (struct exec_opts *)a;
	char *session = a->argv[0];
	int first, n = cli_option_parse(a->cmd, a->argc, a->argv, a, &first, err);

	if (n)
		return n;
	a->argc -= first - 1;
	a->argv += first - 1;
	a->argv[0] = session;
	if (!o->script && a->argc == 1)
		return err_set(err, ERR_INVALID,
			       "exec: COMMAND is missing (try lodge exec --help)");
	if (o->script && a->argc > 1)
		return err_set(err, ERR_INVALID, "exec: use either -c or COMMAND, not both");
	return 0;
}

static const struct cli_option options[] = {
	CLI_SECTION("Command"),
	{ "command", 'c', "SCRIPT", CLI_ANY, offsetof(struct exec_opts, script),
	  "run a bash script", "command" },
	{ "workdir", 'w', "DIR", CLI_TEXT, offsetof(struct exec_opts, workdir),
	  "working directory in the sandbox", "cwd" },
	{ "env", 'e', "NAME=VALUE", CLI_SET, offsetof(struct exec_opts, env),
	  "set a variable (repeatable)", .set = set_env },
	{ "user", 'u', "USER", CLI_TEXT, offsetof(struct exec_opts, user),
	  "user in the sandbox: name, uid[:gid]", "user" },
	{ "timeout", 0, "TIME", CLI_MS, offsetof(struct exec_opts, timeout),
	  "kill it after TIME, as 30s (never)", "timeout_ms" },
	CLI_SECTION("Input and output"),
	{ "interactive", 'i', NULL, CLI_FLAG, offsetof(struct exec_opts, interactive),
	  "send input even from a terminal" },
	{ "tty", 't', NULL, CLI_FLAG, offsetof(struct exec_opts, tty), "allocate a terminal" },
	{ "detach", 'd', NULL, CLI_FLAG, offsetof(struct exec_opts, detach),
	  "print its id and return at once" },
	OPTION_JSON("print output and result as JSON"),
	CLI_INCLUDE(target_options, 0),
	{ NULL },
};

const struct command cmd_exec = {
	.name = "exec",
	.usage = "[OPTION...] SESSION [--] COMMAND [ARG...]\n"
		 "       lodge exec [OPTION...] SESSION -c SCRIPT",
	.summary = "run a command in a session",
	.about = "A hibernated session is resumed first. SESSION is a key (alice) or an id\n"
		 "(ses_..., sbx_...).\n",
	.options = options,
	.more = "Ctrl-C interrupts the command. A second Ctrl-C detaches from it and leaves it\n"
		"running.\n\n"
		"Examples\n"
		"  lodge exec build -- make -j4\n"
		"  lodge exec build -c 'make test 2>&1 | tail'\n"
		"  tar c src | lodge exec build -- tar x\n\n"
		"Exit status\n"
		"  the command's own, or 128+N if signal N killed it\n"
		"  2    wrong usage\n"
		"  124  --timeout expired\n"
		"  125  lodge failed\n"
		"  126  COMMAND is not executable\n"
		"  127  COMMAND was not found\n",
	.size = sizeof(struct exec_opts),
	.least = 1,
	.most = -1,
	.failed = CLI_EXIT_FAILED,
	.stops_at_operand = true,
	.new_helps = true,
	.check = check,
	.run = run,
	.fini = fini,
};
