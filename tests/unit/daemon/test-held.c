#include "daemon/held.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
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
		while (held_drain(&held, &at, 7, add_up, &sum)) {
			/* the next seven */
		}
		assert_int_equal(sum.n, expected.n);
		assert_int_equal(sum.amount, expected.amount);
		assert_int_equal(held_paths(&held), 0);
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

#define KEPT_PATHS 200u
#define KEPT_STEPS 100000u

static void write_down(void *ctx, const char *path, size_t len, int64_t n)
{
	int64_t *file = ctx;
	char *end;
	unsigned long which = strtoul(path + 2, &end, 10);

	assert_ptr_equal(end, path + len);
	file[which] = n;
}

/* What held_take_changes tells, written down, is what is held; and it tells of each path that changed once. */
static void test_changes(void **state)
{
	struct held held = { .seed = 1, .keeps = true };
	int64_t model[KEPT_PATHS] = { 0 }, file[KEPT_PATHS] = { 0 };
	struct test_random random;
	struct sum sum = { 0 };

	(void)state;
	test_random_init(&random, 0);
	for (unsigned step = 0; step < KEPT_STEPS; step++) {
		size_t which = (size_t)test_random_below(&random, KEPT_PATHS);
		char path[32];
		size_t len = (size_t)snprintf(path, sizeof(path), "p/%zu", which);

		if (test_random_below(&random, 2) == 0) {
			assert_int_equal(held_add(&held, path, len, 2), 0);
			model[which] += 2;
		} else if (held_take(&held, path, len, 1) == HELD_OK) {
			model[which]--;
		}
		if (test_random_below(&random, 100) == 0) {
			held_take_changes(&held, write_down, file);
			held_tidy(&held);
			assert_memory_equal(file, model, sizeof(model));
		}
	}
	held_take_changes(&held, write_down, file);
	held_take_changes(&held, add_up, &sum);
	assert_int_equal(sum.n, 0);
	/* All of it anew, as for another file; then what is drained. */
	memset(file, 0, sizeof(file));
	held_keep_all(&held);
	held_take_changes(&held, write_down, file);
	assert_memory_equal(file, model, sizeof(model));
	for (uint32_t at = 0; held_drain(&held, &at, 50, add_up, &sum);) {
		held_take_changes(&held, write_down, file);
	}
	held_take_changes(&held, write_down, file);
	for (size_t i = 0; i < KEPT_PATHS; i++) {
		assert_int_equal(file[i], 0);
	}
	held_deinit(&held);
}

/* Of differences: less than nothing too. */
static void test_differences(void **state)
{
	struct held held = { .keeps = true };
	int64_t file[2] = { 7, 7 };

	(void)state;
	assert_int_equal(held_add(&held, "p/0", 3, -5), 0);
	assert_int_equal(held_amount(&held, "p/0", 3), -5);
	assert_int_equal(held_take(&held, "p/0", 3, 1), HELD_E_LACKING);
	assert_int_equal(held_add(&held, "p/1", 3, 5), 0);
	assert_int_equal(held_add(&held, "p/1", 3, -5), 0);
	held_take_changes(&held, write_down, file);
	assert_int_equal(file[0], -5);
	assert_int_equal(file[1], 0);
	held_deinit(&held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_path),    cmocka_unit_test(test_random),
		cmocka_unit_test(test_passing_by),  cmocka_unit_test(test_changes),
		cmocka_unit_test(test_differences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
