/* SPDX-License-Identifier: Apache-2.0 */
/* lodge user, cleanup: the end users of the service, and their quotas. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"
#include "cli/core/unenforced.h"
#include "cli/core/print_session.h"

/* ---- ls -------------------------------------------------------------------------------------- */

/* Sessions with a sandbox by user, in the order of creation. */
static int gather_sessions(struct api_cmd *a, json_t **ret, struct err *err)
{
	auto_json json_t *list = NULL, *users = json_object();
	json_t *s;
	size_t i;

	if (client_list(a->client, "/v1/sessions?limit=1000", "sessions", &list, err) < 0)
		return -1;
	json_array_foreach (list, i, s) {
		const char *user = member_text(s, "user");

		if (!*user || !member_is(s, "runtime", "live"))
			continue;
		if (!json_object_get(users, user))
			json_object_set_new(users, user, json_array());
		json_array_append(json_object_get(users, user), s);
	}
	*ret = steal_ptr(&users);
	return 0;
}

static const struct field ls_fields[] = {
	{ "USER", TABLE_SHRINK, "id" },
	{ "NAME", TABLE_SHRINK, "name" },
	{ "EMAIL", TABLE_SHRINK, "email" },
	{ "RUNNING", TABLE_RIGHT, "running", field_count },
	{ "SESSIONS", TABLE_RIGHT, "sessions", field_count },
	{ "MEMORY", TABLE_RIGHT, "memory", field_bytes },
	{ "DISK", TABLE_RIGHT, "disk", field_bytes },
	{ "CPU 24H", TABLE_RIGHT, "cpu_ms_24h", field_span },
	{ "LAST USED", TABLE_RIGHT, "active_at", field_age },
	{ "OVER QUOTA", 0, "over", field_words },
	{ NULL },
};

struct ls_opts {
	struct api_cmd a;
	const char *sort, *search;
};

static const struct cli_option ls_options[] = {
	{ "sort", 0, "NAME", CLI_TEXT, offsetof(struct ls_opts, sort),
	  "by disk (default), memory, cpu, active or id" },
	{ "search", 0, "TEXT", CLI_TEXT, offsetof(struct ls_opts, search),
	  "only with this text in id, name or email" },
	API_OPTIONS,
	{ NULL },
};

static void print_users(struct api_cmd *a, const json_t *answer)
{
	const json_t *users = json_object_get(answer, "users");
	int64_t total = member_number(answer, "total");

	(void)a;
	field_print_table(ls_fields, users);
	if (!json_array_size(users))
		api_cmd_hint("no users (a session with --user has one)");
	else if (total > (int64_t)json_array_size(users))
		api_cmd_note("%zu of %" PRId64 " users; --search finds the others",
			     json_array_size(users), total);
}

static int run_ls(struct api_cmd *a, struct err *err)
{
	const struct ls_opts *o = (struct ls_opts *)a;
	auto_json json_t *answer = NULL;
	char path[API_PATH] = "/v1/users?limit=1000";

	if (api_cmd_query(path, sizeof(path), "sort", o->sort, err) < 0 ||
	    api_cmd_query(path, sizeof(path), "q", o->search, err) < 0 ||
	    client_call(a->client, "GET", path, NULL, &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, print_users, err);
}

/* ---- show, quota ----------------------------------------------------------------------------- */

/* 0 is no limit. */
static const struct quota {
	const char *name, *limit, *usage;
	field_fn *text;
	const char *what; /* a quota is about limits, not about what is really used */
} quotas[] = {
	{ "sandboxes", "quota.sandboxes", "usage.active", field_count, "running" },
	{ "memory", "quota.memory_bytes", "usage.memory_bytes", field_bytes,
	  "sum of the limits of running sandboxes" },
	{ "disk", "quota.disk_bytes", "usage.disk_bytes", field_bytes,
	  "sum of the limits of all sessions" },
	{ "cpu", "quota.cpu_ms", "usage.cpu_ms", field_span, "used in total" },
};

static void add_quotas(struct field_table *t, const char *title, json_t *answer)
{
	char line[2 * FIELD_TEXT], used[FIELD_TEXT], most[FIELD_TEXT];

	(void)title;
	for (const struct quota *q = quotas; q < quotas + ARRAY_LEN(quotas); q++) {
		bool limited = member_number(answer, q->limit) > 0;

		snprintf(line, sizeof(line), "%s%s%s (%s)%s", q->text(answer, q->usage, used),
			 limited ? " of " : ", no limit",
			 limited ? q->text(answer, q->limit, most) : "", q->what,
			 unenforced_mark(json_object_get(answer, "quota_not_enforced"),
					 q->limit + strlen("quota.")));
		field_add_line(t, q->name, line);
	}
}

static const char *user_session(const json_t *answer, const char *path, char buf[FIELD_TEXT])
{
	const json_t *s = member_get(answer, path);

	return json_is_object(s) ? print_name(s, buf, FIELD_TEXT) : "";
}

static const struct field show_fields[] = {
	{ "user", 0, "user.id" },
	{ "name", 0, "user.name" },
	{ "email", 0, "user.email" },
	{ "project", 0, "user.project" },
	{ "fragment", 0, "user.fragment" },
	{ "session", 0, "user.session", user_session },
	{ "known since", 0, "user.created_at", field_when },
	{ "sessions", 0, "usage.sessions", field_count },
	{ "quota", 0, "", .lines = add_quotas },
	{ "not enforced", 0, "quota_not_enforced", .lines = unenforced_add_lines },
	{ NULL },
};

struct set_opts {
	struct api_cmd a;
	const char *name, *email;
	bool no_name, no_email;
};

static const struct cli_option set_options[] = {
	{ "name", 'n', "NAME", CLI_TEXT, offsetof(struct set_opts, name), "display name", "name" },
	{ "email", 0, "ADDRESS", CLI_TEXT, offsetof(struct set_opts, email), "email address",
	  "email" },
	{ "no-name", 0, NULL, CLI_FLAG, offsetof(struct set_opts, no_name), "remove the name" },
	{ "no-email", 0, NULL, CLI_FLAG, offsetof(struct set_opts, no_email),
	  "remove the email address" },
	API_OPTIONS,
	{ NULL },
};

static int check_set(struct api_cmd *a, struct err *err)
{
	const struct set_opts *o = (struct set_opts *)a;

	if ((o->name && o->no_name) || (o->email && o->no_email))
		return api_cmd_misuse(a, err, "cannot both set and remove it");
	return o->name || o->email || o->no_name || o->no_email
		       ? 0
		       : api_cmd_misuse(a, err, "give --name or --email");
}

/* The service removes what is empty. */
static int run_set(struct api_cmd *a, struct err *err)
{
	const struct set_opts *o = (struct set_opts *)a;
	auto_json json_t *body = json_object(), *answer = NULL;
	char path[API_PATH];

	if (o->no_name)
		json_object_set_new(body, "name", json_string(""));
	if (o->no_email)
		json_object_set_new(body, "email", json_string(""));
	if (client_path(path, sizeof(path), err, "/v1/users/%s", a->argv[0]) < 0 ||
	    api_cmd_fill(a, body, err) < 0 ||
	    client_call(a->client, "PATCH", path, body, &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, api_cmd_print_answer, err);
}

struct quota_opts {
	struct api_cmd a;
	const char *sandboxes, *memory, *disk, *cpu, *unset;
};

static const struct cli_option quota_options[] = {
	{ "sandboxes", 0, "N", CLI_AMOUNT, offsetof(struct quota_opts, sandboxes),
	  "sandboxes running at the same time", "sandboxes" },
	{ "memory", 0, "SIZE", CLI_BYTES, offsetof(struct quota_opts, memory),
	  "sum of the memory limits of running sandboxes", "memory_bytes" },
	{ "disk", 0, "SIZE", CLI_BYTES, offsetof(struct quota_opts, disk),
	  "sum of the disk limits of all sessions", "disk_bytes" },
	{ "cpu", 0, "TIME", CLI_MS, offsetof(struct quota_opts, cpu),
	  "CPU time in total, as 90s or 2h", "cpu_ms" },
	{ "unset", 0, "NAMES", CLI_TEXT, offsetof(struct quota_opts, unset),
	  "remove these quotas, as memory,cpu" },
	API_OPTIONS,
	{ NULL },
};

static int unset_one(struct api_cmd *a, json_t *quota, const char *name, struct err *err)
{
	for (const struct cli_option *o = quota_options; o->field; o++)
		if (strcmp(o->name, name) == 0)
			return json_object_set_new(quota, o->field, json_integer(0));
	return api_cmd_misuse(
		a, err, "--unset: unknown quota \"%.40s\"; use sandboxes, memory, disk or cpu",
		name);
}

/* The options, applied to the present quota. */
static int apply(struct api_cmd *a, json_t *quota, struct err *err)
{
	const char *unset = ((struct quota_opts *)a)->unset;
	auto_free char *list = strdup(unset ? unset : "");
	char *rest = list, *name;

	while (rest && (name = strsep(&rest, ",")))
		if (*name && unset_one(a, quota, name, err) < 0)
			return -1;
	return api_cmd_fill(a, quota, err);
}

/* Reports wrong options before the service is asked. */
static int check_quota(struct api_cmd *a, struct err *err)
{
	auto_json json_t *ignored = json_object();

	return apply(a, ignored, err);
}

static const struct field quota_fields[] = {
	{ "quota", 0, "", .lines = add_quotas },
	{ "not enforced", 0, "quota_not_enforced", .lines = unenforced_add_lines },
	{ NULL },
};

/* The service takes a quota as a whole, so it is read first. */
static int run_quota(struct api_cmd *a, struct err *err)
{
	auto_json json_t *now = NULL, *changed = json_object(), *answer = NULL;
	json_t *quota;
	char path[API_PATH];

	if (client_path(path, sizeof(path), err, "/v1/users/%s/quota", a->argv[0]) < 0 ||
	    client_call(a->client, "GET", path, NULL, &now, err) < 0 || apply(a, changed, err) < 0)
		return -1;
	quota = json_object_get(now, "quota");
	if (json_object_size(changed) &&
	    (json_object_update(quota, changed) < 0 ||
	     client_call(a->client, "PUT", path, quota, &answer, err) < 0))
		return -1;
	return api_cmd_write(a, answer ? answer : now, api_cmd_print_answer, err);
}

static const struct command *const subs[] = {
	COMMAND("user ls", "[OPTION...]", "list users and what they use", ls_options,
		sizeof(struct ls_opts), .prompt = true, .run = run_ls),
	COMMAND("user inspect", "USER", "show one user, their usage and their quotas", api_options,
		.alias = "show", .prompt = true, .method = "GET", .path = "/v1/users/%s",
		.record = "", .fields = show_fields),
	COMMAND("user set", "[OPTION...] USER", "set the name and email of a user", set_options,
		sizeof(struct set_opts), .least = 1, .most = 1, .check = check_set, .run = run_set,
		.record = "", .fields = show_fields),
	COMMAND("user quota", "[OPTION...] USER", "show or change the quotas of a user",
		quota_options, sizeof(struct quota_opts), .least = 1, .most = 1, .prompt = true,
		.check = check_quota, .run = run_quota, .record = "", .fields = quota_fields,
		.more = "Quotas that you do not name stay as they are; 0 means no limit. A lower "
			"quota\ndoes not stop what already runs.\n"),
	NULL,
};

const struct command cmd_user = { "user", NULL, "list users and set their quotas", .subs = subs };

/* ---- cleanup --------------------------------------------------------------------------------- */

struct cleanup_opts {
	struct api_cmd a;
	bool all;
};

static int clean_user(struct api_cmd *a, const char *user, json_t *out, struct err *err)
{
	auto_json json_t *body = json_pack("{s:s}", "userId", user), *answer = NULL;
	json_t *r, *one;

	if (client_call(a->client, "POST", "/api/cleanup-sandboxes", body, &answer, err) < 0)
		return -1;
	r = json_object_get(answer, "results");
	one = json_pack("{s:s, s:O, s:O}", "id", user, "ended",
			json_object_get(r, "killedSandboxes"), "failed",
			json_object_get(r, "failedSandboxes"));
	if (!one || json_array_append_new(out, one) < 0)
		return err_set(err, ERR_UNAVAILABLE, "unexpected response: no results");
	if (json_array_size(json_object_get(one, "failed")))
		a->reported = true;
	return 0;
}

static void print_names(const json_t *names, const char *what)
{
	json_t *name;
	size_t i;

	json_array_foreach (names, i, name) {
		api_cmd_print("  %s  %s", what, member_text(name, ""));
	}
}

static void print_cleaned(struct api_cmd *a, const json_t *answer)
{
	const json_t *users = json_object_get(answer, "users");
	json_t *one;
	size_t i;

	(void)a;
	if (!json_array_size(users))
		puts("nothing to end: no user has a running sandbox");
	json_array_foreach (users, i, one) {
		const json_t *ended = json_object_get(one, "ended"),
			     *failed = json_object_get(one, "failed");

		api_cmd_print("%s: %zu ended, %zu failed", member_text(one, "id"),
			      json_array_size(ended), json_array_size(failed));
		print_names(ended, "ended ");
		print_names(failed, "failed");
	}
}

static int check_cleanup(struct api_cmd *a, struct err *err)
{
	if (((struct cleanup_opts *)a)->all != (a->argc == 1))
		return 0;
	return api_cmd_misuse(a, err, "name either a USER or --all");
}

/* {"users": [{"id": ..., "ended": [...], "failed": [...]}]} */
static int run_cleanup(struct api_cmd *a, struct err *err)
{
	auto_json json_t *users = NULL, *out = json_array(), *answer = NULL;
	bool all = ((struct cleanup_opts *)a)->all;
	char count[HUMAN_TEXT];
	json_t *sessions;
	const char *id;

	answer = json_pack("{s:O}", "users", out);
	if (all && gather_sessions(a, &users, err) < 0)
		return -1;
	if (!all && !(users = json_pack("{s:n}", a->argv[0])))
		return err_set(err, ERR_INVALID, "USER: value is not valid UTF-8");
	human_count((int64_t)json_object_size(users), "user", NULL, count);
	if (json_object_size(users) &&
	    api_cmd_confirm(a, "no sandbox was ended", err,
			    "End the running sandboxes of %s and delete their files?",
			    all ? count : a->argv[0]) < 0)
		return -1;
	json_object_foreach (users, id, sessions) {
		if (clean_user(a, id, out, err) < 0 && api_cmd_continue(a, id, !all, err) < 0)
			return -1;
	}
	return api_cmd_write(a, answer, print_cleaned, err);
}

static const struct cli_option cleanup_options[] = {
	{ "all", 0, NULL, CLI_FLAG, offsetof(struct cleanup_opts, all),
	  "end the running sandboxes of all users" },
	OPTION_YES,
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_cleanup = {
	.name = "cleanup",
	.usage = "USER|--all [--yes]",
	.summary = "end a user's running sandboxes, with their files",
	.options = cleanup_options,
	.more = "Hibernated sessions stay, such as the working copies of other projects, and so "
		"do\nsessions without a user; `lodge rm` deletes them.\n",
	.size = sizeof(struct cleanup_opts),
	.most = 1,
	.check = check_cleanup,
	.run = run_cleanup,
};
