#include "tests/support/test.h"

#include "lib/quota/limits.h"
#include "lib/quota/rate.h"

#include <string.h>

#define S INT64_C(1000000000)

static const struct window none = { .kind = WINDOW_NONE };
static const struct window second = { .kind = WINDOW_PER, .duration_ns = S };
static const struct window month = { .kind = WINDOW_CALENDAR, .unit = WINDOW_MONTH };
static const struct window rate = { .kind = WINDOW_RATE };

static void good(const struct window *window, struct quota_limits limits)
{
	char text[QUOTA_LIMITS_TEXT];
	const char *wrong = quota_limits_check(window, &limits, text);

	if (wrong != NULL) {
		fail_msg("%s", wrong);
	}
}

/* The whole text: it is what a user reads. */
static void bad(const struct window *window, struct quota_limits limits, const char *expected)
{
	char text[QUOTA_LIMITS_TEXT];
	const char *wrong = quota_limits_check(window, &limits, text);

	assert_non_null(wrong);
	assert_string_equal(wrong, expected);
}

/* Limits by max; by max and high. */
#define L(max_, ...) ((struct quota_limits){ .max = (max_), .high = QUOTA_NONE, __VA_ARGS__ })
#define H(max_, high_, ...) ((struct quota_limits){ .max = (max_), .high = (high_), __VA_ARGS__ })

static void test_no_window(void **state)
{
	(void)state;
	good(&none, (struct quota_limits)QUOTA_LIMITS_INIT);
	good(&none, L(0));
	good(&none, L(QUOTA_MAX_LIMIT, .min = QUOTA_MAX_LIMIT, .low = 1, .shadow = true));
	good(&none, H(10, 20, .min = 10));
	bad(&none, L(-1), "max is -1, which is below 0");
	bad(&none, L(QUOTA_MAX_LIMIT + 1),
	    "max is 4611686018427387905; the largest is 4611686018427387904");
	bad(&none, H(QUOTA_NONE, INT64_MIN), "high is -9223372036854775808, which is below 0");
	bad(&none, L(QUOTA_NONE, .low = QUOTA_NONE),
	    "low is 9223372036854775807; the largest is 4611686018427387904");
	bad(&none, L(QUOTA_NONE, .min = -3), "min is -3, which is below 0");
	bad(&none, L(10, .min = 11), "min is 11, more than max, 10");
	bad(&none, L(10, .burst = 1), "rate and burst go with no window but their own");
}

static void test_windows(void **state)
{
	struct window odd = second;

	(void)state;
	good(&second, H((INT64_C(1) << 33) - 2, 5));
	bad(&second, L((INT64_C(1) << 33) - 1),
	    "max is 8589934591; the most that is counted in such a window is 8589934590");
	bad(&second, H(QUOTA_NONE, INT64_C(1) << 33),
	    "high is 8589934592; the most that is counted in such a window is 8589934590");
	good(&month, L(INT64_C(1) << 53));
	bad(&month, L(INT64_C(1) << 54),
	    "max is 18014398509481984; the most that is counted in such a window is 18014398509481982");
	bad(&month, L(5, .min = 1), "min protects what is held, which is not known in a window");
	bad(&month, L(5, .low = 1), "low protects what is held, which is not known in a window");
	odd.duration_ns = S - 1;
	bad(&odd, L(5), "a window of 999999999 ns; from 1 s to 31 d can be had");
	odd.kind = (enum window_kind)17;
	bad(&odd, L(5), "an unknown kind of window");
}

static void test_rates(void **state)
{
	(void)state;
	good(&rate, L(QUOTA_NONE, .rate = 1, .per_ns = S, .burst = 1));
	good(&rate, L(QUOTA_NONE, .rate = 1, .per_ns = WINDOW_MAX_NS, .burst = 50, .shadow = true));
	good(&rate, L(QUOTA_NONE, .rate = RATE_MAX_PER_SECOND, .per_ns = S, .burst = 1000000));
	good(&rate, L(QUOTA_NONE, .rate = 34, .per_ns = 1, .burst = 1000000));
	bad(&rate, L(QUOTA_NONE, .rate = 0, .per_ns = S, .burst = 1),
	    "the rate is 0; it must be at least 1");
	bad(&rate, L(QUOTA_NONE, .rate = 1, .per_ns = S, .burst = 0),
	    "burst is 0; it must be at least 1");
	bad(&rate, L(QUOTA_NONE, .rate = 1, .per_ns = 0, .burst = 1),
	    "a rate per 0 ns; at most 31 d can be had");
	bad(&rate, L(QUOTA_NONE, .rate = 1, .per_ns = WINDOW_MAX_NS + 1, .burst = 1),
	    "a rate per 2678400000000001 ns; at most 31 d can be had");
	bad(&rate, L(QUOTA_NONE, .rate = RATE_MAX_PER_SECOND + 1, .per_ns = S, .burst = 1),
	    "the rate is more than 34359738368 a second");
	bad(&rate, L(QUOTA_NONE, .rate = 35, .per_ns = 1, .burst = 1),
	    "the rate is more than 34359738368 a second");
	bad(&rate, L(QUOTA_NONE, .rate = 1, .per_ns = WINDOW_MAX_NS, .burst = 1000),
	    "burst is 1000; the largest with this rate is 430");
	bad(&rate, L(5, .rate = 1, .per_ns = S, .burst = 1),
	    "a rate goes with a burst, not with max, high, low or min");
}

static void test_equal(void **state)
{
	struct quota_limits a = L(5, .low = 2), b = a;

	(void)state;
	assert_true(quota_limits_equal(&a, &b));
	b.shadow = true;
	assert_false(quota_limits_equal(&a, &b));
	b = a;
	b.burst = 1;
	assert_false(quota_limits_equal(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_window),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_equal),
	};

	return cmocka_run_group_tests_name("quota/limits", tests, NULL, NULL);
}
