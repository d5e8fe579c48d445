/* SPDX-License-Identifier: Apache-2.0 */
/* lodge templates: what sessions of the service start from. */
#include <stdio.h>
#include <string.h>

#include "cli/admin/templates_cmd.h"
#include "cli/core/api_cmd.h"

/* ---- ls -------------------------------------------------------------------------------------- */

static const char *origin(const json_t *x, const char *path, char buf[FIELD_TEXT])
{
	(void)path;
	(void)buf;
	return member_true(x, "builtin") ? "built in" : member_text(x, "from.kind");
}

static const char *origin_or_problem(const json_t *x, const char *path, char buf[FIELD_TEXT])
{
	const char *problem = member_text(x, path);

	return *problem ? problem : origin(x, path, buf);
}

static enum tint problem_tint(const json_t *x)
{
	return *member_text(x, "problem") ? TINT_BAD : TINT_NONE;
}

static const struct field ls_fields[] = {
	{ "TEMPLATE", TABLE_SHRINK, "name" },
	{ "CLASS", 0, "class" },
	{ "USER", TABLE_SHRINK, "run_as" },
	{ "WORKDIR", TABLE_SHRINK, "workdir" },
	{ "SIZE", TABLE_RIGHT, "size_bytes", field_bytes },
	{ "SESSIONS", TABLE_RIGHT, "sessions", field_count },
	{ "FROM", TABLE_SHRINK, "problem", origin_or_problem, problem_tint },
	{ NULL },
};

static const struct cli_option ls_options[] = {
	OPTION_QUIET("print only names"),
	API_OPTIONS,
	{ NULL },
};

/* ---- show ------------------------------------------------------------------------------------ */

static const char *full_origin(const json_t *x, const char *path, char buf[FIELD_TEXT])
{
	const char *snapshot = member_text(x, "from.snapshot");

	snprintf(buf, FIELD_TEXT, "%s%s%s", origin(x, path, NULL), *snapshot ? " " : "", snapshot);
	return buf;
}

static const struct field show_fields[] = {
	{ "template", 0, "name" },
	{ "problem", 0, "problem" },
	{ "from", 0, "from", full_origin },
	{ "created", 0, "created_at", field_when },
	{ "size", 0, "size_bytes", field_bytes },
	{ "sessions", 0, "sessions", field_count },
	{ "class", 0, "class" },
	{ "user", 0, "run_as" },
	{ "workdir", 0, "workdir" },
	{ "policy", 0, "policy" },
	{ "limit", 0, "limits", .lines = field_add_limits },
	{ "env", 0, "env", .lines = field_add_env },
	{ NULL },
};

/* ---- set ------------------------------------------------------------------------------------- */

static int check_set(struct api_cmd *a, struct err *err)
{
	if (templates_is_set((struct template_opts *)a))
		return 0;
	return api_cmd_misuse(a, err, "nothing to change (try lodge templates set --help)");
}

static int run_set(struct api_cmd *a, struct err *err)
{
	auto_json json_t *body = json_object(), *now = NULL, *answer = NULL;
	char path[API_PATH];

	if (client_path(path, sizeof(path), err, "/v1/templates/%s", a->argv[0]) < 0 ||
	    client_call(a->client, "GET", path, NULL, &now, err) < 0 ||
	    templates_spec((struct template_opts *)a, json_object_get(now, "template"), body, err) <
		    0 ||
	    client_call(a->client, "PATCH", path, body, &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, api_cmd_print_answer, err);
}

static const struct cli_option set_options[] = {
	CLI_INCLUDE(templates_spec_options, 0),
	{ "unset", 0, "NAMES", CLI_TEXT, offsetof(struct template_opts, unset),
	  "reset options, as memory,workdir,env or env:NAME" },
	API_OPTIONS,
	{ NULL },
};

/* ---- env ------------------------------------------------------------------------------------- */

struct env_opts {
	struct api_cmd a;
	bool look;
};

static const char *freshness(const json_t *e, const char *path, char buf[FIELD_TEXT])
{
	(void)buf;
	return member_true(e, path) ? "" : "outdated: the template or host changed; use --look";
}

static const struct field env_fields[] = {
	{ "template", 0, "template" },
	{ "recorded", 0, "captured_at", field_when },
	{ "warning", 0, "current", freshness },
	{ "system", 0, "os.pretty_name" },
	{ "kernel", 0, "kernel" },
	{ "workdir", 0, "pwd" },
	{ "tool", 0, "tools", .lines = field_add_tools },
	{ "env", 0, "env", .lines = field_add_env },
	{ NULL },
};

static int run_env(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (api_cmd_call(a, ((struct env_opts *)a)->look ? "POST" : "GET", NULL, &answer, err,
			 "/v1/templates/%s/environment", a->argv[0]) == 0)
		return api_cmd_write(a, answer, api_cmd_print_answer, err);
	if (err->code == ERR_NOT_FOUND && strstr(err->msg, "POST"))
		err_set(err, ERR_NOT_FOUND,
			"environment of template \"%.63s\" is not recorded yet; use --look",
			a->argv[0]);
	return -1;
}

static const struct cli_option env_options[] = {
	{ "look", 0, NULL, CLI_FLAG, offsetof(struct env_opts, look),
	  "record it now, in a temporary sandbox" },
	API_OPTIONS,
	{ NULL },
};

static const struct command *const subs[] = {
	COMMAND("templates ls", "[-q] [--json]", "list the templates of the service", ls_options,
		.prompt = true, .method = "GET", .path = "/v1/templates", .rows = "templates",
		.fields = ls_fields, .plain = "name",
		.empty = "no templates (create one: lodge templates add)",
		.more = "`lodge template ls` lists those of this machine, for `lodge run`.\n"),
	COMMAND("templates show", "NAME", "show one template in full", api_options, .prompt = true,
		.method = "GET", .path = "/v1/templates/%s", .record = "template",
		.fields = show_fields),
	&templates_add,
	COMMAND("templates set", "NAME OPTION...", "change the settings of a template", set_options,
		sizeof(struct template_opts), .least = 1, .most = 1, .prompt = true,
		.check = check_set, .run = run_set, .init = templates_init, .fini = templates_fini,
		.record = "template", .fields = show_fields,
		.more = "Settings that you do not name stay as they are. Changes apply to new "
			"sessions,\nand to others when they next get a sandbox.\n"),
	COMMAND("templates rm", "[--yes] NAME...", "delete templates that nothing uses",
		yes_options, .least = 1, .most = -1, .method = "DELETE", .path = "/v1/templates/%s",
		.each = true, .confirm = "Delete template {0}?",
		.confirm_many = "Delete these {n} templates?",
		.cancelled = "no template was deleted",
		.more = "A template that a session or a snapshot uses cannot be deleted.\n"),
	COMMAND("templates env", "[--look] NAME",
		"show the system, tools and variables of a template", env_options,
		sizeof(struct env_opts), .least = 1, .most = 1, .run = run_env,
		.record = "environment", .fields = env_fields),
	NULL,
};

const struct command cmd_templates = {
	.name = "templates",
	.summary = "manage what sessions start from",
	.more = "`lodge template` manages those of this machine, for `lodge run`.\n",
	.subs = subs,
};
