/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/core/api_cmd.h"
#include "cli/core/print_session.h"

struct ls_opts {
	struct api_cmd a;
	const char *user, *state, *project;
	bool keys;
};

static const struct field fields[] = {
	{ "SESSION", TABLE_SHRINK, "id", field_key },
	{ "USER", TABLE_SHRINK, "user" },
	{ "STATE", 0, "state", field_state, print_state_tint },
	{ "AGE", TABLE_RIGHT, "created_at", field_age },
	{ "IDLE", TABLE_RIGHT, "last_activity_at", field_idle },
	{ "MEMORY", TABLE_RIGHT, "stats.memory_bytes", field_bytes },
	{ "PROJECT", TABLE_SHRINK, "project" },
	{ NULL },
};

/* Adds what it uses now, unless it has no sandbox, or that just ended. */
static void add_stats(struct api_cmd *a, json_t *s)
{
	auto_json json_t *stats = NULL;
	struct err ignored;

	if (member_is(s, "runtime", "live") &&
	    api_cmd_call(a, "GET", NULL, &stats, &ignored, "/v1/sessions/%s/stats",
			 member_text(s, "id")) == 0)
		json_object_set(s, "stats", json_object_get(stats, "stats"));
}

/* A shell expands the words of a completion, and anyone can choose a key: only plain ones. */
static bool is_plain(const char *key)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._@+-";

	return *key && *key != '-' && strncmp(key, "ses_", 4) != 0 &&
	       key[strspn(key, plain)] == '\0';
}

static void print_words(const struct ls_opts *o, const json_t *s)
{
	const char *key = member_text(s, "key");

	puts(member_text(s, "id"));
	if (o->keys && is_plain(key))
		puts(key);
}

static void print(struct api_cmd *a, const json_t *answer)
{
	const struct ls_opts *o = (struct ls_opts *)a;
	const json_t *sessions = json_object_get(answer, "sessions");
	json_t *s;
	size_t i;

	json_array_foreach (sessions, i, s) {
		if (a->quiet || o->keys)
			print_words(o, s);
		else
			add_stats(a, s);
	}
	if (a->quiet || o->keys)
		return;
	field_print_table(fields, sessions);
	if (i == 0)
		api_cmd_hint(o->user || o->state || o->project
				     ? "no session matches (see lodge ls without options)"
				     : "no sessions (create one: lodge new)");
}

static int explain_state(struct api_cmd *a, struct err *err)
{
	const char *state = ((struct ls_opts *)a)->state;

	if (state && err->code == ERR_INVALID && strncmp(err->msg, "state:", 6) == 0)
		err_set(err, ERR_INVALID, "--state: unknown state \"%.32s\"; use " SESSION_STATES,
			state);
	return -1;
}

/* The service has no such state: a paused session is active. */
static void keep_paused(json_t *sessions)
{
	for (size_t i = json_array_size(sessions); i-- > 0;)
		if (!member_true(json_array_get(sessions, i), "paused"))
			json_array_remove(sessions, i);
}

static int run(struct api_cmd *a, struct err *err)
{
	const struct ls_opts *o = (struct ls_opts *)a;
	auto_json json_t *answer = NULL;
	char path[API_PATH] = "/v1/sessions?limit=1000";
	bool paused = o->state && strcmp(o->state, "paused") == 0;

	if (api_cmd_query(path, sizeof(path), "user", o->user, err) < 0 ||
	    api_cmd_query(path, sizeof(path), "state", paused ? "active" : o->state, err) < 0 ||
	    api_cmd_query(path, sizeof(path), "project", o->project, err) < 0)
		return -1;
	if (api_cmd_list(a, path, "sessions", &answer, err) < 0)
		return explain_state(a, err);
	if (paused)
		keep_paused(json_object_get(answer, "sessions"));
	return api_cmd_write(a, answer, print, err);
}

static const struct cli_option options[] = {
	{ "user", 'u', "USER", CLI_TEXT, offsetof(struct ls_opts, user), "only of this user",
	  "user" },
	{ "state", 's', "STATE", CLI_TEXT, offsetof(struct ls_opts, state),
	  "only in this state, as active, paused, hibernated" },
	{ "project", 'p', "PROJECT", CLI_TEXT, offsetof(struct ls_opts, project),
	  "only of this project", "project" },
	OPTION_QUIET("print only ids"),
	{ "keys", 0, NULL, CLI_FLAG, offsetof(struct ls_opts, keys),
	  "print only ids and plain keys, for completions" },
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_ls = {
	.name = "ls",
	.usage = "[OPTION...]",
	.summary = "list sessions",
	.options = options,
	.size = sizeof(struct ls_opts),
	.prompt = true,
	.run = run,
};
