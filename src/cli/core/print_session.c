/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/print_session.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"

enum { COMMAND_TEXT = 512 };

const struct table_column say_lines[2] = { { NULL, 0 }, { NULL, 0 } };

void say_line(struct table *t, const char *name, const char *value)
{
	if (!*value)
		return;
	table_add(t, name);
	table_tint(t, TINT_BOLD);
	table_add(t, value);
}

const char *say_state(const json_t *session)
{
	if (json_is_true(json_object_get(session, "paused")))
		return "paused";
	return ask_text(session, "state");
}

enum tint say_state_tint(const json_t *session)
{
	const char *state = say_state(session);

	if (strcmp(state, "active") == 0)
		return TINT_GOOD;
	if (strcmp(state, "failed") == 0)
		return TINT_BAD;
	if (strcmp(state, "hibernated") == 0 || strcmp(state, "archived") == 0)
		return TINT_DIM;
	return TINT_WARN;
}

char *say_name(const json_t *session, char *buf, size_t size)
{
	const char *key = ask_text(session, "key"), *id = ask_text(session, "id");

	if (*key)
		snprintf(buf, size, "%s (%s)", key, id);
	else
		snprintf(buf, size, "%s", id);
	return buf;
}

char *say_cause(const json_t *cause, char *buf, size_t size)
{
	const char *text = ask_text(cause, "text"), *actor = ask_text(cause, "actor");
	int64_t at = ask_number(cause, "at");
	char ago[HUMAN_TEXT] = "";

	*buf = '\0';
	if (!json_is_object(cause))
		return buf;
	if (at >= 0)
		human_span(human_now_ms() - at, ago);
	snprintf(buf, size, "%s%s%s%s%s%s%s", ask_text(cause, "code"), *actor ? " by " : "", actor,
		 *ago ? ", " : "", ago, *ago ? " ago" : "", *text ? ": " : "");
	strncat(buf, text, size - strlen(buf) - 1);
	return buf;
}

char *say_time(int64_t ms, char *buf, size_t size)
{
	int64_t away = ms - human_now_ms();
	char when[HUMAN_TEXT], span[HUMAN_TEXT];

	*buf = '\0';
	if (ms < 0)
		return buf;
	human_span(away < 0 ? -away : away, span);
	snprintf(buf, size, away < 0 ? "%s (%s ago)" : "%s (in %s)", human_when(ms, when), span);
	return buf;
}

/* ---- commands -------------------------------------------------------------------------------- */

static void add_end(struct table *t, const json_t *e)
{
	int64_t code = ask_number(e, "exit_code"), signal = ask_number(e, "signal");

	if (json_is_true(json_object_get(e, "timed_out")))
		table_add(t, "time-out");
	else if (json_is_true(json_object_get(e, "oom_killed")))
		table_add(t, "out of memory");
	else if (signal > 0)
		table_addf(t, "signal %lld", (long long)signal);
	else if (code >= 0)
		table_addf(t, "%s %lld", ask_text(e, "state"), (long long)code);
	else
		table_add(t, ask_text(e, "state"));
}

static void add_command(struct table *t, const json_t *e)
{
	const json_t *command = json_object_get(e, "command"), *word;
	char text[COMMAND_TEXT] = "";
	size_t i;

	table_add(t, ask_text(e, "exec_id"));
	add_end(t, e);
	table_add_span(t, human_now_ms() - ask_number(e, "started_at"));
	if (json_is_string(command)) {
		table_add(t, json_string_value(command));
		return;
	}
	json_array_foreach (command, i, word) {
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
			 ask_text(word, ""));
	}
	table_add(t, text);
}

void say_execs(const json_t *execs)
{
	static const struct table_column columns[] = {
		{ "EXEC", 0 }, { "STATE", 0 }, { "AGE", TABLE_RIGHT }, { "COMMAND", TABLE_SHRINK }
	};
	struct table t;
	json_t *e;
	size_t i;

	table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (execs, i, e) {
		add_command(&t, e);
	}
	table_print(&t, stdout);
}
