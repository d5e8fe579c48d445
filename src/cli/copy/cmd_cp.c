/* SPDX-License-Identifier: Apache-2.0 */
/* lodge cp: copies files and directories into and out of sessions. */
#include <stdio.h>
#include <string.h>

#include "cli/copy/cp.h"

/* ---- targets --------------------------------------------------------------------------------- */

/* "SESSION:path"; a name with a slash before the colon is local, as with scp(1). */
static int parse_target(const char *arg, struct cp_target *ret, struct err *err)
{
	const char *name = strncmp(arg, "key:", 4) == 0 ? strchr(arg, ':') + 1 : arg;
	const char *colon = strpbrk(name, ":/");
	char session[TARGET_REF];

	*ret = (struct cp_target){ .given = arg, .path = arg, .stream = strcmp(arg, "-") == 0 };
	if (!colon || *colon != ':')
		return *arg ? 0 : err_set(err, ERR_INVALID, "path must not be empty");
	if (colon == name || (size_t)(colon - arg) >= sizeof(session))
		return err_set(err, ERR_INVALID, "%.80s: SESSION is missing before the colon", arg);
	snprintf(session, sizeof(session), "%.*s", (int)(colon - arg), arg);
	ret->remote = true;
	ret->path = colon + 1;
	return target_ref(session, ret->ref, err);
}

static int copy_one(struct api_cmd *a, const char *arg, const struct cp_target *to, json_t *copied,
		    struct err *err)
{
	struct cp c = { .a = a, .to = *to, .many = a->argc > 2 };

	if (parse_target(arg, &c.from, err) < 0 || cp_copy(&c, err) < 0)
		return -1;
	json_array_append_new(copied,
			      json_pack("{s:o, s:o, s:I}", "from", api_cmd_string(arg), "to",
					api_cmd_string(to->given), "bytes", (json_int_t)c.bytes));
	return 0;
}

static int check(struct api_cmd *a, struct err *err)
{
	struct cp_target from, to;

	if (parse_target(a->argv[a->argc - 1], &to, err) < 0)
		return -1;
	if (a->json && to.stream)
		return api_cmd_misuse(a, err,
				      "--json: cannot be used when copying to standard output");
	for (int i = 0; i < a->argc - 1; i++) {
		if (parse_target(a->argv[i], &from, err) < 0)
			return -1;
		if (from.remote == to.remote)
			return api_cmd_misuse(
				a, err,
				"copy between a session and this machine: exactly one side must "
				"be SESSION:PATH");
	}
	return 0;
}

static int run(struct api_cmd *a, struct err *err)
{
	auto_json json_t *copied = json_array(), *answer = NULL;
	struct cp_target to;

	if (parse_target(a->argv[a->argc - 1], &to, err) < 0)
		return -1;
	for (int i = 0; i < a->argc - 1; i++) {
		if (copy_one(a, a->argv[i], &to, copied, err) < 0 &&
		    api_cmd_continue(a, a->argv[i], a->argc - 1, err) < 0)
			return -1;
	}
	answer = json_pack("{s:O}", "copied", copied);
	return a->json ? api_cmd_write_json(answer, err) : 0;
}

static const struct cli_option options[] = {
	OPTION_QUIET("show no progress"),
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_cp = {
	.name = "cp",
	.usage = "SOURCE... SESSION:PATH\n"
		 "       lodge cp SESSION:PATH... TARGET",
	.summary = "copy files into or out of a session",
	.options = options,
	.more = "A relative PATH starts at the session's working directory. - is standard input "
		"or\n"
		"output.\n\n"
		"Examples\n"
		"  lodge cp main.py alice:\n"
		"  lodge cp alice:out/ results\n",
	.least = 2,
	.most = -1,
	.new_helps = true,
	.check = check,
	.run = run,
};
