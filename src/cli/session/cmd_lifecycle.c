/* SPDX-License-Identifier: Apache-2.0 */
/* lodge new, rm, pause, unpause, hibernate, resume, extend. */
#include <stdio.h>
#include <string.h>

#include "cli/core/api_cmd.h"
#include "cli/core/print_session.h"

/* ---- new ------------------------------------------------------------------------------------- */

struct new_opts {
	struct api_cmd a;
	const char *key, *user, *project, *template, *snapshot, *policy, *idle, *lifetime;
	struct session_limits limits;
};

enum { IGNORED = 256 };

static int note_ignored(const struct cli_option *o, void *at, void *arg)
{
	char *names = arg;
	size_t n = strlen(names);

	if (o->field && strcmp(o->name, "key") != 0 && cli_option_text(o, at))
		snprintf(names + n, IGNORED - n, "%s--%s", n ? ", " : "", o->name);
	return 0;
}

/* A session that exists does not change: warns that options had no effect. */
static void warn_ignored(struct api_cmd *a, const json_t *answer)
{
	char names[IGNORED] = "";
	auto_free char *name = NULL;

	cli_option_each(a->cmd->options, a, note_ignored, names);
	if (!*names || member_is(answer, "outcome", "created"))
		return;
	name = human_clean_dup(print_key(json_object_get(answer, "session")));
	fprintf(stderr, "lodge: %s already exists; ignored %s\n", name ? name : "session", names);
}

static void print_new(struct api_cmd *a, const json_t *answer)
{
	(void)a;
	if (member_true(answer, "state_lost"))
		fprintf(stderr, "lodge: files of an earlier sandbox were lost (see lodge show)\n");
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
	warn_ignored(a, answer);
	return api_cmd_write(a, answer, print_new, err);
}

static const struct cli_option new_options[] = {
	CLI_SECTION("Identity"),
	{ "key", 'k', "KEY", CLI_TEXT, offsetof(struct new_opts, key),
	  "your name for it, such as alice; same as KEY", "key" },
	{ "user", 'u', "USER", CLI_TEXT, offsetof(struct new_opts, user), "user it belongs to",
	  "user" },
	{ "project", 'p', "PROJECT", CLI_TEXT, offsetof(struct new_opts, project),
	  "project name to record with it", "project" },
	CLI_SECTION("Contents"),
	{ "template", 0, "NAME", CLI_TEXT, offsetof(struct new_opts, template),
	  "template to start from (host)", "template" },
	{ "snapshot", 0, "ID", CLI_TEXT, offsetof(struct new_opts, snapshot),
	  "snapshot to start from", "snapshot" },
	{ "policy", 0, "NAME", CLI_TEXT, offsetof(struct new_opts, policy), "policy to apply",
	  "policy" },
	CLI_SECTION("Timeouts"),
	{ "idle", 0, "TIME", CLI_MS, offsetof(struct new_opts, idle),
	  "hibernate after TIME unused (30m)", "idle_timeout_ms" },
	{ "lifetime", 0, "TIME", CLI_MS, offsetof(struct new_opts, lifetime),
	  "maximum sandbox lifetime (5h)", "max_lifetime_ms" },
	CLI_SECTION("Limits"),
	CLI_INCLUDE(session_limit_options, offsetof(struct new_opts, limits)),
	CLI_SECTION("Output"),
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_new = {
	.name = "new",
	.usage = "[OPTION...] [KEY]",
	.summary = "create a session, or find it by its key",
	.about = "Prints its id. A session with this KEY that exists stays unchanged; lodge warns\n"
		 "if you pass other options.\n",
	.options = new_options,
	.more = "Templates, policies and the service can set other defaults.\n\n"
		"Examples\n"
		"  lodge new alice\n"
		"  lodge new build --memory 2G --idle 2h\n"
		"  lodge new --template python --json\n",
	.size = sizeof(struct new_opts),
	.most = 1,
	.check = check_new,
	.run = run_new,
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

/* ---- pause, unpause, hibernate, resume ------------------------------------------------------- */

static void print_now(struct api_cmd *a, const json_t *answer)
{
	const json_t *s = json_object_get(answer, "session");
	char name[FIELD_TEXT];

	(void)a;
	api_cmd_print("%s: %s", print_name(s, name, sizeof(name)), print_state(s));
}

/* clang-format off */
#define TRANSITION(verb, text)                                                                     \
	const struct command cmd_##verb = {                                                        \
		.name = #verb, .usage = "SESSION...", .summary = text,                             \
		.options = api_options, .least = 1, .most = -1,                                  \
		.method = "POST", .path = "/v1/sessions/%s/" #verb, .sessions = true,              \
		.print = print_now,                                                                \
	}
/* clang-format on */

TRANSITION(pause, "freeze the processes of sessions");
TRANSITION(unpause, "let paused processes continue");
TRANSITION(hibernate, "stop the processes of sessions, keep their files");
TRANSITION(resume, "wake hibernated sessions");

/* ---- extend ---------------------------------------------------------------------------------- */

struct extend_opts {
	struct api_cmd a;
	const char *by;
};

static int extend_one(struct api_cmd *a, const char *ref, json_t **ret, struct err *err)
{
	static const char *const at[] = { "session.hibernate_at", "session.expires_at" };
	auto_json json_t *body = json_object(), *before = NULL;

	if (api_cmd_fill(a, body, err) < 0 ||
	    api_cmd_call(a, "GET", NULL, &before, err, "/v1/sessions/%s", ref) < 0 ||
	    api_cmd_call(a, "POST", body, ret, err, "/v1/sessions/%s/extend", ref) < 0)
		return -1;
	if (!a->json && member_number(before, at[0]) == member_number(*ret, at[0]) &&
	    member_number(before, at[1]) == member_number(*ret, at[1]))
		json_object_set_new(*ret, "same", json_true());
	return 0;
}

static void print_extended(struct api_cmd *a, const json_t *answer)
{
	const json_t *s = json_object_get(answer, "session");
	char name[FIELD_TEXT], idle[64], ends[64];

	(void)a;
	print_when(member_number(s, "hibernate_at"), idle, sizeof(idle));
	print_when(member_number(s, "expires_at"), ends, sizeof(ends));
	api_cmd_print("%s: %sidle until %s, at most until %s", print_name(s, name, sizeof(name)),
		      member_true(answer, "same") ? "unchanged (at its maximum): " : "",
		      *idle ? idle : "-", *ends ? ends : "-");
}

static int run_extend(struct api_cmd *a, struct err *err)
{
	return api_cmd_each(a, extend_one, print_extended, err);
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
	.run = run_extend,
};
