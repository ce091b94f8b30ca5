/* host: who may be asked for over a loopback address. */
#include "daemon/http/host.h"
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static void test_near(void **state)
{
	static const char *const near[] = {
		NULL,
		"",
		"localhost",
		"LOCALHOST",
		"localhost.",
		"127.0.0.1",
		"127.0.1.1",
		"10.0.0.7",
		"[::1]",
		"::1",
		"[fe80::1]",
		"myhost",
		"ip6-loopback",
		"a.localhost",
		"a.b.LocalHost.",
		"[::ffff:127.0.0.1]",
	};
	static const char *const far[] = {
		"evil.example",
		"evil.example.",
		"localhost.evil.example",
		"127.0.0.1.evil.example",
		"evil.localhos",
		".localhost",
		"[::1].evil.example",
		"evil.example:80",
		"127.0.0.256",
		"127.0.0.1.1",
		"[::1",
		"::g",
		"1.2.3",
		"evillocalhost.x",
	};
	char longest[400];

	(void)state;
	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
		assert_true(host_is_near(near[i]));
	}
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		if (host_is_near(far[i])) {
			fail_msg("%s is near", far[i]);
		}
	}
	memset(longest, 'a', sizeof(longest) - 1);
	longest[256] = '\0';
	assert_false(host_is_near(longest));
	longest[255] = '\0';
	assert_true(host_is_near(longest));
}

static bool is_loopback(const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
		return host_is_loopback((struct sockaddr *)&in);
	}
	assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
	return host_is_loopback((struct sockaddr *)&in6);
}

static void test_loopback(void **state)
{
	const struct sockaddr none = { .sa_family = AF_UNIX };

	(void)state;
	assert_true(is_loopback("127.0.0.1"));
	assert_true(is_loopback("127.255.255.254"));
	assert_true(is_loopback("::1"));
	assert_true(is_loopback("::ffff:127.0.0.1"));
	assert_false(is_loopback("10.0.0.1"));
	assert_false(is_loopback("128.0.0.1"));
	assert_false(is_loopback("fe80::1"));
	assert_false(is_loopback("::ffff:10.0.0.1"));
	assert_false(is_loopback("::127.0.0.1"));
	assert_false(host_is_loopback(&none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_near),
		cmocka_unit_test(test_loopback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
