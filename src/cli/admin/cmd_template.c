/* SPDX-License-Identifier: Apache-2.0 */
/* lodge template: what sessions of the service start from. */
#include "cli/admin/cmd_template.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/unenforced.h"

/* ---- settings, from options to the body of a request ------------------------------------------
 */

/* Options by the members they set; `limit` means a part of limits. */
static const struct {
	const char *option, *member;
	bool limit;
} members[] = {
	{ "memory", "memory_bytes", true },
	{ "cpus", "cpus", true },
	{ "pids", "pids", true },
	{ "disk", "disk_bytes", true },
	{ "inodes", "inodes", true },
	{ "file-size", "file_bytes", true },
	{ "open-files", "open_files", true },
	{ "output", "output_bytes", true },
	{ "workdir", "workdir", false },
	{ "user", "run_as", false },
	{ "root", "class", false },
	{ "policy", "policy", false },
};

const struct cli_option templates_spec_options[] = {
	CLI_INCLUDE(template_options, offsetof(struct template_opts, spec)),
	{ "policy", 0, "NAME", CLI_TEXT, offsetof(struct template_opts, policy),
	  "policy of sessions that choose none" },
	{ NULL },
};

void templates_init(struct api_cmd *a)
{
	template_init(&((struct template_opts *)a)->spec);
}

void templates_fini(struct api_cmd *a)
{
	template_fini(&((struct template_opts *)a)->spec);
}

bool templates_is_set(const struct template_opts *o)
{
	const struct template *t = &o->spec;

	return o->policy || o->unset || t->user || t->workdir || t->nenv || t->limits_set ||
	       t->class == KEEPER_CLASS_ROOT;
}

static int unset_one(struct template_opts *o, const char *name, json_t *body, json_t *env,
		     json_t *limits, struct err *err)
{
	if (strcmp(name, "env") == 0)
		return json_object_clear(env);
	if (strncmp(name, "env:", 4) == 0) {
		json_object_del(env, name + 4);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		if (strcmp(name, members[i].option) != 0)
			continue;
		if (!members[i].limit)
			return json_object_set_new(body, members[i].member, json_null());
		json_object_del(limits, members[i].member);
		return 0;
	}
	return api_cmd_misuse(&o->a, err,
			      "--unset: unknown option \"%.40s\"; use names as memory, workdir or "
			      "env:NAME",
			      name);
}

static int put_env(const struct template *t, json_t *env)
{
	for (size_t i = 0; i < t->nenv; i++) {
		const char *eq = strchr(t->env[i], '=');
		auto_free char *name = strndup(t->env[i], (size_t)(eq - t->env[i]));

		if (!name || json_object_set_new(env, name, json_string(eq + 1)) < 0)
			return -1;
	}
	return 0;
}

static int put_limits(const struct template *t, json_t *limits)
{
	for (unsigned i = 0; template_limit_name(i); i++) {
		const char *name = template_limit_name(i);
		uint64_t v = template_limit_value(t, i);
		bool milli = strcmp(name, "cpu_milli") == 0;

		if (!(t->limits_set & 1u << i))
			continue;
		if (json_object_set_new(limits, milli ? "cpus" : name,
					milli ? json_real((double)v / 1000)
					      : json_integer((json_int_t)v)) < 0)
			return -1;
	}
	return 0;
}

static int put_rest(struct template_opts *o, json_t *body, struct err *err)
{
	const char *class = o->spec.class == KEEPER_CLASS_ROOT ? "root" : NULL;

	if (api_cmd_put(&o->a, body, "run_as", "--user", o->spec.user, err) < 0 ||
	    api_cmd_put(&o->a, body, "workdir", "--workdir", o->spec.workdir, err) < 0 ||
	    api_cmd_put(&o->a, body, "class", "--root", class, err) < 0)
		return -1;
	return api_cmd_put(&o->a, body, "policy", "--policy", o->policy, err);
}

static json_t *copy_of(const json_t *now, const char *name)
{
	json_t *there = json_object_get(now, name);

	return json_is_object(there) ? json_copy(there) : json_object();
}

/* Sends only what changed, so that concurrent changes of the rest are kept. */
static int put_changed(json_t *body, const json_t *now, const char *name, json_t *value)
{
	auto_json json_t *before = copy_of(now, name);

	return json_equal(before, value) ? 0 : json_object_set(body, name, value);
}

int templates_spec(struct template_opts *o, const json_t *now, json_t *body, struct err *err)
{
	auto_json json_t *env = copy_of(now, "env"), *limits = copy_of(now, "limits");
	auto_free char *list = strdup(o->unset ? o->unset : "");
	char *rest = list, *name;

	while (rest && (name = strsep(&rest, ",")))
		if (*name && unset_one(o, name, body, env, limits, err) < 0)
			return -1;
	if (put_rest(o, body, err) < 0)
		return -1;
	if (put_env(&o->spec, env) < 0 || put_limits(&o->spec, limits) < 0 ||
	    put_changed(body, now, "env", env) < 0 || put_changed(body, now, "limits", limits) < 0)
		return err_set(err, ERR_INVALID, "--env: value is not valid UTF-8");
	return 0;
}

/* ---- ls, show -------------------------------------------------------------------------------- */

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

static const struct cli_option rm_options[] = { OPTION_YES, OPTION_LOCAL, API_OPTIONS, { NULL } };

static const struct cli_option ls_options[] = {
	OPTION_QUIET("print only names"),
	OPTION_LOCAL,
	API_OPTIONS,
	{ NULL },
};

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
	{ "not enforced", 0, "limits_not_enforced", .lines = unenforced_add_lines },
	{ "env", 0, "env", .lines = field_add_env },
	{ NULL },
};

/* ---- set ------------------------------------------------------------------------------------- */

static int check_set(struct api_cmd *a, struct err *err)
{
	if (templates_is_set((struct template_opts *)a))
		return 0;
	return api_cmd_misuse(a, err, "nothing to change (try lodge template set --help)");
}

static int fill_set(struct api_cmd *a, json_t *body, struct err *err)
{
	struct template_opts *o = (struct template_opts *)a;
	auto_json json_t *now = NULL;

	if (api_cmd_call(a, "GET", NULL, &now, err, "/v1/templates/%s", a->argv[0]) < 0)
		return -1;
	return templates_spec(o, json_object_get(now, "template"), body, err);
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
	COMMAND("template ls", "[-q] [--json]", "list the templates of the service", ls_options,
		.prompt = true, .method = "GET", .path = "/v1/templates", .rows = "templates",
		.fields = ls_fields, .plain = "name",
		.empty = "no templates (create one: lodge template create)",
		.twin = &local_template_ls),
	COMMAND("template inspect", "NAME", "show one template in full", api_options,
		.alias = "show", .prompt = true, .method = "GET", .path = "/v1/templates/%s",
		.record = "template", .fields = show_fields),
	&template_create,
	COMMAND("template set", "NAME OPTION...", "change the settings of a template", set_options,
		sizeof(struct template_opts), .prompt = true, .check = check_set,
		.init = templates_init, .fini = templates_fini, .method = "PATCH",
		.path = "/v1/templates/%s", .fill = fill_set, .record = "template",
		.fields = show_fields,
		.more = "Settings that you do not name stay as they are. Changes apply to new "
			"sessions,\nand to others when they next get a sandbox.\n"),
	COMMAND("template rm", "[--yes] NAME...", "delete templates that nothing uses", rm_options,
		.least = 1, .most = -1, .method = "DELETE", .path = "/v1/templates/%s",
		.each = true, .confirm = "Delete template {0}?",
		.confirm_many = "Delete these {n} templates?",
		.cancelled = "no template was deleted",
		.more = "A template that a session or a snapshot uses cannot be deleted.\n",
		.twin = &local_template_rm),
	COMMAND("template env", "[--look] NAME",
		"show the system, tools and variables of a template", env_options,
		sizeof(struct env_opts), .least = 1, .most = 1, .run = run_env,
		.record = "environment", .fields = env_fields),
	NULL,
};

const struct command cmd_template = {
	.name = "template",
	.summary = "manage what sessions and lodge run start from",
	.more = "ls, create and rm are about the templates of the service. With --local, and if\n"
		"there is no service, they are about those of this machine, for `lodge run`.\n",
	.subs = subs,
};
