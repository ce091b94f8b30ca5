/* Counters as they were; own values by order; what was granted once is granted again. */
#include "tests/unit/engine/keeper.h"

#define BATCH 8

static uint32_t restore_at(struct engine *engine, const char *path, int64_t own, int64_t ahead,
			   int64_t born_ns)
{
	uint32_t id = ENGINE_NO_ID;

	assert_int_equal(engine_restore(engine, path, strlen(path), own, ahead, born_ns, &id), 0);
	assert_int_not_equal(id, ENGINE_NO_ID);
	return id;
}

static void restore(struct engine *engine, const char *path, int64_t own)
{
	(void)restore_at(engine, path, own, 0, 1);
}

static int set(struct engine_worker *worker, const char *path, int64_t own)
{
	return engine_set(worker, path, strlen(path), own, at(1000));
}

static struct engine_worker *join(struct engine *engine)
{
	struct engine_worker *worker = NULL;

	assert_int_equal(engine_restored(engine, at(1000)), 0);
	assert_int_equal(engine_join(engine, &worker), 0);
	return worker;
}

static void leave(struct engine *engine, struct engine_worker *worker)
{
	if (worker) {
		engine_leave(worker);
	}
	assert_null(engine_free(engine));
}

/* ---- restore ---- */

static void test_values(void **state)
{
	struct engine *engine = make_kept(3, 2, BATCH);
	struct keeper *keeper = keeper_new(engine);
	struct engine_worker *worker;

	(void)state;
	declare(engine, "m", (struct engine_metric){ .max_counters = 2 });
	/* In the order of their births, and past all ceilings. */
	(void)restore_at(engine, "m", 1, 0, 10);
	(void)restore_at(engine, "m/a", 20, 0, 20);
	(void)restore_at(engine, "m/a/x", 300, 0, 30);
	(void)restore_at(engine, "n", 7, 0, 40);
	(void)restore_at(engine, "m/b", 4000, 0, 50);
	assert_int_equal(total(engine, "m"), 4321);
	assert_int_equal(own(engine, "m"), 1);
	assert_int_equal(total(engine, "m/a"), 320);
	assert_int_equal(total(engine, "n"), 7);
	assert_int_equal(get(engine, "m/a/x").born_ns, 30);
	assert_int_equal(stats(engine).counters, 5);

	worker = join(engine);
	keeper_changes(keeper);
	assert_null(keeper_find(keeper, "m"));
	/* And from then on as ever. */
	assert_int_equal(engine_intern(engine, "n/a", 3, 60, &(struct engine_ref){ 0 }),
			 ENGINE_E_FULL);
	add(worker, intern(engine, "m/b"), 5);
	assert_int_equal(exact(engine, "m"), 4326);
	assert_int_equal(drop(engine, "m/b"), 0);
	assert_int_equal(own(engine, "m"), 4006);
	leave(engine, worker);
	free(keeper);
}

static void test_errors(void **state)
{
	struct engine *engine = make_kept(100, 2, BATCH);

	(void)state;
	assert_int_equal(engine_restore(engine, "m//a", 4, 1, 0, 1, NULL), ENGINE_E_PATH);
	assert_int_equal(engine_restore(engine, "", 0, 1, 0, 1, NULL), ENGINE_E_PATH);
	restore(engine, "m/a", INT64_MAX);
	restore(engine, "m/b", 1);
	assert_int_equal(engine_restored(engine, at(1000)), ENGINE_E_OVERFLOW);
	assert_int_equal(total(engine, "m"), INT64_MAX);
	leave(engine, NULL);

	engine = make_kept(1, 1, BATCH);
	for (uint32_t i = 0; i < engine->tree.max_ids; i++) {
		char path[16];

		(void)snprintf(path, sizeof(path), "m%u", (unsigned)i);
		restore(engine, path, 1);
	}
	assert_int_equal(engine_restore(engine, "x", 1, 1, 0, 1, NULL), ENGINE_E_FULL);
	leave(engine, NULL);
}

/* Totals near the ends: of a strict metric from the first on. */
static void test_strict(void **state)
{
	struct engine *engine = make_kept(100, 2, BATCH);
	struct engine_worker *worker;

	(void)state;
	declare(engine, "g", GAUGE);
	restore(engine, "m/a", INT64_MAX - 10);
	for (int i = 0; i < 300; i++) {
		char path[16];

		(void)snprintf(path, sizeof(path), "s/%d", i % 50);
		restore(engine, path, STRICT_AMOUNT - 1);
	}
	restore(engine, "g/a", INT64_MIN);
	restore(engine, "g/b", INT64_MAX);
	assert_int_equal(total(engine, "g"), -1);
	/* In an order in which they don't fit on the way. */
	declare(engine, "h", GAUGE);
	restore(engine, "h/a", INT64_MAX);
	restore(engine, "h/a/x", INT64_MAX - 1);
	restore(engine, "h/a/y", INT64_MAX - 2);
	restore(engine, "h/b", 2);
	restore(engine, "h/a/z", -INT64_MAX);
	restore(engine, "h/a/w", -INT64_MAX);
	worker = join(engine);
	assert_int_equal(total(engine, "h"), INT64_MAX - 3 + 2);
	assert_int_equal(total(engine, "h/a"), INT64_MAX - 3);
	assert_int_equal(total(engine, "h/a/x"), INT64_MAX - 1);
	assert_int_equal(own(engine, "h/a"), INT64_MAX);
	assert_int_equal(try_add(worker, intern(engine, "m/b"), 11), ENGINE_E_OVERFLOW);
	assert_int_equal(try_add(worker, intern(engine, "m/b"), 10), 0);
	assert_true(tree_life(&engine->tree, intern(engine, "s/0").id) & LIFE_STRICT);
	assert_int_equal(try_add(worker, intern(engine, "g/a"), -1), ENGINE_E_OVERFLOW);
	assert_int_equal(try_add(worker, intern(engine, "g/b"), 1), ENGINE_E_OVERFLOW);
	leave(engine, worker);
}

/*
 * What leases have of what counters are ahead by is found where it was charged: at the path, at an ancestor if the path was removed, under __other__ if there
 * was no room. The rest is forfeited.
 */
static void test_leases(void **state)
{
	struct engine *engine = make_kept(100, 2, BATCH);
	struct engine_worker *worker;

	(void)state;
	set_max(engine, "m", 1000);
	(void)restore_at(engine, "m", 5, 0, 100);
	(void)restore_at(engine, "m/a", 10, 20, 200);
	(void)restore_at(engine, "m/a/x", 0, 40, 300);
	(void)restore_at(engine, "m/a/y", 0, 10, 400);
	(void)restore_at(engine, "m/__other__", 0, 30, 500);
	assert_int_equal(usage(engine, "m"), 115);
	assert_int_equal(engine_restore_lease(engine, "m/a/x", 5, 30), 0);
	assert_int_equal(engine_restore_lease(engine, "m/a/gone", 8, 15), 0);
	assert_int_equal(engine_restore_lease(engine, "m/b", 3, 30), 0);
	assert_int_equal(engine_restore_lease(engine, "m/b", 3, 1), ENGINE_E_UNDERFLOW);
	assert_int_equal(engine_restore_lease(engine, "n", 1, 1), ENGINE_E_UNDERFLOW);
	assert_int_equal(engine_restore_lease(engine, "n//a", 4, 1), ENGINE_E_PATH);

	worker = join(engine);
	assert_int_equal(usage(engine, "m"), 115);
	assert_int_equal(drop(engine, "m/a/x"), ENGINE_E_BUSY);
	assert_int_equal(drop(engine, "m/__other__"), ENGINE_E_BUSY);
	assert_int_equal(drop(engine, "m/a/y"), 0);
	assert_int_equal(engine_lease_spend(worker, "m/a/x", 5, 30, at(1000)), 0);
	assert_int_equal(engine_lease_spend(worker, "m/a/gone", 8, 15, at(1000)), 0);
	assert_int_equal(engine_lease_spend(worker, "m/a/gone", 8, 1, at(1000)),
			 ENGINE_E_UNDERFLOW);
	assert_int_equal(engine_lease_forfeit(worker, "m/__other__", 11, 30, at(1000)), 0);
	assert_int_equal(drop(engine, "m/__other__"), 0);
	assert_int_equal(drop(engine, "m/a/x"), 0);
	assert_int_equal(drop(engine, "m/a"), 0);
	assert_int_equal(total(engine, "m"), 60);
	assert_int_equal(usage(engine, "m"), 115);
	leave(engine, worker);
}

/* Counters come with what the rules say of them; those that rules name and nobody kept come last. */
static void test_limits(void **state)
{
	struct engine *engine = make_kept(100, 2, BATCH);
	struct keeper *keeper = keeper_new(engine);
	struct engine_worker *worker;

	(void)state;
	declare(engine, "g", GAUGE);
	set_max(engine, "g", 100);
	set_max(engine, "g/*", 50);
	set_max(engine, "g/named", 10);
	set_rule(engine, rule_per("g/*", 1000, 10));
	assert_int_equal(stats(engine).counters, 0);
	keeper->counters[restore_at(engine, "g", 5, 0, 100)].known = true;
	(void)restore_at(engine, "g/a", 20, 7, 200);
	(void)restore_at(engine, "g/b", -3, 0, 300);
	assert_int_equal(usage(engine, "g"), 29);
	assert_int_equal(usage(engine, "g/a"), 27);
	assert_int_equal(usage(engine, "g/b"), -3);
	assert_int_equal(engine_restore_lease(engine, "g/a", 3, 7), 0);
	assert_int_equal(usage(engine, "g/a"), 27);
	assert_int_equal(usage_at(engine, "g/a",
				  (struct window){ .kind = WINDOW_PER, .duration_ns = 10 * SECOND },
				  at(1000)),
			 0);

	worker = join(engine);
	keeper_changes(keeper);
	assert_null(keeper_find(keeper, "g"));
	assert_non_null(keeper_find(keeper, "g/named"));
	assert_true(get(engine, "g/named").born_ns > 300);
	/* What was leased still is: it can be spent, and keeps the counter. */
	assert_int_equal(drop(engine, "g/a"), ENGINE_E_BUSY);
	assert_int_equal(engine_lease_spend(worker, "g/a", 3, 8, at(1000)), ENGINE_E_UNDERFLOW);
	assert_int_equal(engine_lease_spend(worker, "g/a", 3, 5, at(1000)), 0);
	assert_int_equal(engine_lease_return(worker, "g/a", 3, 2, at(1000)), 0);
	assert_int_equal(own(engine, "g/a"), 25);
	assert_int_equal(usage(engine, "g/a"), 25);
	assert_int_equal(charge(worker, "g/a", 26), ENGINE_E_REFUSED);
	assert_int_equal(charge(worker, "g/a", 25), 0);
	assert_int_equal(uncharge(worker, "g/a", 50), 0);
	assert_int_equal(drop(engine, "g/a"), 0);
	leave(engine, worker);
	free(keeper);
}

/* What the file has of them in any other order, or not at all: told as born, unless it comes after all. */
static void test_order(void **state)
{
	struct engine *engine = make_kept(100, 2, BATCH);
	struct keeper *keeper = keeper_new(engine);
	struct engine_worker *worker;

	(void)state;
	(void)restore_at(engine, "m/a/x", 1, 0, 100);
	(void)restore_at(engine, "m/b/x", 2, 0, 50);
	(void)restore_at(engine, "m/a", 10, 0, 20);
	keeper->counters[restore_at(engine, "m", 100, 0, 10)].known = true;
	assert_int_equal(total(engine, "m"), 113);
	assert_int_equal(total(engine, "m/a"), 11);
	assert_true(get(engine, "m/b/x").born_ns > 100);
	worker = join(engine);
	keeper_changes(keeper);
	assert_null(keeper_find(keeper, "m/a"));
	assert_null(keeper_find(keeper, "m/b/x"));
	/* Its parent is one that whoever keeps the counts knows. */
	assert_int_equal(keeper_find(keeper, "m/b")->parent, intern(engine, "m").id);
	leave(engine, worker);
	free(keeper);
}

/* ---- set ---- */

static void test_set(void **state)
{
	struct engine *engine = make_kept(100, 2, BATCH);
	struct keeper *keeper = keeper_new(engine);
	const struct window window = { .kind = WINDOW_PER, .duration_ns = 10 * SECOND };
	struct engine_worker *worker;

	(void)state;
	declare(engine, "g", GAUGE);
	set_max(engine, "g/a", 100);
	set_rule(engine, rule_per("g/a", 100, 10));
	worker = join(engine);
	add(worker, intern(engine, "g/a"), 3);
	assert_int_equal(charge(worker, "g/a", 10), 0);
	/* Held back: part of what was, and not of what is set. */
	add(worker, intern(engine, "g/a"), 4);
	assert_int_equal(set(worker, "g/a", 50), 0);
	assert_int_equal(own(engine, "g/a"), 50);
	assert_int_equal(exact(engine, "g"), 50);
	assert_int_equal(usage(engine, "g/a"), 50);
	assert_int_equal(usage_at(engine, "g/a", window, at(1000)), 17);
	assert_int_equal(set(worker, "g/a", -5), 0);
	assert_int_equal(exact(engine, "g"), -5);
	assert_int_equal(set(worker, "g/new/one", 7), 0);
	assert_int_equal(exact(engine, "g"), 2);
	assert_int_equal(set(worker, "m/a", 9), 0);
	add(worker, intern(engine, "m/a"), 1);
	assert_int_equal(set(worker, "m/a", 0), 0);
	assert_int_equal(exact(engine, "m"), 0);
	keeper_checkpoint(keeper, &worker, 1, false, 0);
	assert_int_equal(keeper_find(keeper, "g/a")->own, -5);
	assert_int_equal(keeper_find(keeper, "g/new/one")->own, 7);
	assert_int_equal(keeper_find(keeper, "m/a")->own, 0);
	leave(engine, worker);
	free(keeper);
}

static void test_set_errors(void **state)
{
	struct engine *engine = make_kept(5, 2, BATCH);
	struct engine_worker *worker;

	(void)state;
	declare(engine, "g", GAUGE);
	declare(engine, "o", (struct engine_metric){ .max_counters = 1, .overflow = true });
	worker = join(engine);
	assert_int_equal(set(worker, "a//b", 1), ENGINE_E_PATH);
	assert_int_equal(set(worker, "m/a", -1), ENGINE_E_NEGATIVE);
	assert_int_equal(stats(engine).counters, 0);
	assert_int_equal(set(worker, "o/a", 1), ENGINE_E_METRIC_FULL);
	assert_int_equal(set(worker, "o", 1), 0);
	assert_int_equal(set(worker, "g/a", INT64_MAX), 0);
	assert_int_equal(set(worker, "g", 1), ENGINE_E_OVERFLOW);
	assert_int_equal(own(engine, "g"), 0);
	assert_int_equal(set(worker, "g/a", INT64_MIN), ENGINE_E_OVERFLOW);
	assert_int_equal(set(worker, "g/a", -1), 0);
	assert_int_equal(set(worker, "g/a", INT64_MIN), 0);
	assert_int_equal(exact(engine, "g"), INT64_MIN);
	assert_int_equal(set(worker, "m/a", 1), 0);
	assert_int_equal(set(worker, "x", 1), ENGINE_E_FULL);
	leave(engine, worker);
}

/* Many that are small each take the total beyond the edge, and from then on adds are checked. */
static void test_set_turns_strict(void **state)
{
	struct engine *engine = make_kept(1000, 2, BATCH);
	struct engine_worker *worker = join(engine);
	char path[16];

	(void)state;
	for (int i = 0; i < 200; i++) {
		(void)snprintf(path, sizeof(path), "m/%d", i);
		assert_int_equal(set(worker, path, STRICT_AMOUNT - 1), 0);
	}
	assert_true(tree_life(&engine->tree, intern(engine, "m").id) & LIFE_STRICT);
	leave(engine, worker);
}

/* ---- again ---- */

static int charge_again(struct engine_worker *worker, const char *path, int64_t n)
{
	const struct engine_charge_item item = { .path = path, .len = strlen(path), .n = n };
	const struct engine_charge charge = { .items = &item, .n = 1, .time = at(1000) };

	return engine_charge_again(worker, &charge, NULL);
}

static void test_again(void **state)
{
	struct engine *engine = make_kept(100, 2, BATCH);
	struct keeper *keeper = keeper_new(engine);
	struct engine_worker *worker;

	(void)state;
	declare(engine, "g", GAUGE);
	set_max(engine, "g/*", 10);
	set_rule(engine, rule_rate("g/*", 1, 10));
	worker = join(engine);
	assert_int_equal(charge(worker, "g/a", 8), 0);
	assert_int_equal(charge(worker, "g/a", 8), ENGINE_E_REFUSED);
	assert_int_equal(charge_again(worker, "g/a", 8), 0);
	assert_int_equal(own(engine, "g/a"), 16);
	assert_int_equal(usage(engine, "g/a"), 16);
	assert_int_equal(usage_at(engine, "g/a", (struct window){ .kind = WINDOW_RATE }, at(1000)),
			 16);
	assert_int_equal(engine_lease_again(worker, "g/a", 3, 9, at(1000)), 0);
	assert_int_equal(usage(engine, "g/a"), 25);
	assert_int_equal(own(engine, "g/a"), 16);
	assert_int_equal(engine_lease_return(worker, "g/a", 3, 9, at(1000)), 0);
	/* A metric that was counted when it was granted, and was not kept. */
	assert_int_equal(charge(worker, "unknown/a", 1), ENGINE_E_NOT_FOUND);
	assert_int_equal(charge_again(worker, "unknown/a", 1), 0);
	assert_int_equal(charge_again(worker, "g//", 1), ENGINE_E_PATH);
	assert_int_equal(charge_again(worker, "g/a", 0), ENGINE_E_AMOUNT);
	assert_int_equal(charge_again(worker, "unknown/a", ENGINE_AMOUNT_MAX), 0);
	assert_int_equal(charge_again(worker, "unknown/a", ENGINE_AMOUNT_MAX), ENGINE_E_OVERFLOW);
	assert_int_equal(total(engine, "unknown"), ENGINE_AMOUNT_MAX + 1);
	keeper_checkpoint(keeper, &worker, 1, false, 1000 * SECOND);
	assert_int_equal(keeper_find(keeper, "g/a")->own, 16);
	assert_int_equal(keeper_find(keeper, "g/a")->ahead, 0);
	assert_int_equal(keeper_find(keeper, "unknown/a")->own, ENGINE_AMOUNT_MAX + 1);
	leave(engine, worker);
	free(keeper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_leases),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_set_errors),
		cmocka_unit_test(test_set_turns_strict),
		cmocka_unit_test(test_again),
	};

	return RUN(tests);
}
