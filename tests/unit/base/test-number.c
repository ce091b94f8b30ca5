/* number: exact at both ends of every range, and nothing but digits is a number. */
#include "lib/base/number.h"
#include "tests/support/test.h"

#include <string.h>

static void check_unsigned(const char *text, uint64_t min, uint64_t max, enum number_error error,
			   uint64_t expected)
{
	uint64_t value = 4711;

	assert_int_equal(number_parse_unsigned(text, strlen(text), min, max, &value), error);
	assert_true(value == (error == NUMBER_OK ? expected : 4711));
}

static void check_signed(const char *text, int64_t min, int64_t max, enum number_error error,
			 int64_t expected)
{
	int64_t value = 4711;

	assert_int_equal(number_parse_signed(text, strlen(text), min, max, &value), error);
	assert_true(value == (error == NUMBER_OK ? expected : 4711));
}

static void test_unsigned(void **state)
{
	(void)state;
	check_unsigned("0", 0, UINT64_MAX, NUMBER_OK, 0);
	check_unsigned("0042", 0, UINT64_MAX, NUMBER_OK, 42);
	check_unsigned("18446744073709551615", 0, UINT64_MAX, NUMBER_OK, UINT64_MAX);
	check_unsigned("18446744073709551616", 0, UINT64_MAX, NUMBER_E_RANGE, 0);
	check_unsigned("36893488147419103232", 0, UINT64_MAX, NUMBER_E_RANGE, 0);
	check_unsigned("99999999999999999999999999", 0, UINT64_MAX, NUMBER_E_RANGE, 0);
	check_unsigned("4", 5, 10, NUMBER_E_RANGE, 0);
	check_unsigned("5", 5, 10, NUMBER_OK, 5);
	check_unsigned("10", 5, 10, NUMBER_OK, 10);
	check_unsigned("11", 5, 10, NUMBER_E_RANGE, 0);
}

static void test_signed(void **state)
{
	(void)state;
	check_signed("0", INT64_MIN, INT64_MAX, NUMBER_OK, 0);
	check_signed("-0", INT64_MIN, INT64_MAX, NUMBER_OK, 0);
	check_signed("-17", INT64_MIN, INT64_MAX, NUMBER_OK, -17);
	check_signed("9223372036854775807", INT64_MIN, INT64_MAX, NUMBER_OK, INT64_MAX);
	check_signed("9223372036854775808", INT64_MIN, INT64_MAX, NUMBER_E_RANGE, 0);
	check_signed("-9223372036854775808", INT64_MIN, INT64_MAX, NUMBER_OK, INT64_MIN);
	check_signed("-9223372036854775809", INT64_MIN, INT64_MAX, NUMBER_E_RANGE, 0);
	check_signed("-3", -2, 2, NUMBER_E_RANGE, 0);
	check_signed("-2", -2, 2, NUMBER_OK, -2);
	check_signed("3", -2, 2, NUMBER_E_RANGE, 0);
}

static void test_no_number(void **state)
{
	static const char *const bad[] = { " 1",
					   "1 ",
					   "+1",
					   "1k",
					   "0x10",
					   "1.0",
					   "1e3",
					   "--1",
					   "- 1",
					   "\xd9\xa3",
					   "99999999999999999999x" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		check_unsigned(bad[i], 0, UINT64_MAX, NUMBER_E_DIGIT, 0);
		check_signed(bad[i], INT64_MIN, INT64_MAX, NUMBER_E_DIGIT, 0);
	}
	check_unsigned("-1", 0, UINT64_MAX, NUMBER_E_DIGIT, 0);
	check_unsigned("", 0, UINT64_MAX, NUMBER_E_EMPTY, 0);
	check_signed("", INT64_MIN, INT64_MAX, NUMBER_E_EMPTY, 0);
	check_signed("-", INT64_MIN, INT64_MAX, NUMBER_E_EMPTY, 0);
}

/* The text need not be terminated, and a NUL inside is no digit. */
static void test_length(void **state)
{
	uint64_t value = 0;

	(void)state;
	assert_int_equal(number_parse_unsigned("1234", 2, 0, UINT64_MAX, &value), NUMBER_OK);
	assert_int_equal(value, 12);
	assert_int_equal(number_parse_unsigned("1\0002", 3, 0, UINT64_MAX, &value), NUMBER_E_DIGIT);
}

static void test_text(void **state)
{
	(void)state;
	for (int error = NUMBER_OK; error <= NUMBER_E_RANGE; error++) {
		assert_string_not_equal(number_error_text((enum number_error)error),
					"is not understood");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unsigned),  cmocka_unit_test(test_signed),
		cmocka_unit_test(test_no_number), cmocka_unit_test(test_length),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
