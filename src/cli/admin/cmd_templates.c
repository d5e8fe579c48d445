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

static void say_list(struct api_cmd *a, const json_t *answer)
{
	static const struct text_table_column columns[] = {
		{ "TEMPLATE", TABLE_SHRINK }, { "CLASS", 0 },	       { "USER", TABLE_SHRINK },
		{ "WORKDIR", TABLE_SHRINK },  { "SIZE", TABLE_RIGHT }, { "SESSIONS", TABLE_RIGHT },
		{ "FROM", TABLE_SHRINK }
	};
	struct text_table t;
	json_t *x;
	size_t i;

	text_table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (json_object_get(answer, "templates"), i, x) {
		const char *problem = api_cmd_text(x, "problem");

		if (a->quiet) {
			api_cmd_print("%s", api_cmd_text(x, "name"));
			continue;
		}
		text_table_add(&t, api_cmd_text(x, "name"));
		text_table_add(&t, api_cmd_text(x, "class"));
		text_table_add(&t, api_cmd_text(x, "run_as"));
		text_table_add(&t, api_cmd_text(x, "workdir"));
		text_table_add_bytes(&t, api_cmd_number(x, "size_bytes"));
		text_table_addf(&t, "%lld", (long long)api_cmd_number(x, "sessions"));
		text_table_add(&t, *problem ? problem
				   : json_is_true(json_object_get(x, "builtin"))
					   ? "built in"
					   : api_cmd_text(x, "from.kind"));
		text_table_tint(&t, *problem ? TINT_BAD : TINT_NONE);
	}
	if (!a->quiet)
		text_table_print(&t, stdout);
	if (!a->quiet && i == 0)
		api_cmd_hint("no templates (lodge templates add makes one)");
}

static int exec_list(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (client_call(a->client, "GET", "/v1/templates", NULL, &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, say_list, err);
}

static const struct cli_option plain_options[] = { ASK_OPTIONS, { NULL } };

static const struct cli_option list_options[] = {
	{ "quiet", 'q', NULL, ask_quiet, "names alone" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command list_command = {
	.opt = { .name = "lodge templates ls",
		 .usage = "[-q] [--json]",
		 .summary = "Lists what sessions of the service can start from.",
		 .opts = list_options,
		 .more = "lodge template ls is for lodge run on this machine.\n" },
	.prompt = true,
	.run = exec_list,
};

/* ---- show ------------------------------------------------------------------------------------ */

static void add_limits(struct text_table *t, json_t *limits)
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
		print_line(t, "limit", line);
	}
}

/* Of an object of texts: a line for each. */
static void add_texts(struct text_table *t, const char *what, json_t *texts, const char *between)
{
	char line[LINE];
	const char *name;
	json_t *v;

	json_object_foreach (texts, name, v) {
		snprintf(line, sizeof(line), "%s%s%s", name, between, api_cmd_text(v, ""));
		print_line(t, what, line);
	}
}

static void add_origin(struct text_table *t, const json_t *x)
{
	char text[LINE], size[HUMAN_TEXT];
	int64_t bytes = api_cmd_number(x, "size_bytes");

	snprintf(text, sizeof(text), "%s%s%s",
		 json_is_true(json_object_get(x, "builtin")) ? "built in"
							     : api_cmd_text(x, "from.kind"),
		 *api_cmd_text(x, "from.snapshot") ? " " : "", api_cmd_text(x, "from.snapshot"));
	print_line(t, "from", text);
	print_line(t, "made", print_when(api_cmd_number(x, "created_at"), text, sizeof(text)));
	print_line(t, "size", bytes < 0 ? "" : human_bytes((uint64_t)bytes, size));
}

static void say_one(struct api_cmd *a, const json_t *answer)
{
	const json_t *x = json_object_get(answer, "template");
	char text[LINE];
	struct text_table t;

	(void)a;
	text_table_init(&t, say_lines, ARRAY_LEN(say_lines));
	print_line(&t, "template", api_cmd_text(x, "name"));
	print_line(&t, "problem", api_cmd_text(x, "problem"));
	add_origin(&t, x);
	snprintf(text, sizeof(text), "%lld", (long long)api_cmd_number(x, "sessions"));
	print_line(&t, "sessions", text);
	print_line(&t, "class", api_cmd_text(x, "class"));
	print_line(&t, "user", api_cmd_text(x, "run_as"));
	print_line(&t, "workdir", api_cmd_text(x, "workdir"));
	print_line(&t, "policy", api_cmd_text(x, "policy"));
	add_limits(&t, json_object_get(x, "limits"));
	add_texts(&t, "env", json_object_get(x, "env"), "=");
	text_table_print(&t, stdout);
}

static int run_show(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (api_cmd_call(a, "GET", NULL, &answer, err, "/v1/templates/%s", a->argv[0]) < 0)
		return -1;
	return api_cmd_write(a, answer, say_one, err);
}

static const struct api_cmd_command show_command = {
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

static int check_set(struct api_cmd *a, struct err *err)
{
	return templates_is_set(a) ? 0
				   : api_cmd_wrong(a, err,
						   "nothing is said of it (try lodge templates set "
						   "--help)");
}

static int run_set(struct api_cmd *a, struct err *err)
{
	auto_json json_t *body = json_object(), *now = NULL, *answer = NULL;
	char path[ASK_PATH];

	if (client_path(path, sizeof(path), err, "/v1/templates/%s", a->argv[0]) < 0 ||
	    client_call(a->client, "GET", path, NULL, &now, err) < 0 ||
	    templates_spec(a, json_object_get(now, "template"), body, err) < 0 ||
	    client_call(a->client, "PATCH", path, body, &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, say_one, err);
}

static const struct cli_option set_options[] = {
	TEMPLATES_SPEC,
	{ "unset", 0, "NAMES", ask_unset,
	  "take away what these options said, with commas between them;\n"
	  "                            env takes all variables, env:NAME one" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command set_command = {
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

static int remove_one(struct api_cmd *a, const char *name, struct err *err)
{
	return api_cmd_call(a, "DELETE", NULL, NULL, err, "/v1/templates/%s", name);
}

static int run_remove(struct api_cmd *a, struct err *err)
{
	if (!api_cmd_sure(a, "Remove template %s%s?", a->argv[0],
			  a->argc == 1 ? "" : " and others"))
		return err_set(err, ERR_CONFLICT, "nothing was removed");
	return api_cmd_remove_each(a, remove_one, err);
}

static const struct cli_option remove_options[] = {
	{ "yes", 'y', NULL, ask_yes, "do not ask" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command remove_command = {
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

static void say_inside(struct api_cmd *a, const json_t *answer)
{
	const json_t *e = json_object_get(answer, "environment");
	char when[64];
	struct text_table t;

	(void)a;
	text_table_init(&t, say_lines, ARRAY_LEN(say_lines));
	print_line(&t, "template", api_cmd_text(e, "template"));
	print_line(&t, "looked", print_when(api_cmd_number(e, "captured_at"), when, sizeof(when)));
	print_line(&t, "but",
		   json_is_true(json_object_get(e, "current"))
			   ? ""
			   : "something changed since then; --look looks again");
	print_line(&t, "system", api_cmd_text(e, "os.pretty_name"));
	print_line(&t, "kernel", api_cmd_text(e, "kernel"));
	print_line(&t, "workdir", api_cmd_text(e, "pwd"));
	add_texts(&t, "tool", json_object_get(e, "tools"), ": ");
	add_texts(&t, "env", json_object_get(e, "env"), "=");
	text_table_print(&t, stdout);
}

static int run_inside(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (api_cmd_call(a, a->look ? "POST" : "GET", NULL, &answer, err,
			 "/v1/templates/%s/environment", a->argv[0]) < 0)
		return err->code == ERR_NOT_FOUND && strstr(err->msg, "POST")
			       ? err_set(err, ERR_NOT_FOUND,
					 "nobody looked into \"%.63s\" yet; --look does",
					 a->argv[0])
			       : -1;
	return api_cmd_write(a, answer, say_inside, err);
}

static const struct cli_option inside_options[] = {
	{ "look", 0, NULL, ask_look, "look now, in a sandbox made for that" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command inside_command = {
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
	static const struct api_cmd_family family = {
		"lodge templates",
		"What sessions of the service start from. Those "
		"of lodge run on this machine: lodge "
		"template.",
		subs
	};

	return api_cmd_family_main(&family, argc, argv);
}
