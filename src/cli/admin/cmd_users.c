/* SPDX-License-Identifier: Apache-2.0 */
/* lodge users, cleanup: who has sandboxes, and an end to them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"
#include "cli/admin/users.h"

/* ---- users ----------------------------------------------------------------------------------- */

/* Sessions by user, in the order in which they were made; `live`: those with a sandbox alone. */
static int gather(struct api_cmd *a, bool live, json_t **ret, struct err *err)
{
	auto_json json_t *list = NULL, *users = json_object();
	json_t *s;
	size_t i;

	if (client_list(a->client, "/v1/sessions?limit=1000", "sessions", &list, err) < 0)
		return -1;
	json_array_foreach (list, i, s) {
		const char *user = api_cmd_text(s, "user");

		if (!*user || (live && !api_cmd_is(s, "runtime", "live")))
			continue;
		if (!json_object_get(users, user))
			json_object_set_new(users, user, json_array());
		json_array_append(json_object_get(users, user), s);
	}
	*ret = steal_ptr(&users);
	return 0;
}

/* A user whose name no path can have, or who went meanwhile, is known by the name alone. */
static int ask_user_record(struct api_cmd *a, const char *id, json_t **ret, struct err *err)
{
	if (api_cmd_call(a, "GET", NULL, ret, err, "/v1/users/%s", id) == 0)
		return 0;
	if (err->code != ERR_INVALID && err->code != ERR_NOT_FOUND)
		return -1;
	*ret = json_pack("{s:{s:s}}", "user", "id", id);
	return 0;
}

static void add_session(struct text_table *t, const json_t *user, const json_t *s)
{
	int64_t now = clock_wall_ms();

	text_table_add(t, api_cmd_text(user, "name"));
	text_table_add(t, api_cmd_text(user, "email"));
	text_table_add(t, api_cmd_text(user, "id"));
	text_table_add(t, api_cmd_text(s, "sandbox"));
	text_table_add(t, api_cmd_text(s, "project"));
	text_table_add_span(t, now - api_cmd_number(s, "started_at"));
	text_table_add_span(t, now - api_cmd_number(s, "last_activity_at"));
}

static void say_users(struct api_cmd *a, const json_t *answer)
{
	static const struct text_table_column columns[] = {
		{ "NAME", TABLE_SHRINK },    { "EMAIL", TABLE_SHRINK },
		{ "USER", TABLE_SHRINK },    { "SANDBOX", 0 },
		{ "PROJECT", TABLE_SHRINK }, { "CREATED", TABLE_RIGHT },
		{ "LAST USED", TABLE_RIGHT }
	};
	struct text_table t;
	json_t *u, *s;
	size_t i, k;

	(void)a;
	text_table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (json_object_get(answer, "users"), i, u) {
		json_array_foreach (json_object_get(u, "sessions"), k, s) {
			add_session(&t, u, s);
		}
	}
	text_table_print(&t, stdout);
	if (i == 0)
		api_cmd_hint("no user has a live sandbox (lodge ls lists all sessions)");
}

/* {"users": [{what the service knows of the user, sessions: [...]}]} */
static int run_users(struct api_cmd *a, struct err *err)
{
	auto_json json_t *users = NULL, *answer = NULL;
	json_t *sessions, *out = json_array();
	const char *id;

	answer = json_pack("{s:o}", "users", out);
	if (gather(a, true, &users, err) < 0)
		return -1;
	json_object_foreach (users, id, sessions) {
		auto_json json_t *one = NULL;

		if (ask_user_record(a, id, &one, err) < 0)
			return -1;
		json_object_set(json_object_get(one, "user"), "sessions", sessions);
		json_array_append(out, json_object_get(one, "user"));
	}
	return api_cmd_write(a, answer, say_users, err);
}

static const struct cli_option users_options[] = { ASK_OPTIONS, { NULL } };

static const struct api_cmd_command users_command = {
	.opt = { .name = "lodge users ls",
		 .usage = "[--json]",
		 .summary = "Lists users with a live sandbox.",
		 .opts = users_options },
	.prompt = true,
	.run = run_users,
};

int cmd_users(int argc, char **argv)
{
	static const struct ask_sub subs[] = {
		{ "ls", &users_command, "list users with a live sandbox" },
		{ "show", &users_show, "show one" },
		{ "quota", &users_quota, "show or change what one may have" },
		{ NULL, NULL, NULL },
	};
	static const struct api_cmd_family family = { "lodge users", "What end users have.", subs };

	return api_cmd_family_main(&family, argc, argv);
}

/* ---- cleanup --------------------------------------------------------------------------------- */

/* That call has names of its own for what it did. */
static int clean_one(struct api_cmd *a, const char *user, json_t *out, struct err *err)
{
	auto_json json_t *body = json_pack("{s:s}", "userId", user), *answer = NULL;
	json_t *r, *one;

	if (!body)
		return err_set(err, ERR_INVALID, "USER: no text (UTF-8)");
	if (client_call(a->client, "POST", "/api/cleanup-sandboxes", body, &answer, err) < 0)
		return -1;
	r = json_object_get(answer, "results");
	one = json_pack("{s:s, s:O, s:O}", "id", user, "ended",
			json_object_get(r, "killedSandboxes"), "failed",
			json_object_get(r, "failedSandboxes"));
	if (!one || json_array_append_new(out, one) < 0)
		return err_set(err, ERR_UNAVAILABLE, "the answer has no results");
	if (json_array_size(json_object_get(one, "failed")))
		a->told = true; /* the exit status tells */
	return 0;
}

static void say_names(const json_t *names, const char *what)
{
	json_t *name;
	size_t i;

	json_array_foreach (names, i, name) {
		api_cmd_print("  %s  %s", what, api_cmd_text(name, ""));
	}
}

static void say_cleaned(struct api_cmd *a, const json_t *answer)
{
	const json_t *users = json_object_get(answer, "users");
	json_t *one;
	size_t i;

	(void)a;
	if (!json_array_size(users))
		puts("nothing to destroy: no user has a session");
	json_array_foreach (users, i, one) {
		const json_t *ended = json_object_get(one, "ended"),
			     *failed = json_object_get(one, "failed");

		api_cmd_print("%s: %zu ended, %zu failed", api_cmd_text(one, "id"),
			      json_array_size(ended), json_array_size(failed));
		say_names(ended, "ended ");
		say_names(failed, "failed");
	}
}

static int clean_all(struct api_cmd *a, json_t *out, struct err *err)
{
	auto_json json_t *users = NULL;
	char count[HUMAN_TEXT];
	json_t *sessions;
	const char *id;

	if (gather(a, false, &users, err) < 0)
		return -1;
	if (!json_object_size(users))
		return 0;
	if (!api_cmd_sure(a, "Destroy all sessions of %s, with their files?",
			  human_count((int64_t)json_object_size(users), "user", NULL, count)))
		return err_set(err, ERR_CONFLICT, "nothing was destroyed");
	json_object_foreach (users, id, sessions) {
		if (clean_one(a, id, out, err) < 0 && api_cmd_go_on(a, id, 0, err) < 0)
			return -1;
	}
	return 0;
}

static int check_cleanup(struct api_cmd *a, struct err *err)
{
	return a->all != (a->argc == 1) ? 0 : api_cmd_wrong(a, err, "give a user, or --all");
}

static int clean_named(struct api_cmd *a, json_t *out, struct err *err)
{
	if (!api_cmd_sure(a, "Destroy all sessions of %s, with their files?", a->argv[0]))
		return err_set(err, ERR_CONFLICT, "nothing was destroyed");
	return clean_one(a, a->argv[0], out, err);
}

/* {"users": [{"id": ..., "ended": [...], "failed": [...]}]} */
static int run_cleanup(struct api_cmd *a, struct err *err)
{
	auto_json json_t *out = json_array(), *answer = json_pack("{s:O}", "users", out);

	if ((a->all ? clean_all(a, out, err) : clean_named(a, out, err)) < 0)
		return -1;
	return api_cmd_write(a, answer, say_cleaned, err);
}

static const struct cli_option cleanup_options[] = {
	{ "all", 0, NULL, ask_all, "of all users" },
	{ "yes", 'y', NULL, ask_yes, "do not ask" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_cleanup(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge cleanup",
			 .usage = "USER|--all [--yes]",
			 .summary = "Destroys all sessions of a user, with their files.",
			 .opts = cleanup_options,
			 .more = "--all leaves sessions that have no user; lodge rm destroys "
				 "them.\n" ASK_ASKS },
		.most = 1,
		.check = check_cleanup,
		.run = run_cleanup,
	};

	return api_cmd_main(&command, argc, argv);
}
