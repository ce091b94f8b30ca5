#include "daemon/store/schema.h"

#include "daemon/store/meta.h"
#include "daemon/store/row.h"

#include <stdio.h>
#include <string.h>

/*
 * Numbers are kept in blocks: 504 of 8 bytes, big-endian two's complement, fill a page with what SQLite needs beside them, so that a hundred thousand
 * counters that change are two hundred pages. That of counter `id` is the (id % 504)th of block id / 504; a block that is not there is all zero.
 *
 * WITHOUT ROWID: tables with keys of their own need no second tree that could say something else than the first.
 */
static const char *const objects[] = {
	"CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT, WITHOUT ROWID",

	"CREATE TABLE counter (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, path TEXT NOT NULL, born INTEGER NOT NULL,"
	" sum INTEGER NOT NULL) STRICT",

	"CREATE TABLE own (block INTEGER PRIMARY KEY, numbers BLOB NOT NULL, sum INTEGER NOT NULL) STRICT",

	"CREATE TABLE ahead (block INTEGER PRIMARY KEY, numbers BLOB NOT NULL, sum INTEGER NOT NULL) STRICT",

	"CREATE TABLE metric (name TEXT PRIMARY KEY NOT NULL, kind INTEGER NOT NULL, max_counters INTEGER NOT NULL,"
	" overflow INTEGER NOT NULL, expire_after INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT, WITHOUT ROWID",

	"CREATE TABLE rule (pattern TEXT NOT NULL, kind INTEGER NOT NULL, unit INTEGER NOT NULL, duration INTEGER NOT NULL,"
	" max INTEGER NOT NULL, high INTEGER NOT NULL, low INTEGER NOT NULL, min INTEGER NOT NULL, shadow INTEGER NOT NULL,"
	" rate INTEGER NOT NULL, per INTEGER NOT NULL, burst INTEGER NOT NULL, sum INTEGER NOT NULL,"
	" PRIMARY KEY (pattern, kind, unit, duration)) STRICT, WITHOUT ROWID",

	"CREATE TABLE session (id BLOB PRIMARY KEY NOT NULL, over INTEGER NOT NULL, last_batch INTEGER NOT NULL,"
	" last_operation INTEGER NOT NULL, lifetime INTEGER NOT NULL, agent BLOB NOT NULL, answers BLOB NOT NULL,"
	" leases BLOB NOT NULL, sum INTEGER NOT NULL) STRICT, WITHOUT ROWID",

	"CREATE TABLE held (session BLOB NOT NULL, path TEXT NOT NULL, amount INTEGER NOT NULL, sum INTEGER NOT NULL,"
	" PRIMARY KEY (session, path)) STRICT, WITHOUT ROWID",

	"CREATE TABLE usage (path TEXT NOT NULL, kind INTEGER NOT NULL, unit INTEGER NOT NULL, duration INTEGER NOT NULL,"
	" number INTEGER NOT NULL, count INTEGER NOT NULL, sum INTEGER NOT NULL,"
	" PRIMARY KEY (path, kind, unit, duration)) STRICT, WITHOUT ROWID",

/* The eight bytes `x` in hexadecimal, as a number. The digit 0 is at no place of the list, which is what it is worth. */
#define DIGIT(place, shift) "(instr('123456789ABCDEF', substr(x, " #place ", 1)) << " #shift ")"
#define DECODED                                                                                                                           \
	"(" DIGIT(1, 60) "|" DIGIT(2, 56) "|" DIGIT(3, 52) "|" DIGIT(4, 48) "|" DIGIT(5, 44) "|" DIGIT(6, 40) "|" DIGIT(7, 36) "|" DIGIT( \
		8,                                                                                                                        \
		32) "|" DIGIT(9,                                                                                                          \
			      28) "|" DIGIT(10,                                                                                           \
					    24) "|" DIGIT(11,                                                                             \
							  20) "|" DIGIT(12,                                                               \
									16) "|" DIGIT(13,                                                 \
										      12) "|" DIGIT(14,                                   \
												    8) "|" DIGIT(15,                      \
														 4) "|" DIGIT(16,         \
															      0) ")"
#define CHOSEN "hex(substr(numbers, id % 504 * 8 + 1, 8))"
#define NUMBER_IN(table)                                                        \
	"coalesce((SELECT " DECODED " FROM (SELECT " CHOSEN " AS x FROM " table \
	" WHERE block = id / 504 LIMIT 1)), 0)"
	"CREATE VIEW counters (path, own, ahead, born, id, parent) AS"
	" SELECT path, " NUMBER_IN("own") ", " NUMBER_IN(
		"ahead") ","
			 " datetime(born / 1000000000, 'unixepoch'), id, nullif(parent, 0) FROM counter",

	"CREATE VIEW totals (path, own, total) AS"
	" WITH RECURSIVE up (id, own) AS (SELECT id, own FROM counters"
	" UNION ALL SELECT counter.parent, up.own FROM up JOIN counter ON counter.id = up.id WHERE counter.parent <> 0)"
	" SELECT path, own, total FROM counters JOIN (SELECT id, sum(own) AS total FROM up GROUP BY id) USING (id)",

#define WINDOW_TEXT(from)                                                   \
	"CASE " from "kind WHEN 0 THEN 'none' WHEN 1 THEN 'per ' || (" from \
	"duration / 1000000000.0) || 's' WHEN 2 THEN CASE " from            \
	"unit WHEN 0 THEN 'calendar day' WHEN 1 THEN 'calendar week' ELSE 'calendar month' END ELSE 'rate' END"
#define UNLESS_NONE(column) "nullif(" column ", 9223372036854775807)"
	"CREATE VIEW limits (pattern, window, max, high, low, min, rate, burst, shadow) AS"
	" SELECT pattern, " WINDOW_TEXT("") ", " UNLESS_NONE("max") ", " UNLESS_NONE(
		"high") ", low, min,"
			" CASE kind WHEN 3 THEN rate || '/' || (per / 1000000000.0) || 's' END, CASE kind WHEN 3 THEN burst END, shadow"
			" FROM rule",

	"CREATE VIEW used (path, window, number, count) AS SELECT path, " WINDOW_TEXT(
		"") ", number, count FROM usage",

	"CREATE VIEW sessions (id, agent, last_batch, last_operation, lifetime_s, over) AS"
	" SELECT lower(hex(id)), CAST(agent AS TEXT), last_batch, last_operation, lifetime / 1000000000.0, over FROM session",

	"CREATE VIEW holds (session, path, amount) AS"
	" SELECT CASE session WHEN zeroblob(16) THEN 'detached' ELSE lower(hex(session)) END, path, amount FROM held",
};
#define N_OBJECTS (sizeof(objects) / sizeof(objects[0]))

/* None yet. */
const struct schema_step schema_steps[] = { { .from = -1, .sql = "" } };
const unsigned schema_n_steps = 0;

static int run(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static int say_version(sqlite3 *db)
{
	char sql[96];

	(void)snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		       SCHEMA_APPLICATION, SCHEMA_VERSION);
	return run(db, sql);
}

/* That all tables are empty. */
static int say_nothing(sqlite3 *db)
{
	const struct meta meta = { .commits = 0 };
	struct tables tables;
	int rc;

	tables_init(&tables, db);
	rc = meta_write(&tables, &meta);
	tables_deinit(&tables);
	return rc;
}

int schema_make(sqlite3 *db)
{
	int rc = run(db, "BEGIN IMMEDIATE");

	for (size_t i = 0; rc == SQLITE_OK && i < N_OBJECTS; i++) {
		rc = run(db, objects[i]);
	}
	if (rc == SQLITE_OK) {
		rc = say_version(db);
	}
	if (rc == SQLITE_OK) {
		rc = say_nothing(db);
	}
	return rc == SQLITE_OK ? run(db, "COMMIT") : rc;
}

/* ---- steps ---- */

/* row_sum(table, value...) in SQL. */
static void sum_in_sql(sqlite3_context *context, int n, sqlite3_value **values)
{
	struct row row = { .table = TABLE_META };
	int table = n > 0 ? sqlite3_value_int(values[0]) : -1;

	if (table < 0 || (unsigned)table >= N_TABLES ||
	    (unsigned)n != table_shapes[table].n_values + 1) {
		sqlite3_result_error(context, "row_sum(): no such table, or not all its values",
				     -1);
		return;
	}
	row.table = (enum table)table;
	for (unsigned i = 0; i < table_shapes[table].n_values; i++) {
		sqlite3_value *value = values[i + 1];

		row.cells[i].number = sqlite3_value_int64(value);
		row.cells[i].bytes.at = sqlite3_value_blob(value);
		row.cells[i].bytes.len = (size_t)sqlite3_value_bytes(value);
	}
	sqlite3_result_int64(context, (sqlite3_int64)row_sum(&row));
}

int schema_migrate(sqlite3 *db, int version, const struct schema_step *steps, unsigned n_steps)
{
	int rc = sqlite3_create_function(db, "row_sum", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
					 NULL, sum_in_sql, NULL, NULL);

	while (rc == SQLITE_OK && version < SCHEMA_VERSION) {
		unsigned i = 0;

		while (i < n_steps && steps[i].from != version) {
			i++;
		}
		rc = i < n_steps ? run(db, steps[i].sql) : SQLITE_MISMATCH;
		version++;
	}
	return rc == SQLITE_OK ? say_version(db) : rc;
}

/* ---- what is there ---- */

/* Is this the text of one of ours that was not met yet? */
static bool is_ours(const char *sql, bool met[N_OBJECTS])
{
	for (size_t i = 0; i < N_OBJECTS; i++) {
		if (!met[i] && sql != NULL && strcmp(sql, objects[i]) == 0) {
			met[i] = true;
			return true;
		}
	}
	return false;
}

int schema_check(sqlite3 *db)
{
	bool met[N_OBJECTS] = { false };
	size_t n = 0;
	sqlite3_stmt *statement;
	int rc = sqlite3_prepare_v2(db, "SELECT sql FROM sqlite_schema", -1, &statement, NULL);

	if (rc != SQLITE_OK) {
		return rc;
	}
	while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
		if (!is_ours((const char *)sqlite3_column_text(statement, 0), met)) {
			rc = SQLITE_MISMATCH;
			break;
		}
		n++;
	}
	(void)sqlite3_finalize(statement);
	if (rc == SQLITE_DONE) {
		rc = n == N_OBJECTS ? SQLITE_OK : SQLITE_MISMATCH;
	}
	return rc;
}
