/* SPDX-License-Identifier: Apache-2.0 */
/* lodge ps, logs, attach, kill: the commands of a session that were started before. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/plain.h"
#include "cli/cmd.h"
#include "cli/screen.h"
#include "cli/term.h"

enum { NOT_ASKED = -2, EXIT_REFUSED = 1, COMMAND_WIDTH = 256, TIME_TEXT = 32, ID_COLUMN = 26 };

DEFINE_AUTO(struct client *, client_free);
DEFINE_AUTO(struct screen *, screen_fini);
DEFINE_AUTO(struct job *, job_fini);

struct opts {
	bool json, all, follow;
	const char *signal;
};

OPT_FLAG(json)
OPT_FLAG(all)
OPT_FLAG(follow)

static int set_signal(void *ctx, const char *name, const char *value, struct err *err)
{
	((struct opts *)ctx)->signal = value;
	return *value ? 0 : err_set(err, ERR_INVALID, "%s: empty", name);
}

/* ---- what they share ------------------------------------------------------------------------- */

/* One of these commands: SESSION, and mostly EXEC. */
struct verb {
	struct opt_command opt;
	int (*run)(const struct opts *o, struct job *j, struct err *err);
	bool of_session; /* takes no EXEC */
	bool tells_status; /* the exit status is the command's */
	const char *state; /* of the newest, where no EXEC is given; NULL: any; "": it is needed */
};

static const char *text_of(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name)) ?: "";
}

static int list(const struct job *j, json_t **ret, struct err *err)
{
	char path[JOB_PATH];

	if (client_path(path, sizeof(path), err, "/v1/sessions/%s/execs", j->ref) < 0)
		return -1;
	return client_list(j->client, path, "execs", ret, err);
}

static int find_newest(struct job *j, const char *state, struct err *err)
{
	auto_json json_t *all = NULL;
	json_t *x;
	size_t i;

	if (list(j, &all, err) < 0)
		return -1;
	json_array_foreach (all, i, x)
		if (!state || strcmp(text_of(x, "state"), state) == 0)
			snprintf(j->id, sizeof(j->id), "%s", text_of(x, "exec_id"));
	return *j->id ? 0
		      : err_set(err, ERR_NOT_FOUND, "no command of %s %s (lodge ps -a lists them)",
				j->ref, state ? state : "is known");
}

static int take_exec(struct job *j, const struct verb *v, const char *id, struct err *err)
{
	if (v->of_session)
		return 0;
	if (!id)
		return find_newest(j, v->state, err);
	if (snprintf(j->id, sizeof(j->id), "%s", id) >= (int)sizeof(j->id) ||
	    strncmp(id, "exe_", 4) != 0)
		return err_set(err, ERR_INVALID,
			       "\"%.60s\" is no command: their ids begin with exe_ (lodge ps)", id);
	return 0;
}

static int run_verb(const struct verb *v, const struct opts *o, char **words, int n,
		    struct err *err)
{
	auto_call(client_free) struct client *c = NULL;
	struct job j = { 0 };
	auto_call(job_fini) struct job *guard = &j;

	(void)guard;
	if (where_ref(words[0], j.ref, err) < 0 || where_client(&c, err) < 0)
		return NOT_ASKED;
	j.client = c;
	if (take_exec(&j, v, n > 1 ? words[1] : NULL, err) < 0)
		return -1;
	return v->run(o, &j, err);
}

static int verb_main(const struct verb *v, int argc, char **argv)
{
	struct opts o = { 0 };
	struct err err = { 0 };
	bool away;
	int first, n = opt_parse(&v->opt, argc, argv, &o, &first, &err),
		   most = v->of_session ? 1 : 2, least = v->state && !*v->state ? 2 : 1;

	if (n > 0)
		return 0;
	if (n == 0 && (argc - first < least || argc - first > most))
		n = err_set(&err, ERR_INVALID, "usage: %s %s", v->opt.name, v->opt.usage);
	if (n < 0)
		return opt_fail(OPT_EXIT_USAGE, &err);
	n = run_verb(v, &o, argv + first, argc - first, &err);
	if (n >= 0 && fflush(stdout) != 0)
		n = err_sys(&err, errno, "standard output");
	if (n >= 0)
		return n;
	/* a daemon that is not there, against one that said no */
	away = n == NOT_ASKED || (err.code == ERR_UNAVAILABLE && err.sys);
	return opt_fail(v->tells_status || away ? OPT_EXIT_FAILED : EXIT_REFUSED, &err);
}

/* ---- ps -------------------------------------------------------------------------------------- */

static void command_text(const json_t *c, char ret[COMMAND_WIDTH])
{
	size_t n = 0, i;
	json_t *word;

	ret[0] = '\0';
	if (json_is_string(c))
		snprintf(ret, COMMAND_WIDTH, "%s", json_string_value(c));
	json_array_foreach (c, i, word)
		if (n < COMMAND_WIDTH)
			n += (size_t)snprintf(ret + n, COMMAND_WIDTH - n, "%s%s", i ? " " : "",
					      json_string_value(word) ?: "?");
	plain_line(ret, ret, 80);
}

/* "exit 3", "signal 9" */
static void state_text(const json_t *x, char ret[TIME_TEXT])
{
	const json_t *code = json_object_get(x, "exit_code"), *sig = json_object_get(x, "signal");

	if (json_is_true(json_object_get(x, "timed_out")))
		snprintf(ret, TIME_TEXT, "timed out");
	else if (json_is_integer(sig))
		snprintf(ret, TIME_TEXT, "signal %lld", (long long)json_integer_value(sig));
	else if (json_is_integer(code))
		snprintf(ret, TIME_TEXT, "exit %lld", (long long)json_integer_value(code));
	else
		snprintf(ret, TIME_TEXT, "%s", text_of(x, "state"));
}

static void print_row(const json_t *x)
{
	time_t at = (time_t)(json_integer_value(json_object_get(x, "started_at")) / 1000);
	char when[TIME_TEXT] = "", state[TIME_TEXT], what[COMMAND_WIDTH];
	struct tm tm;

	if (localtime_r(&at, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	state_text(x, state);
	command_text(json_object_get(x, "command"), what);
	printf("%-*s %-10s %-20s %s\n", ID_COLUMN, text_of(x, "exec_id"), state, when, what);
}

static int run_ps(const struct opts *o, struct job *j, struct err *err)
{
	auto_json json_t *all = NULL, *some = json_array();
	json_t *x;
	size_t i;

	if (list(j, &all, err) < 0)
		return -1;
	json_array_foreach (all, i, x)
		if (o->all || strcmp(text_of(x, "state"), "running") == 0)
			json_array_append(some, x);
	if (o->json)
		return job_say(some, err);
	printf("%-*s %-10s %-20s %s\n", ID_COLUMN, "EXEC", "STATE", "STARTED", "COMMAND");
	for (i = 0; i < json_array_size(some); i++)
		print_row(json_array_get(some, i));
	return 0;
}

static const struct opt ps_options[] = {
	{ "all", 'a', NULL, set_all, "also those that have ended, of the last 7 days" },
	{ "json", 0, NULL, set_json, "as JSON" },
	WHERE_OPT_TABLE,
	{ NULL },
};

static const struct verb ps = {
	.opt = { .name = "lodge ps",
		 .usage = "[-a] [--json] SESSION",
		 .summary = "Lists the commands of a session that run.",
		 .opts = ps_options },
	.run = run_ps,
	.of_session = true,
};

int cmd_ps(int argc, char **argv)
{
	return verb_main(&ps, argc, argv);
}

/* ---- logs ------------------------------------------------------------------------------------ */

static int run_logs(const struct opts *o, struct job *j, struct err *err)
{
	j->keep = o->json;
	if (job_follow(j, o->follow, err) < 0)
		return -1;
	if (o->json)
		return !j->end && job_look(j, &j->end, err) < 0 ? -1 : job_say_kept(j, err);
	if (j->gap)
		fputs("lodge: the beginning is not kept any more\n", stderr);
	return 0;
}

static const struct opt logs_options[] = {
	{ "follow", 'f', NULL, set_follow, "go on until it ends" },
	{ "json", 0, NULL, set_json, "one JSON object: its record, with the output" },
	WHERE_OPT_TABLE,
	{ NULL },
};

static const struct verb logs = {
	.opt = { .name = "lodge logs",
		 .usage = "[-f] [--json] SESSION [EXEC]",
		 .summary = "Shows what a command wrote; without EXEC the newest.",
		 .opts = logs_options },
	.run = run_logs,
};

int cmd_logs(int argc, char **argv)
{
	return verb_main(&logs, argc, argv);
}

/* ---- attach ---------------------------------------------------------------------------------- */

static int attach_screen(struct job *j, struct err *err)
{
	struct screen s = { .client = j->client, .ref = j->ref, .signals = -1 };
	auto_call(screen_fini) struct screen *guard = &s;
	enum screen_end end = SCREEN_EXIT;
	char outcome[32];
	int status = 0;

	(void)guard;
	memcpy(s.id, j->id, sizeof(s.id));
	if (screen_open(&s, outcome, err) < 0)
		return -1;
	if (isatty(STDIN_FILENO))
		fprintf(stderr, "lodge: " SCREEN_KEYS " leaves it running\n");
	if (screen_run(&s, &end, &status, err) < 0)
		return -1;
	if (end != SCREEN_EXIT)
		fprintf(stderr, "\r\nlodge: left; it goes on (lodge attach %s %s)\n", j->ref,
			j->id);
	return status;
}

/* A terminal can be resized, nothing else can. */
static int run_attach(const struct opts *o, struct job *j, struct err *err)
{
	uint32_t rows, cols;
	int status;

	(void)o;
	term_size(&rows, &cols);
	if (job_resize(j, rows, cols))
		return attach_screen(j, err);
	if (job_catch(j, err) < 0 || (!isatty(STDIN_FILENO) && job_feed(j, err) < 0))
		return -1;
	status = job_follow(j, true, err);
	if (status == 0) {
		job_remark(j);
		status = job_status(j->end);
	} else {
		status = opt_fail(OPT_EXIT_FAILED, err);
	}
	_exit(status); /* the threads may be at work with all of this */
}

static const struct opt attach_options[] = {
	WHERE_OPT_TABLE,
	{ NULL },
};

static const struct verb attach = {
	.opt = { .name = "lodge attach",
		 .usage = "SESSION [EXEC]",
		 .summary = "Follows a command that runs, without EXEC the newest of them.",
		 .opts = attach_options,
		 .more = "A command with a terminal gets this one; " SCREEN_KEYS
			 " leaves it running. "
			 "Of others the\noutput that is kept is shown from its beginning, ctrl-c "
			 "interrupts the command,\ntwice leaves it, and standard input is passed "
			 "on if "
			 "it is no terminal.\nExit status: the command's, as with lodge exec.\n" },
	.run = run_attach,
	.tells_status = true,
	.state = "running",
};

int cmd_attach(int argc, char **argv)
{
	return verb_main(&attach, argc, argv);
}

/* ---- kill ------------------------------------------------------------------------------------ */

/* Without a signal everything it started ends with it. */
static int run_kill(const struct opts *o, struct job *j, struct err *err)
{
	auto_json json_t *record = NULL;
	char path[JOB_PATH];

	if (o->signal && job_signal(j, o->signal, err) < 0)
		return -1;
	if (!o->signal && (job_path(j, "", path, err) < 0 ||
			   client_call(j->client, "DELETE", path, NULL, NULL, err) < 0))
		return -1;
	if (!o->json)
		return 0;
	return job_look(j, &record, err) < 0 ? -1 : job_say(record, err);
}

static const struct opt kill_options[] = {
	{ "signal", 's', "SIGNAL", set_signal, "send this one to its processes: TERM, SIGINT, 15" },
	{ "json", 0, NULL, set_json, "its record afterwards, as JSON" },
	WHERE_OPT_TABLE,
	{ NULL },
};

static const struct verb kill_verb = {
	.opt = { .name = "lodge kill",
		 .usage = "[-s SIGNAL] [--json] SESSION EXEC",
		 .summary = "Ends a command with everything it started, or sends it a signal.",
		 .opts = kill_options },
	.run = run_kill,
	.state = "",
};

int cmd_kill(int argc, char **argv)
{
	return verb_main(&kill_verb, argc, argv);
}
