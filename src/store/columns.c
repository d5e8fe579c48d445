/* SPDX-License-Identifier: Apache-2.0 */
#include "store/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/auto.h"

#define COLUMN(record, kind, member, name, ...)                                                    \
	{ kind, name, offsetof(record, member), sizeof(((record *)0)->member), __VA_ARGS__ },
#define ROW(r, kind, ...) ROW_##kind(r, __VA_ARGS__)
#define ROW_SEQ(r, m) COLUMN(r, COLUMN_SEQ, m, #m, "")
#define ROW_INT(r, m) COLUMN(r, COLUMN_NUM, m, #m, "")
#define ROW_BYTE(r, m) COLUMN(r, COLUMN_NUM, m, #m, "")
#define ROW_BOOL(r, m) COLUMN(r, COLUMN_NUM, m, #m, "")
#define ROW_TEXT(r, m, size, ...) COLUMN(r, COLUMN_TEXT, m, #m, "" __VA_ARGS__)
#define ROW_STRING(r, m, size) COLUMN(r, COLUMN_STRING, m, #m, "")
#define ROW_BYTES(r, m, size) COLUMN(r, COLUMN_BYTES, m, #m, "")
#define ROW_OWNED(r, m, max, label) COLUMN(r, COLUMN_OWNED, m, #m, label, max, false)
#define ROW_JSON(r, m, label) COLUMN(r, COLUMN_OWNED, m, #m, label, STORE_JSON_MAX, true)
#define ROW_CAUSE(r, m)                                                                            \
	COLUMN(r, COLUMN_TEXT, m.code, #m, "")                                                     \
	COLUMN(r, COLUMN_TEXT, m.text, #m "_text", "")                                             \
	COLUMN(r, COLUMN_TEXT, m.actor, #m "_actor", "")                                           \
	COLUMN(r, COLUMN_NUM, m.at, #m "_at", "")

#define DEFINE(name)                                                                               \
	static const struct column name##_columns[] = { STORE_COLUMNS_##name(ROW_OF_##name,        \
									     ROW_OF_##name) };     \
	const struct columns columns_##name = { #name, sizeof(struct store_##name),                \
						name##_columns, ARRAY_LEN(name##_columns) };

#define ROW_OF_session(...) ROW(struct store_session, __VA_ARGS__)
#define ROW_OF_row(...) ROW(struct store_row, __VA_ARGS__)
#define ROW_OF_binding(...) ROW(struct store_binding, __VA_ARGS__)
#define ROW_OF_tombstone(...) ROW(struct store_tombstone, __VA_ARGS__)
#define ROW_OF_ended_sandbox(...) ROW(struct store_ended_sandbox, __VA_ARGS__)
#define ROW_OF_layer(...) ROW(struct store_layer, __VA_ARGS__)
#define ROW_OF_snapshot(...) ROW(struct store_snapshot, __VA_ARGS__)
#define ROW_OF_exec(...) ROW(struct store_exec, __VA_ARGS__)
#define ROW_OF_once(...) ROW(struct store_once, __VA_ARGS__)
#define ROW_OF_event(...) ROW(struct store_event, __VA_ARGS__)
#define ROW_OF_project(...) ROW(struct store_project, __VA_ARGS__)
#define ROW_OF_fragment(...) ROW(struct store_fragment, __VA_ARGS__)
#define ROW_OF_user(...) ROW(struct store_user, __VA_ARGS__)
#define ROW_OF_user_row(...) ROW(struct store_user_row, __VA_ARGS__)
#define ROW_OF_team_row(...) ROW(struct store_team_row, __VA_ARGS__)
#define ROW_OF_tenant_sum(...) ROW(struct store_tenant_sum, __VA_ARGS__)
#define ROW_OF_member(...) ROW(struct store_member, __VA_ARGS__)
#define ROW_OF_key(...) ROW(struct store_key, __VA_ARGS__)
#define ROW_OF_policy(...) ROW(struct store_policy, __VA_ARGS__)
#define ROW_OF_quota(...) ROW(struct store_quota, __VA_ARGS__)
#define ROW_OF_environment(...) ROW(struct store_environment, __VA_ARGS__)

DEFINE(session)
DEFINE(row)
DEFINE(binding)
DEFINE(tombstone)
DEFINE(ended_sandbox)
DEFINE(layer)
DEFINE(snapshot)
DEFINE(exec)
DEFINE(once)
DEFINE(event)
DEFINE(project)
DEFINE(fragment)
DEFINE(user)
DEFINE(user_row)
DEFINE(team_row)
DEFINE(tenant_sum)
DEFINE(member)
DEFINE(key)
DEFINE(policy)
DEFINE(quota)
DEFINE(environment)

int64_t columns_get_num(const struct column *c, const void *record)
{
	const char *at = (const char *)record + c->offset;
	int64_t value;

	if (c->size == 1)
		return *(const uint8_t *)at;
	memcpy(&value, at, sizeof(value));
	return value;
}

void columns_set_num(const struct column *c, void *record, int64_t value)
{
	char *at = (char *)record + c->offset;

	if (c->size == 1)
		*(uint8_t *)at = (uint8_t)value;
	else
		memcpy(at, &value, sizeof(value));
}

char **columns_owned(const struct column *c, void *record)
{
	return (char **)((char *)record + c->offset);
}

const struct column *columns_find(const struct columns *s, const char *name, size_t *hint)
{
	for (size_t i = 0; i < s->count; i++) {
		size_t at = (*hint + i) % s->count;

		if (strcmp(s->fields[at].name, name) == 0) {
			*hint = at + 1;
			return &s->fields[at];
		}
	}
	return NULL;
}

void columns_fini(const struct columns *s, void *record)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->fields[i].kind == COLUMN_OWNED) {
			free(*columns_owned(&s->fields[i], record));
			*columns_owned(&s->fields[i], record) = NULL;
		}
}

int columns_copy(const struct columns *s, const void *record, void *ret, struct err *err)
{
	auto_free char *copy = malloc(s->size);

	if (!copy)
		return err_sys(err, ENOMEM, "copy of a record");
	memcpy(copy, record, s->size);
	for (size_t i = 0; i < s->count; i++) /* From here on `copy` owns its strings. */
		if (s->fields[i].kind == COLUMN_OWNED)
			*columns_owned(&s->fields[i], copy) = NULL;
	for (size_t i = 0; i < s->count; i++) {
		const struct column *c = &s->fields[i];
		const char *text;

		if (c->kind != COLUMN_OWNED)
			continue;
		text = *(char *const *)((const char *)record + c->offset);
		if (text && !(*columns_owned(c, copy) = strdup(text))) {
			columns_fini(s, copy);
			return err_sys(err, ENOMEM, "copy of a record");
		}
	}
	memcpy(ret, copy, s->size);
	return 0;
}
