#include "daemon/store/state.h"
#include "lib/names/path.h"

#include <errno.h>
#include <string.h>

/* A load under way. Rows that have their sums are as they were written; what is looked at here is whether anybody should have written that. */
struct load {
	struct store *store;
	const struct store_sink *sink; /* NULL: only look */
	int result;		       /* the sink's own */
};

/* A sink's word: to go on, to go on without this row, or to end. */
static int answer(struct load *load, const struct row *row, int r)
{
	if (r == STORE_DROP) {
		r = rowset_add(&load->store->changes[row->table], row, /* gone= */ true);
	}
	load->result = r;
	return r == 0 ? SQLITE_OK : SQLITE_ABORT;
}

static bool in_range(int64_t number, int64_t min, int64_t max)
{
	return number >= min && number <= max;
}

static bool is_path(struct bytes_view text)
{
	return path_check((const char *)text.at, text.len, /* ret_offset= */ NULL) == PATH_OK;
}

/* ---- rows as the sink wants them; SQLITE_CORRUPT: no such thing can be ---- */

static int load_metric(void *ctx, const struct row *row)
{
	struct load *load = ctx;
	const struct cell *cells = row->cells;
	struct engine_metric metric = {
		.kind = (enum engine_kind)cells[1].number,
		.max_counters = (uint32_t)cells[2].number,
		.overflow = cells[3].number != 0,
		.expire_after_ns = cells[4].number,
	};
	int r;

	if (!is_path(cells[0].bytes) || !in_range(cells[1].number, ENGINE_COUNTER, ENGINE_GAUGE) ||
	    !in_range(cells[2].number, 0, UINT32_MAX) || !in_range(cells[3].number, 0, 1) ||
	    cells[4].number < 0) {
		return SQLITE_CORRUPT;
	}
	if (load->sink == NULL) {
		return SQLITE_OK;
	}
	r = rowset_add(&load->store->metrics, row, /* gone= */ false);
	if (r == 0) {
		r = load->sink->metric(load->sink->ctx, (const char *)cells[0].bytes.at,
				       cells[0].bytes.len, &metric);
	}
	return answer(load, row, r);
}

static bool read_window(const struct cell cells[3], struct window *ret_window)
{
	*ret_window = (struct window){ .kind = (enum window_kind)cells[0].number,
				       .unit = (enum window_unit)cells[1].number,
				       .duration_ns = cells[2].number };
	return in_range(cells[0].number, WINDOW_NONE, WINDOW_RATE) &&
	       in_range(cells[1].number, WINDOW_DAY, WINDOW_MONTH) && window_valid(ret_window);
}

static int load_rule(void *ctx, const struct row *row)
{
	struct load *load = ctx;
	const struct cell *cells = row->cells;
	struct engine_rule rule = {
		.pattern = (const char *)cells[0].bytes.at,
		.len = cells[0].bytes.len,
		.limits = { .max = cells[4].number,
			    .high = cells[5].number,
			    .low = cells[6].number,
			    .min = cells[7].number,
			    .shadow = cells[8].number != 0,
			    .rate = cells[9].number,
			    .per_ns = cells[10].number,
			    .burst = cells[11].number },
	};
	char text[QUOTA_LIMITS_TEXT];
	int r;

	if (!read_window(&cells[1], &rule.window) || !in_range(cells[8].number, 0, 1) ||
	    quota_limits_check(&rule.window, &rule.limits, text) != NULL) {
		return SQLITE_CORRUPT;
	}
	if (load->sink == NULL) {
		return SQLITE_OK;
	}
	r = rowset_add(&load->store->rules, row, /* gone= */ false);
	if (r == 0) {
		r = load->sink->rule(load->sink->ctx, &rule);
	}
	return answer(load, row, r);
}

static int load_block(struct load *load, const struct row *row, enum image_plane plane)
{
	const struct cell *cells = row->cells;

	if (!in_range(cells[0].number, 0, IMAGE_MAX_ROW / IMAGE_BLOCK) ||
	    cells[1].bytes.len != (size_t)IMAGE_BLOCK * 8) {
		return SQLITE_CORRUPT;
	}
	return image_set_block(&load->store->image, plane, (uint32_t)cells[0].number,
			       cells[1].bytes.at)
		       ? SQLITE_OK
		       : answer(load, row, -ENOMEM);
}

static int load_own(void *ctx, const struct row *row)
{
	return load_block(ctx, row, IMAGE_OWN);
}

static int load_ahead(void *ctx, const struct row *row)
{
	return load_block(ctx, row, IMAGE_AHEAD);
}

static int load_counter(void *ctx, const struct row *row)
{
	struct load *load = ctx;
	struct image *image = &load->store->image;
	const struct cell *cells = row->cells;
	uint32_t number, id = ENGINE_NO_ID;
	int r;

	if (!in_range(cells[0].number, IMAGE_NO_ROW + 1, IMAGE_MAX_ROW - 1) ||
	    !in_range(cells[1].number, 0, IMAGE_MAX_ROW - 1) || !is_path(cells[2].bytes)) {
		return SQLITE_CORRUPT;
	}
	if (load->sink == NULL) {
		return SQLITE_OK;
	}
	number = (uint32_t)cells[0].number;
	load->store->top = number; /* they come in order */
	r = load->sink->counter(load->sink->ctx, (const char *)cells[2].bytes.at,
				cells[2].bytes.len, image_number(image, IMAGE_OWN, number),
				image_number(image, IMAGE_AHEAD, number), cells[3].number, &id);
	if (r == 0 && (id >= IMAGE_MAX_ROW || image_row(image, id) != IMAGE_NO_ROW)) {
		return SQLITE_CORRUPT; /* a path that was there before */
	}
	if (r == 0) {
		r = image_take_row(image, id, number);
	}
	return answer(load, row, r);
}

static int load_usage(void *ctx, const struct row *row)
{
	struct load *load = ctx;
	const struct cell *cells = row->cells;
	struct engine_usage usage = { .path = (const char *)cells[0].bytes.at,
				      .len = cells[0].bytes.len,
				      .number = cells[4].number,
				      .count = cells[5].number };

	if (!is_path(cells[0].bytes) || !read_window(&cells[1], &usage.window) ||
	    usage.window.kind == WINDOW_NONE || usage.count < 0) {
		return SQLITE_CORRUPT;
	}
	if (load->sink == NULL) {
		return SQLITE_OK;
	}
	return answer(load, row, load->sink->usage(load->sink->ctx, &usage));
}

static int load_session(void *ctx, const struct row *row)
{
	struct load *load = ctx;
	const struct cell *cells = row->cells;
	struct store_session session = { .over = cells[1].number != 0,
					 .last_batch = (uint64_t)cells[2].number,
					 .last_operation = (uint64_t)cells[3].number,
					 .lifetime_ns = cells[4].number,
					 .agent = cells[5].bytes,
					 .answers = cells[6].bytes,
					 .leases = cells[7].bytes };

	if (cells[0].bytes.len != sizeof(session.id) || !in_range(cells[1].number, 0, 1) ||
	    cells[4].number < 0) {
		return SQLITE_CORRUPT;
	}
	if (load->sink == NULL) {
		return SQLITE_OK;
	}
	memcpy(session.id, cells[0].bytes.at, sizeof(session.id));
	return answer(load, row, load->sink->session(load->sink->ctx, &session));
}

static int load_held(void *ctx, const struct row *row)
{
	struct load *load = ctx;
	const struct cell *cells = row->cells;
	struct cut_held held = { .path = (const char *)cells[1].bytes.at,
				 .len = cells[1].bytes.len,
				 .amount = cells[2].number };

	if (cells[0].bytes.len != sizeof(held.session) || !is_path(cells[1].bytes) ||
	    held.amount == 0) {
		return SQLITE_CORRUPT;
	}
	memcpy(held.session, cells[0].bytes.at, sizeof(held.session));
	if (held.amount < 0 && !cut_held_is_detached(&held)) {
		return SQLITE_CORRUPT;
	}
	if (load->sink == NULL) {
		return SQLITE_OK;
	}
	return answer(load, row, load->sink->held(load->sink->ctx, &held));
}

/* ---- */

/* Numbers before the counters they belong to. */
static const struct {
	enum table table;
	tables_fn visit;
} order[] = {
	{ TABLE_METRIC, load_metric },	 { TABLE_RULE, load_rule },
	{ TABLE_OWN, load_own },	 { TABLE_AHEAD, load_ahead },
	{ TABLE_COUNTER, load_counter }, { TABLE_USAGE, load_usage },
	{ TABLE_SESSION, load_session }, { TABLE_HELD, load_held },
};

static int fail_table(struct load *load, enum table table, int rc, char why[STORE_MAX_WHY])
{
	struct store *store = load->store;
	const char *name = table_shapes[table].name;

	if (rc == SQLITE_ABORT && load->result != 0) {
		return load->result;
	}
	if (rc == SQLITE_NOMEM) {
		return -ENOMEM;
	}
	if (rc == SQLITE_CORRUPT && sqlite3_errcode(store->db) != SQLITE_CORRUPT) {
		return store_fail(store, STORE_E_DAMAGED, why,
				  "is damaged: a row of table %s is not as it was written", name);
	}
	return store_fail_sqlite(store,
				 (rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB
					 ? STORE_E_DAMAGED
					 : STORE_E_IO,
				 why, "can't be read");
}

static int load_tables(struct load *load, char why[STORE_MAX_WHY])
{
	struct store *store = load->store;
	int rc = meta_read(&store->tables, &store->meta);

	if (rc != SQLITE_OK) {
		return fail_table(load, TABLE_META, rc, why);
	}
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		enum table table = order[i].table;
		const struct tally *said = &store->meta.tallies[table];
		struct tally tally = { 0 };

		rc = tables_scan(&store->tables, table, order[i].visit, load, &tally);
		if (rc != SQLITE_OK) {
			return fail_table(load, table, rc, why);
		}
		if (tally.rows != said->rows || tally.sums != said->sums) {
			return store_fail(
				store, STORE_E_DAMAGED, why,
				"is damaged: table %s has %lld rows that are not the %lld it had",
				table_shapes[table].name, (long long)tally.rows,
				(long long)said->rows);
		}
		store->tables.tallies[table] = tally;
	}
	return 0;
}

static int end_migration(struct store *store, char why[STORE_MAX_WHY])
{
	if (store->migrating && sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
		return store_fail_sqlite(store, STORE_E_IO, why, "can't be written to");
	}
	store->migrating = false;
	return 0;
}

/* All was right: from here on it is written to. */
static int begin(struct store *store, char why[STORE_MAX_WHY])
{
	int r = end_migration(store, why);

	if (r == 0) {
		r = store_begin_writing(store, why);
	}
	if (r == 0) {
		(void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	}
	return r;
}

int store_load(struct store *store, const struct store_sink *sink, char why[STORE_MAX_WHY])
{
	struct load load = { .store = store, .sink = sink };
	int r = load_tables(&load, why);

	if (r == 0 && sink != NULL) {
		r = begin(store, why);
	}
	return r;
}
