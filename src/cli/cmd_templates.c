/* SPDX-License-Identifier: Apache-2.0 */
/* lodge templates: what sessions of the service start from. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/ask.h"
#include "cli/cmd.h"

static void say(struct ask *a, const json_t *answer)
{
	static const struct table_column columns[] = {
		{ "TEMPLATE", TABLE_SHRINK }, { "CLASS", 0 },	       { "USER", TABLE_SHRINK },
		{ "WORKDIR", TABLE_SHRINK },  { "SIZE", TABLE_RIGHT }, { "SESSIONS", TABLE_RIGHT },
		{ "FROM", TABLE_SHRINK }
	};
	struct table t;
	json_t *x;
	size_t i;

	(void)a;
	table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (json_object_get(answer, "templates"), i, x) {
		const char *problem = ask_text(x, "problem");

		table_add(&t, ask_text(x, "name"));
		table_add(&t, ask_text(x, "class"));
		table_add(&t, ask_text(x, "run_as"));
		table_add(&t, ask_text(x, "workdir"));
		table_add_bytes(&t, ask_number(x, "size_bytes"));
		table_addf(&t, "%lld", (long long)ask_number(x, "sessions"));
		table_add(&t, *problem ? problem
			      : json_is_true(json_object_get(x, "builtin"))
				      ? "built in"
				      : ask_text(x, "from.kind"));
		table_tint(&t, *problem ? TINT_BAD : TINT_NONE);
	}
	table_print(&t, stdout);
}

static int run(struct ask *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (client_call(a->client, "GET", "/v1/templates", NULL, &answer, err) < 0)
		return -1;
	return ask_say(a, answer, say, err);
}

static const struct opt options[] = { ASK_OPTIONS, { NULL } };

int cmd_templates(int argc, char **argv)
{
	static const struct ask_command command = {
		.opt = { .name = "lodge templates",
			 .usage = "[--json]",
			 .summary = "Lists what sessions of the service can start from.",
			 .opts = options,
			 .more = "lodge template is for the store of lodge run on this "
				 "machine.\n" },
		.run = run,
	};

	return ask_main(&command, argc, argv);
}
