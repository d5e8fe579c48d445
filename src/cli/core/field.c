/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/field.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"
#include "cli/core/member.h"
#include "cli/core/print_session.h"

enum { GAP = 2, LEAST = 8 };

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

/* A time may be missing, or be that of a clock slightly ahead. */
const char *field_age(const json_t *record, const char *path, char buf[FIELD_TEXT])
{
	int64_t ms = member_number(record, path);

	return ms < 0 ? "" : human_span(clock_wall_ms() - ms, buf);
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

/* ---- tables ---------------------------------------------------------------------------------- */

void text_table_add(struct text_table *t, const char *text)
{
	struct text_table_cell *cell = t->failed ? NULL : vec_push(&t->cells, &t->ncells, SIZE_MAX);

	if (cell)
		cell->text = human_clean_dup(text && *text ? text : "-");
	t->failed = !cell || !cell->text;
}

void text_table_tint(struct text_table *t, enum tint tint)
{
	if (!t->failed)
		t->cells[t->ncells - 1].tint = tint;
}

static void measure(const struct text_table *t, size_t widths[])
{
	for (size_t c = 0; c < t->ncolumns; c++)
		widths[c] = t->columns[c].title ? strlen(t->columns[c].title) : 0;
	for (size_t i = 0; i < t->ncells; i++) {
		size_t w = human_width(t->cells[i].text), *max = &widths[i % t->ncolumns];

		if (w > *max)
			*max = w;
	}
}

/* Narrows the widest column that may shrink, one character at a time, so that all get equally
 * narrow. */
static void shrink(const struct text_table *t, size_t widths[], size_t most)
{
	size_t sum = GAP * (t->ncolumns - 1);

	for (size_t c = 0; c < t->ncolumns; c++)
		sum += widths[c];
	for (; sum > most; sum--) {
		size_t best = t->ncolumns;

		for (size_t c = 0; c < t->ncolumns; c++)
			if (t->columns[c].flags & TABLE_SHRINK && widths[c] > LEAST &&
			    (best == t->ncolumns || widths[c] > widths[best]))
				best = c;
		if (best == t->ncolumns)
			return;
		widths[best]--;
	}
}

static void print_cell(FILE *to, const char *text, enum tint tint, size_t width, unsigned flags,
		       bool last)
{
	size_t has = human_width(text), len = strlen(text);
	const char *more = "";
	int pad;

	if (has > width) {
		len = human_fit(text, width - 1);
		has = width;
		more = "\xe2\x80\xa6";
	}
	pad = (int)(width - has);
	if (flags & TABLE_RIGHT)
		fprintf(to, "%*s", pad, "");
	fprintf(to, "%s%.*s%s%s", human_tint(tint), (int)len, text, more, human_tint_end(tint));
	if (!last && !(flags & TABLE_RIGHT))
		fprintf(to, "%*s", pad, "");
}

/* cells NULL: the titles. */
static void print_row(const struct text_table *t, FILE *to, const struct text_table_cell *cells,
		      const size_t widths[], const struct text_table_style *style)
{
	for (size_t c = 0; c < t->ncolumns; c++) {
		enum tint tint = cells ? cells[c].tint : TINT_BOLD;
		bool last = c + 1 == t->ncolumns;

		print_cell(to, cells ? cells[c].text : t->columns[c].title,
			   style->colours ? tint : TINT_NONE, widths[c], t->columns[c].flags, last);
		fputs(last ? style->end : "  ", to);
	}
}

static void print_rows(const struct text_table *t, FILE *to, const struct text_table_style *style)
{
	size_t widths[TABLE_COLUMNS], rows = t->ncells / t->ncolumns;

	measure(t, widths);
	if (style->width)
		shrink(t, widths, style->width);
	if (t->columns[0].title)
		print_row(t, to, NULL, widths, style);
	if (style->rows && rows > style->rows)
		rows = style->rows;
	for (size_t r = 0; r < rows; r++)
		print_row(t, to, t->cells + r * t->ncolumns, widths, style);
}

void text_table_print_as(struct text_table *t, FILE *to, const struct text_table_style *style)
{
	if (!t->failed)
		print_rows(t, to, style);
	for (size_t i = 0; i < t->ncells; i++)
		free(t->cells[i].text);
	free(t->cells);
}

void text_table_print(struct text_table *t, FILE *to)
{
	struct text_table_style style = { .colours = human_colours(to), .end = "\n" };
	struct winsize w;

	if (isatty(fileno(to)) && ioctl(fileno(to), TIOCGWINSZ, &w) == 0)
		style.width = w.ws_col;
	text_table_print_as(t, to, &style);
}

/* ---- records --------------------------------------------------------------------------------- */

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
