/* SPDX-License-Identifier: Apache-2.0 */
/* lodge enter: a shell in a session, that stays there when one leaves. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/plain.h"
#include "base/size.h"
#include "cli/cmd.h"
#include "cli/screen.h"
#include "cli/term.h"

DEFINE_AUTO(struct client *, client_free);
DEFINE_AUTO(struct screen *, screen_fini);

struct opts {
	const char *session;
	json_t *body; /* of a session to be made, but for its key */
	json_t *command; /* NULL: a shell */
	bool quiet, fresh, no_keys, has_wish;
	char ref[WHERE_REF];
};

/* ---- options --------------------------------------------------------------------------------- */

static int put(struct opts *o, const char *name, json_t *value, struct err *err)
{
	o->has_wish = true;
	return json_object_set_new(o->body, name, value) < 0
		       ? err_set(err, ERR_INVALID, "%s: not a text", name)
		       : 0;
}

static int set_template(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)name;
	return put(ctx, "template", json_string(value), err);
}

static int put_limit(struct opts *o, const char *name, json_t *value, struct err *err)
{
	json_t *limits = json_object_get(o->body, "limits");

	if (!limits) {
		limits = json_object();
		if (put(o, "limits", limits, err) < 0)
			return -1;
	}
	return json_object_set_new(limits, name, value) < 0 ? err_sys(err, ENOMEM, "%s", name) : 0;
}

static int set_memory(void *ctx, const char *name, const char *value, struct err *err)
{
	uint64_t n;

	return size_parse_bytes(name, value, &n, err) < 0
		       ? -1
		       : put_limit(ctx, "memory_bytes", json_integer((json_int_t)n), err);
}

static int set_disk(void *ctx, const char *name, const char *value, struct err *err)
{
	uint64_t n;

	return size_parse_bytes(name, value, &n, err) < 0
		       ? -1
		       : put_limit(ctx, "disk_bytes", json_integer((json_int_t)n), err);
}

static int set_cpus(void *ctx, const char *name, const char *value, struct err *err)
{
	uint64_t n;

	return size_parse_milli(name, value, &n, err) < 0
		       ? -1
		       : put_limit(ctx, "cpu_milli", json_integer((json_int_t)n), err);
}

static int set_pids(void *ctx, const char *name, const char *value, struct err *err)
{
	uint64_t n;

	return size_parse_count(name, value, 1, 4194304, &n, err) < 0
		       ? -1
		       : put_limit(ctx, "pids", json_integer((json_int_t)n), err);
}

static int set_new(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)name;
	(void)value;
	(void)err;
	((struct opts *)ctx)->fresh = true;
	return 0;
}

static int set_no_keys(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)name;
	(void)value;
	(void)err;
	((struct opts *)ctx)->no_keys = true;
	return 0;
}

static int set_quiet(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)name;
	(void)value;
	(void)err;
	((struct opts *)ctx)->quiet = true;
	return 0;
}

static const struct opt options[] = {
	{ "template", 0, "NAME", set_template, "what a new session starts from (default: host)" },
	{ "memory", 0, "SIZE", set_memory, "most memory of a new session, 256M" },
	{ "cpus", 0, "N", set_cpus, "most processor time of a new session, 0.5 is half a core" },
	{ "pids", 0, "N", set_pids, "most processes and threads of a new session" },
	{ "disk", 0, "SIZE", set_disk, "most data in files of a new session, 500M" },
	{ "new", 0, NULL, set_new, "another shell, even if one runs" },
	{ "no-detach-keys", 0, NULL, set_no_keys, "everything typed goes to the shell" },
	{ "quiet", 'q', NULL, set_quiet, "say nothing but errors" },
	WHERE_OPT_TABLE,
	{ NULL },
};

static const struct opt_command command = {
	.name = "lodge enter",
	.usage = "[OPTION...] [SESSION] [-- COMMAND [ARGUMENT...]]",
	.summary =
		"A shell in a session, which is made if it is not there, and resumed if it sleeps.",
	.opts = options,
	.more = "SESSION is a key, or an id (ses_...); default: your name.\n\n" SCREEN_KEYS
		" leaves the shell running; entering again comes back to it, with the\n"
		"last of its output. ctrl-] twice sends one ctrl-]. Exit status: the shell's; "
		"128+N\n"
		"when killed by signal N; 0 after leaving; 125 when lodge failed.\n",
};

/* Words behind -- are a command; opt_parse() takes the dashes away. */
static int split(int argc, char **argv, int *ret_own)
{
	*ret_own = argc;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			*ret_own = i;
			return i + 1;
		}
	}
	return argc;
}

static int take_command(struct opts *o, char **argv, struct err *err)
{
	if (!*argv)
		return 0;
	o->command = json_array();
	for (; *argv; argv++)
		if (json_array_append_new(o->command, json_string(*argv)) < 0)
			return err_set(err, ERR_INVALID, "\"%.60s\" is not UTF-8", *argv);
	return 0;
}

/* ---- the session ----------------------------------------------------------------------------- */

static const char *own_name(void)
{
	const struct passwd *p = getpwuid(getuid());
	const char *user = getenv("USER");

	return p ? p->pw_name : user && *user ? user : "me";
}

/* In one line, and only what is worth it. The reason may be anybody's words. */
static void say_entered(const struct opts *o, const json_t *e)
{
	const json_t *cause = json_object_get(e, "cause");
	const char *outcome = json_string_value(json_object_get(e, "outcome")) ?: "",
		   *text = json_string_value(json_object_get(cause, "text")) ?: "",
		   *key = o->ref + 4;
	char why[256];

	plain_line(text, why, sizeof(why));
	if (json_is_true(json_object_get(e, "state_lost")))
		fprintf(stderr, "lodge: %s began anew, its earlier files are gone%s%s\n", key,
			*why ? ": " : "", why);
	else if (o->quiet)
		return;
	else if (strcmp(outcome, "created") == 0)
		fprintf(stderr, "lodge: %s is new\n", key);
	else if (strcmp(outcome, "resumed") == 0)
		fprintf(stderr, "lodge: %s slept; its files are there, its processes are not\n",
			key);
}

/* An id is never made. */
static int get_session(struct opts *o, struct client *c, struct err *err)
{
	auto_json json_t *entered = NULL;

	if (where_ref(o->session, o->ref, err) < 0)
		return -1;
	if (strncmp(o->ref, "ses_", 4) == 0)
		return o->has_wish ? err_set(err, ERR_INVALID,
					     "%s: a session that is there does not change: leave "
					     "the template and limits out",
					     o->ref)
				   : 0;
	if (json_object_set_new(o->body, "key", json_string(o->ref + 4)) < 0)
		return err_set(err, ERR_INVALID, "the key is not UTF-8");
	if (client_call(c, "POST", "/v1/sessions", o->body, &entered, err) < 0)
		return -1;
	say_entered(o, entered);
	return 0;
}

/* ---- the shell ------------------------------------------------------------------------------- */

static bool is_shell(const json_t *x)
{
	const json_t *c = json_object_get(x, "command");
	const char *state = json_string_value(json_object_get(x, "state")),
		   *name = json_string_value(json_array_get(c, 0)),
		   *login = json_string_value(json_array_get(c, 1));

	return state && strcmp(state, "running") == 0 && json_array_size(c) == 2 && name &&
	       strcmp(name, "bash") == 0 && login && strcmp(login, "-l") == 0;
}

/* The newest that was entered and left; only a terminal can be resized. */
static int find_shell(const struct opts *o, struct screen *s, struct err *err)
{
	struct job j = { .client = s->client };
	auto_json json_t *all = NULL;
	json_t *x;
	char path[JOB_PATH];
	uint32_t rows, cols;
	size_t i;

	memcpy(j.ref, o->ref, sizeof(j.ref));
	term_size(&rows, &cols);
	if (client_path(path, sizeof(path), err, "/v1/sessions/%s/execs", o->ref) < 0 ||
	    client_list(s->client, path, "execs", &all, err) < 0)
		return -1;
	json_array_foreach (all, i, x) {
		if (!is_shell(x))
			continue;
		snprintf(j.id, sizeof(j.id), "%s",
			 json_string_value(json_object_get(x, "exec_id")) ?: "");
		if (job_resize(&j, rows, cols))
			memcpy(s->id, j.id, sizeof(s->id));
	}
	return 0;
}

static int start_command(const struct opts *o, struct screen *s, struct err *err)
{
	struct job j = { .client = s->client };
	uint32_t rows, cols;
	auto_json json_t *body = NULL;

	term_size(&rows, &cols);
	memcpy(j.ref, o->ref, sizeof(j.ref));
	body = json_pack("{s:O, s:{s:I, s:I}, s:i}", "argv", o->command, "pty", "rows",
			 (json_int_t)rows, "cols", (json_int_t)cols, "timeout_ms", 0);
	if (!body)
		return err_sys(err, ENOMEM, "command");
	if (job_start(&j, body, NULL, err) < 0)
		return -1;
	memcpy(s->id, j.id, sizeof(s->id));
	s->from_start = true;
	return 0;
}

static int choose(const struct opts *o, struct screen *s, struct err *err)
{
	if (o->command)
		return start_command(o, s, err);
	return o->fresh ? 0 : find_shell(o, s, err);
}

static void say_keys(const struct opts *o, const struct screen *s, bool back, const char *outcome)
{
	if (o->quiet)
		return;
	if (strcmp(outcome, "resumed") == 0)
		fprintf(stderr, "lodge: %s slept; its files are there, its processes are not\n",
			s->ref);
	if (strcmp(outcome, "replaced") == 0)
		fprintf(stderr, "lodge: %s began anew, its earlier files are gone\n", s->ref);
	if (isatty(STDIN_FILENO) && !o->no_keys)
		fprintf(stderr, "lodge: %s" SCREEN_KEYS " leaves it running\n",
			back ? "back in the shell; " : "");
}

static int enter(struct opts *o, struct err *err)
{
	auto_call(client_free) struct client *c = NULL;
	struct screen s = { .ref = o->ref, .no_keys = o->no_keys, .signals = -1 };
	auto_call(screen_fini) struct screen *guard = &s;
	enum screen_end end = SCREEN_EXIT;
	char outcome[32];
	bool back;
	int status = 0;

	(void)guard;
	if (where_client(&c, err) < 0 || get_session(o, c, err) < 0)
		return -1;
	s.client = c;
	if (choose(o, &s, err) < 0)
		return -1;
	back = *s.id && !o->command;
	if (screen_open(&s, outcome, err) < 0)
		return -1;
	say_keys(o, &s, back, outcome);
	if (screen_run(&s, &end, &status, err) < 0)
		return -1;
	if (end != SCREEN_EXIT)
		fprintf(stderr, "\r\nlodge: left; it goes on (lodge %s %s%s%s)\n",
			o->command ? "attach" : "enter", o->ref + (o->ref[0] == 'k' ? 4 : 0),
			o->command ? " " : "", o->command ? s.id : "");
	return status;
}

int cmd_enter(int argc, char **argv)
{
	struct opts o = { .body = json_object() };
	struct err err = { 0 };
	int first, own, rest = split(argc, argv, &own), n;

	n = opt_parse(&command, own, argv, &o, &first, &err);
	if (n == 0 && first + 1 < own)
		n = err_set(
			&err, ERR_INVALID,
			"enter: one session; a command comes behind -- (try lodge enter --help)");
	o.session = n == 0 && first < own ? argv[first] : own_name();
	if (n == 0)
		n = take_command(&o, argv + rest, &err);
	if (n < 0)
		n = opt_fail(OPT_EXIT_USAGE, &err);
	else if (n > 0)
		n = 0;
	else if ((n = enter(&o, &err)) < 0)
		n = opt_fail(OPT_EXIT_FAILED, &err);
	json_decref(o.body);
	json_decref(o.command);
	return n;
}
