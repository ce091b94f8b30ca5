#include "tests/support/test.h"

#include "lib/count/pending.h"

static int64_t word(const struct pending *pending)
{
	return atomic_load_explicit(&pending->word, memory_order_relaxed);
}

static uint64_t signals(const struct pending_share *share)
{
	return atomic_load_explicit(&share->signals, memory_order_relaxed);
}

static uint64_t skipped(const struct pending_share *share)
{
	return atomic_load_explicit(&share->skipped, memory_order_relaxed);
}

static void test_steps(void **state)
{
	struct pending pending;
	struct pending_share share = { 0 };

	(void)state;
	pending_init(&pending, 1000);
	for (int64_t i = 1; i < PENDING_STEP; i++) {
		pending_note(&pending, &share, 1);
	}
	assert_int_equal(word(&pending), 0);
	assert_int_equal(share.local, PENDING_STEP - 1);
	pending_note(&pending, &share, 1);
	assert_int_equal(word(&pending), PENDING_STEP);
	assert_int_equal(share.local, 0);
	/* More than a step goes over whole. */
	pending_note(&pending, &share, 500);
	assert_int_equal(word(&pending), PENDING_STEP + 500);
	assert_int_equal(signals(&share), 2);
	assert_int_equal(skipped(&share), 0);
}

static void test_skipped_only_above_threshold(void **state)
{
	struct pending pending;
	struct pending_share share = { 0 };

	(void)state;
	pending_init(&pending, 2 * PENDING_STEP);
	pending_note(&pending, &share, PENDING_STEP);
	pending_note(&pending, &share, PENDING_STEP);
	/* Exactly at the threshold no flush is due, and a step is still passed on. */
	assert_int_equal(word(&pending), 2 * PENDING_STEP);
	assert_false(pending_due(&pending));
	pending_note(&pending, &share, PENDING_STEP);
	assert_int_equal(word(&pending), 3 * PENDING_STEP);
	assert_true(pending_due(&pending));
	assert_int_equal(skipped(&share), 0);
	for (int i = 0; i < 10; i++) {
		pending_note(&pending, &share, PENDING_STEP);
	}
	assert_int_equal(word(&pending), 3 * PENDING_STEP);
	assert_int_equal(signals(&share), 3);
	assert_int_equal(skipped(&share), 10);

	pending_reset(&pending);
	assert_int_equal(word(&pending), 0);
	assert_false(pending_due(&pending));
	pending_note(&pending, &share, PENDING_STEP);
	assert_int_equal(word(&pending), PENDING_STEP);
}

static void test_just_above_threshold(void **state)
{
	struct pending pending;
	struct pending_share share = { 0 };

	(void)state;
	pending_init(&pending, PENDING_STEP);
	pending_note(&pending, &share, PENDING_STEP + 1);
	assert_int_equal(word(&pending), PENDING_STEP + 1);
	assert_true(pending_due(&pending));
	pending_note(&pending, &share, PENDING_STEP);
	assert_int_equal(skipped(&share), 1);
}

static void test_bound_is_reached_and_kept(void **state)
{
	struct pending pending;
	struct pending_share shares[3] = { 0 };
	int64_t held = 0;

	(void)state;
	pending_init(&pending, 3 * PENDING_STEP);
	assert_int_equal(pending_bound(&pending, 3), 192 + 3 * 63);
	for (size_t i = 0; i < 3; i++) {
		pending_note(&pending, &shares[i], PENDING_STEP);
		pending_note(&pending, &shares[i], PENDING_STEP - 1);
		held += 2 * PENDING_STEP - 1;
	}
	assert_false(pending_due(&pending));
	assert_int_equal(held, pending_bound(&pending, 3));
	pending_note(&pending, &shares[0], 1);
	assert_true(pending_due(&pending));
}

static void test_huge_magnitudes(void **state)
{
	struct pending pending;
	struct pending_share shares[64] = { 0 };

	(void)state;
	pending_init(&pending, 64 * PENDING_STEP);
	for (size_t i = 0; i < 64; i++) {
		pending_note(&pending, &shares[i], INT64_C(1) << 61);
		assert_int_equal(shares[i].local, 0);
		assert_true(pending_due(&pending));
		assert_true(word(&pending) > 0);
	}
	pending_init(&pending, 0);
	pending_note(&pending, &shares[0], PENDING_STEP - 1);
	assert_false(pending_due(&pending));
	pending_note(&pending, &shares[0], 1);
	assert_true(pending_due(&pending));
}

static void test_retune(void **state)
{
	struct pending pending;
	struct pending_share share = { 0 };

	(void)state;
	pending_init(&pending, 64);
	pending_note(&pending, &share, 100);
	assert_true(pending_due(&pending));
	pending_retune(&pending, 128);
	assert_int_equal(pending_threshold(&pending), 128);
	assert_false(pending_due(&pending));
	assert_int_equal(pending_bound(&pending, 2), 128 + 2 * 63);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_skipped_only_above_threshold),
		cmocka_unit_test(test_just_above_threshold),
		cmocka_unit_test(test_bound_is_reached_and_kept),
		cmocka_unit_test(test_huge_magnitudes),
		cmocka_unit_test(test_retune),
	};

	return cmocka_run_group_tests_name("count/pending", tests, NULL, NULL);
}
