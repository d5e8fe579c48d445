/* SPDX-License-Identifier: Apache-2.0 */
/* lodge exec: a command in a session, as if it ran here. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/size.h"
#include "cli/cmd.h"
#include "cli/screen.h"
#include "cli/term.h"

enum { DEV_NULL_MAJOR = 1, DEV_NULL_MINOR = 3 };

DEFINE_AUTO(struct client *, client_free);
DEFINE_AUTO(struct screen *, screen_fini);
DEFINE_AUTO(struct job *, job_fini);

struct opts {
	json_t *body;
	const char *text, *program;
	bool tty, interactive, detach, json;
};

/* ---- options --------------------------------------------------------------------------------- */

static int put(struct opts *o, const char *field, const char *name, json_t *value, struct err *err)
{
	return json_object_set_new(o->body, field, value) < 0
		       ? err_set(err, ERR_INVALID, "%s: not UTF-8", name)
		       : 0;
}

static int set_cwd(void *ctx, const char *name, const char *value, struct err *err)
{
	return put(ctx, "cwd", name, json_string(value), err);
}

static int set_user(void *ctx, const char *name, const char *value, struct err *err)
{
	return put(ctx, "user", name, json_string(value), err);
}

static int set_text(void *ctx, const char *name, const char *value, struct err *err)
{
	((struct opts *)ctx)->text = value;
	return put(ctx, "command", name, json_string(value), err);
}

static int set_timeout(void *ctx, const char *name, const char *value, struct err *err)
{
	uint64_t ms;

	if (size_parse_ms(name, value, &ms, err) < 0)
		return -1;
	if (ms > UINT32_MAX)
		return err_set(err, ERR_INVALID, "%s: \"%.20s\" is longer than 49 days", name,
			       value);
	return put(ctx, "timeout_ms", name, json_integer((json_int_t)ms), err);
}

/* NAME=VALUE */
static int set_env(void *ctx, const char *name, const char *value, struct err *err)
{
	struct opts *o = ctx;
	const char *eq = strchr(value, '=');
	json_t *env = json_object_get(o->body, "env");

	if (!eq || eq == value)
		return err_set(err, ERR_INVALID, "%s: \"%.60s\" is not NAME=VALUE", name, value);
	if (!env) {
		env = json_object();
		if (put(o, "env", name, env, err) < 0)
			return -1;
	}
	return json_object_setn_new(env, value, (size_t)(eq - value), json_string(eq + 1)) < 0
		       ? err_set(err, ERR_INVALID, "%s: not UTF-8", name)
		       : 0;
}

OPT_FLAG(tty)
OPT_FLAG(interactive)
OPT_FLAG(detach)
OPT_FLAG(json)

static const struct opt options[] = {
	{ "command", 'c', "TEXT", set_text, "bash text to run instead of COMMAND" },
	{ "cwd", 0, "PATH", set_cwd, "working directory inside" },
	{ "env", 0, "NAME=VALUE", set_env, "set a variable; may be repeated" },
	{ "user", 0, "USER", set_user, "run as this user inside: name or uid[:gid]" },
	{ "timeout", 0, "TIME", set_timeout,
	  "end everything after 30s, 500ms, 2h (default: never)" },
	{ "tty", 't', NULL, set_tty, "give it a terminal" },
	{ "interactive", 'i', NULL, set_interactive, "pass stdin on even from a terminal" },
	{ "detach", 'd', NULL, set_detach, "do not wait: say its id, and leave it running" },
	{ "json", 0, NULL, set_json, "one JSON object instead of the output" },
	WHERE_OPT_TABLE,
	{ NULL },
};

static const struct opt_command command = {
	.name = "lodge exec",
	.usage = "[OPTION...] SESSION [--] COMMAND [ARGUMENT...]\n"
		 "       lodge exec [OPTION...] SESSION -c TEXT",
	.summary = "Runs a command in a session, which is resumed if it sleeps.",
	.opts = options,
	.more = "SESSION is a key, or an id (ses_...). ctrl-c interrupts the command; twice leaves "
		"it.\n"
		"Exit status: the command's; 128+N when killed by signal N; 124 after --timeout;\n"
		"125 when lodge failed; 126 COMMAND cannot be executed; 127 it is not there.\n",
	.stops_at_operand = true,
};

/* ---- what is wanted -------------------------------------------------------------------------- */

static int take_argv(struct opts *o, char **words, int n, struct err *err)
{
	json_t *argv;

	if (!n)
		return o->text ? 0
			       : err_set(err, ERR_INVALID,
					 "exec: no command (try lodge exec --help)");
	if (o->text)
		return err_set(err, ERR_INVALID, "exec: either -c or a command");
	o->program = words[0];
	argv = json_array();
	if (put(o, "argv", "command", argv, err) < 0)
		return -1;
	for (int i = 0; i < n; i++)
		if (json_array_append_new(argv, json_string(words[i])) < 0)
			return err_set(err, ERR_INVALID, "\"%.60s\" is not UTF-8", words[i]);
	return 0;
}

/* Options may also come between the session and the command. */
static int take_words(struct opts *o, int argc, char **argv, const char **ret_session,
		      struct err *err)
{
	int first, n = opt_parse(&command, argc, argv, o, &first, err);

	if (n)
		return n;
	if (first == argc)
		return err_set(err, ERR_INVALID, "exec: no session (try lodge exec --help)");
	*ret_session = argv[first];
	argc -= first;
	argv += first;
	n = opt_parse(&command, argc, argv, o, &first, err);
	if (n)
		return n;
	return take_argv(o, argv + first, argc - first, err);
}

/* Of a terminal only when asked for: the reader may be the shell that started us. */
static bool wants_stdin(const struct opts *o)
{
	struct stat st;

	if (o->interactive)
		return true;
	return !o->detach && !isatty(STDIN_FILENO) && fstat(STDIN_FILENO, &st) == 0 &&
	       !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(DEV_NULL_MAJOR, DEV_NULL_MINOR));
}

static int fill_body(const struct opts *o, struct err *err)
{
	uint32_t rows, cols;

	term_size(&rows, &cols);
	if (json_object_set_new(o->body, "stdin_open", json_boolean(o->tty || wants_stdin(o))) <
		    0 ||
	    (!json_object_get(o->body, "timeout_ms") &&
	     json_object_set_new(o->body, "timeout_ms", json_integer(0)) < 0) ||
	    (o->tty && json_object_set_new(o->body, "pty",
					   json_pack("{s:I, s:I}", "rows", (json_int_t)rows, "cols",
						     (json_int_t)cols)) < 0))
		return err_sys(err, ENOMEM, "command");
	return 0;
}

/* ---- the three ways -------------------------------------------------------------------------- */

static int leave_it(const struct opts *o, struct job *j, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (job_start(j, o->body, &answer, err) < 0)
		return -1;
	if (o->json)
		return job_say(answer, err);
	puts(j->id);
	return fflush(stdout) == 0 ? 0 : err_sys(err, errno, "standard output");
}

static int on_terminal(const struct opts *o, struct job *j, struct err *err)
{
	struct screen s = { .client = j->client, .ref = j->ref, .from_start = true, .signals = -1 };
	auto_call(screen_fini) struct screen *guard = &s;
	enum screen_end end = SCREEN_EXIT;
	char outcome[32];
	int status = 0;

	(void)guard;
	if (job_start(j, o->body, NULL, err) < 0)
		return -1;
	memcpy(s.id, j->id, sizeof(s.id));
	if (screen_open(&s, outcome, err) < 0 || screen_run(&s, &end, &status, err) < 0)
		return -1;
	if (end != SCREEN_EXIT)
		fprintf(stderr, "\r\nlodge: left; it goes on (lodge attach %s %s)\n", j->ref,
			j->id);
	return status;
}

static int on_start(struct job *j, void *arg, struct err *err)
{
	const struct opts *o = arg;

	if (job_catch(j, err) < 0)
		return -1;
	return wants_stdin(o) ? job_feed(j, err) : 0;
}

/* Of a program that is not there nobody else says so. */
static void say_missing(const struct opts *o, const struct job *j, int status)
{
	if (!o->program || j->at[JOB_OUT] || j->at[JOB_ERR])
		return;
	if (status == OPT_EXIT_NOT_FOUND)
		fprintf(stderr, "lodge: %s: exit status 127, as of a program that is not there\n",
			o->program);
	if (status == OPT_EXIT_NOT_EXECUTABLE)
		fprintf(stderr, "lodge: %s: exit status 126, as of what cannot be executed\n",
			o->program);
}

static int in_front(struct opts *o, struct job *j, struct err *err)
{
	int status;

	j->keep = o->json;
	if (job_stream(j, o->body, on_start, o, err) < 0)
		return -1;
	status = job_status(j->end);
	if (o->json)
		return job_say_kept(j, err) < 0 ? -1 : status;
	job_remark(j);
	say_missing(o, j, status);
	return status;
}

/* lodged puts the command's name first when it cannot be started. */
static int failure_status(const struct opts *o, const struct err *err)
{
	size_t n = o->program ? strlen(o->program) : 0;

	if (!n || strncmp(err->msg, o->program, n) != 0 || err->msg[n] != ':' ||
	    (err->code != ERR_INVALID && err->code != ERR_DENIED))
		return OPT_EXIT_FAILED;
	return strstr(err->msg + n, "not found") || strstr(err->msg + n, "No such file")
		       ? OPT_EXIT_NOT_FOUND
		       : OPT_EXIT_NOT_EXECUTABLE;
}

static int run(struct opts *o, const char *session, struct err *err)
{
	auto_call(client_free) struct client *c = NULL;
	struct job j = { 0 };
	auto_call(job_fini) struct job *guard = &j;
	int status;

	(void)guard;
	if (where_ref(session, j.ref, err) < 0 || where_client(&c, err) < 0 ||
	    fill_body(o, err) < 0)
		return -1;
	j.client = c;
	if (o->detach)
		return leave_it(o, &j, err);
	if (o->tty)
		return on_terminal(o, &j, err);
	status = in_front(o, &j, err);
	if (status < 0)
		status = opt_fail(failure_status(o, err), err);
	/* the threads of input and signals may be at work with all of this */
	fflush(stdout);
	_exit(status);
}

int cmd_exec(int argc, char **argv)
{
	struct opts o = { .body = json_object() };
	struct err err = { 0 };
	const char *session = NULL;
	int n = take_words(&o, argc, argv, &session, &err);

	if (n < 0)
		n = opt_fail(OPT_EXIT_FAILED, &err);
	else if (n > 0)
		n = 0;
	else if ((n = run(&o, session, &err)) < 0)
		n = opt_fail(failure_status(&o, &err), &err);
	json_decref(o.body);
	return n;
}
