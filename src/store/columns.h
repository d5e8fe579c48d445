/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of each record, made from the tables in record.h, and the SQL text of their names and
 * parameters. Copying, freeing, binding and reading a record is written once for all records. */
#ifndef LODGE_STORE_COLUMNS_H
#define LODGE_STORE_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/record.h"

enum column_kind {
	COLUMN_SEQ, /* int64_t; INSERT binds NULL, so that SQLite assigns it */
	COLUMN_NUM, /* an integer of 1 or 8 bytes */
	COLUMN_TEXT, /* a char array; "" is NULL */
	COLUMN_STRING, /* a char array; "" is '' */
	COLUMN_OWNED, /* a char pointer to memory of the record */
	COLUMN_BYTES, /* an array of bytes */
};

struct column {
	enum column_kind kind;
	const char *name;
	unsigned offset, size;
	const char *label; /* for messages; a text with a label must not be empty */
	unsigned max; /* of an owned text: its length */
	bool is_object; /* of an owned text: it is a JSON object */
};

struct columns {
	const char *table;
	size_t size; /* of the record */
	const struct column *fields;
	size_t count;
};

extern const struct columns columns_session, columns_row, columns_binding, columns_tombstone,
	columns_ended_sandbox, columns_layer, columns_snapshot, columns_exec, columns_once,
	columns_event, columns_project, columns_fragment, columns_user, columns_member, columns_key,
	columns_user_row, columns_team_row, columns_tenant_sum, columns_policy, columns_quota,
	columns_environment;

/* "seq, id, ..." and ":seq, :id, ..." of a table in record.h, or of a part such as
 * session_state. */
#define COLUMN_NAMES(name) STORE_COLUMNS_##name(COLUMN_NAME, COLUMN_NEXT_NAME)
#define COLUMN_PARAMS(name) STORE_COLUMNS_##name(COLUMN_PARAM, COLUMN_NEXT_PARAM)
#define COLUMNS_SELECT(name, rest) "SELECT " COLUMN_NAMES(name) " FROM " #name " " rest
#define COLUMNS_SET(name) "(" COLUMN_NAMES(name) ") = (" COLUMN_PARAMS(name) ")"
#define COLUMNS_INSERT(name) "INSERT" COLUMNS_INTO(name)
#define COLUMNS_REPLACE(name) "INSERT OR REPLACE" COLUMNS_INTO(name)
#define COLUMNS_INTO(name)                                                                         \
	" INTO " #name " (" COLUMN_NAMES(name) ") VALUES (" COLUMN_PARAMS(name) ")"

#define COLUMN_NAME(kind, ...) COLUMN_TEXT_##kind("", __VA_ARGS__)
#define COLUMN_NEXT_NAME(kind, ...) ", " COLUMN_NAME(kind, __VA_ARGS__)
#define COLUMN_PARAM(kind, ...) COLUMN_TEXT_##kind(":", __VA_ARGS__)
#define COLUMN_NEXT_PARAM(kind, ...) ", " COLUMN_PARAM(kind, __VA_ARGS__)

#define COLUMN_TEXT_SEQ(p, name, ...) p #name
#define COLUMN_TEXT_INT(p, name, ...) p #name
#define COLUMN_TEXT_BYTE(p, name, ...) p #name
#define COLUMN_TEXT_BOOL(p, name, ...) p #name
#define COLUMN_TEXT_TEXT(p, name, ...) p #name
#define COLUMN_TEXT_STRING(p, name, ...) p #name
#define COLUMN_TEXT_BYTES(p, name, ...) p #name
#define COLUMN_TEXT_OWNED(p, name, ...) p #name
#define COLUMN_TEXT_JSON(p, name, ...) p #name
#define COLUMN_TEXT_CAUSE(p, name, ...)                                                            \
	p #name ", " p #name "_text, " p #name "_actor, " p #name "_at"

int64_t columns_get_num(const struct column *c, const void *record);
void columns_set_num(const struct column *c, void *record, int64_t value);
/* The member of an owned string. */
char **columns_owned(const struct column *c, void *record);
/* NULL if there is none. The search starts at *hint and leaves it behind the result: statements
 * mostly name columns in the order of the table. */
const struct column *columns_find(const struct columns *s, const char *name, size_t *hint);

/* `ret` shares nothing with `record` afterwards. ERR_LIMIT without memory. */
int columns_copy(const struct columns *s, const void *record, void *ret, struct err *err);
void columns_fini(const struct columns *s, void *record);

#endif
