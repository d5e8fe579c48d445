/* SPDX-License-Identifier: Apache-2.0 */
/* lodge ls, show. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/core/api_cmd.h"
#include "cli/core/print_session.h"
#include "cli/core/unenforced.h"

/* ---- ls -------------------------------------------------------------------------------------- */

struct ls_opts {
	struct api_cmd a;
	const char *user, *state, *project, *tenant;
	bool keys, all_tenants;
};

/* Only of a running sandbox. */
static const char *format_memory(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	const json_t *usage = json_object_get(s, path);

	return json_is_integer(json_object_get(usage, "at")) ? field_bytes(usage, "memory", buf)
							     : "";
}

/* "hibernates in 12m", "deleted in 6d" */
static const char *format_next(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	const json_t *next = json_object_get(s, path);
	int64_t at = member_number(next, "at");
	int64_t left = at - clock_wall_ms();
	char in[HUMAN_TEXT];

	if (at < 0)
		return "";
	snprintf(buf, FIELD_TEXT, "%s in %s",
		 member_is(next, "what", "destroy") ? "deleted" : "hibernates",
		 human_span(left < 0 ? 0 : left, in));
	return buf;
}

static const struct field ls_fields[] = {
	{ "TENANT", TABLE_SHRINK, "tenant" }, /* only of several */
	{ "SESSION", TABLE_SHRINK, "id", print_session_key },
	{ "USER", TABLE_SHRINK, "user" },
	{ "STATE", 0, "state", print_session_state, print_state_tint },
	{ "AGE", TABLE_RIGHT, "created_at", field_age },
	{ "IDLE", TABLE_RIGHT, "active_at", field_age },
	{ "MEMORY", TABLE_RIGHT, "usage", format_memory },
	{ "NEXT", TABLE_SHRINK, "next", format_next },
	{ "PROJECT", TABLE_SHRINK, "project" },
	{ NULL },
};

/* A shell expands the words of a completion, and anyone can choose a key: only plain ones. */
static bool is_plain(const char *key)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._@+-";

	return *key && *key != '-' && !target_is_id(key) && key[strspn(key, plain)] == '\0';
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
		if (o->keys && is_plain(member_text(s, "key")))
			puts(member_text(s, "key"));
	}
	if (a->quiet || o->keys)
		return;
	field_print_table(o->all_tenants ? ls_fields : ls_fields + 1, sessions);
	if (i == 0)
		api_cmd_hint(o->user || o->state || o->project || o->tenant
				     ? "no session matches (see lodge ls without options)"
				     : "no sessions (create one: lodge create)");
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
	/* the table needs one request; JSON has the records as the API returns them */
	bool rows = !a->json && !a->quiet && !o->keys;
	char path[API_PATH];
	bool paused = o->state && strcmp(o->state, "paused") == 0;

	snprintf(path, sizeof(path), "/v1/sessions?limit=%s", rows ? "5000&view=row" : "1000");
	if (api_cmd_query(path, sizeof(path), "user", o->user, err) < 0 ||
	    api_cmd_query(path, sizeof(path), "state", paused ? "active" : o->state, err) < 0 ||
	    api_cmd_query(path, sizeof(path), "project", o->project, err) < 0 ||
	    api_cmd_query(path, sizeof(path), "tenant", o->tenant, err) < 0 ||
	    api_cmd_query(path, sizeof(path), "all", o->all_tenants ? "1" : NULL, err) < 0)
		return -1;
	if (api_cmd_list(a, path, "sessions", &answer, err) < 0)
		return explain_state(a, err);
	if (paused)
		keep_paused(json_object_get(answer, "sessions"));
	return api_cmd_write(a, answer, print_list, err);
}

static const struct cli_option ls_options[] = {
	{ "user", 0, "USER", CLI_TEXT, offsetof(struct ls_opts, user), "only of this user", "user",
	  .old_letter = 'u' },
	{ "state", 0, "STATE", CLI_TEXT, offsetof(struct ls_opts, state),
	  "only in this state, as active, paused, hibernated", .old_letter = 's' },
	{ "project", 0, "PROJECT", CLI_TEXT, offsetof(struct ls_opts, project),
	  "only of this project", "project", .old_letter = 'p' },
	{ "tenant", 0, "NAME", CLI_TEXT, offsetof(struct ls_opts, tenant),
	  "of this tenant; needs a key with scope admin", "tenant" },
	{ "all-tenants", 0, NULL, CLI_FLAG, offsetof(struct ls_opts, all_tenants),
	  "of all tenants; needs a key with scope admin", "all" },
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

/* "hibernates in 12m, after 30m without use"; "hibernates in 4h, when its sandbox is 5h old (10s
 * earlier unless a command runs)" */
static const char *format_end(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	bool idle = strcmp(path, "idle_timeout_ms") == 0;
	int64_t at = member_number(s, idle ? "hibernate_at" : "expires_at");
	/* an extension made it older than its lifetime says */
	int64_t after =
		idle || at < 0 ? member_number(s, path) : at - member_number(s, "started_at");
	char in[HUMAN_TEXT] = "", span[HUMAN_TEXT];

	if (at >= 0)
		human_span(at - clock_wall_ms(), in);
	snprintf(buf, FIELD_TEXT, "%s%s%s%s %s %s %s",
		 member_is(s, idle ? "on_idle" : "on_expire", "destroy") ? "is deleted"
									 : "hibernates",
		 *in ? " in " : "", in, *in ? "," : "", idle ? "after" : "when its sandbox is",
		 human_span(after, span),
		 idle ? "without use" : "old (10s earlier unless a command runs)");
	return buf;
}

/* The same, "; can be extended to 12h" */
static const char *format_old(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	char end[FIELD_TEXT], most[HUMAN_TEXT];
	int64_t max = member_number(s, "max_lifetime_ms");

	format_end(s, path, end);
	if (max > member_number(s, path) &&
	    member_number(s, "started_at") + max > member_number(s, "expires_at"))
		snprintf(buf, FIELD_TEXT, "%.900s; can be extended to %s", end,
			 human_span(max, most));
	else
		snprintf(buf, FIELD_TEXT, "%s", end);
	return buf;
}

/* "is deleted in 6d, after 30d hibernated" */
static const char *format_retention(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	int64_t at = member_number(s, "delete_at"), after = member_number(s, path);
	char in[HUMAN_TEXT] = "", span[HUMAN_TEXT];

	if (after <= 0)
		return "";
	if (at >= 0)
		human_span(at - clock_wall_ms(), in);
	snprintf(buf, FIELD_TEXT, "is deleted%s%s%s after %s hibernated", *in ? " in " : "", in,
		 *in ? "," : "", human_span(after, span));
	return buf;
}

static const char *format_limits(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	const json_t *limits = json_object_get(s, path);
	const json_t *not = json_object_get(s, "limits_not_enforced");
	char memory[HUMAN_TEXT], disk[HUMAN_TEXT], file[HUMAN_TEXT], count[HUMAN_TEXT];
	double cpus = json_number_value(json_object_get(limits, "cpus"));
	int n = snprintf(buf, FIELD_TEXT, "memory %s%s, disk %s%s, file %s, %s%s",
			 human_bytes((uint64_t)member_number(limits, "memory_bytes"), memory),
			 unenforced_mark(not, "memory_bytes"),
			 human_bytes((uint64_t)member_number(limits, "disk_bytes"), disk),
			 unenforced_mark(not, "disk_bytes"),
			 human_bytes((uint64_t)member_number(limits, "file_bytes"), file),
			 human_count(member_number(limits, "pids"), "process", "processes", count),
			 unenforced_mark(not, "pids"));

	if (cpus > 0)
		snprintf(buf + n, FIELD_TEXT - (size_t)n, ", %g CPU%s%s", cpus,
			 cpus == 1 ? "" : "s", unenforced_mark(not, "cpus"));
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

/* "ended 3s ago: its init was killed by signal 9 (not by lodge), with 1 command running" */
static const char *format_death(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	const json_t *death = json_object_get(s, path);
	const char *actor = member_text(death, "actor");
	int64_t commands = member_number(death, "lost.commands");
	char ago[HUMAN_TEXT], count[HUMAN_TEXT];
	bool by = *actor && strcmp(actor, "lodge") != 0;

	if (!json_is_object(death))
		return "";
	human_span(clock_wall_ms() - member_number(death, "at"), ago);
	human_count(commands, "command", NULL, count);
	snprintf(buf, FIELD_TEXT, "ended %s ago: %s%s%s%s%s%s", ago, member_text(death, "text"),
		 by ? " by " : "", by ? actor : "", commands > 0 ? ", with " : "",
		 commands > 0 ? count : "", commands > 0 ? " running" : "");
	return buf;
}

/* A sandbox that ended by itself is explained by its death. */
static const char *format_cause(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	if (strcmp(member_text(s, "cause.text"), member_text(s, "last_death.text")) == 0 &&
	    (member_is(s, "cause.code", "gone") || member_is(s, "cause.code", "stopped")))
		return "";
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
	{ "state", 0, "state", print_session_state, print_state_tint },
	{ "because", 0, "cause", format_cause },
	{ "last sandbox", 0, "last_death", format_death },
	{ "sandbox", 0, "sandbox" },
	{ "snapshot", 0, "snapshot" },
	{ "created", 0, "created_at", field_when },
	{ "started", 0, "started_at", field_when },
	{ "last used", 0, "last_activity_at", field_when },
	{ "when idle", 0, "idle_timeout_ms", format_end },
	{ "when old", 0, "lifetime_ms", format_old },
	{ "when asleep", 0, "delete_after_ms", format_retention },
	{ "limits", 0, "limits", format_limits },
	{ "not enforced", 0, "limits_not_enforced", .lines = unenforced_add_shown },
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

const struct command cmd_inspect = {
	.name = "inspect",
	.usage = "SESSION...",
	.summary = "show one session in full",
	.options = api_options,
	.more = "Shows its record, what it uses and its last commands.\n",
	.least = 1,
	.most = -1,
	.prompt = true,
	.run = run_show,
};
