/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/core/commands.h"
#include "cli/core/options.h"
#include "cli/local/local_template_add.h"
#include "sandbox/home_dir.h"
#include "sandbox/keeper_client.h"
#include "sandbox/template/template.h"

struct opts {
	const char *home;
	bool json, yes;
};

static int set_home(void *ctx, const char *name, const char *value, struct err *err)
{
	((struct opts *)ctx)->home = value;
	return *value ? 0 : err_set(err, ERR_INVALID, "%s: empty", name);
}

static int set_json(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)name;
	(void)value;
	(void)err;
	((struct opts *)ctx)->json = true;
	return 0;
}

static int set_yes(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)name;
	(void)value;
	(void)err;
	((struct opts *)ctx)->yes = true;
	return 0;
}

/* ---- ls -------------------------------------------------------------------------------------- */

static const struct cli_option ls_options[] = {
	{ "json", 0, NULL, set_json, "as JSON" },
	{ "home", 0, "DIR", set_home, "where lodge keeps its data" },
	{ NULL },
};

static const struct cli_option_command ls_command = {
	.name = "lodge template ls",
	.usage = "[--json]",
	.summary = "Lists what sandboxes can start from.",
	.opts = ls_options,
};

struct listing {
	const char *home;
	struct json_out *json; /* NULL: for people */
};

static const char *class_name(const struct template *t)
{
	return t->class == KEEPER_CLASS_ROOT ? "root" : "user";
}

static void put_template(struct json_out *j, const char *name, const struct template *t,
			 const char *problem)
{
	json_out_object(j, NULL);
	json_out_str(j, "name", name);
	json_out_bool(j, "builtin", !strcmp(name, "host") || !strcmp(name, "empty"));
	json_out_str(j, "class", class_name(t));
	json_out_str(j, "user", t->user);
	json_out_str(j, "workdir", t->workdir);
	json_out_array(j, "env");
	for (size_t i = 0; i < t->nenv; i++)
		json_out_str(j, NULL, t->env[i]);
	json_out_end(j);
	json_out_object(j, "limits");
	for (unsigned i = 0; template_limit_name(i); i++)
		if (t->limits_set & 1u << i)
			json_out_u64(j, template_limit_name(i), template_limit_value(t, i));
	json_out_end(j);
	if (problem)
		json_out_str(j, "error", problem);
	json_out_end(j);
}

static void print_limits(const struct template *t)
{
	char text[SIZE_TEXT];

	for (unsigned i = 0; template_limit_name(i); i++) {
		const char *name = template_limit_name(i), *bytes = strstr(name, "_bytes");
		uint64_t v = template_limit_value(t, i);

		if (!(t->limits_set & 1u << i))
			continue;
		if (bytes)
			printf(" %.*s=%s", (int)(bytes - name), name, units_format(v, text));
		else
			printf(" %s=%llu", name, (unsigned long long)v);
	}
}

static int list_one(void *arg, const char *name)
{
	struct listing *l = arg;
	struct template t;
	struct err err = { 0 };
	const char *problem = NULL;

	if (template_load(l->home, name, &t, &err) < 0)
		problem = err.msg;
	if (l->json) {
		put_template(l->json, name, &t, problem);
	} else if (problem) {
		printf("%-20s %s\n", name, problem);
	} else {
		printf("%-20s %-5s %-12s %-20s", name, class_name(&t), t.user ? t.user : "-",
		       t.workdir ? t.workdir : "-");
		print_limits(&t);
		putchar('\n');
	}
	template_fini(&t);
	return 0;
}

static int list_all(struct listing *l, struct err *err)
{
	if (!l->json)
		printf("%-20s %-5s %-12s %-20s %s\n", "NAME", "CLASS", "USER", "WORKDIR", "LIMITS");
	list_one(l, "host");
	return template_each(l->home, list_one, l, err);
}

static int finish(struct json_out *j, struct err *err)
{
	auto_free char *text = NULL;

	json_out_end(j);
	json_out_end(j);
	text = json_out_take(j, NULL);
	if (!text)
		return err_set(err, ERR_LIMIT, "too many templates");
	puts(text);
	return 0;
}

static int ls(int argc, char **argv, struct err *err)
{
	struct opts o = { 0 };
	char home[HOME_DIR_SIZE];
	struct listing l = { .home = home };
	struct json_out j;
	int first, n = cli_option_parse(&ls_command, argc, argv, &o, &first, err);

	if (n)
		return n < 0 ? -CLI_EXIT_USAGE : 0;
	if (first < argc) {
		err_set(err, ERR_INVALID, "template ls takes no name");
		return -CLI_EXIT_USAGE;
	}
	if (home_dir_find(o.home, home, err) < 0)
		return -1;
	json_out_init(&j, 16 << 20);
	if (o.json) {
		l.json = &j;
		json_out_object(&j, NULL);
		json_out_array(&j, "templates");
	}
	n = list_all(&l, err);
	if (!n && o.json)
		n = finish(&j, err);
	json_out_fini(&j);
	return n;
}

/* ---- rm -------------------------------------------------------------------------------------- */

static const struct cli_option rm_options[] = {
	{ "yes", 'y', NULL, set_yes, "do not ask" },
	{ "home", 0, "DIR", set_home, "where lodge keeps its data" },
	{ NULL },
};

static const struct cli_option_command rm_command = {
	.name = "lodge template rm",
	.usage = "NAME [--yes]",
	.summary = "Removes a template. Asks before, on a terminal.",
	.opts = rm_options,
};

static bool confirm(const char *name)
{
	char answer[16];

	if (!isatty(STDIN_FILENO))
		return true;
	fprintf(stderr, "remove template %s? [y/N] ", name);
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int drop(const char *home, const char *name, struct err *err)
{
	auto_call(keeper_client_free) struct keeper_client *k = NULL;
	struct keeper_client_opts how = { .home = home, .oneshot = true };

	if (keeper_client_spawn(&how, &k, err) < 0)
		return -1;
	/* files that are gone already: an earlier rm was interrupted */
	if (local_template_delete(k, name, err) < 0 && err->code != ERR_NOT_FOUND)
		return -1;
	return template_remove(home, name, err);
}

static int rm(int argc, char **argv, struct err *err)
{
	struct opts o = { 0 };
	char home[HOME_DIR_SIZE];
	struct template t;
	bool of_snapshot;
	int first, n = cli_option_parse(&rm_command, argc, argv, &o, &first, err);

	if (n)
		return n < 0 ? -CLI_EXIT_USAGE : 0;
	if (first + 1 != argc) {
		err_set(err, ERR_INVALID, "template rm: give one name");
		return -CLI_EXIT_USAGE;
	}
	if (!strcmp(argv[first], "host") || !strcmp(argv[first], "empty"))
		return err_set(err, ERR_INVALID, "template \"%s\" is built in", argv[first]);
	if (home_dir_find(o.home, home, err) < 0)
		return -1;
	n = template_load(home, argv[first], &t, err);
	of_snapshot = t.layer != NULL;
	template_fini(&t);
	if (of_snapshot)
		return err_set(err, ERR_CONFLICT,
			       "template \"%s\" is made of a snapshot: only lodged can remove it",
			       argv[first]);
	if (n < 0 && (err->code == ERR_NOT_FOUND || !template_name_is_valid(argv[first])))
		return -1;
	if (!o.yes && !confirm(argv[first]))
		return err_set(err, ERR_INVALID, "not removed");
	return drop(home, argv[first], err);
}

/* ---- the command ----------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*run)(int argc, char **argv, struct err *err); /* 0 or -status */
	const char *summary;
} subcommands[] = {
	{ "add", local_template_add, "make one from a directory, a tar or an OCI image layout" },
	{ "ls", ls, "list them" },
	{ "rm", rm, "remove one" },
};

static void help(FILE *to)
{
	fputs("usage: lodge template COMMAND ...\nWhat sandboxes of lodge run on this machine "
	      "start "
	      "from. Those of a service: lodge templates.\n\n",
	      to);
	for (size_t i = 0; i < ARRAY_LEN(subcommands); i++)
		fprintf(to, "  %-6s %s\n", subcommands[i].name, subcommands[i].summary);
}

int cmd_template(int argc, char **argv)
{
	struct err err = { 0 };

	if (argc < 2) {
		help(stderr);
		return CLI_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		help(stdout);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(subcommands); i++) {
		if (!strcmp(argv[1], subcommands[i].name)) {
			int n = subcommands[i].run(argc - 1, argv + 1, &err);

			return n ? cli_option_fail(-n, &err) : 0;
		}
	}
	err_set(&err, ERR_INVALID, "unknown command \"template %.40s\" (try lodge template --help)",
		argv[1]);
	return cli_option_fail(CLI_EXIT_USAGE, &err);
}
