/* Effective protection: scenarios worked out by hand from the published formula, its edges, and what holds for all numbers. */
#include "tests/support/test.h"

#include "lib/quota/protect.h"

#define N_MAX 8u

struct scenario {
	struct protect_parent parent; /* `children` is worked out */
	bool recursive;
	size_t n;
	int64_t usage[N_MAX], setting[N_MAX], effective[N_MAX];
};

static void check(struct scenario scenario)
{
	for (size_t i = 0; i < scenario.n; i++) {
		scenario.parent.children += protect_used(scenario.usage[i], scenario.setting[i]);
	}
	for (size_t i = 0; i < scenario.n; i++) {
		assert_int_equal(protect_effective(scenario.usage[i], scenario.setting[i],
						   &scenario.parent, scenario.recursive),
				 scenario.effective[i]);
	}
}

static void test_overcommitted(void **state)
{
	(void)state;
	/* Used of what is set: 50, 25, 0, 0, of which the parent has 50: 50 x 50 / 75, 25 x 50 / 75. */
	check((struct scenario){ .parent = { .usage = 150, .effective = 50 },
				 .n = 4,
				 .usage = { 50, 50, 50, 0 },
				 .setting = { 75, 25, 0, 500 },
				 .effective = { 33, 16, 0, 0 } });
	/* There is nothing left to float. */
	check((struct scenario){ .parent = { .usage = 150, .effective = 50 },
				 .recursive = true,
				 .n = 4,
				 .usage = { 50, 50, 50, 0 },
				 .setting = { 75, 25, 0, 500 },
				 .effective = { 33, 16, 0, 0 } });
	/* The parent has nothing. */
	check((struct scenario){ .parent = { .usage = 100, .effective = 0 },
				 .n = 2,
				 .usage = { 60, 40 },
				 .setting = { 60, 10 },
				 .effective = { 0, 0 } });
}

static void test_not_overcommitted(void **state)
{
	(void)state;
	/* 30, 25, 0 used of 60: everyone has it. What a child does not use it can't claim. */
	check((struct scenario){ .parent = { .usage = 130, .effective = 60 },
				 .n = 3,
				 .usage = { 30, 50, 50 },
				 .setting = { 75, 25, 0 },
				 .effective = { 30, 25, 0 } });
	/* Exactly committed. */
	check((struct scenario){ .parent = { .usage = 100, .effective = 50 },
				 .n = 2,
				 .usage = { 50, 50 },
				 .setting = { 25, 25 },
				 .effective = { 25, 25 } });
}

static void test_recursive(void **state)
{
	(void)state;
	/* 20 claimed of 60; 40 float over 80 unprotected: half of each one's unprotected 30, 50, 0. */
	check((struct scenario){ .parent = { .usage = 100, .effective = 60 },
				 .recursive = true,
				 .n = 3,
				 .usage = { 50, 50, 0 },
				 .setting = { 20, 0, 10 },
				 .effective = { 20 + 15, 25, 0 } });
	check((struct scenario){ .parent = { .usage = 100, .effective = 60 },
				 .n = 3,
				 .usage = { 50, 50, 0 },
				 .setting = { 20, 0, 10 },
				 .effective = { 20, 0, 0 } });
	/* Nobody claims: all of it floats. Rounded down. */
	check((struct scenario){ .parent = { .usage = 90, .effective = 50 },
				 .recursive = true,
				 .n = 3,
				 .usage = { 30, 30, 30 },
				 .setting = { 0, 0, 0 },
				 .effective = { 16, 16, 16 } });
	/* Everything used is claimed: no unprotected usage to divide by. */
	check((struct scenario){ .parent = { .usage = 40, .effective = 40 },
				 .recursive = true,
				 .n = 2,
				 .usage = { 20, 20 },
				 .setting = { 20, 30 },
				 .effective = { 20, 20 } });
}

static int64_t below(int64_t usage, int64_t setting, int64_t parent_usage, int64_t effective,
		     int64_t children, bool recursive)
{
	struct protect_parent parent = { parent_usage, effective, children };

	return protect_effective(usage, setting, &parent, recursive);
}

static void test_three_levels(void **state)
{
	int64_t top, middle;

	(void)state;
	/* Top: 100 set, 200 used. Two in the middle: 80 of 120, 60 of 80 -> 80 + 60 > 100. */
	top = protect_effective(200, 100, NULL, false);
	assert_int_equal(top, 100);
	middle = below(120, 80, 200, top, 140, false);
	assert_int_equal(middle, 57); /* 80 x 100 / 140 */
	assert_int_equal(below(80, 60, 200, top, 140, false), 42);
	/* Below the first: 40 and 30 claimed of 60 and 60 used, 57 given: 70 > 57. */
	assert_int_equal(below(60, 40, 120, middle, 70, false), 32); /* 40 x 57 / 70 */
	assert_int_equal(below(60, 30, 120, middle, 70, false), 24);
	/* Or 10 and 0 claimed: 47 float over 110: 50 x 47 / 110, 60 x 47 / 110. */
	assert_int_equal(below(60, 10, 120, middle, 10, true), 10 + 21);
	assert_int_equal(below(60, 0, 120, middle, 10, true), 25);
	/* A child never has what its parent has not. */
	assert_int_equal(below(60, 1000, 60, 0, 60, true), 0);
}

static void test_edges(void **state)
{
	const int64_t big = INT64_C(1) << 62;

	(void)state;
	assert_int_equal(protect_used(-5, 10), 0);
	assert_int_equal(protect_used(0, 10), 0);
	assert_int_equal(protect_used(3, 10), 3);
	assert_int_equal(protect_used(30, 10), 10);
	/* At the top: what is used of what is set, never what is not there. */
	assert_int_equal(protect_effective(30, 100, NULL, true), 30);
	assert_int_equal(protect_effective(0, 100, NULL, true), 0);
	assert_int_equal(protect_effective(-1, 100, NULL, true), 0);
	/* Zero usage, zero parent. */
	assert_int_equal(below(0, 100, 500, 100, 50, true), 0);
	assert_int_equal(below(10, 5, 0, 0, 0, true), 5);
	assert_int_equal(below(10, 0, 0, 0, 0, true), 0);
	/* Products beyond 64 bits: 2^40 x 2^40 / 2^41. */
	assert_int_equal(below(INT64_C(1) << 40, INT64_C(1) << 40, INT64_C(1) << 41,
			       INT64_C(1) << 40, INT64_C(1) << 41, false),
			 INT64_C(1) << 39);
	assert_int_equal(below(big, big, INT64_MAX, big, INT64_MAX, true), big / 2);
	assert_int_equal(below(big, 0, INT64_MAX, big, 1, true), big / 2);
}

/* Read while others change them, the numbers may fit together badly: still nothing below 0, above usage, or divided by zero. */
static void test_any_numbers(void **state)
{
	struct test_random random;

	(void)state;
	test_random_init(&random, 0);
	for (int i = 0; i < 1000000; i++) {
		int64_t numbers[5];

		for (size_t k = 0; k < 5; k++) {
			numbers[k] = (int64_t)(test_random_next(&random) >>
					       test_random_below(&random, 64));
			if (test_random_below(&random, 8) == 0) {
				numbers[k] = 0;
			}
		}
		numbers[1] &= INT64_MAX;
		numbers[3] &= INT64_MAX;
		int64_t effective = below(numbers[0], numbers[1], numbers[2], numbers[3],
					  numbers[4], i % 2 == 0);

		assert_true(effective >= 0);
		assert_true(effective == 0 || effective <= numbers[0]);
	}
}

/* Where they do fit together: the children never have more than the parent, and with recursion no part of it is lost but by rounding. */
static void test_sums(void **state)
{
	struct test_random random;

	(void)state;
	test_random_init(&random, 1);
	for (int i = 0; i < 200000; i++) {
		unsigned bits = 1 + (unsigned)test_random_below(&random, 58);
		size_t n = 1 + test_random_below(&random, N_MAX);
		int64_t usage[N_MAX], setting[N_MAX];
		struct protect_parent parent = { 0 };
		bool recursive = test_random_below(&random, 2) == 0;
		int64_t sum = 0;

		for (size_t k = 0; k < n; k++) {
			usage[k] = (int64_t)test_random_below(&random, UINT64_C(1) << bits);
			setting[k] = (int64_t)test_random_below(&random, UINT64_C(1) << bits);
			parent.usage += usage[k];
			parent.children += protect_used(usage[k], setting[k]);
		}
		parent.effective = (int64_t)test_random_below(&random, (uint64_t)parent.usage + 1);
		for (size_t k = 0; k < n; k++) {
			sum += protect_effective(usage[k], setting[k], &parent, recursive);
		}
		assert_true(sum <= parent.effective);
		if (recursive || parent.children >= parent.effective) {
			assert_true(sum > parent.effective - (int64_t)n);
		} else {
			assert_int_equal(sum, parent.children);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overcommitted), cmocka_unit_test(test_not_overcommitted),
		cmocka_unit_test(test_recursive),     cmocka_unit_test(test_three_levels),
		cmocka_unit_test(test_edges),	      cmocka_unit_test(test_any_numbers),
		cmocka_unit_test(test_sums),
	};

	return cmocka_run_group_tests_name("quota/protect", tests, NULL, NULL);
}
