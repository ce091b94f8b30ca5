/* strict: the ends of int64. Whatever would leave it is refused, and then nothing has changed. */
#include "lib/engine/strict.h"
#include "tests/unit/engine/support.h"

#define BATCH 32

static bool is_strict(struct engine *engine, struct engine_ref ref)
{
	return tree_life(&engine->tree, ref.id) & LIFE_STRICT;
}

static void test_largest_on_a_fresh_counter(void **state)
{
	struct bench bench = bench_new(100, 2, BATCH);
	struct engine_ref ref = intern(bench.engine, "m/a/b");

	(void)state;
	add(bench.workers[0], ref, INT64_MAX);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(try_add(bench.workers[i], ref, 1), ENGINE_E_OVERFLOW);
		assert_int_equal(try_add(bench.workers[i], ref, INT64_MAX), ENGINE_E_OVERFLOW);
		assert_int_equal(try_add(bench.workers[i], ref, 0), 0);
	}
	assert_int_equal(exact(bench.engine, "m"), INT64_MAX);
	assert_int_equal(total(bench.engine, "m/a"), INT64_MAX);
	assert_int_equal(total(bench.engine, "m/a/b"), INT64_MAX);
	assert_int_equal(own(bench.engine, "m/a/b"), INT64_MAX);
	assert_int_equal(stats(bench.engine).add_overflow, 4);
	bench_free(&bench);
}

/* What is held back counts as well: one below the end, then a step of two. */
static void test_held_back_counts(void **state)
{
	struct bench bench = bench_new(100, 2, BATCH);
	struct engine_ref ref = intern(bench.engine, "m");

	(void)state;
	add(bench.workers[0], ref, BATCH - 1);
	add(bench.workers[1], ref, BATCH - 1);
	assert_int_equal(try_add(bench.workers[0], ref, INT64_MAX - 2 * (BATCH - 1) + 1),
			 ENGINE_E_OVERFLOW);
	add(bench.workers[0], ref, INT64_MAX - 2 * (BATCH - 1));
	assert_int_equal(try_add(bench.workers[1], ref, 1), ENGINE_E_OVERFLOW);
	assert_int_equal(exact(bench.engine, "m"), INT64_MAX);
	bench_free(&bench);
}

/* Two workers, two siblings, each far from the end by itself; their parent is what is full. Other metrics don't care. */
static void test_siblings(void **state)
{
	struct bench bench = bench_new(100, 2, BATCH);
	struct engine_ref a = intern(bench.engine, "m/x/a"), b = intern(bench.engine, "m/x/b");
	struct engine_ref c = intern(bench.engine, "m/c"), other = intern(bench.engine, "other");

	(void)state;
	add(bench.workers[0], a, INT64_MAX / 2);
	add(bench.workers[1], b, INT64_MAX / 2);
	assert_int_equal(try_add(bench.workers[0], a, 2), ENGINE_E_OVERFLOW);
	assert_int_equal(try_add(bench.workers[1], c, 2), ENGINE_E_OVERFLOW);
	add(bench.workers[1], c, 1);
	assert_int_equal(try_add(bench.workers[1], c, 1), ENGINE_E_OVERFLOW);
	assert_int_equal(exact(bench.engine, "m"), INT64_MAX);
	assert_int_equal(total(bench.engine, "m/x"), INT64_MAX - 1);
	assert_int_equal(total(bench.engine, "m/x/a"), INT64_MAX / 2);
	assert_int_equal(total(bench.engine, "m/c"), 1);
	add(bench.workers[0], other, BATCH - 1);
	assert_int_equal(total(bench.engine, "other"), 0);
	assert_false(is_strict(bench.engine, other));
	assert_true(is_strict(bench.engine, intern(bench.engine, "m/new")));
	bench_free(&bench);
}

static void test_gauge_at_both_ends(void **state)
{
	struct bench bench = bench_new(100, 2, BATCH);
	struct engine_ref a, b;

	(void)state;
	declare(bench.engine, "g", (struct engine_metric){ .kind = ENGINE_GAUGE });
	a = intern(bench.engine, "g/a");
	b = intern(bench.engine, "g/b");
	add(bench.workers[0], a, INT64_MIN);
	assert_int_equal(exact(bench.engine, "g"), INT64_MIN);
	assert_int_equal(try_add(bench.workers[0], a, -1), ENGINE_E_OVERFLOW);
	assert_int_equal(try_add(bench.workers[1], b, -1), ENGINE_E_OVERFLOW);
	add(bench.workers[1], b, INT64_MAX);
	assert_int_equal(exact(bench.engine, "g"), -1);
	assert_int_equal(try_add(bench.workers[1], b, 1), ENGINE_E_OVERFLOW);
	assert_int_equal(try_add(bench.workers[1], b, INT64_MIN), ENGINE_E_OVERFLOW);
	add(bench.workers[1], b, INT64_MIN + 1);
	assert_int_equal(total(bench.engine, "g"), INT64_MIN);
	assert_int_equal(try_add(bench.workers[0], b, INT64_MIN), ENGINE_E_OVERFLOW);
	add(bench.workers[0], a, INT64_MAX);
	add(bench.workers[0], a, 1);
	assert_int_equal(own(bench.engine, "g/a"), 0);
	assert_int_equal(total(bench.engine, "g/a"), 0);
	assert_int_equal(total(bench.engine, "g/b"), 0);
	assert_int_equal(total(bench.engine, "g"), 0);
	bench_free(&bench);
}

/* The parent's total cancels out, its own value must not run away. */
static void test_own_of_a_gauge(void **state)
{
	struct bench bench = bench_new(100, 2, BATCH);
	struct engine_ref parent, children[3];

	(void)state;
	declare(bench.engine, "g", (struct engine_metric){ .kind = ENGINE_GAUGE });
	parent = intern(bench.engine, "g");
	children[0] = intern(bench.engine, "g/0");
	children[1] = intern(bench.engine, "g/1");
	children[2] = intern(bench.engine, "g/2");
	add(bench.workers[0], children[0], -(INT64_MAX / 2));
	add(bench.workers[0], parent, INT64_MAX / 2);
	add(bench.workers[0], children[1], -(INT64_MAX / 2));
	add(bench.workers[1], parent, INT64_MAX / 2);
	add(bench.workers[0], children[2], -2);
	assert_int_equal(try_add(bench.workers[0], parent, 2), ENGINE_E_OVERFLOW);
	add(bench.workers[1], parent, 1);
	assert_int_equal(own(bench.engine, "g"), INT64_MAX);
	assert_int_equal(exact(bench.engine, "g"), -1);
	bench_free(&bench);
}

/* The same in amounts that are not large one by one: the fold has to notice. */
static void test_own_of_a_gauge_in_steps(void **state)
{
	const int64_t step = STRICT_AMOUNT - 1;
	struct bench bench = bench_new(100, 2, BATCH);
	struct engine_ref parent;
	char path[16];
	int64_t up = 0;
	int r = 0;

	(void)state;
	declare(bench.engine, "g", (struct engine_metric){ .kind = ENGINE_GAUGE });
	parent = intern(bench.engine, "g");
	for (int i = 0; r == 0; i++) {
		struct engine_ref child;

		assert_true(i < 2000);
		(void)snprintf(path, sizeof(path), "g/%d", i % 50);
		child = intern(bench.engine, path);
		add(bench.workers[i % 2], child, -step);
		r = try_add(bench.workers[i / 2 % 2], parent, step);
		up += r == 0 ? step : 0;
	}
	assert_int_equal(r, ENGINE_E_OVERFLOW);
	assert_true(up > INT64_MAX - step);
	assert_int_equal(own(bench.engine, "g"), up);
	assert_int_equal(exact(bench.engine, "g"), -step);
	bench_free(&bench);
}

/* Small steps through the edge: the turn happens there, and the end is found exactly. */
static void test_turn_by_folding(void **state)
{
	const int64_t step = STRICT_AMOUNT - 1;
	struct bench bench = bench_new(100, 2, BATCH);
	struct engine_ref ref = intern(bench.engine, "m/a"), sibling = intern(bench.engine, "m/b");
	int64_t sum = BATCH - 1;

	(void)state;
	add(bench.workers[1], sibling, BATCH - 1);
	for (int i = 0; sum <= INT64_MAX - step; i++) {
		assert_true(is_strict(bench.engine, ref) == tree_far(total(bench.engine, "m")));
		add(bench.workers[i % 2], ref, step);
		sum += step;
	}
	assert_true(is_strict(bench.engine, sibling));
	assert_int_equal(try_add(bench.workers[0], ref, step), ENGINE_E_OVERFLOW);
	add(bench.workers[0], sibling, INT64_MAX - sum);
	assert_int_equal(exact(bench.engine, "m"), INT64_MAX);
	assert_int_equal(own(bench.engine, "m/a") + own(bench.engine, "m/b"), INT64_MAX);
	bench_free(&bench);
}

/* Strict until it is removed, then as any new one. */
static void test_removed_and_made_anew(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_ref ref = intern(bench.engine, "m");

	(void)state;
	add(bench.workers[0], ref, INT64_MAX);
	assert_int_equal(drop(bench.engine, "m"), 0);
	assert_int_equal(try_add(bench.workers[0], ref, 1), ENGINE_E_GONE);
	ref = intern(bench.engine, "m");
	assert_false(is_strict(bench.engine, ref));
	assert_int_equal(exact(bench.engine, "m"), 0);
	assert_int_equal(own(bench.engine, "m"), 0);
	add(bench.workers[0], ref, INT64_MAX);
	assert_int_equal(try_add(bench.workers[0], ref, 1), ENGINE_E_OVERFLOW);
	bench_free(&bench);
}

/* The parent could not hold the removed one's own value. */
static void test_removal_that_would_overflow(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_ref parent, a, b;

	(void)state;
	declare(bench.engine, "g", (struct engine_metric){ .kind = ENGINE_GAUGE });
	parent = intern(bench.engine, "g");
	a = intern(bench.engine, "g/a");
	b = intern(bench.engine, "g/b");
	add(bench.workers[0], parent, TREE_EDGE - 1);
	add(bench.workers[0], a, -(TREE_EDGE - 1));
	add(bench.workers[0], a, -(TREE_EDGE - 1));
	add(bench.workers[0], b, INT64_MAX);
	add(bench.workers[0], a, -(TREE_EDGE - 1));
	assert_int_equal(drop(bench.engine, "g/b"), ENGINE_E_OVERFLOW);
	assert_int_equal(own(bench.engine, "g/b"), INT64_MAX);
	assert_int_equal(drop(bench.engine, "g/a"), 0);
	assert_int_equal(own(bench.engine, "g"), -2 * (TREE_EDGE - 1));
	assert_int_equal(drop(bench.engine, "g/b"), 0);
	assert_int_equal(own(bench.engine, "g"), INT64_MAX - 2 * (TREE_EDGE - 1));
	assert_int_equal(exact(bench.engine, "g"), own(bench.engine, "g"));
	bench_free(&bench);
}

/* Own values below the edge one by one; together they turn the metric strict at the removal. */
static void test_removal_turns_strict(void **state)
{
	const int64_t step = STRICT_AMOUNT - 1;
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_ref parent, a, down;

	(void)state;
	declare(bench.engine, "g", (struct engine_metric){ .kind = ENGINE_GAUGE });
	parent = intern(bench.engine, "g");
	a = intern(bench.engine, "g/a");
	down = intern(bench.engine, "g/down");
	for (int i = 0; i < 100; i++) {
		add(bench.workers[0], parent, step);
		add(bench.workers[0], down, -step);
		add(bench.workers[0], a, step);
		add(bench.workers[0], down, -step);
	}
	assert_int_equal(drop(bench.engine, "g/a"), 0);
	assert_true(is_strict(bench.engine, parent));
	assert_int_equal(own(bench.engine, "g"), 200 * step);
	assert_int_equal(exact(bench.engine, "g"), 0);
	bench_free(&bench);
}

struct thread {
	pthread_t id;
	struct engine *engine;
	struct engine_ref refs[4];
	uint64_t stream;
	int64_t accepted;
	uint64_t refused;
};

static void *push(void *ctx)
{
	struct thread *thread = ctx;
	struct test_random random;
	struct engine_worker *worker;

	grace_register();
	test_random_init(&random, thread->stream);
	assert_int_equal(engine_join(thread->engine, &worker), 0);
	for (int i = 0; i < 3000; i++) {
		struct engine_ref ref = thread->refs[test_random_below(&random, 4)];
		int64_t n = (int64_t)(test_random_next(&random) >>
				      (1 + test_random_below(&random, 16)));
		int r = try_add(worker, ref, n);

		if (r == 0) {
			thread->accepted += n;
		} else {
			assert_int_equal(r, ENGINE_E_OVERFLOW);
			thread->refused++;
		}
	}
	engine_leave(worker);
	grace_unregister();
	return NULL;
}

/* Threads race for what is left: what was accepted is exactly what is counted. */
static void test_race_to_the_end(void **state)
{
	(void)state;
	for (int round = 0; round < 10; round++) {
		struct engine *engine = make_engine(100, 3, BATCH);
		struct engine_ref refs[4] = { intern(engine, "m/a/x"), intern(engine, "m/a/y"),
					      intern(engine, "m/b"), intern(engine, "m") };
		struct thread threads[3];
		__int128 sum = 0;
		uint64_t refused = 0;

		for (int i = 0; i < 3; i++) {
			threads[i] = (struct thread){ .engine = engine,
						      .stream = (uint64_t)(round * 3 + i) };
			memcpy(threads[i].refs, refs, sizeof(refs));
			assert_int_equal(pthread_create(&threads[i].id, NULL, push, &threads[i]),
					 0);
		}
		for (int i = 0; i < 3; i++) {
			assert_int_equal(pthread_join(threads[i].id, NULL), 0);
			sum += threads[i].accepted;
			refused += threads[i].refused;
		}
		assert_true(sum == exact(engine, "m"));
		assert_true(refused > 0);
		assert_true(sum == (__int128)own(engine, "m") + own(engine, "m/b") +
					   own(engine, "m/a/x") + own(engine, "m/a/y"));
		engine_free(engine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_largest_on_a_fresh_counter),
		cmocka_unit_test(test_held_back_counts),
		cmocka_unit_test(test_siblings),
		cmocka_unit_test(test_gauge_at_both_ends),
		cmocka_unit_test(test_own_of_a_gauge),
		cmocka_unit_test(test_own_of_a_gauge_in_steps),
		cmocka_unit_test(test_turn_by_folding),
		cmocka_unit_test(test_removed_and_made_anew),
		cmocka_unit_test(test_removal_that_would_overflow),
		cmocka_unit_test(test_removal_turns_strict),
		cmocka_unit_test(test_race_to_the_end),
	};

	return RUN(tests);
}
