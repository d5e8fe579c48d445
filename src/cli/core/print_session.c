/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/print_session.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/core/member.h"

const char *print_state(const json_t *session)
{
	return member_true(session, "paused") ? "paused" : member_text(session, "state");
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
	const char *key = member_text(session, "key"), *id = member_text(session, "id");

	snprintf(buf, size, "%s%s%s%s", key, *key ? " (" : "", id, *key ? ")" : "");
	return buf;
}

/* The codes of the API that do not explain themselves, in words. */
static const char *cause_word(const json_t *cause)
{
	const char *code = member_text(cause, "code");

	if (strcmp(code, "asked") == 0)
		return "requested";
	return strcmp(code, "room") == 0 ? "capacity" : code;
}

char *print_cause(const json_t *cause, char *buf, size_t size)
{
	const char *text = member_text(cause, "text"), *actor = member_text(cause, "actor");
	int64_t at = member_number(cause, "at");
	char ago[HUMAN_TEXT] = "";

	*buf = '\0';
	if (!json_is_object(cause))
		return buf;
	if (at >= 0)
		human_span(clock_wall_ms() - at, ago);
	snprintf(buf, size, "%s%s%s%s%s%s%s%s", cause_word(cause), *actor ? " by " : "", actor,
		 *ago ? ", " : "", ago, *ago ? " ago" : "", *text ? ": " : "", text);
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

const char *print_key(const json_t *session)
{
	const char *key = member_text(session, "key");

	return *key ? key : member_text(session, "id");
}

const char *print_session_key(const json_t *record, const char *path, char buf[FIELD_TEXT])
{
	(void)path;
	(void)buf;
	return print_key(record);
}

const char *print_session_state(const json_t *record, const char *path, char buf[FIELD_TEXT])
{
	(void)path;
	(void)buf;
	return print_state(record);
}

static const char *exec_state(const json_t *e, const char *path, char buf[FIELD_TEXT])
{
	int64_t code = member_number(e, "exit_code"), signal = member_number(e, "signal");

	if (member_true(e, "timed_out"))
		return "timed out";
	if (member_true(e, "oom_killed"))
		return "out of memory";
	if (signal > 0)
		snprintf(buf, FIELD_TEXT, "signal %lld", (long long)signal);
	else if (code >= 0)
		snprintf(buf, FIELD_TEXT, "%s %lld", member_text(e, path), (long long)code);
	else
		return member_text(e, path);
	return buf;
}

static const char *exec_command(const json_t *e, const char *path, char buf[FIELD_TEXT])
{
	const char *script = json_string_value(member_get(e, path));

	return script ? script : field_words(e, path, buf);
}

const struct field print_exec_fields[] = {
	{ "EXEC", 0, "exec_id" },
	{ "STATE", 0, "state", exec_state },
	{ "AGE", TABLE_RIGHT, "started_at", field_age },
	{ "COMMAND", TABLE_SHRINK, "command", exec_command },
	{ NULL },
};
