/*
 * The engine under threads, with yields injected between its atomic steps. Invariants by their numbers:
 *	I13 successive reads of own, and of exact totals, never decrease in a metric that only grows; a cached total lacks no
 *	    more than its bound
 *	I15 no add succeeds on a counter whose removal has returned, and what it had is in its ancestors exactly once
 *	I17 folds do happen: after adds that nobody reads or flushes, a total lacks at most workers x what a slot may hold back
 *	I18 after the last add and with nothing else going on, a flush makes totals exact
 *
 * Each thread keeps what it did in words of its own that it writes after (added) or before (begun) the engine's call; a reader loads them
 * before (added) and after (begun) it reads the engine, so what it reads must lie in between.
 */
#include "tests/unit/engine/support.h"

#include <stdlib.h>

#include "lib/base/hook.h"

#define RUN_NS (SECOND * 6 / 5)
#define N_ADDERS 3
#define N_LEAVES 60
#define N_GROUPS 3
#define BATCH 16

struct sums {
	alignas(64) _Atomic(int64_t) added[N_LEAVES];
	_Atomic(int64_t) begun[N_LEAVES];
};

struct stress {
	struct engine *engine;
	const char *metric;
	bool gauge;
	int64_t until;
	_Atomic(bool) stop;
	struct sums sums[N_ADDERS];
};

struct thread {
	pthread_t id;
	struct stress *stress;
	uint64_t number;
	struct test_random random;
};

static void leaf_path(const struct stress *stress, uint64_t leaf, char path[32])
{
	(void)snprintf(path, 32, "%s/%d/%d", stress->metric, (int)(leaf % N_GROUPS), (int)leaf);
}

static int64_t sum_added(struct stress *stress, uint64_t leaf)
{
	int64_t sum = 0;

	for (int i = 0; i < N_ADDERS; i++) {
		sum += atomic_load_explicit(&stress->sums[i].added[leaf], memory_order_acquire);
	}
	return sum;
}

static int64_t sum_begun(struct stress *stress, uint64_t leaf)
{
	int64_t sum = 0;

	for (int i = 0; i < N_ADDERS; i++) {
		sum += atomic_load_explicit(&stress->sums[i].begun[leaf], memory_order_acquire);
	}
	return sum;
}

static int64_t all(struct stress *stress, int64_t (*sum)(struct stress *, uint64_t))
{
	int64_t total_sum = 0;

	for (uint64_t leaf = 0; leaf < N_LEAVES; leaf++) {
		total_sum += sum(stress, leaf);
	}
	return total_sum;
}

static bool over(struct stress *stress)
{
	return atomic_load_explicit(&stress->stop, memory_order_relaxed) ||
	       test_now_ns() > stress->until;
}

/* ---- adders ---- */

static int64_t amount(struct thread *thread)
{
	uint64_t kind = test_random_below(&thread->random, 20);
	int64_t n = (int64_t)test_random_below(&thread->random, kind == 0 ? 1000 : 3);

	return thread->stress->gauge && (test_random_next(&thread->random) & 1) ? -n : n;
}

static void note(_Atomic(int64_t) *word, int64_t n)
{
	atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + n,
			      memory_order_release);
}

/* Adds to random leaves, and now and then leaves and comes back, perhaps in another's seat. */
static void *adder(void *ctx)
{
	struct thread *thread = ctx;
	struct stress *stress = thread->stress;
	struct sums *sums = &stress->sums[thread->number];
	struct engine_ref refs[N_LEAVES];
	struct engine_worker *worker;
	char path[32];

	grace_register();
	test_random_init(&thread->random, thread->number);
	for (uint64_t i = 0; i < N_LEAVES; i++) {
		leaf_path(stress, i, path);
		CHECK(engine_intern(stress->engine, path, strlen(path), 0, &refs[i]) == 0);
	}
	while (!over(stress)) {
		CHECK(engine_join(stress->engine, &worker) == 0);
		for (uint64_t n = test_random_below(&thread->random, 400); n > 0; n--) {
			uint64_t leaf = test_random_below(&thread->random, N_LEAVES);
			int64_t k = amount(thread);

			note(&sums->begun[leaf], k);
			engine_begin(worker);
			CHECK(engine_add(worker, refs[leaf], k) == 0);
			engine_end(worker);
			note(&sums->added[leaf], k);
		}
		engine_leave(worker);
	}
	grace_unregister();
	return NULL;
}

/* ---- readers ---- */

static enum engine_consistency any_consistency(struct thread *thread)
{
	return (enum engine_consistency)test_random_below(&thread->random, 3);
}

/* I13: own never decreases, is never ahead of the total, and lies between what was added before, within the bound, and what was begun after. */
static void *own_reader(void *ctx)
{
	struct thread *thread = ctx;
	struct stress *stress = thread->stress;
	int64_t last[N_LEAVES] = { 0 };
	char path[32];

	grace_register();
	test_random_init(&thread->random, 100 + thread->number);
	while (!over(stress)) {
		uint64_t leaf = test_random_below(&thread->random, N_LEAVES);
		int64_t before = sum_added(stress, leaf);
		struct engine_reading reading;
		struct engine_view view;
		int r;

		leaf_path(stress, leaf, path);
		engine_refresh(stress->engine, any_consistency(thread), test_now_ns(), &view);
		r = engine_get(stress->engine, path, strlen(path), &reading);
		if (r == ENGINE_E_NOT_FOUND && last[leaf] == 0) {
			continue;
		}
		CHECK(r == 0);
		CHECK(reading.own >= last[leaf]);
		CHECK(reading.own >= before - view.error_bound);
		CHECK(reading.own <= reading.total);
		CHECK(reading.own <= sum_begun(stress, leaf));
		last[leaf] = reading.own;
	}
	grace_unregister();
	return NULL;
}

/* Each consistency keeps its word, for single counters and for the sum of all; exact totals never decrease (I13). */
static void *total_reader(void *ctx)
{
	struct thread *thread = ctx;
	struct stress *stress = thread->stress;
	int64_t last_exact = 0;
	char path[32];

	grace_register();
	test_random_init(&thread->random, 200 + thread->number);
	while (!over(stress)) {
		enum engine_consistency consistency = any_consistency(thread);
		uint64_t leaf = test_random_below(&thread->random, N_LEAVES);
		int64_t all_before = all(stress, sum_added), one_before = sum_added(stress, leaf);
		struct engine_reading reading;
		struct engine_view view;
		int64_t sum;

		engine_refresh(stress->engine, consistency, test_now_ns(), &view);
		if (engine_get(stress->engine, stress->metric, strlen(stress->metric), &reading) !=
		    0) {
			continue;
		}
		sum = reading.total;
		CHECK(sum >= all_before - view.error_bound);
		CHECK(sum <= all(stress, sum_begun));
		leaf_path(stress, leaf, path);
		if (engine_get(stress->engine, path, strlen(path), &reading) == 0) {
			CHECK(reading.total >= one_before - view.error_bound);
			CHECK(reading.total <= sum_begun(stress, leaf));
		}
		if (consistency == ENGINE_EXACT) {
			CHECK(view.error_bound == 0);
			CHECK(sum >= last_exact);
			last_exact = sum;
		}
	}
	grace_unregister();
	return NULL;
}

struct walk_sum {
	int64_t own;
	size_t n;
};

static void add_own(void *ctx, const struct engine_entry *entry)
{
	struct walk_sum *sum = ctx;

	sum->own += entry->reading.own;
	sum->n++;
}

/* What all nodes have of their own, summed while adds go on: never less than before, in the same order of reading. */
static void *walker(void *ctx)
{
	struct thread *thread = ctx;
	struct stress *stress = thread->stress;
	int64_t last = 0;

	grace_register();
	test_random_init(&thread->random, 300 + thread->number);
	while (!over(stress)) {
		int64_t before = all(stress, sum_added);
		struct engine_cursor cursor = { 0 };
		struct walk_sum sum = { 0 };
		struct engine_view view;
		bool done = false;

		engine_refresh(stress->engine, any_consistency(thread), test_now_ns(), &view);
		while (!done) {
			CHECK(engine_walk(stress->engine, "", 0, UINT32_MAX, 5, &cursor, add_own,
					  &sum, &done) == 0);
		}
		CHECK(sum.own >= last);
		CHECK(sum.own >= before - view.error_bound);
		CHECK(sum.own <= all(stress, sum_begun));
		last = sum.own;
	}
	grace_unregister();
	return NULL;
}

static void *flusher(void *ctx)
{
	struct thread *thread = ctx;
	struct stress *stress = thread->stress;

	grace_register();
	while (!over(stress)) {
		engine_flush(stress->engine, test_now_ns());
		ration_hook();
	}
	grace_unregister();
	return NULL;
}

static void start(struct thread *thread, struct stress *stress, uint64_t number,
		  void *(*run)(void *))
{
	*thread = (struct thread){ .stress = stress, .number = number };
	assert_int_equal(pthread_create(&thread->id, NULL, run, thread), 0);
}

static void join(struct thread *threads, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(pthread_join(threads[i].id, NULL), 0);
	}
}

/* With nothing going on: all totals are what was added. */
static void check_exact(struct stress *stress)
{
	int64_t sum = 0;
	char path[32];

	(void)refresh(stress->engine, ENGINE_EXACT, 0);
	for (uint64_t leaf = 0; leaf < N_LEAVES; leaf++) {
		leaf_path(stress, leaf, path);
		assert_int_equal(total(stress->engine, path), sum_added(stress, leaf));
		assert_int_equal(own(stress->engine, path), sum_added(stress, leaf));
		sum += sum_added(stress, leaf);
	}
	assert_int_equal(total(stress->engine, stress->metric), sum);
}

static struct stress stress_new(const char *metric, bool gauge, uint32_t batch)
{
	struct stress stress = { .engine = make_engine(100, N_ADDERS, batch),
				 .metric = metric,
				 .gauge = gauge,
				 .until = test_now_ns() + RUN_NS };

	ration_hook_seed(test_seed());
	declare(stress.engine, metric,
		(struct engine_metric){ .kind = gauge ? ENGINE_GAUGE : ENGINE_COUNTER });
	return stress;
}

static void test_adds_and_reads(void **state)
{
	static struct stress stress;
	struct thread threads[N_ADDERS + 5];

	(void)state;
	stress = stress_new("m", false, BATCH);
	for (uint64_t i = 0; i < N_ADDERS; i++) {
		start(&threads[i], &stress, i, adder);
	}
	start(&threads[N_ADDERS], &stress, 0, own_reader);
	start(&threads[N_ADDERS + 1], &stress, 1, total_reader);
	start(&threads[N_ADDERS + 2], &stress, 2, total_reader);
	start(&threads[N_ADDERS + 3], &stress, 3, walker);
	start(&threads[N_ADDERS + 4], &stress, 4, flusher);
	join(threads, N_ADDERS + 5);
	check_exact(&stress);
	engine_free(stress.engine);
}

/* Much is held back, so that the bound of FRESH is what pending says, and a flush that it didn't wait for would show. */
static void test_large_batch(void **state)
{
	static struct stress stress;
	struct thread threads[N_ADDERS + 3];

	(void)state;
	stress = stress_new("m", false, 1u << 20);
	for (uint64_t i = 0; i < N_ADDERS; i++) {
		start(&threads[i], &stress, i, adder);
	}
	start(&threads[N_ADDERS], &stress, 0, total_reader);
	start(&threads[N_ADDERS + 1], &stress, 1, total_reader);
	start(&threads[N_ADDERS + 2], &stress, 2, flusher);
	join(threads, N_ADDERS + 3);
	check_exact(&stress);
	engine_free(stress.engine);
}

static void test_gauges(void **state)
{
	static struct stress stress;
	struct thread threads[N_ADDERS + 2];

	(void)state;
	stress = stress_new("g", true, BATCH);
	for (uint64_t i = 0; i < N_ADDERS; i++) {
		start(&threads[i], &stress, i, adder);
	}
	start(&threads[N_ADDERS], &stress, 0, flusher);
	start(&threads[N_ADDERS + 1], &stress, 1, flusher);
	join(threads, N_ADDERS + 2);
	check_exact(&stress);
	engine_free(stress.engine);
}

/* ---- I17, I18: bursts ---- */

struct burst {
	pthread_t id;
	struct engine_worker *worker;
	const struct engine_ref *refs;
	uint64_t stream;
	int64_t n_adds;
	int64_t added[N_LEAVES];
};

static void *burst(void *ctx)
{
	struct burst *burst = ctx;
	struct test_random random;

	grace_register();
	test_random_init(&random, burst->stream);
	for (int64_t i = 0; i < burst->n_adds; i++) {
		uint64_t leaf = test_random_below(&random, N_LEAVES);

		engine_begin(burst->worker);
		CHECK(engine_add(burst->worker, burst->refs[leaf], 1) == 0);
		engine_end(burst->worker);
		burst->added[leaf]++;
	}
	grace_unregister();
	return NULL;
}

/* Adders stop, with or without a flush going on at the end; then nobody adds any more and one flush has it all. */
static void burst_once(struct engine *engine, struct engine_worker **workers,
		       const struct engine_ref *refs, uint64_t round, struct test_random *random,
		       int64_t *sums)
{
	struct burst bursts[N_ADDERS];
	char path[32];

	for (uint64_t i = 0; i < N_ADDERS; i++) {
		bursts[i] = (struct burst){ .worker = workers[i],
					    .refs = refs,
					    .stream = round * N_ADDERS + i,
					    .n_adds = (int64_t)test_random_below(random, 300) };
		assert_int_equal(pthread_create(&bursts[i].id, NULL, burst, &bursts[i]), 0);
	}
	for (uint64_t n = test_random_below(random, 3); n > 0; n--) {
		(void)refresh(engine, n == 1 ? ENGINE_FRESH : ENGINE_EXACT, 0);
	}
	for (int i = 0; i < N_ADDERS; i++) {
		assert_int_equal(pthread_join(bursts[i].id, NULL), 0);
		for (int leaf = 0; leaf < N_LEAVES; leaf++) {
			sums[leaf] += bursts[i].added[leaf];
		}
	}
	for (int leaf = 0; leaf < N_LEAVES; leaf++) {
		(void)snprintf(path, sizeof(path), "m/%d", leaf);
		assert_in_range(sums[leaf] - total(engine, path), 0,
				N_ADDERS * SLOT_BOUND_GROWING(BATCH));
	}
	(void)refresh(engine, ENGINE_EXACT, 0);
	for (int leaf = 0; leaf < N_LEAVES; leaf++) {
		(void)snprintf(path, sizeof(path), "m/%d", leaf);
		assert_int_equal(total(engine, path), sums[leaf]);
	}
}

static void test_bursts(void **state)
{
	struct bench bench = bench_new(100, N_ADDERS, BATCH);
	struct engine_ref refs[N_LEAVES];
	int64_t sums[N_LEAVES] = { 0 };
	int64_t until = test_now_ns() + RUN_NS;
	struct test_random random;
	char path[32];

	(void)state;
	ration_hook_seed(test_seed());
	test_random_init(&random, 1000);
	for (int i = 0; i < N_LEAVES; i++) {
		(void)snprintf(path, sizeof(path), "m/%d", i);
		refs[i] = intern(bench.engine, path);
	}
	for (uint64_t round = 0; test_now_ns() < until; round++) {
		burst_once(bench.engine, bench.workers, refs, round, &random, sums);
	}
	bench_free(&bench);
}

/* ---- I15: counters removed while others hold references ---- */

#define N_SHARED 16

/* A reference that all know, and whether the removal of its counter has returned. */
struct shared {
	_Atomic(uint64_t) ref;	/* id and life; 0: none */
	_Atomic(uint64_t) dead; /* the last one that is gone */
};

struct removal_stress {
	struct engine *engine;
	int64_t until;
	struct shared shared[N_SHARED];
	_Atomic(int64_t) added[N_ADDERS], begun[N_ADDERS];
	_Atomic(uint64_t) gone, counted, removed;
};

struct removal_thread {
	pthread_t id;
	struct removal_stress *stress;
	uint64_t number;
};

/* Were counters removed, and adds refused for it, and others not? */
static bool seen_enough(const struct removal_stress *stress)
{
	return atomic_load_explicit(&stress->gone, memory_order_relaxed) > 0 &&
	       atomic_load_explicit(&stress->counted, memory_order_relaxed) > 0 &&
	       atomic_load_explicit(&stress->removed, memory_order_relaxed) > 100;
}

static bool removal_goes_on(const struct removal_stress *stress)
{
	return test_goes_on(stress->until, seen_enough(stress));
}

static uint64_t pack(struct engine_ref ref)
{
	return (uint64_t)ref.id << 32 | ref.life;
}

static void shared_path(uint64_t i, char path[32])
{
	(void)snprintf(path, 32, "m/%d/%d", (int)(i % 2), (int)i);
}

static void *add_to_shared(void *ctx)
{
	struct removal_thread *thread = ctx;
	struct removal_stress *stress = thread->stress;
	struct engine_worker *worker;
	struct test_random random;
	uint64_t remembered = 0;

	grace_register();
	test_random_init(&random, 2000 + thread->number);
	CHECK(engine_join(stress->engine, &worker) == 0);
	while (removal_goes_on(stress)) {
		struct shared *shared = &stress->shared[test_random_below(&random, N_SHARED)];
		uint64_t word = atomic_load_explicit(&shared->ref, memory_order_acquire);
		int64_t k = (int64_t)test_random_below(&random,
						       test_random_below(&random, 10) ? 4 : 100);
		bool dead;
		int r;

		/* Now and then one that was good some time ago. */
		if (test_random_below(&random, 4) == 0 && remembered != 0) {
			word = remembered;
		} else if (test_random_below(&random, 4) == 0) {
			remembered = word;
		}
		if (word == 0) {
			continue;
		}
		dead = atomic_load_explicit(&shared->dead, memory_order_acquire) == word;
		note(&stress->begun[thread->number], k);
		engine_begin(worker);
		r = engine_add(worker,
			       (struct engine_ref){ (uint32_t)(word >> 32), (uint32_t)word }, k);
		engine_end(worker);
		CHECK(r == 0 || r == ENGINE_E_GONE);
		CHECK(!dead || r == ENGINE_E_GONE);
		if (r == 0) {
			note(&stress->added[thread->number], k);
		} else {
			note(&stress->begun[thread->number], -k);
		}
		atomic_fetch_add_explicit(r == 0 ? &stress->counted : &stress->gone, 1,
					  memory_order_relaxed);
	}
	engine_leave(worker);
	grace_unregister();
	return NULL;
}

/* Removes and makes anew. One thread per half of the counters. */
static void *replace(void *ctx)
{
	struct removal_thread *thread = ctx;
	struct removal_stress *stress = thread->stress;
	struct test_random random;
	char path[32];

	grace_register();
	test_random_init(&random, 3000 + thread->number);
	while (removal_goes_on(stress)) {
		uint64_t i = test_random_below(&random, N_SHARED / 2) * 2 + thread->number;
		struct shared *shared = &stress->shared[i];
		uint64_t word = atomic_load_explicit(&shared->ref, memory_order_relaxed);
		struct engine_ref ref;

		shared_path(i, path);
		if (word != 0) {
			CHECK(engine_remove(stress->engine, path, strlen(path)) == 0);
			atomic_store_explicit(&shared->dead, word, memory_order_release);
			atomic_fetch_add_explicit(&stress->removed, 1, memory_order_relaxed);
		}
		CHECK(engine_intern(stress->engine, path, strlen(path), 0, &ref) == 0);
		CHECK(pack(ref) != word);
		atomic_store_explicit(&shared->ref, pack(ref), memory_order_release);
	}
	grace_unregister();
	return NULL;
}

/* The metric's total, exact: between what was added before and what was begun after, whatever is being removed. */
static void *read_root(void *ctx)
{
	struct removal_thread *thread = ctx;
	struct removal_stress *stress = thread->stress;
	int64_t last = 0, last_own = 0;

	grace_register();
	while (removal_goes_on(stress)) {
		enum engine_consistency consistency = thread->number ? ENGINE_EXACT : ENGINE_FRESH;
		struct engine_reading reading, group;
		struct engine_view view;
		int64_t before = 0;

		for (int i = 0; i < N_ADDERS; i++) {
			before += atomic_load_explicit(&stress->added[i], memory_order_acquire);
		}
		engine_refresh(stress->engine, consistency, test_now_ns(), &view);
		if (engine_get(stress->engine, "m", 1, &reading) != 0 ||
		    engine_get(stress->engine, "m/0", 3, &group) != 0) {
			continue;
		}
		CHECK(reading.total >= before - view.error_bound);
		CHECK(reading.total >= last);
		CHECK(group.own >= last_own);
		CHECK(group.own <= group.total);
		last = reading.total;
		last_own = group.own;
	}
	grace_unregister();
	return NULL;
}

static void *expire(void *ctx)
{
	struct removal_thread *thread = ctx;
	struct removal_stress *stress = thread->stress;

	grace_register();
	for (int64_t i = 0; removal_goes_on(stress); i++) {
		char path[32];
		struct engine_ref ref;

		(void)snprintf(path, sizeof(path), "e/%d/%d", (int)(i % 3), (int)(i % 20));
		CHECK(engine_intern(stress->engine, path, strlen(path), 0, &ref) == 0);
		(void)engine_expire(stress->engine, i, 7);
	}
	grace_unregister();
	return NULL;
}

static void removal_start(struct removal_thread *thread, struct removal_stress *stress,
			  uint64_t number, void *(*run)(void *))
{
	*thread = (struct removal_thread){ .stress = stress, .number = number };
	assert_int_equal(pthread_create(&thread->id, NULL, run, thread), 0);
}

static void add_exact(void *ctx, const struct engine_entry *entry)
{
	struct walk_sum *sum = ctx;

	if (entry->path[0] == 'm') {
		sum->own += entry->reading.own;
	}
}

static void test_removals(void **state)
{
	static struct removal_stress stress;
	struct removal_thread threads[N_ADDERS + 5];
	struct engine_cursor cursor = { 0 };
	struct walk_sum sum = { 0 };
	int64_t added = 0;
	bool done;

	(void)state;
	stress = (struct removal_stress){ .engine = make_engine(100, N_ADDERS, BATCH),
					  .until = test_now_ns() + RUN_NS };
	ration_hook_seed(test_seed());
	declare(stress.engine, "e", (struct engine_metric){ .expire_after_ns = 10 });
	for (uint64_t i = 0; i < N_ADDERS; i++) {
		removal_start(&threads[i], &stress, i, add_to_shared);
	}
	removal_start(&threads[N_ADDERS], &stress, 0, replace);
	removal_start(&threads[N_ADDERS + 1], &stress, 1, replace);
	removal_start(&threads[N_ADDERS + 2], &stress, 0, read_root);
	removal_start(&threads[N_ADDERS + 3], &stress, 1, read_root);
	removal_start(&threads[N_ADDERS + 4], &stress, 0, expire);
	for (size_t i = 0; i < N_ADDERS + 5; i++) {
		assert_int_equal(pthread_join(threads[i].id, NULL), 0);
	}
	for (int i = 0; i < N_ADDERS; i++) {
		added += atomic_load_explicit(&stress.added[i], memory_order_relaxed);
	}
	assert_int_equal(exact(stress.engine, "m"), added);
	assert_int_equal(engine_walk(stress.engine, "", 0, UINT32_MAX, 1000, &cursor, add_exact,
				     &sum, &done),
			 0);
	assert_int_equal(sum.own, added);
	assert_true(seen_enough(&stress));
	engine_free(stress.engine);
}

/* ---- turning strict under load ---- */

/* A quarter of the later ones large: 300 together give or take 15, where 129 reach the edge. */
#define N_PUSHES 500

/* Amounts of all sizes: the metric turns strict while others add and flush; what was accepted is what is counted. */
static void *push(void *ctx)
{
	struct removal_thread *thread = ctx;
	struct removal_stress *stress = thread->stress;
	struct engine_ref ref;
	struct engine_worker *worker;
	struct test_random random;
	char path[32];

	grace_register();
	test_random_init(&random, 4000 + thread->number);
	CHECK(engine_join(stress->engine, &worker) == 0);
	for (int i = 0; i < N_PUSHES; i++) {
		int64_t k = (int64_t)test_random_below(&random, 5);
		int r;

		if (i > 100 && test_random_below(&random, 4) == 0) {
			k = (int64_t)(STRICT_AMOUNT - 1);
		}
		shared_path(test_random_below(&random, N_SHARED), path);
		CHECK(engine_intern(stress->engine, path, strlen(path), 0, &ref) == 0);
		engine_begin(worker);
		r = engine_add(worker, ref, k);
		engine_end(worker);
		CHECK(r == 0 || r == ENGINE_E_OVERFLOW);
		if (r == 0) {
			note(&stress->added[thread->number], k);
		}
	}
	engine_leave(worker);
	grace_unregister();
	return NULL;
}

static void *flush_on(void *ctx)
{
	struct removal_thread *thread = ctx;
	struct removal_stress *stress = thread->stress;

	grace_register();
	while (atomic_load_explicit(&stress->gone, memory_order_relaxed) == 0) {
		engine_flush(stress->engine, 0);
		ration_hook();
	}
	grace_unregister();
	return NULL;
}

static void test_turning_strict(void **state)
{
	static struct removal_stress stress;
	int64_t until = test_now_ns() + RUN_NS;

	(void)state;
	ration_hook_seed(test_seed());
	while (test_now_ns() < until) {
		struct removal_thread threads[N_ADDERS + 1];
		__int128 added = 0;

		stress = (struct removal_stress){ .engine = make_engine(100, N_ADDERS, BATCH) };
		for (uint64_t i = 0; i < N_ADDERS; i++) {
			removal_start(&threads[i], &stress, i, push);
		}
		removal_start(&threads[N_ADDERS], &stress, 0, flush_on);
		for (int i = 0; i < N_ADDERS; i++) {
			assert_int_equal(pthread_join(threads[i].id, NULL), 0);
			added += atomic_load_explicit(&stress.added[i], memory_order_relaxed);
		}
		atomic_store_explicit(&stress.gone, 1, memory_order_relaxed);
		assert_int_equal(pthread_join(threads[N_ADDERS].id, NULL), 0);
		assert_true(added == exact(stress.engine, "m"));
		assert_true(tree_life(&stress.engine->tree, intern(stress.engine, "m").id) &
			    LIFE_STRICT);
		engine_free(stress.engine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adds_and_reads), cmocka_unit_test(test_large_batch),
		cmocka_unit_test(test_gauges),	       cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_removals),       cmocka_unit_test(test_turning_strict),
	};

	(void)test_seed();
	return RUN(tests);
}
