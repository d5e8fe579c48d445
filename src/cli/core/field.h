/* SPDX-License-Identifier: Apache-2.0 */
/* How records (JSON objects) are printed: as rows of a table, or as lines "name  value". */
#ifndef LODGE_CLI_CORE_FIELD_H
#define LODGE_CLI_CORE_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "cli/core/human.h"

/* Of a column. A table is as wide as it needs to be; on a terminal, columns with TABLE_SHRINK are
 * cut to fit. */
enum { TABLE_RIGHT = 1, TABLE_SHRINK = 2 };

enum { FIELD_TEXT = 1024 };

/* A member as text, in buf or elsewhere; "": none. */
typedef const char *field_fn(const json_t *record, const char *path, char buf[FIELD_TEXT]);
extern field_fn field_text, field_count, field_bytes, field_span, field_age, field_when, field_date,
	field_words;

struct field_table; /* the cells, while they are gathered */

struct field {
	const char *title; /* NULL ends the table */
	unsigned flags; /* TABLE_* of its column */
	const char *path;
	field_fn *text; /* NULL: field_text */
	enum tint (*tint)(const json_t *record);
	/* Adds lines of its own instead. */
	void (*lines)(struct field_table *t, const char *title, json_t *value);
};

struct field_style {
	size_t width; /* 0: as wide as need be */
	size_t rows; /* at most; 0: all */
	bool colours;
	const char *end; /* of a line */
};

/* On standard output, as wide as the terminal if that is one. Empty values are "-", and control
 * characters become '?'. If memory runs out, nothing is printed. */
void field_print_table(const struct field *fields, const json_t *records);
void field_print_table_as(const struct field *fields, const json_t *records, FILE *to,
			  const struct field_style *style);
void field_print_record(const struct field *fields, const json_t *record);
/* A line of a record; nothing for an empty value. */
void field_add_line(struct field_table *t, const char *title, const char *value);
/* Lines of the members of an object: limits, with bytes for people, and texts as NAME=VALUE or
 * NAME: VALUE. */
void field_add_limits(struct field_table *t, const char *title, json_t *limits);
void field_add_env(struct field_table *t, const char *title, json_t *env);
void field_add_tools(struct field_table *t, const char *title, json_t *tools);

#endif
