#include "tests/support/test.h"

#include "clients/cli/amount.h"

#include <stdlib.h>

static void numbers(void **state)
{
	static const struct {
		const char *text;
		int64_t number;
	} cases[] = {
		{ "0", 0 },
		{ "-0", 0 },
		{ "12", 12 },
		{ "+12", 12 },
		{ "-3", -3 },
		{ "007", 7 },
		{ "4k", 4000 },
		{ "2M", 2000000 },
		{ "1G", 1000000000 },
		{ "1T", INT64_C(1000000000000) },
		{ "1Ki", 1024 },
		{ "2Mi", 2097152 },
		{ "1Gi", INT64_C(1) << 30 },
		{ "-1Ti", -(INT64_C(1) << 40) },
		{ "9223372036854775807", INT64_MAX },
		{ "-9223372036854775808", INT64_MIN },
		{ "9223372036854775k", INT64_C(9223372036854775000) },
		{ "-8388608Ti", INT64_MIN },
		{ "8388607Ti", INT64_C(8388607) << 40 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t number = -1;

		assert_int_equal(amount_parse(cases[i].text, &number), AMOUNT_OK);
		assert_true(number == cases[i].number);
	}
}

static void no_numbers(void **state)
{
	static const struct {
		const char *text;
		enum amount_error error;
	} cases[] = {
		{ "", AMOUNT_E_EMPTY },
		{ "-", AMOUNT_E_SYNTAX },
		{ "+-1", AMOUNT_E_SYNTAX },
		{ "k", AMOUNT_E_SYNTAX },
		{ "x5", AMOUNT_E_SYNTAX },
		{ " 5", AMOUNT_E_SYNTAX },
		{ "0x10", AMOUNT_E_SUFFIX },
		{ "5 ", AMOUNT_E_SUFFIX },
		{ "5K", AMOUNT_E_SUFFIX },
		{ "5ki", AMOUNT_E_SUFFIX },
		{ "5kk", AMOUNT_E_SUFFIX },
		{ "5P", AMOUNT_E_SUFFIX },
		{ "1.5", AMOUNT_E_FRACTION },
		{ "1,5", AMOUNT_E_FRACTION },
		{ "1e6", AMOUNT_E_FRACTION },
		{ "9223372036854775808", AMOUNT_E_RANGE },
		{ "-9223372036854775809", AMOUNT_E_RANGE },
		{ "9223372036854776k", AMOUNT_E_RANGE },
		{ "8388608Ti", AMOUNT_E_RANGE },
		{ "-8388609Ti", AMOUNT_E_RANGE },
		{ "99999999999999999999999999999999999999", AMOUNT_E_RANGE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t number = 42;

		assert_int_equal(amount_parse(cases[i].text, &number), cases[i].error);
		assert_true(number == 42);
	}
}

static void durations(void **state)
{
	int64_t ms = 0;

	(void)state;
	assert_int_equal(amount_parse_duration("500ms", &ms), AMOUNT_OK);
	assert_int_equal(ms, 500);
	assert_int_equal(amount_parse_duration("10s", &ms), AMOUNT_OK);
	assert_int_equal(ms, 10000);
	assert_int_equal(amount_parse_duration("7d", &ms), AMOUNT_OK);
	assert_int_equal(ms, 7 * 24 * 3600 * 1000);
	assert_int_equal(amount_parse_duration("never", &ms), AMOUNT_OK);
	assert_int_equal(ms, 0);
	assert_int_equal(amount_parse_duration("10", &ms), AMOUNT_E_SUFFIX);
	assert_int_equal(amount_parse_duration("10 s", &ms), AMOUNT_E_SUFFIX);
	assert_int_equal(amount_parse_duration("-1s", &ms), AMOUNT_E_SYNTAX);
	assert_int_equal(amount_parse_duration("", &ms), AMOUNT_E_EMPTY);
	assert_int_equal(amount_parse_duration("1.5h", &ms), AMOUNT_E_FRACTION);
	assert_int_equal(amount_parse_duration("106751991167d", &ms), AMOUNT_OK);
	assert_int_equal(amount_parse_duration("106751991168d", &ms), AMOUNT_E_RANGE);
}

static void printed_durations(void **state)
{
	char buffer[AMOUNT_DURATION_BYTES];

	(void)state;
	assert_string_equal(amount_format_duration(0, buffer), "never");
	assert_string_equal(amount_format_duration(1, buffer), "1ms");
	assert_string_equal(amount_format_duration(5400000, buffer), "1h 30m");
	assert_string_equal(amount_format_duration(UINT64_MAX, buffer),
			    "213503982334d 14h 25m 51s 615ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(no_numbers),
		cmocka_unit_test(durations),
		cmocka_unit_test(printed_durations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
