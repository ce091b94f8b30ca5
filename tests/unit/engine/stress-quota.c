/*
 * Quotas under threads, with yields injected between their atomic steps. Invariants by their numbers:
 *	I1  what is granted and not given back never exceeds a max, at any instant, with limits below it coming and going
 *	I2  at rest usage without a window is the total, and nothing leased is left over: whenever a limit was set, under load, it
 *	    started from the exact total, and since then has missed nothing and taken nothing twice
 *	I3  refused charges leave nothing behind
 *	I13 exact totals stay exact while the gate closes and opens: all that was added or granted before, nothing that was not begun
 *	I15 what removed counters had is in their ancestors, totals and usage, exactly once
 *	I17, I18 adds fold, and a flush finds all of them, also what was held back beyond the batch while the gate was closed
 */
#include "tests/unit/engine/quota-support.h"

#include "lib/base/hook.h"

#define RUN_NS (SECOND * 3 / 2)
#define N_ADDERS 2
#define N_CHARGERS 2
#define GROUPS 3
#define LEAVES 4
#define BATCH 16
#define HELD_MAX 40

static struct quota_time time_now(void)
{
	int64_t mono = test_now_ns();

	return (struct quota_time){ .wall_ns = mono + 1000000 * SECOND, .mono_ns = mono };
}

/* What a thread has done to metric c: written after the engine's call (done), and before it (begun). */
struct sums {
	alignas(64) _Atomic(int64_t) done;
	_Atomic(int64_t) begun;
};

struct stress {
	struct engine *engine;
	int64_t until;
	_Atomic(bool) stop;
	struct sums sums[N_ADDERS + N_CHARGERS];
	_Atomic(int64_t) held[1 + GROUPS]; /* of h and its groups: a lower bound of what is granted */
	_Atomic(int64_t) gauge;		   /* what adders have added to g */
	_Atomic(uint64_t) granted, refused, reads, changes, removals;
};

struct thread {
	pthread_t id;
	struct stress *stress;
	struct sums *sums;
	uint64_t number;
	struct test_random random;
};

static uint64_t below(struct thread *thread, uint64_t bound)
{
	return test_random_below(&thread->random, bound);
}

/* Was there something of everything? */
static bool seen_enough(const struct stress *stress)
{
	return atomic_load_explicit(&stress->granted, memory_order_relaxed) > 0 &&
	       atomic_load_explicit(&stress->changes, memory_order_relaxed) > 0 &&
	       atomic_load_explicit(&stress->removals, memory_order_relaxed) > 0 &&
	       atomic_load_explicit(&stress->reads, memory_order_relaxed) > 0;
}

static bool goes_on(const struct stress *stress)
{
	return test_goes_on(stress->until, seen_enough(stress));
}

static void bump(_Atomic(int64_t) *sum, int64_t n)
{
	(void)atomic_fetch_add_explicit(sum, n, memory_order_acq_rel);
}

/* ---- adders: to the same counters that others charge, and to a gauge ---- */

static void add_somewhere(struct thread *thread, struct engine_worker *worker)
{
	bool gauge = below(thread, 4) == 0;
	int64_t n = (int64_t)below(thread, below(thread, 8) ? 4 : 100);
	struct engine_ref ref;
	char path[32];
	int r;

	n = gauge && below(thread, 2) ? -n : n;
	(void)snprintf(path, sizeof(path), "%s/%d/%d", gauge ? "g" : "c",
		       (int)below(thread, GROUPS), (int)below(thread, LEAVES));
	if (!gauge) {
		bump(&thread->sums->begun, n);
	}
	do {
		CHECK(engine_intern(thread->stress->engine, path, strlen(path), 1, &ref) == 0);
		r = try_add(worker, ref, n);
	} while (r == ENGINE_E_GONE);
	CHECK(r == 0);
	bump(gauge ? &thread->stress->gauge : &thread->sums->done, n);
}

static void *adder(void *ctx)
{
	struct thread *thread = ctx;
	struct engine_worker *worker;

	grace_register();
	CHECK(engine_join(thread->stress->engine, &worker) == 0);
	while (goes_on(thread->stress)) {
		add_somewhere(thread, worker);
	}
	engine_leave(worker);
	grace_unregister();
	return NULL;
}

/* ---- chargers ---- */

/* c: several items at once; refusals come from the groups' limits. */
static void charge_counters(struct thread *thread, struct engine_worker *worker)
{
	struct engine_charge_item items[3];
	char paths[3][32];
	size_t n = 1 + below(thread, 3);
	int64_t sum = 0;
	int r;

	for (size_t i = 0; i < n; i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "c/%d/%d", (int)below(thread, GROUPS),
			       (int)below(thread, LEAVES));
		items[i] = (struct engine_charge_item){ paths[i], strlen(paths[i]),
							1 + (int64_t)below(thread, 20) };
		sum += items[i].n;
	}
	bump(&thread->sums->begun, sum);
	r = charge_items(worker, items, n, time_now(), false, NULL, NULL);
	CHECK(r == 0 || r == ENGINE_E_REFUSED);
	if (r == 0) {
		bump(&thread->sums->done, sum);
	} else {
		/* Readers may allow for more than was begun, never for less. */
		(void)atomic_fetch_add_explicit(&thread->stress->refused, 1, memory_order_relaxed);
	}
}

static void lease_counters(struct thread *thread, struct engine_worker *worker)
{
	int64_t granted, part;
	char path[32];
	int r;

	(void)snprintf(path, sizeof(path), "c/%d/%d", (int)below(thread, GROUPS),
		       (int)below(thread, LEAVES));
	bump(&thread->sums->begun, 30);
	r = engine_lease(worker, path, strlen(path), 30, time_now(), NULL, NULL, &granted);
	CHECK(r == 0 || r == ENGINE_E_REFUSED);
	for (; r == 0 && granted > 0; granted -= part) {
		part = 1 + (int64_t)below(thread, (uint64_t)granted);
		CHECK(engine_lease_spend(worker, path, strlen(path), part, time_now()) == 0);
		bump(&thread->sums->done, part);
	}
}

static void check_held(struct stress *stress, size_t i, int64_t n, int64_t max)
{
	int64_t held = atomic_fetch_add_explicit(&stress->held[i], n, memory_order_seq_cst) + n;

	CHECK(held <= max);
}

/* h: nothing but charges, so what is held is known. */
static void hold(struct thread *thread, struct engine_worker *worker)
{
	struct stress *stress = thread->stress;
	int64_t n = 1 + (int64_t)below(thread, HELD_MAX);
	size_t group = below(thread, GROUPS);
	bool lease = below(thread, 4) == 0;
	char path[32];
	int r;

	(void)snprintf(path, sizeof(path), "h/%d/%d", (int)group, (int)below(thread, 2));
	r = lease ? engine_lease(worker, path, strlen(path), n, time_now(), NULL, NULL, &n)
		  : charge_at(worker, path, n, time_now(), NULL);
	CHECK(r == 0 || r == ENGINE_E_REFUSED);
	if (r != 0) {
		return;
	}
	(void)atomic_fetch_add_explicit(&stress->granted, 1, memory_order_relaxed);
	check_held(stress, 0, n, HELD_MAX);
	check_held(stress, 1 + group, n, HELD_MAX / 2);
	(void)sched_yield();
	bump(&stress->held[0], -n);
	bump(&stress->held[1 + group], -n);
	if (lease && below(thread, 2)) {
		CHECK(engine_lease_return(worker, path, strlen(path), n, time_now()) == 0);
		return;
	}
	if (lease) {
		CHECK(engine_lease_spend(worker, path, strlen(path), n, time_now()) == 0);
	}
	CHECK(engine_uncharge(worker, path, strlen(path), n, time_now()) == 0);
}

static void *charger(void *ctx)
{
	struct thread *thread = ctx;
	struct engine_worker *worker;

	grace_register();
	CHECK(engine_join(thread->stress->engine, &worker) == 0);
	while (goes_on(thread->stress)) {
		uint64_t what = below(thread, 10);

		if (what < 5) {
			charge_counters(thread, worker);
		} else if (what < 6) {
			lease_counters(thread, worker);
		} else {
			hold(thread, worker);
		}
	}
	engine_leave(worker);
	grace_unregister();
	return NULL;
}

/* ---- limits come and go ---- */

static void change_rule(struct thread *thread)
{
	static const char *const patterns[] = { "c",	 "c/0",	  "c/1", "c/*",	  "c/*/*",
						"c/0/1", "g",	  "g/*", "g/1/0", "g/2/*",
						"h/0/0", "h/*/*", "h/1", "c/**" };
	struct engine *engine = thread->stress->engine;
	const char *pattern = patterns[below(thread, sizeof(patterns) / sizeof(patterns[0]))];
	struct engine_rule rule = rule_max(pattern, (int64_t)below(thread, 2000000));
	int r;

	if (*pattern == 'h') {
		rule.limits.max = HELD_MAX / 2;
		rule.limits.low = 5;
	}
	if (below(thread, 3) == 0) {
		rule.window = (struct window){ .kind = WINDOW_PER, .duration_ns = SECOND };
		rule.limits.low = 0;
	} else if (below(thread, 4) == 0) {
		rule = rule_rate(pattern, 1000000, 1000);
	}
	r = below(thread, 2)
		    ? engine_rule_set(engine, &rule, time_now(), NULL, NULL)
		    : engine_rule_remove(engine, pattern, strlen(pattern),
					 below(thread, 2) ? NULL : &rule.window, time_now());
	CHECK(r == 0 || r == ENGINE_E_NOT_FOUND || r == ENGINE_E_RULE);
}

/* The file says nothing of h but what always holds. */
static void change_file(struct thread *thread)
{
	struct engine_rule rules[] = { rule_max("h", HELD_MAX), rule_max("h/*", HELD_MAX / 2),
				       rule_max("c/2", 1000), rule_per("c/*/3", 1000, 1),
				       rule_max("g/*", 0) };
	size_t n = 2 + below(thread, 4);

	CHECK(engine_rules_replace(thread->stress->engine, rules, n, time_now(), NULL, NULL) == 0);
}

static void *setter(void *ctx)
{
	struct thread *thread = ctx;

	grace_register();
	while (goes_on(thread->stress)) {
		if (below(thread, 5) == 0) {
			change_file(thread);
		} else {
			change_rule(thread);
		}
		(void)atomic_fetch_add_explicit(&thread->stress->changes, 1, memory_order_relaxed);
	}
	grace_unregister();
	return NULL;
}

static void *remover(void *ctx)
{
	struct thread *thread = ctx;

	grace_register();
	while (goes_on(thread->stress)) {
		char path[32];
		int r;

		(void)snprintf(path, sizeof(path), "%s/%d/%d", below(thread, 3) ? "c" : "g",
			       (int)below(thread, GROUPS), (int)below(thread, LEAVES));
		r = drop(thread->stress->engine, path);
		CHECK(r == 0 || r == ENGINE_E_NOT_FOUND || r == ENGINE_E_BUSY);
		if (r == 0) {
			(void)atomic_fetch_add_explicit(&thread->stress->removals, 1,
							memory_order_relaxed);
		}
	}
	grace_unregister();
	return NULL;
}

/* ---- readers ---- */

static int64_t sum_of(const struct stress *stress, bool begun)
{
	int64_t sum = 0;

	for (int i = 0; i < N_ADDERS + N_CHARGERS; i++) {
		sum += atomic_load_explicit(begun ? &stress->sums[i].begun : &stress->sums[i].done,
					    memory_order_acquire);
	}
	return sum;
}

static void ignore_explained(void *ctx, const struct engine_explained *is)
{
	CHECK(is->effective_min >= 0 && is->effective_low >= 0);
	(void)ctx;
}

static void ignore_sibling(void *ctx, const struct engine_sibling *is)
{
	CHECK(is->effective_low >= 0);
	(void)ctx;
}

static void *reader(void *ctx)
{
	struct thread *thread = ctx;
	struct stress *stress = thread->stress;
	int64_t last = 0;

	grace_register();
	while (goes_on(stress)) {
		struct engine_reading reading;
		struct engine_view view;
		int64_t least = sum_of(stress, false);
		bool fresh = below(thread, 2);

		engine_refresh(stress->engine, fresh ? ENGINE_FRESH : ENGINE_EXACT, 1, &view);
		CHECK(engine_get(stress->engine, "c", 1, &reading) == 0);
		CHECK(reading.total >= least - view.error_bound);
		CHECK(reading.total <= sum_of(stress, true));
		CHECK(reading.total >= last);
		last = reading.total;
		CHECK(engine_get(stress->engine, "h", 1, &reading) == 0);
		CHECK(reading.total <= HELD_MAX && reading.total >= 0);
		(void)engine_explain(stress->engine, "h/0/0", 5, time_now(), ignore_explained,
				     ignore_sibling, NULL);
		(void)atomic_fetch_add_explicit(&stress->reads, 1, memory_order_relaxed);
	}
	grace_unregister();
	return NULL;
}

/* ---- at rest ---- */

struct rest {
	struct engine *engine;
	int64_t sums[512]; /* of the children's totals, by id */
};

static void check_entry(void *ctx, const struct engine_entry *entry)
{
	struct engine *engine = ctx;
	char path[64];
	int64_t used;

	(void)snprintf(path, sizeof(path), "%.*s", (int)entry->len, entry->path);
	used = usage(engine, path);
	if (plane_find(&engine->planes, intern(engine, path).id, 0) || used != -1) {
		struct limit *limit = plane_first(&engine->planes, intern(engine, path).id);

		while (limit && limit->node.kind != WINDOW_NONE) {
			limit = plane_next(limit);
		}
		if (limit && used != entry->reading.total) {
			(void)fprintf(stderr, "%s: usage %lld total %lld\n", path, (long long)used,
				      (long long)entry->reading.total);
			abort();
		}
	}
	assert_int_equal(plane_ahead(&engine->planes, intern(engine, path).id), 0);
}

/* The claims of a plane's children are the sum their parent has (I7). */
static void check_claims(struct engine *engine, const char *path, int children)
{
	struct limit *limit = plane_first(&engine->planes, intern(engine, path).id);
	int64_t sum = 0;

	for (int i = 0; i < children; i++) {
		char child[32];
		struct limit *at;

		(void)snprintf(child, sizeof(child), "%s/%d", path, i);
		at = plane_first(&engine->planes, intern(engine, child).id);
		for (; at; at = plane_next(at)) {
			if (atomic_load_explicit(&at->node.parent, memory_order_relaxed) ==
			    &limit->node) {
				sum += atomic_load_explicit(&at->node.low_used,
							    memory_order_relaxed);
			}
		}
	}
	assert_int_equal(atomic_load_explicit(&limit->node.children_low, memory_order_relaxed),
			 sum);
}

static void start(struct stress *stress, struct thread *thread, uint64_t number,
		  void *(*run)(void *))
{
	*thread = (struct thread){ .stress = stress, .number = number };
	thread->sums = number < N_ADDERS + N_CHARGERS ? &stress->sums[number] : NULL;
	test_random_init(&thread->random, number);
	assert_int_equal(pthread_create(&thread->id, NULL, run, thread), 0);
}

static void run(void)
{
	static struct stress stress;
	struct thread threads[N_ADDERS + N_CHARGERS + 3];
	struct engine_rule file[] = { rule_max("h", HELD_MAX), rule_max("h/*", HELD_MAX / 2) };
	struct engine_cursor cursor = { .len = 0 };
	size_t n = 0;
	bool done;

	stress = (struct stress){ .engine = make_engine(1000, 8, BATCH) };
	declare(stress.engine, "g", GAUGE);
	declare(stress.engine, "h", GAUGE);
	(void)intern(stress.engine, "c");
	(void)intern(stress.engine, "h");
	assert_int_equal(engine_rules_replace(stress.engine, file, 2, time_now(), NULL, NULL), 0);
	stress.until = test_now_ns() + RUN_NS;
	for (; n < N_ADDERS; n++) {
		start(&stress, &threads[n], n, adder);
	}
	for (; n < N_ADDERS + N_CHARGERS; n++) {
		start(&stress, &threads[n], n, charger);
	}
	start(&stress, &threads[n], n, setter);
	n++;
	start(&stress, &threads[n], n, remover);
	n++;
	start(&stress, &threads[n], n, reader);
	n++;
	while (n > 0) {
		assert_int_equal(pthread_join(threads[--n].id, NULL), 0);
	}

	/* I18, I15, I3 */
	assert_int_equal(exact(stress.engine, "c"), sum_of(&stress, false));
	assert_int_equal(exact(stress.engine, "g"),
			 atomic_load_explicit(&stress.gauge, memory_order_relaxed));
	assert_int_equal(exact(stress.engine, "h"), 0);
	/* I2 */
	assert_int_equal(engine_walk(stress.engine, "", 0, UINT32_MAX, 10000, &cursor, check_entry,
				     stress.engine, &done),
			 0);
	assert_true(done);
	check_claims(stress.engine, "h", GROUPS);
	(void)fprintf(stderr,
		      "granted %d refused %d changes %d gates %d removals %d reads %d flushes %d\n",
		      (int)stress.granted, (int)stress.refused, (int)stress.changes,
		      (int)stats(stress.engine).gates_closed, (int)stress.removals,
		      (int)stress.reads, (int)stats(stress.engine).charge_flushes);
	assert_true(seen_enough(&stress));
	(void)engine_free(stress.engine);
}

static void test_all_at_once(void **state)
{
	(void)state;
#ifdef RATION_HOOKS
	ration_hook_seed(test_seed());
#endif
	run();
}

/* ---- counters that expire while somebody charges them ---- */

#define EXPIRING_MAX 5

struct expiring {
	struct engine *engine;
	int64_t until;
	_Atomic(uint64_t) rounds;
	_Atomic(bool) stop;
};

static bool expiring_goes_on(const struct expiring *expiring)
{
	uint64_t expired = stats(expiring->engine).expired;

	return test_goes_on(expiring->until,
			    expired > 100 && atomic_load_explicit(&expiring->rounds,
								  memory_order_relaxed) > 100);
}

static void *expirer(void *ctx)
{
	struct expiring *expiring = ctx;

	grace_register();
	for (int64_t now = 1; !atomic_load_explicit(&expiring->stop, memory_order_relaxed); now++) {
		(void)engine_expire(expiring->engine, now, 1000);
	}
	grace_unregister();
	return NULL;
}

/* What was granted is held until it is given back, and what a window granted it has granted until it is over. */
static void *charge_expiring(void *ctx)
{
	struct expiring *expiring = ctx;
	struct engine_worker *worker;
	uint64_t round;

	grace_register();
	CHECK(engine_join(expiring->engine, &worker) == 0);
	while (expiring_goes_on(expiring)) {
		char path[32];
		int64_t units;

		round = atomic_fetch_add_explicit(&expiring->rounds, 1, memory_order_relaxed);
		(void)snprintf(path, sizeof(path), "g/%d", (int)(round % 2));
		CHECK(charge(worker, path, 1) == 0);
		CHECK(engine_uncharge(worker, path, strlen(path), 1, at(1000)) == 0);
		(void)snprintf(path, sizeof(path), "g/l%d", (int)(round % 2));
		CHECK(engine_lease(worker, path, strlen(path), 1, at(1000), NULL, NULL, &units) ==
		      0);
		CHECK(engine_lease_spend(worker, path, strlen(path), 1, at(1000)) == 0);
		CHECK(engine_uncharge(worker, path, strlen(path), 1, at(1000)) == 0);
		(void)snprintf(path, sizeof(path), "c/%d", (int)(round % 2));
		CHECK(engine_lease(worker, path, strlen(path), 3, at(1000), NULL, NULL, &units) ==
			      0 &&
		      units == 3);
		CHECK(engine_lease_spend(worker, path, strlen(path), 1, at(1000)) == 0);
		CHECK(engine_lease_forfeit(worker, path, strlen(path), 2, at(1000)) == 0);
		(void)snprintf(path, sizeof(path), "w/%d", (int)(round % 30000));
		for (int i = 0; i <= EXPIRING_MAX; i++) {
			int r = charge(worker, path, 1);

			CHECK(round >= 30000 || r == (i < EXPIRING_MAX ? 0 : ENGINE_E_REFUSED));
		}
	}
	engine_leave(worker);
	grace_unregister();
	return NULL;
}

static void test_charges_of_what_expires(void **state)
{
	struct expiring expiring = { .engine = make_engine(100000, 2, BATCH),
				     .until = test_now_ns() + RUN_NS };
	pthread_t expiry, chargers[2];
	int64_t spent;

	(void)state;
#ifdef RATION_HOOKS
	ration_hook_seed(test_seed());
#endif
	declare(expiring.engine, "g",
		(struct engine_metric){ .kind = ENGINE_GAUGE, .expire_after_ns = 1 });
	declare(expiring.engine, "w", (struct engine_metric){ .expire_after_ns = 1 });
	declare(expiring.engine, "c", (struct engine_metric){ .expire_after_ns = 1 });
	set_max(expiring.engine, "c", INT64_C(1) << 40);
	set_max(expiring.engine, "g/*", 1000);
	set_rule(expiring.engine, rule_per("w/*", EXPIRING_MAX, 100000));
	assert_int_equal(pthread_create(&expiry, NULL, expirer, &expiring), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&chargers[i], NULL, charge_expiring, &expiring), 0);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(chargers[i], NULL), 0);
	}
	atomic_store_explicit(&expiring.stop, true, memory_order_relaxed);
	assert_int_equal(pthread_join(expiry, NULL), 0);
	assert_int_equal(exact(expiring.engine, "g"), 0);
	assert_int_equal(plane_ahead(&expiring.engine->planes, intern(expiring.engine, "g").id), 0);
	/* Of every 3 units 1 was spent, and nothing of the rest is in the way. */
	spent = exact(expiring.engine, "c");
	assert_int_equal(spent, expiring.rounds);
	assert_int_equal(usage(expiring.engine, "c"), 3 * spent);
	assert_int_equal(plane_ahead(&expiring.engine->planes, intern(expiring.engine, "c").id),
			 2 * spent);
	for (int i = 0; i < 2; i++) {
		int r = drop(expiring.engine, i == 0 ? "c/0" : "c/1");

		assert_true(r == 0 || r == ENGINE_E_NOT_FOUND);
	}
	assert_int_equal(plane_leased(&expiring.engine->planes, intern(expiring.engine, "c").id),
			 0);
	(void)engine_free(expiring.engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_charges_of_what_expires),
		cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_all_at_once),
	};

	return RUN(tests);
}
