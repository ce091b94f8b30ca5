#include "daemon/store/tables.h"

#include <stdio.h>
#include <string.h>

#define MAX_SQL 640u

void tables_init(struct tables *tables, sqlite3 *db)
{
	*tables = (struct tables){ .db = db };
}

void tables_deinit(struct tables *tables)
{
	for (unsigned t = 0; t < N_TABLES; t++) {
		for (unsigned i = 0; i < N_STATEMENTS; i++) {
			(void)sqlite3_finalize(tables->statements[t][i]);
			tables->statements[t][i] = NULL;
		}
	}
	tables->db = NULL;
}

/* ---- statements, from names in table_shapes alone ---- */

struct sql {
	char bytes[MAX_SQL];
	size_t len;
};

static void add(struct sql *sql, const char *what)
{
	size_t len = strlen(what);

	if (len < sizeof(sql->bytes) - sql->len) {
		memcpy(sql->bytes + sql->len, what, len + 1);
		sql->len += len;
	}
}

static void add_columns(struct sql *sql, const struct table_shape *shape, unsigned n,
			const char *between)
{
	for (unsigned i = 0; i < n; i++) {
		add(sql, i > 0 ? between : "");
		add(sql, shape->columns[i].name);
	}
}

static void add_where(struct sql *sql, const struct table_shape *shape, unsigned n_keys)
{
	add(sql, " WHERE ");
	add_columns(sql, shape, n_keys, " = ? AND ");
	add(sql, " = ?");
}

static void put_text(struct sql *sql, const struct table_shape *shape)
{
	add(sql, "INSERT OR REPLACE INTO ");
	add(sql, shape->name);
	add(sql, " VALUES (");
	for (unsigned i = 0; i < shape->n_values; i++) {
		add(sql, "?, ");
	}
	add(sql, "?)");
}

static void read_text(struct sql *sql, const struct table_shape *shape, enum statement which)
{
	add(sql, "SELECT ");
	if (which != STATEMENT_SUM) {
		add_columns(sql, shape, shape->n_values, ", ");
		add(sql, ", ");
	}
	add(sql, "sum FROM ");
	add(sql, shape->name);
	if (which == STATEMENT_SCAN) {
		add(sql, " ORDER BY ");
		add_columns(sql, shape, shape->n_keys, ", ");
	} else {
		add_where(sql, shape, which == STATEMENT_FIND_FIRST ? 1 : shape->n_keys);
	}
}

static int prepare(struct tables *tables, enum table table, enum statement which,
		   sqlite3_stmt **ret_statement)
{
	const struct table_shape *shape = &table_shapes[table];
	sqlite3_stmt **statement = &tables->statements[table][which];
	struct sql sql = { .len = 0 };
	int rc = SQLITE_OK;

	if (*statement == NULL) {
		if (which == STATEMENT_PUT) {
			put_text(&sql, shape);
		} else if (which == STATEMENT_DELETE) {
			add(&sql, "DELETE FROM ");
			add(&sql, shape->name);
			add_where(&sql, shape, shape->n_keys);
		} else {
			read_text(&sql, shape, which);
		}
		rc = sqlite3_prepare_v3(tables->db, sql.bytes, -1, SQLITE_PREPARE_PERSISTENT,
					statement, NULL);
	}
	*ret_statement = *statement;
	return rc;
}

/* ---- values ---- */

static int bind(sqlite3_stmt *statement, const struct row *row, unsigned n)
{
	const struct table_shape *shape = &table_shapes[row->table];
	int rc = SQLITE_OK;

	for (unsigned i = 0; rc == SQLITE_OK && i < n; i++) {
		const struct cell *value = &row->cells[i];
		const char *at = value->bytes.at != NULL ? (const char *)value->bytes.at : "";

		switch (shape->columns[i].type) {
		case CELL_NUMBER:
			rc = sqlite3_bind_int64(statement, (int)i + 1, value->number);
			break;
		case CELL_TEXT:
			rc = sqlite3_bind_text64(statement, (int)i + 1, at, value->bytes.len,
						 SQLITE_STATIC, SQLITE_UTF8);
			break;
		case CELL_BLOB:
			rc = sqlite3_bind_blob64(statement, (int)i + 1, at, value->bytes.len,
						 SQLITE_STATIC);
			break;
		}
	}
	return rc;
}

/* SQLITE_CORRUPT: a value is not of its column's type, or the row has not its sum. */
static int read_row(sqlite3_stmt *statement, struct row *row, uint64_t *ret_sum)
{
	static const int types[] = { SQLITE_INTEGER, SQLITE_TEXT, SQLITE_BLOB };
	const struct table_shape *shape = &table_shapes[row->table];
	int n = (int)shape->n_values;

	for (int i = 0; i < n; i++) {
		enum cell_type type = shape->columns[i].type;
		struct cell *value = &row->cells[i];

		if (sqlite3_column_type(statement, i) != types[type]) {
			return SQLITE_CORRUPT;
		}
		if (type == CELL_NUMBER) {
			value->number = sqlite3_column_int64(statement, i);
		} else {
			value->bytes.at = type == CELL_TEXT ? sqlite3_column_text(statement, i)
							    : sqlite3_column_blob(statement, i);
			value->bytes.len = (size_t)sqlite3_column_bytes(statement, i);
		}
	}
	*ret_sum = (uint64_t)sqlite3_column_int64(statement, n);
	return *ret_sum == row_sum(row) ? SQLITE_OK : SQLITE_CORRUPT;
}

static uint64_t size_of(const struct row *row)
{
	const struct table_shape *shape = &table_shapes[row->table];
	uint64_t bytes = 0;

	for (unsigned i = 0; i < shape->n_values; i++) {
		bytes += shape->columns[i].type == CELL_NUMBER ? sizeof(int64_t)
							       : row->cells[i].bytes.len;
	}
	return bytes;
}

/* ---- rows ---- */

/* Ends a statement that has returned rc; its own memory of an error is for nobody. */
static int finish(sqlite3_stmt *statement, int rc)
{
	(void)sqlite3_reset(statement);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The sum that stands in the file; SQLITE_NOTFOUND. */
static int old_sum(struct tables *tables, const struct row *row, uint64_t *ret_sum)
{
	sqlite3_stmt *statement;
	int rc = prepare(tables, row->table, STATEMENT_SUM, &statement);

	if (rc == SQLITE_OK) {
		rc = bind(statement, row, table_shapes[row->table].n_keys);
	}
	if (rc != SQLITE_OK) {
		return rc;
	}
	rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW) {
		*ret_sum = (uint64_t)sqlite3_column_int64(statement, 0);
		rc = SQLITE_DONE;
	} else if (rc == SQLITE_DONE) {
		rc = SQLITE_NOTFOUND;
	}
	return finish(statement, rc);
}

/* `old`: the sum of the row in whose place it comes, if `replaces`. */
static int write_row(struct tables *tables, const struct row *row, bool replaces, uint64_t old)
{
	struct tally *tally = &tables->tallies[row->table];
	uint64_t sum = row_sum(row);
	unsigned n = table_shapes[row->table].n_values;
	sqlite3_stmt *statement;
	int rc = prepare(tables, row->table, STATEMENT_PUT, &statement);

	if (rc == SQLITE_OK) {
		rc = bind(statement, row, n);
	}
	if (rc == SQLITE_OK) {
		rc = sqlite3_bind_int64(statement, (int)n + 1, (sqlite3_int64)sum);
	}
	if (rc == SQLITE_OK) {
		rc = finish(statement, sqlite3_step(statement));
	}
	if (rc == SQLITE_OK) {
		tally->rows += !replaces;
		tally->sums += sum - old;
		tables->rows++;
		tables->bytes += size_of(row);
	}
	return rc;
}

int tables_put(struct tables *tables, const struct row *row)
{
	uint64_t old = 0;
	int rc = old_sum(tables, row, &old);

	if (rc != SQLITE_OK && rc != SQLITE_NOTFOUND) {
		return rc;
	}
	return write_row(tables, row, rc == SQLITE_OK, old);
}

int tables_add(struct tables *tables, const struct row *row)
{
	return write_row(tables, row, /* replaces= */ false, 0);
}

int tables_delete(struct tables *tables, const struct row *row)
{
	struct tally *tally = &tables->tallies[row->table];
	uint64_t old = 0;
	sqlite3_stmt *statement;
	int rc = old_sum(tables, row, &old);

	if (rc != SQLITE_OK) {
		return rc == SQLITE_NOTFOUND ? SQLITE_OK : rc;
	}
	rc = prepare(tables, row->table, STATEMENT_DELETE, &statement);
	if (rc == SQLITE_OK) {
		rc = bind(statement, row, table_shapes[row->table].n_keys);
	}
	if (rc == SQLITE_OK) {
		rc = finish(statement, sqlite3_step(statement));
	}
	if (rc == SQLITE_OK) {
		tally->rows--;
		tally->sums -= old;
		tables->rows++;
	}
	return rc;
}

int tables_find(struct tables *tables, const struct row *key, unsigned n_keys, tables_fn visit,
		void *ctx)
{
	struct row row = { .table = key->table };
	uint64_t sum;
	sqlite3_stmt *statement;
	int rc = prepare(tables, key->table,
			 n_keys == 1 && table_shapes[key->table].n_keys > 1 ? STATEMENT_FIND_FIRST
									    : STATEMENT_FIND,
			 &statement);

	if (rc == SQLITE_OK) {
		rc = bind(statement, key, n_keys);
	}
	if (rc != SQLITE_OK) {
		return rc;
	}
	rc = sqlite3_step(statement);
	if (rc == SQLITE_DONE) {
		rc = SQLITE_NOTFOUND;
	} else if (rc == SQLITE_ROW) {
		rc = read_row(statement, &row, &sum);
		if (rc == SQLITE_OK) {
			rc = visit(ctx, &row);
		}
	}
	return finish(statement, rc);
}

int tables_scan(struct tables *tables, enum table table, tables_fn visit, void *ctx,
		struct tally *ret_tally)
{
	struct tally tally = { 0 };
	struct row row = { .table = table };
	sqlite3_stmt *statement;
	int rc = prepare(tables, table, STATEMENT_SCAN, &statement);

	if (rc != SQLITE_OK) {
		return rc;
	}
	while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
		uint64_t sum;

		rc = read_row(statement, &row, &sum);
		if (rc == SQLITE_OK) {
			rc = visit(ctx, &row);
		}
		if (rc != SQLITE_OK) {
			break;
		}
		tally.rows++;
		tally.sums += sum;
	}
	rc = finish(statement, rc);
	if (rc == SQLITE_OK && ret_tally != NULL) {
		*ret_tally = tally;
	}
	return rc;
}
