#include "daemon/store/file.h"
#include "daemon/store/log.h"
#include "daemon/store/state.h"
#include "daemon/store/step.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* A session's row of which not all was told. */
struct filling {
	struct store *store;
	struct row *row;
};

static int run(struct store *store, const char *sql)
{
	return sqlite3_exec(store->db, sql, NULL, NULL, NULL);
}

/* ---- what goes along with what is gone ---- */

static int delete_row(void *ctx, const struct row *row)
{
	struct store *store = ctx;

	return tables_delete(&store->tables, row);
}

/* All rows with the first key in `key`. */
static int delete_all(struct store *store, const struct row *key)
{
	int rc;

	do {
		rc = tables_find(&store->tables, key, 1, delete_row, store);
	} while (rc == SQLITE_OK);
	return rc == SQLITE_NOTFOUND ? SQLITE_OK : rc;
}

/* Visits the counter's row as it stands in the file: its usage goes with it. */
static int drop_usage(void *ctx, const struct row *counter)
{
	struct store *store = ctx;
	struct row key = { .table = TABLE_USAGE };

	key.cells[0] = counter->cells[2];
	return delete_all(store, &key);
}

/* Sessions that ended, and what they held. */
static int write_ends(struct store *store)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < store->ended.n; i++) {
		struct row row;

		rowset_entry_row(store->ended.entries[i], &row);
		rc = tables_delete(&store->tables, &row);
		if (rc == SQLITE_OK) {
			row.table = TABLE_HELD; /* whose first key is the session too */
			rc = delete_all(store, &row);
		}
	}
	return rc;
}

/* ---- what differs, table by table ---- */

static int note_amount(void *ctx, const struct row *row)
{
	*(int64_t *)ctx = row->cells[2].number;
	return SQLITE_OK;
}

/* What detached charges hold changed by so much. */
static int add_detached(struct store *store, struct row *row)
{
	int64_t amount = 0;
	int rc = tables_find(&store->tables, row, 2, note_amount, &amount);

	if (rc != SQLITE_OK && rc != SQLITE_NOTFOUND) {
		return rc;
	}
	row->cells[2].number = (int64_t)((uint64_t)amount + (uint64_t)row->cells[2].number);
	return row->cells[2].number != 0 ? tables_put(&store->tables, row)
					 : tables_delete(&store->tables, row);
}

static int write_held(struct store *store, const struct rowset_entry *entry, struct row *row)
{
	struct row session = { .table = TABLE_SESSION };
	const struct rowset_entry *end;

	session.cells[0] = row->cells[0];
	end = rowset_find(&store->ended, &session);
	if (end != NULL && rowset_entry_stamped(end) > rowset_entry_stamped(entry)) {
		return SQLITE_OK; /* went with the session */
	}
	if (rowset_entry_gone(entry)) {
		return tables_delete(&store->tables, row);
	}
	return cut_is_nobody(row->cells[0].bytes.at) ? add_detached(store, row)
						     : tables_put(&store->tables, row);
}

/* What was not told again: what the file says. */
static int put_filled_in(void *ctx, const struct row *old)
{
	struct filling *filling = ctx;

	for (unsigned i = 6; i < 8; i++) {
		if (filling->row->cells[i].bytes.at == NULL) {
			filling->row->cells[i] = old->cells[i];
		}
	}
	return tables_put(&filling->store->tables, filling->row);
}

static int write_session(struct store *store, struct row *row)
{
	struct filling filling = { .store = store, .row = row };
	int rc = SQLITE_NOTFOUND;

	if (row->cells[6].bytes.at == NULL || row->cells[7].bytes.at == NULL) {
		rc = tables_find(&store->tables, row, 1, put_filled_in, &filling);
	}
	return rc == SQLITE_NOTFOUND ? tables_put(&store->tables, row) : rc;
}

static int write_counter(struct store *store, const struct rowset_entry *entry,
			 const struct row *row)
{
	int rc;

	if (row->cells[0].number > store->top && !rowset_entry_gone(entry)) {
		store->top = row->cells[0].number;
		return tables_add(&store->tables, row);
	}
	/* Whether it is gone, or another counter has its row now. */
	rc = tables_find(&store->tables, row, 1, drop_usage, store);

	if (rc != SQLITE_OK && rc != SQLITE_NOTFOUND) {
		return rc;
	}
	return rowset_entry_gone(entry) ? tables_delete(&store->tables, row)
					: tables_put(&store->tables, row);
}

static int write_entry(struct store *store, const struct rowset_entry *entry)
{
	struct row row;

	rowset_entry_row(entry, &row);
	if (row.table == TABLE_COUNTER) {
		return write_counter(store, entry, &row);
	}
	if (row.table == TABLE_HELD) {
		return write_held(store, entry, &row);
	}
	if (rowset_entry_gone(entry)) {
		return tables_delete(&store->tables, &row);
	}
	return row.table == TABLE_SESSION ? write_session(store, &row)
					  : tables_put(&store->tables, &row);
}

static int write_changes(struct store *store, enum table table)
{
	const struct rowset *changes = &store->changes[table];
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < changes->n; i++) {
		rc = write_entry(store, changes->entries[i]);
	}
	return rc;
}

static int write_blocks(struct store *store, enum table table, enum image_plane plane)
{
	const struct image_blocks *blocks = &store->image.planes[plane];
	uint8_t bytes[IMAGE_BLOCK * 8];
	struct row row = { .table = table };
	int rc = SQLITE_OK;

	row.cells[1].bytes = (struct bytes_view){ .at = bytes, .len = sizeof(bytes) };
	for (size_t i = 0; rc == SQLITE_OK && i < blocks->n; i++) {
		if (blocks->at[i] != NULL && blocks->at[i]->changed) {
			row.cells[0].number = (int64_t)i;
			rc = image_get_block(blocks->at[i], bytes)
				     ? tables_put(&store->tables, &row)
				     : tables_delete(&store->tables, &row);
		}
	}
	return rc;
}

static int write_meta(struct store *store)
{
	store->meta.commits++;
	if (store->wall_ns > store->meta.saved_ns) {
		store->meta.saved_ns = store->wall_ns;
	}
	memcpy(store->meta.tallies, store->tables.tallies, sizeof(store->meta.tallies));
	return meta_write(&store->tables, &store->meta);
}

static int write_all(struct store *store)
{
	int rc = write_ends(store);

	STORE_STEP();
	/* Counters that go take their usage along, before what is said of it last is put in. */
	for (enum table table = TABLE_COUNTER; rc == SQLITE_OK && table < N_TABLES; table++) {
		if (table == TABLE_OWN) {
			rc = write_blocks(store, table, IMAGE_OWN);
		} else if (table == TABLE_AHEAD) {
			rc = write_blocks(store, table, IMAGE_AHEAD);
		} else {
			rc = write_changes(store, table);
		}
		STORE_STEP();
	}
	return rc == SQLITE_OK ? write_meta(store) : rc;
}

/* ---- */

bool store_is_dirty(const struct store *store)
{
	bool dirty = store->image.changed;

	for (unsigned t = 0; t < N_TABLES; t++) {
		dirty = dirty || store->changes[t].n > 0;
	}
	return dirty;
}

static void all_is_written(struct store *store)
{
	image_saved(&store->image);
	rowset_clear(&store->ended);
	for (unsigned t = 0; t < N_TABLES; t++) {
		rowset_clear(&store->changes[t]);
	}
}

/* Writes to a file whose name is gone would be of no use to anybody. */
static bool is_in_place(struct store *store)
{
	uint64_t file_id = file_identity(store->path, "");
	uint64_t log_id = file_identity(store->path, "-wal");

	if (store->file_id == 0) {
		store->file_id = file_id;
	}
	if (store->log_id == 0) {
		store->log_id = log_id;
	}
	return file_id == store->file_id && log_id == store->log_id;
}

/* In the transaction, before it writes. */
static int cut_log(struct store *store, char why[STORE_MAX_WHY])
{
	int rc = store->ragged ? log_cut(store->db) : SQLITE_OK;

	if (rc != SQLITE_OK) {
		return store_fail(store, STORE_E_IO, why,
				  "what an attempt left in its log can't be cut off: %s",
				  sqlite3_errstr(rc));
	}
	store->ragged = false;
	return 0;
}

static int transact(struct store *store, char why[STORE_MAX_WHY])
{
	int rc = run(store, "BEGIN IMMEDIATE");

	STORE_STEP();
	if (rc == SQLITE_OK) {
		int r = cut_log(store, why);

		if (r != 0) {
			return r;
		}
		STORE_STEP();
		rc = write_all(store);
	}
	STORE_STEP();
	if (rc == SQLITE_OK) {
		rc = run(store, "COMMIT");
	}
	STORE_STEP();
	return rc == SQLITE_OK ? 0
			       : store_fail_sqlite(store, STORE_E_IO, why, "can't be written to");
}

int store_commit(struct store *store, char why[STORE_MAX_WHY])
{
	struct tables *tables = &store->tables;
	const struct meta meta = store->meta;
	const uint64_t rows = tables->rows, bytes = tables->bytes;
	int64_t start_ns = now_ns();
	int r;

	if (!store_is_dirty(store)) {
		return 0;
	}
	if (!is_in_place(store)) {
		store->stats.failures++;
		return store_fail(
			store, STORE_E_IO, why,
			"it or its log was moved or removed while in use; put it back, or start again");
	}
	r = transact(store, why);
	if (r == 0) {
		all_is_written(store);
		store->stats.commits++;
		store->stats.last_commit_ns = now_ns() - start_ns;
		return 0;
	}
	store->ragged = true;
	if (sqlite3_get_autocommit(store->db) == 0) {
		(void)run(store, "ROLLBACK");
	}
	store->meta = meta;
	memcpy(tables->tallies, meta.tallies, sizeof(meta.tallies));
	tables->rows = rows;
	tables->bytes = bytes;
	store->stats.failures++;
	return r;
}
