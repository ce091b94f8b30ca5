/*
 * Many threads charge planes with windows and rates, on a clock that they push on themselves, with readings of it that are held for
 * a while before they are used.
 *
 * Windows: the word that a grant made of usage says in which window it counts, and as the how manieth. Over more than 10,000 roll-overs
 * each number of each window must be given out exactly once, without a gap, and none above max.
 *
 * Rates: over every interval between any two grants, burst + rate x time.
 */
#include "tests/support/test.h"

#include "lib/base/hook.h"
#include "lib/quota/charge.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define S INT64_C(1000000000)
#define DAY (86400 * S)
#define N_THREADS 3u
#if defined(RATION_HOOKS) || defined(__SANITIZE_THREAD__)
#define N_ROLLS 10500u
#else
#define N_ROLLS 100000u
#endif
#define MAX_LEAF 8
#define MAX_ROOT 20
#define MAX_GRANTS 400000u
#define START_WALL (INT64_C(1700000000) * S)

static const struct window none = { .kind = WINDOW_NONE };
static const struct window second = { .kind = WINDOW_PER, .duration_ns = S };
static const struct window rate = { .kind = WINDOW_RATE };

static const struct quota_limits max_leaf = { .max = MAX_LEAF, .high = QUOTA_NONE };
static const struct quota_limits max_root = { .max = MAX_ROOT, .high = QUOTA_NONE };
static const struct quota_limits no_max = QUOTA_LIMITS_INIT;
static const struct quota_limits rate_leaf = {
	.max = QUOTA_NONE, .high = QUOTA_NONE, .rate = 300, .per_ns = S, .burst = 40
};
static const struct quota_limits rate_root = {
	.max = QUOTA_NONE, .high = QUOTA_NONE, .rate = 7, .per_ns = S / 64, .burst = 50
};

struct grant {
	int64_t at, n;
};

struct thread {
	_Alignas(64) struct test_random random;
	struct quota_time held; /* a reading from a while ago */
	uint64_t grants, refusals, twice, beyond, bad_refusals;
	struct grant *list;
};

static struct {
	struct quota_node root[3], leaves[3][2];
	struct thread threads[N_THREADS];
	_Alignas(64) _Atomic(int64_t) mono;
	_Atomic(int64_t) offset; /* wall - mono */
	/* By window and count: given out? By window: how many. */
	_Atomic(uint8_t) given[N_ROLLS + 200][MAX_ROOT + 1];
	_Atomic(int64_t) granted[N_ROLLS + 200];
	_Atomic(int64_t) granted_leaf[2][N_ROLLS + 200];
	_Atomic(int64_t) total;
	bool steps;
} stress;

static uint64_t below(struct thread *thread, uint64_t bound)
{
	return test_random_below(&thread->random, bound);
}

static struct quota_time read_clock(void)
{
	struct quota_time time = { .mono_ns = atomic_load_explicit(&stress.mono,
								   memory_order_seq_cst) };

	time.wall_ns = time.mono_ns + atomic_load_explicit(&stress.offset, memory_order_seq_cst);
	return time;
}

/* Now, or what was now a while ago; and the clock goes on. */
static struct quota_time any_time(struct thread *thread, int64_t step)
{
	if (below(thread, 8) == 0) {
		thread->held = read_clock();
	}
	if (below(thread, 2) == 0) {
		(void)atomic_fetch_add_explicit(
			&stress.mono, (int64_t)below(thread, (uint64_t)step), memory_order_seq_cst);
	}
	if (stress.steps && below(thread, 200) == 0) {
		(void)atomic_fetch_add_explicit(&stress.offset, below(thread, 2) == 0 ? DAY : -DAY,
						memory_order_seq_cst);
	}
	return below(thread, 3) == 0 ? thread->held : read_clock();
}

static size_t window_of(uint64_t word, unsigned count_bits)
{
	return (size_t)((int64_t)(word >> count_bits) - START_WALL / S);
}

static bool is_over(void)
{
	return atomic_load_explicit(&stress.mono, memory_order_relaxed) > (int64_t)N_ROLLS * S;
}

/* ---- windows ---- */

static void *roll_main(void *arg)
{
	struct thread *thread = arg;
	unsigned bits = 64 - window_bits(&second);

	while (!is_over()) {
		struct quota_time time = any_time(thread, S / 6);
		size_t leaf = below(thread, 2);
		struct quota_item item = { .node = &stress.leaves[0][leaf], .n = 1 };
		struct quota_outcome outcome;
		uint64_t trail[2];

		RATION_HOOK();
		if (quota_try_charge_all(&item, 1, &time, trail, &outcome) != 0) {
			thread->refusals++;
			thread->bad_refusals += outcome.usage + 1 <= outcome.max;
			continue;
		}
		thread->grants++;
		size_t count = (size_t)(trail[1] & ((UINT64_C(1) << bits) - 1));

		if (count < 1 || count > MAX_ROOT ||
		    (trail[0] & ((UINT64_C(1) << bits) - 1)) > MAX_LEAF) {
			thread->beyond++;
			continue;
		}
		if (stress.steps) {
			continue; /* a window may come again, empty */
		}
		thread->twice += atomic_exchange_explicit(
			&stress.given[window_of(trail[1], bits)][count], 1, memory_order_relaxed);
		(void)atomic_fetch_add_explicit(&stress.granted[window_of(trail[1], bits)], 1,
						memory_order_relaxed);
		(void)atomic_fetch_add_explicit(
			&stress.granted_leaf[leaf][window_of(trail[0], bits)], 1,
			memory_order_relaxed);
	}
	return NULL;
}

static void start(void)
{
	memset(&stress, 0, sizeof(stress));
	atomic_store_explicit(&stress.offset, START_WALL, memory_order_relaxed);
	for (size_t i = 0; i < N_THREADS; i++) {
		stress.threads[i].held = read_clock();
		test_random_init(&stress.threads[i].random, i);
	}
}

static void run(void *(*thread_main)(void *))
{
	pthread_t threads[N_THREADS];

	for (size_t i = 0; i < N_THREADS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, thread_main, &stress.threads[i]),
				 0);
	}
	for (size_t i = 0; i < N_THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(stress.threads[i].twice, 0);
		assert_int_equal(stress.threads[i].beyond, 0);
		assert_int_equal(stress.threads[i].bad_refusals, 0);
	}
}

static void init_planes(size_t plane, const struct window *window, const struct quota_limits *root,
			const struct quota_limits *leaf)
{
	struct quota_time time = read_clock();

	quota_init(&stress.root[plane], window, NULL, root, 0, &time);
	for (size_t i = 0; i < 2; i++) {
		quota_init(&stress.leaves[plane][i], window, &stress.root[plane], leaf, 0, &time);
	}
}

static int64_t usage(const struct quota_node *node)
{
	struct quota_time time = read_clock();
	struct quota_reading reading;

	quota_read(node, &time, &reading);
	return reading.usage;
}

static int64_t peak(const struct quota_node *node)
{
	struct quota_time time = read_clock();
	struct quota_reading reading;

	quota_read(node, &time, &reading);
	return reading.peak;
}

static void test_roll_overs(void **state)
{
	uint64_t grants = 0, counted = 0, refusals = 0;
	size_t used = 0, full = 0;

	(void)state;
	start();
	init_planes(0, &second, &max_root, &max_leaf);
	run(roll_main);
	for (size_t w = 0; w < N_ROLLS + 200; w++) {
		int64_t granted = atomic_load_explicit(&stress.granted[w], memory_order_relaxed);

		assert_in_range(granted, 0, MAX_ROOT);
		for (int64_t i = 1; i <= MAX_ROOT; i++) {
			assert_int_equal(atomic_load_explicit(&stress.given[w][i],
							      memory_order_relaxed),
					 i <= granted);
		}
		for (size_t leaf = 0; leaf < 2; leaf++) {
			assert_in_range(atomic_load_explicit(&stress.granted_leaf[leaf][w],
							     memory_order_relaxed),
					0, MAX_LEAF);
		}
		counted += (uint64_t)granted;
		used += granted > 0;
		full += granted == 2 * MAX_LEAF;
	}
	for (size_t i = 0; i < N_THREADS; i++) {
		grants += stress.threads[i].grants;
		refusals += stress.threads[i].refusals;
	}
	assert_int_equal(counted, grants);
	assert_true(used > 10000);
	print_message("%llu granted, %llu refused in %zu windows, %zu of them full\n",
		      (unsigned long long)grants, (unsigned long long)refusals, used, full);
	assert_true(peak(&stress.root[0]) <= MAX_ROOT && peak(&stress.leaves[0][0]) <= MAX_LEAF);
}

/* The root has no more than a leaf: what was taken from a leaf goes back, in its window only. */
static void test_roll_overs_with_undoing(void **state)
{
	size_t last = 0;

	(void)state;
	start();
	init_planes(0, &second, &max_leaf, &max_leaf);
	run(roll_main);
	for (size_t w = 0; w < N_ROLLS + 200; w++) {
		int64_t granted = atomic_load_explicit(&stress.granted[w], memory_order_relaxed);

		assert_in_range(granted, 0, MAX_LEAF);
		for (int64_t i = 1; i <= MAX_LEAF; i++) {
			assert_int_equal(atomic_load_explicit(&stress.given[w][i],
							      memory_order_relaxed),
					 i <= granted);
		}
		last = granted > 0 ? w : last;
	}
	for (size_t leaf = 0; leaf < 2; leaf++) {
		uint64_t word =
			atomic_load_explicit(&stress.leaves[0][leaf].usage, memory_order_relaxed);
		unsigned bits = 64 - window_bits(&second);

		assert_int_equal(
			word & ((UINT64_C(1) << bits) - 1),
			atomic_load_explicit(&stress.granted_leaf[leaf][window_of(word, bits)],
					     memory_order_relaxed));
	}
	assert_true(last > 10000);
}

/* The wall clock is set by days, back and forth: counts stay within 0 and max, and who comes to an empty window finds it so. */
static void test_clock_is_set(void **state)
{
	struct quota_time time;

	(void)state;
	start();
	stress.steps = true;
	init_planes(0, &second, &max_root, &max_leaf);
	run(roll_main);
	(void)atomic_fetch_add_explicit(&stress.mono, 1, memory_order_relaxed);
	(void)atomic_fetch_add_explicit(&stress.offset, -1000 * DAY, memory_order_relaxed);
	time = read_clock();
	assert_int_equal(usage(&stress.root[0]), 0);
	assert_int_equal(quota_try_charge(&stress.leaves[0][0], MAX_LEAF, &time, NULL), 0);
	assert_int_equal(quota_try_charge(&stress.leaves[0][0], 1, &time, NULL), QUOTA_E_REFUSED);
	assert_int_equal(usage(&stress.root[0]), MAX_LEAF);
}

/* ---- rates, and all planes together ---- */

static void note_grant(struct thread *thread, const struct quota_time *time, int64_t n)
{
	if (thread->grants < MAX_GRANTS) {
		thread->list[thread->grants] = (struct grant){ time->mono_ns, n };
	}
	thread->grants++;
}

static void *rate_main(void *arg)
{
	struct thread *thread = arg;

	while (atomic_load_explicit(&stress.mono, memory_order_relaxed) < 200 * S) {
		struct quota_time time = any_time(thread, S / 100);
		int64_t n = 1 + (int64_t)below(thread, 6);

		RATION_HOOK();
		if (quota_try_charge(&stress.leaves[1][0], n, &time, NULL) == 0) {
			note_grant(thread, &time, n);
		} else {
			thread->refusals++;
		}
	}
	return NULL;
}

static void *planes_main(void *arg)
{
	struct thread *thread = arg;

	while (atomic_load_explicit(&stress.mono, memory_order_relaxed) < 200 * S) {
		struct quota_time time = any_time(thread, S / 100);
		int64_t n = 1 + (int64_t)below(thread, 3);
		size_t leaf = below(thread, 2);
		struct quota_item items[3];
		uint64_t trail[6];

		for (size_t i = 0; i < 3; i++) {
			items[i] = (struct quota_item){ &stress.leaves[(i + 2) % 3][leaf], n };
		}
		if (quota_try_charge_all(items, 3, &time, trail, NULL) == 0) {
			(void)atomic_fetch_add_explicit(&stress.total, n, memory_order_relaxed);
			note_grant(thread, &time, n);
		} else {
			thread->refusals++;
		}
	}
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct grant *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* Returns what was granted in all. */
static int64_t check_intervals(const struct quota_limits *limits)
{
	struct grant *all = malloc(N_THREADS * MAX_GRANTS * sizeof(*all));
	__int128 sum = 0, least = 0;
	size_t n = 0;

	assert_non_null(all);
	for (size_t i = 0; i < N_THREADS; i++) {
		assert_true(stress.threads[i].grants <= MAX_GRANTS);
		memcpy(all + n, stress.threads[i].list, stress.threads[i].grants * sizeof(*all));
		n += stress.threads[i].grants;
	}
	qsort(all, n, sizeof(*all), by_time);
	for (size_t i = 0; i < n; i++) {
		__int128 before = sum * limits->per_ns - (__int128)limits->rate * all[i].at;

		least = i == 0 || before < least ? before : least;
		sum += all[i].n;
		assert_true(sum * limits->per_ns - (__int128)limits->rate * all[i].at - least <=
			    (__int128)limits->burst * limits->per_ns);
	}
	free(all);
	return (int64_t)sum;
}

static void start_lists(void)
{
	start();
	for (size_t i = 0; i < N_THREADS; i++) {
		stress.threads[i].list = malloc(MAX_GRANTS * sizeof(struct grant));
		assert_non_null(stress.threads[i].list);
	}
}

static void end_lists(void)
{
	for (size_t i = 0; i < N_THREADS; i++) {
		free(stress.threads[i].list);
	}
}

static void run_rates(const struct quota_limits *root, const struct quota_limits *leaf)
{
	int64_t granted;

	start_lists();
	init_planes(1, &rate, root, leaf);
	run(rate_main);
	granted = check_intervals(&rate_leaf);
	assert_int_equal(check_intervals(&rate_root), granted);
	/* There was far more demand: what the tighter of the two allows was had, but for what was on its way in vain. */
	print_message("%lld granted of about %d\n", (long long)granted, 300 * 200 + 40);
	assert_true(granted > 300 * 200 * 8 / 10);
	assert_true(peak(&stress.root[1]) <= root->burst &&
		    peak(&stress.leaves[1][0]) <= leaf->burst);
	(void)atomic_fetch_add_explicit(&stress.mono, 10 * S, memory_order_relaxed);
	assert_int_equal(usage(&stress.root[1]), 0);
	assert_int_equal(usage(&stress.leaves[1][0]), 0);
	end_lists();
}

static void test_rates(void **state)
{
	(void)state;
	run_rates(&rate_root, &rate_leaf);
	/* The tighter one above: leaves get back. */
	run_rates(&rate_leaf, &rate_root);
}

static void test_all_planes(void **state)
{
	int64_t granted;

	(void)state;
	start_lists();
	init_planes(0, &second, &max_root, &max_leaf);
	init_planes(1, &rate, &rate_leaf, &rate_root);
	init_planes(2, &none, &no_max, &no_max);
	run(planes_main);
	granted = check_intervals(&rate_leaf);
	assert_true(granted > 100);
	assert_int_equal(granted, atomic_load_explicit(&stress.total, memory_order_relaxed));
	assert_int_equal(usage(&stress.root[2]), granted);
	assert_int_equal(usage(&stress.leaves[2][0]) + usage(&stress.leaves[2][1]), granted);
	assert_true(usage(&stress.root[0]) <= MAX_ROOT);
	end_lists();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roll_overs),   cmocka_unit_test(test_roll_overs_with_undoing),
		cmocka_unit_test(test_clock_is_set), cmocka_unit_test(test_rates),
		cmocka_unit_test(test_all_planes),
	};

#ifdef RATION_HOOKS
	ration_hook_seed(test_seed());
#endif
	return cmocka_run_group_tests_name("quota/stress-time", tests, NULL, NULL);
}
