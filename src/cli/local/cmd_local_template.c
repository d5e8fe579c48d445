/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/units.h"
#include "cli/core/api_cmd.h"
#include "cli/local/local_template_add.h"
#include "sandbox/home_dir.h"
#include "sandbox/keeper_client.h"
#include "sandbox/template/template.h"

struct local_opts {
	struct api_cmd a;
	const char *home;
};

/* clang-format off */
#define OPTION_HOME                                                                                \
	{ "home", 0, "DIR", CLI_TEXT, offsetof(struct local_opts, home), "data directory of lodge" }
/* clang-format on */

/* ---- ls -------------------------------------------------------------------------------------- */

struct listing {
	const char *home;
	struct json_out *json; /* NULL: print a table */
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
	json_out_bool(j, "builtin", template_is_builtin(name));
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
		return err_set(err, ERR_LIMIT, "cannot list templates as JSON: more than 16 MiB");
	puts(text);
	return 0;
}

static int run_ls(struct api_cmd *a, struct err *err)
{
	char home[HOME_DIR_SIZE];
	struct listing l = { .home = home };
	struct json_out j;
	int r;

	if (home_dir_find(((struct local_opts *)a)->home, home, err) < 0)
		return -1;
	json_out_init(&j, 16 << 20);
	if (a->json) {
		l.json = &j;
		json_out_object(&j, NULL);
		json_out_array(&j, "templates");
	}
	r = list_all(&l, err);
	if (!r && a->json)
		r = finish(&j, err);
	json_out_fini(&j);
	return r;
}

static const struct cli_option ls_options[] = { OPTION_JSON("print JSON"), OPTION_HOME, { NULL } };

static const struct command template_ls = {
	.name = "template ls",
	.usage = "[--json]",
	.summary = "list the templates of this machine",
	.options = ls_options,
	.size = sizeof(struct local_opts),
	.local = true,
	.run = run_ls,
};

/* ---- rm -------------------------------------------------------------------------------------- */

static int remove_template(const char *home, const char *name, struct err *err)
{
	auto_call(keeper_client_free) struct keeper_client *k = NULL;
	struct keeper_client_opts how = { .home = home, .oneshot = true };

	if (keeper_client_spawn(&how, &k, err) < 0)
		return -1;
	/* an earlier rm may have been interrupted after it removed the files */
	if (local_template_delete(k, name, err) < 0 && err->code != ERR_NOT_FOUND)
		return -1;
	return template_remove(home, name, err);
}

static int check_removable(const char *home, const char *name, struct err *err)
{
	struct template t;
	bool of_snapshot;
	int r;

	if (template_is_builtin(name))
		return err_set(err, ERR_INVALID, "template \"%s\" is built in", name);
	r = template_load(home, name, &t, err);
	of_snapshot = t.layer != NULL;
	template_fini(&t);
	if (of_snapshot)
		return err_set(err, ERR_CONFLICT,
			       "template \"%s\" was created from a snapshot: only lodged can "
			       "remove it",
			       name);
	/* one that is damaged can be removed */
	return r < 0 && (err->code == ERR_NOT_FOUND || !template_name_is_valid(name)) ? -1 : 0;
}

static int run_rm(struct api_cmd *a, struct err *err)
{
	char home[HOME_DIR_SIZE];

	if (home_dir_find(((struct local_opts *)a)->home, home, err) < 0 ||
	    check_removable(home, a->argv[0], err) < 0)
		return -1;
	if (!api_cmd_confirm(a, "Delete template %s?", a->argv[0]))
		return err_set(err, ERR_INVALID, "cancelled: no template was deleted");
	return remove_template(home, a->argv[0], err);
}

static const struct cli_option rm_options[] = { OPTION_YES, OPTION_HOME, { NULL } };

static const struct command template_rm = {
	.name = "template rm",
	.usage = "NAME [--yes]",
	.summary = "delete a template",
	.options = rm_options,
	.size = sizeof(struct local_opts),
	.least = 1,
	.most = 1,
	.local = true,
	.run = run_rm,
};

static const struct command *const subs[] = {
	&local_template_add,
	&template_ls,
	&template_rm,
	NULL,
};

const struct command cmd_template = {
	.name = "template",
	.usage = "",
	.summary = "manage what lodge run starts from",
	.more = "`lodge templates` manages those of a service, for sessions.\n",
	.subs = subs,
	.needs_sub = true,
};
