/* SPDX-License-Identifier: Apache-2.0 */
/* lodge enter: a shell in a session, that stays there when one leaves. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/one_line.h"
#include "cli/core/commands.h"
#include "cli/exec/tty_session.h"

/* ---- the session ----------------------------------------------------------------------------- */

static const char *own_name(void)
{
	const struct passwd *p = getpwuid(getuid());
	const char *user = getenv("USER");

	return p ? p->pw_name : user && *user ? user : "me";
}

/* In one line, and only what is worth it. The reason may be anybody's words. */
static void say_entered(const struct api_cmd *a, const char *key, const json_t *e)
{
	char why[256];

	one_line_print(api_cmd_text(e, "cause.text"), why, sizeof(why));
	if (json_is_true(json_object_get(e, "state_lost")))
		fprintf(stderr, "lodge: %s began anew, its earlier files are gone%s%s\n", key,
			*why ? ": " : "", why);
	else if (a->quiet)
		return;
	else if (api_cmd_is(e, "outcome", "created"))
		fprintf(stderr, "lodge: %s is new\n", key);
	else if (api_cmd_is(e, "outcome", "resumed"))
		fprintf(stderr, "lodge: %s slept; its files are there, its processes are not\n",
			key);
}

/* An id is never made. */
static int get_session(struct api_cmd *a, const char *ref, struct err *err)
{
	auto_json json_t *body = json_object(), *entered = NULL;

	if (api_cmd_put(body, "template", a->template) < 0)
		return api_cmd_wrong(a, err, "--template: no text (UTF-8)");
	if (api_cmd_put_limits(a, body, err) < 0)
		return -1;
	if (strncmp(ref, "ses_", 4) == 0)
		return json_object_size(body)
			       ? api_cmd_wrong(
					 a, err,
					 "%.160s: a session that is there does not change: leave "
					 "the template and limits out",
					 ref)
			       : 0;
	if (api_cmd_check_key(a, "SESSION", ref + 4, err) < 0)
		return -1;
	if (api_cmd_put(body, "key", ref + 4) < 0)
		return api_cmd_wrong(a, err, "the key is not UTF-8");
	if (client_call(a->client, "POST", "/v1/sessions", body, &entered, err) < 0)
		return -1;
	say_entered(a, ref + 4, entered);
	return 0;
}

/* ---- the shell ------------------------------------------------------------------------------- */

static bool is_shell(const json_t *x)
{
	const json_t *c = json_object_get(x, "command");

	return api_cmd_is(x, "state", "running") && json_array_size(c) == 2 &&
	       api_cmd_is(json_array_get(c, 0), "", "bash") &&
	       api_cmd_is(json_array_get(c, 1), "", "-l");
}

/* The newest that was entered and left; only a terminal can be resized. */
static int find_shell(struct api_cmd *a, struct exec_job *j, char ret[JOB_ID], struct err *err)
{
	auto_json json_t *all = NULL;
	json_t *x;
	char path[JOB_PATH];
	size_t i;

	if (client_path(path, sizeof(path), err, "/v1/sessions/%s/execs", j->ref) < 0 ||
	    client_list(a->client, path, "execs", &all, err) < 0)
		return -1;
	json_array_foreach (all, i, x) {
		if (!is_shell(x))
			continue;
		snprintf(j->id, sizeof(j->id), "%s", api_cmd_text(x, "exec_id"));
		if (exec_job_resize(j))
			memcpy(ret, j->id, JOB_ID);
	}
	return 0;
}

static int start_command(struct api_cmd *a, struct exec_job *j, char **words, struct err *err)
{
	auto_json json_t *body = json_pack("{s:o, s:i}", "pty", exec_job_size(), "timeout_ms", 0);

	if (!body)
		return err_sys(err, ENOMEM, "command");
	if (api_cmd_put(body, "cwd", a->workdir) < 0)
		return api_cmd_wrong(a, err, "--workdir: no text (UTF-8)");
	return exec_job_put_words(a, body, words, err) < 0 ? -1
							   : exec_job_start(j, body, NULL, err);
}

/* What the screen is to show: a command, a shell that runs, or a new one where it is wanted. */
static int choose(struct api_cmd *a, struct tty_session *s, char **words, char query[ASK_PATH],
		  struct err *err)
{
	struct exec_job j = { .client = a->client };

	snprintf(j.ref, sizeof(j.ref), "%s", s->ref);
	if (words) {
		if (start_command(a, &j, words, err) < 0)
			return -1;
		memcpy(s->id, j.id, sizeof(s->id));
		s->from_start = true;
		return 0;
	}
	if (a->workdir) {
		s->query = query;
		return client_path(query, ASK_PATH, err, "&cwd=%s", a->workdir);
	}
	return a->fresh ? 0 : find_shell(a, &j, s->id, err);
}

static void say_keys(const struct api_cmd *a, const struct tty_session *s, bool back,
		     const char *outcome)
{
	if (a->quiet)
		return;
	if (strcmp(outcome, "resumed") == 0)
		fprintf(stderr, "lodge: %s slept; its files are there, its processes are not\n",
			s->ref);
	if (strcmp(outcome, "replaced") == 0)
		fprintf(stderr, "lodge: %s began anew, its earlier files are gone\n", s->ref);
	if (isatty(STDIN_FILENO) && !a->no_keys)
		fprintf(stderr, "lodge: %s" SCREEN_KEYS " leaves it running\n",
			back ? "back in the shell; " : "");
}

static int run(struct api_cmd *a, struct err *err)
{
	char ref[WHERE_REF], query[ASK_PATH], outcome[32];
	auto_fini(tty_session_fini) struct tty_session s = {
		.client = a->client, .ref = ref, .no_keys = a->no_keys, .signals = -1
	};
	enum screen_end end = SCREEN_EXIT;
	bool back;
	char **words = a->argv[a->argc] ? a->argv + a->argc + 1 : NULL; /* behind the dashes */
	int status = 0;

	words = words && *words ? words : NULL;
	if (target_ref(a->argc ? a->argv[0] : own_name(), ref, err) < 0 ||
	    get_session(a, ref, err) < 0 || choose(a, &s, words, query, err) < 0)
		return -1;
	back = *s.id && !words;
	if (tty_session_open(&s, outcome, err) < 0)
		return -1;
	say_keys(a, &s, back, outcome);
	if (tty_session_run(&s, &end, &status, err) < 0)
		return -1;
	if (end != SCREEN_EXIT)
		fprintf(stderr, "\r\nlodge: left; it goes on (lodge %s %s%s%s)\n",
			words ? "attach" : "enter", ref + (ref[0] == 'k' ? 4 : 0), words ? " " : "",
			words ? s.id : "");
	return status;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct cli_option options[] = {
	{ "template", 0, "NAME", ask_template, "what a new session starts from (default: host)" },
	LIMIT_OPT_MAIN(ask_memory, ask_cpus, ask_pids, ask_disk),
	{ "workdir", 'w', "PATH", ask_workdir,
	  "working directory of COMMAND, or of another shell" },
	{ "new", 0, NULL, ask_fresh, "another shell, even if one runs" },
	{ "no-detach-keys", 0, NULL, ask_no_keys, "everything typed goes to the shell" },
	{ "quiet", 'q', NULL, ask_quiet, "say nothing but errors" },
	WHERE_OPT_TABLE,
	{ NULL },
};

/* Words behind -- are a command; cli_option_parse() would take the dashes away. */
static int before_dashes(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return i;
	return argc;
}

int cmd_enter(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge enter",
			 .usage = "[OPTION...] [SESSION] [-- COMMAND [ARGUMENT...]]",
			 .summary = "A shell in a session, which is made if it is not there, and "
				    "resumed if it sleeps.",
			 .opts = options,
			 .more = "SESSION is a key, or an id (ses_...); default: your "
				 "name. Limits are those of a\nsession that is made; one that is "
				 "there does not change.\n\n" SCREEN_KEYS
				 " leaves the shell running; entering again comes back to it, with "
				 "the\nlast of its output. ctrl-] twice sends one ctrl-]. Exit "
				 "status: the shell's; 128+N\nwhen killed by signal N; 0 after "
				 "leaving; 125 when lodge failed.\n" },
		.most = 1,
		.failed = CLI_EXIT_FAILED,
		.run = run,
	};

	return api_cmd_main(&command, before_dashes(argc, argv), argv);
}
