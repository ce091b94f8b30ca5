#pragma once
/*
 * row: the tables of a state file, what a row of each holds, and its sum.
 *
 * A row is its values in the order of the columns, keys first. Behind them, in the file, stands its sum: a hash of all that is in it and of the table it
 * belongs to. Steps of the hash are bijections of its state, so a change within any one number, or within any eight bytes of a text that are taken together,
 * always shows.
 *
 * Thread safety: pure functions.
 */
#include "daemon/store/cut.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum table {
	TABLE_META,
	TABLE_COUNTER,
	TABLE_OWN,
	TABLE_AHEAD,
	TABLE_METRIC,
	TABLE_RULE,
	TABLE_SESSION,
	TABLE_HELD,
	TABLE_USAGE,
};
#define N_TABLES 9u

#define ROW_MAX_VALUES 12u

enum cell_type {
	CELL_NUMBER,
	CELL_TEXT,
	CELL_BLOB,
};

struct column {
	const char *name;
	enum cell_type type;
};

struct table_shape {
	const char *name;
	unsigned n_keys, n_values; /* keys included, the sum not */
	struct column columns[ROW_MAX_VALUES];
};

extern const struct table_shape table_shapes[N_TABLES];

/* Which of the two holds is for the column's type to say. */
struct cell {
	int64_t number;
	struct bytes_view bytes;
};

/* Owns nothing. */
struct row {
	enum table table;
	struct cell cells[ROW_MAX_VALUES];
};

uint64_t row_sum(const struct row *row);
/* Of the first n values: n_keys of them are a key's. */
uint64_t row_hash(const struct row *row, unsigned n);
