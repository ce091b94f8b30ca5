#include "daemon/held.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static void test_one_path(void **state)
{
	struct held held = { .seed = 7 };

	(void)state;
	assert_int_equal(held_amount(&held, "a", 1), 0);
	assert_int_equal(held_take(&held, "a", 1, 1), HELD_E_LACKING);
	assert_int_equal(held_add(&held, "a/b", 3, 5), 0);
	assert_int_equal(held_amount(&held, "a/b", 3), 5);
	assert_int_equal(held_amount(&held, "a/bc", 4), 0);
	assert_int_equal(held_amount(&held, "a", 1), 0);
	assert_int_equal(held_paths(&held), 1);
	assert_int_equal(held_take(&held, "a/b", 3, 6), HELD_E_LACKING);
	assert_int_equal(held_amount(&held, "a/b", 3), 5);
	assert_int_equal(held_take(&held, "a/b", 3, 5), HELD_OK);
	assert_int_equal(held_paths(&held), 0);
	assert_int_equal(held_take(&held, "a/b", 3, 1), HELD_E_LACKING);
	assert_int_equal(held_add(&held, "a/b", 3, INT64_C(1) << 62), 0);
	assert_int_equal(held_paths(&held), 1);
	assert_int_equal(held_amount(&held, "a/b", 3), INT64_C(1) << 62);
	held_deinit(&held);
	assert_int_equal(held.seed, 7);
	assert_int_equal(held_amount(&held, "a/b", 3), 0);
}

struct sum {
	uint32_t n;
	int64_t amount;
};

static void add_up(void *ctx, const char *path, size_t len, int64_t n)
{
	struct sum *sum = ctx;

	assert_true(len > 0 && path[0] == 'p');
	assert_true(n > 0);
	sum->n++;
	sum->amount += n;
}

/* Beside a plain array; the table grows, and shrinks again when what it has has gone. */
static void test_random(void **state)
{
	enum {
		PATHS = 3000,
		STEPS = 200000
	};
	static int64_t model[PATHS];
	struct held held = { .seed = test_seed() };
	struct test_random random;
	uint32_t largest = 0;

	(void)state;
	test_random_init(&random, 0);
	for (unsigned step = 0; step < STEPS; step++) {
		/* Growing in the first half, shrinking in the second. */
		bool add = test_random_below(&random, 100) < (step < STEPS / 2 ? 60 : 35);
		size_t which = (size_t)test_random_below(&random, PATHS);
		int64_t n = 1 + (int64_t)test_random_below(&random, 3);
		char path[32];
		size_t len = (size_t)snprintf(path, sizeof(path), "p/%zu/%s", which,
					      which % 2 == 0 ? "even" : "");

		if (add) {
			assert_int_equal(held_add(&held, path, len, n), 0);
			model[which] += n;
		} else {
			assert_int_equal(held_take(&held, path, len, n),
					 model[which] >= n ? HELD_OK : HELD_E_LACKING);
			model[which] -= model[which] >= n ? n : 0;
		}
		assert_int_equal(held_amount(&held, path, len), model[which]);
		largest = held.size > largest ? held.size : largest;
		assert_true(held.size == 0 || held.n < held.size);
	}
	{
		struct sum sum = { 0 }, expected = { 0 };
		uint32_t at = 0;

		for (size_t i = 0; i < PATHS; i++) {
			expected.n += model[i] > 0;
			expected.amount += model[i];
		}
		while (held_some(&held, &at, 7, add_up, &sum)) {
			/* the next seven */
		}
		assert_int_equal(sum.n, expected.n);
		assert_int_equal(sum.amount, expected.amount);
		assert_int_equal(held_paths(&held), expected.n);
	}
	held_deinit(&held);
}

/* Many paths, one after the other, leave nothing behind. */
static void test_passing_by(void **state)
{
	struct held held = { 0 };

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		char path[32];
		size_t len = (size_t)snprintf(path, sizeof(path), "p/%u", i);

		assert_int_equal(held_add(&held, path, len, 1), 0);
		assert_int_equal(held_take(&held, path, len, 1), HELD_OK);
		assert_true(held.size <= 64);
	}
	held_deinit(&held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_path),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_passing_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
