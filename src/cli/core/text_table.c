/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/text_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/vec.h"

enum { GAP = 2, LEAST = 8 };

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

/* ---- printing -------------------------------------------------------------------------------- */

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

static void free_cells(struct text_table *t)
{
	for (size_t i = 0; i < t->ncells; i++)
		free(t->cells[i].text);
	free(t->cells);
	t->cells = NULL;
	t->ncells = 0;
}

int text_table_print_as(struct text_table *t, FILE *to, const struct text_table_style *style)
{
	size_t widths[TABLE_COLUMNS], rows = t->ncells / t->ncolumns;

	if (t->failed) {
		free_cells(t);
		return -ENOMEM;
	}
	measure(t, widths);
	if (style->width)
		shrink(t, widths, style->width);
	if (t->columns[0].title)
		print_row(t, to, NULL, widths, style);
	if (style->rows && rows > style->rows)
		rows = style->rows;
	for (size_t r = 0; r < rows; r++)
		print_row(t, to, t->cells + r * t->ncolumns, widths, style);
	free_cells(t);
	return 0;
}

int text_table_print(struct text_table *t, FILE *to)
{
	struct text_table_style style = { .colours = human_colours(to), .end = "\n" };
	struct winsize w;

	if (isatty(fileno(to)) && ioctl(fileno(to), TIOCGWINSZ, &w) == 0)
		style.width = w.ws_col;
	return text_table_print_as(t, to, &style);
}
