#include "daemon/statsd/amount.h"

#include "tests/support/test.h"

#include <string.h>

#define HALF (UINT64_C(1) << 63)

static struct statsd_amount amount_of(const char *value, const char *rate)
{
	struct statsd_decimal v, r;
	struct statsd_amount amount = { 0 };

	assert_true(statsd_decimal_parse(value, strlen(value), &v));
	if (rate != NULL) {
		assert_true(statsd_decimal_parse(rate, strlen(rate), &r));
		assert_true(statsd_decimal_is_rate(&r));
	}
	assert_true(statsd_amount_of(&v, rate != NULL ? &r : NULL, &amount));
	return amount;
}

static void test_numbers(void **state)
{
	static const struct {
		const char *value, *rate;
		int64_t whole;
		uint64_t fraction;
	} good[] = {
		{ "0", NULL, 0, 0 },
		{ "-0", NULL, 0, 0 },
		{ "+17", NULL, 17, 0 },
		{ "-17", NULL, -17, 0 },
		{ "0.5", NULL, 0, HALF },
		{ "-0.5", NULL, -1, HALF },
		{ ".5", "1", 0, HALF },
		{ "5.", "1.", 5, 0 },
		{ "1", "0.1", 10, 0 },
		{ "1", "0.5", 2, 0 },
		{ "1", ".2", 5, 0 },
		{ "1", "000.0100", 100, 0 },
		{ "0.1", NULL, 0, UINT64_C(1844674407370955162) },    /* 2^64 / 10, rounded up */
		{ "-0.1", NULL, -1, -UINT64_C(1844674407370955161) }, /* up is towards 0 here */
		{ "1", "0.3", 3, UINT64_C(6148914691236517206) },     /* a third, rounded up */
		{ "1", "1e-6", 1000000, 0 },
		{ "9223372036854775807", NULL, INT64_MAX, 0 },
		{ "-9223372036854775807", NULL, -INT64_MAX, 0 },
		{ "922337203685477580.5", NULL, 922337203685477580, HALF },
		{ "9.223372036854775807e18", NULL, INT64_MAX, 0 },
		{ "9223372036854775807000e-3", NULL, INT64_MAX, 0 },
		{ "4611686018427387903", "0.5", INT64_MAX - 1, 0 },
		{ "1e-400", NULL, 0, 1 },
		{ "0e999999999999", NULL, 0, 0 },
		{ "00000000000000000000000000000000012", NULL, 12, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct statsd_amount amount = amount_of(good[i].value, good[i].rate);

		assert_int_equal(amount.whole, good[i].whole);
		assert_true(amount.fraction == good[i].fraction);
	}
}

static void test_no_numbers(void **state)
{
	static const char *const bad[] = { "",	  "+",	  "-",	   ".",	  "e5",	 "1e",	"1e+",
					   "+-1", "0x10", "1_000", "1f",  "nan", "Inf", "-inf",
					   " 1",  "1 ",	  "1.2.3", "1,5", "1d1", "--1" };
	struct statsd_decimal decimal;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(statsd_decimal_parse(bad[i], strlen(bad[i]), &decimal));
	}
}

static void test_ranges(void **state)
{
	static const char *const far[] = {
		"9223372036854775808",	"-9223372036854775808",	  "1e19", "1e400", "1e999999999999",
		"18446744073709551616", "99999999999999999999999"
	};
	static const char *const no_rates[] = { "0",	"-0.1",	   "1.0000001", "2",
						"1e-7", "9.99e-7", "1e1",	"1e-400" };
	struct statsd_decimal decimal, half = { 5, -1, false };
	struct statsd_amount amount;

	(void)state;
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		assert_true(statsd_decimal_parse(far[i], strlen(far[i]), &decimal));
		assert_false(statsd_amount_of(&decimal, NULL, &amount));
	}
	assert_true(statsd_decimal_parse("4611686018427387904", 19, &decimal));
	assert_false(statsd_amount_of(&decimal, &half, &amount));
	for (size_t i = 0; i < sizeof(no_rates) / sizeof(no_rates[0]); i++) {
		assert_true(statsd_decimal_parse(no_rates[i], strlen(no_rates[i]), &decimal));
		assert_false(statsd_decimal_is_rate(&decimal));
	}
}

/* Parts that make a whole make one. */
static void test_sums(void **state)
{
	struct statsd_amount sum = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++) {
		assert_true(statsd_amount_add(&sum, amount_of("0.1", NULL)));
	}
	assert_int_equal(sum.whole, 100);
	for (int i = 0; i < 3000; i++) {
		assert_true(statsd_amount_add(&sum, amount_of("-1", "0.3")));
	}
	assert_int_equal(sum.whole, 100 - 10000);
	sum = (struct statsd_amount){ INT64_MAX, HALF };
	assert_false(statsd_amount_add(&sum, (struct statsd_amount){ 0, HALF }));
	assert_false(statsd_amount_add(&sum, (struct statsd_amount){ 1, 0 }));
	assert_true(sum.whole == INT64_MAX && sum.fraction == HALF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_no_numbers),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
