/* SPDX-License-Identifier: Apache-2.0 */
#include "store/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/auto.h"

#define COLUMN(kind, member, name)                                                                 \
	{ kind, name, offsetof(RECORD, member), sizeof(((RECORD *)0)->member) },
#define ROW(kind, ...) ROW_##kind(__VA_ARGS__)
#define ROW_SEQ(m) COLUMN(COLUMN_SEQ, m, #m)
#define ROW_INT(m) COLUMN(COLUMN_NUM, m, #m)
#define ROW_BYTE(m) COLUMN(COLUMN_NUM, m, #m)
#define ROW_BOOL(m) COLUMN(COLUMN_NUM, m, #m)
#define ROW_TEXT(m, size) COLUMN(COLUMN_TEXT, m, #m)
#define ROW_STRING(m, size) COLUMN(COLUMN_STRING, m, #m)
#define ROW_BYTES(m, size) COLUMN(COLUMN_BYTES, m, #m)
#define ROW_OWNED(m) COLUMN(COLUMN_OWNED, m, #m)
#define ROW_CAUSE(m)                                                                               \
	COLUMN(COLUMN_TEXT, m.code, #m)                                                            \
	COLUMN(COLUMN_TEXT, m.text, #m "_text")                                                    \
	COLUMN(COLUMN_TEXT, m.actor, #m "_actor")                                                  \
	COLUMN(COLUMN_NUM, m.at, #m "_at")

#define DEFINE(name)                                                                               \
	static const struct column name##_columns[] = { STORE_COLUMNS_##name(ROW, ROW) };          \
	const struct columns columns_##name = { #name, sizeof(RECORD), name##_columns,             \
						ARRAY_LEN(name##_columns) }

#define RECORD struct store_session
DEFINE(session);
#undef RECORD
#define RECORD struct store_binding
DEFINE(binding);
#undef RECORD
#define RECORD struct store_tombstone
DEFINE(tombstone);
#undef RECORD
#define RECORD struct store_layer
DEFINE(layer);
#undef RECORD
#define RECORD struct store_snapshot
DEFINE(snapshot);
#undef RECORD
#define RECORD struct store_exec
DEFINE(exec);
#undef RECORD
#define RECORD struct store_once
DEFINE(once);
#undef RECORD
#define RECORD struct store_event
DEFINE(event);
#undef RECORD
#define RECORD struct store_project
DEFINE(project);
#undef RECORD
#define RECORD struct store_fragment
DEFINE(fragment);
#undef RECORD
#define RECORD struct store_user
DEFINE(user);
#undef RECORD
#define RECORD struct store_member
DEFINE(member);
#undef RECORD
#define RECORD struct store_key
DEFINE(key);
#undef RECORD
#define RECORD struct store_policy
DEFINE(policy);
#undef RECORD
#define RECORD struct store_quota
DEFINE(quota);
#undef RECORD
#define RECORD struct store_environment
DEFINE(environment);
#undef RECORD

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
