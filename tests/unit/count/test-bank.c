#include "tests/support/test.h"

#include "lib/count/bank.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define SOME_IDS 10000u

struct visits {
	uint32_t n[SOME_IDS];
	uint32_t last;
	size_t all;
	const struct bank *bank;
};

static void visit(void *ctx, uint32_t id, struct slot *slot)
{
	struct visits *visits = ctx;

	assert_ptr_equal(slot, bank_slot(visits->bank, id));
	assert_true(visits->all == 0 || id > visits->last);
	visits->n[id]++;
	visits->last = id;
	visits->all++;
}

/* Takes and visits; returns how many were visited, in order, each once. */
static size_t sweep(struct bank *bank, struct visits *visits)
{
	memset(visits, 0, sizeof(*visits));
	visits->bank = bank;
	bank_take(bank);
	fence_heavy();

	size_t n = bank_visit(bank, visit, visits);

	assert_int_equal(n, visits->all);
	return n;
}

static void test_limits(void **state)
{
	struct bank bank = { 0 };

	(void)state;
	bank_deinit(&bank);
	assert_int_equal(bank_init(&bank, 0, false), -EINVAL);
	assert_int_equal(bank_init(&bank, BANK_MAX_IDS + 1, false), -EINVAL);
	assert_int_equal(bank_init(&bank, UINT32_MAX, false), -EINVAL);
	assert_null(bank.memory);
	assert_int_equal(bank_init(&bank, BANK_MAX_IDS, false), 0);
	assert_null(bank_slot(&bank, BANK_MAX_IDS - 1));
	assert_non_null(bank_touch(&bank, BANK_MAX_IDS - 1));
	bank_mark(&bank, BANK_MAX_IDS - 1);
	bank_take(&bank);
	bank_deinit(&bank);
	assert_null(bank.memory);
	bank_deinit(&bank);
}

static void test_touch(void **state)
{
	static const uint32_t sizes[] = { 1, 63, 64, 65, 255, 256, 257, 4096, 32768, 32769 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t last = sizes[i] - 1;
		struct bank bank;

		assert_int_equal(bank_init(&bank, sizes[i], false), 0);
		assert_null(bank_slot(&bank, 0));
		assert_null(bank_slot(&bank, last));

		struct slot *slot = bank_touch(&bank, last);

		assert_non_null(slot);
		assert_int_equal((uintptr_t)(slot - last % BANK_CHUNK) % 64, 0);
		assert_ptr_equal(bank_slot(&bank, last), slot);
		assert_ptr_equal(bank_touch(&bank, last), slot);
		assert_int_equal(slot_count(slot), 0);
		assert_int_equal(slot_held(slot), 0);
		/* Its chunk alone was made. */
		assert_int_equal(bank_slot(&bank, 0) == NULL, last >= BANK_CHUNK);
		assert_int_equal(atomic_load_explicit(&bank.n_chunks, memory_order_relaxed), 1);
		assert_non_null(bank_touch(&bank, 0));
		assert_ptr_equal(bank_slot(&bank, last), slot);
		bank_deinit(&bank);
	}
}

static void touch_and_mark(struct bank *bank, uint32_t id)
{
	assert_non_null(bank_touch(bank, id));
	bank_mark(bank, id);
}

static void test_marks(void **state)
{
	static const uint32_t ids[] = { 0, 1, 63, 64, 255, 256, 4095, 4096, 4097, SOME_IDS - 1 };
	static struct visits visits;
	struct bank bank;

	(void)state;
	assert_int_equal(bank_init(&bank, SOME_IDS, false), 0);
	assert_int_equal(sweep(&bank, &visits), 0);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		touch_and_mark(&bank, ids[i]);
		touch_and_mark(&bank, ids[i]);
		assert_int_equal(sweep(&bank, &visits), 1);
		assert_int_equal(visits.n[ids[i]], 1);
		assert_int_equal(sweep(&bank, &visits), 0);
	}
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		touch_and_mark(&bank, ids[i]);
	}
	assert_int_equal(sweep(&bank, &visits), sizeof(ids) / sizeof(ids[0]));
	bank_deinit(&bank);
}

static void test_taken_stays_until_visited(void **state)
{
	static struct visits visits;
	struct bank bank;

	(void)state;
	assert_int_equal(bank_init(&bank, SOME_IDS, false), 0);
	touch_and_mark(&bank, 7);
	bank_take(&bank);
	touch_and_mark(&bank, 8);
	touch_and_mark(&bank, 7);
	bank_take(&bank);
	/* Marked after the taking: the next visit's. */
	touch_and_mark(&bank, 9);

	memset(&visits, 0, sizeof(visits));
	visits.bank = &bank;
	assert_int_equal(bank_visit(&bank, visit, &visits), 2);
	assert_int_equal(visits.n[7] + visits.n[8], 2);
	assert_int_equal(sweep(&bank, &visits), 1);
	assert_int_equal(visits.n[9], 1);
	bank_deinit(&bank);
}

static void test_marks_agree_with_model(void **state)
{
	static struct visits visits;
	static bool marked[SOME_IDS];
	struct test_random random;
	struct bank bank;

	(void)state;
	test_random_init(&random, 0);
	assert_int_equal(bank_init(&bank, SOME_IDS, false), 0);
	memset(marked, 0, sizeof(marked));
	for (int round = 0; round < 300; round++) {
		uint64_t n = test_random_below(&random, 300);

		for (uint64_t i = 0; i < n; i++) {
			uint32_t id = (uint32_t)test_random_below(&random, SOME_IDS);

			touch_and_mark(&bank, id);
			marked[id] = true;
		}
		(void)sweep(&bank, &visits);
		for (uint32_t id = 0; id < SOME_IDS; id++) {
			assert_int_equal(visits.n[id], marked[id]);
			marked[id] = false;
		}
	}
	bank_deinit(&bank);
}

/* ---- cuts ---- */

static void count_cut(void *ctx, uint32_t id)
{
	struct visits *visits = ctx;

	assert_true(visits->all == 0 || id > visits->last);
	visits->n[id]++;
	visits->last = id;
	visits->all++;
}

static size_t cut(struct bank *bank, struct visits *visits)
{
	memset(visits, 0, sizeof(*visits));
	bank_cut(bank, count_cut, visits);
	return visits->all;
}

static void test_cuts(void **state)
{
	static struct visits visits;
	struct bank bank;

	(void)state;
	assert_int_equal(bank_init(&bank, SOME_IDS, true), 0);
	assert_int_equal(cut(&bank, &visits), 0);
	/* Dirty: for as long as it is, and once more when that was taken. */
	touch_and_mark(&bank, 100);
	assert_int_equal(cut(&bank, &visits), 1);
	assert_int_equal(visits.n[100], 1);
	assert_int_equal(cut(&bank, &visits), 1);
	assert_int_equal(sweep(&bank, &visits), 1);
	assert_int_equal(cut(&bank, &visits), 1);
	assert_int_equal(visits.n[100], 1);
	assert_int_equal(cut(&bank, &visits), 0);
	/* Noted, of whatever id, with a slot or without: once. */
	bank_note(&bank, SOME_IDS - 1);
	bank_note(&bank, 7);
	bank_note(&bank, 7);
	assert_null(bank_slot(&bank, SOME_IDS - 1));
	assert_int_equal(sweep(&bank, &visits), 0);
	assert_int_equal(cut(&bank, &visits), 2);
	assert_int_equal(visits.n[7] + visits.n[SOME_IDS - 1], 2);
	assert_int_equal(cut(&bank, &visits), 0);
	bank_deinit(&bank);
}

static void test_cuts_agree_with_model(void **state)
{
	static struct visits visits;
	static bool must[SOME_IDS], may[SOME_IDS];
	struct test_random random;
	struct bank bank;

	(void)state;
	test_random_init(&random, 1);
	memset(must, 0, sizeof(must));
	memset(may, 0, sizeof(may));
	assert_int_equal(bank_init(&bank, SOME_IDS, true), 0);
	for (int round = 0; round < 1000; round++) {
		for (uint64_t i = test_random_below(&random, 100); i > 0; i--) {
			uint32_t id = (uint32_t)test_random_below(&random, SOME_IDS);

			if (test_random_below(&random, 2)) {
				touch_and_mark(&bank, id);
			} else {
				bank_note(&bank, id);
			}
			must[id] = true;
		}
		if (test_random_below(&random, 2)) {
			(void)sweep(&bank, &visits);
		}
		(void)cut(&bank, &visits);
		for (uint32_t id = 0; id < SOME_IDS; id++) {
			/* Once more at most, but for what is still marked. */
			assert_true(!must[id] || visits.n[id] == 1);
			assert_true(must[id] || may[id] || visits.n[id] == 0);
			may[id] = visits.n[id] && (must[id] || bank_marked(&bank));
			must[id] = false;
		}
	}
	bank_deinit(&bank);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_touch),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_taken_stays_until_visited),
		cmocka_unit_test(test_marks_agree_with_model),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_cuts_agree_with_model),
	};

	return cmocka_run_group_tests_name("count/bank", tests, NULL, NULL);
}
