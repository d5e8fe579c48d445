/* SPDX-License-Identifier: Apache-2.0 */
/* lodge projects, switch: users who move between bodies of work. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/ask.h"
#include "cli/cmd.h"

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
}

/* Only a token of one user says by itself whom it is for. */
static int say_whose(const struct ask *a, struct err *err)
{
	return !a->user && err->code == ERR_INVALID
		       ? err_set(err, ERR_INVALID,
				 "this key is for many users: say whose with --user")
		       : -1;
}

static int run_projects(struct ask *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH] = "/api/projects?limit=1000";

	if (ask_query(path, sizeof(path), "userId", a->user, err) < 0)
		return -1;
	if (ask_list(a, path, "projects", &answer, err) < 0)
		return say_whose(a, err);
	return ask_say(a, answer, say_projects, err);
}

static const struct opt projects_options[] = {
	{ "user", 'u', "USER", ask_user, "who looks; not needed with a token of one user" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_projects(int argc, char **argv)
{
	static const struct ask_command command = {
		.opt = { .name = "lodge projects",
			 .usage = "[--user USER]",
			 .summary = "Lists the projects of a user and of the user's teams.",
			 .opts = projects_options },
		.run = run_projects,
	};

	return ask_main(&command, argc, argv);
}

/* ---- switch ---------------------------------------------------------------------------------- */

static void say_switched(struct ask *a, const json_t *answer)
{
	(void)a;
	ask_print("%s", ask_text(answer, "message"));
	ask_print("sandbox %s, %lld files restored", ask_text(answer, "result.sandboxId"),
		  (long long)ask_number(answer, "result.restoredFiles"));
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
		return strncmp(err->msg, "userId", 6) == 0 ? say_whose(a, err) : -1;
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
