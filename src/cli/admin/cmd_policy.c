/* SPDX-License-Identifier: Apache-2.0 */
/* lodge policy: the policies of the service. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/file_io.h"
#include "base/json.h"
#include "cli/core/api_cmd.h"
#include "cli/core/unenforced.h"
#include "shell/program_rules.h"

struct policy_opts {
	struct api_cmd a;
	const char *tenant, *file, *allow, *deny, *reason, *idle, *lifetime, *max_active,
		*on_exceed;
};

/* clang-format off */
#define OPTION_TENANT(member)                                                                      \
	{ "tenant", 0, "TENANT", CLI_TEXT, offsetof(struct policy_opts, tenant),                   \
	  "tenant of the policy (that of your key)", member }
/* clang-format on */

static const struct cli_option tenant_options[] = {
	OPTION_TENANT("tenant"),
	API_OPTIONS,
	{ NULL },
};

static const char *name_list(const json_t *p, const char *path, char buf[FIELD_TEXT])
{
	const json_t *names = member_get(p, path);

	return json_is_array(names) && !json_array_size(names) ? "(none)"
							       : field_words(p, path, buf);
}

static const char *per_user(const json_t *p, const char *path, char buf[FIELD_TEXT])
{
	int64_t most = member_number(p, path);
	char count[HUMAN_TEXT];

	snprintf(buf, FIELD_TEXT, "%s, then %s",
		 human_count(most, "running sandbox", "running sandboxes", count),
		 member_is(p, "on_exceed", "replace") ? "hibernate the least recently used"
						      : "refuse");
	return most < 0 ? "" : buf;
}

static const struct field ls_fields[] = {
	{ "POLICY", TABLE_SHRINK, "name" },
	{ "TENANT", TABLE_SHRINK, "tenant" },
	{ "SESSIONS", TABLE_RIGHT, "sessions", field_count },
	{ "PER USER", TABLE_RIGHT, "max_active_per_user", field_count },
	{ "IDLE", TABLE_RIGHT, "idle_timeout_ms", field_span },
	{ "LIFETIME", TABLE_RIGHT, "max_lifetime_ms", field_span },
	{ "ALLOW", TABLE_SHRINK, "commands.allow", name_list },
	{ "DENY", TABLE_SHRINK, "commands.deny", name_list },
	{ NULL },
};

static const struct field show_fields[] = {
	{ "policy", 0, "name" },
	{ "tenant", 0, "tenant" },
	{ "sessions", 0, "sessions", field_count },
	{ "per user", 0, "max_active_per_user", per_user },
	{ "idle", 0, "idle_timeout_ms", field_span },
	{ "lifetime", 0, "max_lifetime_ms", field_span },
	{ "limit", 0, "limits", .lines = field_add_limits },
	{ "not enforced", 0, "limits_not_enforced", .lines = unenforced_add_lines },
	{ "allow", 0, "commands.allow", name_list },
	{ "deny", 0, "commands.deny", name_list },
	{ "reason", 0, "commands.reason" },
	{ "enforce", 0, "commands.enforce" },
	{ NULL },
};

static const struct cli_option rm_options[] = {
	OPTION_YES,
	OPTION_TENANT("tenant"),
	API_OPTIONS,
	{ NULL },
};

/* ---- set ------------------------------------------------------------------------------------- */

static int load_policy(const char *file, json_t **ret, struct err *err)
{
	static const char *const derived[] = { "name", "tenant", "created_at", "sessions",
					       "limits_not_enforced" };
	json_error_t why;

	*ret = strcmp(file, "-") == 0 ? json_loadfd(STDIN_FILENO, JSON_REJECT_DUPLICATES, &why)
				      : json_load_file(file, JSON_REJECT_DUPLICATES, &why);
	if (!*ret)
		return err_set(err, ERR_INVALID, "%.100s: %.100s", file, why.text);
	if (!json_is_object(*ret))
		return err_set(err, ERR_INVALID, "%.160s: not a JSON object", file);
	/* `lodge policy inspect --json` prints these, but they cannot be set */
	for (size_t i = 0; i < ARRAY_LEN(derived); i++)
		json_object_del(*ret, derived[i]);
	return 0;
}

/* The service replaces `commands` as a whole: start with the present ones. */
static int keep_commands(struct api_cmd *a, const char *path, json_t *body, struct err *err)
{
	const struct policy_opts *o = (struct policy_opts *)a;
	auto_json json_t *answer = NULL;
	json_t *commands;

	if ((!o->allow && !o->deny && !o->reason) || json_object_get(body, "commands"))
		return 0;
	if (client_call(a->client, "GET", path, NULL, &answer, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	commands = member_get(answer, "policy.commands");
	return json_is_object(commands) ? json_object_set(body, "commands", commands) : 0;
}

/* Changes the policy if it exists, and creates it otherwise. */
static int run_set(struct api_cmd *a, struct err *err)
{
	const struct policy_opts *o = (struct policy_opts *)a;
	auto_json json_t *body = NULL, *answer = NULL;
	char path[API_PATH];

	if (o->file ? load_policy(o->file, &body, err) < 0 : !(body = json_object()))
		return -1;
	if (client_path(path, sizeof(path), err, "/v1/policies/%s", a->argv[0]) < 0 ||
	    api_cmd_query(path, sizeof(path), "tenant", o->tenant, err) < 0 ||
	    keep_commands(a, path, body, err) < 0 || api_cmd_fill(a, body, err) < 0)
		return -1;
	if (client_call(a->client, "PATCH", path, body, &answer, err) < 0) {
		if (err->code != ERR_NOT_FOUND ||
		    api_cmd_put(a, body, "name", "NAME", a->argv[0], err) < 0 ||
		    api_cmd_put(a, body, "tenant", "--tenant", o->tenant, err) < 0 ||
		    client_call(a->client, "POST", "/v1/policies", body, &answer, err) < 0)
			return -1;
	}
	return api_cmd_write(a, answer, api_cmd_print_answer, err);
}

static const struct cli_option set_options[] = {
	{ "file", 0, "FILE", CLI_TEXT, offsetof(struct policy_opts, file),
	  "policy as JSON (- reads stdin); options override it", .old_letter = 'f' },
	{ "allow", 0, "NAMES", CLI_LIST, offsetof(struct policy_opts, allow),
	  "programs to allow, separated by commas", "commands.allow" },
	{ "deny", 0, "NAMES", CLI_LIST, offsetof(struct policy_opts, deny),
	  "programs to deny, even if they are allowed", "commands.deny" },
	{ "reason", 0, "TEXT", CLI_TEXT, offsetof(struct policy_opts, reason),
	  "text shown when a command is refused", "commands.reason" },
	{ "idle", 0, "TIME", CLI_MS, offsetof(struct policy_opts, idle),
	  "maximum and default idle timeout of sessions", "idle_timeout_ms" },
	{ "lifetime", 0, "TIME", CLI_MS, offsetof(struct policy_opts, lifetime),
	  "maximum sandbox lifetime", "max_lifetime_ms" },
	{ "max-active", 0, "N", CLI_COUNT, offsetof(struct policy_opts, max_active),
	  "running sandboxes per user", "max_active_per_user" },
	{ "on-exceed", 0, "ACTION", CLI_TEXT, offsetof(struct policy_opts, on_exceed),
	  "refuse (default) one more sandbox, or replace one", "on_exceed" },
	OPTION_TENANT(NULL),
	API_OPTIONS,
	{ NULL },
};

/* ---- test: what a policy says about a command, with the parser that lodged uses -------------- */

enum { FILE_SIZE = 64 << 10 };

struct test_opts {
	struct api_cmd a;
	struct shell_rules rules;
};

static int add_names(void *at, const char *option, const char *list, struct err *err)
{
	struct shell_names *to = at;

	to->said = true;
	while (*list) {
		size_t len = strcspn(list, ","), skip = strspn(list, " "), end = len;
		auto_free char *name = NULL;

		skip = skip < len ? skip : len;
		while (end > skip && list[end - 1] == ' ')
			end--;
		name = strndup(list + skip, end - skip);

		if (!name)
			return err_sys(err, ENOMEM, "%s", option);
		if (shell_names_add(to, option, name, err) < 0)
			return -1;
		list += len + (list[len] == ',');
	}
	return 0;
}

/* Accepts a whole policy, or only its `commands`. */
static int parse_rules(const char *text, size_t len, struct shell_rules *ret, struct err *err)
{
	auto_json json_t *root = json_loadb(text, len, 0, NULL);
	json_t *inner = json_object_get(root, "commands");
	auto_free char *part = inner ? json_dumps(inner, JSON_ENCODE_ANY) : NULL;

	return shell_rules_parse(part ? part : text, part ? strlen(part) : len, ret, err);
}

static int load_file(void *at, const char *option, const char *path, struct err *err)
{
	struct shell_rules *r = at;
	auto_free char *text = malloc(FILE_SIZE);
	ssize_t n;

	(void)option;
	if (!text)
		return err_sys(err, ENOMEM, "%s", path);
	n = file_read_at(AT_FDCWD, path, text, FILE_SIZE);
	if (n < 0)
		return err_sys(err, (int)-n, "%s", path);
	shell_rules_fini(r);
	return parse_rules(text, (size_t)n, r, err) < 0 ? err_ctx(err, "%s", path) : 0;
}

static const struct cli_option test_options[] = {
	{ "allow", 0, "NAMES", CLI_SET, offsetof(struct test_opts, rules.allow),
	  "programs to allow, separated by commas", .set = add_names },
	{ "deny", 0, "NAMES", CLI_SET, offsetof(struct test_opts, rules.deny),
	  "programs to deny, even if they are allowed", .set = add_names },
	{ "file", 0, "FILE", CLI_SET, offsetof(struct test_opts, rules),
	  "policy, or its commands, as JSON; put it first", .set = load_file },
	OPTION_JSON("print JSON"),
	{ NULL },
};

static void print_lines(const struct shell_rules *r, const struct shell_words *w, bool allowed)
{
	for (size_t i = 0; i < w->count; i++) {
		const struct shell_word *one = &w->items[i];
		const char *why;
		bool ok = shell_allows(r, one, &why);

		printf("%s  '%s' at line %u, column %u %s\n", ok ? "yes" : "no ", one->name,
		       one->line, one->column, why);
	}
	puts(allowed ? "allowed" : "refused");
	if (!allowed && r->reason)
		printf("%s\n", r->reason);
}

static int print_json(const struct shell_rules *r, const struct shell_words *w, struct err *err)
{
	auto_free char *text = NULL;
	struct json_out j;

	json_out_init(&j, (size_t)16 << 20);
	json_out_object(&j, NULL);
	shell_put_verdict(&j, r, w);
	json_out_end(&j);
	text = json_out_take(&j, NULL);
	if (!text)
		return err_sys(err, ENOMEM, "answer");
	puts(text);
	return 0;
}

static int run_test(struct api_cmd *a, struct err *err)
{
	const struct shell_rules *rules = &((struct test_opts *)a)->rules;
	auto_fini(shell_words_fini) struct shell_words w = { 0 };
	bool allowed;

	if (shell_parse(a->argv[0], strlen(a->argv[0]), &w, err) < 0) {
		a->misused = true;
		return -1;
	}
	allowed = !shell_refused(rules, &w);
	if (!a->json)
		print_lines(rules, &w, allowed);
	else if (print_json(rules, &w, err) < 0)
		return -1;
	return allowed ? 0 : CLI_EXIT_REFUSED;
}

static void free_rules(struct api_cmd *a)
{
	shell_rules_fini(&((struct test_opts *)a)->rules);
}

/* ---- the commands ---------------------------------------------------------------------------- */

static const struct command *const subs[] = {
	COMMAND("policy ls", "[--tenant TENANT]", "list the policies of a tenant", tenant_options,
		sizeof(struct policy_opts), .prompt = true, .method = "GET", .path = "/v1/policies",
		.rows = "policies", .paged = true, .fields = ls_fields,
		.empty = "no policies (create one: lodge policy set)"),
	COMMAND("policy inspect", "[--tenant TENANT] NAME", "show one policy", tenant_options,
		sizeof(struct policy_opts), .alias = "show", .prompt = true, .method = "GET",
		.path = "/v1/policies/%s", .record = "policy", .fields = show_fields),
	COMMAND("policy set", "[OPTION...] NAME", "create a policy, or change parts of it",
		set_options, sizeof(struct policy_opts), .alias = "create", .least = 1, .most = 1,
		.prompt = true, .run = run_set, .record = "policy", .fields = show_fields),
	COMMAND("policy rm", "[--yes] [--tenant TENANT] NAME", "delete a policy", rm_options,
		sizeof(struct policy_opts), .prompt = true, .method = "DELETE",
		.path = "/v1/policies/%s", .confirm = "Delete policy {0}?",
		.cancelled = "no policy was deleted", .done = "removed {0}"),
	COMMAND("policy test", "[--allow a,b] [--deny c] [--file FILE] [--json] COMMAND",
		"explain what a policy says about a bash command", test_options,
		sizeof(struct test_opts), .least = 1, .most = 1, .failed = CLI_EXIT_FAILED,
		.local = true, .run = run_test, .fini = free_rules,
		.more = "COMMAND is not run, and no service is needed.\n\n"
			"Exit status\n"
			"  0  allowed\n"
			"  1  refused\n"
			"  2  not valid bash, or wrong usage\n"),
	NULL,
};

const struct command cmd_policy = { "policy", NULL, "manage limits and allowed commands",
				    .subs = subs };
