#pragma once
/*
 * tables: rows into and out of an open state file, by statements that are prepared once.
 *
 * Of each table it is known how many rows there are and what their sums add up to, modulo 2^64: two numbers that no lost, doubled or
 * exchanged row leaves as they are. They are kept in the table `meta`, in the same transaction as the rows.
 *
 * Functions return SQLite's result codes. Thread safety: none.
 */
#include "daemon/store/row.h"

#include <sqlite3.h>

struct tally {
	int64_t rows;
	uint64_t sums;
};

enum statement {
	STATEMENT_PUT,
	STATEMENT_SUM,
	STATEMENT_FIND,
	STATEMENT_FIND_FIRST, /* by the first key */
	STATEMENT_DELETE,
	STATEMENT_SCAN,
};
#define N_STATEMENTS 6u

struct tables {
	sqlite3 *db;
	sqlite3_stmt *statements[N_TABLES][N_STATEMENTS];
	struct tally tallies[N_TABLES]; /* of TABLE_META: not used */
	uint64_t rows, bytes;		/* written since the start */
};

/* The database stays the caller's. */
void tables_init(struct tables *tables, sqlite3 *db);
/* To be called before the database is closed. */
void tables_deinit(struct tables *tables);

/* Put a row in the place of the one with its key, if there is one. */
int tables_put(struct tables *tables, const struct row *row);
/* The same, known to have no such place. */
int tables_add(struct tables *tables, const struct row *row);
/* The row with the key in `row`, if there is one. */
int tables_delete(struct tables *tables, const struct row *row);

/* Returns 0, or what is to be returned. The row is valid during the call, which may put and delete rows, but not find any in the same table. */
typedef int (*tables_fn)(void *ctx, const struct row *row);

/*
 * `visit` a row whose first n_keys keys are those in `row`: all its keys, or the first alone. SQLITE_NOTFOUND; SQLITE_CORRUPT: it has not its sum, or a value not its type.
 */
int tables_find(struct tables *tables, const struct row *key, unsigned n_keys, tables_fn visit,
		void *ctx);

/*
 * `visit` every row, in the order of the keys; the table must not change meanwhile. SQLITE_CORRUPT as above. ret_tally (may be NULL): of all that were visited.
 */
int tables_scan(struct tables *tables, enum table table, tables_fn visit, void *ctx,
		struct tally *ret_tally);
