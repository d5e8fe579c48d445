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

static const struct field fields[] = {
	{ "USER", TABLE_SHRINK, "user" },
	{ "ROLE", 0, "role" },
	{ NULL },
};

static const struct cli_option user_options[] = { OPTION_USER, API_OPTIONS, { NULL } };

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
	COMMAND("team ls", "[--user USER] TEAM", "list the members of a team and their roles",
		user_options, sizeof(struct team_opts), .prompt = true, .method = "GET",
		.path = "/api/teams/%s/members", .rows = "members", .fields = fields),
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
	.summary = "manage the members of teams",
	.more = "The first project of a team creates the team.\n",
	.subs = subs,
};
