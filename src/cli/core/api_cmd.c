/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/api_cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/units.h"

enum { SILENT_MS = 30000, ID_LENGTH = 20 };

DEFINE_AUTO(struct client *, client_free);
DEFINE_AUTO(struct template *, template_fini);

/* ---- running --------------------------------------------------------------------------------- */

/* Who reads our output had enough: nothing to complain about. */
static bool is_unread(const struct err *err)
{
	return err->sys == EPIPE && ferror(stdout);
}

/* A service that is not there will not be for the next one either. */
static bool is_away(const struct err *err)
{
	return err->code == ERR_UNAVAILABLE && err->sys;
}

/* A daemon that is not there, against one that said no, and a call that was wrong. */
static int status_of(const struct api_cmd *a, const struct api_cmd_command *cmd,
		     const struct err *err)
{
	if (a->wrong || err->sys == WHERE_NO_REF)
		return cmd->misused ? cmd->misused : CLI_EXIT_USAGE;
	return is_away(err) ? CLI_EXIT_FAILED : a->failed;
}

static int check_operands(const struct api_cmd_command *cmd, int n, struct err *err)
{
	if (n >= cmd->least && (cmd->most < 0 || n <= cmd->most))
		return 0;
	/* of several ways to call it the first: this is one line */
	return err_set(err, ERR_INVALID, "%s operands: usage: %s %.*s",
		       n < cmd->least ? "too few" : "too many", cmd->opt.name,
		       (int)strcspn(cmd->opt.usage, "\n"), cmd->opt.usage);
}

/* The rest of the sentence if it begins like this; NULL: it does not. */
static const char *behind(const struct err *err, const char *begin)
{
	size_t n = strlen(begin);

	return err->code == ERR_NOT_FOUND && strncmp(err->msg, begin, n) == 0 ? err->msg + n : NULL;
}

/* A key that a shell would take apart is not put into a command to be copied, nor is one that would
 * be refused there. */
static bool is_plain_key(const char *key, size_t plain)
{
	return plain && *key != '-' && strcmp(key + plain, "'") == 0 &&
	       strncmp(key, "ses_", 4) != 0 && strncmp(key, "key:", 4) != 0;
}

/* What can be done about a session that is not there. */
static void advise_session(const struct api_cmd_command *cmd, struct err *err)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._@+/:-";
	const char *key = behind(err, "no session with key '"),
		   *id = behind(err, "no session ses_");
	char more[sizeof(err->msg)] = " (lodge ls lists them)";
	size_t n = strspn(key ? key : id ? id : "", plain), has = strlen(err->msg);

	if (!key && (!id || id[n] || n == ID_LENGTH))
		return;
	if (id)
		snprintf(more, sizeof(more), " (a key of that name is key:ses_%s)", id);
	else if (cmd->new_helps && is_plain_key(key, n))
		snprintf(more, sizeof(more), " (lodge new %.*s makes one)", (int)n, key);
	if (has + strlen(more) < sizeof(err->msg))
		memcpy(err->msg + has, more, strlen(more) + 1);
}

/* The exit status of what run() returned. */
static int finish(const struct api_cmd *a, const struct api_cmd_command *cmd, int r,
		  struct err *err)
{
	if (r >= 0)
		return cli_option_flush(r ? r : a->told ? ASK_FAILED : 0);
	if (is_unread(err))
		return CLI_EXIT_UNREAD;
	api_cmd_name_option(a, err);
	advise_session(cmd, err);
	return cli_option_fail(status_of(a, cmd, err), err);
}

static int take_call(const struct api_cmd_command *cmd, int argc, char **argv, struct api_cmd *a,
		     struct err *err)
{
	int first, r = cli_option_parse(&cmd->opt, argc, argv, a, &first, err);

	if (r)
		return r;
	a->argc = argc - first;
	a->argv = argv + first;
	if (check_operands(cmd, a->argc, err) < 0)
		return -1;
	return cmd->check ? cmd->check(a, err) : 0;
}

void api_cmd_be_prompt(struct api_cmd *a)
{
	client_limit(a->client, SILENT_MS);
}

int api_cmd_main(const struct api_cmd_command *cmd, int argc, char **argv)
{
	auto_call(client_free) struct client *client = NULL;
	struct api_cmd a = { .failed = cmd->failed ? cmd->failed : ASK_FAILED };
	auto_call(template_fini) struct template *guard = &a.spec;
	struct err err = { 0 };
	int r;

	(void)guard;
	template_init(&a.spec);
	r = take_call(cmd, argc, argv, &a, &err);
	if (r < 0) {
		a.wrong = true;
		r = cli_option_fail(status_of(&a, cmd, &err), &err);
	} else if (r > 0) {
		r = 0;
	} else if (target_client(&client, &err) < 0) {
		r = cli_option_fail(CLI_EXIT_FAILED, &err);
	} else {
		a.client = client;
		if (cmd->prompt)
			api_cmd_be_prompt(&a);
		r = finish(&a, cmd, cmd->run(&a, &err), &err);
	}
	if (a.threads)
		_exit(r);
	json_decref(a.env);
	return r;
}

static int family_help(const struct api_cmd_family *f)
{
	printf("usage: %s COMMAND ...\n%s\n\n", f->name, f->summary);
	for (const struct ask_sub *s = f->subs; s->command; s++)
		printf("  %-10s %s\n", s->name, s->summary);
	return cli_option_flush(0);
}

int api_cmd_family_main(const struct api_cmd_family *f, int argc, char **argv)
{
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return family_help(f);
	if (argc < 2 || argv[1][0] == '-')
		return api_cmd_main(f->subs->command, argc, argv);
	for (const struct ask_sub *s = f->subs; s->command; s++)
		if (strcmp(argv[1], s->name) == 0)
			return api_cmd_main(s->command, argc - 1, argv + 1);
	fprintf(stderr, "lodge: unknown command \"%.40s\" (try %s --help)\n", argv[1], f->name);
	return CLI_EXIT_USAGE;
}

/* ---- asking ---------------------------------------------------------------------------------- */

int api_cmd_list(struct api_cmd *a, const char *path, const char *member, json_t **ret,
		 struct err *err)
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

int api_cmd_put(json_t *body, const char *name, const char *value)
{
	return value ? json_object_set_new(body, name, json_string(value)) : 0;
}

int api_cmd_put_ms(struct api_cmd *a, json_t *body, const char *name, const char *option,
		   const char *value, struct err *err)
{
	uint64_t ms;

	if (!value)
		return 0;
	if (units_parse_ms(option, value, &ms, err) < 0) {
		a->wrong = true;
		return -1;
	}
	if (ms > INT64_MAX || json_object_set_new(body, name, json_integer((json_int_t)ms)) < 0)
		return api_cmd_wrong(a, err, "%s: too long", option);
	return 0;
}

/* A number out of what is too much or too little is the service's to refuse. */
static int parse_count(const char *name, const char *text, uint64_t *ret, struct err *err)
{
	return units_parse_count(name, text, 1, UINT32_MAX, ret, err);
}

int api_cmd_put_limits(struct api_cmd *a, json_t *body, struct err *err)
{
	const struct {
		const char *option, *value, *member;
		int (*parse)(const char *name, const char *text, uint64_t *ret, struct err *err);
	} all[] = { { "--memory", a->memory, "memory_bytes", units_parse_bytes },
		    { "--cpus", a->cpus, "cpu_milli", units_parse_milli },
		    { "--pids", a->pids, "pids", parse_count },
		    { "--disk", a->disk, "disk_bytes", units_parse_bytes } };
	auto_json json_t *limits = json_object();
	uint64_t n;

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (!all[i].value)
			continue;
		if (all[i].parse(all[i].option, all[i].value, &n, err) < 0) {
			a->wrong = true;
			return -1;
		}
		if (n > INT64_MAX)
			return api_cmd_wrong(a, err, "%s: too much", all[i].option);
		json_object_set_new(limits, all[i].member, json_integer((json_int_t)n));
	}
	if (json_object_size(limits) && json_object_set(body, "limits", limits) < 0)
		return err_sys(err, ENOMEM, "limits");
	return 0;
}

int api_cmd_check_key(struct api_cmd *a, const char *what, const char *key, struct err *err)
{
	char ref[WHERE_REF];

	if (!key || target_ref(key, ref, err) < 0 || strcmp(key, ref) != 0)
		return 0; /* what is wrong with it in other ways is the service's to say */
	return api_cmd_wrong(a, err, "%s: \"%.60s\" could not be called: it would be taken for %s",
			     what, key, *key == 's' ? "an id" : "the key behind the colon");
}

int api_cmd_count_of(struct api_cmd *a, const char *option, const char *value, uint64_t least,
		     uint64_t most, uint64_t *ret, struct err *err)
{
	if (!value)
		return 0;
	if (units_parse_count(option, value, least, most, ret, err) == 0)
		return 0;
	a->wrong = true;
	return -1;
}

int api_cmd_query(char *path, size_t size, const char *name, const char *value, struct err *err)
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
	return api_cmd_is(s, "id", which) || api_cmd_is(s, "name", which);
}

int api_cmd_find_snapshot(struct api_cmd *a, const char *ref, const char *which, json_t **ret,
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
			  : !found || api_cmd_number(s, "created_at") >=
					      api_cmd_number(found, "created_at"))
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

/* One shape, however many there were: scripts need not count. */
static int say_all(struct api_cmd *a, json_t *answers, struct err *err)
{
	auto_json json_t *whole = json_pack("{s:O}", "results", answers);

	return a->json ? api_cmd_write_json(whole, err) : 0;
}

int api_cmd_go_on(struct api_cmd *a, const char *what, int of, struct err *err)
{
	if (of == 1 || a->wrong || is_away(err))
		return -1;
	api_cmd_complain(a, what, err);
	return 0;
}

int api_cmd_remove_each(struct api_cmd *a, api_cmd_remove_fn *one, struct err *err)
{
	auto_json json_t *removed = json_array(), *answer = NULL;

	for (int i = 0; i < a->argc; i++) {
		if (one(a, a->argv[i], err) < 0) {
			if (api_cmd_go_on(a, a->argv[i], a->argc, err) < 0)
				return -1;
			continue;
		}
		json_array_append_new(removed, api_cmd_string(a->argv[i]));
		if (!a->json)
			api_cmd_print("%s is removed", a->argv[i]);
	}
	answer = json_pack("{s:O}", "removed", removed);
	return a->json ? api_cmd_write_json(answer, err) : 0;
}

/* -1: there is no use in going on, and the caller has err. */
static int note_failure(struct api_cmd *a, const char *operand, json_t *answers, struct err *err)
{
	struct err ignored;

	if (a->wrong || is_away(err))
		return -1;
	api_cmd_name_option(a, err);
	json_array_append_new(answers, json_pack("{s:o, s:o}", "operand", api_cmd_string(operand),
						 "error", api_cmd_string(err->msg)));
	if (a->argc == 1) {
		(void)say_all(a, answers, &ignored);
		return -1;
	}
	api_cmd_complain(a, operand, err);
	return 0;
}

int api_cmd_each(struct api_cmd *a, api_cmd_one_fn *one, api_cmd_write_fn *people, struct err *err)
{
	auto_json json_t *answers = json_array();
	char ref[WHERE_REF];

	for (int i = 0; i < a->argc; i++) {
		auto_json json_t *answer = NULL;

		if (target_ref(a->argv[i], ref, err) < 0)
			return -1;
		if (one(a, ref, &answer, err) < 0) {
			if (note_failure(a, a->argv[i], answers, err) < 0)
				return -1;
			continue;
		}
		if (!a->json && answer)
			people(a, answer);
		json_array_append(answers, answer);
	}
	return say_all(a, answers, err);
}
