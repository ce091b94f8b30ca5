#include "tests/integration/statsd/support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char levels[] =
	"[metric requests]\nlevels = host, route\n[metric jobs]\nkind = gauge\n";

static void test_levels_and_reload(void **state)
{
	struct statsd_test test = statsd_start(2, levels);
	int fd = statsd_connect(&test, WAY_UDP);
	char config[1024];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		statsd_send_text(fd, "requests:1|c|#route:/a,host:h\nrequests:1|c|#pid:7");
	}
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "requests/h/%2Fa"), 3);
	assert_int_equal(statsd_total(&test, "requests/-/-"), 3);
	assert_int_equal(wire_status(test.wire, "statsd_tags_dropped"), 1); /* looked at once */
	/* Another order, and the same line goes elsewhere. */
	(void)snprintf(
		config, sizeof(config),
		"workers = 2\n[metric requests]\nlevels = route\n[metric jobs]\nkind = gauge\n");
	test_daemon_configure(test.daemon, config);
	test_daemon_signal(test.daemon, SIGHUP);
	statsd_await(&test, "reloads", 1);
	statsd_send_text(fd, "requests:1|c|#route:/a,host:h");
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "requests/%2Fa"), 1);
	assert_int_equal(statsd_total(&test, "requests/h/%2Fa"), 3);
	assert_true(wire_status(test.wire, "statsd_names_forgotten") >= 2);
	(void)close(fd);
	statsd_finish(&test);
}

/* What is left over is carried, for the counter, whichever name it came by. */
static void test_fractions(void **state)
{
	struct statsd_test test = statsd_start(1, levels);
	int fd = statsd_connect(&test, WAY_UDP);

	(void)state;
	for (unsigned i = 0; i < 999; i++) {
		statsd_send_text(fd, "third:1|c|@0.3\nhalf:0.5|c\njobs:0.5|c\njobs:-1.5|c");
		statsd_send_text(fd, "tags:0.25|c|#a:1,b:2\ntags:0.25|c|#b:2,a:1");
		if (i % 50 == 0) {
			statsd_settle(&test, fd);
		}
	}
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "third"), 3330);
	assert_int_equal(statsd_total(&test, "half"), 499);
	assert_int_equal(statsd_total(&test, "jobs"), -999);
	assert_int_equal(statsd_total(&test, "tags/a=1/b=2"), 499);
	/* A counter does not sink by a part either, whatever it carries. */
	statsd_send_text(fd, "half:-0.25|c\nhalf:-1|c\nhalf:0.5|c");
	statsd_settle(&test, fd);
	assert_int_equal(statsd_rejected(&test, "negative"), 2);
	assert_int_equal(statsd_total(&test, "half"), 500);
	/* Nor does a gauge hide what it has given back. */
	statsd_send_text(fd, "jobs:-0.25|c\njobs:-0.25|c");
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "jobs"), -1000);
	(void)close(fd);
	statsd_finish(&test);
}

static void test_range(void **state)
{
	struct statsd_test test = statsd_start(1, NULL);
	int fd = statsd_connect(&test, WAY_UDP);

	(void)state;
	statsd_send_text(fd, "far:9223372036854775807|c\nfar:1|c\nfar:0|c\nfar:0.5|c\nfar:0.5|c");
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "far"), INT64_MAX);
	assert_int_equal(statsd_rejected(&test, "out_of_range"), 2);
	(void)close(fd);
	statsd_finish(&test);
}

/* A name whose counter is gone gets another one, and nothing is lost. */
static void test_expiry(void **state)
{
	struct statsd_test test = statsd_start(1, "[metric brief]\nexpire_after = 1s\n");
	int fd = statsd_connect(&test, WAY_UDP);

	(void)state;
	for (unsigned i = 1; i <= 2; i++) {
		statsd_send_text(fd, "brief.one:5|c\nbrief.two:0.5|c\nbrief.one:1|c|@0.5");
		statsd_settle(&test, fd);
		assert_int_equal(statsd_total(&test, "brief/one"), 7);
		assert_int_equal(statsd_total(&test, "brief"), 7 * i);
		statsd_await(&test, "counters_expired", 2 * i);
	}
	assert_int_equal(statsd_total(&test, "brief/one"), 0);
	assert_int_equal(statsd_total(&test, "brief"), 14);
	(void)close(fd);
	statsd_finish(&test);
}

static void test_ceilings(void **state)
{
	struct statsd_test test = statsd_start(
		1,
		"[metric few]\nmax_counters = 3\n[metric more]\nmax_counters = 3\noverflow = yes\n");
	int fd = statsd_connect(&test, WAY_UDP);

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		char line[64];

		(void)snprintf(line, sizeof(line), "few.n%u:1|c\nmore.n%u:1|c", i, i);
		statsd_send_text(fd, line);
	}
	statsd_settle(&test, fd);
	assert_int_equal(statsd_rejected(&test, "cardinality"), 8);
	assert_int_equal(statsd_total(&test, "few"), 2);
	assert_int_equal(statsd_total(&test, "more"), 10);
	assert_int_equal(statsd_total(&test, "more/__other__"), 8);
	test_daemon_await_log(test.daemon, "cardinality");
	(void)close(fd);
	statsd_finish(&test);
}

/* More names than there is memory for: forgotten, looked up again, counted all the same. */
static void test_too_many_names(void **state)
{
	struct statsd_test test = statsd_start(1, "statsd_names = 1Mi\n");
	int fd = statsd_connect(&test, WAY_TCP);
	char line[128];

	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 30000; i++) {
			(void)snprintf(line, sizeof(line),
				       "a.rather.long.name.of.a.counter.%u:1|c\n", i);
			statsd_send_text(fd, line);
		}
	}
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "a"), 60000);
	assert_int_equal(statsd_total(&test, "a/rather/long/name/of/a/counter/29999"), 2);
	assert_true(wire_status(test.wire, "statsd_names_forgotten") > 10000);
	(void)close(fd);
	statsd_finish(&test);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels_and_reload),
		cmocka_unit_test(test_fractions),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_too_many_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
