/* SPDX-License-Identifier: Apache-2.0 */
/* lodge ls, show. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/core/api_cmd.h"
#include "cli/core/print_session.h"

/* ---- ls -------------------------------------------------------------------------------------- */

struct ls_opts {
	struct api_cmd a;
	const char *user, *state, *project;
	bool keys;
};

static const struct field ls_fields[] = {
	{ "SESSION", TABLE_SHRINK, "id", field_key },
	{ "USER", TABLE_SHRINK, "user" },
	{ "STATE", 0, "state", field_state, print_state_tint },
	{ "AGE", TABLE_RIGHT, "created_at", field_age },
	{ "IDLE", TABLE_RIGHT, "last_activity_at", field_age },
	{ "MEMORY", TABLE_RIGHT, "stats.memory_bytes", field_bytes },
	{ "PROJECT", TABLE_SHRINK, "project" },
	{ NULL },
};

/* Adds what it uses now, unless it has no sandbox, or that just ended. */
static void add_stats(struct api_cmd *a, json_t *s)
{
	auto_json json_t *stats = NULL;
	struct err ignored;

	if (member_is(s, "runtime", "live") &&
	    api_cmd_call(a, "GET", NULL, &stats, &ignored, "/v1/sessions/%s/stats",
			 member_text(s, "id")) == 0)
		json_object_set(s, "stats", json_object_get(stats, "stats"));
}

/* A shell expands the words of a completion, and anyone can choose a key: only plain ones. */
static bool is_plain(const char *key)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._@+-";

	return *key && *key != '-' && strncmp(key, "ses_", 4) != 0 &&
	       key[strspn(key, plain)] == '\0';
}

static void print_list(struct api_cmd *a, const json_t *answer)
{
	const struct ls_opts *o = (struct ls_opts *)a;
	const json_t *sessions = json_object_get(answer, "sessions");
	json_t *s;
	size_t i;

	json_array_foreach (sessions, i, s) {
		if (a->quiet || o->keys)
			puts(member_text(s, "id"));
		else
			add_stats(a, s);
		if (o->keys && is_plain(member_text(s, "key")))
			puts(member_text(s, "key"));
	}
	if (a->quiet || o->keys)
		return;
	field_print_table(ls_fields, sessions);
	if (i == 0)
		api_cmd_hint(o->user || o->state || o->project
				     ? "no session matches (see lodge ls without options)"
				     : "no sessions (create one: lodge new)");
}

static int explain_state(struct api_cmd *a, struct err *err)
{
	const char *state = ((struct ls_opts *)a)->state;

	if (state && err->code == ERR_INVALID && strncmp(err->msg, "state:", 6) == 0)
		err_set(err, ERR_INVALID, "--state: unknown state \"%.32s\"; use " SESSION_STATES,
			state);
	return -1;
}

/* The service has no such state: a paused session is active. */
static void keep_paused(json_t *sessions)
{
	for (size_t i = json_array_size(sessions); i-- > 0;)
		if (!member_true(json_array_get(sessions, i), "paused"))
			json_array_remove(sessions, i);
}

static int run_ls(struct api_cmd *a, struct err *err)
{
	const struct ls_opts *o = (struct ls_opts *)a;
	auto_json json_t *answer = NULL;
	char path[API_PATH] = "/v1/sessions?limit=1000";
	bool paused = o->state && strcmp(o->state, "paused") == 0;

	if (api_cmd_query(path, sizeof(path), "user", o->user, err) < 0 ||
	    api_cmd_query(path, sizeof(path), "state", paused ? "active" : o->state, err) < 0 ||
	    api_cmd_query(path, sizeof(path), "project", o->project, err) < 0)
		return -1;
	if (api_cmd_list(a, path, "sessions", &answer, err) < 0)
		return explain_state(a, err);
	if (paused)
		keep_paused(json_object_get(answer, "sessions"));
	return api_cmd_write(a, answer, print_list, err);
}

static const struct cli_option ls_options[] = {
	{ "user", 'u', "USER", CLI_TEXT, offsetof(struct ls_opts, user), "only of this user",
	  "user" },
	{ "state", 's', "STATE", CLI_TEXT, offsetof(struct ls_opts, state),
	  "only in this state, as active, paused, hibernated" },
	{ "project", 'p', "PROJECT", CLI_TEXT, offsetof(struct ls_opts, project),
	  "only of this project", "project" },
	OPTION_QUIET("print only ids"),
	{ "keys", 0, NULL, CLI_FLAG, offsetof(struct ls_opts, keys),
	  "print only ids and plain keys, for completions" },
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_ls = {
	.name = "ls",
	.usage = "[OPTION...]",
	.summary = "list sessions",
	.options = ls_options,
	.size = sizeof(struct ls_opts),
	.prompt = true,
	.run = run_ls,
};

/* ---- show ------------------------------------------------------------------------------------ */

enum { LAST_COMMANDS = 10 };

/* Record, stats and commands as one object; stats are null without a sandbox. */
static int gather(struct api_cmd *a, const char *ref, json_t **ret, struct err *err)
{
	auto_json json_t *answer = NULL, *stats = NULL, *execs = NULL;
	struct err ignored;
	char path[API_PATH];

	if (api_cmd_call(a, "GET", NULL, &answer, err, "/v1/sessions/%s", ref) < 0 ||
	    client_path(path, sizeof(path), err, "/v1/sessions/%s/execs?limit=1000", ref) < 0 ||
	    client_list(a->client, path, "execs", &execs, err) < 0)
		return -1;
	if (member_is(answer, "session.runtime", "live"))
		(void)api_cmd_call(a, "GET", NULL, &stats, &ignored, "/v1/sessions/%s/stats", ref);
	while (json_array_size(execs) > LAST_COMMANDS)
		json_array_remove(execs, 0);
	json_object_set(answer, "stats", stats ? json_object_get(stats, "stats") : json_null());
	json_object_set(answer, "execs", execs);
	*ret = steal_ptr(&answer);
	return 0;
}

/* "hibernates in 12m, after 30m without use" */
static const char *format_end(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	bool idle = strcmp(path, "idle_timeout_ms") == 0;
	int64_t at = member_number(s, idle ? "hibernate_at" : "expires_at");
	char in[HUMAN_TEXT] = "", span[HUMAN_TEXT];

	if (at >= 0)
		human_span(at - clock_wall_ms(), in);
	snprintf(buf, FIELD_TEXT, "%s%s%s%s %s %s %s",
		 member_is(s, idle ? "on_idle" : "on_expire", "destroy") ? "is deleted"
									 : "hibernates",
		 *in ? " in " : "", in, *in ? "," : "", idle ? "after" : "when its sandbox is",
		 human_span(member_number(s, path), span), idle ? "without use" : "old");
	return buf;
}

static const char *format_limits(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	const json_t *limits = json_object_get(s, path);
	char memory[HUMAN_TEXT], disk[HUMAN_TEXT], count[HUMAN_TEXT];
	double cpus = json_number_value(json_object_get(limits, "cpus"));
	int n = snprintf(buf, FIELD_TEXT, "memory %s, disk %s, %s",
			 human_bytes((uint64_t)member_number(limits, "memory_bytes"), memory),
			 human_bytes((uint64_t)member_number(limits, "disk_bytes"), disk),
			 human_count(member_number(limits, "pids"), "process", "processes", count));

	if (cpus > 0)
		snprintf(buf + n, FIELD_TEXT - (size_t)n, ", %g CPU%s", cpus, cpus == 1 ? "" : "s");
	return buf;
}

static const char *bytes_or_unknown(const json_t *stats, const char *path, char buf[FIELD_TEXT])
{
	const char *text = field_bytes(stats, path, buf);

	return *text ? text : "?";
}

static const char *format_stats(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	const json_t *stats = json_object_get(s, path);
	char now[FIELD_TEXT], peak[FIELD_TEXT], disk[FIELD_TEXT], count[HUMAN_TEXT];

	snprintf(buf, FIELD_TEXT, "memory %.20s (peak %.20s), disk %.20s, %s, %.2f s of CPU time",
		 bytes_or_unknown(stats, "memory_bytes", now),
		 bytes_or_unknown(stats, "memory_peak_bytes", peak),
		 bytes_or_unknown(stats, "disk_bytes", disk),
		 human_count(member_number(stats, "pids"), "process", "processes", count),
		 (double)member_number(stats, "cpu_us") / 1e6);
	return json_is_object(stats) ? buf : "";
}

static const char *format_oom(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	char count[HUMAN_TEXT];
	int64_t kills = member_number(s, path);

	snprintf(buf, FIELD_TEXT, "out of memory: %s killed",
		 human_count(kills, "process", "processes", count));
	return kills > 0 ? buf : "";
}

static const char *format_cause(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	return print_cause(json_object_get(s, path), buf, FIELD_TEXT);
}

static const struct field show_fields[] = {
	{ "session", 0, "id" },
	{ "key", 0, "key" },
	{ "thread", 0, "thread" },
	{ "user", 0, "user" },
	{ "project", 0, "project" },
	{ "fragment", 0, "fragment" },
	{ "template", 0, "template" },
	{ "policy", 0, "policy" },
	{ "state", 0, "state", field_state, print_state_tint },
	{ "because", 0, "cause", format_cause },
	{ "sandbox", 0, "sandbox" },
	{ "snapshot", 0, "snapshot" },
	{ "created", 0, "created_at", field_when },
	{ "started", 0, "started_at", field_when },
	{ "last used", 0, "last_activity_at", field_when },
	{ "when idle", 0, "idle_timeout_ms", format_end },
	{ "when old", 0, "max_lifetime_ms", format_end },
	{ "limits", 0, "limits", format_limits },
	{ "uses", 0, "stats", format_stats },
	{ "trouble", 0, "stats.oom_kills", format_oom },
	{ NULL },
};

static void print_show(struct api_cmd *a, const json_t *answer)
{
	auto_json json_t *session = json_copy(json_object_get(answer, "session"));
	const json_t *execs = json_object_get(answer, "execs");

	(void)a;
	json_object_set(session, "stats", json_object_get(answer, "stats"));
	field_print_record(show_fields, session);
	if (!json_array_size(execs))
		return;
	putchar('\n');
	field_print_table(print_exec_fields, execs);
}

static int run_show(struct api_cmd *a, struct err *err)
{
	return api_cmd_each(a, gather, print_show, err);
}

const struct command cmd_show = {
	.name = "show",
	.usage = "SESSION...",
	.summary = "show one session in full",
	.options = api_options,
	.more = "Shows its record, what it uses and its last commands.\n",
	.least = 1,
	.most = -1,
	.prompt = true,
	.run = run_show,
};
