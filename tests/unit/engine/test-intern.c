/* intern: references, and the ceilings. */
#include "lib/engine/intern.h"
#include "tests/unit/engine/support.h"

static int try_intern(struct engine *engine, const char *path, struct engine_ref *ret_ref)
{
	return engine_intern(engine, path, strlen(path), 1, ret_ref);
}

static bool same(struct engine_ref a, struct engine_ref b)
{
	return a.id == b.id && a.life == b.life;
}

static void test_same_path_same_reference(void **state)
{
	struct engine *engine = make_engine(100, 1, 0);
	struct engine_ref a = intern(engine, "m/a");

	(void)state;
	assert_true(same(a, intern(engine, "m/a")));
	assert_false(same(a, intern(engine, "m")));
	assert_false(same(a, intern(engine, "m/b")));
	assert_int_equal(stats(engine).counters, 3);
	assert_int_equal(stats(engine).created, 3);
	engine_free(engine);
}

static void test_not_a_path(void **state)
{
	static const char *const wrong[] = { "", "/", "a/", "/a", "a//b", ".", "a/..", "a/*", " a" };
	struct engine *engine = make_engine(100, 1, 0);
	struct engine_reading reading;
	struct engine_ref ref;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		size_t len = strlen(wrong[i]);

		assert_int_equal(engine_intern(engine, wrong[i], len, 1, &ref), ENGINE_E_PATH);
		assert_int_equal(engine_get(engine, wrong[i], len, &reading), ENGINE_E_PATH);
		assert_int_equal(engine_remove(engine, wrong[i], len), ENGINE_E_PATH);
	}
	assert_int_equal(engine_get(engine, "a", 1, &reading), ENGINE_E_NOT_FOUND);
	assert_int_equal(stats(engine).counters, 0);
	engine_free(engine);
}

/* At the ceiling, one more, two more at once; what is refused leaves nothing behind, and is remembered. */
static void test_engine_ceiling(void **state)
{
	struct engine *engine = make_engine(5, 1, 0);
	struct engine_ref ref;
	struct engine_stats figures;

	(void)state;
	(void)intern(engine, "m/a/b");
	(void)intern(engine, "m/a/c");
	assert_int_equal(try_intern(engine, "m/x/y", &ref), ENGINE_E_FULL);
	(void)intern(engine, "m/x");
	assert_int_equal(try_intern(engine, "m/x/y", &ref), ENGINE_E_FULL);
	assert_int_equal(try_intern(engine, "n", &ref), ENGINE_E_FULL);
	(void)intern(engine, "m/a/c");
	figures = stats(engine);
	assert_int_equal(figures.counters, 5);
	assert_int_equal(figures.counters_max, 5);
	assert_int_equal(figures.refused, 3);
	assert_int_equal(figures.n_refused_prefixes, 2);
	assert_string_equal(figures.refused_prefixes[0].prefix, "m/x");
	assert_int_equal(figures.refused_prefixes[0].count, 2);
	assert_string_equal(figures.refused_prefixes[1].prefix, "");
	/* Room again. */
	assert_int_equal(drop(engine, "m/a/b"), 0);
	(void)intern(engine, "m/x/y");
	engine_free(engine);
}

static void test_metric_ceiling(void **state)
{
	struct engine *engine = make_engine(100, 1, 0);
	struct engine_ref ref;

	(void)state;
	declare(engine, "m", (struct engine_metric){ .max_counters = 3 });
	(void)intern(engine, "m/a/b");
	assert_int_equal(try_intern(engine, "m/a/c", &ref), ENGINE_E_METRIC_FULL);
	(void)intern(engine, "n/a/b/c/d/e");
	assert_int_equal(drop(engine, "m/a/b"), 0);
	(void)intern(engine, "m/a/c");
	assert_int_equal(try_intern(engine, "m/d", &ref), ENGINE_E_METRIC_FULL);
	declare(engine, "m", (struct engine_metric){ .max_counters = 4 });
	(void)intern(engine, "m/d");
	assert_int_equal(try_intern(engine, "m/e", &ref), ENGINE_E_METRIC_FULL);
	declare(engine, "m", (struct engine_metric){ .max_counters = 0 });
	(void)intern(engine, "m/e");
	engine_free(engine);
}

/* A ceiling on a metric that has counters already. */
static void test_late_ceiling(void **state)
{
	struct engine *engine = make_engine(100, 1, 0);
	struct engine_ref ref;

	(void)state;
	(void)intern(engine, "n/x");
	(void)intern(engine, "m/a/b");
	(void)intern(engine, "m/c");
	assert_int_equal(drop(engine, "m/c"), 0);
	declare(engine, "m", (struct engine_metric){ .max_counters = 4 });
	(void)intern(engine, "m/d");
	assert_int_equal(try_intern(engine, "m/e", &ref), ENGINE_E_METRIC_FULL);
	engine_free(engine);
}

static void test_overflow(void **state)
{
	struct bench bench = bench_new(100, 1, 1);
	struct engine_ref other, deep, top;

	(void)state;
	declare(bench.engine, "m", (struct engine_metric){ .max_counters = 3, .overflow = true });
	(void)intern(bench.engine, "m/a/b");
	other = intern(bench.engine, "m/a/c");
	assert_true(same(other, intern(bench.engine, "m/a/d")));
	assert_true(same(other, intern(bench.engine, "m/a/" ENGINE_OTHER)));
	/* The parent isn't there either: the nearest ancestor that is. */
	deep = intern(bench.engine, "m/a/x/y/z");
	assert_true(same(other, deep));
	top = intern(bench.engine, "m/x/y");
	assert_true(same(top, intern(bench.engine, "m/" ENGINE_OTHER)));
	add(bench.workers[0], other, 5);
	add(bench.workers[0], top, 7);
	assert_int_equal(total(bench.engine, "m/a"), 5);
	assert_int_equal(total(bench.engine, "m"), 12);
	assert_int_equal(stats(bench.engine).overflowed, 4);
	assert_int_equal(stats(bench.engine).refused, 0);
	assert_int_equal(stats(bench.engine).counters, 5);
	bench_free(&bench);
}

/* The engine is full: there is a reserve for one place under each such metric, and no more. */
static void test_overflow_of_a_full_engine(void **state)
{
	struct engine *engine = make_engine(4, 1, 0);
	struct engine_ref ref, top;

	(void)state;
	declare(engine, "m", (struct engine_metric){ .overflow = true });
	declare(engine, "o", (struct engine_metric){ .overflow = true });
	declare(engine, "p", (struct engine_metric){ .overflow = true });
	(void)intern(engine, "m/a/b/c");
	top = intern(engine, "m/a/x");
	assert_true(same(top, intern(engine, "m/" ENGINE_OTHER)));
	assert_true(same(intern(engine, "m/a/b/y"), top));
	ref = intern(engine, "o/a/b");
	assert_true(same(ref, intern(engine, "o/" ENGINE_OTHER)));
	(void)intern(engine, "p");
	assert_int_equal(try_intern(engine, "q", &ref), ENGINE_E_FULL);
	assert_int_equal(stats(engine).counters, 4 + 1 + 2 + 1);
	engine_free(engine);
}

/* Where `__other__` does not fit, an ancestor's will. */
static void test_overflow_of_a_long_path(void **state)
{
	struct engine *engine = make_engine(100, 1, 0);
	char path[PATH_MAX_BYTES];
	struct engine_ref ref;

	(void)state;
	memset(path, 'x', sizeof(path));
	path[1] = '/';
	for (size_t i = 102; i < sizeof(path) - 100; i += 101) {
		path[i] = '/';
	}
	path[PATH_MAX_BYTES - 2] = '/';
	declare(engine, "x", (struct engine_metric){ .max_counters = 6, .overflow = true });
	assert_int_equal(engine_intern(engine, path, PATH_MAX_BYTES - 2, 1, &ref), 0);
	assert_int_equal(stats(engine).counters, 6);
	assert_int_equal(engine_intern(engine, path, PATH_MAX_BYTES, 1, &ref), 0);
	assert_int_equal(stats(engine).overflowed, 1);
	assert_int_equal(stats(engine).counters, 7);
	engine_free(engine);
}

#define RACERS 4
#define RACE_PATHS 2000

struct racer {
	pthread_t id;
	struct engine *engine;
	struct engine_ref refs[RACE_PATHS];
};

static void *race(void *ctx)
{
	struct racer *racer = ctx;
	char path[32];

	grace_register();
	for (int i = 0; i < RACE_PATHS; i++) {
		(void)snprintf(path, sizeof(path), "m/%d/%d", i % 37, i);
		racer->refs[i] = intern(racer->engine, path);
	}
	grace_unregister();
	return NULL;
}

/* All who ask for a path at once get the same counter. */
static void test_race_to_create(void **state)
{
	static struct racer racers[RACERS];
	struct engine *engine = make_engine(10000, 1, 0);

	(void)state;
	for (int i = 0; i < RACERS; i++) {
		racers[i].engine = engine;
		assert_int_equal(pthread_create(&racers[i].id, NULL, race, &racers[i]), 0);
	}
	for (int i = 0; i < RACERS; i++) {
		assert_int_equal(pthread_join(racers[i].id, NULL), 0);
		assert_memory_equal(racers[i].refs, racers[0].refs, sizeof(racers[0].refs));
	}
	assert_int_equal(stats(engine).counters, 1 + 37 + RACE_PATHS);
	engine_free(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_path_same_reference),
		cmocka_unit_test(test_not_a_path),
		cmocka_unit_test(test_engine_ceiling),
		cmocka_unit_test(test_metric_ceiling),
		cmocka_unit_test(test_late_ceiling),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_overflow_of_a_full_engine),
		cmocka_unit_test(test_overflow_of_a_long_path),
		cmocka_unit_test(test_race_to_create),
	};

	return RUN(tests);
}
