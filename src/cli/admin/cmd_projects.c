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

static void say_projects(struct ask *a, const json_t *answer)
{
	static const struct table_column columns[] = { { "PROJECT", TABLE_SHRINK },
						       { "NAME", TABLE_SHRINK },
						       { "OWNER", TABLE_SHRINK },
						       { "TEAM", TABLE_SHRINK },
						       { "CREATED", 0 } };
	struct table t;
	json_t *p;
	size_t i;

	(void)a;
	table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (json_object_get(answer, "projects"), i, p) {
		table_add(&t, ask_text(p, "id"));
		table_add(&t, ask_text(p, "name"));
		table_add(&t, ask_text(p, "owner"));
		table_add(&t, ask_text(p, "team"));
		table_addf(&t, "%.10s", ask_text(p, "createdAt"));
	}
	table_print(&t, stdout);
	if (i == 0)
		ask_hint("no projects (lodge projects add makes one)");
}

/* Only a token of one user says by itself whom it is for. */
static int say_whose(const struct ask *a, struct err *err)
{
	return !a->user && err->code == ERR_INVALID && strncmp(err->msg, "userId", 6) == 0
		       ? err_set(err, ERR_INVALID,
				 "this key is for many users: say whose with --user")
		       : -1;
}

static int run_list(struct ask *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH] = "/api/projects?limit=1000";

	if (ask_query(path, sizeof(path), "userId", a->user, err) < 0)
		return -1;
	if (ask_list(a, path, "projects", &answer, err) < 0)
		return say_whose(a, err);
	return ask_say(a, answer, say_projects, err);
}

static const struct opt user_options[] = {
	{ "user", 'u', "USER", ask_user, "who asks; not needed with a token of one user" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct ask_command list_command = {
	.opt = { .name = "lodge projects ls",
		 .usage = "[--user USER]",
		 .summary = "Lists the projects of a user and of the user's teams.",
		 .opts = user_options },
	.prompt = true,
	.run = run_list,
};

/* ---- one project ----------------------------------------------------------------------------- */

static void say_project(struct ask *a, const json_t *p)
{
	struct table t;

	(void)a;
	table_init(&t, say_lines, ARRAY_LEN(say_lines));
	say_line(&t, "project", ask_text(p, "id"));
	say_line(&t, "name", ask_text(p, "name"));
	say_line(&t, "owner", ask_text(p, "owner"));
	say_line(&t, "team", ask_text(p, "team"));
	say_line(&t, "created", ask_text(p, "createdAt"));
	table_print(&t, stdout);
}

/* By the user who asks. */
static int call_project(struct ask *a, const char *method, json_t **ret, struct err *err)
{
	char path[ASK_PATH];

	if (client_path(path, sizeof(path), err, "/api/projects/%s", a->argv[0]) < 0 ||
	    ask_query(path, sizeof(path), "userId", a->user, err) < 0)
		return -1;
	return client_call(a->client, method, path, NULL, ret, err) < 0 ? say_whose(a, err) : 0;
}

static int run_show(struct ask *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (call_project(a, "GET", &answer, err) < 0)
		return -1;
	return ask_say(a, answer, say_project, err);
}

static const struct ask_command show_command = {
	.opt = { .name = "lodge projects show",
		 .usage = "[--user USER] PROJECT",
		 .summary = "Shows a project.",
		 .opts = user_options },
	.least = 1,
	.most = 1,
	.prompt = true,
	.run = run_show,
};

static int run_remove(struct ask *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (!ask_sure(a, "Remove project %s, its fragments and everybody's working copies?",
		      a->argv[0]))
		return err_set(err, ERR_CONFLICT, "nothing was removed");
	if (call_project(a, "DELETE", &answer, err) < 0)
		return -1;
	if (a->json)
		return ask_say_json(answer, err);
	ask_print("%s is removed", a->argv[0]);
	return 0;
}

static const struct opt remove_options[] = {
	{ "user", 'u', "USER", ask_user, "who asks; not needed with a token of one user" },
	{ "yes", 'y', NULL, ask_yes, "do not ask" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct ask_command remove_command = {
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
static void say_id(struct ask *a, const json_t *answer)
{
	(void)a;
	ask_print("%s", ask_text(answer, "id"));
}

static int run_add(struct ask *a, struct err *err)
{
	auto_json json_t *body = json_object(), *answer = NULL;

	if (ask_put(body, "name", a->argv[0]) < 0 || ask_put(body, "id", a->id) < 0 ||
	    ask_put(body, "team", a->team) < 0 || ask_put(body, "userId", a->user) < 0)
		return err_set(err, ERR_INVALID, "a name is no text (UTF-8)");
	if (client_call(a->client, "POST", "/api/projects", body, &answer, err) < 0)
		return say_whose(a, err);
	return ask_say(a, answer, say_id, err);
}

static const struct opt add_options[] = {
	{ "user", 'u', "USER", ask_user, "whose it is; not needed with a token of one user" },
	{ "team", 't', "TEAM", ask_team, "whose it is too; a new team is the user's" },
	{ "id", 0, "ID", ask_id, "its id (default: one is made)" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct ask_command add_command = {
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

static void say_fragments(struct ask *a, const json_t *answer)
{
	static const struct table_column columns[] = {
		{ "FRAGMENT", 0 },	 { "TITLE", TABLE_SHRINK }, { "FILES", TABLE_RIGHT },
		{ "SIZE", TABLE_RIGHT }, { "SNAPSHOT", 0 },	    { "CREATED", 0 }
	};
	struct table t;
	json_t *f;
	size_t i;

	(void)a;
	table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (json_object_get(answer, "fragments"), i, f) {
		bool own = !*ask_text(f, "snapshotId"); /* else it has no files of its own */

		table_add(&t, ask_text(f, "id"));
		table_add(&t, ask_text(f, "title"));
		table_addf(&t, own ? "%lld" : "-", (long long)ask_number(f, "fileCount"));
		table_add_bytes(&t, own ? ask_number(f, "bytes") : -1);
		table_add(&t, ask_text(f, "snapshotId"));
		table_addf(&t, "%.10s", ask_text(f, "createdAt"));
	}
	table_print(&t, stdout);
}

static int run_fragments(struct ask *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH];

	if (client_path(path, sizeof(path), err, "/api/projects/%s/fragments?limit=1000",
			a->argv[0]) < 0 ||
	    ask_query(path, sizeof(path), "userId", a->user, err) < 0)
		return -1;
	if (ask_list(a, path, "fragments", &answer, err) < 0)
		return say_whose(a, err);
	return ask_say(a, answer, say_fragments, err);
}

static const struct ask_command fragments_command = {
	.opt = { .name = "lodge projects fragments",
		 .usage = "[--user USER] PROJECT",
		 .summary = "Lists the saved sets of files of a project, newest first.",
		 .opts = user_options },
	.least = 1,
	.most = 1,
	.prompt = true,
	.run = run_fragments,
};

static int run_save(struct ask *a, struct err *err)
{
	auto_json json_t *body = json_object(), *answer = NULL;

	if (ask_put(body, "title", a->title) < 0 || ask_put(body, "snapshotId", a->snapshot) < 0 ||
	    ask_put(body, "userId", a->user) < 0)
		return err_set(err, ERR_INVALID, "an option is no text (UTF-8)");
	if (!a->snapshot && json_object_set_new(body, "fromSandbox", json_true()) < 0)
		return err_sys(err, ENOMEM, "fragment");
	if (ask_call(a, "POST", body, &answer, err, "/api/projects/%s/fragments", a->argv[0]) < 0)
		return say_whose(a, err);
	return ask_say(a, answer, say_id, err);
}

static const struct opt save_options[] = {
	{ "user", 'u', "USER", ask_user,
	  "whose working copy; not needed with a token of one user" },
	{ "title", 0, "TEXT", ask_title, "for people" },
	{ "snapshot", 0, "SNAPSHOT", ask_snapshot, "this snapshot of a session of the user" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct ask_command save_command = {
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
	static const struct ask_family family = { "lodge projects",
						  "Bodies of work that users move between.", subs };

	return ask_family_main(&family, argc, argv);
}

/* ---- switch ---------------------------------------------------------------------------------- */

static void say_switched(struct ask *a, const json_t *answer)
{
	char count[HUMAN_TEXT];

	(void)a;
	ask_print("%s", ask_text(answer, "message"));
	ask_print("sandbox %s, %s restored", ask_text(answer, "result.sandboxId"),
		  human_count(ask_number(answer, "result.restoredFiles"), "file", NULL, count));
	if (json_is_true(json_object_get(json_object_get(answer, "result"), "stateLost")))
		ask_print("the working copy was lost (%s): the latest fragment serves",
			  ask_text(answer, "result.cause.text"));
}

static int run_switch(struct ask *a, struct err *err)
{
	auto_json json_t *body = json_object(), *answer = NULL;

	if (ask_put(body, "projectId", a->argv[0]) < 0 || ask_put(body, "userId", a->user) < 0 ||
	    ask_put(body, "fragmentId", a->fragment) < 0)
		return err_set(err, ERR_INVALID, "a name is no text (UTF-8)");
	if (client_call(a->client, "POST", "/api/switch-project", body, &answer, err) < 0)
		return say_whose(a, err);
	return ask_say(a, answer, say_switched, err);
}

static const struct opt switch_options[] = {
	{ "user", 'u', "USER", ask_user, "who moves; not needed with a token of one user" },
	{ "fragment", 0, "ID", ask_fragment, "to exactly these files, not to the working copy" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_switch(int argc, char **argv)
{
	static const struct ask_command command = {
		.opt = { .name = "lodge switch",
			 .usage = "--user USER [--fragment ID] PROJECT",
			 .summary = "Moves the sandbox of a user to a project.",
			 .opts = switch_options },
		.least = 1,
		.most = 1,
		.run = run_switch,
	};

	return ask_main(&command, argc, argv);
}
