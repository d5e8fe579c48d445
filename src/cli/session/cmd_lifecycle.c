/* SPDX-License-Identifier: Apache-2.0 */
/* lodge create, set, rm, pause, unpause, hibernate, resume, extend. */
#include <stdio.h>
#include <string.h>

#include "cli/core/api_cmd.h"
#include "cli/core/ignored_options.h"
#include "cli/core/print_session.h"
#include "cli/core/quantity.h"
#include "cli/core/unenforced.h"

/* ---- new ------------------------------------------------------------------------------------- */

struct session_times {
	const char *idle, *lifetime, *max_lifetime, *delete_after;
};

struct new_opts {
	struct api_cmd a;
	const char *key, *user, *project, *template, *snapshot, *policy;
	struct session_times times;
	struct session_limits limits;
};

static const struct cli_option time_options[] = {
	{ "idle", 0, "TIME", CLI_MS, offsetof(struct session_times, idle),
	  "hibernate after TIME unused (30m)", "idle_timeout_ms" },
	{ "lifetime", 0, "TIME", CLI_MS, offsetof(struct session_times, lifetime),
	  "end a sandbox after TIME unless extended (5h)", "lifetime_ms" },
	{ "max-lifetime", 0, "TIME", CLI_MS, offsetof(struct session_times, max_lifetime),
	  "extend a sandbox at most to TIME (5h)", "max_lifetime_ms" },
	{ "delete-after", 0, "TIME", CLI_MS, offsetof(struct session_times, delete_after),
	  "delete after TIME hibernated; 0: never (never)", "delete_after_ms" },
	{ NULL },
};

static void print_new(struct api_cmd *a, const json_t *answer)
{
	char names[FIELD_TEXT];

	(void)a;
	if (*unenforced_names(member_get(answer, "session.limits_not_enforced"), names))
		fprintf(stderr, "lodge: not enforced on this host: %s (see lodge inspect)\n",
			names);
	if (member_true(answer, "state_lost"))
		fprintf(stderr,
			"lodge: files of an earlier sandbox were lost (see lodge inspect)\n");
	api_cmd_print("%s", member_text(answer, "session.id"));
}

static int check_new(struct api_cmd *a, struct err *err)
{
	struct new_opts *o = (struct new_opts *)a;

	if (a->argc && o->key)
		return api_cmd_misuse(a, err, "new: use either KEY or --key, not both");
	if (a->argc)
		o->key = a->argv[0];
	return api_cmd_check_key(a, "--key", o->key, err);
}

static int run_new(struct api_cmd *a, struct err *err)
{
	auto_json json_t *body = json_object(), *answer = NULL;

	if (api_cmd_fill(a, body, err) < 0 ||
	    client_call(a->client, "POST", "/v1/sessions", body, &answer, err) < 0)
		return -1;
	ignored_options_warn(a, print_key(json_object_get(answer, "session")), answer);
	return api_cmd_write(a, answer, print_new, err);
}

static const struct cli_option new_options[] = {
	CLI_SECTION("Identity"),
	{ "key", 'k', "KEY", CLI_TEXT, offsetof(struct new_opts, key),
	  "your name for it, such as alice; same as KEY", "key" },
	{ "user", 0, "USER", CLI_TEXT, offsetof(struct new_opts, user), "user it belongs to",
	  "user", .old_letter = 'u' },
	{ "project", 0, "PROJECT", CLI_TEXT, offsetof(struct new_opts, project),
	  "project name to record with it", "project", .old_letter = 'p' },
	CLI_SECTION("Contents"),
	{ "template", 0, "NAME", CLI_TEXT, offsetof(struct new_opts, template),
	  "template to start from (host)", "template" },
	{ "snapshot", 0, "ID", CLI_TEXT, offsetof(struct new_opts, snapshot),
	  "snapshot to start from", "snapshot" },
	{ "policy", 0, "NAME", CLI_TEXT, offsetof(struct new_opts, policy), "policy to apply",
	  "policy" },
	CLI_SECTION("Timeouts"),
	CLI_INCLUDE(time_options, offsetof(struct new_opts, times)),
	CLI_SECTION("Limits"),
	CLI_INCLUDE(session_limit_options, offsetof(struct new_opts, limits)),
	CLI_SECTION("Output"),
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_create = {
	.name = "create",
	.usage = "[OPTION...] [KEY]",
	.summary = "create a session, or find it by its key",
	.about = "Prints its id. A session with this KEY that exists stays unchanged; lodge names\n"
		 "the options that were ignored (see lodge set).\n",
	.options = new_options,
	.more = "Templates, policies and the service can set other defaults.\n\n"
		"Examples\n"
		"  lodge create alice\n"
		"  lodge create build --memory 2G --idle 2h\n"
		"  lodge create --template python --json\n",
	.size = sizeof(struct new_opts),
	.most = 1,
	.check = check_new,
	.run = run_new,
};

/* ---- set ------------------------------------------------------------------------------------- */

struct set_opts {
	struct api_cmd a;
	struct session_times times;
	struct session_limits limits;
};

static int check_set(struct api_cmd *a, struct err *err)
{
	auto_json json_t *body = json_object();

	if (api_cmd_fill(a, body, err) < 0)
		return -1;
	return json_object_size(body) ? 0 : api_cmd_misuse(a, err, "set: name what to change");
}

static void print_set(struct api_cmd *a, const json_t *answer)
{
	const json_t *s = json_object_get(answer, "session");
	char name[FIELD_TEXT], span[FIELD_TEXT];

	(void)a;
	print_name(s, name, sizeof(name));
	api_cmd_print("%s: changed", name);
	if (json_array_size(json_object_get(answer, "adjusted")))
		api_cmd_note("lodge: %s: --lifetime is %s now, because of --max-lifetime", name,
			     field_span(s, "lifetime_ms", span));
}

static const struct cli_option set_options[] = {
	CLI_SECTION("Timeouts"),
	CLI_INCLUDE(time_options, offsetof(struct set_opts, times)),
	CLI_SECTION("Limits"),
	CLI_INCLUDE(session_limit_options, offsetof(struct set_opts, limits)),
	CLI_SECTION("Output"),
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_set = {
	.name = "set",
	.usage = "OPTION... SESSION...",
	.summary = "change timeouts and limits of sessions",
	.about = "Changes only what is given. It applies at once, also to running commands. The\n"
		 "defaults in parentheses are those of a new session.\n",
	.options = set_options,
	.more = "Examples\n"
		"  lodge set alice --idle 2h --memory 2G\n"
		"  lodge set --delete-after 30d $(lodge ls -q --state hibernated)\n",
	.size = sizeof(struct set_opts),
	.least = 1,
	.most = -1,
	.check = check_set,
	.method = "PATCH",
	.path = "/v1/sessions/%s",
	.sessions = true,
	.print = print_set,
};

/* ---- rm -------------------------------------------------------------------------------------- */

struct rm_opts {
	struct api_cmd a;
	const char *reason;
};

/* A tombstone has no key. */
static void print_removed(struct api_cmd *a, const json_t *answer)
{
	const json_t *t = json_object_get(answer, "tombstone");
	const char *user = member_text(t, "user");
	const char *key = strncmp(a->ref, "key:", 4) == 0 ? a->ref + 4 : NULL;
	char why[FIELD_TEXT];

	print_cause(json_object_get(t, "cause"), why, sizeof(why));
	api_cmd_print("%s%s%s%s: deleted (%s%s%s%s)", key ? key : "", key ? " (" : "",
		      member_text(t, "session"), key ? ")" : "", *user ? "user " : "", user,
		      *user ? "; " : "", why);
}

static const struct cli_option rm_options[] = {
	OPTION_YES,
	{ "reason", 0, "TEXT", CLI_TEXT, offsetof(struct rm_opts, reason),
	  "text that later requests for it get", "reason" },
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_rm = {
	.name = "rm",
	.usage = "[--yes] SESSION...",
	.summary = "delete sessions and their files",
	.options = rm_options,
	.more = "Snapshots of the sessions are kept.\n",
	.size = sizeof(struct rm_opts),
	.least = 1,
	.most = -1,
	.method = "DELETE",
	.path = "/v1/sessions/%s",
	.sessions = true,
	.confirm = "Delete {0} and its files?",
	.confirm_many = "Delete these {n} sessions and their files?",
	.cancelled = "no session was deleted",
	.print = print_removed,
};

/* ---- stop, start, pause, unpause ------------------------------------------------------------- */

static void print_now(struct api_cmd *a, const json_t *answer)
{
	const json_t *s = json_object_get(answer, "session");
	char name[FIELD_TEXT];

	(void)a;
	api_cmd_print("%s: %s", print_name(s, name, sizeof(name)), print_state(s));
}

/* clang-format off */
#define TRANSITION(verb, route, text)                                                              \
	const struct command cmd_##verb = {                                                        \
		.name = #verb, .usage = "SESSION...", .summary = text,                             \
		.options = api_options, .least = 1, .most = -1,                                  \
		.method = "POST", .path = "/v1/sessions/%s/" #route, .sessions = true,              \
		.print = print_now,                                                                \
	}
/* clang-format on */

TRANSITION(stop, hibernate, "end the processes of sessions, keep their files");
TRANSITION(start, resume, "start stopped sessions, with their files");
TRANSITION(pause, pause, "freeze the processes of sessions");
TRANSITION(unpause, unpause, "let paused processes continue");

/* ---- extend ---------------------------------------------------------------------------------- */

struct extend_opts {
	struct api_cmd a;
	const char *by;
};

/* "extended by 20m", "extended by only 12m: the maximum lifetime of 5h is reached (lifetime_max)",
 * "not extended: the maximum ..." */
static const char *format_extension(const json_t *answer, char buf[FIELD_TEXT])
{
	const char *reason = member_text(answer, "reason");
	char span[FIELD_TEXT];

	if (member_number(answer, "extended_by_ms") > 0)
		snprintf(buf, FIELD_TEXT, "extended by %s%.20s%s%.200s", *reason ? "only " : "",
			 field_span(answer, "extended_by_ms", span), *reason ? ": " : "", reason);
	else
		snprintf(buf, FIELD_TEXT, "not extended%s%.200s", *reason ? ": " : "", reason);
	return buf;
}

static void print_extended(struct api_cmd *a, const json_t *answer)
{
	const json_t *s = json_object_get(answer, "session");
	char name[FIELD_TEXT], how[FIELD_TEXT], idle[64], ends[64];

	(void)a;
	print_when(member_number(s, "hibernate_at"), idle, sizeof(idle));
	print_when(member_number(s, "expires_at"), ends, sizeof(ends));
	api_cmd_print("%s: ends %s, %s; hibernates %s unless used",
		      print_name(s, name, sizeof(name)), *ends ? ends : "-",
		      format_extension(answer, how), *idle ? idle : "-");
}

static int run_extend(struct api_cmd *a, struct err *err)
{
	struct err ignored;
	uint64_t ms;

	if (!((struct extend_opts *)a)->by &&
	    quantity_ms("", a->argv[a->argc - 1], &ms, &ignored) == 0 &&
	    api_cmd_check_last(a, "--by", err) < 0)
		return -1;
	return api_cmd_request(a, err);
}

static const struct cli_option extend_options[] = {
	{ "by", 0, "TIME", CLI_MS, offsetof(struct extend_opts, by),
	  "by TIME (20m), at most to its maximum lifetime", "ms" },
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_extend = {
	.name = "extend",
	.usage = "[--by TIME] SESSION...",
	.summary = "postpone the deadlines of sessions",
	.options = extend_options,
	.size = sizeof(struct extend_opts),
	.least = 1,
	.most = -1,
	.prompt = true,
	.method = "POST",
	.path = "/v1/sessions/%s/extend",
	.run = run_extend,
	.sessions = true,
	.print = print_extended,
};
