/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/print_session.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/core/api_cmd.h"

enum { COMMAND_TEXT = 512 };

const struct text_table_column say_lines[2] = { { NULL, 0 }, { NULL, 0 } };

void print_line(struct text_table *t, const char *name, const char *value)
{
	if (!*value)
		return;
	text_table_add(t, name);
	text_table_tint(t, TINT_BOLD);
	text_table_add(t, value);
}

const char *print_state(const json_t *session)
{
	if (json_is_true(json_object_get(session, "paused")))
		return "paused";
	return api_cmd_text(session, "state");
}

enum tint print_state_tint(const json_t *session)
{
	const char *state = print_state(session);

	if (strcmp(state, "active") == 0)
		return TINT_GOOD;
	if (strcmp(state, "failed") == 0)
		return TINT_BAD;
	if (strcmp(state, "hibernated") == 0 || strcmp(state, "archived") == 0)
		return TINT_DIM;
	return TINT_WARN;
}

char *print_name(const json_t *session, char *buf, size_t size)
{
	const char *key = api_cmd_text(session, "key"), *id = api_cmd_text(session, "id");

	if (*key)
		snprintf(buf, size, "%s (%s)", key, id);
	else
		snprintf(buf, size, "%s", id);
	return buf;
}

char *print_cause(const json_t *cause, char *buf, size_t size)
{
	const char *text = api_cmd_text(cause, "text"), *actor = api_cmd_text(cause, "actor");
	int64_t at = api_cmd_number(cause, "at");
	char ago[HUMAN_TEXT] = "";

	*buf = '\0';
	if (!json_is_object(cause))
		return buf;
	if (at >= 0)
		human_span(clock_wall_ms() - at, ago);
	snprintf(buf, size, "%s%s%s%s%s%s%s", api_cmd_text(cause, "code"), *actor ? " by " : "",
		 actor, *ago ? ", " : "", ago, *ago ? " ago" : "", *text ? ": " : "");
	strncat(buf, text, size - strlen(buf) - 1);
	return buf;
}

char *print_when(int64_t ms, char *buf, size_t size)
{
	int64_t away = ms - clock_wall_ms();
	char when[HUMAN_TEXT], span[HUMAN_TEXT];

	*buf = '\0';
	if (ms < 0)
		return buf;
	human_span(away < 0 ? -away : away, span);
	snprintf(buf, size, away < 0 ? "%s (%s ago)" : "%s (in %s)", human_when(ms, when), span);
	return buf;
}

/* ---- commands -------------------------------------------------------------------------------- */

static void add_end(struct text_table *t, const json_t *e)
{
	int64_t code = api_cmd_number(e, "exit_code"), signal = api_cmd_number(e, "signal");

	if (json_is_true(json_object_get(e, "timed_out")))
		text_table_add(t, "time-out");
	else if (json_is_true(json_object_get(e, "oom_killed")))
		text_table_add(t, "out of memory");
	else if (signal > 0)
		text_table_addf(t, "signal %lld", (long long)signal);
	else if (code >= 0)
		text_table_addf(t, "%s %lld", api_cmd_text(e, "state"), (long long)code);
	else
		text_table_add(t, api_cmd_text(e, "state"));
}

static void add_command(struct text_table *t, const json_t *e)
{
	const json_t *command = json_object_get(e, "command"), *word;
	char text[COMMAND_TEXT] = "";
	size_t i;

	text_table_add(t, api_cmd_text(e, "exec_id"));
	add_end(t, e);
	text_table_add_span(t, clock_wall_ms() - api_cmd_number(e, "started_at"));
	if (json_is_string(command)) {
		text_table_add(t, json_string_value(command));
		return;
	}
	json_array_foreach (command, i, word) {
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
			 api_cmd_text(word, ""));
	}
	text_table_add(t, text);
}

void print_execs(const json_t *execs)
{
	static const struct text_table_column columns[] = {
		{ "EXEC", 0 }, { "STATE", 0 }, { "AGE", TABLE_RIGHT }, { "COMMAND", TABLE_SHRINK }
	};
	struct text_table t;
	json_t *e;
	size_t i;

	text_table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (execs, i, e) {
		add_command(&t, e);
	}
	text_table_print(&t, stdout);
}
