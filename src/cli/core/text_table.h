/* SPDX-License-Identifier: Apache-2.0 */
/* A table for people. Cells come in order, row by row; control characters in them become '?'. Each
 * column is as wide as it needs to be; on a terminal, columns with TABLE_SHRINK are cut to fit. */
#ifndef LODGE_CLI_CORE_TEXT_TABLE_H
#define LODGE_CLI_CORE_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/core/human.h"

enum { TABLE_RIGHT = 1, TABLE_SHRINK = 2, TABLE_COLUMNS = 16 };

struct text_table_column {
	const char *title; /* NULL: this table has no line of titles */
	unsigned flags;
};

struct text_table_cell {
	char *text;
	enum tint tint;
};

struct text_table { /* zeros but for the columns: empty */
	struct text_table_column columns[TABLE_COLUMNS];
	size_t ncolumns, ncells;
	struct text_table_cell *cells;
	bool failed; /* out of memory; text_table_print() returns it */
};

/* NULL or empty: "-". */
void text_table_add(struct text_table *t, const char *text);
/* Of the cell that was added last. */
void text_table_tint(struct text_table *t, enum tint tint);

struct text_table_style {
	size_t width; /* 0: as wide as need be */
	size_t rows; /* at most; 0: all */
	bool colours;
	const char *end; /* of a line */
};

/* As wide as the terminal that `to` is, if it is one. Ends the table. Returns 0 or -errno. */
int text_table_print(struct text_table *t, FILE *to);
int text_table_print_as(struct text_table *t, FILE *to, const struct text_table_style *style);

#endif
