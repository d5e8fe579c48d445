/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/field.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "cli/core/member.h"
#include "cli/core/print_session.h"

/* ---- texts ----------------------------------------------------------------------------------- */

const char *field_text(const json_t *record, const char *path, char buf[FIELD_TEXT])
{
	(void)buf;
	return member_text(record, path);
}

const char *field_count(const json_t *record, const char *path, char buf[FIELD_TEXT])
{
	int64_t n = member_number(record, path);

	snprintf(buf, FIELD_TEXT, "%" PRId64, n);
	return n < 0 ? "" : buf;
}

const char *field_bytes(const json_t *record, const char *path, char buf[FIELD_TEXT])
{
	int64_t n = member_number(record, path);

	return n < 0 ? "" : human_bytes((uint64_t)n, buf);
}

const char *field_span(const json_t *record, const char *path, char buf[FIELD_TEXT])
{
	int64_t ms = member_number(record, path);

	return ms < 0 ? "" : human_span(ms, buf);
}

const char *field_age(const json_t *record, const char *path, char buf[FIELD_TEXT])
{
	return human_span(clock_wall_ms() - member_number(record, path), buf);
}

/* As field_age(), but for a time that may be missing, or be that of a clock slightly ahead. */
const char *field_idle(const json_t *record, const char *path, char buf[FIELD_TEXT])
{
	return member_number(record, path) < 0 ? "" : field_age(record, path, buf);
}

const char *field_when(const json_t *record, const char *path, char buf[FIELD_TEXT])
{
	return print_when(member_number(record, path), buf, FIELD_TEXT);
}

const char *field_date(const json_t *record, const char *path, char buf[FIELD_TEXT])
{
	snprintf(buf, FIELD_TEXT, "%.10s", member_text(record, path));
	return buf;
}

const char *field_words(const json_t *record, const char *path, char buf[FIELD_TEXT])
{
	json_t *word;
	size_t i;

	*buf = '\0';
	json_array_foreach (member_get(record, path), i, word) {
		snprintf(buf + strlen(buf), FIELD_TEXT - strlen(buf), "%s%s", i ? " " : "",
			 member_text(word, ""));
	}
	return buf;
}

/* ---- printing -------------------------------------------------------------------------------- */

static void add_value(struct text_table *t, const struct field *f, const json_t *record)
{
	char buf[FIELD_TEXT];

	text_table_add(t, (f->text ? f->text : field_text)(record, f->path, buf));
	if (f->tint)
		text_table_tint(t, f->tint(record));
}

void field_fill_table(const struct field *fields, const json_t *records, struct text_table *t)
{
	json_t *record;
	size_t i;

	*t = (struct text_table){ 0 };
	for (const struct field *f = fields; t->ncolumns < TABLE_COLUMNS && f->title; f++)
		t->columns[t->ncolumns++] = (struct text_table_column){ f->title, f->flags };
	json_array_foreach (records, i, record) {
		for (size_t k = 0; k < t->ncolumns; k++)
			add_value(t, &fields[k], record);
	}
}

void field_print_table(const struct field *fields, const json_t *records)
{
	struct text_table t;

	field_fill_table(fields, records, &t);
	text_table_print(&t, stdout);
}

void field_add_line(struct text_table *t, const char *title, const char *value)
{
	if (!*value)
		return;
	text_table_add(t, title);
	text_table_tint(t, TINT_BOLD);
	text_table_add(t, value);
}

static void add_record_line(struct text_table *t, const struct field *f, const json_t *record)
{
	char buf[FIELD_TEXT];
	const char *value = (f->text ? f->text : field_text)(record, f->path, buf);

	field_add_line(t, f->title, value);
	if (*value && f->tint)
		text_table_tint(t, f->tint(record));
}

void field_print_record(const struct field *fields, const json_t *record)
{
	struct text_table t = { .ncolumns = 2 };

	for (const struct field *f = fields; f->title; f++) {
		if (f->lines)
			f->lines(&t, f->title, member_get(record, f->path));
		else
			add_record_line(&t, f, record);
	}
	text_table_print(&t, stdout);
}

void field_add_limits(struct text_table *t, const char *title, json_t *limits)
{
	char line[FIELD_TEXT], size[HUMAN_TEXT];
	const char *name;
	json_t *v;

	json_object_foreach (limits, name, v) {
		const char *bytes = strstr(name, "_bytes");

		if (bytes)
			snprintf(line, sizeof(line), "%.*s %s", (int)(bytes - name), name,
				 human_bytes((uint64_t)json_integer_value(v), size));
		else
			snprintf(line, sizeof(line), "%s %g", name, json_number_value(v));
		field_add_line(t, title, line);
	}
}

static void add_texts(struct text_table *t, const char *title, json_t *texts, const char *between)
{
	char line[FIELD_TEXT];
	const char *name;
	json_t *v;

	json_object_foreach (texts, name, v) {
		snprintf(line, sizeof(line), "%s%s%s", name, between, member_text(v, ""));
		field_add_line(t, title, line);
	}
}

void field_add_env(struct text_table *t, const char *title, json_t *env)
{
	add_texts(t, title, env, "=");
}

void field_add_tools(struct text_table *t, const char *title, json_t *tools)
{
	add_texts(t, title, tools, ": ");
}
