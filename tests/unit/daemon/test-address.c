#include "daemon/address.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

/* What is right is read, and printed as it was. */
static void test_good(void **state)
{
	static const struct {
		const char *text;
		struct address address;
	} good[] = {
		{ "unix:/run/rationd/rationd.sock",
		  { ADDRESS_UNIX, "/run/rationd/rationd.sock", 0 } },
		{ "unix:/a:b", { ADDRESS_UNIX, "/a:b", 0 } },
		{ "statsd+unix:/a:b", { ADDRESS_STATSD_UNIX, "/a:b", 0 } },
		{ "statsd+udp:*:8125", { ADDRESS_STATSD_UDP, "*", 8125 } },
		{ "statsd+udp:[::1]:8125", { ADDRESS_STATSD_UDP, "::1", 8125 } },
		{ "statsd+tcp:localhost:8125", { ADDRESS_STATSD_TCP, "localhost", 8125 } },
		{ "http:[::1]:9476", { ADDRESS_HTTP, "::1", 9476 } },
		{ "tcp:localhost:7311", { ADDRESS_TCP, "localhost", 7311 } },
		{ "tcp:*:0", { ADDRESS_TCP, "*", 0 } },
		{ "tcp:127.0.0.1:65535", { ADDRESS_TCP, "127.0.0.1", 65535 } },
		{ "tcp:[::1]:80", { ADDRESS_TCP, "::1", 80 } },
		{ "tcp:[fe80::1%eth0]:80", { ADDRESS_TCP, "fe80::1%eth0", 80 } },
	};

	(void)state;
	/* Reading is for this machine unless something else is said. */
	{
		struct address address;
		char text[ADDRESS_MAX_TEXT];

		assert_int_equal(address_parse("http:9476", &address), ADDRESS_OK);
		assert_string_equal(address_format(&address, text), "http:localhost:9476");
		assert_int_equal(address_parse("http:", &address), ADDRESS_E_PORT);
		assert_int_equal(address_parse("http:x", &address), ADDRESS_E_PORT);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct address address;
		char text[ADDRESS_MAX_TEXT];

		assert_int_equal(address_parse(good[i].text, &address), ADDRESS_OK);
		assert_true(address_equal(&address, &good[i].address));
		assert_string_equal(address_format(&address, text), good[i].text);
	}
}

static void test_bad(void **state)
{
	static const struct {
		const char *text;
		enum address_error error;
	} bad[] = {
		{ "", ADDRESS_E_SCHEME },
		{ "/run/rationd.sock", ADDRESS_E_SCHEME },
		{ "http://x", ADDRESS_E_PORT },
		{ "http://x:80", ADDRESS_E_HOST },
		{ "https:x:80", ADDRESS_E_SCHEME },
		{ "UNIX:/x", ADDRESS_E_SCHEME },
		{ "statsd:localhost:8125", ADDRESS_E_SCHEME },
		{ "udp:localhost:8125", ADDRESS_E_SCHEME },
		{ "statsd+unix:", ADDRESS_E_PATH_EMPTY },
		{ "statsd+udp:localhost", ADDRESS_E_NO_PORT },
		{ "statsd+tcp::8125", ADDRESS_E_HOST },
		{ "unix:", ADDRESS_E_PATH_EMPTY },
		{ "unix:run/x", ADDRESS_E_PATH_RELATIVE },
		{ "tcp:", ADDRESS_E_NO_PORT },
		{ "tcp:localhost", ADDRESS_E_NO_PORT },
		{ "tcp:[::1]", ADDRESS_E_NO_PORT },
		{ "tcp:localhost:", ADDRESS_E_PORT },
		{ "tcp:localhost:65536", ADDRESS_E_PORT },
		{ "tcp:localhost:-1", ADDRESS_E_PORT },
		{ "tcp:localhost:http", ADDRESS_E_PORT },
		{ "tcp::80", ADDRESS_E_HOST },
		{ "tcp:[]:80", ADDRESS_E_HOST },
		{ "tcp:::1:80", ADDRESS_E_HOST },
		{ "tcp:[::1:80", ADDRESS_E_HOST },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct address address = { .port = 4711 };

		assert_int_equal(address_parse(bad[i].text, &address), bad[i].error);
		assert_int_equal(address.port, 4711); /* untouched */
		assert_true(strlen(address_error_text(bad[i].error)) > 10);
	}
}

static void test_lengths(void **state)
{
	char text[400];
	struct address address;

	(void)state;
	(void)snprintf(text, sizeof(text), "unix:/%0*d", (int)ADDRESS_MAX_UNIX - 1, 0);
	assert_int_equal(address_parse(text, &address), ADDRESS_OK);
	(void)snprintf(text, sizeof(text), "unix:/%0*d", (int)ADDRESS_MAX_UNIX, 0);
	assert_int_equal(address_parse(text, &address), ADDRESS_E_PATH_LONG);
	(void)snprintf(text, sizeof(text), "tcp:%0*d:1", (int)ADDRESS_MAX_HOST, 0);
	assert_int_equal(address_parse(text, &address), ADDRESS_OK);
	(void)snprintf(text, sizeof(text), "tcp:%0*d:1", (int)ADDRESS_MAX_HOST + 1, 0);
	assert_int_equal(address_parse(text, &address), ADDRESS_E_HOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
