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

enum { GAP = 2, LEAST = 8, COLUMNS = 16 };

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

struct cell {
	char *text;
	enum tint tint;
};

struct field_table { /* cells come row by row */
	const struct field *columns;
	size_t ncolumns, ncells;
	struct cell *cells;
	bool failed; /* out of memory */
};

static void add_cell(struct field_table *t, const char *text, enum tint tint)
{
	struct cell *cell = t->failed ? NULL : vec_push(&t->cells, &t->ncells, SIZE_MAX);

	if (cell)
		*cell = (struct cell){ human_clean_dup(*text ? text : "-"), tint };
	t->failed = !cell || !cell->text;
}

static void measure(const struct field_table *t, size_t widths[])
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
static void shrink(const struct field_table *t, size_t widths[], size_t most)
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
static void print_row(const struct field_table *t, FILE *to, const struct cell *cells,
		      const size_t widths[], const struct field_style *style)
{
	for (size_t c = 0; c < t->ncolumns; c++) {
		enum tint tint = cells ? cells[c].tint : TINT_BOLD;
		bool last = c + 1 == t->ncolumns;

		print_cell(to, cells ? cells[c].text : t->columns[c].title,
			   style->colours ? tint : TINT_NONE, widths[c], t->columns[c].flags, last);
		fputs(last ? style->end : "  ", to);
	}
}

static void print_rows(const struct field_table *t, FILE *to, const struct field_style *style)
{
	size_t widths[COLUMNS], rows = t->ncells / t->ncolumns;

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

static void finish(struct field_table *t, FILE *to, const struct field_style *style)
{
	if (!t->failed)
		print_rows(t, to, style);
	for (size_t i = 0; i < t->ncells; i++)
		free(t->cells[i].text);
	free(t->cells);
}

static struct field_style style_of_stdout(void)
{
	struct field_style style = { .colours = human_colours(stdout), .end = "\n" };
	struct winsize w;

	if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0)
		style.width = w.ws_col;
	return style;
}

static const char *text_of(const struct field *f, const json_t *record, char buf[FIELD_TEXT])
{
	return (f->text ? f->text : field_text)(record, f->path, buf);
}

void field_print_table_as(const struct field *fields, const json_t *records, FILE *to,
			  const struct field_style *style)
{
	struct field_table t = { .columns = fields };
	char buf[FIELD_TEXT];
	json_t *record;
	size_t i;

	while (t.ncolumns < COLUMNS && fields[t.ncolumns].title)
		t.ncolumns++;
	json_array_foreach (records, i, record) {
		for (const struct field *f = fields; f < fields + t.ncolumns; f++)
			add_cell(&t, text_of(f, record, buf),
				 f->tint ? f->tint(record) : TINT_NONE);
	}
	finish(&t, to, style);
}

void field_print_table(const struct field *fields, const json_t *records)
{
	struct field_style style = style_of_stdout();

	field_print_table_as(fields, records, stdout, &style);
}

/* ---- records --------------------------------------------------------------------------------- */

static void add_line(struct field_table *t, const char *title, const char *value, enum tint tint)
{
	if (!*value)
		return;
	add_cell(t, title, TINT_BOLD);
	add_cell(t, value, tint);
}

void field_add_line(struct field_table *t, const char *title, const char *value)
{
	add_line(t, title, value, TINT_NONE);
}

void field_print_record(const struct field *fields, const json_t *record)
{
	static const struct field untitled[2];
	struct field_table t = { .columns = untitled, .ncolumns = 2 };
	struct field_style style = style_of_stdout();
	char buf[FIELD_TEXT];

	for (const struct field *f = fields; f->title; f++) {
		if (f->lines)
			f->lines(&t, f->title, member_get(record, f->path));
		else
			add_line(&t, f->title, text_of(f, record, buf),
				 f->tint ? f->tint(record) : TINT_NONE);
	}
	finish(&t, stdout, &style);
}

void field_add_limits(struct field_table *t, const char *title, json_t *limits)
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

static void add_texts(struct field_table *t, const char *title, json_t *texts, const char *between)
{
	char line[FIELD_TEXT];
	const char *name;
	json_t *v;

	json_object_foreach (texts, name, v) {
		snprintf(line, sizeof(line), "%s%s%s", name, between, member_text(v, ""));
		field_add_line(t, title, line);
	}
}

void field_add_env(struct field_table *t, const char *title, json_t *env)
{
	add_texts(t, title, env, "=");
}

void field_add_tools(struct field_table *t, const char *title, json_t *tools)
{
	add_texts(t, title, tools, ": ");
}
