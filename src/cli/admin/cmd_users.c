/* SPDX-License-Identifier: Apache-2.0 */
/* lodge users, cleanup: the end users of the service, and their quotas. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"
#include "cli/core/print_session.h"

/* ---- ls -------------------------------------------------------------------------------------- */

/* Sessions by user, in the order of creation; running: only those with a sandbox. */
static int gather_sessions(struct api_cmd *a, bool running, json_t **ret, struct err *err)
{
	auto_json json_t *list = NULL, *users = json_object();
	json_t *s;
	size_t i;

	if (client_list(a->client, "/v1/sessions?limit=1000", "sessions", &list, err) < 0)
		return -1;
	json_array_foreach (list, i, s) {
		const char *user = member_text(s, "user");

		if (!*user || (running && !member_is(s, "runtime", "live")))
			continue;
		if (!json_object_get(users, user))
			json_object_set_new(users, user, json_array());
		json_array_append(json_object_get(users, user), s);
	}
	*ret = steal_ptr(&users);
	return 0;
}

/* A user without a record, or whose name fits in no path, has only an id. */
static int get_user(struct api_cmd *a, const char *id, json_t **ret, struct err *err)
{
	if (api_cmd_call(a, "GET", NULL, ret, err, "/v1/users/%s", id) == 0)
		return 0;
	if (err->code != ERR_INVALID && err->code != ERR_NOT_FOUND)
		return -1;
	*ret = json_pack("{s:{s:s}}", "user", "id", id);
	return 0;
}

static const struct field ls_fields[] = {
	{ "NAME", TABLE_SHRINK, "user.name" },
	{ "EMAIL", TABLE_SHRINK, "user.email" },
	{ "USER", TABLE_SHRINK, "user.id" },
	{ "SANDBOX", 0, "sandbox" },
	{ "PROJECT", TABLE_SHRINK, "project" },
	{ "CREATED", TABLE_RIGHT, "started_at", field_age },
	{ "LAST USED", TABLE_RIGHT, "last_activity_at", field_age },
	{ NULL },
};

/* One row for each session, with the record of its user in it. */
static void print_users(struct api_cmd *a, const json_t *answer)
{
	auto_json json_t *rows = json_array();
	json_t *u, *s;
	size_t i, k;

	(void)a;
	json_array_foreach (json_object_get(answer, "users"), i, u) {
		json_array_foreach (json_object_get(u, "sessions"), k, s) {
			json_t *row = json_copy(s);

			json_object_set(row, "user", u);
			json_array_append_new(rows, row);
		}
	}
	field_print_table(ls_fields, rows);
	if (i == 0)
		api_cmd_hint("no user has a running sandbox (see lodge ls)");
}

/* {"users": [{the record of the user, sessions: [...]}]} */
static int run_ls(struct api_cmd *a, struct err *err)
{
	auto_json json_t *users = NULL, *answer = NULL;
	json_t *sessions, *out = json_array();
	const char *id;

	answer = json_pack("{s:o}", "users", out);
	if (gather_sessions(a, true, &users, err) < 0)
		return -1;
	json_object_foreach (users, id, sessions) {
		auto_json json_t *one = NULL;

		if (get_user(a, id, &one, err) < 0)
			return -1;
		json_object_set(json_object_get(one, "user"), "sessions", sessions);
		json_array_append(out, json_object_get(one, "user"));
	}
	return api_cmd_write(a, answer, print_users, err);
}

/* ---- show, quota ----------------------------------------------------------------------------- */

/* 0 is no limit. */
static const struct quota {
	const char *name, *limit, *usage;
	field_fn *text;
} quotas[] = {
	{ "sandboxes", "quota.sandboxes", "usage.active", field_count },
	{ "memory", "quota.memory_bytes", "usage.memory_bytes", field_bytes },
	{ "disk", "quota.disk_bytes", "usage.disk_bytes", field_bytes },
	{ "cpu", "quota.cpu_ms", "usage.cpu_ms", field_span },
};

static void add_quotas(struct field_table *t, const char *title, json_t *answer)
{
	char line[2 * FIELD_TEXT], used[FIELD_TEXT], most[FIELD_TEXT];

	(void)title;
	for (const struct quota *q = quotas; q < quotas + ARRAY_LEN(quotas); q++) {
		bool limited = member_number(answer, q->limit) > 0;

		snprintf(line, sizeof(line), "%s%s%s", q->text(answer, q->usage, used),
			 limited ? " of " : ", no limit",
			 limited ? q->text(answer, q->limit, most) : "");
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
	{ NULL },
};

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

static const struct field quota_fields[] = { { "quota", 0, "", .lines = add_quotas }, { NULL } };

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
	COMMAND("users ls", "[--json]", "list users with a running sandbox", api_options,
		.prompt = true, .run = run_ls),
	COMMAND("users show", "USER", "show one user, their usage and their quotas", api_options,
		.prompt = true, .method = "GET", .path = "/v1/users/%s", .record = "",
		.fields = show_fields),
	COMMAND("users quota", "[OPTION...] USER", "show or change the quotas of a user",
		quota_options, sizeof(struct quota_opts), .least = 1, .most = 1, .prompt = true,
		.check = check_quota, .run = run_quota, .record = "", .fields = quota_fields,
		.more = "Quotas that you do not name stay as they are; 0 means no limit. A lower "
			"quota\ndoes not stop what already runs.\n"),
	NULL,
};

const struct command cmd_users = {
	.name = "users",
	.summary = "list users and set their quotas",
	.subs = subs,
};

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
		puts("nothing to delete: no user has a session");
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
	if (all && gather_sessions(a, false, &users, err) < 0)
		return -1;
	if (!all && !(users = json_pack("{s:n}", a->argv[0])))
		return err_set(err, ERR_INVALID, "USER: value is not valid UTF-8");
	human_count((int64_t)json_object_size(users), "user", NULL, count);
	if (json_object_size(users) &&
	    !api_cmd_confirm(a, "Delete all sessions of %s, with their files?",
			     all ? count : a->argv[0]))
		return err_set(err, ERR_CONFLICT, "cancelled: no session was deleted");
	json_object_foreach (users, id, sessions) {
		if (clean_user(a, id, out, err) < 0 && api_cmd_continue(a, id, !all, err) < 0)
			return -1;
	}
	return api_cmd_write(a, answer, print_cleaned, err);
}

static const struct cli_option cleanup_options[] = {
	{ "all", 0, NULL, CLI_FLAG, offsetof(struct cleanup_opts, all),
	  "delete the sessions of all users" },
	OPTION_YES,
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_cleanup = {
	.name = "cleanup",
	.usage = "USER|--all [--yes]",
	.summary = "delete all sessions of a user, with their files",
	.options = cleanup_options,
	.more = "--all leaves sessions without a user alone; `lodge rm` deletes them.\n",
	.size = sizeof(struct cleanup_opts),
	.most = 1,
	.check = check_cleanup,
	.run = run_cleanup,
};
