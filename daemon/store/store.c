#include "daemon/store/store.h"

#include "daemon/store/file.h"
#include "daemon/store/log.h"
#include "daemon/store/schema.h"
#include "daemon/store/state.h"
#include "daemon/store/step.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * cache_spill: a transaction stays in memory until its commit, so a commit that fails has written nothing that anybody could take for a part of one.
 * journal_size_limit: a log that a reader made large becomes small again.
 */
#define CAREFUL "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;"
#define WRITING                                                                            \
	"PRAGMA synchronous = FULL; PRAGMA cache_spill = OFF; PRAGMA cache_size = -16384;" \
	"PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 33554432;"

/*
 * Pages in the log before it is worth tidying: 16 MiB, of which most are pages that were written again and again, so that they
 * reach the file once instead.
 */
#define TIDY_PAGES 4096

DEFINE_CLEANUP(struct store *, store_close);

int store_fail(const struct store *store, int error, char why[STORE_MAX_WHY], const char *format,
	       ...)
{
	int n = snprintf(why, STORE_MAX_WHY, "%s: ", store->path);
	va_list arguments;

	if (n > 0 && (unsigned)n < STORE_MAX_WHY) {
		va_start(arguments, format);
		(void)vsnprintf(why + n, STORE_MAX_WHY - (size_t)n, format, arguments);
		va_end(arguments);
	}
	return error;
}

int store_fail_sqlite(const struct store *store, int error, char why[STORE_MAX_WHY],
		      const char *what)
{
	int code = sqlite3_errcode(store->db) & 0xff;
	int system = sqlite3_system_errno(store->db);
	bool is_system = system != 0 &&
			 (code == SQLITE_IOERR || code == SQLITE_FULL || code == SQLITE_CANTOPEN);

	if (code == SQLITE_NOMEM) {
		return -ENOMEM;
	}
	return store_fail(store, error, why, "%s: %s%s%s", what, sqlite3_errmsg(store->db),
			  is_system ? ": " : "", is_system ? strerror(system) : "");
}

/* ---- connections ---- */

static int note_log(void *ctx, sqlite3 *db, const char *name, int pages)
{
	struct store *store = ctx;

	(void)db;
	(void)name;
	if (pages < store->log_pages) {
		store->tidy_at = TIDY_PAGES; /* it began anew */
	}
	store->log_pages = pages;
	return SQLITE_OK;
}

static void disconnect(struct store *store)
{
	tables_deinit(&store->tables);
	(void)sqlite3_close(store->db);
	store->db = NULL;
	store->writes = false;
}

/* SQLite says nothing of why it could not even make a connection. */
static int connect(struct store *store, const char *query, int flags, char why[STORE_MAX_WHY])
{
	_cleanup_free_ char *uri = file_uri(store->path, query);
	int rc;

	if (uri == NULL) {
		return -ENOMEM;
	}
	rc = sqlite3_open_v2(uri, &store->db,
			     flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
			     NULL);
	if (store->db == NULL) {
		return -ENOMEM;
	}
	if (rc == SQLITE_OK) {
		/* Until all of it is known to be right, what the log holds stays there. */
		(void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE,
					file_has_log(store->path), NULL);
		(void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		rc = sqlite3_exec(store->db, CAREFUL, NULL, NULL, NULL);
	}
	tables_init(&store->tables, store->db);
	return rc == SQLITE_OK ? 0 : store_fail_sqlite(store, STORE_E_IO, why, "can't be opened");
}

/*
 * To look at it. A file without a log is read as it lies there, and nothing is put beside it; one with a log (the daemon was killed) needs SQLite's
 * usual means to be read, but what the log holds stays in the log.
 */
static int connect_to_look(struct store *store, char why[STORE_MAX_WHY])
{
	return connect(store, file_has_log(store->path) ? "?mode=ro" : "?mode=ro&immutable=1",
		       SQLITE_OPEN_READONLY, why);
}

static int connect_to_write(struct store *store, char why[STORE_MAX_WHY])
{
	int r = connect(store, "?mode=rw", SQLITE_OPEN_READWRITE, why);
	sqlite3_stmt *statement = NULL;
	int rc;

	if (r != 0) {
		return r;
	}
	rc = sqlite3_prepare_v2(store->db, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
	if (rc == SQLITE_OK) {
		rc = sqlite3_step(statement);
	}
	if (rc == SQLITE_ROW &&
	    strcmp((const char *)sqlite3_column_text(statement, 0), "wal") != 0) {
		(void)sqlite3_finalize(statement);
		return store_fail(store, STORE_E_IO, why, "SQLite can't keep a log beside it");
	}
	(void)sqlite3_finalize(statement);
	if (rc == SQLITE_ROW || rc == SQLITE_DONE) {
		rc = sqlite3_exec(store->db, WRITING, NULL, NULL, NULL);
	}
	if (rc != SQLITE_OK) {
		return store_fail_sqlite(store, STORE_E_IO, why, "can't be written to");
	}
	(void)sqlite3_wal_hook(store->db, note_log, store);
	store->writes = true;
	store->ragged = true; /* by a crash */
	return 0;
}

int store_begin_writing(struct store *store, char why[STORE_MAX_WHY])
{
	struct tally tallies[N_TABLES];
	int r = 0;

	if (!store->writes) {
		memcpy(tallies, store->tables.tallies, sizeof(tallies));
		disconnect(store);
		r = connect_to_write(store, why);
		memcpy(store->tables.tallies, tallies, sizeof(tallies));
	}
	return r;
}

/* ---- a look ---- */

/* One number or text that `sql` gives. */
static int ask(struct store *store, const char *sql, int64_t *ret_number, char text[STORE_MAX_WHY])
{
	sqlite3_stmt *statement = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);

	if (rc == SQLITE_OK) {
		rc = sqlite3_step(statement);
	}
	if (rc == SQLITE_ROW) {
		const unsigned char *column = sqlite3_column_text(statement, 0);

		(void)snprintf(text, STORE_MAX_WHY, "%s",
			       column != NULL ? (const char *)column : "");
		*ret_number = sqlite3_column_int64(statement, 0);
	}
	(void)sqlite3_finalize(statement);
	return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* What is wrong with the file as a database, or that nothing is. */
static int look_whole(struct store *store, char why[STORE_MAX_WHY])
{
	char text[STORE_MAX_WHY];
	int64_t number;

	if (ask(store, "PRAGMA quick_check(1)", &number, text) != SQLITE_OK) {
		return store_fail_sqlite(store, STORE_E_DAMAGED, why, "is damaged");
	}
	if (strcmp(text, "ok") != 0) {
		return store_fail(store, STORE_E_DAMAGED, why, "is damaged: %s", text);
	}
	return 0;
}

static int look_schema(struct store *store, char why[STORE_MAX_WHY])
{
	int rc = schema_check(store->db);

	if (rc == SQLITE_MISMATCH) {
		return store_fail(store, STORE_E_DAMAGED, why,
				  "is damaged: its tables are not those of version %d",
				  SCHEMA_VERSION);
	}
	return rc == SQLITE_OK ? 0 : store_fail_sqlite(store, STORE_E_DAMAGED, why, "is damaged");
}

static int look_version(struct store *store, int *ret_version, char why[STORE_MAX_WHY])
{
	char text[STORE_MAX_WHY];
	int64_t application = 0, version = 0;

	if (ask(store, "PRAGMA application_id", &application, text) != SQLITE_OK ||
	    ask(store, "PRAGMA user_version", &version, text) != SQLITE_OK) {
		return store_fail_sqlite(store, STORE_E_DAMAGED, why, "is damaged");
	}
	if (application != SCHEMA_APPLICATION) {
		return store_fail(store, STORE_E_DAMAGED, why,
				  "is not a state file of rationd, but another program's database");
	}
	if (version > SCHEMA_VERSION) {
		return store_fail(
			store, STORE_E_NEWER, why,
			"is of version %lld, written by a newer rationd; this one knows version %d",
			(long long)version, SCHEMA_VERSION);
	}
	*ret_version = (int)version;
	return 0;
}

static int migrate(struct store *store, int version, char why[STORE_MAX_WHY])
{
	int r = store_begin_writing(store, why);
	int rc;

	if (r != 0) {
		return r;
	}
	rc = sqlite3_exec(store->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	if (rc == SQLITE_OK) {
		store->migrating = true;
		rc = schema_migrate(store->db, version, schema_steps, schema_n_steps);
	}
	if (rc == SQLITE_MISMATCH) {
		return store_fail(store, STORE_E_DAMAGED, why,
				  "is damaged: there never was a version %d", version);
	}
	return rc == SQLITE_OK ? 0
			       : store_fail_sqlite(store, STORE_E_IO, why,
						   "can't be brought to this version");
}

static int look(struct store *store, char why[STORE_MAX_WHY])
{
	int version = 0;
	int r = log_check(store->path, why);

	if (r == 0) {
		r = connect_to_look(store, why);
	}
	if (r == 0) {
		r = look_version(store, &version, why);
	}
	if (r == 0) {
		r = look_whole(store, why);
	}
	if (r == 0 && version < SCHEMA_VERSION) {
		r = migrate(store, version, why);
	}
	return r == 0 ? look_schema(store, why) : r;
}

/* ---- */

int store_open(const char *path, struct store **ret_store, char why[STORE_MAX_WHY])
{
	_cleanup_(store_closep) struct store *store = calloc(1, sizeof(*store));
	int r;

	if (store == NULL) {
		return -ENOMEM;
	}
	store->lock = -1;
	store->tidy_at = TIDY_PAGES;
	image_init(&store->image);
	store->path = strdup(path);
	if (store->path == NULL) {
		return -ENOMEM;
	}
	r = file_take(path, &store->lock, why);
	if (r == 0) {
		r = look(store, why);
	}
	if (r == 0) {
		*ret_store = store;
		store = NULL;
	}
	return r;
}

struct store *store_close(struct store *store)
{
	if (store == NULL) {
		return NULL;
	}
	if (store->db != NULL) {
		disconnect(store);
	}
	if (store->lock >= 0) {
		(void)close(store->lock);
	}
	for (unsigned t = 0; t < N_TABLES; t++) {
		rowset_deinit(&store->changes[t]);
	}
	rowset_deinit(&store->ended);
	rowset_deinit(&store->metrics);
	rowset_deinit(&store->rules);
	image_deinit(&store->image);
	free(store->path);
	free(store);
	return NULL;
}

bool store_is_untidy(const struct store *store)
{
	return store->log_pages >= store->tidy_at;
}

int store_tidy(struct store *store, char why[STORE_MAX_WHY])
{
	int rc;

	if (!store_is_untidy(store)) {
		return 0;
	}
	STORE_STEP();
	rc = sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	/* A reader may hold back a part of it: then it is tried again when there is as much more. */
	store->tidy_at = store->log_pages + TIDY_PAGES;
	STORE_STEP();
	return rc == SQLITE_OK || rc == SQLITE_BUSY
		       ? 0
		       : store_fail_sqlite(store, STORE_E_IO, why, "its log can't be tidied");
}

void store_stats(const struct store *store, struct store_stats *ret_stats)
{
	*ret_stats = store->stats;
	ret_stats->rows = store->tables.rows;
	ret_stats->bytes = store->tables.bytes;
	ret_stats->file_bytes = file_size(store->path, "");
	ret_stats->log_bytes = file_size(store->path, "-wal");
	ret_stats->counters = (uint64_t)store->tables.tallies[TABLE_COUNTER].rows;
}
