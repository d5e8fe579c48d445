/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"

enum { EXIT_UNREAD = 128 + 13 }; /* as of those whom SIGPIPE ends */

DEFINE_AUTO(struct client *, client_free);

/* ---- options --------------------------------------------------------------------------------- */

#define TEXT_OPTION(field)                                                                         \
	int ask_##field(void *ctx, const char *name, const char *value, struct err *err)           \
	{                                                                                          \
		((struct ask *)ctx)->field = value;                                                \
		return *value ? 0 : err_set(err, ERR_INVALID, "%s: empty", name);                  \
	}
#define FLAG_OPTION(field)                                                                         \
	int ask_##field(void *ctx, const char *name, const char *value, struct err *err)           \
	{                                                                                          \
		(void)name;                                                                        \
		(void)value;                                                                       \
		(void)err;                                                                         \
		((struct ask *)ctx)->field = true;                                                 \
		return 0;                                                                          \
	}

TEXT_OPTION(session)
TEXT_OPTION(user)
TEXT_OPTION(state)
TEXT_OPTION(project)
TEXT_OPTION(fragment)
TEXT_OPTION(tenant)
TEXT_OPTION(scope)
TEXT_OPTION(name)
TEXT_OPTION(key)
TEXT_OPTION(template)
TEXT_OPTION(snapshot)
TEXT_OPTION(policy)
TEXT_OPTION(reason)
TEXT_OPTION(count)
TEXT_OPTION(by)
TEXT_OPTION(since)
TEXT_OPTION(expires)
TEXT_OPTION(file)
TEXT_OPTION(allow)
TEXT_OPTION(deny)
TEXT_OPTION(idle)
TEXT_OPTION(lifetime)
TEXT_OPTION(max_active)
TEXT_OPTION(on_exceed)
TEXT_OPTION(memory)
TEXT_OPTION(cpus)
TEXT_OPTION(pids)
TEXT_OPTION(disk)
FLAG_OPTION(json)
FLAG_OPTION(yes)
FLAG_OPTION(quiet)
FLAG_OPTION(all)
FLAG_OPTION(stop)
FLAG_OPTION(follow)
FLAG_OPTION(once)
FLAG_OPTION(keys)

/* ---- running --------------------------------------------------------------------------------- */

/* The service's sentence may have a guest's words in it. */
static int fail(int status, const struct err *err)
{
	struct err clean = *err;
	char text[sizeof(clean.msg)];

	snprintf(text, sizeof(text), "%s", clean.msg);
	human_clean(text, clean.msg, sizeof(clean.msg));
	return opt_fail(status, &clean);
}

/* Who reads our output had enough: nothing to complain about. */
static bool is_unread(const struct err *err)
{
	return err->sys == EPIPE && ferror(stdout);
}

/* A daemon that is not there, against one that said no. */
static int status_of(const struct err *err)
{
	return err->code == ERR_UNAVAILABLE && err->sys ? OPT_EXIT_FAILED : ASK_FAILED;
}

static int check_operands(const struct ask_command *cmd, int n, struct err *err)
{
	if (n >= cmd->least && (cmd->most < 0 || n <= cmd->most))
		return 0;
	/* of several ways to call it the first: this is one line */
	return err_set(err, ERR_INVALID, "%s operands: usage: %s %.*s",
		       n < cmd->least ? "too few" : "too many", cmd->opt.name,
		       (int)strcspn(cmd->opt.usage, "\n"), cmd->opt.usage);
}

int ask_main(const struct ask_command *cmd, int argc, char **argv)
{
	auto_call(client_free) struct client *client = NULL;
	struct ask a = { 0 };
	struct err err = { 0 };
	int first, r = opt_parse(&cmd->opt, argc, argv, &a, &first, &err);

	if (r > 0)
		return 0;
	if (r < 0 || check_operands(cmd, argc - first, &err) < 0)
		return fail(OPT_EXIT_USAGE, &err);
	a.argc = argc - first;
	a.argv = argv + first;
	if (cmd->check && cmd->check(&a, &err) < 0)
		return fail(OPT_EXIT_USAGE, &err);
	if (where_client(&client, &err) < 0)
		return fail(OPT_EXIT_FAILED, &err);
	a.client = client;
	r = cmd->run(&a, &err);
	if (r < 0 && is_unread(&err))
		return EXIT_UNREAD;
	if (r < 0)
		return fail(a.wrong ? OPT_EXIT_USAGE : status_of(&err), &err);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		err_sys(&err, errno, "standard output");
		return is_unread(&err) ? EXIT_UNREAD : fail(OPT_EXIT_FAILED, &err);
	}
	return r ? r : a.told ? ASK_FAILED : 0;
}

static int family_help(const struct ask_family *f)
{
	printf("usage: %s COMMAND ...\n%s\n\n", f->name, f->summary);
	for (const struct ask_sub *s = f->subs; s->command; s++)
		printf("  %-8s %s\n", s->name, s->summary);
	return 0;
}

int ask_family_main(const struct ask_family *f, int argc, char **argv)
{
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return family_help(f);
	if (argc < 2 || argv[1][0] == '-')
		return ask_main(f->subs->command, argc, argv);
	for (const struct ask_sub *s = f->subs; s->command; s++)
		if (strcmp(argv[1], s->name) == 0)
			return ask_main(s->command, argc - 1, argv + 1);
	fprintf(stderr, "lodge: unknown command \"%.40s\" (try %s --help)\n", argv[1], f->name);
	return OPT_EXIT_USAGE;
}

/* ---- asking ---------------------------------------------------------------------------------- */

int ask_list(struct ask *a, const char *path, const char *member, json_t **ret, struct err *err)
{
	auto_json json_t *whole = json_object();
	json_t *items = NULL;

	if (client_list(a->client, path, member, &items, err) < 0)
		return -1;
	if (json_object_set_new(whole, member, items) < 0)
		return err_sys(err, ENOMEM, "%s", member);
	*ret = steal_ptr(&whole);
	return 0;
}

int ask_put(json_t *body, const char *name, const char *value)
{
	return value ? json_object_set_new(body, name, json_string(value)) : 0;
}

int ask_put_ms(struct ask *a, json_t *body, const char *name, const char *option, const char *value,
	       struct err *err)
{
	uint64_t ms;

	if (!value)
		return 0;
	if (size_parse_ms(option, value, &ms, err) < 0) {
		a->wrong = true;
		return -1;
	}
	if (ms > INT64_MAX || json_object_set_new(body, name, json_integer((json_int_t)ms)) < 0)
		return ask_wrong(a, err, "%s: too long", option);
	return 0;
}

int ask_count_of(struct ask *a, const char *option, const char *value, uint64_t least,
		 uint64_t most, uint64_t *ret, struct err *err)
{
	if (!value)
		return 0;
	if (size_parse_count(option, value, least, most, ret, err) == 0)
		return 0;
	a->wrong = true;
	return -1;
}

int ask_query(char *path, size_t size, const char *name, const char *value, struct err *err)
{
	char part[ASK_PATH];
	size_t has = strlen(path);
	int n;

	if (!value)
		return 0;
	if (client_path(part, sizeof(part), err, "?%s", value) < 0)
		return -1;
	n = snprintf(path + has, size - has, "%c%s=%s", strchr(path, '?') ? '&' : '?', name,
		     part + 1);
	if (n < 0 || (size_t)n >= size - has)
		return err_set(err, ERR_INVALID, "%s: too long", name);
	return 0;
}

/* Whether `which` is this one's id, or name. */
static bool is_snapshot(const json_t *s, const char *which)
{
	return ask_is(s, "id", which) || ask_is(s, "name", which);
}

int ask_find_snapshot(struct ask *a, const char *ref, const char *which, json_t **ret,
		      struct err *err)
{
	auto_json json_t *list = NULL;
	char path[ASK_PATH];
	json_t *s, *found = NULL;
	size_t i;

	if (client_path(path, sizeof(path), err, "/v1/sessions/%s/snapshots", ref) < 0 ||
	    client_list(a->client, path, "snapshots", &list, err) < 0)
		return -1;
	json_array_foreach (list, i, s) {
		if (which ? is_snapshot(s, which)
			  : !found ||
				    ask_number(s, "created_at") >= ask_number(found, "created_at"))
			found = s;
	}
	if (!found && which)
		return err_set(err, ERR_NOT_FOUND,
			       "no snapshot \"%.64s\" of this session (lodge snapshots lists them)",
			       which);
	if (!found)
		return err_set(err, ERR_NOT_FOUND,
			       "this session has no snapshot (lodge snapshot takes one)");
	*ret = json_incref(found);
	return 0;
}

/* ---- several sessions ------------------------------------------------------------------------ */

/* Of one operand the answer itself, of several an array. */
static int say_all(struct ask *a, json_t *answers, struct err *err)
{
	if (!a->json)
		return 0;
	return ask_say_json(a->argc == 1 ? json_array_get(answers, 0) : answers, err);
}

int ask_each(struct ask *a, ask_one_fn *one, ask_say_fn *people, struct err *err)
{
	auto_json json_t *answers = json_array();
	char ref[WHERE_REF];

	for (int i = 0; i < a->argc; i++) {
		auto_json json_t *answer = NULL;

		if (where_ref(a->argv[i], ref, err) < 0)
			return -1;
		if (one(a, ref, &answer, err) < 0) {
			if (status_of(err) == OPT_EXIT_FAILED || (a->argc == 1))
				return -1;
			ask_complain(a, a->argv[i], err);
			answer = json_pack("{s:o, s:o}", "operand", ask_string(a->argv[i]), "error",
					   ask_string(err->msg));
		} else if (!a->json && answer) {
			people(a, answer);
		}
		json_array_append(answers, answer);
	}
	return say_all(a, answers, err);
}
