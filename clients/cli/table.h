#pragma once
/*
 * table: rows of texts, printed in columns that are as wide as their widest cell. Two blanks between columns, none at a line's end.
 *
 * The widths are those of code points: right for what rationctl itself writes. Letters of others may be wider or narrower, so a column
 * that holds them should be the last, or one after which nothing has to line up.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TABLE_MAX_COLUMNS 12

struct table {
	size_t n_columns;
	const char *align; /* a letter for each column: 'l' or 'r' */
	char **cells;
	size_t n_cells;
	size_t capacity;
	bool no_memory;
};

void table_init(struct table *table, const char *align);
void table_deinit(struct table *table);

/* The next cell, left to right and row by row; copied. */
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same: a number, or "-" where there is none. */
void table_number(struct table *table, bool has, int64_t number);

/* The cells of a row of headings, as many as there are columns. */
void table_head(struct table *table, const char *const *texts);

/* False: a cell before found no memory; nothing is printed then. */
bool table_print(const struct table *table, FILE *out);
