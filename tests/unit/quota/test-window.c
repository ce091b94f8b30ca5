#include "tests/support/test.h"

#include "lib/quota/window.h"

#include <stdbool.h>
#include <time.h>

#define S INT64_C(1000000000)
#define DAY (86400 * S)

static const struct window none = { .kind = WINDOW_NONE };
static const struct window rate = { .kind = WINDOW_RATE };
static const struct window day = { .kind = WINDOW_CALENDAR, .unit = WINDOW_DAY };
static const struct window week = { .kind = WINDOW_CALENDAR, .unit = WINDOW_WEEK };
static const struct window month = { .kind = WINDOW_CALENDAR, .unit = WINDOW_MONTH };

static struct window per(int64_t ns)
{
	return (struct window){ .kind = WINDOW_PER, .duration_ns = ns };
}

/* Noon excepted, a date as libc sees it. */
static int64_t utc(int year, int mon, int mday, int hour, int min, int sec)
{
	struct tm tm = { .tm_year = year - 1900,
			 .tm_mon = mon - 1,
			 .tm_mday = mday,
			 .tm_hour = hour,
			 .tm_min = min,
			 .tm_sec = sec };

	return (int64_t)timegm(&tm) * S;
}

static void test_per_is_aligned_to_the_epoch(void **state)
{
	struct window second = per(S);
	struct window week_long = per(7 * DAY);

	(void)state;
	assert_int_equal(window_number(&second, 0), 0);
	assert_int_equal(window_number(&second, S - 1), 0);
	assert_int_equal(window_number(&second, S), 1);
	assert_int_equal(window_number(&second, -1), -1);
	assert_int_equal(window_number(&second, -S), -1);
	assert_int_equal(window_number(&second, -S - 1), -2);
	assert_int_equal(window_start(&second, -2), -2 * S);
	assert_int_equal(window_end(&second, -2), -S);
	/* The epoch was a Thursday, and so are these. */
	assert_int_equal(window_start(&week_long,
				      window_number(&week_long, utc(2024, 2, 29, 12, 0, 0))),
			 utc(2024, 2, 29, 0, 0, 0));
}

/* Whatever window_within says, it says of a sample of all moments. */
static void check_within(const struct window *window, const struct window *other)
{
	bool within = true;

	for (int64_t ns = utc(2023, 1, 1, 0, 0, 0); ns < utc(2024, 12, 31, 0, 0, 0);
	     ns += DAY / 3) {
		int64_t number = window_number(window, ns);
		int64_t last = window_end(window, number) - 1;

		within = within && window_number(other, window_start(window, number)) ==
					   window_number(other, last);
	}
	assert_int_equal(window_within(window, other), within);
}

static void test_within(void **state)
{
	const struct window windows[] = {
		per(S),	      per(7 * S), per(60 * S),	per(3600 * S), per(5 * 3600 * S),
		per(DAY / 2), per(DAY),	  per(2 * DAY), per(7 * DAY),  per(31 * DAY),
		day,	      week,	  month
	};
	const size_t n = sizeof(windows) / sizeof(windows[0]);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < n; j++) {
			check_within(&windows[i], &windows[j]);
		}
		assert_false(window_within(&windows[i], &none));
		assert_false(window_within(&windows[i], &rate));
		assert_false(window_within(&none, &windows[i]));
		assert_false(window_within(&rate, &windows[i]));
	}
	assert_false(window_within(&none, &none));
}

static void test_no_window(void **state)
{
	(void)state;
	assert_int_equal(window_number(&none, INT64_MIN), 0);
	assert_int_equal(window_number(&rate, INT64_MAX), 0);
	assert_int_equal(window_count_max(&none), INT64_MAX);
	assert_int_equal(window_end(&none, 0), INT64_MAX);
}

struct edge {
	const struct window *window;
	int64_t last, first; /* last second of one window, first of the next */
};

static void test_calendar_edges(void **state)
{
	const struct edge edges[] = {
		{ &day, utc(2023, 12, 31, 23, 59, 59), utc(2024, 1, 1, 0, 0, 0) },
		{ &day, utc(1969, 12, 31, 23, 59, 59), 0 },
		{ &month, utc(2023, 1, 31, 23, 59, 59), utc(2023, 2, 1, 0, 0, 0) },
		{ &month, utc(2023, 2, 28, 23, 59, 59), utc(2023, 3, 1, 0, 0, 0) },
		{ &month, utc(2024, 2, 29, 23, 59, 59), utc(2024, 3, 1, 0, 0, 0) }, /* leap */
		{ &month, utc(2000, 2, 29, 23, 59, 59),
		  utc(2000, 3, 1, 0, 0, 0) }, /* leap: by 400 */
		{ &month, utc(2100, 2, 28, 23, 59, 59), utc(2100, 3, 1, 0, 0, 0) }, /* not: by 100 */
		{ &month, utc(2024, 12, 31, 23, 59, 59), utc(2025, 1, 1, 0, 0, 0) },
		{ &month, utc(2024, 4, 30, 23, 59, 59), utc(2024, 5, 1, 0, 0, 0) },
		{ &month, utc(1969, 12, 31, 23, 59, 59), 0 },
		/* Sunday and Monday. */
		{ &week, utc(2024, 3, 3, 23, 59, 59), utc(2024, 3, 4, 0, 0, 0) },
		{ &week, utc(2023, 12, 31, 23, 59, 59), utc(2024, 1, 1, 0, 0, 0) },
		{ &week, utc(1970, 1, 4, 23, 59, 59), utc(1970, 1, 5, 0, 0, 0) },
		{ &week, utc(1969, 12, 28, 23, 59, 59), utc(1969, 12, 29, 0, 0, 0) },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		const struct edge *edge = &edges[i];
		int64_t number = window_number(edge->window, edge->last);

		assert_int_equal(window_number(edge->window, edge->last + S - 1), number);
		assert_int_equal(window_number(edge->window, edge->first), number + 1);
		assert_int_equal(window_end(edge->window, number), edge->first);
		assert_int_equal(window_start(edge->window, number + 1), edge->first);
	}
	assert_int_equal(window_number(&month, utc(2024, 2, 29, 12, 0, 0)), 54 * 12 + 1);
	assert_int_equal(window_number(&month, 0), 0);
}

/* A leap day is in February only where libc thinks so, for every day that int64 nanoseconds can tell. */
static void test_every_day_against_libc(void **state)
{
	int64_t first = INT64_MIN / DAY + 1;

	(void)state;
	for (int64_t at = first; at < INT64_MAX / DAY; at++) {
		time_t seconds = (time_t)(at * 86400);
		struct tm tm;

		assert_non_null(gmtime_r(&seconds, &tm));
		int64_t number = ((int64_t)tm.tm_year - 70) * 12 + tm.tm_mon;

		if (window_number(&month, at * DAY) != number ||
		    window_number(&month, at * DAY + DAY - 1) != number ||
		    (tm.tm_mday == 1) != (window_start(&month, number) == at * DAY) ||
		    (tm.tm_wday == 1) !=
			    (window_start(&week, window_number(&week, at * DAY)) == at * DAY) ||
		    window_number(&day, at * DAY) != at) {
			fail_msg("day %lld", (long long)at);
		}
	}
}

static void check_holds(const struct window *window, int64_t at)
{
	int64_t number = window_number(window, at);

	assert_true(window_start(window, number) <= at);
	assert_true(window_end(window, number) > at || window_end(window, number) == INT64_MAX);
	if (window_end(window, number) < INT64_MAX) {
		assert_int_equal(window_number(window, window_end(window, number)), number + 1);
	}
}

static void test_windows_meet(void **state)
{
	struct test_random random;

	(void)state;
	test_random_init(&random, 0);
	for (int i = 0; i < 100000; i++) {
		struct window window =
			per(S + (int64_t)test_random_below(&random, WINDOW_MAX_NS - S));
		int64_t at = (int64_t)test_random_next(&random);

		check_holds(&window, at);
		check_holds(&day, at);
		check_holds(&week, at);
		check_holds(&month, at);
	}
	check_holds(&month, INT64_MIN);
	check_holds(&month, INT64_MAX);
	check_holds(&week, INT64_MIN);
	check_holds(&day, INT64_MAX);
}

static void test_bits_tell_68_years_apart(void **state)
{
	const struct window windows[] = { per(S),	 per(S + 1), per(60 * S), per(3600 * S),
					  per(31 * DAY), day,	     week,	  month };
	const int64_t lengths[] = { S, S + 1, 60 * S, 3600 * S, 31 * DAY, DAY, 7 * DAY, 28 * DAY };

	(void)state;
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		unsigned bits = window_bits(&windows[i]);
		__int128 range = (__int128)lengths[i] << bits;

		assert_true(range >= ((__int128)S << 31));
		assert_true(range / 2 < ((__int128)S << 31));
		assert_int_equal(window_count_max(&windows[i]), (INT64_C(1) << (64 - bits)) - 2);
	}
	assert_int_equal(window_bits(&windows[0]), 31);
	assert_int_equal(window_bits(&windows[3]), 20);
	assert_int_equal(window_bits(&day), 15);
	assert_int_equal(window_bits(&month), 10);
}

static void test_equal_and_valid(void **state)
{
	struct window a = per(S), b = per(2 * S), odd = { .kind = WINDOW_NONE, .duration_ns = 5 };
	struct window bad = { .kind = WINDOW_CALENDAR, .unit = (enum window_unit)7 };
	struct window unknown = { .kind = (enum window_kind)9 };

	(void)state;
	assert_true(window_equal(&a, &a));
	assert_false(window_equal(&a, &b));
	assert_false(window_equal(&a, &day));
	assert_false(window_equal(&day, &week));
	assert_true(window_equal(&none, &odd));
	assert_false(window_equal(&none, &rate));
	assert_true(window_valid(&a) && window_valid(&month) && window_valid(&rate));
	assert_false(window_valid(&bad));
	assert_false(window_valid(&unknown));
	a.duration_ns = S - 1;
	assert_false(window_valid(&a));
	a.duration_ns = 31 * DAY;
	assert_true(window_valid(&a));
	a.duration_ns++;
	assert_false(window_valid(&a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_per_is_aligned_to_the_epoch),
		cmocka_unit_test(test_no_window),
		cmocka_unit_test(test_calendar_edges),
		cmocka_unit_test(test_every_day_against_libc),
		cmocka_unit_test(test_windows_meet),
		cmocka_unit_test(test_within),
		cmocka_unit_test(test_bits_tell_68_years_apart),
		cmocka_unit_test(test_equal_and_valid),
	};

	return cmocka_run_group_tests_name("quota/window", tests, NULL, NULL);
}
