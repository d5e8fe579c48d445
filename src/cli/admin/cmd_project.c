/* SPDX-License-Identifier: Apache-2.0 */
/* lodge project, switch: projects, and the sandboxes of users that move between them. */
#include <stdio.h>
#include <string.h>

#include "cli/core/api_cmd.h"

struct project_opts {
	struct api_cmd a;
	const char *user, *team, *id, *title, *snapshot, *fragment;
};

/* clang-format off */
#define OPTION_USER(text)                                                                          \
	{ "user", 0, "USER", CLI_TEXT, offsetof(struct project_opts, user), text, "userId",        \
	  .old_letter = 'u' }
/* clang-format on */

/* Only a token of one user implies the user. */
static int explain_user(struct api_cmd *a, struct err *err)
{
	if (((struct project_opts *)a)->user || err->code != ERR_INVALID ||
	    strncmp(err->msg, "userId", 6) != 0)
		return -1;
	return err_set(err, ERR_INVALID, "this key serves many users: choose one with --user");
}

static const struct cli_option user_options[] = {
	OPTION_USER("act as this user (not needed with a user token)"),
	API_OPTIONS,
	{ NULL },
};

static const struct field ls_fields[] = {
	{ "PROJECT", TABLE_SHRINK, "id" },	   { "NAME", TABLE_SHRINK, "name" },
	{ "OWNER", TABLE_SHRINK, "owner" },	   { "TEAM", TABLE_SHRINK, "team" },
	{ "CREATED", 0, "createdAt", field_date }, { NULL },
};

static const struct field show_fields[] = {
	{ "project", 0, "id" }, { "name", 0, "name" },	       { "owner", 0, "owner" },
	{ "team", 0, "team" },	{ "created", 0, "createdAt" }, { NULL },
};

static const struct cli_option rm_options[] = {
	OPTION_USER("act as this user (not needed with a user token)"),
	OPTION_YES,
	API_OPTIONS,
	{ NULL },
};

static const struct cli_option add_options[] = {
	OPTION_USER("owner of the project (not needed with a user token)"),
	{ "team", 0, "TEAM", CLI_TEXT, offsetof(struct project_opts, team),
	  "team that shares it; the user owns a new team", "team", .old_letter = 't' },
	{ "id", 0, "ID", CLI_TEXT, offsetof(struct project_opts, id), "its id (a random one)",
	  "id" },
	API_OPTIONS,
	{ NULL },
};

/* A fragment that refers to a snapshot has no files of its own. */
static const char *own_files(const json_t *f, const char *path, char buf[FIELD_TEXT])
{
	if (*member_text(f, "snapshotId"))
		return "";
	return (strcmp(path, "bytes") == 0 ? field_bytes : field_count)(f, path, buf);
}

static const struct field fragment_fields[] = {
	{ "FRAGMENT", 0, "id" },
	{ "TITLE", TABLE_SHRINK, "title" },
	{ "FILES", TABLE_RIGHT, "fileCount", own_files },
	{ "SIZE", TABLE_RIGHT, "bytes", own_files },
	{ "SNAPSHOT", 0, "snapshotId" },
	{ "CREATED", 0, "createdAt", field_date },
	{ NULL },
};

static int fill_source(struct api_cmd *a, json_t *body, struct err *err)
{
	(void)err;
	return ((struct project_opts *)a)->snapshot
		       ? 0
		       : json_object_set_new(body, "fromSandbox", json_true());
}

static const struct cli_option save_options[] = {
	OPTION_USER("owner of the working copy (not needed with a user token)"),
	{ "title", 0, "TEXT", CLI_TEXT, offsetof(struct project_opts, title), "label for people",
	  "title" },
	{ "snapshot", 0, "SNAPSHOT", CLI_TEXT, offsetof(struct project_opts, snapshot),
	  "save this snapshot of a session of the user", "snapshotId" },
	API_OPTIONS,
	{ NULL },
};

#define PROJECT(name, usage, summary, options, ...)                                                \
	COMMAND(name, usage, summary, options, sizeof(struct project_opts),                        \
		.explain = explain_user, __VA_ARGS__)

static const struct command *const subs[] = {
	PROJECT("project ls", "[--user USER]", "list the projects of a user and of their teams",
		user_options, .prompt = true, .method = "GET", .path = "/api/projects",
		.rows = "projects", .paged = true, .fields = ls_fields,
		.empty = "no projects (create one: lodge project create)"),
	PROJECT("project inspect", "[--user USER] PROJECT", "show one project", user_options,
		.alias = "show", .prompt = true, .method = "GET", .path = "/api/projects/%s",
		.record = "", .fields = show_fields),
	PROJECT("project create", "[--user USER] [--team TEAM] [--id ID] NAME",
		"create a project and print its id", add_options, .alias = "add", .prompt = true,
		.method = "POST", .path = "/api/projects", .operand = "name", .plain = "id",
		.more = "`lodge switch` moves the user's sandbox to it.\n"),
	PROJECT("project rm", "[--user USER] [--yes] PROJECT",
		"delete a project, its fragments and working copies", rm_options,
		.method = "DELETE", .path = "/api/projects/%s", .done = "removed {0}",
		.confirm = "Delete project {0}, its fragments and every user's working copy?",
		.cancelled = "no project was deleted"),
	PROJECT("project fragments", "[--user USER] PROJECT",
		"list the fragments of a project, newest first", user_options, .prompt = true,
		.method = "GET", .path = "/api/projects/%s/fragments", .rows = "fragments",
		.paged = true, .fields = fragment_fields,
		.more = "A fragment is a saved set of files. `lodge project save` saves one.\n"),
	PROJECT("project save", "[--user USER] [--title TEXT] [--snapshot SNAPSHOT] PROJECT",
		"save the user's working copy as a fragment", save_options, .method = "POST",
		.path = "/api/projects/%s/fragments", .fill = fill_source, .plain = "id",
		.more = "Prints the id of the fragment.\n"),
	NULL,
};

const struct command cmd_project = { "project", NULL, "create, list and delete projects",
				     .subs = subs };

/* ---- switch ---------------------------------------------------------------------------------- */

static void print_switched(struct api_cmd *a, const json_t *answer)
{
	char count[HUMAN_TEXT];

	(void)a;
	api_cmd_print("%s", member_text(answer, "message"));
	api_cmd_print(
		"sandbox %s, %s restored", member_text(answer, "result.sandboxId"),
		human_count(member_number(answer, "result.restoredFiles"), "file", NULL, count));
	if (member_true(answer, "result.stateLost"))
		api_cmd_print("the working copy was lost (%s); restored the latest fragment",
			      member_text(answer, "result.cause.text"));
}

static const struct cli_option switch_options[] = {
	OPTION_USER("user to move (not needed with a user token)"),
	{ "fragment", 0, "ID", CLI_TEXT, offsetof(struct project_opts, fragment),
	  "restore this fragment instead of the working copy", "fragmentId" },
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_switch = {
	.name = "switch",
	.usage = "--user USER [--fragment ID] PROJECT",
	.summary = "move a user's sandbox to a project",
	.options = switch_options,
	.size = sizeof(struct project_opts),
	.method = "POST",
	.path = "/api/switch-project",
	.operand = "projectId",
	.explain = explain_user,
	.print = print_switched,
};
