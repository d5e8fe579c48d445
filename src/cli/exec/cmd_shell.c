/* SPDX-License-Identifier: Apache-2.0 */
/* lodge shell: a shell in a session. It keeps running when the user detaches. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/one_line.h"
#include "cli/core/api_cmd.h"
#include "cli/core/ignored_options.h"
#include "cli/exec/tty_session.h"

struct enter_opts {
	struct api_cmd a;
	const char *template, *workdir;
	struct session_limits limits;
	bool fresh, no_keys;
};

/* ---- the session ----------------------------------------------------------------------------- */

static const char *own_name(void)
{
	const struct passwd *p = getpwuid(getuid());
	const char *user = getenv("USER");

	return p ? p->pw_name : user && *user ? user : "me";
}

/* The cause may quote a guest, so it is printed as one line. */
static void print_outcome(const struct api_cmd *a, const char *name, const char *outcome, bool lost,
			  const char *cause)
{
	char why[256];

	one_line_print(cause, why, sizeof(why));
	if (lost)
		fprintf(stderr, "lodge: %s was recreated; its earlier files were lost%s%s\n", name,
			*why ? ": " : "", why);
	else if (a->quiet)
		return;
	else if (strcmp(outcome, "created") == 0)
		fprintf(stderr, "lodge: created %s\n", name);
	else if (strcmp(outcome, "resumed") == 0)
		fprintf(stderr, "lodge: resumed %s: it kept its files, but not its processes\n",
			name);
}

/* Creates the session of a key if needed; never that of an id. */
static int get_session(struct api_cmd *a, const char *ref, struct err *err)
{
	auto_json json_t *body = json_object(), *entered = NULL;

	if (api_cmd_fill(a, body, err) < 0)
		return -1;
	if (target_is_id(ref))
		return json_object_size(body)
			       ? api_cmd_misuse(a, err,
						"%.160s: --template and limits apply only to a new "
						"session",
						ref)
			       : 0;
	if (api_cmd_check_key(a, "SESSION", ref + 4, err) < 0 ||
	    api_cmd_put(a, body, "key", "SESSION", ref + 4, err) < 0 ||
	    client_call(a->client, "POST", "/v1/sessions", body, &entered, err) < 0)
		return -1;
	ignored_options_warn(a, ref + 4, entered);
	print_outcome(a, ref + 4, member_text(entered, "outcome"),
		      member_true(entered, "state_lost"), member_text(entered, "cause.text"));
	return 0;
}

/* ---- the shell ------------------------------------------------------------------------------- */

static bool is_shell(const json_t *x)
{
	const json_t *c = json_object_get(x, "command");

	return member_is(x, "state", "running") && json_array_size(c) == 2 &&
	       member_is(json_array_get(c, 0), "", "bash") &&
	       member_is(json_array_get(c, 1), "", "-l");
}

/* The newest shell with a terminal: only that can be resized. */
static int find_shell(struct exec_job *j, struct err *err)
{
	auto_json json_t *all = NULL;
	struct exec_job shell = *j;
	json_t *x;
	size_t i;

	if (exec_job_list(j, &all, err) < 0)
		return -1;
	json_array_foreach (all, i, x) {
		if (!is_shell(x))
			continue;
		snprintf(shell.id, sizeof(shell.id), "%s", member_text(x, "exec_id"));
		if (exec_job_resize(&shell))
			*j = shell;
	}
	return 0;
}

static int start_command(struct api_cmd *a, struct exec_job *j, char **words, struct err *err)
{
	auto_json json_t *body = json_pack("{s:o, s:i}", "pty", exec_job_size(), "timeout_ms", 0);

	if (!body)
		return err_sys(err, ENOMEM, "command");
	if (api_cmd_put(a, body, "cwd", "--workdir", ((struct enter_opts *)a)->workdir, err) < 0 ||
	    exec_job_put_words(a, body, words, err) < 0)
		return -1;
	return exec_job_start(j, body, NULL, err);
}

/* Chooses the command to connect to: COMMAND, a running shell, or a new one. */
static int choose_command(struct api_cmd *a, struct tty_session *s, char **words,
			  char query[API_PATH], struct err *err)
{
	const struct enter_opts *o = (struct enter_opts *)a;

	if (words) {
		s->from_start = true;
		return start_command(a, s->job, words, err);
	}
	if (o->workdir) {
		s->query = query;
		return client_path(query, API_PATH, err, "&cwd=%s", o->workdir);
	}
	return o->fresh ? 0 : find_shell(s->job, err);
}

static void print_keys(const struct api_cmd *a, const struct tty_session *s, bool back)
{
	const char *outcome = client_ws_header(s->ws, "Lodge-Outcome") ?: "";

	if (a->quiet)
		return;
	print_outcome(a, s->job->ref, outcome, strcmp(outcome, "replaced") == 0, "");
	if (isatty(STDIN_FILENO) && !s->no_keys)
		fprintf(stderr, "lodge: %s" TTY_DETACH_KEYS " detaches and leaves it running\n",
			back ? "reconnected to the shell; " : "");
}

static int run(struct api_cmd *a, struct err *err)
{
	struct exec_job j = { .client = a->client };
	auto_fini(tty_session_fini) struct tty_session s = {
		.job = &j, .no_keys = ((struct enter_opts *)a)->no_keys
	};
	char query[API_PATH];
	bool back;
	char **words = a->argv[a->argc] ? a->argv + a->argc + 1 : NULL; /* after -- */
	int status;

	words = words && *words ? words : NULL;
	if (target_ref(a->argc ? a->argv[0] : own_name(), j.ref, err) < 0 ||
	    get_session(a, j.ref, err) < 0 || choose_command(a, &s, words, query, err) < 0)
		return -1;
	back = *j.id && !words;
	if (tty_session_open(&s, err) < 0)
		return -1;
	print_keys(a, &s, back);
	status = tty_session_run(&s, err);
	if (s.detached)
		fprintf(stderr,
			"\r\nlodge: detached; it keeps running (reconnect: lodge %s %s%s%s)\n",
			words ? "attach" : "shell", j.ref + (j.ref[0] == 'k' ? 4 : 0),
			words ? " " : "", words ? j.id : "");
	return status;
}

static const struct cli_option options[] = {
	CLI_SECTION("Shell"),
	{ "workdir", 'w', "DIR", CLI_TEXT, offsetof(struct enter_opts, workdir),
	  "start COMMAND or a new shell in this directory" },
	{ "new", 0, NULL, CLI_FLAG, offsetof(struct enter_opts, fresh),
	  "start a new shell even if one is running" },
	{ "no-detach-keys", 0, NULL, CLI_FLAG, offsetof(struct enter_opts, no_keys),
	  "send every key to the shell" },
	OPTION_QUIET("print only errors"),
	CLI_SECTION("New session"),
	{ "template", 0, "NAME", CLI_TEXT, offsetof(struct enter_opts, template),
	  "template to start from (host)", "template" },
	CLI_INCLUDE(session_limit_options, offsetof(struct enter_opts, limits)),
	CLI_INCLUDE(target_options, 0),
	{ NULL },
};

const struct command cmd_shell = {
	.name = "shell",
	.usage = "[OPTION...] [SESSION] [-- COMMAND [ARG...]]",
	.summary = "open a shell in a session, creating it if needed",
	.about = "SESSION is a key (alice) or an id (ses_...); the default is your user name. A\n"
		 "hibernated session is resumed first.\n",
	.options = options,
	.more = "Press " TTY_DETACH_KEYS
		" to detach and leave the shell running; `lodge shell` reconnects to it.\n"
		"Press ctrl-] twice to send one ctrl-].\n\n"
		"Exit status\n"
		"  the shell's own, or 128+N if signal N killed it\n"
		"  0    detached\n"
		"  125  lodge failed\n",
	.size = sizeof(struct enter_opts),
	.most = 1,
	.failed = CLI_EXIT_FAILED,
	.keeps_dashes = true,
	.run = run,
};
