#include "daemon/store/meta.h"

#include <stdio.h>
#include <string.h>

#define MAX_KEY 32u
#define N_KEYS (2u + 2u * (N_TABLES - 1u))

/* The i-th key, and where its value is. */
static int64_t *key(struct meta *meta, unsigned i, char name[MAX_KEY])
{
	unsigned table = i / 2; /* 0: meta itself, which has no tally */
	struct tally *tally = &meta->tallies[table];

	if (table == 0) {
		(void)snprintf(name, MAX_KEY, "%s", i == 0 ? "commits" : "saved");
		return i == 0 ? &meta->commits : &meta->saved_ns;
	}
	(void)snprintf(name, MAX_KEY, "%s.%s", table_shapes[table].name,
		       i % 2 == 0 ? "rows" : "sums");
	return i % 2 == 0 ? &tally->rows : (int64_t *)&tally->sums;
}

static void make_row(struct row *row, const char *name, int64_t value)
{
	*row = (struct row){ .table = TABLE_META };
	row->cells[0].bytes =
		(struct bytes_view){ .at = (const uint8_t *)name, .len = strlen(name) };
	row->cells[1].number = value;
}

static int note_value(void *ctx, const struct row *row)
{
	*(int64_t *)ctx = row->cells[1].number;
	return SQLITE_OK;
}

int meta_write(struct tables *tables, const struct meta *meta)
{
	struct meta copy = *meta;
	char name[MAX_KEY];
	int rc = SQLITE_OK;

	for (unsigned i = 0; rc == SQLITE_OK && i < N_KEYS; i++) {
		int64_t value = *key(&copy, i, name);
		int64_t old = 0;
		struct row row;

		make_row(&row, name, value);
		rc = tables_find(tables, &row, 1, note_value, &old);
		if (rc == SQLITE_NOTFOUND || (rc == SQLITE_OK && old != value)) {
			rc = tables_put(tables, &row);
		}
	}
	return rc;
}

struct reading {
	struct meta meta;
	unsigned n;
};

static int take(void *ctx, const struct row *row)
{
	struct reading *reading = ctx;
	const struct bytes_view *is = &row->cells[0].bytes;
	char name[MAX_KEY];

	for (unsigned i = 0; i < N_KEYS; i++) {
		int64_t *value = key(&reading->meta, i, name);

		if (strlen(name) == is->len && memcmp(name, is->at, is->len) == 0) {
			*value = row->cells[1].number;
			reading->n++;
			return SQLITE_OK;
		}
	}
	return SQLITE_CORRUPT;
}

int meta_read(struct tables *tables, struct meta *ret_meta)
{
	struct reading reading = { .n = 0 };
	int rc = tables_scan(tables, TABLE_META, take, &reading, /* ret_tally= */ NULL);

	/* Keys come in order, so none came twice. */
	if (rc == SQLITE_OK && reading.n != N_KEYS) {
		rc = SQLITE_CORRUPT;
	}
	if (rc == SQLITE_OK) {
		*ret_meta = reading.meta;
	}
	return rc;
}
