/* walk: pages, cursors, and what may change meanwhile. */
#include "lib/names/path.h"
#include "tests/unit/engine/support.h"

#define MAX_SEEN 20000

struct seen {
	size_t n;
	char paths[MAX_SEEN][24];
	int64_t totals[MAX_SEEN];
	uint32_t depths[MAX_SEEN];
};

static void see(void *ctx, const struct engine_entry *entry)
{
	struct seen *seen = ctx;

	assert_true(seen->n < MAX_SEEN && entry->len < sizeof(seen->paths[0]));
	memcpy(seen->paths[seen->n], entry->path, entry->len);
	seen->paths[seen->n][entry->len] = '\0';
	seen->totals[seen->n] = entry->reading.total;
	seen->depths[seen->n++] = entry->depth;
}

static size_t count(const struct seen *seen, const char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < seen->n; i++) {
		n += strcmp(seen->paths[i], path) == 0;
	}
	return n;
}

/* In pages of `page`, from the start to the end. */
static void walk_pages(struct engine *engine, const char *root, uint32_t depth, size_t page,
		       struct seen *seen)
{
	struct engine_cursor cursor = { 0 };
	bool done = false;

	seen->n = 0;
	while (!done) {
		size_t before = seen->n;

		assert_int_equal(engine_walk(engine, root, strlen(root), depth, page, &cursor, see,
					     seen, &done),
				 0);
		assert_true(seen->n - before <= page);
		assert_true(done || seen->n > before);
	}
}

static void test_subtrees_and_depths(void **state)
{
	static struct seen seen;
	struct bench bench = bench_new(100, 1, 1);

	(void)state;
	add(bench.workers[0], intern(bench.engine, "m/a/x"), 1);
	add(bench.workers[0], intern(bench.engine, "m/a/y"), 2);
	add(bench.workers[0], intern(bench.engine, "m/b"), 4);
	add(bench.workers[0], intern(bench.engine, "m/ab"), 8);
	add(bench.workers[0], intern(bench.engine, "n/c"), 16);

	walk_pages(bench.engine, "", UINT32_MAX, 100, &seen);
	assert_int_equal(seen.n, 8);
	walk_pages(bench.engine, "", 1, 100, &seen);
	assert_int_equal(seen.n, 2);
	walk_pages(bench.engine, "", 0, 100, &seen);
	assert_int_equal(seen.n, 0);
	walk_pages(bench.engine, "m", UINT32_MAX, 100, &seen);
	assert_int_equal(seen.n, 6);
	assert_string_equal(seen.paths[0], "m");
	assert_int_equal(seen.totals[0], 15);
	assert_int_equal(seen.depths[0], 1);
	walk_pages(bench.engine, "m", 1, 100, &seen);
	assert_int_equal(seen.n, 4);
	walk_pages(bench.engine, "m/a", 0, 100, &seen);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.totals[0], 3);
	for (size_t page = 1; page < 8; page++) {
		walk_pages(bench.engine, "m/a", UINT32_MAX, page, &seen);
		assert_int_equal(seen.n, 3);
		assert_int_equal(count(&seen, "m/ab"), 0);
	}
	bench_free(&bench);
}

static void see_own(void *ctx, const struct engine_entry *entry)
{
	int64_t *owns = ctx;

	owns[entry->depth] = entry->reading.own;
}

/* What is not folded is in no own value, of leaves and of inner counters. */
static void test_folded(void **state)
{
	struct bench bench = bench_new(100, 1, 100);
	int64_t owns[4] = { 0 };

	(void)state;
	add(bench.workers[0], intern(bench.engine, "m/a/x"), 1);
	add(bench.workers[0], intern(bench.engine, "m/a"), 2);
	for (int flushed = 0; flushed < 2; flushed++) {
		struct engine_cursor cursor = { 0 };
		bool done = false;

		assert_int_equal(engine_walk(bench.engine, "m", 1, UINT32_MAX, 100, &cursor,
					     see_own, owns, &done),
				 0);
		assert_true(done);
		assert_int_equal(owns[1], 0);
		assert_int_equal(owns[2], 2 * flushed);
		assert_int_equal(owns[3], flushed);
		engine_flush(bench.engine, 0);
	}
	bench_free(&bench);
}

/* Parents before children, whatever the page size; longer than a stretch between read sections. */
static void test_pages(void **state)
{
	static struct seen seen;
	struct engine *engine = make_engine(20000, 1, 0);
	char path[24];

	(void)state;
	for (int i = 0; i < 10000; i++) {
		(void)snprintf(path, sizeof(path), "m/%d/%d", i % 97, i);
		(void)intern(engine, path);
	}
	for (size_t page = 1; page < 30000; page = page * 7 + 1) {
		walk_pages(engine, "", UINT32_MAX, page, &seen);
		assert_int_equal(seen.n, 10000 + 97 + 1);
		assert_string_equal(seen.paths[0], "m");
		for (size_t i = 1; i < seen.n; i++) {
			assert_true(seen.depths[i] <= seen.depths[i - 1] + 1);
		}
	}
	engine_free(engine);
}

/* Removing what the cursor stands on, and its whole branch; creating in front of it. */
static void test_changes_meanwhile(void **state)
{
	static struct seen seen;
	struct engine *engine = make_engine(1000, 1, 0);
	struct engine_cursor cursor = { 0 };
	bool done;
	char path[24];

	(void)state;
	for (int i = 0; i < 30; i++) {
		(void)snprintf(path, sizeof(path), "m/%d/x", i);
		(void)intern(engine, path);
	}
	seen.n = 0;
	for (int page = 0; page < 1000; page++) {
		assert_int_equal(
			engine_walk(engine, "", 0, UINT32_MAX, 1, &cursor, see, &seen, &done), 0);
		if (done) {
			break;
		}
		(void)snprintf(path, sizeof(path), "%s", seen.paths[seen.n - 1]);
		if (seen.depths[seen.n - 1] == 3) {
			assert_int_equal(drop(engine, path), 0);
			if (page % 4 == 0) {
				path[strlen(path) - 2] = '\0';
				assert_int_equal(drop(engine, path), 0);
			}
			/* Anew: another counter, behind the walk. */
			(void)intern(engine, path);
		}
		(void)snprintf(path, sizeof(path), "n/%d", page);
		(void)intern(engine, path);
	}
	assert_true(done);
	for (int i = 0; i < 30; i++) {
		(void)snprintf(path, sizeof(path), "m/%d/x", i);
		assert_int_equal(count(&seen, path), 1);
	}
	for (size_t i = 0; i < seen.n; i++) {
		assert_int_equal(count(&seen, seen.paths[i]), 1);
	}
	engine_free(engine);
}

static void test_errors(void **state)
{
	static struct seen seen;
	struct engine *engine = make_engine(100, 1, 0);
	struct engine_cursor cursor = { 0 }, wrong;
	bool done = true;

	(void)state;
	(void)intern(engine, "m/a");
	(void)intern(engine, "m/b");
	(void)intern(engine, "n/a");
	assert_int_equal(engine_walk(engine, "x", 1, 1, 10, &cursor, see, &seen, &done),
			 ENGINE_E_NOT_FOUND);
	assert_int_equal(engine_walk(engine, "x/", 2, 1, 10, &cursor, see, &seen, &done),
			 ENGINE_E_PATH);
	assert_int_equal(engine_walk(engine, "m", 1, 1, 2, &cursor, see, &seen, &done), 0);
	assert_false(done);
	assert_int_equal(engine_walk(engine, "n", 1, 1, 2, &cursor, see, &seen, &done),
			 ENGINE_E_CURSOR);
	assert_int_equal(engine_walk(engine, "m", 1, 1, 0, &cursor, see, &seen, &done), 0);
	assert_false(done);

	for (uint16_t len = 1; len < cursor.len; len++) {
		wrong = cursor;
		wrong.len = len;
		assert_int_equal(engine_walk(engine, "m", 1, 1, 9, &wrong, see, &seen, &done),
				 ENGINE_E_CURSOR);
	}
	wrong = cursor;
	wrong.len = ENGINE_CURSOR_MAX + 1;
	assert_int_equal(engine_walk(engine, "m", 1, 1, 9, &wrong, see, &seen, &done),
			 ENGINE_E_CURSOR);
	engine_free(engine);
}

/* Cursors that somebody made up: an error or some answer, never harm. */
static void test_forged_cursors(void **state)
{
	static struct seen seen;
	struct engine *engine = make_engine(1000, 1, 0);
	struct test_random random;
	struct engine_cursor cursor = { 0 }, forged;
	bool done;

	(void)state;
	test_random_init(&random, 1);
	for (int i = 0; i < 50; i++) {
		char path[24];

		(void)snprintf(path, sizeof(path), "m/%d/%d", i % 5, i);
		(void)intern(engine, path);
	}
	assert_int_equal(engine_walk(engine, "", 0, UINT32_MAX, 7, &cursor, see, &seen, &done), 0);
	for (int i = 0; i < 20000; i++) {
		int r;

		forged = cursor;
		for (uint64_t n = test_random_below(&random, 6) + 1; n > 0; n--) {
			forged.bytes[test_random_below(&random, cursor.len)] =
				(uint8_t)test_random_next(&random);
		}
		if (i % 3 == 0) {
			forged.len = (uint16_t)test_random_next(&random);
		}
		seen.n = 0;
		r = engine_walk(engine, "", 0, UINT32_MAX, 3, &forged, see, &seen, &done);
		assert_true(r == 0 || r == ENGINE_E_CURSOR);
		assert_true(seen.n <= 3);
	}
	engine_free(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_subtrees_and_depths),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_changes_meanwhile),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_forged_cursors),
	};

	return RUN(tests);
}
