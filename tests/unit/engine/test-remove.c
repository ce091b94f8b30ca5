/* remove: what stays, what is dead, and who is idle. */
#include "lib/engine/remove.h"
#include "tests/unit/engine/support.h"

#define BATCH 32

/* What the leaf had, held back or not, is its parent's own; totals above don't change, and a reference is dead. */
static void test_value_moves_up(void **state)
{
	struct bench bench = bench_new(100, 2, BATCH);
	struct engine_ref leaf = intern(bench.engine, "m/a/b"),
			  parent = intern(bench.engine, "m/a");

	(void)state;
	add(bench.workers[0], leaf, 100);
	add(bench.workers[0], leaf, 20);
	add(bench.workers[1], leaf, 3);
	add(bench.workers[1], parent, 1);
	assert_int_equal(drop(bench.engine, "m/a/b"), 0);
	assert_int_equal(own(bench.engine, "m/a"), 123);
	assert_int_equal(total(bench.engine, "m/a"), 123);
	assert_int_equal(total(bench.engine, "m"), 123);
	assert_int_equal(exact(bench.engine, "m"), 124);
	assert_int_equal(own(bench.engine, "m"), 0);
	assert_true(get(bench.engine, "m/a").leaf);
	assert_int_equal(try_add(bench.workers[0], leaf, 1), ENGINE_E_GONE);
	assert_int_equal(stats(bench.engine).removed, 1);
	assert_int_equal(drop(bench.engine, "m/a"), 0);
	assert_int_equal(own(bench.engine, "m"), 124);
	assert_int_equal(total(bench.engine, "m"), 124);
	bench_free(&bench);
}

static void test_what_cant_be_removed(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);

	(void)state;
	(void)intern(bench.engine, "m/a/b");
	assert_int_equal(drop(bench.engine, "m"), ENGINE_E_BUSY);
	assert_int_equal(drop(bench.engine, "m/a"), ENGINE_E_BUSY);
	assert_int_equal(drop(bench.engine, "m/a/c"), ENGINE_E_NOT_FOUND);
	assert_int_equal(drop(bench.engine, "m/a/b"), 0);
	assert_int_equal(drop(bench.engine, "m/a/b"), ENGINE_E_NOT_FOUND);
	assert_int_equal(drop(bench.engine, "m/a"), 0);
	assert_int_equal(drop(bench.engine, "m"), 0);
	assert_int_equal(stats(bench.engine).counters, 0);
	bench_free(&bench);
}

/* The successor has the same id and slots that count; it starts at 0, under another parent, and the old reference misses it. */
static void test_successor(void **state)
{
	struct bench bench = bench_new(100, 2, BATCH);
	struct engine_ref old = intern(bench.engine, "m/a"), new;

	(void)state;
	(void)intern(bench.engine, "n");
	add(bench.workers[0], old, 1000);
	add(bench.workers[1], old, 7);
	assert_int_equal(drop(bench.engine, "m/a"), 0);
	new = intern(bench.engine, "n/x");
	assert_int_equal(new.id, old.id);
	assert_int_not_equal(new.life, old.life);
	assert_int_equal(own(bench.engine, "n/x"), 0);
	assert_int_equal(exact(bench.engine, "n"), 0);
	assert_int_equal(try_add(bench.workers[0], old, 1), ENGINE_E_GONE);
	add(bench.workers[0], new, 2);
	add(bench.workers[1], new, 3);
	assert_int_equal(own(bench.engine, "n/x"), 0);
	assert_int_equal(exact(bench.engine, "n"), 5);
	assert_int_equal(own(bench.engine, "n/x"), 5);
	assert_int_equal(total(bench.engine, "m"), 1007);
	assert_int_equal(own(bench.engine, "m"), 1007);
	bench_free(&bench);
}

/* A reference never fits again, also when its id has run through all its generations: then the id is given up. */
static void test_generations_end(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_ref refs[3];
	struct life *lives;

	(void)state;
	(void)intern(bench.engine, "m");
	refs[0] = intern(bench.engine, "m/a");
	assert_int_equal(drop(bench.engine, "m/a"), 0);
	lives = atomic_load_explicit(&bench.engine->tree.lives[0], memory_order_relaxed);
	atomic_store_explicit(&lives[refs[0].id].word,
			      (UINT32_MAX / LIFE_GENERATION - 1) * LIFE_GENERATION,
			      memory_order_relaxed);
	for (int i = 1; i < 3; i++) {
		refs[i] = intern(bench.engine, "m/a");
		assert_int_equal(refs[i].id, refs[0].id);
		add(bench.workers[0], refs[i], 5);
		assert_int_equal(drop(bench.engine, "m/a"), 0);
	}
	assert_int_not_equal(intern(bench.engine, "m/a").id, refs[0].id);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(try_add(bench.workers[0], refs[i], 1), ENGINE_E_GONE);
	}
	assert_int_equal(exact(bench.engine, "m"), 10);
	bench_free(&bench);
}

/* A mark that is left from a removed counter does its successor no harm. */
static void test_left_over_mark(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_ref ref = intern(bench.engine, "m/a");

	(void)state;
	add(bench.workers[0], ref, 1);
	assert_int_equal(drop(bench.engine, "m/a"), 0);
	engine_flush(bench.engine, 0);
	ref = intern(bench.engine, "m/b");
	add(bench.workers[0], ref, 1);
	assert_int_equal(drop(bench.engine, "m/b"), 0);
	ref = intern(bench.engine, "m/c");
	add(bench.workers[0], ref, 1);
	assert_int_equal(exact(bench.engine, "m"), 3);
	assert_int_equal(total(bench.engine, "m/c"), 1);
	bench_free(&bench);
}

/* ---- expiry ---- */

static void test_only_idle_leaves_expire(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_ref busy;

	(void)state;
	declare(bench.engine, "m", (struct engine_metric){ .expire_after_ns = 10 * SECOND });
	busy = intern(bench.engine, "m/busy");
	add(bench.workers[0], intern(bench.engine, "m/idle/a"), 40);
	add(bench.workers[0], intern(bench.engine, "m/idle/b"), 2);
	(void)intern(bench.engine, "stays/a");
	assert_int_equal(engine_expire(bench.engine, 0, 1000), 0);
	add(bench.workers[0], busy, 1);
	assert_int_equal(engine_expire(bench.engine, 10 * SECOND - 1, 1000), 0);
	add(bench.workers[0], busy, 1);
	assert_int_equal(engine_expire(bench.engine, 10 * SECOND, 1000), 2);
	assert_int_equal(own(bench.engine, "m/idle"), 42);
	assert_int_equal(exact(bench.engine, "m"), 44);
	/* The parent is a leaf now, and is looked at as one from now on. */
	assert_int_equal(engine_expire(bench.engine, 19 * SECOND, 1000), 0);
	assert_int_equal(engine_expire(bench.engine, 40 * SECOND, 1000), 2);
	assert_int_equal(own(bench.engine, "m"), 44);
	/* A metric itself stays, with what it has. */
	assert_int_equal(engine_expire(bench.engine, 1000 * SECOND, 1000), 0);
	assert_int_equal(engine_expire(bench.engine, 2000 * SECOND, 1000), 0);
	assert_int_equal(total(bench.engine, "stays/a"), 0);
	assert_int_equal(stats(bench.engine).expired, 4);
	assert_int_equal(stats(bench.engine).removed, 4);
	bench_free(&bench);
}

/* In small steps all are looked at, each call going on where the last one stopped. */
static void test_budget(void **state)
{
	struct engine *engine = make_engine(10000, 1, 0);
	size_t removed = 0;
	char path[32];

	(void)state;
	declare(engine, "m", (struct engine_metric){ .expire_after_ns = SECOND });
	for (int i = 0; i < 2000; i++) {
		(void)snprintf(path, sizeof(path), "m/%d", i);
		(void)intern(engine, path);
	}
	for (int i = 0; i < 2001; i += 7) {
		assert_int_equal(engine_expire(engine, 0, 7), 0);
	}
	for (int i = 0; i < 2008 / 7; i++) {
		size_t n = engine_expire(engine, SECOND, 7);

		assert_in_range(n, 0, 7);
		removed += n;
	}
	removed += engine_expire(engine, SECOND, 10000);
	assert_int_equal(removed, 2000);
	assert_int_equal(stats(engine).counters, 1);
	engine_free(engine);
}

/* A sweep goes on from a counter that is still there, or its place among the siblings would have to be looked for. */
static void test_sweep_rests_on_what_stays(void **state)
{
	struct bench bench = bench_new(1000, 1, BATCH);
	struct engine *engine = bench.engine;
	struct engine_ref refs[100];
	char path[32];

	(void)state;
	declare(engine, "m", (struct engine_metric){ .expire_after_ns = SECOND });
	for (int i = 0; i < 100; i++) {
		(void)snprintf(path, sizeof(path), "m/%d", i);
		refs[i] = intern(engine, path);
	}
	assert_int_equal(engine_expire(engine, 0, 1000), 0);
	/* Every third one stays. */
	for (int i = 0; i < 100; i += 3) {
		add(bench.workers[0], refs[i], 1);
	}
	for (int i = 0; i < 60; i++) {
		(void)engine_expire(engine, SECOND, 2);
		if (engine->sweep.resume) {
			const struct registry_cursor *at = &engine->sweep.cursor;

			grace_enter();
			assert_non_null(registry_find(engine->registry, at->path, at->len));
			grace_leave();
		}
	}
	assert_int_equal(stats(engine).counters, 1 + 34);
	/* All there are go, the first ones too: it begins anew. */
	for (int i = 0; i < 60; i++) {
		(void)engine_expire(engine, 10 * SECOND, 1);
	}
	for (int i = 0; i < 60; i++) {
		(void)engine_expire(engine, 20 * SECOND, 1);
	}
	assert_int_equal(stats(engine).counters, 1);
	bench_free(&bench);
}

static void test_clock_steps(void **state)
{
	struct engine *engine = make_engine(100, 1, 0);

	(void)state;
	declare(engine, "m", (struct engine_metric){ .expire_after_ns = 10 * SECOND });
	(void)intern(engine, "m/a");
	assert_int_equal(engine_expire(engine, 100 * SECOND, 10), 0);
	/* Back: its time starts anew. */
	assert_int_equal(engine_expire(engine, 50 * SECOND, 10), 0);
	assert_int_equal(engine_expire(engine, 59 * SECOND, 10), 0);
	assert_int_equal(engine_expire(engine, 60 * SECOND, 10), 1);
	/* As far apart as two times can be: nothing wraps. */
	(void)intern(engine, "m/a");
	assert_int_equal(engine_expire(engine, INT64_MIN, 10), 0);
	assert_int_equal(engine_expire(engine, INT64_MAX, 10), 0);
	engine_free(engine);
}

/* A path that was removed and made anew is new to expiry too. */
static void test_successor_is_not_idle(void **state)
{
	struct engine *engine = make_engine(100, 1, 0);

	(void)state;
	declare(engine, "m", (struct engine_metric){ .expire_after_ns = 10 * SECOND });
	(void)intern(engine, "m/a");
	assert_int_equal(engine_expire(engine, 0, 10), 0);
	assert_int_equal(drop(engine, "m/a"), 0);
	(void)intern(engine, "m/a");
	assert_int_equal(engine_expire(engine, 10 * SECOND, 10), 0);
	assert_int_equal(engine_expire(engine, 20 * SECOND, 10), 1);
	engine_free(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_value_moves_up),
		cmocka_unit_test(test_what_cant_be_removed),
		cmocka_unit_test(test_successor),
		cmocka_unit_test(test_generations_end),
		cmocka_unit_test(test_left_over_mark),
		cmocka_unit_test(test_only_idle_leaves_expire),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_sweep_rests_on_what_stays),
		cmocka_unit_test(test_clock_steps),
		cmocka_unit_test(test_successor_is_not_idle),
	};

	return RUN(tests);
}
