/* SPDX-License-Identifier: Apache-2.0 */
/* A table for people: cells are taken in order, row by row, and cleaned; columns get the width they
 * need, and on a terminal the ones that may shrink give way until all of it fits. */
#ifndef LODGE_CLI_CORE_TEXT_TABLE_H
#define LODGE_CLI_CORE_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/core/human.h"

enum { TABLE_RIGHT = 1, TABLE_SHRINK = 2 };

struct table_column {
	const char *title; /* NULL: this table has no line of titles */
	unsigned flags;
};

struct table_cell {
	char *text;
	enum tint tint;
};

struct table {
	const struct table_column *columns;
	size_t ncolumns, ncells, room;
	struct table_cell *cells;
	bool failed; /* no memory; told by table_print() */
};

void table_init(struct table *t, const struct table_column *columns, size_t ncolumns);
void table_fini(struct table *t);
/* NULL or empty: "-". */
void table_add(struct table *t, const char *text);
void table_addf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Negative: "-". */
void table_add_span(struct table *t, int64_t ms);
void table_add_bytes(struct table *t, int64_t bytes);
/* Of the cell that was added last. */
void table_tint(struct table *t, enum tint tint);
size_t table_rows(const struct table *t);

struct table_look {
	size_t width; /* 0: as wide as need be */
	size_t rows; /* at most; 0: all */
	bool colours;
	const char *end; /* of a line */
};

/* As wide as the terminal that `to` is, if it is one. Ends the table. Returns 0 or -errno. */
int table_print(struct table *t, FILE *to);
int table_print_as(struct table *t, FILE *to, const struct table_look *look);

#endif
