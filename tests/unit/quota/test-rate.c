#include "tests/support/test.h"

#include "lib/quota/rate.h"

#include <stdlib.h>

#define S INT64_C(1000000000)
#define HOUR (3600 * S)
#define MAX_GRANTS 4096u

static struct rate made(int64_t n, int64_t per_ns, int64_t burst)
{
	struct rate rate = { 0 };

	assert_true(rate_make(n, per_ns, burst, &rate));
	return rate;
}

static bool take(const struct rate *rate, uint64_t *level, int64_t n, int64_t now)
{
	struct rate_taken taken = rate_take(rate, *level, n, now);

	if (taken.granted) {
		*level = taken.level;
	}
	return taken.granted;
}

/* At one instant exactly the burst, in whatever portions; a unit more each cost, and not a nanosecond before. */
static void test_burst_then_rate(void **state)
{
	const int64_t starts[] = { 0, 1, 123456789, 7 * HOUR + 3, INT64_C(1) << 60 };

	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct rate rate = made(100, S, 10);
		int64_t now = starts[i];
		uint64_t level = rate_level(&rate, 0, now);

		for (int k = 1; k <= 10; k++) {
			assert_true(take(&rate, &level, 1, now));
			assert_int_equal(rate_used(&rate, level, now), k);
		}
		assert_false(take(&rate, &level, 1, now));
		assert_int_equal(rate_wait_ns(&rate, level, 1, now), 10000000);
		assert_int_equal(rate_wait_ns(&rate, level, 10, now), 100000000);
		assert_int_equal(rate_wait_ns(&rate, level, 11, now), -1);
		assert_false(take(&rate, &level, 1, now + 9999999));
		assert_true(take(&rate, &level, 1, now + 10000000));
		assert_false(take(&rate, &level, 3, now + 10000000));
		assert_true(take(&rate, &level, 3, now + 40000000));
		assert_true(take(&rate, &level, 10, now + 40000000 + 100000000));
	}
}

/* A clock that stands still or goes back grants nothing more, and harms nothing. */
static void test_clock_repeats_or_steps_back(void **state)
{
	struct rate rate = made(1, S, 2);
	uint64_t level = rate_level(&rate, 0, 100 * S);

	(void)state;
	assert_true(take(&rate, &level, 2, 100 * S));
	for (int i = 0; i < 10; i++) {
		assert_false(take(&rate, &level, 1, 100 * S));
		assert_false(take(&rate, &level, 1, 50 * S));
		assert_false(take(&rate, &level, 1, 0));
	}
	assert_true(take(&rate, &level, 1, 101 * S));
	assert_true(take(&rate, &level, 2, 103 * S));
}

struct grant {
	int64_t at, n;
};

/* Over every interval between two grants: sum <= burst + rate x t, in whole numbers. */
static void check_intervals(const struct grant *grants, size_t count, int64_t n, int64_t per_ns,
			    int64_t burst)
{
	__int128 sum = 0, least = 0;

	for (size_t i = 0; i < count; i++) {
		__int128 before = sum * per_ns - (__int128)n * grants[i].at;

		least = i == 0 || before < least ? before : least;
		sum += grants[i].n;
		assert_true(sum * per_ns - (__int128)n * grants[i].at - least <=
			    (__int128)burst * per_ns);
	}
}

static int64_t any_rate(struct test_random *random, int64_t per_ns)
{
	__int128 most = (__int128)per_ns * RATE_MAX_PER_SECOND / S;
	unsigned bits = 1;

	while (bits < 62 && ((__int128)1 << bits) <= most) {
		bits++;
	}
	int64_t n = 1 + (int64_t)test_random_below(
				random, UINT64_C(1) << (1 + test_random_below(random, bits - 1)));

	return n <= most ? n : (int64_t)most;
}

static void greedy(struct test_random *random, int64_t n, int64_t per_ns, int64_t burst)
{
	static struct grant grants[MAX_GRANTS];
	struct rate rate;
	size_t count = 0;
	int64_t now = (int64_t)test_random_below(random, 1000 * HOUR);
	uint64_t level;

	if (!rate_make(n, per_ns, burst, &rate)) {
		return;
	}
	level = rate_level(&rate, 0, now);
	while (count < MAX_GRANTS / 8 && now < INT64_C(1) << 61) {
		int64_t ask = 1 + (int64_t)test_random_below(random, (uint64_t)burst);
		int64_t used = rate_used(&rate, level, now);
		int64_t wait = rate_wait_ns(&rate, level, ask, now);

		/* What is said to be left can be had, and no more; when it is said to be possible, it is, and not before. */
		assert_true(used >= 0 && used <= burst);
		assert_true(rate_take(&rate, level, burst - used, now).granted);
		assert_false(rate_take(&rate, level, burst - used + 1, now).granted);
		assert_true(wait >= 0);
		if (wait > 0) {
			assert_false(rate_take(&rate, level, ask, now + wait - 1).granted);
		}
		now += wait;
		assert_true(take(&rate, &level, ask, now));
		grants[count++] = (struct grant){ now, ask };
		if (test_random_below(random, 10) == 0) {
			now += (int64_t)test_random_below(random, (uint64_t)S);
		}
	}
	check_intervals(grants, count, n, per_ns, burst);
}

static void test_every_interval(void **state)
{
	struct test_random random;

	(void)state;
	test_random_init(&random, 0);
	for (int i = 0; i < 2000; i++) {
		int64_t per_ns = test_random_below(&random, 2) == 0
					 ? S
					 : 1 + (int64_t)test_random_below(
						       &random, (uint64_t)(31 * 24 * HOUR));
		int64_t n = any_rate(&random, per_ns);

		greedy(&random, n, per_ns, 1 + (int64_t)test_random_below(&random, 1000));
		greedy(&random, n, per_ns, 1);
	}
}

/* In the long run what the rate says, or less by the rounding of its cost. */
static void test_long_run(void **state)
{
	static const struct {
		int64_t n, per_ns;
		double loss;
	} rates[] = {
		{ 100, S, 0 },
		{ 3, S, 0 },
		{ 7, 60 * S, 0 },
		{ 1000000000, S, 0 },
		{ INT64_C(10000000000), S, 0 },
		{ 1234567, S, 1e-5 },
		{ 999983, S, 1e-5 },
		{ 99991, S, 1e-6 },
		{ 123456789, S, 1.0 / 2000 },
		{ 1000000007, S, 1.0 / 250 },
		{ 86400001, 24 * HOUR, 1e-6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct rate rate = made(rates[i].n, rates[i].per_ns, 1);
		double nominal = (double)rates[i].per_ns / (double)rates[i].n;
		double real = (double)rate.cost / (double)rate.scale;

		assert_true(real >= nominal * (1 - 1e-15));
		assert_true(real <= nominal * (1 + rates[i].loss + 1e-15));
		assert_true((unsigned __int128)rate.cost * (uint64_t)rates[i].n >=
			    (unsigned __int128)(uint64_t)rates[i].per_ns * rate.scale);
	}
}

static void test_debt(void **state)
{
	struct rate rate = made(10, S, 5);
	uint64_t level = rate_level(&rate, 5, S);
	struct rate_taken taken = rate_take(&rate, level, 20, S);

	(void)state;
	assert_false(taken.granted);
	assert_int_equal(taken.lost, 0);
	assert_int_equal(rate_used(&rate, taken.level, S), 25);
	assert_int_equal(rate_wait_ns(&rate, taken.level, 1, S), 2100000000);
	/* As much as a word tells, and no wrap. */
	taken = rate_take(&rate, level, INT64_MAX, S);
	assert_false(taken.granted);
	assert_true(taken.lost > 0);
	assert_int_equal(taken.level - (uint64_t)S * rate.scale, RATE_MAX_DEBT);
	taken = rate_take(&rate, taken.level, INT64_MAX, 0);
	assert_int_equal(taken.level - (uint64_t)S * rate.scale, RATE_MAX_DEBT);
	assert_false(rate_take(&rate, taken.level, 1, S).granted);
}

static void test_idle_for_long(void **state)
{
	struct rate rate = made(1, S, 1);
	uint64_t level = rate_level(&rate, 1, 0);

	(void)state;
	assert_false(take(&rate, &level, 1, S - 1));
	assert_true(rate_take(&rate, level, 1, INT64_MAX).granted);
	assert_true(rate_take(&rate, level, 1, INT64_MAX).idle);
	assert_false(rate_take(&rate, rate_level(&rate, 1, INT64_MAX), 1, INT64_MAX).granted);
	/* A scale of 256: 20 months. */
	rate = made(1000000007, S, 1000);
	level = rate_level(&rate, 1000, S);
	assert_true(rate_take(&rate, level, 1000, S + 600 * 24 * HOUR).granted);
}

static void test_give(void **state)
{
	struct rate rate = made(10, S, 10);
	uint64_t before = rate_level(&rate, 4, S);
	uint64_t charged = rate_take(&rate, before, 6, S).level;
	uint64_t later;

	(void)state;
	/* Nothing happened meanwhile; others were charged meanwhile. */
	assert_int_equal(rate_give(&rate, charged, 6, charged, S), before);
	assert_false(rate_take(&rate, charged, 1, S).granted);
	later = rate_take(&rate, charged, 2, S + S / 2).level;
	assert_int_equal(rate_used(&rate, rate_give(&rate, later, 6, charged, S), S + S / 2), 1);
	/* It drained, and somebody has found the bucket empty: nothing is given. */
	later = rate_take(&rate, charged, 10, 3 * S).level;
	assert_int_equal(rate_give(&rate, later, 6, charged, 3 * S), later);
}

static void test_make(void **state)
{
	struct rate rate;
	int64_t most;

	(void)state;
	assert_true(rate_make(1, 31 * 24 * HOUR, 100, &rate));
	most = rate_max_burst(1, 31 * 24 * HOUR);
	assert_true(most >= 100);
	assert_true(rate_make(1, 31 * 24 * HOUR, most, &rate));
	assert_false(rate_make(1, 31 * 24 * HOUR, most + 1, &rate));
	assert_true(rate_make(RATE_MAX_PER_SECOND, S, 1000000, &rate));
	assert_true(rate.cost >= 1);
	assert_false(rate_make(1, S, INT64_MAX, &rate));
	most = rate_max_burst(1000000007, S);
	assert_true(rate_make(1000000007, S, most, &rate));
	assert_false(rate_make(1000000007, S, most + 1, &rate));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst_then_rate),
		cmocka_unit_test(test_clock_repeats_or_steps_back),
		cmocka_unit_test(test_every_interval),
		cmocka_unit_test(test_long_run),
		cmocka_unit_test(test_debt),
		cmocka_unit_test(test_idle_for_long),
		cmocka_unit_test(test_give),
		cmocka_unit_test(test_make),
	};

	return cmocka_run_group_tests_name("quota/rate", tests, NULL, NULL);
}
