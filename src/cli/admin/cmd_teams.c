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

static void say_members(struct api_cmd *a, const json_t *answer)
{
	static const struct text_table_column columns[] = { { "USER", TABLE_SHRINK },
							    { "ROLE", 0 } };
	struct text_table t;
	json_t *m;
	size_t i;

	(void)a;
	text_table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (json_object_get(answer, "members"), i, m) {
		text_table_add(&t, api_cmd_text(m, "user"));
		text_table_add(&t, api_cmd_text(m, "role"));
	}
	text_table_print(&t, stdout);
}

static int exec_list(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH];

	if (client_path(path, sizeof(path), err, "/api/teams/%s/members", a->argv[0]) < 0 ||
	    api_cmd_query(path, sizeof(path), "userId", a->user, err) < 0 ||
	    client_call(a->client, "GET", path, NULL, &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, say_members, err);
}

static const struct cli_option list_options[] = { WHO_ASKS, ASK_OPTIONS, { NULL } };

static const struct api_cmd_command list_command = {
	.opt = { .name = "lodge teams ls",
		 .usage = "[--user USER] TEAM",
		 .summary = "Lists who is in a team, and in which role.",
		 .opts = list_options },
	.least = 1,
	.most = 1,
	.prompt = true,
	.run = exec_list,
};

/* ---- add, rm --------------------------------------------------------------------------------- */

static void say_member(struct api_cmd *a, const json_t *answer)
{
	(void)a;
	api_cmd_print("%s is %s of %s", api_cmd_text(answer, "user"), api_cmd_text(answer, "role"),
		      api_cmd_text(answer, "team"));
}

static int run_add(struct api_cmd *a, struct err *err)
{
	auto_json json_t *body = json_object(), *answer = NULL;

	if (api_cmd_put(body, "role", a->role ? a->role : "MEMBER") < 0 ||
	    api_cmd_put(body, "userId", a->user) < 0)
		return err_set(err, ERR_INVALID, "an option is no text (UTF-8)");
	if (api_cmd_call(a, "PUT", body, &answer, err, "/api/teams/%s/members/%s", a->argv[0],
			 a->argv[1]) < 0)
		return -1;
	return api_cmd_write(a, answer, say_member, err);
}

static const struct cli_option add_options[] = {
	{ "role", 'r', "ROLE", ask_role, "VIEWER, MEMBER (default), ADMIN or OWNER" },
	WHO_ASKS,
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command add_command = {
	.opt = { .name = "lodge teams add",
		 .usage = "[--role ROLE] [--user USER] TEAM MEMBER",
		 .summary = "Puts a user in a team, or changes the role.",
		 .opts = add_options },
	.least = 2,
	.most = 2,
	.prompt = true,
	.run = run_add,
};

static int run_remove(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH];

	if (client_path(path, sizeof(path), err, "/api/teams/%s/members/%s", a->argv[0],
			a->argv[1]) < 0 ||
	    api_cmd_query(path, sizeof(path), "userId", a->user, err) < 0 ||
	    client_call(a->client, "DELETE", path, NULL, &answer, err) < 0)
		return -1;
	if (a->json)
		return api_cmd_write_json(answer, err);
	api_cmd_print("%s is out of %s", a->argv[1], a->argv[0]);
	return 0;
}

static const struct api_cmd_command remove_command = {
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
	static const struct api_cmd_family family = {
		"lodge teams",
		"Who works on the projects of a team. The first project of a team makes it.", subs
	};

	return api_cmd_family_main(&family, argc, argv);
}
