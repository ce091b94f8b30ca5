/*
 * What needs no daemon: arguments, names, errors.
 */
#include "clients/c/dial.h"
#include "clients/c/include/ration.h"
#include "lib/names/path.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_urls(void **state)
{
	static const char *const good[] = { "unix:/a", "unix:relative", "tcp:localhost:1",
					    "tcp:127.0.0.1:65535", "tcp:[::1]:7000" };
	static const char *const bad[] = { "",		 "unix:",	    "tcp:",
					   "tcp:host",	 "tcp:host:",	    "tcp::1",
					   "tcp:host:0", "tcp:host:65536",  "tcp:host:7x",
					   "tcp:::1:7",	 "tcp:[::1]7",	    "tcp:[::1",
					   "tcp:[]:7",	 "tcp:host:100000", "/run/rationd.sock",
					   "udp:host:1" };
	struct dial_address address;
	char path[200] = "unix:";

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(dial_parse(good[i], &address), 0);
	}
	assert_false(address.is_unix);
	assert_string_equal(address.host, "::1");
	assert_string_equal(address.port, "7000");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(dial_parse(bad[i], &address), -EINVAL);
		errno = 0;
		assert_null(ration_open(bad[i], NULL));
		assert_int_equal(errno, EINVAL);
		assert_string_not_equal(ration_error(), "");
	}
	memset(path + 5, 'x', 107);
	assert_int_equal(dial_parse(path, &address), 0);
	path[5 + 107] = 'x';
	assert_int_equal(dial_parse(path, &address), -EINVAL);
}

static void test_url_from_the_environment(void **state)
{
	struct ration *client;

	(void)state;
	assert_int_equal(setenv("RATIOND_SOCKET", "nonsense", 1), 0);
	assert_null(ration_open(NULL, NULL));
	assert_non_null(strstr(ration_error(), "nonsense"));
	assert_int_equal(unsetenv("RATIOND_SOCKET"), 0);
	client = ration_open(NULL, NULL);
	assert_non_null(client);
	assert_int_equal(ration_close(client, 0, NULL), 0);
}

static void expect_options(const struct ration_options *options, bool good)
{
	struct ration *client = ration_open("unix:/nonexistent/socket", options);

	assert_int_equal(client != NULL, good);
	if (!good) {
		assert_int_equal(errno, EINVAL);
	}
	assert_int_equal(ration_close(client, 0, NULL), 0);
}

static void test_options_at_their_limits(void **state)
{
	struct ration_options options = RATION_OPTIONS_INIT;

	(void)state;
	expect_options(&options, true);
	options.session_lifetime_ms = 86400000;
	options.send_interval_ms = 60000;
	options.max_unacknowledged = 1 << 30;
	options.max_counters = 1 << 26;
	expect_options(&options, true);
	options.session_lifetime_ms++;
	expect_options(&options, false);
	options.session_lifetime_ms = 0;
	expect_options(&options, true);
	options.send_interval_ms = 60001;
	expect_options(&options, false);
	options.send_interval_ms = 1;
	options.max_unacknowledged = (64 << 10) - 1;
	expect_options(&options, false);
	options.max_unacknowledged = (1 << 30) + 1;
	expect_options(&options, false);
	options.max_unacknowledged = 64 << 10;
	options.max_counters = (1 << 26) + 1;
	expect_options(&options, false);
	options.max_counters = 1;
	expect_options(&options, true);
	options.size = 0;
	expect_options(&options, false);
	options.size = sizeof(size_t); /* a header from before there was any option */
	options.max_counters = UINT32_MAX;
	expect_options(&options, true);
}

static void test_counters(void **state)
{
	struct ration_options options = RATION_OPTIONS_INIT;
	struct ration_counter *a;
	struct ration *client;

	(void)state;
	options.max_counters = 2;
	client = ration_open("unix:/nonexistent/socket", &options);
	assert_non_null(client);
	a = ration_counter(client, "a");
	assert_non_null(a);
	assert_non_null(ration_counter(client, "b"));
	assert_ptr_equal(ration_counter(client, "a"), a);
	assert_null(ration_counter(client, "c"));
	assert_int_equal(errno, ENOSPC);
	assert_null(ration_counter(client, "c//d"));
	assert_int_equal(errno, EINVAL);
	ration_add(a, 3);
	{
		uint64_t undelivered = 0;

		assert_int_equal(ration_close(client, 0, &undelivered), -ETIMEDOUT);
		assert_int_equal(undelivered, 3);
	}
}

static void test_many_counters_keep_apart(void **state)
{
	enum {
		N = 5000
	};
	static struct ration_counter *counters[N];
	struct ration *client = ration_open("unix:/nonexistent/socket", NULL);
	uint64_t undelivered;
	char path[32];

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		(void)snprintf(path, sizeof(path), "metric/%u", i);
		counters[i] = ration_counter(client, path);
		assert_non_null(counters[i]);
	}
	for (unsigned i = 0; i < N; i++) {
		(void)snprintf(path, sizeof(path), "metric/%u", i);
		assert_ptr_equal(ration_counter(client, path), counters[i]);
		ration_add(counters[i], i);
	}
	assert_int_equal(ration_close(client, 0, &undelivered), -ETIMEDOUT);
	assert_int_equal(undelivered, N * (N - 1) / 2);
}

/* The library knows less of the grammar than the daemon, but refuses nothing that the daemon would take. */
static void test_paths_against_the_grammar(void **state)
{
	static const char *const pieces[] = { "a",  "/", ".",	"*",	    " ",
					      "\t", "b", "x y", "\xc3\xa9", "//" };
	struct ration *client = ration_open("unix:/nonexistent/socket", NULL);
	struct test_random random;
	unsigned n_refused = 0;

	(void)state;
	test_random_init(&random, 1);
	for (unsigned i = 0; i < 20000; i++) {
		char path[700] = "";
		size_t len = 0;
		uint64_t n = test_random_below(&random, i % 100 == 0 ? 300 : 12);
		enum path_error expected;
		bool made;

		for (uint64_t j = 0; j < n; j++) {
			const char *piece = pieces[test_random_below(
				&random, sizeof(pieces) / sizeof(pieces[0]))];

			memcpy(path + len, piece, strlen(piece) + 1);
			len += strlen(piece);
		}
		expected = path_check(path, len, NULL);
		made = ration_counter(client, path) != NULL;
		/* All pieces are within what both know. */
		assert_int_equal(made, expected == PATH_OK);
		n_refused += !made;
	}
	assert_in_range(n_refused, 1, 19999);
	assert_int_equal(ration_close(client, 0, NULL), 0);
}

static void test_path_sizes(void **state)
{
	struct ration *client = ration_open("unix:/nonexistent/socket", NULL);
	char path[600] = "";

	(void)state;
	memset(path, 'a', 128);
	assert_non_null(ration_counter(client, path));
	path[128] = 'a';
	assert_null(ration_counter(client, path));
	for (size_t i = 0; i < 512; i++) {
		path[i] = i % 64 == 63 ? '/' : 'a';
	}
	path[511] = 'a';
	assert_non_null(ration_counter(client, path));
	path[512] = 'a';
	assert_null(ration_counter(client, path));
	assert_non_null(ration_counter(client, "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16"));
	assert_null(ration_counter(client, "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17"));
	assert_int_equal(ration_close(client, 0, NULL), 0);
}

static void test_names_of_codes(void **state)
{
	(void)state;
	assert_string_equal(ration_code_name(RATION_NOT_FOUND), "NOT_FOUND");
	assert_string_equal(ration_code_name(0), "OK");
	assert_string_equal(ration_code_name(1), "UNKNOWN");
	assert_string_equal(ration_code_name(-1), "UNKNOWN");
	assert_string_equal(ration_version(), RATION_VERSION);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_url_from_the_environment),
		cmocka_unit_test(test_options_at_their_limits),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_many_counters_keep_apart),
		cmocka_unit_test(test_paths_against_the_grammar),
		cmocka_unit_test(test_path_sizes),
		cmocka_unit_test(test_names_of_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
