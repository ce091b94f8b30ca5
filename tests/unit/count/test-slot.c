#include "tests/support/test.h"

#include "lib/count/slot.h"

#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

typedef bool (*add_fn)(struct slot *slot, int64_t n, int64_t batch);

static const struct variant {
	const char *name;
	add_fn add;
} variants[] = {
	{ "owner", slot_add_owner },
	{ "local", slot_add_local },
	{ "c11", slot_add_c11 },
	{ "chosen", slot_add },
};

#define N_VARIANTS (sizeof(variants) / sizeof(variants[0]))
/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration can't be put in parentheses. */
#define EACH_VARIANT(v) for (const struct variant *v = variants; v < variants + N_VARIANTS; v++)
/* NOLINTEND(bugprone-macro-parentheses) */

static const int64_t batches[] = {
	1, 2, 3, 32, 64, 1024, 1 << 20, INT64_C(1) << 40, SLOT_BATCH_MAX
};

#define N_BATCHES (sizeof(batches) / sizeof(batches[0]))

/* A slot with `held` held back, on top of a count that is near where the words wrap. */
static struct slot slot_with(uint64_t published, int64_t held)
{
	struct slot slot;

	atomic_init(&slot.published, published);
	atomic_init(&slot.count, published + (uint64_t)held);
	return slot;
}

static void check(const struct variant *variant, uint64_t published, int64_t held, int64_t n,
		  int64_t batch, bool fast)
{
	struct slot slot = slot_with(published, held);
	bool added = variant->add(&slot, n, batch);

	if (added != fast) {
		print_message("%s: held %lld, n %lld, batch %lld\n", variant->name, (long long)held,
			      (long long)n, (long long)batch);
	}
	assert_int_equal(added, fast);
	/* Added whole, or nothing has changed. */
	assert_true(slot_count(&slot) == published + (uint64_t)held + (fast ? (uint64_t)n : 0));
	assert_true(atomic_load_explicit(&slot.published, memory_order_relaxed) == published);
}

static void test_folds_at_exactly_batch(void **state)
{
	(void)state;
	EACH_VARIANT(v)
	{
		for (size_t i = 0; i < N_BATCHES; i++) {
			int64_t batch = batches[i];

			check(v, 0, 0, batch, batch, false);
			check(v, 0, 0, -batch, batch, false);
			check(v, 0, 0, batch - 1, batch, true);
			check(v, 0, 0, 1 - batch, batch, true);
			check(v, 0, batch - 1, 1, batch, false);
			check(v, 0, 1 - batch, -1, batch, false);
			check(v, 0, batch - 1, 0, batch, true);
			check(v, 0, 1 - batch, 0, batch, true);
			if (batch > 1) {
				check(v, 0, batch - 2, 1, batch, true);
				check(v, 0, 2 - batch, -1, batch, true);
				check(v, 0, batch - 1, 1 - batch, batch, true);
			}
		}
	}
}

static void test_amount_beyond_batch_is_never_fast(void **state)
{
	(void)state;
	/* The sum is small, but a claim in between would leave n alone held back. */
	EACH_VARIANT(v)
	{
		check(v, 0, -31, 32, 32, false);
		check(v, 0, 31, -32, 32, false);
		check(v, 0, -31, 62, 32, false);
		check(v, 0, -31, 31, 32, true);
	}
}

static void test_more_held_than_batch_is_never_fast(void **state)
{
	(void)state;
	EACH_VARIANT(v)
	{
		check(v, 0, 63, -31, 32, false);
		check(v, 0, 62, -31, 32, true);
		check(v, 0, 62, -30, 32, false);
		check(v, 0, INT64_MAX, 1, 32, false);
		check(v, 0, INT64_MIN, -1, 32, false);
		check(v, 0, INT64_MAX, 1, SLOT_BATCH_MAX, false);
		check(v, 0, INT64_MIN, -1, SLOT_BATCH_MAX, false);
	}
}

static void test_int64_edges(void **state)
{
	static const uint64_t starts[] = {
		0, 1, UINT64_MAX, UINT64_MAX - 15, (uint64_t)INT64_MAX, (uint64_t)INT64_MAX + 1
	};

	(void)state;
	EACH_VARIANT(v)
	{
		for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
			for (size_t i = 0; i < N_BATCHES; i++) {
				int64_t batch = batches[i];

				check(v, starts[s], 0, INT64_MAX, batch, false);
				check(v, starts[s], 0, INT64_MIN, batch, false);
				check(v, starts[s], batch - 1, INT64_MAX, batch, false);
				check(v, starts[s], 1 - batch, INT64_MIN, batch, false);
				check(v, starts[s], 1 - batch, INT64_MAX, batch, false);
				check(v, starts[s], batch - 1, INT64_MIN, batch, false);
			}
			/* The words wrap on the way; what is held back does not. */
			check(v, starts[s], 16, 15, 32, true);
			check(v, starts[s], 16, 16, 32, false);
			check(v, starts[s], -16, -15, 32, true);
			check(v, starts[s], -16, -16, 32, false);
		}
	}
}

/* The add of a caller: fast, or put and fold. */
static bool add_and_fold(const struct variant *variant, struct slot *slot, int64_t n, int64_t batch,
			 int64_t *total)
{
	int64_t growth;

	if (variant->add(slot, n, batch)) {
		return false;
	}
	slot_put(slot, n);
	if (slot_claim(slot, &growth)) {
		*total += growth;
	}
	return true;
}

static void test_a_fold_happens(void **state)
{
	(void)state;
	EACH_VARIANT(v)
	{
		struct slot slot = slot_with(0, 0);
		int64_t total = 0;
		int folds = 0;

		for (int i = 1; i <= 1000; i++) {
			folds += add_and_fold(v, &slot, 1, 32, &total);
			assert_in_range(i - total, 0, SLOT_BOUND_GROWING(32));
		}
		assert_int_equal(folds, 1000 / 32);
		assert_int_equal(total, 1000 / 32 * 32);
		assert_int_equal(slot_held(&slot), 1000 % 32);

		folds = 0;
		for (int i = 1; i <= 1000; i++) {
			folds += add_and_fold(v, &slot, -1, 32, &total);
		}
		assert_true(folds >= 1000 / 32 - 1);
		assert_int_equal(total + slot_held(&slot), 0);
		assert_int_equal(slot_count(&slot), 0);
	}
}

static void test_claim(void **state)
{
	struct slot slot = slot_with(0, 0);
	int64_t growth = 77;

	(void)state;
	assert_false(slot_claim(&slot, &growth));
	assert_int_equal(growth, 77);

	static const int64_t amounts[] = {
		1, -1, 31, INT64_MAX, INT64_MIN, -5, INT64_MAX, INT64_MAX
	};
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
		slot_put(&slot, amounts[i]);
		sum += (uint64_t)amounts[i];
		assert_true(slot_held(&slot) == amounts[i]);
		assert_true(slot_claim(&slot, &growth));
		assert_true(growth == amounts[i]);
		assert_int_equal(slot_held(&slot), 0);
		assert_false(slot_claim(&slot, &growth));
	}
	/* Never zeroed: the count is all that was ever added. */
	assert_true(slot_count(&slot) == sum);

	/* Up and down again is no growth. */
	slot_put(&slot, 5);
	slot_put(&slot, -5);
	assert_false(slot_claim(&slot, &growth));
}

/* Random amounts by one writer, claims by somebody else now and then, against two plain sums. */
static void agree_with_model(const struct variant *variant, uint64_t stream)
{
	struct test_random random;

	test_random_init(&random, stream);
	int64_t batch = 1 + (int64_t)test_random_below(&random, 100);
	struct slot slot = slot_with(test_random_next(&random), 0);
	uint64_t start = slot_count(&slot);
	int64_t sum = 0, total = 0;

	for (int i = 0; i < 500; i++) {
		int64_t n = (int64_t)test_random_below(&random, 220) - 110;
		int64_t held = sum - total;
		bool fast = n < batch && n > -batch && held + n < batch && held + n > -batch;
		bool folded = add_and_fold(variant, &slot, n, batch, &total);

		sum += n;
		assert_int_equal(folded, !fast);
		assert_true(slot_count(&slot) - start == (uint64_t)sum);
		assert_int_equal(slot_held(&slot), sum - total);
		/* No claim comes in the middle of an add here: one batch bounds both signs. */
		assert_in_range(sum - total + batch, 1, 2 * batch - 1);
		if (test_random_below(&random, 10) == 0) {
			int64_t growth = 0;

			(void)slot_claim(&slot, &growth);
			total += growth;
		}
	}
}

static void test_variants_agree_with_model(void **state)
{
	(void)state;
	EACH_VARIANT(v)
	{
		for (uint64_t stream = 0; stream < 50; stream++) {
			agree_with_model(v, stream);
		}
	}
}

/* ---- local: what can interrupt each other on one CPU ---- */

static struct slot interrupted;
static _Atomic(uint64_t) from_handler;
static _Atomic(int64_t) interrupted_total;

static void add_interrupted(void)
{
	int64_t growth;

	while (!slot_add_local(&interrupted, 1, 32)) {
		if (slot_claim(&interrupted, &growth)) {
			(void)atomic_fetch_add_explicit(&interrupted_total, growth,
							memory_order_relaxed);
		}
	}
}

static void on_alarm(int signal)
{
	(void)signal;
	for (int i = 0; i < 3; i++) {
		add_interrupted();
	}
	(void)atomic_fetch_add_explicit(&from_handler, 3, memory_order_relaxed);
}

static void test_local_survives_signal_handlers(void **state)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct sigaction old;
	struct itimerval timer = { .it_interval = { .tv_usec = 100 },
				   .it_value = { .tv_usec = 100 } };
	struct itimerval stop = { 0 };
	uint64_t n = 0;

	(void)state;
	assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
	while (n < 100000000 && atomic_load_explicit(&from_handler, memory_order_relaxed) < 1500) {
		add_interrupted();
		n++;
	}
	assert_int_equal(setitimer(ITIMER_REAL, &stop, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);

	uint64_t all = n + atomic_load_explicit(&from_handler, memory_order_relaxed);

	assert_true(slot_count(&interrupted) == all);
	assert_true((uint64_t)atomic_load_explicit(&interrupted_total, memory_order_relaxed) +
			    (uint64_t)slot_held(&interrupted) ==
		    all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folds_at_exactly_batch),
		cmocka_unit_test(test_amount_beyond_batch_is_never_fast),
		cmocka_unit_test(test_more_held_than_batch_is_never_fast),
		cmocka_unit_test(test_int64_edges),
		cmocka_unit_test(test_a_fold_happens),
		cmocka_unit_test(test_claim),
		cmocka_unit_test(test_variants_agree_with_model),
		cmocka_unit_test(test_local_survives_signal_handlers),
	};

	return cmocka_run_group_tests_name("count/slot", tests, NULL, NULL);
}
