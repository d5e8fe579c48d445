/* SPDX-License-Identifier: Apache-2.0 */
/* lodge templates: what sessions of the service start from. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"
#include "cli/core/print_session.h"
#include "cli/admin/templates_cmd.h"

enum { LINE = 1024 };

/* ---- ls -------------------------------------------------------------------------------------- */

static void say_list(struct ask *a, const json_t *answer)
{
	static const struct table_column columns[] = {
		{ "TEMPLATE", TABLE_SHRINK }, { "CLASS", 0 },	       { "USER", TABLE_SHRINK },
		{ "WORKDIR", TABLE_SHRINK },  { "SIZE", TABLE_RIGHT }, { "SESSIONS", TABLE_RIGHT },
		{ "FROM", TABLE_SHRINK }
	};
	struct table t;
	json_t *x;
	size_t i;

	table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (json_object_get(answer, "templates"), i, x) {
		const char *problem = ask_text(x, "problem");

		if (a->quiet) {
			ask_print("%s", ask_text(x, "name"));
			continue;
		}
		table_add(&t, ask_text(x, "name"));
		table_add(&t, ask_text(x, "class"));
		table_add(&t, ask_text(x, "run_as"));
		table_add(&t, ask_text(x, "workdir"));
		table_add_bytes(&t, ask_number(x, "size_bytes"));
		table_addf(&t, "%lld", (long long)ask_number(x, "sessions"));
		table_add(&t, *problem ? problem
			      : json_is_true(json_object_get(x, "builtin"))
				      ? "built in"
				      : ask_text(x, "from.kind"));
		table_tint(&t, *problem ? TINT_BAD : TINT_NONE);
	}
	if (!a->quiet)
		table_print(&t, stdout);
	if (!a->quiet && i == 0)
		ask_hint("no templates (lodge templates add makes one)");
}

static int run_list(struct ask *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (client_call(a->client, "GET", "/v1/templates", NULL, &answer, err) < 0)
		return -1;
	return ask_say(a, answer, say_list, err);
}

static const struct opt plain_options[] = { ASK_OPTIONS, { NULL } };

static const struct opt list_options[] = {
	{ "quiet", 'q', NULL, ask_quiet, "names alone" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct ask_command list_command = {
	.opt = { .name = "lodge templates ls",
		 .usage = "[-q] [--json]",
		 .summary = "Lists what sessions of the service can start from.",
		 .opts = list_options,
		 .more = "lodge template ls is for lodge run on this machine.\n" },
	.prompt = true,
	.run = run_list,
};

/* ---- show ------------------------------------------------------------------------------------ */

static void add_limits(struct table *t, json_t *limits)
{
	char line[LINE], size[HUMAN_TEXT];
	const char *name;
	json_t *v;

	json_object_foreach (limits, name, v) {
		const char *bytes = strstr(name, "_bytes");

		if (bytes)
			snprintf(line, sizeof(line), "%.*s %s", (int)(bytes - name), name,
				 human_bytes((uint64_t)json_integer_value(v), size));
		else
			snprintf(line, sizeof(line), "%s %g", name, json_number_value(v));
		say_line(t, "limit", line);
	}
}

/* Of an object of texts: a line for each. */
static void add_texts(struct table *t, const char *what, json_t *texts, const char *between)
{
	char line[LINE];
	const char *name;
	json_t *v;

	json_object_foreach (texts, name, v) {
		snprintf(line, sizeof(line), "%s%s%s", name, between, ask_text(v, ""));
		say_line(t, what, line);
	}
}

static void add_origin(struct table *t, const json_t *x)
{
	char text[LINE], size[HUMAN_TEXT];
	int64_t bytes = ask_number(x, "size_bytes");

	snprintf(text, sizeof(text), "%s%s%s",
		 json_is_true(json_object_get(x, "builtin")) ? "built in"
							     : ask_text(x, "from.kind"),
		 *ask_text(x, "from.snapshot") ? " " : "", ask_text(x, "from.snapshot"));
	say_line(t, "from", text);
	say_line(t, "made", say_time(ask_number(x, "created_at"), text, sizeof(text)));
	say_line(t, "size", bytes < 0 ? "" : human_bytes((uint64_t)bytes, size));
}

static void say_one(struct ask *a, const json_t *answer)
{
	const json_t *x = json_object_get(answer, "template");
	char text[LINE];
	struct table t;

	(void)a;
	table_init(&t, say_lines, ARRAY_LEN(say_lines));
	say_line(&t, "template", ask_text(x, "name"));
	say_line(&t, "problem", ask_text(x, "problem"));
	add_origin(&t, x);
	snprintf(text, sizeof(text), "%lld", (long long)ask_number(x, "sessions"));
	say_line(&t, "sessions", text);
	say_line(&t, "class", ask_text(x, "class"));
	say_line(&t, "user", ask_text(x, "run_as"));
	say_line(&t, "workdir", ask_text(x, "workdir"));
	say_line(&t, "policy", ask_text(x, "policy"));
	add_limits(&t, json_object_get(x, "limits"));
	add_texts(&t, "env", json_object_get(x, "env"), "=");
	table_print(&t, stdout);
}

static int run_show(struct ask *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (ask_call(a, "GET", NULL, &answer, err, "/v1/templates/%s", a->argv[0]) < 0)
		return -1;
	return ask_say(a, answer, say_one, err);
}

static const struct ask_command show_command = {
	.opt = { .name = "lodge templates show",
		 .usage = "NAME",
		 .summary = "Shows a template: what it was made of, and what its sessions get.",
		 .opts = plain_options },
	.least = 1,
	.most = 1,
	.prompt = true,
	.run = run_show,
};

/* ---- set ------------------------------------------------------------------------------------- */

static int check_set(struct ask *a, struct err *err)
{
	return templates_says(a) ? 0
				 : ask_wrong(a, err,
					     "nothing is said of it (try lodge templates set "
					     "--help)");
}

static int run_set(struct ask *a, struct err *err)
{
	auto_json json_t *body = json_object(), *now = NULL, *answer = NULL;
	char path[ASK_PATH];

	if (client_path(path, sizeof(path), err, "/v1/templates/%s", a->argv[0]) < 0 ||
	    client_call(a->client, "GET", path, NULL, &now, err) < 0 ||
	    templates_spec(a, json_object_get(now, "template"), body, err) < 0 ||
	    client_call(a->client, "PATCH", path, body, &answer, err) < 0)
		return -1;
	return ask_say(a, answer, say_one, err);
}

static const struct opt set_options[] = {
	TEMPLATES_SPEC,
	{ "unset", 0, "NAMES", ask_unset,
	  "take away what these options said, with commas between them;\n"
	  "                            env takes all variables, env:NAME one" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct ask_command set_command = {
	.opt = { .name = "lodge templates set",
		 .usage = "NAME OPTION...",
		 .summary = "Changes what a template says; what is not mentioned stays.",
		 .opts = set_options,
		 .more = "It holds for new sessions, and for others when they next get a "
			 "sandbox.\n" },
	.least = 1,
	.most = 1,
	.check = check_set,
	.prompt = true,
	.run = run_set,
};

/* ---- rm -------------------------------------------------------------------------------------- */

static int remove_one(struct ask *a, const char *name, struct err *err)
{
	return ask_call(a, "DELETE", NULL, NULL, err, "/v1/templates/%s", name);
}

static int run_remove(struct ask *a, struct err *err)
{
	if (!ask_sure(a, "Remove template %s%s?", a->argv[0], a->argc == 1 ? "" : " and others"))
		return err_set(err, ERR_CONFLICT, "nothing was removed");
	return ask_remove_each(a, remove_one, err);
}

static const struct opt remove_options[] = {
	{ "yes", 'y', NULL, ask_yes, "do not ask" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct ask_command remove_command = {
	.opt = { .name = "lodge templates rm",
		 .usage = "[--yes] NAME...",
		 .summary = "Removes templates that no session and no snapshot lies on.",
		 .opts = remove_options,
		 .more = ASK_ASKS },
	.least = 1,
	.most = -1,
	.run = run_remove,
};

/* ---- env ------------------------------------------------------------------------------------- */

static void say_inside(struct ask *a, const json_t *answer)
{
	const json_t *e = json_object_get(answer, "environment");
	char when[64];
	struct table t;

	(void)a;
	table_init(&t, say_lines, ARRAY_LEN(say_lines));
	say_line(&t, "template", ask_text(e, "template"));
	say_line(&t, "looked", say_time(ask_number(e, "captured_at"), when, sizeof(when)));
	say_line(&t, "but",
		 json_is_true(json_object_get(e, "current"))
			 ? ""
			 : "something changed since then; --look looks again");
	say_line(&t, "system", ask_text(e, "os.pretty_name"));
	say_line(&t, "kernel", ask_text(e, "kernel"));
	say_line(&t, "workdir", ask_text(e, "pwd"));
	add_texts(&t, "tool", json_object_get(e, "tools"), ": ");
	add_texts(&t, "env", json_object_get(e, "env"), "=");
	table_print(&t, stdout);
}

static int run_inside(struct ask *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (ask_call(a, a->look ? "POST" : "GET", NULL, &answer, err,
		     "/v1/templates/%s/environment", a->argv[0]) < 0)
		return err->code == ERR_NOT_FOUND && strstr(err->msg, "POST")
			       ? err_set(err, ERR_NOT_FOUND,
					 "nobody looked into \"%.63s\" yet; --look does",
					 a->argv[0])
			       : -1;
	return ask_say(a, answer, say_inside, err);
}

static const struct opt inside_options[] = {
	{ "look", 0, NULL, ask_look, "look now, in a sandbox made for that" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct ask_command inside_command = {
	.opt = { .name = "lodge templates env",
		 .usage = "[--look] NAME",
		 .summary = "Shows what commands find in a template: system, tools, variables.",
		 .opts = inside_options },
	.least = 1,
	.most = 1,
	.run = run_inside,
};

int cmd_templates(int argc, char **argv)
{
	static const struct ask_sub subs[] = {
		{ "ls", &list_command, "list templates" },
		{ "show", &show_command, "show one" },
		{ "add", &templates_add, "make one of a directory, an archive or a snapshot" },
		{ "set", &set_command, "change what one says" },
		{ "rm", &remove_command, "remove templates" },
		{ "env", &inside_command, "show what commands find in one" },
		{ NULL, NULL, NULL },
	};
	static const struct ask_family family = { "lodge templates",
						  "What sessions of the service start from. Those "
						  "of lodge run on this machine: lodge "
						  "template.",
						  subs };

	return ask_family_main(&family, argc, argv);
}
