/* SPDX-License-Identifier: Apache-2.0 */
/* lodge new, rm, pause, unpause, hibernate, resume, extend: the life of sessions. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"
#include "cli/core/print_session.h"

enum { LINE = 512 };

static const struct cli_option no_options[] = { ASK_OPTIONS, { NULL } };

static void say_now(struct api_cmd *a, const json_t *answer)
{
	const json_t *s = json_object_get(answer, "session");
	char name[LINE];

	(void)a;
	api_cmd_print("%s: %s", print_name(s, name, sizeof(name)), print_state(s));
}

/* ---- new ------------------------------------------------------------------------------------- */

static void say_new(struct api_cmd *a, const json_t *answer)
{
	(void)a;
	if (json_is_true(json_object_get(answer, "state_lost")))
		fprintf(stderr,
			"lodge: files of an earlier sandbox are gone (lodge show tells why)\n");
	api_cmd_print("%s", api_cmd_text(answer, "session.id"));
}

/* A session that is there does not change: who asked for more than its key is told so. */
static void say_unchanged(const json_t *asked, const json_t *answer)
{
	auto_free char *name = NULL;

	if (api_cmd_is(answer, "outcome", "created") ||
	    json_object_size(asked) <= (json_object_get(asked, "key") ? 1 : 0))
		return;
	name = human_clean_dup(api_cmd_called(json_object_get(answer, "session")));
	fprintf(stderr, "lodge: %s is there already; what was asked for is left as it was\n",
		name ? name : "it");
}

static int check_new(struct api_cmd *a, struct err *err)
{
	if (a->argc && a->key)
		return api_cmd_wrong(a, err, "new: give one key, with --key or without");
	if (a->argc)
		a->key = a->argv[0];
	return api_cmd_check_key(a, "--key", a->key, err);
}

static int exec_handle_new(struct api_cmd *a, struct err *err)
{
	auto_json json_t *body = json_object(), *answer = NULL;

	if (api_cmd_put(body, "key", a->key) < 0 || api_cmd_put(body, "user", a->user) < 0 ||
	    api_cmd_put(body, "project", a->project) < 0 ||
	    api_cmd_put(body, "template", a->template) < 0 ||
	    api_cmd_put(body, "snapshot", a->snapshot) < 0 ||
	    api_cmd_put(body, "policy", a->policy) < 0)
		return err_set(err, ERR_INVALID, "an option is no text (UTF-8)");
	if (api_cmd_put_ms(a, body, "idle_timeout_ms", "--idle", a->idle, err) < 0 ||
	    api_cmd_put_ms(a, body, "max_lifetime_ms", "--lifetime", a->lifetime, err) < 0 ||
	    api_cmd_put_limits(a, body, err) < 0 ||
	    client_call(a->client, "POST", "/v1/sessions", body, &answer, err) < 0)
		return -1;
	say_unchanged(body, answer);
	return api_cmd_write(a, answer, say_new, err);
}

static const struct cli_option new_options[] = {
	{ "key", 'k', "KEY", ask_key, "a name of your own, which leads to it" },
	{ "user", 'u', "USER", ask_user, "whose it is" },
	{ "project", 'p', "PROJECT", ask_project, "a name for the record" },
	{ "template", 0, "NAME", ask_template, "what its files begin as (default: host)" },
	{ "snapshot", 0, "ID", ask_snapshot, "begin with the files of this snapshot" },
	{ "policy", 0, "NAME", ask_policy, "the policy it is under" },
	{ "idle", 0, "TIME", ask_idle, "sleep after so long without use (default: 30m)" },
	{ "lifetime", 0, "TIME", ask_lifetime, "no sandbox of it lives longer (default: 5h)" },
	LIMIT_OPT_MAIN(ask_memory, ask_cpus, ask_pids, ask_disk),
	ASK_OPTIONS,
	{ NULL },
};

int cmd_new(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge new",
			 .usage = "[OPTION...] [KEY]",
			 .summary =
				 "Makes a session, or finds the one of the key, and prints its id.",
			 .opts = new_options,
			 .more = "KEY is as with --key. A template, a policy and the settings of "
				 "the service may\nsay other defaults.\n" },
		.most = 1,
		.check = check_new,
		.run = exec_handle_new,
	};

	return api_cmd_main(&command, argc, argv);
}

/* ---- rm -------------------------------------------------------------------------------------- */

static void say_removed(struct api_cmd *a, const json_t *answer)
{
	const json_t *t = json_object_get(answer, "tombstone");
	const char *user = api_cmd_text(t, "user");
	char why[LINE];

	print_cause(json_object_get(t, "cause"), why, sizeof(why));
	api_cmd_print("%s%s%s%s: destroyed (%s%s%s%s)", a->key ? a->key : "", a->key ? " (" : "",
		      api_cmd_text(t, "session"), a->key ? ")" : "", *user ? "of " : "", user,
		      *user ? "; " : "", why);
}

static int remove_one(struct api_cmd *a, const char *ref, json_t **ret, struct err *err)
{
	char path[ASK_PATH];

	/* what is left of it has no key */
	a->key = strncmp(ref, "key:", 4) == 0 ? ref + 4 : NULL;
	if (client_path(path, sizeof(path), err, "/v1/sessions/%s", ref) < 0 ||
	    api_cmd_query(path, sizeof(path), "reason", a->reason, err) < 0)
		return -1;
	return client_call(a->client, "DELETE", path, NULL, ret, err);
}

static int run_rm(struct api_cmd *a, struct err *err)
{
	bool sure = a->argc == 1 ? api_cmd_sure(a, "Destroy %s with its files?", a->argv[0])
				 : api_cmd_sure(a, "Destroy these %d sessions with their files?",
						a->argc);

	if (!sure)
		return err_set(err, ERR_CONFLICT, "nothing was destroyed");
	return api_cmd_each(a, remove_one, say_removed, err);
}

static const struct cli_option rm_options[] = {
	{ "yes", 'y', NULL, ask_yes, "do not ask" },
	{ "reason", 0, "TEXT", ask_reason, "told to those who ask for it later" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_rm(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge rm",
			 .usage = "[--yes] SESSION...",
			 .summary = "Destroys sessions with their files; their snapshots stay.",
			 .opts = rm_options,
			 .more = ASK_ASKS },
		.least = 1,
		.most = -1,
		.run = run_rm,
	};

	return api_cmd_main(&command, argc, argv);
}

/* ---- moves ----------------------------------------------------------------------------------- */

#define MOVE(verb)                                                                                 \
	static int verb##_one(struct api_cmd *a, const char *ref, json_t **ret, struct err *err)   \
	{                                                                                          \
		return api_cmd_call(a, "POST", NULL, ret, err, "/v1/sessions/%s/" #verb, ref);     \
	}                                                                                          \
	static int run_##verb(struct api_cmd *a, struct err *err)                                  \
	{                                                                                          \
		return api_cmd_each(a, verb##_one, say_now, err);                                  \
	}                                                                                          \
	int cmd_##verb(int argc, char **argv)                                                      \
	{                                                                                          \
		static const struct api_cmd_command command = {                                    \
			.opt = { .name = "lodge " #verb,                                           \
				 .usage = "SESSION...",                                            \
				 .summary = verb##_text,                                           \
				 .opts = no_options },                                             \
			.least = 1,                                                                \
			.most = -1,                                                                \
			.run = run_##verb,                                                         \
		};                                                                                 \
                                                                                                   \
		return api_cmd_main(&command, argc, argv);                                         \
	}

static const char pause_text[] = "Freezes the processes of sessions; their memory stays.";
static const char unpause_text[] = "Lets frozen processes go on.";
static const char hibernate_text[] = "Ends the processes of sessions and keeps their files.";
static const char resume_text[] = "Gives sessions that sleep a sandbox with their files.";

MOVE(pause)
MOVE(unpause)
MOVE(hibernate)
MOVE(resume)

/* ---- extend ---------------------------------------------------------------------------------- */

static bool same_deadlines(const json_t *a, const json_t *b)
{
	return api_cmd_number(a, "hibernate_at") == api_cmd_number(b, "hibernate_at") &&
	       api_cmd_number(a, "expires_at") == api_cmd_number(b, "expires_at");
}

static int extend_one(struct api_cmd *a, const char *ref, json_t **ret, struct err *err)
{
	auto_json json_t *body = json_object(), *before = NULL;

	if (api_cmd_put_ms(a, body, "ms", "--by", a->by, err) < 0 ||
	    api_cmd_call(a, "GET", NULL, &before, err, "/v1/sessions/%s", ref) < 0 ||
	    api_cmd_call(a, "POST", body, ret, err, "/v1/sessions/%s/extend", ref) < 0)
		return -1;
	if (!a->json &&
	    same_deadlines(json_object_get(before, "session"), json_object_get(*ret, "session")))
		json_object_set_new(*ret, "same", json_true());
	return 0;
}

static void say_extended(struct api_cmd *a, const json_t *answer)
{
	const json_t *s = json_object_get(answer, "session");
	char name[LINE], sleeps[LINE], ends[LINE];

	(void)a;
	print_when(api_cmd_number(s, "hibernate_at"), sleeps, sizeof(sleeps));
	print_when(api_cmd_number(s, "expires_at"), ends, sizeof(ends));
	api_cmd_print("%s: %sidle until %s, at most until %s", print_name(s, name, sizeof(name)),
		      json_is_true(json_object_get(answer, "same"))
			      ? "unchanged, so late it is already: "
			      : "",
		      *sleeps ? sleeps : "-", *ends ? ends : "-");
}

static int run_extend(struct api_cmd *a, struct err *err)
{
	return api_cmd_each(a, extend_one, say_extended, err);
}

static const struct cli_option extend_options[] = {
	{ "by", 0, "TIME", ask_by, "by so much (default: 20m), never past its lifetime" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_extend(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge extend",
			 .usage = "[--by TIME] SESSION...",
			 .summary = "Gives sessions later deadlines.",
			 .opts = extend_options },
		.least = 1,
		.most = -1,
		.prompt = true,
		.run = run_extend,
	};

	return api_cmd_main(&command, argc, argv);
}
