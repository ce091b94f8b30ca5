/* flush: what each consistency gives, and what it says of itself. */
#include "lib/engine/flush.h"
#include "tests/unit/engine/support.h"

#define BATCH 32

static void test_consistencies(void **state)
{
	struct bench bench = bench_new(1000, 1, BATCH);
	struct engine_ref ref = intern(bench.engine, "m/a");
	struct engine_view view;

	(void)state;
	add(bench.workers[0], ref, 20);
	view = refresh(bench.engine, ENGINE_CACHED, 5);
	assert_int_equal(total(bench.engine, "m"), 0);
	assert_true(view.error_bound >= 20);
	assert_int_equal(view.age_ns, INT64_MAX);

	view = refresh(bench.engine, ENGINE_FRESH, 5);
	assert_int_equal(total(bench.engine, "m"), 0);
	assert_true(view.error_bound >= 20);
	assert_int_equal(stats(bench.engine).flushes_skipped, 1);

	view = refresh(bench.engine, ENGINE_EXACT, 5);
	assert_int_equal(total(bench.engine, "m"), 20);
	assert_int_equal(total(bench.engine, "m/a"), 20);
	assert_int_equal(view.error_bound, 0);
	assert_int_equal(view.age_ns, 0);
	assert_int_equal(stats(bench.engine).flushes_run, 1);
	bench_free(&bench);
}

/* The bounds are computed from what the rooms below export. */
static void test_bounds(void **state)
{
	struct bench bench = bench_new(100000, 2, BATCH);
	const int64_t few = 2 * 2 * SLOT_BOUND_GROWING(BATCH);
	struct engine_view view;
	char path[16];

	(void)state;
	(void)intern(bench.engine, "m/a");
	assert_int_equal(refresh(bench.engine, ENGINE_CACHED, 0).error_bound,
			 few < pending_bound(&bench.engine->pending, 2)
				 ? few
				 : pending_bound(&bench.engine->pending, 2));
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(path, sizeof(path), "m/%d", i);
		add(bench.workers[i % 2], intern(bench.engine, path), BATCH - 1);
		view = refresh(bench.engine, ENGINE_CACHED, 0);
		assert_true((i + 1) * (BATCH - 1) - total(bench.engine, "m") <= view.error_bound);
	}
	/* Over the threshold, all that can be said is how much the slots have room for. */
	assert_int_equal(view.error_bound, 1002 * 2 * SLOT_BOUND_GROWING(BATCH));
	declare(bench.engine, "g", (struct engine_metric){ .kind = ENGINE_GAUGE });
	(void)intern(bench.engine, "g");
	assert_int_equal(refresh(bench.engine, ENGINE_CACHED, 0).error_bound,
			 1003 * 2 * SLOT_BOUND_SIGNED(BATCH));
	assert_int_equal(drop(bench.engine, "g"), 0);
	assert_int_equal(refresh(bench.engine, ENGINE_CACHED, 0).error_bound,
			 1002 * 2 * SLOT_BOUND_GROWING(BATCH));

	view = refresh(bench.engine, ENGINE_FRESH, 0);
	assert_int_equal(view.error_bound, 0);
	assert_int_equal(total(bench.engine, "m"), 1000 * (BATCH - 1));
	bench_free(&bench);
}

/* Whatever was added before a fresh read is missing by no more than it says, and it does flush at some time. */
static void test_fresh_keeps_its_bound(void **state)
{
	struct bench bench = bench_new(10000, 3, BATCH);
	struct engine_ref refs[500];
	struct test_random random;
	int64_t sum = 0, most = 0;
	char path[16];

	(void)state;
	test_random_init(&random, 0);
	for (int i = 0; i < 500; i++) {
		(void)snprintf(path, sizeof(path), "m/%d", i);
		refs[i] = intern(bench.engine, path);
	}
	for (int i = 0; i < 20000; i++) {
		int64_t n = (int64_t)test_random_below(&random, 10);
		struct engine_view view;
		int64_t missing;

		add(bench.workers[test_random_below(&random, 3)],
		    refs[test_random_below(&random, 500)], n);
		sum += n;
		view = refresh(bench.engine, ENGINE_FRESH, 0);
		missing = sum - total(bench.engine, "m");
		assert_in_range(missing, 0, view.error_bound);
		most = missing > most ? missing : most;
	}
	assert_true(most > PENDING_STEP);
	assert_true(stats(bench.engine).flushes_run > 10);
	assert_true(stats(bench.engine).flushes_skipped > 10000);
	assert_true(stats(bench.engine).pending_signals > 0);
	assert_int_equal(stats(bench.engine).pending_threshold, 3 * PENDING_STEP);
	bench_free(&bench);
}

static void test_age(void **state)
{
	struct bench bench = bench_new(10, 1, BATCH);

	(void)state;
	engine_flush(bench.engine, 10 * SECOND);
	assert_int_equal(refresh(bench.engine, ENGINE_CACHED, 13 * SECOND).age_ns, 3 * SECOND);
	assert_int_equal(refresh(bench.engine, ENGINE_FRESH, 13 * SECOND).age_ns, 3 * SECOND);
	assert_int_equal(refresh(bench.engine, ENGINE_EXACT, 14 * SECOND).age_ns, 0);
	assert_int_equal(refresh(bench.engine, ENGINE_CACHED, 15 * SECOND).age_ns, SECOND);
	/* The clock stepped back. */
	assert_int_equal(refresh(bench.engine, ENGINE_CACHED, SECOND).age_ns, 0);
	/* As far apart as two times can be. */
	engine_flush(bench.engine, -SECOND);
	assert_int_equal(refresh(bench.engine, ENGINE_CACHED, INT64_MAX).age_ns, INT64_MAX);
	bench_free(&bench);
}

/* A flush costs what is held back, not what there is: slots that hold nothing are not visited. */
static void test_flush_visits_what_is_marked(void **state)
{
	struct bench bench = bench_new(10000, 1, BATCH);
	struct engine_ref ref = { 0 };
	char path[16];

	(void)state;
	for (int i = 0; i < 5000; i++) {
		(void)snprintf(path, sizeof(path), "m/%d", i);
		ref = intern(bench.engine, path);
		add(bench.workers[0], ref, 1);
	}
	engine_flush(bench.engine, 0);
	assert_int_equal(stats(bench.engine).folds, 5000);
	add(bench.workers[0], ref, 1);
	engine_flush(bench.engine, 0);
	engine_flush(bench.engine, 0);
	assert_int_equal(stats(bench.engine).folds, 5001);
	assert_int_equal(total(bench.engine, "m"), 5001);
	bench_free(&bench);
}

#define SHARERS 6

struct sharer {
	pthread_t id;
	struct engine *engine;
};

static void *flush_often(void *ctx)
{
	struct sharer *sharer = ctx;

	grace_register();
	for (int i = 0; i < 300; i++) {
		engine_flush(sharer->engine, i);
	}
	grace_unregister();
	return NULL;
}

/* Each of the calls was served by a flush that ran or shared one. */
static void test_flushes_are_shared(void **state)
{
	struct bench bench = bench_new(10, 2, BATCH);
	struct sharer sharers[SHARERS];
	struct engine_stats figures;

	(void)state;
	for (int i = 0; i < SHARERS; i++) {
		sharers[i].engine = bench.engine;
		assert_int_equal(pthread_create(&sharers[i].id, NULL, flush_often, &sharers[i]), 0);
	}
	for (int i = 0; i < SHARERS; i++) {
		assert_int_equal(pthread_join(sharers[i].id, NULL), 0);
	}
	figures = stats(bench.engine);
	assert_true(figures.flushes_run + figures.flushes_shared >= SHARERS * 300);
	assert_true(figures.flushes_run <= SHARERS * 300);
	bench_free(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_consistencies),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_fresh_keeps_its_bound),
		cmocka_unit_test(test_age),
		cmocka_unit_test(test_flush_visits_what_is_marked),
		cmocka_unit_test(test_flushes_are_shared),
	};

	return RUN(tests);
}
