/*
 * What the real daemon refuses arrives at on_loss, with its path, amount and reason; and what it has removed is counted anew.
 */
#include "tests/integration/ration/world.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Written by the background thread, read after ration_flush, which waits for it. */
struct lost {
	size_t n;
	int code;
	int64_t amount;
	char path[64], text[160];
};

struct fixture {
	struct test_daemon *daemon;
	struct ration *client;
	struct lost lost;
};

static void note(void *ctx, const struct ration_loss *loss)
{
	struct lost *lost = ctx;

	lost->n++;
	lost->code = loss->code;
	lost->amount += loss->amount;
	(void)snprintf(lost->path, sizeof(lost->path), "%s", loss->path);
	(void)snprintf(lost->text, sizeof(lost->text), "%s", loss->text);
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct ration_options options = RATION_OPTIONS_INIT;

	fixture->daemon = test_daemon_start(NULL);
	options.on_loss = note;
	options.ctx = &fixture->lost;
	options.send_interval_ms = 5;
	fixture->client = ration_open(fixture->daemon->url, &options);
	assert_non_null(fixture->client);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	world_close(fixture->client);
	test_daemon_stop(fixture->daemon);
	free(fixture);
	return 0;
}

static void add(struct fixture *fixture, const char *path, int64_t n)
{
	struct ration_counter *counter = ration_counter(fixture->client, path);

	assert_non_null(counter);
	ration_add(counter, n);
	assert_int_equal(ration_flush(fixture->client, 10000), 0);
}

static void test_negative_add(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, "c/a", 5);
	add(fixture, "c/a", -2);
	assert_int_equal(fixture->lost.n, 1);
	assert_int_equal(fixture->lost.code, RATION_INVALID_ARGUMENT);
	assert_int_equal(fixture->lost.amount, -2);
	assert_string_equal(fixture->lost.path, "c/a");
	assert_string_not_equal(fixture->lost.text, "");
	assert_int_equal(world_total(fixture->daemon->url, "c"), 5);
}

static void test_gauge(void **state)
{
	struct fixture *fixture = *state;
	struct ration_metric metric = RATION_METRIC_INIT;

	metric.kind = RATION_GAUGE;
	assert_int_equal(ration_metric_set(fixture->client, "g", &metric, 10000), 0);
	add(fixture, "g/a", 5);
	add(fixture, "g/a", -7);
	assert_int_equal(fixture->lost.n, 0);
	assert_int_equal(world_total(fixture->daemon->url, "g"), -2);
	metric = (struct ration_metric)RATION_METRIC_INIT;
	assert_int_equal(ration_metric_get(fixture->client, "g", 10000, &metric), 0);
	assert_int_equal(metric.kind, RATION_GAUGE);
	assert_int_equal(ration_metric_get(fixture->client, "none", 10000, &metric),
			 RATION_NOT_FOUND);
}

static void test_total_beyond_int64(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, "o/a", INT64_MAX);
	add(fixture, "o/b", 1);
	assert_int_equal(fixture->lost.n, 1);
	assert_int_equal(fixture->lost.code, RATION_OUT_OF_RANGE);
	assert_int_equal(fixture->lost.amount, 1);
	assert_int_equal(world_total(fixture->daemon->url, "o"), INT64_MAX);
}

static void test_ceiling_of_a_metric(void **state)
{
	struct fixture *fixture = *state;
	struct ration_metric metric = RATION_METRIC_INIT;

	metric.max_counters = 3;
	assert_int_equal(ration_metric_set(fixture->client, "few", &metric, 10000), 0);
	for (int i = 0; i < 10; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "few/%d", i);
		add(fixture, path, 1);
	}
	assert_in_range(fixture->lost.n, 7,
			8); /* whether the metric itself counts is the daemon's affair */
	assert_int_equal(fixture->lost.code, RATION_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(fixture->lost.text, "max_counters"));
	assert_int_equal(world_total(fixture->daemon->url, "few") + fixture->lost.amount, 10);
}

static void test_path_the_daemon_refuses(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, "bad/\xff", 2); /* no UTF-8: more than the library knows of paths */
	assert_int_equal(fixture->lost.n, 1);
	assert_int_equal(fixture->lost.code, RATION_INVALID_ARGUMENT);
	assert_non_null(strstr(fixture->lost.text, "UTF-8"));
	assert_int_equal(fixture->lost.amount, 2);
}

/* The counter expires in the daemon between two adds; the client finds out and tells it again. */
static void test_removed_counter(void **state)
{
	struct fixture *fixture = *state;
	struct ration_metric metric = RATION_METRIC_INIT;
	const char *path = "short/a";
	struct ration_value value = { .code = RATION_OK };

	metric.expire_after_ms = 1000;
	assert_int_equal(ration_metric_set(fixture->client, "short", &metric, 10000), 0);
	add(fixture, path, 4);
	for (int i = 0; i < 200 && value.code == RATION_OK; i++) {
		(void)usleep(50000);
		assert_int_equal(ration_get(fixture->client, &path, 1, RATION_CACHED, 10000, &value,
					    NULL),
				 0);
	}
	assert_int_equal(value.code, RATION_NOT_FOUND);
	add(fixture, path, 6);
	assert_int_equal(fixture->lost.n, 0);
	assert_int_equal(world_total(fixture->daemon->url, "short"), 10);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_negative_add, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gauge, setup, teardown),
		cmocka_unit_test_setup_teardown(test_total_beyond_int64, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ceiling_of_a_metric, setup, teardown),
		cmocka_unit_test_setup_teardown(test_path_the_daemon_refuses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_removed_counter, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
