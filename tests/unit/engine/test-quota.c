/* Limits over counters: what charges and adds do to planes, and what changes of limits do to either. */
#include "tests/unit/engine/quota-support.h"

#define BATCH 32

static void test_exactly_max(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	struct answer answer;

	(void)state;
	set_max(bench.engine, "m/a", 100);
	set_max(bench.engine, "m", 1000);
	assert_int_equal(charge(worker, "m/a/x", 60), 0);
	assert_int_equal(charge(worker, "m/a/y", 40), 0);
	assert_int_equal(charge_at(worker, "m/a/x", 1, at(1000), &answer), ENGINE_E_REFUSED);
	assert_string_equal(answer.text, "max m/a (without a window) 100/100 left 0 retry -1;");
	assert_int_equal(charge(worker, "m/b", 900), 0);
	assert_int_equal(charge_at(worker, "m/a/x", 1, at(1000), &answer), ENGINE_E_REFUSED);
	assert_string_equal(answer.text, "max m/a (without a window) 100/100 left 0 retry -1;"
					 "max m (without a window) 1000/1000 left 0 retry -1;");
	/* What was granted is in the totals, at once and exactly. */
	assert_int_equal(total(bench.engine, "m/a/x"), 60);
	assert_int_equal(own(bench.engine, "m/a/x"), 60);
	assert_int_equal(total(bench.engine, "m/a"), 100);
	assert_int_equal(total(bench.engine, "m"), 1000);
	assert_int_equal(usage(bench.engine, "m"), 1000);
	assert_int_equal(stats(bench.engine).charges_granted, 3);
	assert_int_equal(stats(bench.engine).charges_refused, 2);
	bench_free(&bench);
}

/* Adds count once they have folded; near a max a charge sees to it that they have. */
static void test_adds_are_usage(void **state)
{
	struct bench bench = bench_new(100, 2, BATCH);
	struct answer answer;

	(void)state;
	set_max(bench.engine, "m/a", 100);
	add(bench.workers[0], intern(bench.engine, "m/a/x"), 20);
	add(bench.workers[1], intern(bench.engine, "m/a/y"), 20);
	assert_int_equal(usage(bench.engine, "m/a"), 0);
	assert_int_equal(charge_at(bench.workers[0], "m/a/z", 61, at(1000), &answer),
			 ENGINE_E_REFUSED);
	assert_string_equal(answer.text, "max m/a (without a window) 40/100 left 60 retry -1;");
	assert_int_equal(stats(bench.engine).charge_flushes, 1);
	assert_int_equal(charge(bench.workers[0], "m/a/z", 60), 0);
	/* Nothing is held back any more: no flush. */
	assert_int_equal(stats(bench.engine).charge_flushes, 1);
	/* Adds are never refused; past max they show as usage, and charges are. */
	add(bench.workers[0], intern(bench.engine, "m/a/x"), 500);
	assert_int_equal(exact(bench.engine, "m/a"), 600);
	assert_int_equal(usage(bench.engine, "m/a"), 600);
	assert_int_equal(charge_at(bench.workers[0], "m/a/z", 1, at(1000), &answer),
			 ENGINE_E_REFUSED);
	assert_string_equal(answer.text, "max m/a (without a window) 600/100 left 0 retry -1;");
	bench_free(&bench);
}

/* Whether a charge comes near a max is known as well where the difference is no int64 any more, and where the sum is none. */
static void test_near_at_the_ends(void **state)
{
	struct bench bench = bench_new(100, 2, BATCH);
	const struct engine_charge_item items[] = {
		{ .path = "g/a", .len = 3, .n = ENGINE_AMOUNT_MAX },
		{ .path = "g/a", .len = 3, .n = ENGINE_AMOUNT_MAX - 1 },
	};

	(void)state;
	declare(bench.engine, "g", (struct engine_metric){ .kind = ENGINE_GAUGE });
	set_max(bench.engine, "g/a", QUOTA_MAX_LIMIT);
	add(bench.workers[0], intern(bench.engine, "g/a"), -QUOTA_MAX_LIMIT);
	add(bench.workers[0], intern(bench.engine, "g/a"), -QUOTA_MAX_LIMIT);
	assert_int_equal(usage(bench.engine, "g/a"), INT64_MIN);
	add(bench.workers[1], intern(bench.engine, "m/held/back"), 1);
	assert_int_equal(charge(bench.workers[0], "g/a", 1), 0);
	assert_int_equal(stats(bench.engine).charge_flushes, 0);
	assert_int_equal(charge_items(bench.workers[0], items, 2, at(1000), false, NULL, NULL), 0);
	assert_int_equal(stats(bench.engine).charge_flushes, 1);
	assert_int_equal(usage(bench.engine, "g/a"), 0);
	bench_free(&bench);
}

static void test_many_items(void **state)
{
	struct bench bench = bench_new(30000, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	struct engine_charge_item items[] = {
		{ "m/a", 3, 5 }, { "m/b", 3, 5 },   { "n/c", 3, 7 },
		{ "m/a", 3, 1 }, { "m/a/x", 5, 1 },
	};
	static struct engine_charge_item many[10000];
	static char paths[10000][24];
	struct answer answer;
	size_t index = 99;

	(void)state;
	set_max(bench.engine, "m", 12);
	set_max(bench.engine, "m/a", 6);
	set_max(bench.engine, "n", 100);
	assert_int_equal(charge_items(worker, items, 5, at(1000), false, &answer, &index),
			 ENGINE_E_REFUSED);
	assert_string_equal(answer.text, "max m/a (without a window) 0/6 left 6 retry -1;");
	assert_int_equal(usage(bench.engine, "m"), 0);
	assert_int_equal(usage(bench.engine, "n"), 0);
	assert_int_equal(total(bench.engine, "n"), 0);
	assert_int_equal(charge_items(worker, items, 4, at(1000), false, &answer, &index), 0);
	assert_int_equal(total(bench.engine, "m/a"), 6);
	assert_int_equal(total(bench.engine, "m"), 11);
	assert_int_equal(total(bench.engine, "n/c"), 7);
	assert_int_equal(index, 99);

	for (int i = 0; i < 10000; i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "k/%d/%d", i % 10, i);
		many[i] = (struct engine_charge_item){ paths[i], strlen(paths[i]), 1 };
	}
	set_max(bench.engine, "k", 9999);
	set_max(bench.engine, "k/*", 1000);
	assert_int_equal(charge_items(worker, many, 10000, at(1000), true, &answer, NULL),
			 ENGINE_E_REFUSED);
	assert_int_equal(stats(bench.engine).counters, 6);
	assert_int_equal(charge_items(worker, many, 10000, at(1000), false, &answer, NULL),
			 ENGINE_E_REFUSED);
	assert_string_equal(answer.text, "max k (without a window) 0/9999 left 9999 retry -1;");
	assert_int_equal(usage(bench.engine, "k/3"), 0);
	set_max(bench.engine, "k", 10000);
	assert_int_equal(charge_items(worker, many, 10000, at(1000), true, &answer, NULL), 0);
	assert_int_equal(charge_items(worker, many, 10000, at(1000), false, &answer, NULL), 0);
	assert_int_equal(usage(bench.engine, "k/3"), 1000);
	assert_int_equal(total(bench.engine, "k"), 10000);
	bench_free(&bench);
}

static void test_bad_requests(void **state)
{
	struct bench bench = bench_new(10, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	struct engine_charge_item items[] = { { "m/a", 3, 1 }, { "m/b", 3, 1 } };
	static struct engine_charge_item many[10001];
	size_t index = 99;

	(void)state;
	assert_int_equal(charge(worker, "m/a", 1), ENGINE_E_NOT_FOUND);
	assert_int_equal(stats(bench.engine).counters, 0);
	(void)intern(bench.engine, "m");
	assert_int_equal(charge(worker, "m/a", 1), 0);
	assert_int_equal(charge(worker, "m/a", 0), ENGINE_E_AMOUNT);
	assert_int_equal(charge(worker, "m/a", -1), ENGINE_E_AMOUNT);
	assert_int_equal(charge(worker, "m/a", ENGINE_AMOUNT_MAX + 1), ENGINE_E_AMOUNT);
	assert_int_equal(charge(worker, "m//a", 1), ENGINE_E_PATH);
	assert_int_equal(charge(worker, "", 1), ENGINE_E_PATH);
	items[1].path = "m/\n";
	assert_int_equal(charge_items(worker, items, 2, at(1), false, NULL, &index), ENGINE_E_PATH);
	assert_int_equal(index, 1);
	items[1] = (struct engine_charge_item){ "q/b", 3, 1 };
	assert_int_equal(charge_items(worker, items, 2, at(1), false, NULL, &index),
			 ENGINE_E_NOT_FOUND);
	assert_int_equal(index, 1);
	items[0].n = items[1].n = ENGINE_AMOUNT_MAX;
	assert_int_equal(charge_items(worker, items, 2, at(1), false, NULL, &index),
			 ENGINE_E_AMOUNT);
	assert_int_equal(index, 1);
	assert_int_equal(charge_items(worker, items, 0, at(1), false, NULL, NULL), ENGINE_E_AMOUNT);
	for (int i = 0; i < 10001; i++) {
		many[i] = (struct engine_charge_item){ "m/a", 3, 1 };
	}
	assert_int_equal(charge_items(worker, many, 10001, at(1), false, NULL, NULL),
			 ENGINE_E_AMOUNT);
	assert_int_equal(charge_items(worker, many, 10000, at(1), false, NULL, NULL), 0);
	assert_int_equal(total(bench.engine, "m"), 10001);
	/* The ceiling. */
	for (int i = 0; i < 8; i++) {
		char path[8];

		(void)snprintf(path, sizeof(path), "m/%d", i);
		assert_int_equal(charge(worker, path, 1), 0);
	}
	assert_int_equal(charge(worker, "m/9", 1), ENGINE_E_FULL);
	assert_int_equal(total(bench.engine, "m"), 10009);
	bench_free(&bench);
}

static void test_overflow_policy(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);

	(void)state;
	declare(bench.engine, "m", (struct engine_metric){ .max_counters = 2, .overflow = true });
	set_max(bench.engine, "m", 10);
	assert_int_equal(charge(bench.workers[0], "m/a", 4), 0);
	assert_int_equal(charge(bench.workers[0], "m/b", 4), 0);
	assert_int_equal(charge(bench.workers[0], "m/c", 2), 0);
	assert_int_equal(charge(bench.workers[0], "m/c", 1), ENGINE_E_REFUSED);
	assert_int_equal(total(bench.engine, "m/" ENGINE_OTHER), 6);
	bench_free(&bench);
}

/* Units that were leased where there was no room are there, whatever else is leased above. */
static void test_overflow_leases(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	static const char *const paths[] = { "m", "m/a", "m/b", "m/c" };
	int64_t granted;

	(void)state;
	declare(bench.engine, "m", (struct engine_metric){ .max_counters = 2, .overflow = true });
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(engine_lease(worker, paths[i], strlen(paths[i]), 10, at(1000),
					      NULL, NULL, &granted),
				 0);
	}
	assert_int_equal(engine_lease_spend(worker, "m/b", 3, 10, at(1000)), 0);
	assert_int_equal(total(bench.engine, "m/" ENGINE_OTHER), 10);
	assert_int_equal(engine_lease_forfeit(worker, "m/c", 3, 10, at(1000)), 0);
	assert_int_equal(drop(bench.engine, "m/" ENGINE_OTHER), 0);
	assert_int_equal(engine_lease_spend(worker, "m/a", 3, 10, at(1000)), 0);
	assert_int_equal(engine_lease_spend(worker, "m", 1, 10, at(1000)), 0);
	assert_int_equal(total(bench.engine, "m"), 30);
	bench_free(&bench);
}

/* Counters get their limits when they are made. */
static void test_templates(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];

	(void)state;
	set_max(bench.engine, "m/*/*", 5);
	set_max(bench.engine, "m/a/*", 7);
	set_max(bench.engine, "m/a/x", 9);
	set_max(bench.engine, "m/t/**", 3);
	assert_int_equal(charge(worker, "m/b/x", 6), ENGINE_E_REFUSED);
	assert_int_equal(charge(worker, "m/b/x", 5), 0);
	assert_int_equal(charge(worker, "m/b/y/deeper", 6), ENGINE_E_REFUSED);
	assert_int_equal(charge(worker, "m/a/y", 8), ENGINE_E_REFUSED);
	assert_int_equal(charge(worker, "m/a/y", 7), 0);
	assert_int_equal(charge(worker, "m/a/x", 9), 0);
	assert_int_equal(charge(worker, "m/a/x", 1), ENGINE_E_REFUSED);
	assert_int_equal(charge(worker, "m/c", 1000), 0);
	assert_int_equal(charge(worker, "m/t/1", 2), 0);
	assert_int_equal(charge(worker, "m/t/1/2", 2), ENGINE_E_REFUSED);
	assert_int_equal(charge(worker, "m/t/1/2", 1), 0);
	assert_int_equal(usage(bench.engine, "m/t/1"), 3);
	bench_free(&bench);
}

/* Limits set on, and taken from, counters that have counted. */
static void test_set_on_counts(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	struct engine_ref x = intern(bench.engine, "m/a/b/x");

	(void)state;
	add(worker, x, 10);
	assert_int_equal(charge(worker, "m/a/b/x", 5), 0);
	set_max(bench.engine, "m/a/b", 20);
	assert_int_equal(usage(bench.engine, "m/a/b"), 15);
	set_max(bench.engine, "m", 100);
	set_max(bench.engine, "m/a", 18); /* in between */
	set_rule(bench.engine, rule_per("m/a", 50, 3600));
	assert_int_equal(usage(bench.engine, "m"), 15);
	assert_int_equal(usage_at(bench.engine, "m/a", rule_per("m/a", 1, 3600).window, at(1000)),
			 0);
	assert_int_equal(charge(worker, "m/a/b/x", 4), ENGINE_E_REFUSED);
	assert_int_equal(charge(worker, "m/a/b/x", 3), 0);
	assert_int_equal(usage(bench.engine, "m/a/b"), 18);
	assert_int_equal(usage(bench.engine, "m/a"), 18);
	assert_int_equal(usage(bench.engine, "m"), 18);
	/* Below usage: frozen. */
	set_max(bench.engine, "m/a", 10);
	assert_int_equal(charge(worker, "m/a/c", 1), ENGINE_E_REFUSED);
	/* Out of the middle; its child's parent is m's now. */
	assert_int_equal(
		engine_rule_remove(bench.engine, "m/a", 3, &(struct window){ 0 }, at(1000)), 0);
	assert_int_equal(engine_rule_remove(bench.engine, "m/a", 3, &(struct window){ 0 }, at(1000)),
			 ENGINE_E_NOT_FOUND);
	assert_int_equal(usage(bench.engine, "m/a"), -1);
	assert_int_equal(charge(worker, "m/a/b/x", 2), 0);
	assert_int_equal(usage(bench.engine, "m"), 20);
	assert_int_equal(charge(worker, "m/a/b/x", 1), ENGINE_E_REFUSED);
	assert_int_equal(charge(worker, "m/a/c", 45), 0);
	assert_int_equal(charge(worker, "m/a/c", 1), ENGINE_E_REFUSED); /* 50 per hour */
	assert_int_equal(engine_rule_remove(bench.engine, "m/a", 3, NULL, at(1000)), 0);
	assert_int_equal(charge(worker, "m/a/c", 1), 0);
	assert_int_equal(stats(bench.engine).planes, 2);
	assert_int_equal(stats(bench.engine).rules_run_time, 2);
	bench_free(&bench);
}

static void test_gauges_give_back(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	struct answer answer;

	(void)state;
	declare(bench.engine, "g", GAUGE);
	set_max(bench.engine, "g/a", 10);
	set_rule(bench.engine, rule_per("g", 15, 3600));
	assert_int_equal(charge(worker, "g/a/x", 8), 0);
	assert_int_equal(charge_at(worker, "g/a/x", 3, at(1000), &answer), ENGINE_E_REFUSED);
	assert_string_equal(answer.text, "max g/a (without a window) 8/10 left 2 retry 0;");
	assert_int_equal(uncharge(worker, "g/a/x", 9), ENGINE_E_UNDERFLOW);
	assert_int_equal(uncharge(worker, "g/a", 1), ENGINE_E_UNDERFLOW);
	assert_int_equal(uncharge(worker, "g/a/x", 3), 0);
	assert_int_equal(usage(bench.engine, "g/a"), 5);
	assert_int_equal(total(bench.engine, "g/a"), 5);
	assert_int_equal(total(bench.engine, "g"), 5);
	/* What came in during the hour stays counted there. */
	assert_int_equal(usage_at(bench.engine, "g", rule_per("g", 1, 3600).window, at(1000)), 8);
	/* Adds both ways. */
	add(worker, intern(bench.engine, "g/a/y"), -40);
	assert_int_equal(exact(bench.engine, "g/a"), -35);
	assert_int_equal(usage(bench.engine, "g/a"), -35);
	assert_int_equal(uncharge(worker, "g/a/x", 5), 0);
	assert_int_equal(usage(bench.engine, "g/a"), -40);
	assert_int_equal(uncharge(worker, "g/a/z", 1), ENGINE_E_NOT_FOUND);
	assert_int_equal(uncharge(worker, "g/a/x", 0), ENGINE_E_AMOUNT);
	assert_int_equal(uncharge(worker, "g//a", 1), ENGINE_E_PATH);
	(void)intern(bench.engine, "c/a");
	assert_int_equal(uncharge(worker, "c/a", 1), ENGINE_E_KIND);
	bench_free(&bench);
}

static void test_leases(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	struct answer answer = { .len = 0 };
	int64_t granted = 0;

	(void)state;
	declare(bench.engine, "g", GAUGE);
	set_max(bench.engine, "g", 100);
	assert_int_equal(engine_lease(worker, "g/a", 3, 40, at(1000), NULL, NULL, &granted), 0);
	assert_int_equal(granted, 40);
	assert_int_equal(usage(bench.engine, "g"), 40);
	assert_int_equal(total(bench.engine, "g"), 0);
	/* 60 are left: half of them. */
	assert_int_equal(engine_lease(worker, "g/b", 3, 40, at(1000), NULL, NULL, &granted), 0);
	assert_int_equal(granted, 30);
	assert_int_equal(charge(worker, "g/c", 29), 0);
	assert_int_equal(engine_lease(worker, "g/b", 3, 40, at(1000), NULL, NULL, &granted), 0);
	assert_int_equal(granted, 1);
	assert_int_equal(engine_lease(worker, "g/b", 3, 40, at(1000), answer_binding, &answer,
				      &granted),
			 ENGINE_E_REFUSED);
	assert_string_equal(answer.text, "max g (without a window) 100/100 left 0 retry 0;");
	/* A limit that comes now starts with what is leased. */
	set_max(bench.engine, "g/a", 50);
	assert_int_equal(usage(bench.engine, "g/a"), 40);
	assert_int_equal(engine_lease_spend(worker, "g/a", 3, 10, at(1000)), 0);
	assert_int_equal(total(bench.engine, "g/a"), 10);
	assert_int_equal(usage(bench.engine, "g/a"), 40);
	assert_int_equal(engine_lease_return(worker, "g/a", 3, 31, at(1000)), ENGINE_E_UNDERFLOW);
	assert_int_equal(drop(bench.engine, "g/a"), ENGINE_E_BUSY);
	assert_int_equal(engine_lease_return(worker, "g/a", 3, 30, at(1000)), 0);
	assert_int_equal(usage(bench.engine, "g/a"), 10);
	assert_int_equal(usage(bench.engine, "g"), 70);
	assert_int_equal(uncharge(worker, "g/a", 10), 0);
	assert_int_equal(usage(bench.engine, "g/a"), 0);
	assert_int_equal(engine_lease_spend(worker, "g/a", 3, 1, at(1000)), ENGINE_E_UNDERFLOW);
	/* Leases without limits, on counters. */
	(void)intern(bench.engine, "c");
	assert_int_equal(engine_lease(worker, "c/a", 3, 40, at(1000), NULL, NULL, &granted), 0);
	assert_int_equal(granted, 40);
	assert_int_equal(engine_lease_return(worker, "c/a", 3, 1, at(1000)), ENGINE_E_KIND);
	assert_int_equal(engine_lease_spend(worker, "c/a", 3, 40, at(1000)), 0);
	assert_int_equal(total(bench.engine, "c"), 40);
	assert_int_equal(engine_lease(worker, "x/a", 3, 40, at(1000), NULL, NULL, &granted),
			 ENGINE_E_NOT_FOUND);
	assert_int_equal(engine_lease(worker, "c/a", 3, 0, at(1000), NULL, NULL, &granted),
			 ENGINE_E_AMOUNT);
	bench_free(&bench);
}

/* Units of a lease that ended stay used of the limits they were charged to, whatever becomes of the counter, and of those that come later. */
static void test_forfeited(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	int64_t granted;

	(void)state;
	(void)intern(bench.engine, "c/b");
	set_max(bench.engine, "c", 100);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			engine_lease(worker, "c/b/x", 5, 20, at(1000), NULL, NULL, &granted), 0);
		assert_int_equal(granted, 20);
	}
	assert_int_equal(engine_lease_spend(worker, "c/b/x", 5, 3, at(1000)), 0);
	assert_int_equal(engine_lease_forfeit(worker, "c/b/x", 5, 17, at(1000)), 0);
	/* Another lease has the rest. */
	assert_int_equal(engine_lease_forfeit(worker, "c/b/x", 5, 21, at(1000)),
			 ENGINE_E_UNDERFLOW);
	assert_int_equal(drop(bench.engine, "c/b/x"), ENGINE_E_BUSY);
	assert_int_equal(engine_lease_forfeit(worker, "c/b/x", 5, 20, at(1000)), 0);
	/* They are nobody's any more. */
	assert_int_equal(engine_lease_spend(worker, "c/b/x", 5, 1, at(1000)), ENGINE_E_UNDERFLOW);
	set_max(bench.engine, "c/b/x", 90);
	assert_int_equal(usage(bench.engine, "c/b/x"), 40);
	assert_int_equal(drop(bench.engine, "c/b/x"), 0);
	assert_int_equal(total(bench.engine, "c"), 3);
	assert_int_equal(usage(bench.engine, "c"), 40);
	set_max(bench.engine, "c/b", 90);
	assert_int_equal(usage(bench.engine, "c/b"), 40);
	/* Its successor begins with none of that. */
	assert_int_equal(engine_lease(worker, "c/b/x", 5, 5, at(1000), NULL, NULL, &granted), 0);
	assert_int_equal(usage(bench.engine, "c/b/x"), 5);
	assert_int_equal(engine_lease_forfeit(worker, "c/b/x", 5, 6, at(1000)), ENGINE_E_UNDERFLOW);
	assert_int_equal(engine_lease_forfeit(worker, "c/b/y", 5, 1, at(1000)), ENGINE_E_UNDERFLOW);
	assert_int_equal(engine_lease_forfeit(worker, "n/b/y", 5, 1, at(1000)), ENGINE_E_NOT_FOUND);
	assert_int_equal(engine_lease_forfeit(worker, "c/b/x", 5, 5, at(1000)), 0);
	assert_int_equal(usage(bench.engine, "c/b"), 45);
	bench_free(&bench);
}

static void test_high_and_shadow(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	struct engine_rule high = rule_max("m", 100);
	struct engine_rule shadow = rule_per("m/a", 10, 60);
	struct answer answer;

	(void)state;
	high.limits.high = 50;
	shadow.limits.shadow = true;
	set_rule(bench.engine, high);
	set_rule(bench.engine, shadow);
	assert_int_equal(charge_at(worker, "m/a", 10, at(1000), &answer), 0);
	assert_string_equal(answer.text, "");
	assert_int_equal(charge_at(worker, "m/a", 41, at(1000), &answer), 0);
	assert_string_equal(answer.text, "shadow m/a (per 1m) 51/10 left 0 retry 0;"
					 "high m (without a window) 51/50 left 49 retry 0;");
	assert_int_equal(dry(worker, "m/a", 49, &answer), 0);
	assert_string_equal(answer.text, "shadow m/a (per 1m) 100/10 left 0 retry 0;"
					 "high m (without a window) 100/50 left 0 retry 0;");
	assert_int_equal(charge_at(worker, "m/a", 50, at(1000), &answer), ENGINE_E_REFUSED);
	assert_string_equal(answer.text, "shadow m/a (per 1m) 51/10 left 0 retry -1;"
					 "max m (without a window) 51/100 left 49 retry -1;");
	bench_free(&bench);
}

static void test_windows(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	struct answer answer;

	(void)state;
	set_rule(bench.engine, rule_per("m", 10, 60));
	set_rule(bench.engine, rule_rate("m/a", 2, 4));
	engine_set_time(bench.engine, &(struct quota_time){ 1000 * SECOND, 1000 * SECOND });
	assert_int_equal(charge_at(worker, "m/a", 4, at(1000), &answer), 0);
	assert_int_equal(charge_at(worker, "m/a", 3, at(1001), &answer), ENGINE_E_REFUSED);
	assert_string_equal(answer.text, "rate m/a (rate) 2/4 left 2 retry 500;");
	/* 960 .. 1020 */
	assert_int_equal(charge_at(worker, "m/b", 7, at(1001), &answer), ENGINE_E_REFUSED);
	assert_string_equal(answer.text, "max m (per 1m) 4/10 left 6 retry 19000;");
	add(worker, intern(bench.engine, "m/b"), 40);
	assert_int_equal(charge_at(worker, "m/b", 1, at(1019), &answer), ENGINE_E_REFUSED);
	assert_string_equal(answer.text, "max m (per 1m) 44/10 left 0 retry 1000;");
	assert_int_equal(charge_at(worker, "m/b", 10, at(1020), &answer), 0);
	/* What folds later counts in the window of the latest time told. */
	add(worker, intern(bench.engine, "m/b"), 5);
	engine_set_time(bench.engine, &(struct quota_time){ 1080 * SECOND, 1080 * SECOND });
	engine_flush(bench.engine, 0);
	assert_int_equal(usage_at(bench.engine, "m", rule_per("m", 1, 60).window, at(1080)), 5);
	bench_free(&bench);
}

/* A charge that is only thought makes nothing. */
static void test_dry_run(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	struct engine_charge_item items[] = {
		{ "m/a/new", 7, 30 },
		{ "m/a/newer/x", 11, 30 },
		{ "m/a/newer/y", 11, 30 },
	};
	struct answer answer;

	(void)state;
	set_max(bench.engine, "m", 100);
	set_max(bench.engine, "m/*/*", 50);
	set_rule(bench.engine, rule_rate("m/*/newer", 1, 10));
	assert_int_equal(dry(worker, "q", 1, &answer), ENGINE_E_NOT_FOUND);
	assert_int_equal(dry(worker, "m/\n", 1, &answer), ENGINE_E_PATH);
	assert_int_equal(dry(worker, "m/a/b", 51, &answer), ENGINE_E_REFUSED);
	assert_string_equal(answer.text, "max m/a/b (without a window) 0/50 left 50 retry -1;");
	assert_int_equal(dry(worker, "m/a/b", 50, &answer), 0);
	assert_int_equal(stats(bench.engine).counters, 0);
	assert_int_equal(charge(worker, "m/a/b", 20), 0);
	assert_int_equal(charge_items(worker, items, 3, at(1000), true, &answer, NULL),
			 ENGINE_E_REFUSED);
	assert_string_equal(answer.text, "max m (without a window) 20/100 left 80 retry -1;"
					 "max m/a/newer (without a window) 0/50 left 50 retry -1;"
					 "rate m/a/newer (rate) 0/10 left 10 retry -1;");
	assert_int_equal(stats(bench.engine).counters, 3);
	assert_int_equal(dry(worker, "m/a/b", 31, &answer), ENGINE_E_REFUSED);
	assert_int_equal(usage(bench.engine, "m/a/b"), 20);
	bench_free(&bench);
}

/* While the gate is closed adds return, readers of what is cached know how much they may miss, and charges wait. */
static void *charge_behind_gate(void *ctx)
{
	struct bench *bench = ctx;

	grace_register();
	assert_int_equal(charge(bench->workers[1], "m/a", 10), 0);
	grace_unregister();
	return NULL;
}

static void test_closed_gate(void **state)
{
	struct bench bench = bench_new(100, 2, BATCH);
	struct engine_ref a;
	struct engine_view view;
	pthread_t charger;

	(void)state;
	set_max(bench.engine, "m", 100000);
	a = intern(bench.engine, "m/a");
	add(bench.workers[0], a, 31);
	registry_lock(bench.engine->registry);
	gate_close(bench.engine);
	assert_int_equal(total(bench.engine, "m"), 31);
	for (int i = 0; i < 1000; i++) {
		add(bench.workers[0], a, 31);
	}
	add(bench.workers[0], a, 1000);
	assert_int_equal(total(bench.engine, "m"), 31);
	assert_int_equal(own(bench.engine, "m/a"), 31);
	assert_int_equal(worker_own(bench.engine, a.id), 32031);
	engine_refresh(bench.engine, ENGINE_CACHED, 0, &view);
	assert_true(view.error_bound >= 32000);
	assert_int_equal(pthread_create(&charger, NULL, charge_behind_gate, &bench), 0);
	gate_open(bench.engine);
	registry_unlock(bench.engine->registry);
	assert_int_equal(pthread_join(charger, NULL), 0);
	assert_int_equal(total(bench.engine, "m"), 32041);
	assert_int_equal(usage(bench.engine, "m"), 32041);
	engine_refresh(bench.engine, ENGINE_CACHED, 0, &view);
	assert_true(view.error_bound < 200);
	assert_int_equal(stats(bench.engine).gates_closed, 1);
	bench_free(&bench);
}

static void test_removal(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];

	(void)state;
	declare(bench.engine, "m", (struct engine_metric){ .expire_after_ns = SECOND });
	set_max(bench.engine, "m", 1000);
	set_max(bench.engine, "m/*", 100);
	set_max(bench.engine, "m/kept", 7);
	assert_int_equal(charge(worker, "m/a", 60), 0);
	add(worker, intern(bench.engine, "m/a"), 10);
	assert_int_equal(stats(bench.engine).planes, 3);
	assert_int_equal(drop(bench.engine, "m/a"), 0);
	assert_int_equal(stats(bench.engine).planes, 2);
	assert_int_equal(usage(bench.engine, "m"), 70);
	/* Its successor begins from nothing. */
	assert_int_equal(charge(worker, "m/a", 100), 0);
	assert_int_equal(usage(bench.engine, "m"), 170);
	(void)intern(bench.engine, "m/idle");
	assert_int_equal(engine_expire(bench.engine, 0, 100), 0);
	assert_int_equal(engine_expire(bench.engine, 10 * SECOND, 100), 1);
	assert_int_equal(total(bench.engine, "m/kept"), 0);
	assert_int_equal(usage(bench.engine, "m/kept"), 0);
	bench_free(&bench);
}

static void expire_until(struct bench *bench, int64_t seconds, size_t n)
{
	struct quota_time time = at(seconds);

	engine_set_time(bench->engine, &time);
	assert_int_equal(engine_expire(bench->engine, time.wall_ns, 100), n);
}

/* Who lets a counter expire must not get a template's max again before its window is over. */
static void test_used_limits_stay(void **state)
{
	static const char *const charged[] = { "c/a", "w/a", "r/a" };
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	struct engine_metric expiring = { .expire_after_ns = SECOND };
	struct engine_rule rate = rule_rate("r/*", 1, 5);

	(void)state;
	rate.limits.per_ns = 20 * SECOND;
	declare(bench.engine, "c", expiring);
	declare(bench.engine, "w", expiring);
	declare(bench.engine, "r", expiring);
	set_max(bench.engine, "c/*", 5);
	set_rule(bench.engine, rule_per("w/*", 5, 100));
	set_rule(bench.engine, rate);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(charge_at(worker, charged[i], 5, at(1000), NULL), 0);
	}
	expire_until(&bench, 1010, 0);
	expire_until(&bench, 1020, 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(charge_at(worker, charged[i], 5, at(1020), NULL),
				 ENGINE_E_REFUSED);
	}
	/* The window is over and the bucket drained; without a window nothing ends. */
	expire_until(&bench, 1100, 2);
	assert_int_equal(charge_at(worker, "c/a", 1, at(1100), NULL), ENGINE_E_REFUSED);
	assert_int_equal(charge_at(worker, "w/a", 5, at(1100), NULL), 0);
	assert_int_equal(charge_at(worker, "r/a", 5, at(1100), NULL), 0);
	bench_free(&bench);
}

static void test_held_stays(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	int64_t granted;

	(void)state;
	declare(bench.engine, "g",
		(struct engine_metric){ .kind = ENGINE_GAUGE, .expire_after_ns = SECOND });
	set_max(bench.engine, "g", 100);
	assert_int_equal(charge(worker, "g/held", 1), 0);
	assert_int_equal(engine_lease(worker, "g/leased", 8, 1, at(1), NULL, NULL, &granted), 0);
	assert_int_equal(charge(worker, "g/idle", 1), 0);
	assert_int_equal(uncharge(worker, "g/idle", 1), 0);
	assert_int_equal(engine_expire(bench.engine, 0, 100), 0);
	assert_int_equal(engine_expire(bench.engine, 10 * SECOND, 100), 1);
	assert_int_equal(uncharge(worker, "g/held", 1), 0);
	assert_int_equal(engine_lease_return(worker, "g/leased", 8, 1, at(1)), 0);
	assert_int_equal(usage(bench.engine, "g"), 0);
	bench_free(&bench);
}

static void test_forfeited_goes(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	int64_t granted;

	(void)state;
	declare(bench.engine, "c", (struct engine_metric){ .expire_after_ns = SECOND });
	set_max(bench.engine, "c", 100);
	assert_int_equal(engine_lease(worker, "c/a", 3, 2, at(1), NULL, NULL, &granted), 0);
	assert_int_equal(engine_expire(bench.engine, 0, 100), 0);
	assert_int_equal(engine_expire(bench.engine, 10 * SECOND, 100), 0);
	assert_int_equal(engine_lease_forfeit(worker, "c/a", 3, 1, at(1)), 0);
	assert_int_equal(engine_expire(bench.engine, 20 * SECOND, 100), 0);
	assert_int_equal(engine_lease_forfeit(worker, "c/a", 3, 1, at(1)), 0);
	assert_int_equal(engine_expire(bench.engine, 30 * SECOND, 100), 1);
	assert_int_equal(usage(bench.engine, "c"), 2);
	bench_free(&bench);
}

/* At the end of int64, where totals must be looked at first. */
static void test_end_of_int64(void **state)
{
	struct bench bench = bench_new(100, 1, BATCH);
	struct engine_worker *worker = bench.workers[0];
	struct engine_charge_item items[] = { { "m/a", 3, 1 }, { "m/b", 3, 1 } };

	(void)state;
	set_rule(bench.engine, rule_per("m", INT64_C(1) << 40, 3600));
	declare(bench.engine, "g", GAUGE);
	(void)intern(bench.engine, "n");
	assert_int_equal(charge(worker, "n/a", ENGINE_AMOUNT_MAX), 0);
	assert_int_equal(charge(worker, "n/a", ENGINE_AMOUNT_MAX - 2), 0);
	assert_int_equal(charge(worker, "n/b", 1), 0);
	assert_int_equal(charge(worker, "n/b", 1), ENGINE_E_OVERFLOW);
	assert_int_equal(total(bench.engine, "n"), INT64_MAX);
	add(worker, intern(bench.engine, "m/c"), INT64_MAX - 1);
	assert_int_equal(charge_items(worker, items, 2, at(100000), false, NULL, NULL),
			 ENGINE_E_OVERFLOW);
	assert_int_equal(charge_at(worker, "m/a", 1, at(100000), NULL), 0);
	assert_int_equal(exact(bench.engine, "m"), INT64_MAX);
	assert_int_equal(charge(worker, "g/a", ENGINE_AMOUNT_MAX), 0);
	assert_int_equal(uncharge(worker, "g/a", ENGINE_AMOUNT_MAX), 0);
	assert_int_equal(total(bench.engine, "g"), 0);
	bench_free(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exactly_max),	 cmocka_unit_test(test_adds_are_usage),
		cmocka_unit_test(test_many_items),	 cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_overflow_policy),	 cmocka_unit_test(test_overflow_leases),
		cmocka_unit_test(test_templates),	 cmocka_unit_test(test_set_on_counts),
		cmocka_unit_test(test_gauges_give_back), cmocka_unit_test(test_leases),
		cmocka_unit_test(test_forfeited),	 cmocka_unit_test(test_forfeited_goes),
		cmocka_unit_test(test_high_and_shadow),	 cmocka_unit_test(test_windows),
		cmocka_unit_test(test_dry_run),		 cmocka_unit_test(test_closed_gate),
		cmocka_unit_test(test_removal),		 cmocka_unit_test(test_used_limits_stay),
		cmocka_unit_test(test_held_stays),	 cmocka_unit_test(test_end_of_int64),
		cmocka_unit_test(test_near_at_the_ends),
	};

	return RUN(tests);
}
