/* expose: an engine's page, piece by piece. */
#include <inttypes.h>
#include <stdio.h>

#include "lib/expose/expose.h"
#include "lib/rcu/grace.h"
#include "tests/unit/expose/sink.h"

struct world {
	struct engine *engine;
	struct engine_worker *worker;
	struct sink sink;
};

static void look_up(void *ctx, const char *name, size_t len, struct expose_metric *ret_metric)
{
	(void)ctx;
	*ret_metric = (struct expose_metric){ 0 };
	if (len == 8 && memcmp(name, "requests", 8) == 0) {
		*ret_metric = (struct expose_metric){ .levels = "tenant,service",
						      .help = "What came in.",
						      .unit = "" };
	}
	if (len == 4 && memcmp(name, "held", 4) == 0) {
		ret_metric->unit[0] = 's';
	}
}

static int setup(void **state)
{
	const struct engine_options options = {
		.max_counters = 100000, .max_workers = 2, .cpus = 2, .seed = test_seed()
	};
	const struct engine_metric gauge = { .kind = ENGINE_GAUGE };
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	assert_int_equal(engine_new(&world->engine, &options), 0);
	assert_int_equal(engine_join(world->engine, &world->worker), 0);
	assert_int_equal(engine_declare(world->engine, "held", 4, &gauge), 0);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	engine_leave(world->worker);
	(void)engine_free(world->engine);
	sink_clear(&world->sink);
	free(world);
	return 0;
}

static void add(struct world *world, const char *path, int64_t n)
{
	struct engine_ref ref;

	assert_int_equal(
		engine_intern(world->engine, path, strlen(path), INT64_C(1500000000), &ref), 0);
	if (n != 0) {
		engine_begin(world->worker);
		assert_int_equal(engine_add(world->worker, ref, n), 0);
		engine_end(world->worker);
	}
}

static struct sheet sheet;
static struct expose expose;

static void begin_page(struct world *world, enum sheet_format format)
{
	sink_clear(&world->sink);
	engine_flush(world->engine, 0);
	sheet_init(&sheet, format, sink_take, &world->sink);
	expose_init(&expose, world->engine, &sheet, (struct quota_time){ 0 }, look_up, world);
}

static const char *end_page(struct world *world, size_t n)
{
	while (expose_some(&expose, n)) {
		/* the next piece */
	}
	sheet_end(&sheet);
	return world->sink.text;
}

static const char *write_page(struct world *world, enum sheet_format format, size_t n)
{
	begin_page(world, format);
	return end_page(world, n);
}

static void limit(struct world *world, const char *pattern, struct window window,
		  struct quota_limits limits)
{
	const struct engine_rule rule = {
		.pattern = pattern, .len = strlen(pattern), .window = window, .limits = limits
	};

	assert_int_equal(
		engine_rule_set(world->engine, &rule, (struct quota_time){ 0 }, NULL, NULL), 0);
}

static void test_page(void **state)
{
	struct world *world = *state;

	add(world, "requests/acme/web", 5);
	add(world, "requests/acme", 2);
	add(world, "requests/globex", 0);
	add(world, "held/x", -3);
	/* Newest first; inner counters that count nothing are left out. */
	assert_string_equal(write_page(world, SHEET_TEXT, 1),
			    "# HELP held_s held, as rationd counts it.\n"
			    "# TYPE held_s gauge\n"
			    "held_s{path=\"x\"} -3\n"
			    "# HELP requests_total What came in.\n"
			    "# TYPE requests_total counter\n"
			    "requests_total{tenant=\"globex\"} 0\n"
			    "requests_total{tenant=\"acme\"} 2\n"
			    "requests_total{tenant=\"acme\",service=\"web\"} 5\n");
	/* Births are unique: what began at one moment is told apart by nanoseconds. */
	assert_non_null(strstr(write_page(world, SHEET_OPENMETRICS, 100),
			       "# TYPE requests counter\n"
			       "requests_total{tenant=\"globex\"} 0\n"
			       "requests_created{tenant=\"globex\"} 1.5"));
	assert_non_null(strstr(world->sink.text, "# UNIT held_s s\nheld_s{path=\"x\"} -3\n"));
	assert_memory_equal(world->sink.text + world->sink.len - 6, "# EOF\n", 6);
}

static void test_empty(void **state)
{
	struct world *world = *state;

	assert_null(write_page(world, SHEET_TEXT, 100));
	assert_string_equal(write_page(world, SHEET_OPENMETRICS, 100), "# EOF\n");
}

static void test_limits(void **state)
{
	struct world *world = *state;
	struct quota_limits limits = QUOTA_LIMITS_INIT, rate = QUOTA_LIMITS_INIT;

	limits.max = 10;
	limits.high = 8;
	rate.rate = 5;
	rate.per_ns = 2 * INT64_C(1000000000);
	rate.burst = 7;
	add(world, "requests/acme", 12);
	limit(world, "requests/acme", (struct window){ .kind = WINDOW_NONE }, limits);
	limit(world, "requests/acme", (struct window){ .kind = WINDOW_RATE }, rate);
	limits.high = QUOTA_NONE;
	limits.shadow = true;
	limit(world, "requests",
	      (struct window){ .kind = WINDOW_PER, .duration_ns = 90 * INT64_C(1000000000) },
	      limits);
	limit(world, "requests", (struct window){ .kind = WINDOW_CALENDAR, .unit = WINDOW_WEEK },
	      limits);
	(void)write_page(world, SHEET_TEXT, 1);
	assert_non_null(strstr(world->sink.text, "# TYPE rationd_quota_usage gauge\n"));
	assert_non_null(
		strstr(world->sink.text,
		       "\nrationd_quota_usage{path=\"requests/acme\",window=\"none\"} 12\n"));
	assert_non_null(strstr(world->sink.text,
			       "\nrationd_quota_usage{path=\"requests\",window=\"90s\"} 0\n"));
	assert_non_null(strstr(world->sink.text,
			       "\nrationd_quota_max{path=\"requests\",window=\"week\"} 10\n"));
	assert_non_null(strstr(world->sink.text,
			       "\nrationd_quota_max{path=\"requests/acme\",window=\"rate\"} 7\n"));
	assert_non_null(strstr(world->sink.text,
			       "\nrationd_quota_high{path=\"requests/acme\",window=\"none\"} 8\n"));
	assert_non_null(
		strstr(world->sink.text,
		       "\nrationd_quota_rate{path=\"requests/acme\",window=\"rate\"} 2.5\n"));
	assert_non_null(strstr(world->sink.text,
			       "\nrationd_quota_shadow{path=\"requests\",window=\"90s\"} 1\n"));
	assert_non_null(strstr(world->sink.text, "# TYPE rationd_quota_refusals_total counter\n"
						 "rationd_quota_refusals_total{path="));
	assert_null(strstr(world->sink.text, "rationd_quota_low"));
}

/* However it is cut into pieces, it is the same page: each family and each series once. */
static void test_pieces(void **state)
{
	struct world *world = *state;
	char path[64], *whole;

	for (int i = 0; i < 3000; i++) {
		(void)snprintf(path, sizeof(path), "m%d/k=%d/x%d", i % 7, i % 11, i);
		add(world, path, i);
	}
	whole = strdup(write_page(world, SHEET_OPENMETRICS, SIZE_MAX));
	assert_non_null(whole);
	for (size_t n = 1; n < 5000; n = n * 3 + 1) {
		assert_string_equal(write_page(world, SHEET_OPENMETRICS, n), whole);
	}
	for (int i = 0; i < 3000; i++) {
		const char *found;

		(void)snprintf(path, sizeof(path), "m%d_total{k=\"%d\",path=\"x%d\"} %d\n", i % 7,
			       i % 11, i, i);
		found = strstr(whole, path);
		assert_non_null(found);
		assert_null(strstr(found + 1, path));
	}
	free(whole);
}

/* A counter that would take the labels of one that is on the page already comes with the next page; so does any that is new. */
static void test_new_ones(void **state)
{
	static const char first[] = "o_total{b=\"2\",a=\"1\"} 5\n";
	struct world *world = *state;
	const char *page;

	add(world, "o/a=1/z", 3);
	add(world, "o/b=2/a=1", 5);
	begin_page(world, SHEET_TEXT);
	while (memmem(sheet.bytes, sheet.len, first, strlen(first)) == NULL) {
		assert_true(expose_some(&expose, 1));
	}
	add(world, "o/a=1/b=2", 7);
	add(world, "o/a=1/new", 9);
	engine_flush(world->engine, 0);
	page = end_page(world, 1);
	assert_non_null(strstr(page, "o_total{a=\"1\",path=\"z\"} 3\n"));
	assert_null(strstr(page, "o_total{a=\"1\",b=\"2\"}"));
	assert_null(strstr(page, "new"));
	page = write_page(world, SHEET_TEXT, 1);
	assert_non_null(strstr(page, "o_total{a=\"1\",b=\"2\"} 7\n"));
	assert_non_null(strstr(page, "o_total{path=\"b=2/a=1\"} 5\n"));
	assert_non_null(strstr(page, "o_total{a=\"1\",path=\"new\"} 9\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_page, setup, teardown),
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_new_ones, setup, teardown),
	};
	int failed;

	grace_register();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	grace_unregister();
	return failed;
}
