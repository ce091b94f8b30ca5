/* What is told of growth and names, and what comes back from it. */
#include "tests/unit/engine/keeper.h"

#define BATCH 8

static struct keeper_cut cut;

struct kept_bench {
	struct engine *engine;
	struct engine_worker *workers[3];
	struct keeper *keeper;
};

static struct kept_bench kept_new(uint32_t max_counters)
{
	struct kept_bench bench = { .engine = make_kept(max_counters, 3, BATCH) };

	(void)engine_restored(bench.engine, at(1000));
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(engine_join(bench.engine, &bench.workers[i]), 0);
	}
	bench.keeper = keeper_new(bench.engine);
	return bench;
}

static void kept_free(struct kept_bench *bench)
{
	for (size_t i = 0; i < 3; i++) {
		engine_leave(bench->workers[i]);
	}
	assert_null(engine_free(bench->engine));
	free(bench->keeper);
}

static void checkpoint(struct kept_bench *bench, int64_t s)
{
	keeper_checkpoint(bench->keeper, bench->workers, 3, false, s * SECOND);
}

static struct engine_growth growth_of(struct engine_worker *worker, uint32_t id)
{
	keeper_cut(&cut, worker, false, 0);
	for (size_t i = 0; i < cut.n; i++) {
		if (cut.growth[i].id == id) {
			return cut.growth[i];
		}
	}
	return (struct engine_growth){ .id = ENGINE_NO_ID };
}

#define assert_growth(growth, has_added, has_charged, is_ahead, was_taken)     \
	do {                                                                   \
		struct engine_growth is = (growth);                            \
                                                                               \
		assert_int_not_equal(is.id, ENGINE_NO_ID);                     \
		assert_int_equal((int64_t)is.added, (int64_t)(has_added));     \
		assert_int_equal((int64_t)is.charged, (int64_t)(has_charged)); \
		assert_int_equal((int64_t)is.ahead, (int64_t)(is_ahead));      \
		assert_int_equal((int64_t)is.taken, (int64_t)(was_taken));     \
	} while (0)

/* ---- cuts ---- */

static void test_adds(void **state)
{
	struct kept_bench bench = kept_new(100);
	struct engine_ref ref = intern(bench.engine, "m/a");
	struct engine_worker *worker = bench.workers[0];

	(void)state;
	assert_int_equal(growth_of(worker, ref.id).id, ENGINE_NO_ID);
	/* Held back, not flushed. */
	add(worker, ref, 3);
	assert_growth(growth_of(worker, ref.id), 3, 0, 0, 0);
	/* Flushed before it is cut, by whomever. */
	add(worker, ref, 2);
	engine_flush(bench.engine, 0);
	assert_growth(growth_of(worker, ref.id), 5, 0, 0, 0);
	assert_int_equal(growth_of(worker, ref.id).id, ENGINE_NO_ID);
	/* A batch at once: no mark but the worker's own. */
	add(worker, ref, BATCH);
	assert_growth(growth_of(worker, ref.id), 13, 0, 0, 0);
	assert_int_equal(growth_of(worker, ref.id).id, ENGINE_NO_ID);
	/* A strict metric. */
	add(worker, ref, STRICT_AMOUNT);
	assert_growth(growth_of(worker, ref.id), 13 + STRICT_AMOUNT, 0, 0, 0);
	add(worker, ref, 1);
	assert_growth(growth_of(worker, ref.id), 14 + STRICT_AMOUNT, 0, 0, 0);
	/* Each worker its own. */
	add(bench.workers[1], ref, 7);
	assert_int_equal(growth_of(worker, ref.id).id, ENGINE_NO_ID);
	assert_growth(growth_of(bench.workers[1], ref.id), 7, 0, 0, 0);
	assert_int_equal(engine_seat(bench.workers[1]), 1);
	kept_free(&bench);
}

/* The mark is set when the cut comes, taken by a flush after it, and the worker adds in between without marking anew. */
static void test_mark_across_cuts(void **state)
{
	struct kept_bench bench = kept_new(100);
	struct engine_ref ref = intern(bench.engine, "m/a");

	(void)state;
	add(bench.workers[0], ref, 1);
	assert_growth(growth_of(bench.workers[0], ref.id), 1, 0, 0, 0);
	add(bench.workers[0], ref, 1);
	engine_flush(bench.engine, 0);
	assert_growth(growth_of(bench.workers[0], ref.id), 2, 0, 0, 0);
	assert_int_equal(growth_of(bench.workers[0], ref.id).id, ENGINE_NO_ID);
	kept_free(&bench);
}

static void test_charges(void **state)
{
	struct kept_bench bench = kept_new(100);
	struct engine_worker *worker = bench.workers[0];
	struct engine_ref ref;
	int64_t granted;

	(void)state;
	declare(bench.engine, "g", GAUGE);
	set_max(bench.engine, "g/a", 1000);
	assert_int_equal(charge(worker, "g/a", 10), 0);
	ref = intern(bench.engine, "g/a");
	assert_growth(growth_of(worker, ref.id), 0, 10, 0, 10);
	assert_int_equal(growth_of(worker, ref.id).id, ENGINE_NO_ID);
	assert_int_equal(charge(worker, "g/a", 1000), ENGINE_E_REFUSED);
	assert_int_equal(growth_of(worker, ref.id).id, ENGINE_NO_ID);
	assert_int_equal(uncharge(worker, "g/a", 4), 0);
	assert_growth(growth_of(worker, ref.id), 0, 6, 0, 10);
	/* What one has charged another gives back. */
	assert_int_equal(uncharge(bench.workers[1], "g/a", 5), 0);
	assert_growth(growth_of(bench.workers[1], ref.id), 0, -5, 0, 0);

	assert_int_equal(engine_lease(worker, "g/a", 3, 20, at(1000), NULL, NULL, &granted), 0);
	assert_int_equal(granted, 20);
	assert_growth(growth_of(worker, ref.id), 0, 6, 20, 30);
	assert_int_equal(engine_lease_spend(worker, "g/a", 3, 5, at(1000)), 0);
	assert_growth(growth_of(worker, ref.id), 0, 11, 15, 30);
	assert_int_equal(engine_lease_return(worker, "g/a", 3, 8, at(1000)), 0);
	assert_growth(growth_of(worker, ref.id), 0, 11, 7, 30);
	/* What is forfeited is ahead as before. */
	assert_int_equal(engine_lease_forfeit(worker, "g/a", 3, 6, at(1000)), 0);
	assert_int_equal(growth_of(worker, ref.id).id, ENGINE_NO_ID);
	assert_int_equal(own(bench.engine, "g/a"), 6);
	assert_int_equal(usage(bench.engine, "g/a"), 13);
	kept_free(&bench);
}

static void test_lost_cut(void **state)
{
	struct kept_bench bench = kept_new(1000);
	struct engine_ref a = intern(bench.engine, "m/a"), b = intern(bench.engine, "m/b");

	(void)state;
	declare(bench.engine, "g", GAUGE);
	add(bench.workers[0], a, 3);
	assert_int_equal(charge(bench.workers[0], "g/x", 4), 0);
	engine_flush(bench.engine, 0);
	keeper_cut(&cut, bench.workers[0], false, 0);
	add(bench.workers[0], b, 5);
	keeper_checkpoint(bench.keeper, bench.workers, 3, true, 0);
	assert_int_equal(keeper_find(bench.keeper, "m/a")->own, 3);
	assert_int_equal(keeper_find(bench.keeper, "m/b")->own, 5);
	assert_int_equal(keeper_find(bench.keeper, "g/x")->own, 4);
	kept_free(&bench);
}

static void test_seat_goes_on(void **state)
{
	struct kept_bench bench = kept_new(100);
	struct engine_ref ref = intern(bench.engine, "m/a");

	(void)state;
	add(bench.workers[2], ref, 3);
	engine_leave(bench.workers[2]);
	assert_int_equal(engine_join(bench.engine, &bench.workers[2]), 0);
	assert_int_equal(engine_seat(bench.workers[2]), 2);
	add(bench.workers[2], ref, 1);
	checkpoint(&bench, 0);
	assert_int_equal(keeper_find(bench.keeper, "m/a")->own, 4);
	kept_free(&bench);
}

/* ---- names ---- */

static void test_changes(void **state)
{
	struct kept_bench bench = kept_new(100);
	struct keeper *keeper = bench.keeper;
	struct engine_ref b, c;

	(void)state;
	(void)intern(bench.engine, "m/a");
	b = intern(bench.engine, "m/a/b");
	keeper_changes(keeper);
	assert_non_null(keeper_find(keeper, "m"));
	assert_non_null(keeper_find(keeper, "m/a"));
	assert_int_equal(keeper_find(keeper, "m/a/b") - keeper->counters, b.id);
	add(bench.workers[0], b, 5);
	assert_int_equal(drop(bench.engine, "m/a/b"), 0);
	/* The last of its growth is yet to come, and its id is not used again before it has. */
	keeper_begin(keeper);
	assert_int_equal(keeper->n_due, 1);
	assert_int_equal(keeper->gone[0].id, b.id);
	c = intern(bench.engine, "m/a/c");
	assert_int_not_equal(c.id, b.id);
	keeper_cut(&cut, bench.workers[0], false, 0);
	keeper_births(keeper);
	keeper_merge(keeper, &cut);
	assert_int_equal(keeper->counters[b.id].own, 5);
	keeper_end(keeper);
	assert_int_equal(keeper_find(keeper, "m/a")->own, 5);
	assert_int_equal(own(bench.engine, "m/a"), 5);
	assert_int_equal(intern(bench.engine, "m/a/d").id, b.id);
	checkpoint(&bench, 0);
	assert_int_equal(keeper_find(keeper, "m/a/d")->own, 0);
	add(bench.workers[0], intern(bench.engine, "m/a/d"), 1);
	checkpoint(&bench, 0);
	assert_int_equal(keeper_find(keeper, "m/a/d")->own, 1);
	kept_free(&bench);
}

/* Made and removed between two looks: told both ways, in order; a whole chain of them; and what nobody ever asked for is freed. */
static void test_short_lives(void **state)
{
	struct kept_bench bench = kept_new(100);

	(void)state;
	(void)intern(bench.engine, "m/a/b");
	add(bench.workers[1], intern(bench.engine, "m/a/b"), 2);
	assert_int_equal(drop(bench.engine, "m/a/b"), 0);
	assert_int_equal(drop(bench.engine, "m/a"), 0);
	checkpoint(&bench, 0);
	assert_int_equal(keeper_find(bench.keeper, "m")->own, 2);
	assert_null(keeper_find(bench.keeper, "m/a"));
	assert_int_equal(drop(bench.engine, "m"), 0);
	checkpoint(&bench, 0);
	assert_null(keeper_find(bench.keeper, "m"));
	(void)intern(bench.engine, "m/a/b");
	assert_int_equal(drop(bench.engine, "m/a/b"), 0);
	kept_free(&bench);
}

/* Those that are gone and not done with take nobody's place. */
static void test_ceiling(void **state)
{
	struct kept_bench bench = kept_new(4);
	char path[16];

	(void)state;
	for (int i = 0; i < 4; i++) {
		for (int j = 0; j < 3; j++) {
			(void)snprintf(path, sizeof(path), "m/%d-%d", i, j);
			(void)intern(bench.engine, path);
		}
		for (int j = 0; j < 3; j++) {
			(void)snprintf(path, sizeof(path), "m/%d-%d", i, j);
			assert_int_equal(drop(bench.engine, path), 0);
		}
	}
	checkpoint(&bench, 0);
	assert_int_equal(bench.keeper->n_gone, 0);
	kept_free(&bench);
}

static void test_used_up_id(void **state)
{
	struct kept_bench bench = kept_new(100);
	struct engine_ref ref = intern(bench.engine, "m/a");
	struct life *chunk = atomic_load_explicit(
		&bench.engine->tree.lives[ref.id >> TREE_CHUNK_BITS], memory_order_relaxed);

	(void)state;
	atomic_store_explicit(&chunk[ref.id].word,
			      UINT32_MAX / LIFE_GENERATION * LIFE_GENERATION | LIFE_LIVE,
			      memory_order_relaxed);
	assert_int_equal(drop(bench.engine, "m/a"), 0);
	checkpoint(&bench, 0);
	for (int i = 0; i < 10; i++) {
		char path[16];

		(void)snprintf(path, sizeof(path), "m/%d", i);
		assert_int_not_equal(intern(bench.engine, path).id, ref.id);
	}
	kept_free(&bench);
}

static void test_without(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct keeper *keeper = keeper_new(bench.engine);
	struct engine_ref ref = intern(bench.engine, "m/a");

	(void)state;
	add(bench.workers[0], ref, BATCH);
	assert_int_equal(charge(bench.workers[0], "m/a", 1), 0);
	assert_int_equal(drop(bench.engine, "m/a"), 0);
	keeper_checkpoint(keeper, bench.workers, 1, false, 0);
	assert_int_equal(keeper->n_told, 0);
	assert_null(keeper_find(keeper, "m"));
	assert_null(bench.workers[0]->ledgers);
	assert_null(bench.workers[0]->bank.touched);
	assert_null(bench.engine->changes.events);
	assert_int_equal(intern(bench.engine, "m/b").id, ref.id);
	bench_free(&bench);
	free(keeper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adds),	     cmocka_unit_test(test_mark_across_cuts),
		cmocka_unit_test(test_charges),	     cmocka_unit_test(test_lost_cut),
		cmocka_unit_test(test_seat_goes_on), cmocka_unit_test(test_changes),
		cmocka_unit_test(test_short_lives),  cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_used_up_id),   cmocka_unit_test(test_without),
	};

	return RUN(tests);
}
