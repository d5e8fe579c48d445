/* SPDX-License-Identifier: Apache-2.0 */
/* lodge teams: who works on the projects of a team. */
#include <stdio.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"

/* clang-format off */
#define WHO_ASKS                                                                                   \
	{ "user", 'u', "USER", ask_user, "who asks (default: the application, which may all)" }
/* clang-format on */

/* ---- ls -------------------------------------------------------------------------------------- */

static void say_members(struct ask *a, const json_t *answer)
{
	static const struct table_column columns[] = { { "USER", TABLE_SHRINK }, { "ROLE", 0 } };
	struct table t;
	json_t *m;
	size_t i;

	(void)a;
	table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (json_object_get(answer, "members"), i, m) {
		table_add(&t, ask_text(m, "user"));
		table_add(&t, ask_text(m, "role"));
	}
	table_print(&t, stdout);
}

static int run_list(struct ask *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH];

	if (client_path(path, sizeof(path), err, "/api/teams/%s/members", a->argv[0]) < 0 ||
	    ask_query(path, sizeof(path), "userId", a->user, err) < 0 ||
	    client_call(a->client, "GET", path, NULL, &answer, err) < 0)
		return -1;
	return ask_say(a, answer, say_members, err);
}

static const struct opt list_options[] = { WHO_ASKS, ASK_OPTIONS, { NULL } };

static const struct ask_command list_command = {
	.opt = { .name = "lodge teams ls",
		 .usage = "[--user USER] TEAM",
		 .summary = "Lists who is in a team, and in which role.",
		 .opts = list_options },
	.least = 1,
	.most = 1,
	.prompt = true,
	.run = run_list,
};

/* ---- add, rm --------------------------------------------------------------------------------- */

static void say_member(struct ask *a, const json_t *answer)
{
	(void)a;
	ask_print("%s is %s of %s", ask_text(answer, "user"), ask_text(answer, "role"),
		  ask_text(answer, "team"));
}

static int run_add(struct ask *a, struct err *err)
{
	auto_json json_t *body = json_object(), *answer = NULL;

	if (ask_put(body, "role", a->role ? a->role : "MEMBER") < 0 ||
	    ask_put(body, "userId", a->user) < 0)
		return err_set(err, ERR_INVALID, "an option is no text (UTF-8)");
	if (ask_call(a, "PUT", body, &answer, err, "/api/teams/%s/members/%s", a->argv[0],
		     a->argv[1]) < 0)
		return -1;
	return ask_say(a, answer, say_member, err);
}

static const struct opt add_options[] = {
	{ "role", 'r', "ROLE", ask_role, "VIEWER, MEMBER (default), ADMIN or OWNER" },
	WHO_ASKS,
	ASK_OPTIONS,
	{ NULL },
};

static const struct ask_command add_command = {
	.opt = { .name = "lodge teams add",
		 .usage = "[--role ROLE] [--user USER] TEAM MEMBER",
		 .summary = "Puts a user in a team, or changes the role.",
		 .opts = add_options },
	.least = 2,
	.most = 2,
	.prompt = true,
	.run = run_add,
};

static int run_remove(struct ask *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH];

	if (client_path(path, sizeof(path), err, "/api/teams/%s/members/%s", a->argv[0],
			a->argv[1]) < 0 ||
	    ask_query(path, sizeof(path), "userId", a->user, err) < 0 ||
	    client_call(a->client, "DELETE", path, NULL, &answer, err) < 0)
		return -1;
	if (a->json)
		return ask_say_json(answer, err);
	ask_print("%s is out of %s", a->argv[1], a->argv[0]);
	return 0;
}

static const struct ask_command remove_command = {
	.opt = { .name = "lodge teams rm",
		 .usage = "[--user USER] TEAM MEMBER",
		 .summary = "Takes a user out of a team.",
		 .opts = list_options },
	.least = 2,
	.most = 2,
	.prompt = true,
	.run = run_remove,
};

int cmd_teams(int argc, char **argv)
{
	static const struct ask_sub subs[] = {
		{ "ls", &list_command, "list who is in one" },
		{ "add", &add_command, "put a user in one, or change the role" },
		{ "rm", &remove_command, "take a user out" },
		{ NULL, NULL, NULL },
	};
	static const struct ask_family family = {
		"lodge teams",
		"Who works on the projects of a team. The first project of a team makes it.", subs
	};

	return ask_family_main(&family, argc, argv);
}
