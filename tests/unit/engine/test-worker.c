/* worker: seats, and what an add does to own, totals and errors. */
#include "lib/engine/worker.h"
#include "tests/unit/engine/support.h"

#define BATCH 32

/* A fold does happen, at exactly the batch, with either sign, at every level; a cached read sees it. */
static void test_fold_at_batch(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_ref up, down;

	(void)state;
	declare(bench.engine, "g", (struct engine_metric){ .kind = ENGINE_GAUGE });
	up = intern(bench.engine, "g/a/up");
	down = intern(bench.engine, "g/a/down");
	for (int i = 0; i < BATCH - 1; i++) {
		add(bench.workers[0], up, 1);
		add(bench.workers[0], down, -1);
	}
	assert_int_equal(worker_own(bench.engine, up.id), BATCH - 1);
	assert_int_equal(worker_own(bench.engine, down.id), -(BATCH - 1));
	assert_int_equal(own(bench.engine, "g/a/up"), 0);
	assert_int_equal(own(bench.engine, "g/a/down"), 0);
	assert_int_equal(total(bench.engine, "g/a/up"), 0);
	assert_int_equal(total(bench.engine, "g/a/down"), 0);
	add(bench.workers[0], up, 1);
	assert_int_equal(own(bench.engine, "g/a/up"), BATCH);
	assert_int_equal(total(bench.engine, "g/a/up"), BATCH);
	assert_int_equal(own(bench.engine, "g/a"), 0);
	assert_int_equal(total(bench.engine, "g/a"), BATCH);
	assert_int_equal(total(bench.engine, "g"), BATCH);
	add(bench.workers[0], down, -1);
	assert_int_equal(total(bench.engine, "g/a/down"), -BATCH);
	assert_int_equal(total(bench.engine, "g"), 0);
	assert_int_equal(stats(bench.engine).folds, 2);
	bench_free(&bench);
}

static void test_large_add_is_folded(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_ref ref = intern(bench.engine, "m");

	(void)state;
	add(bench.workers[0], ref, 1000000);
	assert_int_equal(total(bench.engine, "m"), 1000000);
	add(bench.workers[0], ref, BATCH - 1);
	assert_int_equal(total(bench.engine, "m"), 1000000);
	add(bench.workers[0], ref, 1000000);
	assert_int_equal(total(bench.engine, "m"), 2000000 + BATCH - 1);
	bench_free(&bench);
}

static void test_batch_of_one_holds_nothing(void **state)
{
	struct bench bench = bench_new(100, 1, 1);
	struct engine_ref ref = intern(bench.engine, "m");

	(void)state;
	for (int i = 1; i <= 100; i++) {
		add(bench.workers[0], ref, 1);
		assert_int_equal(total(bench.engine, "m"), i);
	}
	assert_int_equal(refresh(bench.engine, ENGINE_CACHED, 0).error_bound, 0);
	bench_free(&bench);
}

static void test_default_batch(void **state)
{
	static const struct {
		uint32_t cpus, batch;
	} cases[] = { { 0, 32 },  { 1, 32 },   { 16, 32 },
		      { 17, 34 }, { 64, 128 }, { UINT32_MAX, 1u << 20 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct engine_options options = { .max_counters = 1,
							.max_workers = 1,
							.cpus = cases[i].cpus };
		struct engine *engine = NULL;

		assert_int_equal(engine_new(&engine, &options), 0);
		assert_int_equal(stats(engine).batch, cases[i].batch);
		engine_free(engine);
	}
}

static void test_options_out_of_range(void **state)
{
	static const struct engine_options wrong[] = {
		{ .max_counters = 0, .max_workers = 1 },
		{ .max_counters = ENGINE_MAX_COUNTERS_LIMIT + 1, .max_workers = 1 },
		{ .max_counters = 1, .max_workers = 0 },
		{ .max_counters = 1, .max_workers = ENGINE_MAX_WORKERS + 1 },
		{ .max_counters = 1, .max_workers = 1, .batch = (1u << 20) + 1 },
	};
	const struct engine_options largest = { .max_counters = ENGINE_MAX_COUNTERS_LIMIT,
						.max_workers = ENGINE_MAX_WORKERS,
						.batch = 1u << 20 };
	struct engine *engine = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(engine_new(&engine, &wrong[i]), -EINVAL);
		assert_null(engine);
	}
	assert_int_equal(engine_new(&engine, &largest), 0);
	engine_free(engine);
	assert_null(engine_free(NULL));
}

static void test_negative_add(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_ref counter = intern(bench.engine, "c"), gauge;

	(void)state;
	declare(bench.engine, "g", (struct engine_metric){ .kind = ENGINE_GAUGE });
	gauge = intern(bench.engine, "g");
	assert_int_equal(try_add(bench.workers[0], counter, -1), ENGINE_E_NEGATIVE);
	assert_int_equal(try_add(bench.workers[0], counter, INT64_MIN), ENGINE_E_NEGATIVE);
	assert_int_equal(try_add(bench.workers[0], counter, 0), 0);
	assert_int_equal(try_add(bench.workers[0], gauge, -1), 0);
	assert_int_equal(exact(bench.engine, "c"), 0);
	assert_int_equal(own(bench.engine, "c"), 0);
	assert_int_equal(exact(bench.engine, "g"), -1);
	assert_int_equal(get(bench.engine, "c").kind, ENGINE_COUNTER);
	assert_int_equal(get(bench.engine, "g").kind, ENGINE_GAUGE);
	assert_int_equal(stats(bench.engine).add_negative, 2);
	bench_free(&bench);
}

static void test_bad_references(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_ref ref = intern(bench.engine, "m");

	(void)state;
	assert_int_equal(try_add(bench.workers[0], (struct engine_ref){ 0 }, 1), ENGINE_E_GONE);
	assert_int_equal(try_add(bench.workers[0], (struct engine_ref){ ref.id + 1, 0 }, 1),
			 ENGINE_E_GONE);
	assert_int_equal(try_add(bench.workers[0], (struct engine_ref){ 1u << 25, 0 }, 1),
			 ENGINE_E_GONE);
	assert_int_equal(try_add(bench.workers[0], (struct engine_ref){ UINT32_MAX, UINT32_MAX }, 1),
			 ENGINE_E_GONE);
	assert_int_equal(exact(bench.engine, "m"), 0);
	assert_int_equal(stats(bench.engine).add_gone, 4);
	bench_free(&bench);
}

static void test_seats(void **state)
{
	struct engine *engine = make_engine(100, 3, BATCH);
	struct engine_worker *workers[3], *other = NULL;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(engine_join(engine, &workers[i]), 0);
	}
	assert_int_equal(engine_join(engine, &other), ENGINE_E_BUSY);
	assert_null(other);
	assert_int_equal(stats(engine).workers, 3);
	engine_leave(workers[1]);
	assert_int_equal(stats(engine).workers, 2);
	assert_int_equal(engine_join(engine, &other), 0);
	assert_ptr_equal(other, workers[1]);
	for (int i = 0; i < 3; i++) {
		engine_leave(workers[i]);
	}
	assert_int_equal(stats(engine).workers, 0);
	engine_free(engine);
}

/* What a worker held is folded when it leaves; the next one goes on with its slots. */
static void test_leaving_folds(void **state)
{
	struct engine *engine = make_engine(100, 2, BATCH);
	struct engine_worker *worker;
	struct engine_ref ref = intern(engine, "m/a");
	int64_t expected = 0;

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_int_equal(engine_join(engine, &worker), 0);
		add(worker, ref, 5);
		expected += 5;
		assert_int_equal(own(engine, "m/a"), expected - 5);
		assert_int_equal(worker_own(engine, ref.id), expected);
		engine_leave(worker);
		assert_int_equal(own(engine, "m/a"), expected);
		assert_int_equal(total(engine, "m"), expected);
	}
	engine_free(engine);
}

static void test_own_sums_workers(void **state)
{
	struct bench bench = bench_new(100, 4, BATCH);
	struct engine_ref parent = intern(bench.engine, "m"), child = intern(bench.engine, "m/a");

	(void)state;
	for (int i = 0; i < 4; i++) {
		add(bench.workers[i], parent, i);
		add(bench.workers[i], child, 10);
	}
	assert_int_equal(worker_own(bench.engine, parent.id), 6);
	assert_int_equal(worker_own(bench.engine, child.id), 40);
	assert_int_equal(own(bench.engine, "m"), 0);
	assert_int_equal(total(bench.engine, "m"), 0);
	assert_int_equal(exact(bench.engine, "m"), 46);
	assert_int_equal(own(bench.engine, "m"), 6);
	assert_int_equal(own(bench.engine, "m/a"), 40);
	assert_int_equal(total(bench.engine, "m/a"), 40);
	assert_false(get(bench.engine, "m").leaf);
	assert_true(get(bench.engine, "m/a").leaf);
	bench_free(&bench);
}

struct failures {
	size_t n, at[8];
	int error[8];
};

static void failed(void *ctx, size_t index, int error)
{
	struct failures *failures = ctx;

	failures->at[failures->n] = index;
	failures->error[failures->n++] = error;
}

static void test_add_many(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_ref a = intern(bench.engine, "a"), b = intern(bench.engine, "b");
	struct engine_item items[300];
	struct failures failures = { 0 };

	(void)state;
	for (int i = 0; i < 300; i++) {
		items[i] = (struct engine_item){ i % 2 ? a : b, i };
	}
	items[100].n = -1;
	items[200].ref.life += LIFE_GENERATION;
	items[299].ref.id = UINT32_MAX;
	engine_begin(bench.workers[0]);
	assert_int_equal(engine_add_many(bench.workers[0], items, 300, failed, &failures), 3);
	assert_int_equal(engine_add_many(bench.workers[0], items, 0, failed, &failures), 0);
	engine_end(bench.workers[0]);
	assert_int_equal(failures.n, 3);
	assert_int_equal(failures.at[0], 100);
	assert_int_equal(failures.error[0], ENGINE_E_NEGATIVE);
	assert_int_equal(failures.at[1], 200);
	assert_int_equal(failures.error[1], ENGINE_E_GONE);
	assert_int_equal(failures.at[2], 299);
	assert_int_equal(failures.error[2], ENGINE_E_GONE);
	assert_int_equal(exact(bench.engine, "b"), 149 * 150 - 100 - 200);
	assert_int_equal(exact(bench.engine, "a"), 150 * 150 - 299);
	bench_free(&bench);
}

static void test_sections_nest(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_ref ref = intern(bench.engine, "m");

	(void)state;
	engine_begin(bench.workers[0]);
	engine_begin(bench.workers[0]);
	assert_int_equal(engine_add(bench.workers[0], ref, 1), 0);
	engine_end(bench.workers[0]);
	assert_int_equal(engine_add(bench.workers[0], ref, 1), 0);
	/* One that has to leave the section and come back. */
	assert_int_equal(engine_add(bench.workers[0], ref, INT64_MAX - 2), 0);
	assert_int_equal(engine_add(bench.workers[0], ref, 1), ENGINE_E_OVERFLOW);
	engine_end(bench.workers[0]);
	assert_int_equal(exact(bench.engine, "m"), INT64_MAX);
	bench_free(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fold_at_batch),
		cmocka_unit_test(test_large_add_is_folded),
		cmocka_unit_test(test_batch_of_one_holds_nothing),
		cmocka_unit_test(test_default_batch),
		cmocka_unit_test(test_options_out_of_range),
		cmocka_unit_test(test_negative_add),
		cmocka_unit_test(test_bad_references),
		cmocka_unit_test(test_seats),
		cmocka_unit_test(test_leaving_folds),
		cmocka_unit_test(test_own_sums_workers),
		cmocka_unit_test(test_add_many),
		cmocka_unit_test(test_sections_nest),
	};

	return RUN(tests);
}
