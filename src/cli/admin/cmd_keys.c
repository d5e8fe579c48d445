/* SPDX-License-Identifier: Apache-2.0 */
/* lodge keys: who may ask the service. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"
#include "cli/core/print_session.h"

/* ---- ls -------------------------------------------------------------------------------------- */

static void say_list(struct api_cmd *a, const json_t *answer)
{
	static const struct text_table_column columns[] = { { "KEY", 0 },
							    { "TENANT", TABLE_SHRINK },
							    { "SCOPE", TABLE_SHRINK },
							    { "USER", TABLE_SHRINK },
							    { "NAME", TABLE_SHRINK },
							    { "AGE", TABLE_RIGHT },
							    { "EXPIRES", 0 } };
	char when[64];
	struct text_table t;
	json_t *k;
	size_t i;

	(void)a;
	text_table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (json_object_get(answer, "keys"), i, k) {
		text_table_add(&t, api_cmd_text(k, "id"));
		text_table_add(&t, api_cmd_text(k, "tenant"));
		text_table_add(&t, api_cmd_text(k, "scope"));
		text_table_add(&t, api_cmd_text(k, "user"));
		text_table_add(&t, api_cmd_text(k, "name"));
		text_table_add_span(&t, clock_wall_ms() - api_cmd_number(k, "created_at"));
		print_when(api_cmd_number(k, "expires_at"), when, sizeof(when));
		text_table_add(&t, *when ? when : "never");
	}
	text_table_print(&t, stdout);
	if (i == 0)
		api_cmd_hint("no keys (lodge keys add makes one)");
}

static int exec_list(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH] = "/v1/keys?limit=1000";

	if (api_cmd_query(path, sizeof(path), "tenant", a->tenant, err) < 0 ||
	    api_cmd_list(a, path, "keys", &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, say_list, err);
}

static const struct cli_option list_options[] = {
	{ "tenant", 0, "TENANT", ask_tenant, "of this tenant" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command list_command = {
	.opt = { .name = "lodge keys ls",
		 .usage = "[--tenant TENANT]",
		 .summary = "Lists keys; not the secrets, which are kept nowhere.",
		 .opts = list_options },
	.prompt = true,
	.run = exec_list,
};

/* ---- add ------------------------------------------------------------------------------------- */

/* The secret alone on standard output, so that it can be put somewhere. */
static void say_added(struct api_cmd *a, const json_t *answer)
{
	const json_t *k = json_object_get(answer, "key");

	(void)a;
	api_cmd_remark("%s for tenant %s, scope %s; the secret is told once:",
		       api_cmd_text(k, "id"), api_cmd_text(k, "tenant"), api_cmd_text(k, "scope"));
	api_cmd_print("%s", api_cmd_text(answer, "secret"));
}

static int run_add(struct api_cmd *a, struct err *err)
{
	auto_json json_t *body = json_object(), *answer = NULL;

	if (api_cmd_put(body, "tenant", a->tenant) < 0 ||
	    api_cmd_put(body, "scope", a->scope) < 0 || api_cmd_put(body, "user", a->user) < 0 ||
	    api_cmd_put(body, "name", a->name) < 0)
		return err_set(err, ERR_INVALID, "an option is no text (UTF-8)");
	if (api_cmd_put_ms(a, body, "expires_in_ms", "--expires", a->expires, err) < 0 ||
	    client_call(a->client, "POST", "/v1/keys", body, &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, say_added, err);
}

static const struct cli_option add_options[] = {
	{ "tenant", 0, "TENANT", ask_tenant, "whose it is (default: that of the key that asks)" },
	{ "scope", 0, "SCOPE", ask_scope, "session (default), session:ID, tenant or admin" },
	{ "user", 'u', "USER", ask_user, "a token for this end user alone" },
	{ "name", 'n', "NAME", ask_name, "for people" },
	{ "expires", 0, "TIME", ask_expires, "after so long, as 30m or 7d (default: never)" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command add_command = {
	.opt = { .name = "lodge keys add",
		 .usage = "[OPTION...]",
		 .summary = "Makes a key and prints its secret.",
		 .opts = add_options },
	.prompt = true,
	.run = run_add,
};

/* ---- rm -------------------------------------------------------------------------------------- */

static int run_remove(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (!api_cmd_sure(a, "Remove key %s? Who has it cannot ask any more.", a->argv[0]))
		return err_set(err, ERR_CONFLICT, "nothing was removed");
	if (api_cmd_call(a, "DELETE", NULL, &answer, err, "/v1/keys/%s", a->argv[0]) < 0)
		return -1;
	if (a->json)
		return api_cmd_write_json(answer, err);
	api_cmd_print("%s is removed", api_cmd_text(answer, "key.id"));
	return 0;
}

static const struct cli_option remove_options[] = {
	{ "yes", 'y', NULL, ask_yes, "do not ask" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command remove_command = {
	.opt = { .name = "lodge keys rm",
		 .usage = "[--yes] KEY",
		 .summary = "Removes a key, by its id.",
		 .opts = remove_options },
	.least = 1,
	.most = 1,
	.prompt = true,
	.run = run_remove,
};

int cmd_keys(int argc, char **argv)
{
	static const struct ask_sub subs[] = {
		{ "ls", &list_command, "list keys" },
		{ "add", &add_command, "make a key" },
		{ "rm", &remove_command, "remove a key" },
		{ NULL, NULL, NULL },
	};
	static const struct api_cmd_family family = { "lodge keys", "Who may ask the service.",
						      subs };

	return api_cmd_family_main(&family, argc, argv);
}
