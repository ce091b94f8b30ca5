/*
 * Checkpoints under threads, with yields injected between their atomic steps: workers add, charge, lease and set, others flush, remove, expire
 * and change limits, and a store takes cuts at any moment. At every checkpoint what it keeps of a metric is exactly what the workers had
 * brought when each was asked, whatever was folded, flushed, moved to a parent or lost on the way; in the end an engine restored from it is as
 * the one that was stressed.
 */
#include "tests/unit/engine/keeper.h"

#include "lib/base/hook.h"

#define RUN_NS (SECOND * 3 / 2)
#define WORKERS 3u
#define GROUPS 3
#define LEAVES 4
#define BATCH 16

/* s: set by order, which no sum tells; it is compared in the end. */
static const char *const metrics[] = { "m", "g", "e", "s" };
#define METRICS 3u

/* Whose limits change. */
static const char *const patterns[] = { "m", "m/*", "m/*/*", "g/*", "g/1/1", "e/**" };
#define PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

static struct quota_time time_now(void)
{
	int64_t mono = test_now_ns();

	return (struct quota_time){ .wall_ns = mono + 1000000 * SECOND, .mono_ns = mono };
}

struct brought {
	int64_t own, ahead;
};

struct stress;

/* A worker, and where it leaves its cut. */
struct seat {
	struct stress *stress;
	struct engine_worker *worker;
	struct test_random random;
	int64_t leased[METRICS][GROUPS][LEAVES];
	struct brought brought[METRICS];
	_Atomic(int) asked; /* 1: a cut, 2: a cut of all; 0: it is there */
	struct brought at_cut[METRICS];
	struct brought kept[METRICS]; /* the store's: when the last one that was not lost was taken */
	bool lost;
	struct keeper_cut cut;
};

struct stress {
	struct engine *engine;
	struct keeper *keeper;
	int64_t until;
	_Atomic(bool) stop;
	struct seat seats[WORKERS];
	_Atomic(uint64_t) checkpoints, lost, removals, changes, flushes;
};

struct thread {
	pthread_t id;
	struct stress *stress;
	struct test_random random;
};

static int64_t below(struct test_random *random, int64_t n)
{
	return (int64_t)test_random_below(random, (uint64_t)n);
}

static uint64_t count(const _Atomic(uint64_t) *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static bool stops(const struct stress *stress)
{
	return atomic_load_explicit(&stress->stop, memory_order_acquire);
}

/* ---- workers ---- */

struct place {
	unsigned metric;
	int group, leaf;
	char path[32];
};

static struct place place_of(unsigned metric, int group, int leaf)
{
	struct place place = { .metric = metric, .group = group, .leaf = leaf };

	(void)snprintf(place.path, sizeof(place.path), "%s/%d/%d", metrics[metric], group, leaf);
	return place;
}

static struct place random_place(struct test_random *random, unsigned n_metrics)
{
	unsigned metric = (unsigned)below(random, n_metrics);
	int group = (int)below(random, GROUPS);

	return place_of(metric, group, (int)below(random, LEAVES));
}

static void do_add(struct seat *seat)
{
	struct place place = random_place(&seat->random, METRICS);
	int64_t n = below(&seat->random, below(&seat->random, 8) ? 4 : 100);
	struct engine_ref ref;
	int r;

	n = place.metric == 1 && below(&seat->random, 2) ? -n : n;
	do {
		CHECK(engine_intern(seat->stress->engine, place.path, strlen(place.path),
				    time_now().wall_ns, &ref) == 0);
		r = try_add(seat->worker, ref, n);
	} while (r == ENGINE_E_GONE);
	CHECK(r == 0);
	seat->brought[place.metric].own += n;
}

static void do_charge(struct seat *seat)
{
	struct place place = random_place(&seat->random, METRICS);
	const struct engine_charge_item item = { place.path, strlen(place.path),
						 1 + below(&seat->random, 20) };
	const struct engine_charge charge = { .items = &item, .n = 1, .time = time_now() };
	int r = below(&seat->random, 4) ? engine_charge(seat->worker, &charge, NULL, NULL, NULL)
					: engine_charge_again(seat->worker, &charge, NULL);

	CHECK(r == 0 || r == ENGINE_E_REFUSED);
	seat->brought[place.metric].own += r == 0 ? item.n : 0;
}

static void do_uncharge(struct seat *seat)
{
	struct place place = random_place(&seat->random, METRICS);
	int64_t n = 1 + below(&seat->random, 20);

	if (engine_uncharge(seat->worker, place.path, strlen(place.path), n, time_now()) == 0) {
		seat->brought[place.metric].own -= n;
	}
}

static void do_lease(struct seat *seat)
{
	struct place place = random_place(&seat->random, METRICS);
	size_t len = strlen(place.path);
	int64_t n = 1 + below(&seat->random, 20);
	int r = below(&seat->random, 4)
			? engine_lease(seat->worker, place.path, len, n, time_now(), NULL, NULL, &n)
			: engine_lease_again(seat->worker, place.path, len, n, time_now());

	CHECK(r == 0 || r == ENGINE_E_REFUSED);
	if (r == 0) {
		seat->leased[place.metric][place.group][place.leaf] += n;
		seat->brought[place.metric].ahead += n;
	}
}

static void do_spend(struct seat *seat)
{
	struct place place = random_place(&seat->random, METRICS);
	int64_t *leased = &seat->leased[place.metric][place.group][place.leaf];
	int64_t n = below(&seat->random, *leased + 1);
	size_t len = strlen(place.path);
	int r;

	if (n == 0) {
		return;
	}
	if (below(&seat->random, 4) == 0) {
		/* They stay what it is ahead by. */
		CHECK(engine_lease_forfeit(seat->worker, place.path, len, n, time_now()) == 0);
		*leased -= n;
		return;
	}
	if (place.metric == 1 && below(&seat->random, 2)) {
		r = engine_lease_return(seat->worker, place.path, len, n, time_now());
	} else {
		r = engine_lease_spend(seat->worker, place.path, len, n, time_now());
		seat->brought[place.metric].own += n;
	}
	CHECK(r == 0);
	seat->brought[place.metric].ahead -= n;
	*leased -= n;
}

static void do_set(struct seat *seat)
{
	struct place place = random_place(&seat->random, 1);
	struct engine_ref ref;

	place.path[0] = 's';
	CHECK(engine_set(seat->worker, place.path, strlen(place.path), below(&seat->random, 50),
			 time_now()) == 0);
	if (engine_intern(seat->stress->engine, place.path, strlen(place.path), time_now().wall_ns,
			  &ref) == 0) {
		(void)try_add(seat->worker, ref, below(&seat->random, 20));
	}
}

static void cut_if_asked(struct seat *seat)
{
	int asked = atomic_load_explicit(&seat->asked, memory_order_acquire);

	if (asked) {
		keeper_cut(&seat->cut, seat->worker, asked == 2, time_now().wall_ns);
		memcpy(seat->at_cut, seat->brought, sizeof(seat->at_cut));
		atomic_store_explicit(&seat->asked, 0, memory_order_release);
	}
}

static void *work(void *ctx)
{
	static void (*const steps[])(struct seat *) = {
		do_add,	   do_add,    do_add,	   do_add,   do_add,   do_add,	 do_add, do_add,
		do_charge, do_charge, do_uncharge, do_lease, do_spend, do_spend, do_set,
	};
	struct seat *seat = ctx;

	grace_register();
	while (!stops(seat->stress)) {
		steps[below(&seat->random, sizeof(steps) / sizeof(steps[0]))](seat);
		cut_if_asked(seat);
	}
	grace_unregister();
	return NULL;
}

/* ---- others ---- */

static void *flush(void *ctx)
{
	struct thread *thread = ctx;

	grace_register();
	while (!stops(thread->stress)) {
		engine_flush(thread->stress->engine, 0);
		atomic_fetch_add_explicit(&thread->stress->flushes, 1, memory_order_relaxed);
	}
	grace_unregister();
	return NULL;
}

static void *removing(void *ctx)
{
	struct thread *thread = ctx;
	struct engine *engine = thread->stress->engine;

	grace_register();
	while (!stops(thread->stress)) {
		struct place place = random_place(&thread->random, METRICS + 1);
		size_t len = strlen(place.path) - (below(&thread->random, 8) ? 0 : 2);

		if (engine_remove(engine, place.path, len) == 0) {
			atomic_fetch_add_explicit(&thread->stress->removals, 1,
						  memory_order_relaxed);
		}
		(void)engine_expire(engine, time_now().wall_ns, 20);
	}
	grace_unregister();
	return NULL;
}

static void *changing(void *ctx)
{
	struct thread *thread = ctx;
	struct engine *engine = thread->stress->engine;

	grace_register();
	while (!stops(thread->stress)) {
		const char *pattern = patterns[below(&thread->random, PATTERNS)];
		struct engine_rule rules[] = { rule_max(pattern, below(&thread->random, 100000)),
					       rule_per(pattern, 100000, 60),
					       rule_rate(pattern, 1 + below(&thread->random, 100),
							 1000) };
		struct engine_rule *rule = &rules[below(&thread->random, 3)];

		if (below(&thread->random, 3) == 0) {
			(void)engine_rule_remove(engine, pattern, strlen(pattern), &rule->window,
						 time_now());
		} else {
			CHECK(engine_rule_set(engine, rule, time_now(), NULL, NULL) == 0);
		}
		atomic_fetch_add_explicit(&thread->stress->changes, 1, memory_order_relaxed);
	}
	grace_unregister();
	return NULL;
}

/* ---- the store ---- */

static void check_kept(const struct stress *stress)
{
	struct brought is[METRICS] = { 0 };

	for (uint32_t id = 0; id < KEEPER_IDS; id++) {
		const struct keeper_counter *counter = &stress->keeper->counters[id];

		for (uint32_t i = 0; counter->known && i < METRICS; i++) {
			if (counter->path[0] == metrics[i][0]) {
				is[i].own += counter->own;
				is[i].ahead += counter->ahead;
			}
		}
	}
	for (uint32_t w = 0; w < WORKERS; w++) {
		for (uint32_t i = 0; i < METRICS; i++) {
			is[i].own -= stress->seats[w].kept[i].own;
			is[i].ahead -= stress->seats[w].kept[i].ahead;
		}
	}
	for (uint32_t i = 0; i < METRICS; i++) {
		CHECK(is[i].own == 0 && is[i].ahead == 0);
	}
}

static void ignore_usage(void *ctx, const struct engine_usage *usage)
{
	(void)ctx;
	CHECK(usage->count >= 0);
}

static void checkpoint(struct thread *thread, bool lose)
{
	struct stress *stress = thread->stress;

	keeper_begin(stress->keeper);
	for (uint32_t w = 0; w < WORKERS; w++) {
		struct seat *seat = &stress->seats[w];

		atomic_store_explicit(&seat->asked, seat->lost ? 2 : 1, memory_order_release);
		seat->lost = false;
	}
	for (uint32_t w = 0; w < WORKERS; w++) {
		while (atomic_load_explicit(&stress->seats[w].asked, memory_order_acquire)) {
			(void)sched_yield();
		}
	}
	keeper_births(stress->keeper);
	lose = lose && stress->keeper->n_due == 0 && below(&thread->random, 8) == 0;
	for (uint32_t w = 0; w < WORKERS; w++) {
		struct seat *seat = &stress->seats[w];

		if (lose && w == 0) {
			seat->lost = true;
			atomic_fetch_add_explicit(&stress->lost, 1, memory_order_relaxed);
		} else {
			keeper_merge(stress->keeper, &seat->cut);
			memcpy(seat->kept, seat->at_cut, sizeof(seat->kept));
		}
	}
	keeper_end(stress->keeper);
	check_kept(stress);
	engine_usage_each(stress->engine, false, ignore_usage, NULL);
	atomic_fetch_add_explicit(&stress->checkpoints, 1, memory_order_relaxed);
}

static bool seen_enough(const struct stress *stress)
{
	return count(&stress->checkpoints) >= 50 && count(&stress->lost) > 0 &&
	       count(&stress->removals) > 0 && count(&stress->changes) > 0 &&
	       count(&stress->flushes) > 0;
}

/* The workers go on until it has seen enough: so that none is asked in vain. */
static void *store(void *ctx)
{
	struct thread *thread = ctx;

	grace_register();
	while (test_goes_on(thread->stress->until, seen_enough(thread->stress))) {
		checkpoint(thread, true);
	}
	atomic_store_explicit(&thread->stress->stop, true, memory_order_release);
	grace_unregister();
	return NULL;
}

/* ---- all of it ---- */

static void declare_all(struct engine *engine)
{
	declare(engine, "m", (struct engine_metric){ 0 });
	declare(engine, "g", GAUGE);
	declare(engine, "e", (struct engine_metric){ .expire_after_ns = SECOND / 100 });
}

static void copy_rule(void *ctx, const struct engine_rule *rule, enum engine_layer layer,
		      bool overridden)
{
	(void)layer;
	(void)overridden;
	assert_int_equal(engine_rule_set(ctx, rule, time_now(), NULL, NULL), 0);
}

/* A new engine has the counters that its rules name; here one may have been removed since. */
static void make_named(struct engine *engine)
{
	for (size_t i = 0; i < PATTERNS; i++) {
		struct engine_ref ref;

		if (!strchr(patterns[i], '*')) {
			assert_int_equal(engine_intern(engine, patterns[i], strlen(patterns[i]),
						       time_now().wall_ns, &ref),
					 0);
		}
	}
}

static void restore_leases(const struct seat *seat, struct engine *engine)
{
	const int64_t *leased = &seat->leased[0][0][0];

	for (unsigned i = 0; i < METRICS * GROUPS * LEAVES; i++) {
		struct place place = place_of(i / LEAVES / GROUPS, (int)(i / LEAVES % GROUPS),
					      (int)(i % LEAVES));

		CHECK(leased[i] == 0 ||
		      engine_restore_lease(engine, place.path, strlen(place.path), leased[i]) == 0);
	}
}

/* Nothing goes on any more. */
static void check_restored(struct stress *stress)
{
	struct engine *engine = make_kept(1000, WORKERS, BATCH);
	struct engine_worker *workers[WORKERS];
	struct quota_time time = time_now();

	for (uint32_t w = 0; w < WORKERS; w++) {
		workers[w] = stress->seats[w].worker;
	}
	make_named(stress->engine);
	keeper_checkpoint(stress->keeper, workers, WORKERS, true, time.wall_ns);
	keeper_checkpoint(stress->keeper, workers, WORKERS, false, time.wall_ns);
	engine_flush(stress->engine, 0);
	engine_usage_settle(stress->engine, &time);
	declare_all(engine);
	engine_rules_list(stress->engine, copy_rule, engine);
	keeper_restore(stress->keeper, engine, time);
	for (uint32_t w = 0; w < WORKERS; w++) {
		restore_leases(&stress->seats[w], engine);
	}
	keeper_same(stress->engine, engine, time);
	assert_null(engine_free(engine));
}

static void start(struct stress *stress, struct thread *thread, uint64_t number,
		  void *(*body)(void *))
{
	*thread = (struct thread){ .stress = stress };
	test_random_init(&thread->random, number);
	assert_int_equal(pthread_create(&thread->id, NULL, body, thread), 0);
}

static void test_all_at_once(void **state)
{
	static void *(*const bodies[])(void *) = { flush, removing, changing, store };
	static struct stress stress;
	struct thread threads[4];
	pthread_t ids[WORKERS];

	(void)state;
#ifdef RATION_HOOKS
	ration_hook_seed(test_seed());
#endif
	stress = (struct stress){ .engine = make_kept(1000, WORKERS, BATCH) };
	stress.keeper = keeper_new(stress.engine);
	declare_all(stress.engine);
	(void)engine_restored(stress.engine, time_now());
	stress.until = test_now_ns() + RUN_NS;
	for (uint32_t w = 0; w < WORKERS; w++) {
		struct seat *seat = &stress.seats[w];

		seat->stress = &stress;
		test_random_init(&seat->random, 100 + w);
		assert_int_equal(engine_join(stress.engine, &seat->worker), 0);
		assert_int_equal(pthread_create(&ids[w], NULL, work, seat), 0);
	}
	for (uint64_t i = 0; i < 4; i++) {
		start(&stress, &threads[i], i, bodies[i]);
	}
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i].id, NULL), 0);
	}
	for (uint32_t w = 0; w < WORKERS; w++) {
		assert_int_equal(pthread_join(ids[w], NULL), 0);
	}
	check_restored(&stress);
	(void)fprintf(stderr, "checkpoints %d lost %d told %d removals %d changes %d flushes %d\n",
		      (int)stress.checkpoints, (int)stress.lost, (int)stress.keeper->n_told,
		      (int)stress.removals, (int)stress.changes, (int)stress.flushes);
	for (uint32_t w = 0; w < WORKERS; w++) {
		engine_leave(stress.seats[w].worker);
	}
	assert_null(engine_free(stress.engine));
	free(stress.keeper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_all_at_once),
	};

	return RUN(tests);
}
