/* SPDX-License-Identifier: Apache-2.0 */
/* How records (JSON objects) are printed: as rows of a table, or as lines "name  value". */
#ifndef LODGE_CLI_CORE_FIELD_H
#define LODGE_CLI_CORE_FIELD_H

#include <jansson.h>

#include "cli/core/text_table.h"

enum { FIELD_TEXT = 1024 };

/* A member as text, in buf or elsewhere; "": none. */
typedef const char *field_fn(const json_t *record, const char *path, char buf[FIELD_TEXT]);
extern field_fn field_text, field_count, field_bytes, field_span, field_age, field_when, field_date,
	field_idle, field_words;

struct field {
	const char *title; /* NULL ends the table */
	unsigned flags; /* TABLE_* of its column */
	const char *path;
	field_fn *text; /* NULL: field_text */
	enum tint (*tint)(const json_t *record);
	/* Adds lines of its own instead. */
	void (*lines)(struct text_table *t, const char *title, json_t *value);
};

void field_print_table(const struct field *fields, const json_t *records);
void field_print_record(const struct field *fields, const json_t *record);
/* As a table that the caller prints. */
void field_fill_table(const struct field *fields, const json_t *records, struct text_table *t);
/* A line of a record; nothing for an empty value. */
void field_add_line(struct text_table *t, const char *title, const char *value);
/* Lines of the members of an object: limits, with bytes for people, and texts as NAME=VALUE or
 * NAME: VALUE. */
void field_add_limits(struct text_table *t, const char *title, json_t *limits);
void field_add_env(struct text_table *t, const char *title, json_t *env);
void field_add_tools(struct text_table *t, const char *title, json_t *tools);

#endif
