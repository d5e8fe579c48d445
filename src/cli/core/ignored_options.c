/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/ignored_options.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"

enum { OPTIONS_MAX = 16 };

struct ignored {
	const json_t *fields; /* of the answer */
	bool fixed; /* look for options that `lodge set` does not have */
	const char *options[OPTIONS_MAX];
	size_t count;
};

/* What `lodge set` changes. */
static bool is_settable(const char *field)
{
	static const char *const times[] = { "idle_timeout_ms", "lifetime_ms", "max_lifetime_ms",
					     "delete_after_ms" };

	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		if (strcmp(field, times[i]) == 0)
			return true;
	return strncmp(field, "limits.", 7) == 0;
}

static bool is_listed(const json_t *fields, const char *field)
{
	const char *name = strcmp(field, "limits.cpu_milli") == 0 ? "limits.cpus" : field;
	json_t *one;
	size_t i;

	json_array_foreach (fields, i, one) {
		if (member_is(one, "", name))
			return true;
	}
	return false;
}

static int add_option(const struct cli_option *o, void *at, void *arg)
{
	struct ignored *to = arg;

	if (o->field && !o->old && cli_option_text(o, at) && to->count < OPTIONS_MAX &&
	    is_settable(o->field) != to->fixed && is_listed(to->fields, o->field))
		to->options[to->count++] = o->name;
	return 0;
}

static void warn(struct api_cmd *a, const char *name, struct ignored *of)
{
	bool many;

	cli_option_each(a->cmd->options, a, add_option, of);
	if (!of->count)
		return;
	many = of->count > 1;
	fprintf(stderr, "lodge: %s already exists; ", name);
	for (size_t i = 0; i < of->count; i++)
		fprintf(stderr, "%s--%s",
			!i		    ? ""
			: i + 1 < of->count ? ", "
					    : " and ",
			of->options[i]);
	if (of->fixed)
		fprintf(stderr, " %s ignored (fixed when it was created)\n", many ? "were" : "was");
	else
		fprintf(stderr, " %s ignored (use `lodge set` to change %s)\n",
			many ? "were" : "was", many ? "them" : "it");
}

void ignored_options_warn(struct api_cmd *a, const char *name, const json_t *answer)
{
	const json_t *fields = json_object_get(answer, "ignored");
	auto_free char *clean = human_clean_dup(name);

	for (int fixed = 0; fixed < 2; fixed++) {
		struct ignored of = { .fields = fields, .fixed = fixed };

		warn(a, clean ? clean : "session", &of);
	}
}
