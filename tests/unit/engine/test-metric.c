/* metric: the table of declared metrics. */
#include "lib/engine/metric.h"
#include "tests/unit/engine/support.h"

static void test_declare_and_ask(void **state)
{
	struct engine *engine = make_engine(100, 1, 0);
	struct engine_metric metric = { 0 };

	(void)state;
	assert_int_equal(engine_metric(engine, "m", 1, &metric), ENGINE_E_NOT_FOUND);
	declare(engine, "m",
		(struct engine_metric){ ENGINE_GAUGE, .max_counters = 7, .overflow = true,
					.expire_after_ns = 5 });
	assert_int_equal(engine_metric(engine, "m", 1, &metric), 0);
	assert_int_equal(metric.kind, ENGINE_GAUGE);
	assert_int_equal(metric.max_counters, 7);
	assert_true(metric.overflow);
	assert_int_equal(metric.expire_after_ns, 5);
	/* Counted and never declared: the defaults. */
	(void)intern(engine, "n/a");
	assert_int_equal(engine_metric(engine, "n", 1, &metric), 0);
	assert_int_equal(metric.kind, ENGINE_COUNTER);
	assert_int_equal(metric.max_counters, 0);
	assert_int_equal(engine_metric(engine, "n/a", 3, &metric), ENGINE_E_NOT_FOUND);
	assert_int_equal(stats(engine).counters, 2);
	engine_free(engine);
}

static void test_wrong_declarations(void **state)
{
	struct engine *engine = make_engine(100, 1, 0);
	struct engine_metric metric = { 0 };

	(void)state;
	assert_int_equal(engine_declare(engine, "", 0, &metric), ENGINE_E_PATH);
	assert_int_equal(engine_declare(engine, "a/b", 3, &metric), ENGINE_E_PATH);
	assert_int_equal(engine_declare(engine, "*", 1, &metric), ENGINE_E_PATH);
	metric.kind = (enum engine_kind)7;
	assert_int_equal(engine_declare(engine, "a", 1, &metric), -EINVAL);
	metric = (struct engine_metric){ .expire_after_ns = -1 };
	assert_int_equal(engine_declare(engine, "a", 1, &metric), -EINVAL);
	assert_int_equal(engine_metric(engine, "a", 1, &metric), ENGINE_E_NOT_FOUND);
	engine_free(engine);
}

static void test_kind_is_fixed_while_counting(void **state)
{
	struct engine *engine = make_engine(100, 1, 0);
	struct engine_metric gauge = { .kind = ENGINE_GAUGE };

	(void)state;
	(void)intern(engine, "m/a");
	assert_int_equal(engine_declare(engine, "m", 1, &gauge), ENGINE_E_KIND);
	declare(engine, "m", (struct engine_metric){ .max_counters = 50 });
	assert_int_equal(engine_declare(engine, "m", 1, &gauge), ENGINE_E_KIND);
	assert_int_equal(drop(engine, "m/a"), 0);
	assert_int_equal(drop(engine, "m"), 0);
	declare(engine, "m", gauge);
	(void)intern(engine, "m/a");
	assert_int_equal(get(engine, "m/a").kind, ENGINE_GAUGE);
	engine_free(engine);
}

/* At the limit, one more, and changing one that is there. */
static void test_limit(void **state)
{
	struct engine *engine = make_engine(100, 1, 0);
	struct engine_metric metric = { .max_counters = 1 };
	char name[16];
	int len;

	(void)state;
	for (uint32_t i = 0; i < ENGINE_MAX_METRICS; i++) {
		/* In an order that is none. */
		len = snprintf(name, sizeof(name), "m%u", (i * 389) % ENGINE_MAX_METRICS);
		assert_int_equal(engine_declare(engine, name, (size_t)len, &metric), 0);
	}
	assert_int_equal(engine_declare(engine, "one-more", 8, &metric), ENGINE_E_FULL);
	metric.max_counters = 2;
	assert_int_equal(engine_declare(engine, "m500", 4, &metric), 0);
	for (uint32_t i = 0; i < ENGINE_MAX_METRICS; i++) {
		len = snprintf(name, sizeof(name), "m%u", i);
		assert_int_equal(engine_metric(engine, name, (size_t)len, &metric), 0);
		assert_int_equal(metric.max_counters, i == 500 ? 2 : 1);
	}
	assert_int_equal(engine_metric(engine, "m", 1, &metric), ENGINE_E_NOT_FOUND);
	engine_free(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_declare_and_ask),
		cmocka_unit_test(test_wrong_declarations),
		cmocka_unit_test(test_kind_is_fixed_while_counting),
		cmocka_unit_test(test_limit),
	};

	return RUN(tests);
}
