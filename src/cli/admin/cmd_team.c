/* SPDX-License-Identifier: Apache-2.0 */
/* lodge team: the members of teams, who share projects. */
#include "cli/core/api_cmd.h"

struct team_opts {
	struct api_cmd a;
	const char *user, *role;
};

/* clang-format off */
#define OPTION_USER                                                                                \
	{ "user", 0, "USER", CLI_TEXT, offsetof(struct team_opts, user),                           \
	  "act as this user (the application, which may do all)", "userId", .old_letter = 'u' }
/* clang-format on */

static const struct cli_option user_options[] = { OPTION_USER, API_OPTIONS, { NULL } };

/* ---- ls -------------------------------------------------------------------------------------- */

static const struct field member_fields[] = {
	{ "USER", TABLE_SHRINK, "user" },
	{ "ROLE", 0, "role" },
	{ NULL },
};

static const struct field team_fields[] = {
	{ "TEAM", TABLE_SHRINK, "team" },
	{ "MEMBERS", TABLE_RIGHT, "members", field_count },
	{ "PROJECTS", TABLE_RIGHT, "projects", field_count },
	{ "ROLE", 0, "role" },
	{ NULL },
};

static void print_list(struct api_cmd *a, const json_t *answer)
{
	const json_t *list = json_object_get(answer, a->argc ? "members" : "teams");

	field_print_table(a->argc ? member_fields : team_fields, list);
	if (!a->argc && !json_array_size(list))
		api_cmd_hint("no teams (create one: lodge team add TEAM MEMBER --role OWNER)");
}

static int run_ls(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	const char *user = ((struct team_opts *)a)->user;
	char path[API_PATH] = "/v1/teams?limit=1000";

	if (!a->argc) {
		if (api_cmd_query(path, sizeof(path), "user", user, err) < 0 ||
		    api_cmd_list(a, path, "teams", &answer, err) < 0)
			return -1;
	} else if (client_path(path, sizeof(path), err, "/api/teams/%s/members", a->argv[0]) < 0 ||
		   api_cmd_query(path, sizeof(path), "userId", user, err) < 0 ||
		   client_call(a->client, "GET", path, NULL, &answer, err) < 0) {
		return -1;
	}
	return api_cmd_write(a, answer, print_list, err);
}

/* ---- members --------------------------------------------------------------------------------- */

static void default_role(struct api_cmd *a)
{
	((struct team_opts *)a)->role = "MEMBER";
}

static void print_member(struct api_cmd *a, const json_t *answer)
{
	(void)a;
	api_cmd_print("%s is %s of %s", member_text(answer, "user"), member_text(answer, "role"),
		      member_text(answer, "team"));
}

static const struct cli_option add_options[] = {
	{ "role", 'r', "ROLE", CLI_TEXT, offsetof(struct team_opts, role),
	  "VIEWER, MEMBER (default), ADMIN or OWNER", "role" },
	OPTION_USER,
	API_OPTIONS,
	{ NULL },
};

static const struct command *const subs[] = {
	COMMAND("team ls", "[--user USER] [TEAM]", "list all teams, or the members of one",
		user_options, sizeof(struct team_opts), .most = 1, .prompt = true, .run = run_ls),
	COMMAND("team add", "[--role ROLE] [--user USER] TEAM MEMBER",
		"add a member to a team, or change the role", add_options, sizeof(struct team_opts),
		.prompt = true, .init = default_role, .method = "PUT",
		.path = "/api/teams/%s/members/%s", .print = print_member),
	COMMAND("team rm", "[--user USER] TEAM MEMBER", "remove a member from a team", user_options,
		sizeof(struct team_opts), .prompt = true, .method = "DELETE",
		.path = "/api/teams/%s/members/%s", .done = "removed {1} from {0}"),
	NULL,
};

const struct command cmd_team = {
	.name = "team",
	.summary = "manage teams and their members",
	.more = "The first project or member of a team creates the team.\n",
	.subs = subs,
};
