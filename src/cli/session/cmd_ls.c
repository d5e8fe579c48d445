/* SPDX-License-Identifier: Apache-2.0 */
/* lodge ls: what sessions there are. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"
#include "cli/core/print_session.h"

static const struct text_table_column columns[] = {
	{ "SESSION", TABLE_SHRINK }, { "USER", TABLE_SHRINK }, { "STATE", 0 },
	{ "AGE", TABLE_RIGHT },	     { "IDLE", TABLE_RIGHT },  { "MEMORY", TABLE_RIGHT },
	{ "PROJECT", TABLE_SHRINK },
};

/* What it uses now; -1: it has no sandbox, or that ended meanwhile. */
static int64_t memory_of(struct api_cmd *a, const json_t *s)
{
	auto_json json_t *stats = NULL;
	struct err ignored;

	if (!api_cmd_is(s, "runtime", "live") ||
	    api_cmd_call(a, "GET", NULL, &stats, &ignored, "/v1/sessions/%s/stats",
			 api_cmd_text(s, "id")) < 0)
		return -1;
	return api_cmd_number(stats, "stats.memory_bytes");
}

static void add_row(struct api_cmd *a, struct text_table *t, const json_t *s)
{
	int64_t now = clock_wall_ms(), last = api_cmd_number(s, "last_activity_at");

	text_table_add(t, api_cmd_called(s));
	text_table_add(t, api_cmd_text(s, "user"));
	text_table_add(t, print_state(s));
	text_table_tint(t, print_state_tint(s));
	text_table_add_span(t, now - api_cmd_number(s, "created_at"));
	text_table_add_span(t, last < 0 ? -1 : now > last ? now - last : 0);
	text_table_add_bytes(t, memory_of(a, s));
	text_table_add(t, api_cmd_text(s, "project"));
}

/* Completions hand words to shells that expand them, and keys are anybody's: only plain ones. */
static bool is_plain(const char *key)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._@+-";

	return *key && *key != '-' && strncmp(key, "ses_", 4) != 0 &&
	       key[strspn(key, plain)] == '\0';
}

static void say_words(const struct api_cmd *a, const json_t *s)
{
	const char *key = api_cmd_text(s, "key");

	puts(api_cmd_text(s, "id"));
	if (a->keys && is_plain(key))
		puts(key);
}

static void say(struct api_cmd *a, const json_t *answer)
{
	struct text_table t;
	json_t *s;
	size_t i;

	if (a->quiet || a->keys) {
		json_array_foreach (json_object_get(answer, "sessions"), i, s) {
			say_words(a, s);
		}
		return;
	}
	text_table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (json_object_get(answer, "sessions"), i, s) {
		add_row(a, &t, s);
	}
	text_table_print(&t, stdout);
	if (i == 0)
		api_cmd_hint(a->user || a->state || a->project
				     ? "no such session (lodge ls without options lists all)"
				     : "no sessions (lodge new makes one)");
}

static bool is_no_state(const struct api_cmd *a, const struct err *err)
{
	return a->state && err->code == ERR_INVALID && strncmp(err->msg, "state:", 6) == 0;
}

static int say_states(const struct api_cmd *a, struct err *err)
{
	return err_set(err, ERR_INVALID, "--state: there is no \"%.32s\"; there are: " SAY_STATES,
		       a->state);
}

/* To the service it is no state, but something that an active one may be. */
static void keep_paused(json_t *sessions)
{
	for (size_t i = json_array_size(sessions); i-- > 0;)
		if (!json_is_true(json_object_get(json_array_get(sessions, i), "paused")))
			json_array_remove(sessions, i);
}

static int run(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH] = "/v1/sessions?limit=1000";

	bool paused = a->state && strcmp(a->state, "paused") == 0;

	if (api_cmd_query(path, sizeof(path), "user", a->user, err) < 0 ||
	    api_cmd_query(path, sizeof(path), "state", paused ? "active" : a->state, err) < 0 ||
	    api_cmd_query(path, sizeof(path), "project", a->project, err) < 0)
		return -1;
	if (api_cmd_list(a, path, "sessions", &answer, err) < 0)
		return is_no_state(a, err) ? say_states(a, err) : -1;
	if (paused)
		keep_paused(json_object_get(answer, "sessions"));
	return api_cmd_write(a, answer, say, err);
}

static const struct cli_option options[] = {
	{ "user", 'u', "USER", ask_user, "of this user" },
	{ "state", 's', "STATE", ask_state,
	  "in this state: active, paused, hibernated, failed ..." },
	{ "project", 'p', "PROJECT", ask_project, "with this project" },
	{ "quiet", 'q', NULL, ask_quiet, "ids alone" },
	{ "keys", 0, NULL, ask_keys, "ids, and keys of plain letters, alone: for completions" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command command = {
	.opt = { .name = "lodge ls",
		 .usage = "[OPTION...]",
		 .summary = "Lists sessions.",
		 .opts = options },
	.prompt = true,
	.run = run,
};

int cmd_ls(int argc, char **argv)
{
	return api_cmd_main(&command, argc, argv);
}
