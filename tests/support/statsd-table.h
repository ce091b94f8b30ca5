#pragma once
/*
 * statsd_table: tests/statsd/lines.tsv, row by row: datagrams, and what is to become of each of their lines.
 */
#include <stdbool.h>
#include <stddef.h>

#define TABLE_MAX_OUTCOMES 4u

struct table_outcome {
	bool accepted;
	char reason[32];	   /* if it is not */
	char name[300], tags[512]; /* "k=v,k2=v2" */
	char value[64];
	unsigned n_ignored; /* fields */
};

struct table_row {
	char bytes[1024];
	size_t len;
	struct table_outcome outcomes[TABLE_MAX_OUTCOMES];
	size_t n;
	char text[1400]; /* the row, for messages */
};

/* Calls `take` for every row; returns how many there are. */
size_t table_each(void (*take)(void *ctx, const struct table_row *row), void *ctx);

/* Where a line with these tags ("k=v,k2=v2", sorted) is counted if its metric has no levels. */
void table_path(const struct table_outcome *outcome, char *path, size_t size);
