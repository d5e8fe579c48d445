/* SPDX-License-Identifier: Apache-2.0 */
/* lodge projects, switch: users who move between bodies of work. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"
#include "cli/core/print_session.h"

/* ---- ls -------------------------------------------------------------------------------------- */

static void say_projects(struct api_cmd *a, const json_t *answer)
{
	static const struct text_table_column columns[] = { { "PROJECT", TABLE_SHRINK },
							    { "NAME", TABLE_SHRINK },
							    { "OWNER", TABLE_SHRINK },
							    { "TEAM", TABLE_SHRINK },
							    { "CREATED", 0 } };
	struct text_table t;
	json_t *p;
	size_t i;

	(void)a;
	text_table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (json_object_get(answer, "projects"), i, p) {
		text_table_add(&t, api_cmd_text(p, "id"));
		text_table_add(&t, api_cmd_text(p, "name"));
		text_table_add(&t, api_cmd_text(p, "owner"));
		text_table_add(&t, api_cmd_text(p, "team"));
		text_table_addf(&t, "%.10s", api_cmd_text(p, "createdAt"));
	}
	text_table_print(&t, stdout);
	if (i == 0)
		api_cmd_hint("no projects (lodge projects add makes one)");
}

/* Only a token of one user says by itself whom it is for. */
static int say_whose(const struct api_cmd *a, struct err *err)
{
	return !a->user && err->code == ERR_INVALID && strncmp(err->msg, "userId", 6) == 0
		       ? err_set(err, ERR_INVALID,
				 "this key is for many users: say whose with --user")
		       : -1;
}

static int exec_list(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH] = "/api/projects?limit=1000";

	if (api_cmd_query(path, sizeof(path), "userId", a->user, err) < 0)
		return -1;
	if (api_cmd_list(a, path, "projects", &answer, err) < 0)
		return say_whose(a, err);
	return api_cmd_write(a, answer, say_projects, err);
}

static const struct cli_option user_options[] = {
	{ "user", 'u', "USER", ask_user, "who asks; not needed with a token of one user" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command list_command = {
	.opt = { .name = "lodge projects ls",
		 .usage = "[--user USER]",
		 .summary = "Lists the projects of a user and of the user's teams.",
		 .opts = user_options },
	.prompt = true,
	.run = exec_list,
};

/* ---- one project ----------------------------------------------------------------------------- */

static void say_project(struct api_cmd *a, const json_t *p)
{
	struct text_table t;

	(void)a;
	text_table_init(&t, say_lines, ARRAY_LEN(say_lines));
	print_line(&t, "project", api_cmd_text(p, "id"));
	print_line(&t, "name", api_cmd_text(p, "name"));
	print_line(&t, "owner", api_cmd_text(p, "owner"));
	print_line(&t, "team", api_cmd_text(p, "team"));
	print_line(&t, "created", api_cmd_text(p, "createdAt"));
	text_table_print(&t, stdout);
}

/* By the user who asks. */
static int call_project(struct api_cmd *a, const char *method, json_t **ret, struct err *err)
{
	char path[ASK_PATH];

	if (client_path(path, sizeof(path), err, "/api/projects/%s", a->argv[0]) < 0 ||
	    api_cmd_query(path, sizeof(path), "userId", a->user, err) < 0)
		return -1;
	return client_call(a->client, method, path, NULL, ret, err) < 0 ? say_whose(a, err) : 0;
}

static int run_show(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (call_project(a, "GET", &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, say_project, err);
}

static const struct api_cmd_command show_command = {
	.opt = { .name = "lodge projects show",
		 .usage = "[--user USER] PROJECT",
		 .summary = "Shows a project.",
		 .opts = user_options },
	.least = 1,
	.most = 1,
	.prompt = true,
	.run = run_show,
};

static int run_remove(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (!api_cmd_sure(a, "Remove project %s, its fragments and everybody's working copies?",
			  a->argv[0]))
		return err_set(err, ERR_CONFLICT, "nothing was removed");
	if (call_project(a, "DELETE", &answer, err) < 0)
		return -1;
	if (a->json)
		return api_cmd_write_json(answer, err);
	api_cmd_print("%s is removed", a->argv[0]);
	return 0;
}

static const struct cli_option remove_options[] = {
	{ "user", 'u', "USER", ask_user, "who asks; not needed with a token of one user" },
	{ "yes", 'y', NULL, ask_yes, "do not ask" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command remove_command = {
	.opt = { .name = "lodge projects rm",
		 .usage = "[--user USER] [--yes] PROJECT",
		 .summary = "Removes a project, with its fragments and all working copies.",
		 .opts = remove_options,
		 .more = ASK_ASKS },
	.least = 1,
	.most = 1,
	.run = run_remove,
};

/* ---- add ------------------------------------------------------------------------------------- */

/* The id alone: what other commands ask for. */
static void say_id(struct api_cmd *a, const json_t *answer)
{
	(void)a;
	api_cmd_print("%s", api_cmd_text(answer, "id"));
}

static int run_add(struct api_cmd *a, struct err *err)
{
	auto_json json_t *body = json_object(), *answer = NULL;

	if (api_cmd_put(body, "name", a->argv[0]) < 0 || api_cmd_put(body, "id", a->id) < 0 ||
	    api_cmd_put(body, "team", a->team) < 0 || api_cmd_put(body, "userId", a->user) < 0)
		return err_set(err, ERR_INVALID, "a name is no text (UTF-8)");
	if (client_call(a->client, "POST", "/api/projects", body, &answer, err) < 0)
		return say_whose(a, err);
	return api_cmd_write(a, answer, say_id, err);
}

static const struct cli_option add_options[] = {
	{ "user", 'u', "USER", ask_user, "whose it is; not needed with a token of one user" },
	{ "team", 't', "TEAM", ask_team, "whose it is too; a new team is the user's" },
	{ "id", 0, "ID", ask_id, "its id (default: one is made)" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command add_command = {
	.opt = { .name = "lodge projects add",
		 .usage = "[--user USER] [--team TEAM] [--id ID] NAME",
		 .summary = "Makes a project and prints its id.",
		 .opts = add_options,
		 .more = "lodge switch moves the user's sandbox to it.\n" },
	.least = 1,
	.most = 1,
	.prompt = true,
	.run = run_add,
};

/* ---- fragments ------------------------------------------------------------------------------- */

static void say_fragments(struct api_cmd *a, const json_t *answer)
{
	static const struct text_table_column columns[] = {
		{ "FRAGMENT", 0 },	 { "TITLE", TABLE_SHRINK }, { "FILES", TABLE_RIGHT },
		{ "SIZE", TABLE_RIGHT }, { "SNAPSHOT", 0 },	    { "CREATED", 0 }
	};
	struct text_table t;
	json_t *f;
	size_t i;

	(void)a;
	text_table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (json_object_get(answer, "fragments"), i, f) {
		bool own = !*api_cmd_text(f, "snapshotId"); /* else it has no files of its own */

		text_table_add(&t, api_cmd_text(f, "id"));
		text_table_add(&t, api_cmd_text(f, "title"));
		text_table_addf(&t, own ? "%lld" : "-", (long long)api_cmd_number(f, "fileCount"));
		text_table_add_bytes(&t, own ? api_cmd_number(f, "bytes") : -1);
		text_table_add(&t, api_cmd_text(f, "snapshotId"));
		text_table_addf(&t, "%.10s", api_cmd_text(f, "createdAt"));
	}
	text_table_print(&t, stdout);
}

static int run_fragments(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH];

	if (client_path(path, sizeof(path), err, "/api/projects/%s/fragments?limit=1000",
			a->argv[0]) < 0 ||
	    api_cmd_query(path, sizeof(path), "userId", a->user, err) < 0)
		return -1;
	if (api_cmd_list(a, path, "fragments", &answer, err) < 0)
		return say_whose(a, err);
	return api_cmd_write(a, answer, say_fragments, err);
}

static const struct api_cmd_command fragments_command = {
	.opt = { .name = "lodge projects fragments",
		 .usage = "[--user USER] PROJECT",
		 .summary = "Lists the saved sets of files of a project, newest first.",
		 .opts = user_options },
	.least = 1,
	.most = 1,
	.prompt = true,
	.run = run_fragments,
};

static int run_save(struct api_cmd *a, struct err *err)
{
	auto_json json_t *body = json_object(), *answer = NULL;

	if (api_cmd_put(body, "title", a->title) < 0 ||
	    api_cmd_put(body, "snapshotId", a->snapshot) < 0 ||
	    api_cmd_put(body, "userId", a->user) < 0)
		return err_set(err, ERR_INVALID, "an option is no text (UTF-8)");
	if (!a->snapshot && json_object_set_new(body, "fromSandbox", json_true()) < 0)
		return err_sys(err, ENOMEM, "fragment");
	if (api_cmd_call(a, "POST", body, &answer, err, "/api/projects/%s/fragments", a->argv[0]) <
	    0)
		return say_whose(a, err);
	return api_cmd_write(a, answer, say_id, err);
}

static const struct cli_option save_options[] = {
	{ "user", 'u', "USER", ask_user,
	  "whose working copy; not needed with a token of one user" },
	{ "title", 0, "TEXT", ask_title, "for people" },
	{ "snapshot", 0, "SNAPSHOT", ask_snapshot, "this snapshot of a session of the user" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command save_command = {
	.opt = { .name = "lodge projects save",
		 .usage = "[--user USER] [--title TEXT] [--snapshot SNAPSHOT] PROJECT",
		 .summary = "Saves the files of the user's working copy as a fragment, and prints "
			    "its id.",
		 .opts = save_options },
	.least = 1,
	.most = 1,
	.run = run_save,
};

int cmd_projects(int argc, char **argv)
{
	static const struct ask_sub subs[] = {
		{ "ls", &list_command, "list projects" },
		{ "show", &show_command, "show one" },
		{ "add", &add_command, "make one" },
		{ "rm", &remove_command, "remove one" },
		{ "fragments", &fragments_command, "list the saved files of one" },
		{ "save", &save_command, "save the files of a working copy" },
		{ NULL, NULL, NULL },
	};
	static const struct api_cmd_family family = { "lodge projects",
						      "Bodies of work that users move between.",
						      subs };

	return api_cmd_family_main(&family, argc, argv);
}

/* ---- switch ---------------------------------------------------------------------------------- */

static void say_switched(struct api_cmd *a, const json_t *answer)
{
	char count[HUMAN_TEXT];

	(void)a;
	api_cmd_print("%s", api_cmd_text(answer, "message"));
	api_cmd_print(
		"sandbox %s, %s restored", api_cmd_text(answer, "result.sandboxId"),
		human_count(api_cmd_number(answer, "result.restoredFiles"), "file", NULL, count));
	if (json_is_true(json_object_get(json_object_get(answer, "result"), "stateLost")))
		api_cmd_print("the working copy was lost (%s): the latest fragment serves",
			      api_cmd_text(answer, "result.cause.text"));
}

static int run_switch(struct api_cmd *a, struct err *err)
{
	auto_json json_t *body = json_object(), *answer = NULL;

	if (api_cmd_put(body, "projectId", a->argv[0]) < 0 ||
	    api_cmd_put(body, "userId", a->user) < 0 ||
	    api_cmd_put(body, "fragmentId", a->fragment) < 0)
		return err_set(err, ERR_INVALID, "a name is no text (UTF-8)");
	if (client_call(a->client, "POST", "/api/switch-project", body, &answer, err) < 0)
		return say_whose(a, err);
	return api_cmd_write(a, answer, say_switched, err);
}

static const struct cli_option switch_options[] = {
	{ "user", 'u', "USER", ask_user, "who moves; not needed with a token of one user" },
	{ "fragment", 0, "ID", ask_fragment, "to exactly these files, not to the working copy" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_switch(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge switch",
			 .usage = "--user USER [--fragment ID] PROJECT",
			 .summary = "Moves the sandbox of a user to a project.",
			 .opts = switch_options },
		.least = 1,
		.most = 1,
		.run = run_switch,
	};

	return api_cmd_main(&command, argc, argv);
}
