/* SPDX-License-Identifier: Apache-2.0 */
/* Where the members of a record are, so that copying, freeing, binding and reading a record is
 * written once and not once per kind of record. The order is that of the columns in the SQL. */
#ifndef LODGE_STORE_COLUMNS_H
#define LODGE_STORE_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/record.h"

enum shape_kind {
	COLUMN_NUM, /* an integer of 1 or 8 bytes */
	COLUMN_TEXT, /* a char array */
	COLUMN_OWNED, /* a char pointer to the record's own memory */
	COLUMN_BYTES, /* an array of bytes */
};

struct columns_field {
	enum shape_kind kind;
	unsigned offset, size;
};

struct columns {
	size_t size;
	const struct columns_field *fields;
	size_t count;
};

extern const struct columns shape_session, shape_binding, shape_tombstone, shape_layer,
	shape_snapshot, shape_exec, shape_once, shape_event, shape_project, shape_fragment,
	shape_user, shape_member, shape_key, shape_policy, shape_quota, shape_environment;

int64_t columns_get_num(const struct columns_field *f, const void *record);
void columns_set_num(const struct columns_field *f, void *record, int64_t value);
/* The member that is an owned string. */
char **columns_owned(const struct columns_field *f, void *record);

/* `ret` shares nothing with `record` afterwards. ERR_LIMIT without memory. */
int columns_copy(const struct columns *s, const void *record, void *ret, struct err *err);
void columns_fini(const struct columns *s, void *record);

/* Room for one more in an array of `count` records: the new base, or NULL with the old one intact.
 * The room is zeroed. */
void *columns_grow(void *items, size_t count, size_t size);

#endif
