/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/policy_remote.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"
#include "cli/core/print_session.h"

enum { LINE = 1024 };

/* ---- ls -------------------------------------------------------------------------------------- */

/* "ls cat git", or how many there are. */
static char *name_list(const json_t *names, char *buf, size_t size)
{
	json_t *one;
	size_t i;

	*buf = '\0';
	json_array_foreach (names, i, one) {
		snprintf(buf + strlen(buf), size - strlen(buf), "%s%s", i ? " " : "",
			 api_cmd_text(one, ""));
	}
	if (json_is_array(names) && !i)
		snprintf(buf, size, "(none)");
	return buf;
}

static const json_t *commands_of(const json_t *p, const char *which)
{
	return json_object_get(json_object_get(p, "commands"), which);
}

static void say_list(struct api_cmd *a, const json_t *answer)
{
	static const struct text_table_column columns[] = {
		{ "POLICY", TABLE_SHRINK },  { "TENANT", TABLE_SHRINK },
		{ "SESSIONS", TABLE_RIGHT }, { "PER USER", TABLE_RIGHT },
		{ "IDLE", TABLE_RIGHT },     { "LIFETIME", TABLE_RIGHT },
		{ "ALLOW", TABLE_SHRINK },   { "DENY", TABLE_SHRINK }
	};
	char text[LINE];
	struct text_table t;
	json_t *p;
	size_t i;

	(void)a;
	text_table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (json_object_get(answer, "policies"), i, p) {
		int64_t most = api_cmd_number(p, "max_active_per_user");

		text_table_add(&t, api_cmd_text(p, "name"));
		text_table_add(&t, api_cmd_text(p, "tenant"));
		text_table_addf(&t, "%lld", (long long)api_cmd_number(p, "sessions"));
		if (most < 0)
			text_table_add(&t, NULL);
		else
			text_table_addf(&t, "%lld", (long long)most);
		text_table_add_span(&t, api_cmd_number(p, "idle_timeout_ms"));
		text_table_add_span(&t, api_cmd_number(p, "max_lifetime_ms"));
		text_table_add(&t, name_list(commands_of(p, "allow"), text, sizeof(text)));
		text_table_add(&t, name_list(commands_of(p, "deny"), text, sizeof(text)));
	}
	text_table_print(&t, stdout);
	if (i == 0)
		api_cmd_hint("no policies (lodge policy set makes one)");
}

static int exec_list(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH] = "/v1/policies?limit=1000";

	if (api_cmd_query(path, sizeof(path), "tenant", a->tenant, err) < 0 ||
	    api_cmd_list(a, path, "policies", &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, say_list, err);
}

static const struct cli_option tenant_options[] = {
	{ "tenant", 0, "TENANT", ask_tenant, "of this tenant (default: that of the key)" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command list_command = {
	.opt = { .name = "lodge policy ls",
		 .usage = "[--tenant TENANT]",
		 .summary = "Lists the policies of a tenant.",
		 .opts = tenant_options },
	.prompt = true,
	.run = exec_list,
};

/* ---- show ------------------------------------------------------------------------------------ */

static int policy_path(struct api_cmd *a, char path[ASK_PATH], struct err *err)
{
	if (client_path(path, ASK_PATH, err, "/v1/policies/%s", a->argv[0]) < 0)
		return -1;
	return api_cmd_query(path, ASK_PATH, "tenant", a->tenant, err);
}

static void add_limits(struct text_table *t, json_t *limits)
{
	char line[LINE], size[HUMAN_TEXT];
	const char *name;
	json_t *v;

	json_object_foreach (limits, name, v) {
		if (strstr(name, "_bytes"))
			snprintf(line, sizeof(line), "%s at most %s", name,
				 human_bytes((uint64_t)json_integer_value(v), size));
		else
			snprintf(line, sizeof(line), "%s at most %g", name, json_number_value(v));
		print_line(t, "limit", line);
	}
}

static void add_span(struct text_table *t, const char *name, int64_t ms)
{
	char text[HUMAN_TEXT];

	if (ms >= 0)
		print_line(t, name, human_span(ms, text));
}

static void say_one(struct api_cmd *a, const json_t *answer)
{
	const json_t *p = json_object_get(answer, "policy");
	int64_t most = api_cmd_number(p, "max_active_per_user");
	char text[LINE], count[HUMAN_TEXT];
	struct text_table t;

	(void)a;
	text_table_init(&t, say_lines, ARRAY_LEN(say_lines));
	print_line(&t, "policy", api_cmd_text(p, "name"));
	print_line(&t, "tenant", api_cmd_text(p, "tenant"));
	snprintf(text, sizeof(text), "%lld", (long long)api_cmd_number(p, "sessions"));
	print_line(&t, "sessions", text);
	snprintf(text, sizeof(text), "%s, then %s",
		 human_count(most, "live sandbox", "live sandboxes", count),
		 api_cmd_is(p, "on_exceed", "replace") ? "the one used longest ago sleeps"
						       : "refused");
	print_line(&t, "per user", most < 0 ? "" : text);
	add_span(&t, "idle", api_cmd_number(p, "idle_timeout_ms"));
	add_span(&t, "lifetime", api_cmd_number(p, "max_lifetime_ms"));
	add_limits(&t, json_object_get(p, "limits"));
	print_line(&t, "allow", name_list(commands_of(p, "allow"), text, sizeof(text)));
	print_line(&t, "deny", name_list(commands_of(p, "deny"), text, sizeof(text)));
	print_line(&t, "reason", api_cmd_text(p, "commands.reason"));
	print_line(&t, "enforce", api_cmd_text(p, "commands.enforce"));
	text_table_print(&t, stdout);
}

static int run_show(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH];

	if (policy_path(a, path, err) < 0 ||
	    client_call(a->client, "GET", path, NULL, &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, say_one, err);
}

static const struct api_cmd_command show_command = {
	.opt = { .name = "lodge policy show",
		 .usage = "[--tenant TENANT] NAME",
		 .summary = "Shows a policy.",
		 .opts = tenant_options },
	.least = 1,
	.most = 1,
	.prompt = true,
	.run = run_show,
};

/* ---- set ------------------------------------------------------------------------------------- */

static int load(const char *file, json_t **ret, struct err *err)
{
	bool piped = strcmp(file, "-") == 0;
	json_error_t why;

	*ret = piped ? json_loadfd(STDIN_FILENO, JSON_REJECT_DUPLICATES, &why)
		     : json_load_file(file, JSON_REJECT_DUPLICATES, &why);
	if (!*ret)
		return err_set(err, ERR_INVALID, "%.100s: %.100s", file, why.text);
	return json_is_object(*ret) ? 0 : err_set(err, ERR_INVALID, "%.160s: no object", file);
}

static json_t *split(const char *list)
{
	json_t *names = json_array();

	while (*list) {
		size_t n = strcspn(list, ",");

		if (n)
			json_array_append_new(names, json_stringn(list, n));
		list += n + (list[n] == ',');
	}
	return names;
}

static int put_commands(struct api_cmd *a, json_t *body)
{
	json_t *commands = json_object_get(body, "commands");

	if (!a->allow && !a->deny && !a->reason)
		return 0;
	if (!json_is_object(commands)) {
		commands = json_object();
		json_object_set_new(body, "commands", commands);
	}
	if (a->allow)
		json_object_set_new(commands, "allow", split(a->allow));
	if (a->deny)
		json_object_set_new(commands, "deny", split(a->deny));
	return api_cmd_put(commands, "reason", a->reason);
}

static int make_body(struct api_cmd *a, json_t *body, struct err *err)
{
	uint64_t most = 0;

	if (put_commands(a, body) < 0 || api_cmd_put(body, "on_exceed", a->on_exceed) < 0)
		return err_set(err, ERR_INVALID, "an option is no text (UTF-8)");
	if (api_cmd_put_ms(a, body, "idle_timeout_ms", "--idle", a->idle, err) < 0 ||
	    api_cmd_put_ms(a, body, "max_lifetime_ms", "--lifetime", a->lifetime, err) < 0)
		return -1;
	if (api_cmd_count_of(a, "--max-active", a->max_active, 1, INT_MAX, &most, err) < 0)
		return -1;
	if (!a->max_active)
		return 0;
	return json_object_set_new(body, "max_active_per_user", json_integer((json_int_t)most));
}

/* The service takes `commands` as a whole: what is not said of it stays all the same. */
static int keep_commands(struct api_cmd *a, const char *path, json_t *body, struct err *err)
{
	auto_json json_t *answer = NULL;
	json_t *commands;

	if ((!a->allow && !a->deny && !a->reason) || json_object_get(body, "commands"))
		return 0;
	if (client_call(a->client, "GET", path, NULL, &answer, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	commands = json_object_get(json_object_get(answer, "policy"), "commands");
	return json_is_object(commands) ? json_object_set(body, "commands", commands) : 0;
}

/* Changes the one that is there, or makes it. */
static int run_set(struct api_cmd *a, struct err *err)
{
	static const char *const told[] = { "name", "tenant", "created_at", "sessions" };
	auto_json json_t *body = NULL, *answer = NULL;
	char path[ASK_PATH];

	if (a->file ? load(a->file, &body, err) < 0 : !(body = json_object()))
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(told); i++) /* what `show --json` has and nobody sets */
		json_object_del(body, told[i]);
	if (policy_path(a, path, err) < 0 || keep_commands(a, path, body, err) < 0 ||
	    make_body(a, body, err) < 0)
		return -1;
	if (client_call(a->client, "PATCH", path, body, &answer, err) < 0) {
		if (err->code != ERR_NOT_FOUND)
			return -1;
		if (api_cmd_put(body, "name", a->argv[0]) < 0 ||
		    api_cmd_put(body, "tenant", a->tenant) < 0)
			return err_set(err, ERR_INVALID, "NAME: no text (UTF-8)");
		if (client_call(a->client, "POST", "/v1/policies", body, &answer, err) < 0)
			return -1;
	}
	return api_cmd_write(a, answer, say_one, err);
}

static const struct cli_option set_options[] = {
	{ "file", 'f', "FILE", ask_file,
	  "a policy as JSON (-: standard input); options add to it" },
	{ "allow", 0, "NAMES", ask_allow,
	  "programs that may be started, with commas between them" },
	{ "deny", 0, "NAMES", ask_deny, "programs that may not, whatever --allow says" },
	{ "reason", 0, "TEXT", ask_reason, "told to those who are refused" },
	{ "idle", 0, "TIME", ask_idle, "the most time without use, and what sessions have" },
	{ "lifetime", 0, "TIME", ask_lifetime, "the most time of a sandbox" },
	{ "max-active", 0, "N", ask_max_active, "live sandboxes of each user" },
	{ "on-exceed", 0, "WHAT", ask_on_exceed, "refuse (default) one too many, or replace" },
	{ "tenant", 0, "TENANT", ask_tenant, "of this tenant (default: that of the key)" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command set_command = {
	.opt = { .name = "lodge policy set",
		 .usage = "[OPTION...] NAME",
		 .summary = "Makes a policy, or changes what is said of one that is there.",
		 .opts = set_options },
	.least = 1,
	.most = 1,
	.prompt = true,
	.run = run_set,
};

/* ---- rm -------------------------------------------------------------------------------------- */

static int run_remove(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH];

	if (!api_cmd_sure(a, "Remove policy %s?", a->argv[0]))
		return err_set(err, ERR_CONFLICT, "nothing was removed");
	if (policy_path(a, path, err) < 0 ||
	    client_call(a->client, "DELETE", path, NULL, &answer, err) < 0)
		return -1;
	if (a->json)
		return api_cmd_write_json(answer, err);
	api_cmd_print("%s is removed", a->argv[0]);
	return 0;
}

static const struct cli_option remove_options[] = {
	{ "yes", 'y', NULL, ask_yes, "do not ask" },
	{ "tenant", 0, "TENANT", ask_tenant, "of this tenant (default: that of the key)" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command remove_command = {
	.opt = { .name = "lodge policy rm",
		 .usage = "[--yes] [--tenant TENANT] NAME",
		 .summary = "Removes a policy.",
		 .opts = remove_options },
	.least = 1,
	.most = 1,
	.prompt = true,
	.run = run_remove,
};

int policy_remote_main(int argc, char **argv)
{
	static const struct {
		const char *name;
		const struct api_cmd_command *command;
	} all[] = { { "ls", &list_command },
		    { "show", &show_command },
		    { "set", &set_command },
		    { "rm", &remove_command } };

	if (argc < 2 || argv[1][0] == '-')
		return api_cmd_main(all->command, argc, argv);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(argv[1], all[i].name) == 0)
			return api_cmd_main(all[i].command, argc - 1, argv + 1);
	return -1;
}
