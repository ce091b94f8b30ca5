/*
 * What becomes of a file over starts and ends: numbers of the engine that change, counters that come and go, who else has it, versions, moving it aside.
 */
#include "daemon/store/file.h"
#include "daemon/store/schema.h"
#include "daemon/store/state.h"

#include "tests/support/test.h"
#include "tests/unit/store/dump.h"
#include "tests/unit/store/file-bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- a model: counters by path, under numbers that change with each start ---- */

#define MAX_IDS 64u
#define SEATS 3u

struct model {
	struct store *store;
	struct test_random random;
	struct {
		char path[48];
		uint32_t parent;
		bool there;
		int64_t own, ahead;
		uint64_t added[SEATS], charged[SEATS],
			ahead_of[SEATS]; /* as the engine's slots: never back to 0 */
	} counters[MAX_IDS];
	uint32_t shuffle[MAX_IDS]; /* numbers to be given out at a start */
	uint32_t next;
	unsigned names; /* made so far */
};

static int skip_metric(void *ctx, const char *name, size_t len, const struct engine_metric *metric)
{
	(void)ctx, (void)name, (void)len, (void)metric;
	return 0;
}

static int skip_rule(void *ctx, const struct engine_rule *rule)
{
	(void)ctx, (void)rule;
	return 0;
}

static int skip_usage(void *ctx, const struct engine_usage *usage)
{
	(void)ctx, (void)usage;
	return 0;
}

static int skip_session(void *ctx, const struct store_session *session)
{
	(void)ctx, (void)session;
	return 0;
}

static int skip_held(void *ctx, const struct cut_held *held)
{
	(void)ctx, (void)held;
	return 0;
}

struct start {
	struct model *old, *new;
};

/* The counter must be one of the old ones, with its numbers; it gets another number. */
static int find_counter(void *ctx, const char *path, size_t len, int64_t own, int64_t ahead,
			int64_t born_ns, uint32_t *ret_id)
{
	struct start *start = ctx;

	for (uint32_t i = 0; i < MAX_IDS; i++) {
		if (start->old->counters[i].there && strlen(start->old->counters[i].path) == len &&
		    memcmp(start->old->counters[i].path, path, len) == 0) {
			uint32_t id = start->new->shuffle[start->new->next++];

			assert_int_equal(own, start->old->counters[i].own);
			assert_int_equal(ahead, start->old->counters[i].ahead);
			assert_int_equal(born_ns, 7);
			memcpy(start->new->counters[id].path, start->old->counters[i].path,
			       sizeof(start->new->counters[id].path));
			start->new->counters[id].there = true;
			start->new->counters[id].own = own;
			start->new->counters[id].ahead = ahead;
			start->old->counters[i].there = false;
			*ret_id = id;
			return 0;
		}
	}
	fail_msg("a counter that there is not: %.*s", (int)len, path);
	return -1;
}

static uint32_t by_path(const struct model *model, const char *path, size_t len)
{
	for (uint32_t i = 0; i < MAX_IDS; i++) {
		if (model->counters[i].there && strlen(model->counters[i].path) == len &&
		    memcmp(model->counters[i].path, path, len) == 0) {
			return i;
		}
	}
	return ENGINE_NO_ID;
}

static void restart(struct model *model, const char *path)
{
	struct model old = *model;
	struct start start = { .old = &old, .new = model };
	const struct store_sink sink = { .ctx = &start,
					 .metric = skip_metric,
					 .rule = skip_rule,
					 .counter = find_counter,
					 .usage = skip_usage,
					 .session = skip_session,
					 .held = skip_held };
	char why[STORE_MAX_WHY];

	(void)store_close(model->store);
	memset(model->counters, 0, sizeof(model->counters));
	model->next = 0;
	for (uint32_t i = 0; i < MAX_IDS; i++) {
		uint32_t j = (uint32_t)test_random_below(&model->random, i + 1);

		model->shuffle[i] = model->shuffle[j];
		model->shuffle[j] = i;
	}
	assert_int_equal(store_open(path, &model->store, why), 0);
	assert_int_equal(store_load(model->store, &sink, why), 0);
	for (uint32_t i = 0; i < MAX_IDS; i++) {
		const char *slash = strrchr(model->counters[i].path, '/');

		assert_false(old.counters[i].there);
		model->counters[i].parent =
			slash == NULL ? ENGINE_NO_ID
				      : by_path(model, model->counters[i].path,
						(size_t)(slash - model->counters[i].path));
	}
}

static uint32_t pick(struct model *model, bool there)
{
	uint32_t first = (uint32_t)test_random_below(&model->random, MAX_IDS);

	for (uint32_t i = 0; i < MAX_IDS; i++) {
		uint32_t id = (first + i) % MAX_IDS;

		if (model->counters[id].there == there) {
			return id;
		}
	}
	return ENGINE_NO_ID;
}

static void be_born(struct model *model)
{
	uint32_t id = pick(model, false);
	uint32_t parent = pick(model, true);
	struct engine_born born = { .id = id, .parent = ENGINE_NO_ID, .born_ns = 7 };
	char above[31] = "";

	if (id == ENGINE_NO_ID) {
		return;
	}
	if (parent != ENGINE_NO_ID && strlen(model->counters[parent].path) < 30 &&
	    test_random_below(&model->random, 4) != 0) {
		born.parent = parent;
		memcpy(above, model->counters[parent].path, strlen(model->counters[parent].path));
	}
	(void)snprintf(model->counters[id].path, sizeof(model->counters[id].path), "%s%sm%u", above,
		       above[0] != '\0' ? "/" : "", model->names++);
	born.path = model->counters[id].path;
	born.len = strlen(born.path);
	model->counters[id].there = true;
	model->counters[id].parent = born.parent;
	model->counters[id].own = 0;
	model->counters[id].ahead = 0;
	assert_int_equal(store_born(model->store, &born), 0);
}

static void be_gone(struct model *model)
{
	uint32_t id = pick(model, true);
	uint32_t parent;

	if (id == ENGINE_NO_ID) {
		return;
	}
	for (uint32_t i = 0; i < MAX_IDS; i++) {
		if (model->counters[i].there && model->counters[i].parent == id) {
			return; /* no leaf */
		}
	}
	parent = model->counters[id].parent;
	if (parent != ENGINE_NO_ID) {
		model->counters[parent].own += model->counters[id].own;
		model->counters[parent].ahead += model->counters[id].ahead;
	}
	model->counters[id].there = false;
	assert_int_equal(store_gone(model->store, id, parent), 0);
}

static void cut(struct model *model)
{
	struct engine_growth growth[MAX_IDS];
	struct cut cut = { .seat = (unsigned)test_random_below(&model->random, SEATS),
			   .growth = growth };

	for (uint32_t id = 0; id < MAX_IDS; id++) {
		int64_t added = (int64_t)test_random_below(&model->random, 2000) - 1000;
		int64_t charged = (int64_t)test_random_below(&model->random, 20) - 10;
		int64_t ahead = (int64_t)test_random_below(&model->random, 20) - 10;

		if (!model->counters[id].there || test_random_below(&model->random, 3) == 0) {
			continue;
		}
		if (test_random_below(&model->random, 3) != 0) {
			charged = 0;
			ahead = 0;
		}
		model->counters[id].own += added + charged;
		model->counters[id].ahead += ahead;
		growth[cut.n_growth++] = (struct engine_growth){
			.id = id,
			.added = model->counters[id].added[cut.seat] += (uint64_t)added,
			.charged = model->counters[id].charged[cut.seat] += (uint64_t)charged,
			.ahead = model->counters[id].ahead_of[cut.seat] += (uint64_t)ahead,
		};
	}
	assert_int_equal(store_merge(model->store, &cut, NULL, NULL), 0);
}

static void test_counters_over_restarts(void **state)
{
	char *path = test_dir_file(state, "state.db");
	char why[STORE_MAX_WHY];
	struct model model = { .next = 0 };

	test_random_init(&model.random, 3);
	restart(&model, path);
	for (unsigned round = 0; round < 3000; round++) {
		switch (test_random_below(&model.random, 8)) {
		case 0:
		case 1:
			be_born(&model);
			break;
		case 2:
			be_gone(&model);
			break;
		case 3:
			assert_int_equal(store_commit(model.store, why), 0);
			break;
		case 4:
			if (round % 10 == 0) {
				assert_int_equal(store_commit(model.store, why), 0);
				restart(&model, path);
			}
			break;
		default:
			cut(&model);
		}
	}
	assert_int_equal(store_commit(model.store, why), 0);
	restart(&model, path);
	(void)store_close(model.store);
	free(path);
}

/* ---- who has it ---- */

static void test_two_daemons(void **state)
{
	char *path = test_dir_file(state, "state.db");
	struct store *first = NULL, *second = NULL;
	char why[STORE_MAX_WHY], moved[STORE_MAX_WHY];

	assert_int_equal(store_open(path, &first, why), 0);
	assert_int_equal(store_open(path, &second, why), STORE_E_LOCKED);
	assert_non_null(strstr(why, "another rationd"));
	assert_int_equal(store_move_aside(path, 0, moved, why), STORE_E_LOCKED);
	assert_null(second);
	(void)store_close(first);
	assert_int_equal(store_open(path, &second, why), 0);
	(void)store_close(second);
	free(path);
}

static void test_paths(void **state)
{
	static const char *const names[] = { "with blank.db", "100%?mode=memory#x.db",
					     "\xc3\xa4.db", "'\"; --.db" };
	struct sample sample;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *path = test_dir_file(state, names[i]);
		char *text;

		sample_open(&sample, path);
		sample_step(&sample, 0);
		sample_commit(&sample);
		sample_close(&sample);
		assert_int_equal(access(path, R_OK), 0);
		text = dump_of(path);
		assert_true(strlen(text) > 100);
		free(text);
		free(path);
	}
}

static void test_no_such_directory(void **state)
{
	char *path = test_dir_file(state, "none/state.db");
	struct store *store = NULL;
	char why[STORE_MAX_WHY];

	assert_int_equal(store_open(path, &store, why), STORE_E_IO);
	assert_non_null(strstr(why, "No such file or directory"));
	free(path);
}

/* ---- versions ---- */

static void exec(const char *path, const char *sql)
{
	sqlite3 *db;
	char *error = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) {
		fail_msg("%s", error);
	}
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void assert_untouched(const char *path, int expected, const char *word)
{
	struct file_bytes before = file_bytes_read(path, ""), after;
	struct store *store = NULL;
	char why[STORE_MAX_WHY];

	assert_int_equal(store_open(path, &store, why), expected);
	if (strstr(why, word) == NULL) {
		fail_msg("no \"%s\" in: %s", word, why);
	}
	after = file_bytes_read(path, "");
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.at, after.at, after.len);
	free(before.at);
	free(after.at);
	after = file_bytes_read(path, "-wal");
	assert_null(after.at);
	after = file_bytes_read(path, "-shm");
	assert_null(after.at);
}

static void test_newer_version(void **state)
{
	char *path = test_dir_file(state, "state.db");
	struct sample sample;

	sample_open(&sample, path);
	sample_close(&sample);
	exec(path, "PRAGMA user_version = 2");
	assert_untouched(path, STORE_E_NEWER, "version 2");
	free(path);
}

static void test_another_programs_database(void **state)
{
	char *path = test_dir_file(state, "other.db");

	exec(path, "CREATE TABLE t (a)");
	assert_untouched(path, STORE_E_DAMAGED, "another program");
	free(path);
}

static void test_version_that_never_was(void **state)
{
	char *path = test_dir_file(state, "state.db");
	struct sample sample;

	sample_open(&sample, path);
	sample_close(&sample);
	exec(path, "PRAGMA user_version = 0");
	assert_untouched(path, STORE_E_DAMAGED, "version 0");
	free(path);
}

/* As if a version 0 had had no table of usage, and other sums of metrics. */
static void test_steps_from_older_versions(void **state)
{
	static const struct schema_step steps[] = {
		{ .from = -1, .sql = "CREATE TABLE usage (path TEXT)" },
		{ .from = 0,
		  .sql = "DROP TABLE usage; CREATE TABLE usage (path TEXT NOT NULL, kind INTEGER NOT NULL, unit INTEGER NOT NULL,"
			 " duration INTEGER NOT NULL, number INTEGER NOT NULL, count INTEGER NOT NULL, sum INTEGER NOT NULL,"
			 " PRIMARY KEY (path, kind, unit, duration)) STRICT, WITHOUT ROWID;"
			 "UPDATE metric SET sum = row_sum(4, name, kind, max_counters, overflow, expire_after)" },
	};
	char *path = test_dir_file(state, "state.db");
	struct sample sample;
	sqlite3 *db;
	char *before, *after;

	sample_open(&sample, path);
	sample_step(&sample, 1);
	sample_commit(&sample);
	sample_close(&sample);
	before = dump_of(path);
	exec(path, "DELETE FROM usage; UPDATE meta SET value = 0, sum = 0 WHERE key LIKE 'usage.%';"
		   "DROP TABLE usage; UPDATE metric SET sum = 0; PRAGMA user_version = -1");

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(schema_migrate(db, -1, steps, 1), SQLITE_MISMATCH);
	assert_int_equal(sqlite3_exec(db, "ROLLBACK; BEGIN", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(schema_migrate(db, -1, steps, 2), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db,
			     "UPDATE meta SET sum = row_sum(0, key, value) WHERE key LIKE 'usage.%';"
			     "COMMIT",
			     NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(schema_check(db), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	after = dump_of(path);
	/* But for usage, which comes last. */
	assert_non_null(strstr(before, "usage"));
	*strstr(before, "usage") = '\0';
	assert_string_equal(after, before);
	free(before);
	free(after);
	free(path);
}

/* ---- aside ---- */

static void test_moved_aside(void **state)
{
	char *path = test_dir_file(state, "state.db");
	char moved[STORE_MAX_WHY] = "", lost[STORE_MAX_WHY] = "";
	struct sample sample;
	char *before, *after;

	sample_open(&sample, path);
	sample_step(&sample, 0);
	sample_commit(&sample);
	sample_close(&sample);
	before = dump_of(path);
	exec(path, "PRAGMA user_version = 99");
	assert_int_equal(store_move_aside(path, 1700000000000000000, moved, lost), 0);
	assert_non_null(strstr(moved, "state.db.aside-20231114T221320Z"));
	assert_non_null(strstr(
		lost,
		"161 counters, 1 limits set at run time and 2 sessions, as of 2023-11-14T22:13:20Z"));
	after = dump_of(path);
	assert_string_equal(after, "");
	free(after);
	exec(moved, "PRAGMA user_version = 1");
	after = dump_of(moved);
	assert_string_equal(after, before);
	free(after);
	free(before);
	free(path);
}

static void test_garbage_moved_aside(void **state)
{
	static uint8_t garbage[] = "SQLite format 3\0 but not really";
	const struct file_bytes bytes = { .at = garbage, .len = sizeof(garbage) };
	char *path = test_dir_file(state, "state.db");
	char moved[STORE_MAX_WHY] = "", lost[STORE_MAX_WHY] = "";
	struct file_bytes after;

	file_bytes_write(path, "", bytes);
	/* A log of who knows what. */
	file_bytes_write(path, "-wal", bytes);
	assert_int_equal(store_move_aside(path, 0, moved, lost), 0);
	assert_string_equal(lost, "nothing of it can be read");
	after = file_bytes_read(moved, "");
	assert_int_equal(after.len, bytes.len);
	free(after.at);
	after = file_bytes_read(moved, "-wal");
	assert_int_equal(after.len, bytes.len);
	free(after.at);
	free(dump_of(path));
	free(path);
}

/* ---- moved while in use ---- */

static void test_moved_while_in_use(void **state)
{
	static const char *const suffixes[] = { "", "-wal" };
	char *path = test_dir_file(state, "state.db");
	char why[STORE_MAX_WHY];
	struct sample sample;
	unsigned step = 0;

	sample_open(&sample, path);
	sample_step(&sample, step++);
	sample_commit(&sample);
	for (size_t i = 0; i < 2; i++) {
		char name[600], away[600];

		(void)snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		(void)snprintf(away, sizeof(away), "%s%s-away", path, suffixes[i]);
		assert_int_equal(rename(name, away), 0);
		sample_step(&sample, step++);
		assert_int_equal(store_commit(sample.store, why), STORE_E_IO);
		assert_non_null(strstr(why, "moved or removed"));
		assert_int_equal(rename(away, name), 0);
		sample_commit(&sample);
	}
	sample_close(&sample);
	free(dump_of(path));
	free(path);
}

/* ---- rows that are of no use any more ---- */

static int drop_usage(void *ctx, const struct engine_usage *usage)
{
	(void)ctx, (void)usage;
	return STORE_DROP;
}

static int any_counter(void *ctx, const char *path, size_t len, int64_t own, int64_t ahead,
		       int64_t born_ns, uint32_t *ret_id)
{
	uint32_t *next = ctx;

	(void)path, (void)len, (void)own, (void)ahead, (void)born_ns;
	*ret_id = (*next)++;
	return 0;
}

static void test_dropped_at_load(void **state)
{
	char *path = test_dir_file(state, "state.db");
	uint32_t next = 0;
	const struct store_sink sink = { .ctx = &next,
					 .metric = skip_metric,
					 .rule = skip_rule,
					 .counter = any_counter,
					 .usage = drop_usage,
					 .session = skip_session,
					 .held = skip_held };
	struct store *store = NULL;
	struct sample sample;
	char why[STORE_MAX_WHY];
	char *text;

	sample_open(&sample, path);
	sample_step(&sample, 1);
	sample_commit(&sample);
	sample_close(&sample);
	text = dump_of(path);
	assert_non_null(strstr(text, "usage "));
	free(text);
	assert_int_equal(store_open(path, &store, why), 0);
	assert_int_equal(store_load(store, &sink, why), 0);
	assert_true(store_is_dirty(store));
	assert_int_equal(store_commit(store, why), 0);
	(void)store_close(store);
	text = dump_of(path);
	assert_null(strstr(text, "usage "));
	free(text);
	free(path);
}

/* A counter that goes takes the usage of its windows along, of which it is told no more. */
static void test_usage_goes_with_its_counter(void **state)
{
	const struct engine_usage usage = { .path = "requests/team-4",
					    .len = 15,
					    .window = { .kind = WINDOW_PER,
							.duration_ns = 1000000000 },
					    .count = 5 };
	char *path = test_dir_file(state, "state.db");
	struct sample sample;
	char *text;

	sample_open(&sample, path);
	assert_int_equal(store_usage(sample.store, &usage), 0);
	sample_commit(&sample);
	assert_int_equal(store_gone(sample.store, 4, 0), 0);
	sample_commit(&sample);
	sample_close(&sample);
	text = dump_of(path);
	assert_null(strstr(text, "usage "));
	assert_null(strstr(text, "team-4"));
	free(text);
	free(path);
}

static void test_growth_of_a_stranger(void **state)
{
	struct engine_growth growth = { .id = 500, .added = 1 };
	const struct cut cut = { .growth = &growth, .n_growth = 1 };
	char *path = test_dir_file(state, "state.db");
	struct sample sample;

	sample_open(&sample, path);
	assert_int_equal(store_merge(sample.store, &cut, NULL, NULL), -ENOENT);
	/* It has not grown at all: nothing to say. */
	growth.added = 0;
	assert_int_equal(store_merge(sample.store, &cut, NULL, NULL), 0);
	sample_close(&sample);
	free(path);
}

static void note_used(void *ctx, uint32_t id, int64_t n)
{
	int64_t *used = ctx;

	used[id] += n;
}

/* Adds that take away use nothing; charges use what they take, whatever comes back. */
static void test_used(void **state)
{
	struct engine_growth growth[] = {
		{ .id = 2, .added = 10 },
		{ .id = 3, .added = (uint64_t)-4 },
		{ .id = 5, .charged = 3, .taken = 8 },
	};
	const struct cut cut = { .growth = growth, .n_growth = 3 };
	char *path = test_dir_file(state, "state.db");
	int64_t used[8] = { 0 };
	struct sample sample;

	sample_open(&sample, path);
	assert_int_equal(store_merge(sample.store, &cut, note_used, used), 0);
	assert_int_equal(store_merge(sample.store, &cut, note_used, used), 0);
	growth[0].added = 15;
	growth[1].added = 0;
	assert_int_equal(store_merge(sample.store, &cut, note_used, used), 0);
	assert_int_equal(used[2], 15);
	assert_int_equal(used[3], 4);
	assert_int_equal(used[5], 8);
	sample_close(&sample);
	free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, test_dir_setup, test_dir_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_counters_over_restarts),
		TEST(test_two_daemons),
		TEST(test_paths),
		TEST(test_no_such_directory),
		TEST(test_newer_version),
		TEST(test_another_programs_database),
		TEST(test_version_that_never_was),
		TEST(test_steps_from_older_versions),
		TEST(test_moved_aside),
		TEST(test_garbage_moved_aside),
		TEST(test_moved_while_in_use),
		TEST(test_dropped_at_load),
		TEST(test_usage_goes_with_its_counter),
		TEST(test_growth_of_a_stranger),
		TEST(test_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
