#include "daemon/limiter.h"

#include "tests/support/test.h"

#define BURST 3u
#define INTERVAL INT64_C(1000)

static void test_burst_and_count(void **state)
{
	struct limiter limiter = { 0 };
	int64_t now = 5000;

	(void)state;
	for (unsigned i = 0; i < BURST; i++) {
		assert_true(limiter_pass(&limiter, now, BURST, INTERVAL));
	}
	for (unsigned i = 0; i < 7; i++) {
		assert_false(limiter_pass(&limiter, now + 999, BURST, INTERVAL));
	}
	/* Told once, and not before the interval is over. */
	assert_int_equal(limiter_collect(&limiter, now + 999, INTERVAL), 0);
	assert_int_equal(limiter_collect(&limiter, now + 1000, INTERVAL), 7);
	assert_int_equal(limiter_collect(&limiter, now + 1000, INTERVAL), 0);
	assert_true(limiter_pass(&limiter, now + 1000, BURST, INTERVAL));
}

static void test_nothing_to_tell(void **state)
{
	struct limiter limiter = { 0 };

	(void)state;
	assert_int_equal(limiter_collect(&limiter, 1, INTERVAL), 0);
	assert_true(limiter_pass(&limiter, 1, BURST, INTERVAL));
	assert_int_equal(limiter_collect(&limiter, 100000, INTERVAL), 0);
	/* At the end: what is not over yet, too. */
	for (unsigned i = 0; i < BURST; i++) {
		(void)limiter_pass(&limiter, 2, BURST, INTERVAL);
	}
	assert_int_equal(limiter_collect(&limiter, 3, 0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst_and_count),
		cmocka_unit_test(test_nothing_to_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
