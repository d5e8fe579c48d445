/* SPDX-License-Identifier: Apache-2.0 */
/* lodge policy test: explains what a command policy says about a command, without a service: the
 * parser is the one that lodged uses. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_io.h"
#include "base/json.h"
#include "cli/core/api_cmd.h"
#include "shell/shell.h"

enum { FILE_SIZE = 64 << 10, EXIT_REFUSED = 1 };

struct test_opts {
	struct api_cmd a;
	struct shell_rules rules;
};

/* ---- options --------------------------------------------------------------------------------- */

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
	json_t *root = json_loadb(text, len, 0, NULL), *inner = json_object_get(root, "commands");
	auto_free char *part = inner ? json_dumps(inner, JSON_ENCODE_ANY) : NULL;

	json_decref(root);
	return part ? shell_rules_parse(part, strlen(part), ret, err)
		    : shell_rules_parse(text, len, ret, err);
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

static const struct cli_option options[] = {
	{ "allow", 0, "NAMES", CLI_SET, offsetof(struct test_opts, rules.allow),
	  "programs to allow, separated by commas", .set = add_names },
	{ "deny", 0, "NAMES", CLI_SET, offsetof(struct test_opts, rules.deny),
	  "programs to deny, even if they are allowed", .set = add_names },
	{ "file", 0, "FILE", CLI_SET, offsetof(struct test_opts, rules),
	  "policy, or its commands, as JSON; put it first", .set = load_file },
	OPTION_JSON("print JSON"),
	{ NULL },
};

/* ---- the verdict ----------------------------------------------------------------------------- */

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

static int run(struct api_cmd *a, struct err *err)
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
	return allowed ? 0 : EXIT_REFUSED;
}

static void fini(struct api_cmd *a)
{
	shell_rules_fini(&((struct test_opts *)a)->rules);
}

const struct command policy_test = {
	.name = "policy test",
	.usage = "[--allow a,b] [--deny c] [--file FILE] [--json] COMMAND",
	.summary = "explain what a policy says about a bash command",
	.options = options,
	.more = "COMMAND is not run, and no service is needed.\n\n"
		"Exit status\n"
		"  0  allowed\n"
		"  1  refused\n"
		"  2  not valid bash, or wrong usage\n",
	.size = sizeof(struct test_opts),
	.least = 1,
	.most = 1,
	.failed = CLI_EXIT_FAILED,
	.local = true,
	.run = run,
	.fini = fini,
};
