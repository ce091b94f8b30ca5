/* duration: exact nanoseconds, exact errors, and what is formatted is read back as the same. */
#include "lib/base/duration.h"
#include "tests/support/test.h"

#include <string.h>

static void check(const char *text, enum duration_error error, int64_t expected)
{
	int64_t ns = -4711;

	assert_int_equal(duration_parse(text, strlen(text), &ns), error);
	assert_true(ns == (error == DURATION_OK ? expected : -4711));
}

static void test_parse(void **state)
{
	(void)state;
	check("0", DURATION_OK, 0);
	check("00", DURATION_OK, 0);
	check("0s", DURATION_OK, 0);
	check("7ns", DURATION_OK, 7);
	check("7us", DURATION_OK, 7000);
	check("200ms", DURATION_OK, 200000000);
	check("1s", DURATION_OK, 1000000000);
	check("5m", DURATION_OK, INT64_C(300000000000));
	check("1h", DURATION_OK, INT64_C(3600000000000));
	check("7d", DURATION_OK, INT64_C(604800000000000));
	check("31d", DURATION_OK, 31 * DURATION_D);
}

static void test_edges(void **state)
{
	(void)state;
	check("9223372036854775807ns", DURATION_OK, INT64_MAX);
	check("9223372036854775808ns", DURATION_E_RANGE, 0);
	check("106751d", DURATION_OK, 106751 * DURATION_D);
	check("106752d", DURATION_E_RANGE, 0);
	check("9223372036s", DURATION_OK, INT64_C(9223372036000000000));
	check("9223372037s", DURATION_E_RANGE, 0);
	check("99999999999999999999999s", DURATION_E_RANGE, 0);
}

static void test_bad(void **state)
{
	static const char *const no_number[] = { "",	"s",  "-1s", "+1s",
						 " 1s", "ms", ".5s", "forever" };
	static const char *const no_unit[] = { "1",
					       "60",
					       "1 s",
					       "1s ",
					       "1S",
					       "1sec",
					       "1.5s",
					       "1y",
					       "1w",
					       "1h30m",
					       "1msx",
					       "1mss",
					       "99999999999999999999999" };

	(void)state;
	for (size_t i = 0; i < sizeof(no_number) / sizeof(no_number[0]); i++) {
		check(no_number[i], DURATION_E_NUMBER, 0);
	}
	for (size_t i = 0; i < sizeof(no_unit) / sizeof(no_unit[0]); i++) {
		check(no_unit[i], DURATION_E_UNIT, 0);
	}
}

static void check_format(int64_t ns, const char *expected)
{
	char text[DURATION_MAX_TEXT];
	int64_t back = -1;

	assert_ptr_equal(duration_format(ns, text), text);
	if (expected != NULL) {
		assert_string_equal(text, expected);
	}
	assert_int_equal(duration_parse(text, strlen(text), &back), DURATION_OK);
	assert_true(back == ns);
}

static void test_format(void **state)
{
	struct test_random random;

	(void)state;
	check_format(0, "0");
	check_format(1, "1ns");
	check_format(1500, "1500ns");
	check_format(200 * DURATION_MS, "200ms");
	check_format(1000 * DURATION_MS, "1s");
	check_format(90 * DURATION_S, "90s");
	check_format(60 * DURATION_S, "1m");
	check_format(24 * DURATION_H, "1d");
	check_format(36 * DURATION_H, "36h");
	check_format(INT64_MAX, "9223372036854775807ns");

	test_random_init(&random, 0);
	for (int i = 0; i < 10000; i++) {
		check_format((int64_t)(test_random_next(&random) >>
				       (1 + test_random_below(&random, 63))),
			     NULL);
	}
}

static void test_text(void **state)
{
	(void)state;
	for (int error = DURATION_OK; error <= DURATION_E_RANGE; error++) {
		assert_string_not_equal(duration_error_text((enum duration_error)error),
					"is not understood");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse), cmocka_unit_test(test_edges),
		cmocka_unit_test(test_bad),   cmocka_unit_test(test_format),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
