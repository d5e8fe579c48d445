/* SPDX-License-Identifier: Apache-2.0 */
/* lodge policy test: what a policy of commands would say of one. Neither a daemon nor a sandbox is
 * needed: the parser is the engine's own. The others, which ask, are in policy_remote_main.c. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_io.h"
#include "base/json.h"
#include "cli/core/commands.h"
#include "cli/core/options.h"
#include "cli/admin/policy_remote.h"
#include "shell/shell.h"

enum { FILE_SIZE = 64 << 10, EXIT_REFUSED = 1 };

struct opts {
	struct shell_rules rules;
	bool json;
};

/* ---- options --------------------------------------------------------------------------------- */

static int add_names(struct shell_names *to, const char *field, const char *list, struct err *err)
{
	to->said = true;
	while (*list) {
		size_t len = strcspn(list, ","), skip = strspn(list, " "), end = len;
		auto_free char *name = NULL;

		skip = skip < len ? skip : len;
		while (end > skip && list[end - 1] == ' ')
			end--;
		name = strndup(list + skip, end - skip);

		if (!name)
			return err_sys(err, ENOMEM, "%s", field);
		if (shell_names_add(to, field, name, err) < 0)
			return -1;
		list += len + (list[len] == ',');
	}
	return 0;
}

static int set_allow(void *ctx, const char *name, const char *value, struct err *err)
{
	return add_names(&((struct opts *)ctx)->rules.allow, name, value, err);
}

static int set_deny(void *ctx, const char *name, const char *value, struct err *err)
{
	return add_names(&((struct opts *)ctx)->rules.deny, name, value, err);
}

static int set_json(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)name;
	(void)value;
	(void)err;
	((struct opts *)ctx)->json = true;
	return 0;
}

/* What a policy has as `commands`, or the whole policy. */
static int take_rules(const char *text, size_t len, struct shell_rules *ret, struct err *err)
{
	json_t *root = json_loadb(text, len, 0, NULL), *inner = json_object_get(root, "commands");
	auto_free char *part = inner ? json_dumps(inner, JSON_ENCODE_ANY) : NULL;

	json_decref(root);
	return part ? shell_rules_parse(part, strlen(part), ret, err)
		    : shell_rules_parse(text, len, ret, err);
}

static int set_file(void *ctx, const char *name, const char *value, struct err *err)
{
	struct shell_rules *r = &((struct opts *)ctx)->rules;
	auto_free char *text = malloc(FILE_SIZE);
	ssize_t n;

	(void)name;
	if (!text)
		return err_sys(err, ENOMEM, "%s", value);
	n = file_read_at(AT_FDCWD, value, text, FILE_SIZE);
	if (n < 0)
		return err_sys(err, (int)-n, "%s", value);
	shell_rules_fini(r);
	return take_rules(text, (size_t)n, r, err) < 0 ? err_ctx(err, "%s", value) : 0;
}

static const struct cli_option options[] = {
	{ "allow", 0, "NAMES", set_allow,
	  "programs that may be started, with commas between them" },
	{ "deny", 0, "NAMES", set_deny, "programs that may not, whatever --allow says" },
	{ "file", 0, "FILE", set_file, "a policy, or its commands, as JSON; options after it add" },
	{ "json", 0, NULL, set_json, "as JSON" },
	{ NULL },
};

static const struct cli_option_command command = {
	.name = "lodge policy test",
	.usage = "[--allow a,b] [--deny c] [--file FILE] [--json] COMMAND",
	.summary = "Explains what a policy of commands says of a bash text.",
	.opts = options,
	.more = "Nothing is run. Exit status: 0 allowed, 1 refused, 2 it cannot be read.\n",
};

/* ---- the answer ------------------------------------------------------------------------------ */

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

static int test(struct opts *o, int argc, char **argv, struct err *err)
{
	auto_fini(shell_words_fini) struct shell_words w = { 0 };
	int first, n = cli_option_parse(&command, argc, argv, o, &first, err);
	bool allowed;

	if (n)
		return n < 0 ? cli_option_fail(CLI_EXIT_USAGE, err) : 0;
	if (first + 1 != argc) {
		err_set(err, ERR_INVALID, "policy test: give one command, in quotes");
		return cli_option_fail(CLI_EXIT_USAGE, err);
	}
	if (shell_parse(argv[first], strlen(argv[first]), &w, err) < 0)
		return cli_option_fail(CLI_EXIT_USAGE, err);
	allowed = !shell_refused(&o->rules, &w);
	if (!o->json)
		print_lines(&o->rules, &w, allowed);
	else if (print_json(&o->rules, &w, err) < 0)
		return cli_option_fail(CLI_EXIT_FAILED, err);
	if (fflush(stdout) != 0) {
		err_sys(err, errno, "standard output");
		return cli_option_fail(CLI_EXIT_FAILED, err);
	}
	return allowed ? 0 : EXIT_REFUSED;
}

static int help(void)
{
	fputs("usage: lodge policy COMMAND ...\nWhat sessions may have, and which programs their "
	      "commands may start.\n\n"
	      "  test   see what a policy says of a command; needs no service\n"
	      "  ls     list the policies of the service\n"
	      "  show   show one\n"
	      "  set    make or change one\n"
	      "  rm     remove one\n",
	      stdout);
	return cli_option_flush(0);
}

int cmd_policy(int argc, char **argv)
{
	struct opts o = { 0 };
	struct err err = { 0 };
	int status;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		return help();
	status = policy_remote_main(argc, argv);
	if (status >= 0)
		return status;
	if (strcmp(argv[1], "test") != 0) {
		err_set(&err, ERR_INVALID,
			"unknown command \"policy %.40s\" (try lodge policy --help)", argv[1]);
		return cli_option_fail(CLI_EXIT_USAGE, &err);
	}
	status = test(&o, argc - 1, argv + 1, &err);
	shell_rules_fini(&o.rules);
	return status;
}
