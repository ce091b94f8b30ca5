/*
 * What a charge through the engine costs, path look-up and totals included: without limits, with one plane over all of 4 levels, near a
 * max, refused, among 100,000 counters with limits, many items at once, and from two threads; and what folds cost with planes and without.
 *
 *	bench-engine-charge [ROUNDS]	an odd number; default 5
 *
 * Nanoseconds are of the thread's processor time, medians over rounds; `lock xadd` is measured in the same rounds. Whatever was granted
 * must be in the totals and in the planes afterwards: the exit status is 1 if not.
 */
#include "lib/engine/quota.h"
#include "lib/rcu/grace.h"
#include "tests/bench/measure.h"

#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHARGES 200000
#define MANY 100000
#define ITEMS 100

static unsigned n_rounds = 5;
static int status;
static const struct quota_time some_time = { .wall_ns = INT64_C(1800000000000000000),
					     .mono_ns = INT64_C(1000000000000) };

static void require(bool condition, const char *what)
{
	if (!condition) {
		(void)fprintf(stderr, "bench-engine-charge: %s\n", what);
		status = 1;
	}
}

static void must(int r, const char *what)
{
	if (r != 0) {
		(void)fprintf(stderr, "bench-engine-charge: %s: %d\n", what, r);
		exit(1);
	}
}

/* ---- an engine with limits ---- */

static struct engine *engine_with(const char *const *patterns, size_t n, int64_t max)
{
	const struct engine_options options = {
		.max_counters = 2 * MANY, .max_workers = 4, .cpus = 2, .seed = 1
	};
	struct engine *engine;
	struct engine_ref ref;

	must(engine_new(&engine, &options), "engine_new");
	must(engine_intern(engine, "m/a/b/c", 7, 1, &ref), "engine_intern");
	for (size_t i = 0; i < n; i++) {
		struct engine_rule rule = { .pattern = patterns[i],
					    .len = strlen(patterns[i]),
					    .limits = QUOTA_LIMITS_INIT };

		rule.limits.max = max;
		must(engine_rule_set(engine, &rule, some_time, NULL, NULL), "engine_rule_set");
	}
	return engine;
}

static int64_t total_of(struct engine *engine, const char *path)
{
	struct engine_reading reading;
	struct engine_view view;

	engine_refresh(engine, ENGINE_EXACT, 1, &view);
	must(engine_get(engine, path, strlen(path), &reading), "engine_get");
	return reading.total;
}

struct used {
	int64_t usage;
};

static void note_usage(void *ctx, const struct engine_explained *explained)
{
	struct used *used = ctx;

	used->usage = explained->usage;
}

/* Of the plane that comes last, the metric's. */
static int64_t usage_of(struct engine *engine, const char *path)
{
	struct used used = { .usage = -1 };

	must(engine_explain(engine, path, strlen(path), some_time, note_usage, NULL, &used),
	     "engine_explain");
	return used.usage;
}

/* ---- cases: each returns ns per charge ---- */

static double charge_n(struct engine *engine, const char *path, int expected, size_t n)
{
	const struct engine_charge_item item = { .path = path, .len = strlen(path), .n = 1 };
	const struct engine_charge charge = { .items = &item, .n = 1, .time = some_time };
	struct engine_worker *worker;
	double begin, end;
	size_t as_expected = 0;

	must(engine_join(engine, &worker), "engine_join");
	begin = measure_cpu_ns();
	for (size_t i = 0; i < n; i++) {
		as_expected += engine_charge(worker, &charge, NULL, NULL, NULL) == expected;
	}
	end = measure_cpu_ns();
	engine_leave(worker);
	require(as_expected == n, "a charge was not answered as it should");
	return (end - begin) / (double)n;
}

static double case_xadd(void)
{
	static _Alignas(64) _Atomic(int64_t) word;
	double begin = measure_cpu_ns();

	for (int i = 0; i < CHARGES; i++) {
		(void)atomic_fetch_add_explicit(&word, 1, memory_order_seq_cst);
	}
	return (measure_cpu_ns() - begin) / CHARGES;
}

static const char *const four[] = { "m", "m/a", "m/a/b", "m/a/b/c" };

static double case_path(size_t n_limits, int64_t max)
{
	struct engine *engine = engine_with(four, n_limits, max);
	double ns = charge_n(engine, "m/a/b/c", 0, CHARGES);

	require(total_of(engine, "m") == CHARGES, "what was granted is not in the totals");
	require(n_limits == 0 || usage_of(engine, "m/a/b/c") == CHARGES,
		"what was granted is not in the planes");
	(void)engine_free(engine);
	return ns;
}

static double case_refused(void)
{
	struct engine *engine = engine_with(four, 4, 0);
	double ns = charge_n(engine, "m/a/b/c", ENGINE_E_REFUSED, CHARGES);

	require(total_of(engine, "m") == 0, "a refused charge is in the totals");
	(void)engine_free(engine);
	return ns;
}

static double case_items(void)
{
	struct engine *engine = engine_with(four, 3, QUOTA_MAX_LIMIT);
	struct engine_charge_item items[ITEMS];
	struct engine_charge charge = { .items = items, .n = ITEMS, .time = some_time };
	static char paths[ITEMS][24];
	struct engine_worker *worker;
	double begin, end;

	for (int i = 0; i < ITEMS; i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "m/a/b/%d", i);
		items[i] = (struct engine_charge_item){ paths[i], strlen(paths[i]), 1 };
	}
	must(engine_join(engine, &worker), "engine_join");
	must(engine_charge(worker, &charge, NULL, NULL, NULL), "engine_charge");
	begin = measure_cpu_ns();
	for (int i = 0; i < CHARGES / ITEMS; i++) {
		must(engine_charge(worker, &charge, NULL, NULL, NULL), "engine_charge");
	}
	end = measure_cpu_ns();
	engine_leave(worker);
	require(total_of(engine, "m") == CHARGES + ITEMS, "what was granted is not in the totals");
	(void)engine_free(engine);
	return (end - begin) / CHARGES;
}

/* 100,000 counters, with a limit each from a template or not; charged in an order that no cache foresees. */
static double case_many(bool limited, double *ret_bytes)
{
	static const char *const patterns[] = { "m", "m/*/*" };
	struct engine *engine = engine_with(patterns, 1, QUOTA_MAX_LIMIT);
	struct engine_rule rule = { .pattern = "m/*/*", .len = 5, .limits = QUOTA_LIMITS_INIT };
	struct engine_charge_item item = { .n = 1 };
	const struct engine_charge charge = { .items = &item, .n = 1, .time = some_time };
	struct engine_worker *worker;
	static char paths[MANY][24];
	struct engine_ref ref;
	struct mallinfo2 before, after;
	double begin, end;

	for (int i = 0; i < MANY; i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "m/%d/%d", i % 100, i);
		must(engine_intern(engine, paths[i], strlen(paths[i]), 1, &ref), "engine_intern");
	}
	before = mallinfo2();
	rule.limits.max = QUOTA_MAX_LIMIT;
	if (limited) {
		must(engine_rule_set(engine, &rule, some_time, NULL, NULL), "engine_rule_set");
	}
	after = mallinfo2();
	*ret_bytes =
		(double)(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) / MANY;
	must(engine_join(engine, &worker), "engine_join");
	begin = measure_cpu_ns();
	for (uint32_t i = 0; i < CHARGES; i++) {
		item.path = paths[i * 2654435761u % MANY];
		item.len = strlen(item.path);
		must(engine_charge(worker, &charge, NULL, NULL, NULL), "engine_charge");
	}
	end = measure_cpu_ns();
	engine_leave(worker);
	require(total_of(engine, "m") == CHARGES, "what was granted is not in the totals");
	(void)engine_free(engine);
	return (end - begin) / CHARGES;
}

struct two {
	struct engine *engine;
	const char *path;
	double ns;
};

static void *charge_in_thread(void *ctx)
{
	struct two *two = ctx;

	grace_register();
	two->ns = charge_n(two->engine, two->path, 0, CHARGES);
	grace_unregister();
	return NULL;
}

static double case_two(void)
{
	struct engine *engine = engine_with(four, 4, QUOTA_MAX_LIMIT);
	struct two twos[] = { { engine, "m/a/b/c", 0 }, { engine, "m/a/b/c", 0 } };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++) {
		must(pthread_create(&threads[i], NULL, charge_in_thread, &twos[i]),
		     "pthread_create");
	}
	for (int i = 0; i < 2; i++) {
		(void)pthread_join(threads[i], NULL);
	}
	require(total_of(engine, "m") == 2 * CHARGES, "what was granted is not in the totals");
	(void)engine_free(engine);
	return (twos[0].ns + twos[1].ns) / 2;
}

/* Adds of a whole batch: each folds. */
static double case_fold(size_t n_limits)
{
	struct engine *engine = engine_with(four, n_limits, QUOTA_MAX_LIMIT);
	struct engine_worker *worker;
	struct engine_ref ref;
	double begin, end;

	must(engine_intern(engine, "m/a/b/c", 7, 1, &ref), "engine_intern");
	must(engine_join(engine, &worker), "engine_join");
	engine_begin(worker);
	begin = measure_cpu_ns();
	for (int i = 0; i < CHARGES; i++) {
		must(engine_add(worker, ref, 32), "engine_add");
	}
	end = measure_cpu_ns();
	engine_end(worker);
	engine_leave(worker);
	require(total_of(engine, "m") == 32 * CHARGES, "what was added is not in the totals");
	require(n_limits == 0 || usage_of(engine, "m/a/b/c") == 32 * CHARGES,
		"what was added is not in the planes");
	(void)engine_free(engine);
	return (end - begin) / CHARGES;
}

enum {
	XADD,
	NONE,
	FOUR,
	NEAR,
	REFUSED,
	EACH,
	AMONG_NONE,
	AMONG,
	TWO,
	FOLD,
	FOLD_FOUR,
	N_CASES
};

static const char *const names[N_CASES] = {
	"lock xadd",
	"charge, 4 levels, no limits",
	"charge, 4 levels, a limit at each",
	"  the same near its max",
	"  the same, refused",
	"  per item, 100 items at once, limits at 3 levels",
	"  among 100,000 counters at random, 3 levels, one limit above",
	"  the same, and a limit at each counter",
	"  two threads on one path",
	"fold of an add, 4 levels, no limits",
	"  a limit at each",
};

int main(int argc, char **argv)
{
	static double ns[N_CASES][MEASURE_MAX_ROUNDS];
	double bytes = 0, xadd;

	if (argc > 1) {
		n_rounds = (unsigned)strtoul(argv[1], NULL, 10);
	}
	if (n_rounds % 2 == 0 || n_rounds > MEASURE_MAX_ROUNDS) {
		(void)fprintf(stderr, "usage: bench-engine-charge [ROUNDS]\n");
		return 2;
	}
	grace_register();
	for (unsigned i = 0; i < n_rounds; i++) {
		ns[XADD][i] = case_xadd();
		ns[NONE][i] = case_path(0, 0);
		ns[FOUR][i] = case_path(4, QUOTA_MAX_LIMIT);
		ns[NEAR][i] = case_path(4, CHARGES);
		ns[REFUSED][i] = case_refused();
		ns[EACH][i] = case_items();
		ns[AMONG_NONE][i] = case_many(false, &bytes);
		ns[AMONG][i] = case_many(true, &bytes);
		ns[TWO][i] = case_two();
		ns[FOLD][i] = case_fold(0);
		ns[FOLD_FOUR][i] = case_fold(4);
	}
	xadd = measure_median(ns[XADD], n_rounds);
	for (int i = 0; i < N_CASES; i++) {
		double value = measure_median(ns[i], n_rounds);

		(void)printf("%-60s %8.1f ns %6.1f x\n", names[i], value, value / xadd);
	}
	(void)printf("%-60s %8.1f bytes\n", "a limit's memory", bytes);
	grace_unregister();
	return status;
}
