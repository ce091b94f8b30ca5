#pragma once
/*
 * schema: what is in a state file of this version, and how an older one becomes one.
 */
#include <sqlite3.h>

#define SCHEMA_APPLICATION 0x52744e64 /* "RtNd": what PRAGMA application_id says of a state file */
#define SCHEMA_VERSION 1
#define SCHEMA_PAGE 4096

/*
 * One step: from version `from` to from + 1, SQL that runs within the transaction of all steps. It can use row_sum(table, value...) for the sums of rows: the number of the table, then all
 * its values in order.
 */
struct schema_step {
	int from;
	const char *sql;
};

/* All tables, empty, and the views; in a transaction of its own. An SQLite result code. */
int schema_make(sqlite3 *db);

/*
 * From an older version (as user_version says) to this one, in the transaction that is under way. SQLITE_MISMATCH: there is no way from there. `steps` is
 * schema_steps but in tests.
 */
int schema_migrate(sqlite3 *db, int version, const struct schema_step *steps, unsigned n_steps);
extern const struct schema_step schema_steps[];
extern const unsigned schema_n_steps;

/*
 * Is the schema, word for word, that of this version? SQLITE_OK, SQLITE_MISMATCH, or what went wrong.
 */
int schema_check(sqlite3 *db);
