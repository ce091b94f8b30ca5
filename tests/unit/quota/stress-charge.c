/*
 * Many threads charge, give back, charge several items at once and are refused, in a tree without a window, where everything they are
 * granted is also counted outside: added after a grant, taken off before it is given back. So at every instant that sum is at
 * most what is used, and must be within max: it is looked at after every grant.
 *
 * At rest: usage is what the threads hold, parents are the sums of their children, peaks stayed within max and above whatever was
 * held at once, claims of protection are exact, and effective protections add up.
 *
 * Then the same while max changes under the threads, and with forced charges.
 */
#include "tests/support/test.h"

#include "lib/base/hook.h"
#include "lib/quota/charge.h"
#include "lib/quota/protect.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define N_THREADS 3u
#define N_NODES 9u /* 0: root; 1, 2: under it; 3..5 under 1; 6..8 under 2 */
#define N_LEAVES 6u
#define FIRST_LEAF 3u
#define RUN_NS INT64_C(800000000)
#define N_ENOUGH 100u /* grants, and refusals */
#define MAX_ITEMS 4u

static const struct window none = { .kind = WINDOW_NONE };
static const struct quota_time now = { .wall_ns = 1, .mono_ns = 1 };

static const int64_t maxima[N_NODES] = { 100, 70, 60, 40, 40, 30, 50, 25, 10 };
static const int64_t minima[N_NODES] = { 0, 30, 20, 10, 5, 0, 15, 12, 3 };
static const int64_t lows[N_NODES] = { 0, 50, 35, 20, 0, 25, 7, 20, 1 };

struct mode {
	bool sets;   /* a thread sets the root's max and the others' protections */
	bool forces; /* some charges are forced */
};

struct thread {
	_Alignas(64) struct test_random random;
	int64_t held[N_NODES];		    /* leaves' entries */
	_Atomic(uint64_t) grants, refusals; /* also read while it goes on */
	uint64_t bad_refusals, beyond, unseen;
};

static struct {
	struct quota_node nodes[N_NODES];
	struct thread threads[N_THREADS];
	_Alignas(64) _Atomic(int64_t) granted[N_NODES]; /* see above */
	_Alignas(64) _Atomic(int64_t) most[N_NODES];	/* the highest of it ever seen */
	_Alignas(64) _Atomic(uint64_t) epoch;		/* odd: root's max is being changed */
	_Atomic(int64_t) root_max;			/* as of an even epoch */
	_Atomic(bool) stop;
	struct mode mode;
} stress;

/* By the one thread that writes it. */
static void note_one(_Atomic(uint64_t) *word)
{
	atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static uint64_t grants_so_far(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < N_THREADS; i++) {
		sum += atomic_load_explicit(&stress.threads[i].grants, memory_order_relaxed);
	}
	return sum;
}

static uint64_t refusals_so_far(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < N_THREADS; i++) {
		sum += atomic_load_explicit(&stress.threads[i].refusals, memory_order_relaxed);
	}
	return sum;
}

static size_t parent_of(size_t i)
{
	return i < FIRST_LEAF ? 0 : 1 + (i - FIRST_LEAF) / 3;
}

static struct quota_limits limits_of(size_t i)
{
	return (struct quota_limits){
		.max = maxima[i], .high = QUOTA_NONE, .min = minima[i], .low = lows[i]
	};
}

static void note_most(size_t i, int64_t value)
{
	int64_t old = atomic_load_explicit(&stress.most[i], memory_order_relaxed);

	while (value > old &&
	       !atomic_compare_exchange_weak_explicit(&stress.most[i], &old, value,
						      memory_order_relaxed, memory_order_relaxed)) {
	}
}

/* After a grant. epoch: as it was before the charge began. */
static void count_granted(struct thread *thread, size_t leaf, int64_t n, uint64_t epoch)
{
	thread->held[leaf] += n;
	for (size_t i = leaf;; i = parent_of(i)) {
		int64_t sum =
			atomic_fetch_add_explicit(&stress.granted[i], n, memory_order_seq_cst) + n;

		note_most(i, sum);
		if (i > 0) {
			thread->beyond += sum > maxima[i];
			continue;
		}
		/* The root's may change: what was granted under a max that stood all the time is within it. */
		int64_t max = atomic_load_explicit(&stress.root_max, memory_order_seq_cst);

		if (epoch % 2 == 0 &&
		    atomic_load_explicit(&stress.epoch, memory_order_seq_cst) == epoch) {
			thread->beyond += sum > max;
		}
		return;
	}
}

static void count_returned(struct thread *thread, size_t leaf, int64_t n)
{
	thread->held[leaf] -= n;
	for (size_t i = leaf;; i = parent_of(i)) {
		(void)atomic_fetch_sub_explicit(&stress.granted[i], n, memory_order_seq_cst);
		if (i == 0) {
			return;
		}
	}
}

static void charge_one(struct thread *thread)
{
	size_t leaf = FIRST_LEAF + test_random_below(&thread->random, N_LEAVES);
	int64_t n = 1 + (int64_t)test_random_below(&thread->random, 12);
	uint64_t epoch = atomic_load_explicit(&stress.epoch, memory_order_seq_cst);
	struct quota_outcome outcome;

	if (quota_try_charge(&stress.nodes[leaf], n, &now, &outcome) == 0) {
		note_one(&thread->grants);
		count_granted(thread, leaf, n, epoch);
		return;
	}
	note_one(&thread->refusals);
	/* Only what did not fit is refused, by a node of the path. */
	size_t at = (size_t)(outcome.refused - stress.nodes);

	thread->bad_refusals += outcome.usage + n <= outcome.max ||
				(at >= FIRST_LEAF && at != leaf) ||
				(at > 0 && outcome.max != maxima[at]);
}

static void charge_many(struct thread *thread)
{
	struct quota_item items[MAX_ITEMS];
	uint64_t trail[MAX_ITEMS * 3];
	size_t count = 2 + test_random_below(&thread->random, MAX_ITEMS - 1);
	uint64_t epoch = atomic_load_explicit(&stress.epoch, memory_order_seq_cst);

	for (size_t i = 0; i < count; i++) {
		items[i].node =
			&stress.nodes[FIRST_LEAF + test_random_below(&thread->random, N_LEAVES)];
		items[i].n = 1 + (int64_t)test_random_below(&thread->random, 8);
	}
	if (quota_try_charge_all(items, count, &now, trail, NULL) != 0) {
		note_one(&thread->refusals);
		return;
	}
	if (test_random_below(&thread->random, 8) == 0) {
		quota_return_all(items, count, trail);
		return;
	}
	note_one(&thread->grants);
	for (size_t i = 0; i < count; i++) {
		count_granted(thread, (size_t)(items[i].node - stress.nodes), items[i].n, epoch);
	}
}

static void give_back(struct thread *thread)
{
	size_t leaf = FIRST_LEAF + test_random_below(&thread->random, N_LEAVES);
	int64_t n;

	if (thread->held[leaf] == 0) {
		return;
	}
	n = 1 + (int64_t)test_random_below(&thread->random, (uint64_t)thread->held[leaf]);
	count_returned(thread, leaf, n);
	/* What is held can always be given back. */
	if (quota_uncharge(&stress.nodes[leaf], n) != 0) {
		thread->unseen++;
	}
}

static void force(struct thread *thread)
{
	size_t leaf = FIRST_LEAF + test_random_below(&thread->random, N_LEAVES);

	/* Up, and down again: as a gauge's adds may. */
	quota_charge(&stress.nodes[leaf], 3, &now);
	quota_charge(&stress.nodes[leaf], -3, &now);
}

static void *thread_main(void *arg)
{
	struct thread *thread = arg;

	while (!atomic_load_explicit(&stress.stop, memory_order_relaxed)) {
		uint64_t what = test_random_below(&thread->random, 16);

		if (what < 6) {
			charge_one(thread);
		} else if (what < 9) {
			charge_many(thread);
		} else if (what < 15) {
			give_back(thread);
		} else if (stress.mode.forces) {
			force(thread);
		}
	}
	return NULL;
}

/* Root's max up and down; and protections of a node come and go. */
static void *set_main(void *arg)
{
	struct test_random random;

	test_random_init(&random, 99);
	(void)arg;
	while (!atomic_load_explicit(&stress.stop, memory_order_relaxed)) {
		struct quota_limits limits = limits_of(0);
		size_t other = 1 + test_random_below(&random, N_NODES - 1);

		limits.max = 20 + (int64_t)test_random_below(&random, 80);
		(void)atomic_fetch_add_explicit(&stress.epoch, 1, memory_order_seq_cst);
		quota_set_limits(&stress.nodes[0], &limits, &now);
		atomic_store_explicit(&stress.root_max, limits.max, memory_order_seq_cst);
		(void)atomic_fetch_add_explicit(&stress.epoch, 1, memory_order_seq_cst);

		limits = limits_of(other);
		if (test_random_below(&random, 2) == 0) {
			limits.min = 0;
			limits.low = (int64_t)test_random_below(&random, 30);
		}
		quota_set_limits(&stress.nodes[other], &limits, &now);
		for (int i = 0; i < 20; i++) {
			RATION_HOOK();
		}
	}
	return NULL;
}

static void start(void)
{
	memset(&stress.threads, 0, sizeof(stress.threads));
	atomic_store_explicit(&stress.root_max, maxima[0], memory_order_relaxed);
	atomic_store_explicit(&stress.epoch, 0, memory_order_relaxed);
	atomic_store_explicit(&stress.stop, false, memory_order_relaxed);
	for (size_t i = 0; i < N_NODES; i++) {
		struct quota_limits limits = limits_of(i);

		quota_init(&stress.nodes[i], &none, i == 0 ? NULL : &stress.nodes[parent_of(i)],
			   &limits, 0, &now);
		atomic_store_explicit(&stress.granted[i], 0, memory_order_relaxed);
		atomic_store_explicit(&stress.most[i], 0, memory_order_relaxed);
	}
}

static void run(struct mode mode, uint64_t stream)
{
	pthread_t threads[N_THREADS], setter;
	int64_t until = test_now_ns() + RUN_NS;

	stress.mode = mode;
	start();
	for (size_t i = 0; i < N_THREADS; i++) {
		test_random_init(&stress.threads[i].random, stream * 100 + i);
		assert_int_equal(pthread_create(&threads[i], NULL, thread_main, &stress.threads[i]),
				 0);
	}
	if (mode.sets) {
		assert_int_equal(pthread_create(&setter, NULL, set_main, NULL), 0);
	}
	while (test_goes_on(until, grants_so_far() > N_ENOUGH && refusals_so_far() > N_ENOUGH)) {
		(void)usleep(1000);
	}
	atomic_store_explicit(&stress.stop, true, memory_order_relaxed);
	for (size_t i = 0; i < N_THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
	if (mode.sets) {
		assert_int_equal(pthread_join(setter, NULL), 0);
	}
}

static int64_t claim_of(size_t i, bool low)
{
	struct quota_reading reading;

	quota_read(&stress.nodes[i], &now, &reading);
	return protect_used(reading.usage, low ? reading.limits.low : reading.limits.min);
}

static void check_protections(size_t i)
{
	struct quota_reading reading;
	int64_t claims[2] = { 0, 0 }, effective[2] = { 0, 0 };
	int64_t own[2], child[2];

	quota_read(&stress.nodes[i], &now, &reading);
	quota_effective(&stress.nodes[i], true, &own[0], &own[1]);
	for (size_t k = 1; k < N_NODES; k++) {
		if (parent_of(k) == i) {
			for (size_t low = 0; low < 2; low++) {
				claims[low] += claim_of(k, low != 0);
			}
			quota_effective(&stress.nodes[k], true, &child[0], &child[1]);
			effective[0] += child[0];
			effective[1] += child[1];
			quota_read(&stress.nodes[k], &now, &reading);
			assert_in_range(child[0], 0, reading.usage);
			assert_in_range(child[1], 0, reading.usage);
		}
	}
	quota_read(&stress.nodes[i], &now, &reading);
	assert_int_equal(reading.children_min, claims[0]);
	assert_int_equal(reading.children_low, claims[1]);
	assert_true(effective[0] <= own[0] && effective[1] <= own[1]);
}

static void check_at_rest(void)
{
	uint64_t grants = grants_so_far(), refusals = refusals_so_far();
	int64_t counted = 0;

	for (size_t t = 0; t < N_THREADS; t++) {
		const struct thread *thread = &stress.threads[t];

		assert_int_equal(thread->beyond, 0);
		assert_int_equal(thread->bad_refusals, 0);
		assert_int_equal(thread->unseen, 0);
	}
	assert_true(grants > N_ENOUGH && refusals > N_ENOUGH);
	for (size_t i = N_NODES; i-- > 0;) {
		struct quota_reading reading;
		int64_t held = 0;

		for (size_t k = 0; k < N_NODES; k++) {
			for (size_t t = 0; t < N_THREADS; t++) {
				held += k == i || parent_of(k) == i || i == 0
						? stress.threads[t].held[k]
						: 0;
			}
		}
		quota_read(&stress.nodes[i], &now, &reading);
		assert_int_equal(reading.usage, held);
		assert_int_equal(reading.usage,
				 atomic_load_explicit(&stress.granted[i], memory_order_relaxed));
		assert_true(reading.peak >=
			    atomic_load_explicit(&stress.most[i], memory_order_relaxed));
		if (!stress.mode.forces) {
			assert_true(reading.peak <= maxima[i]);
			assert_true(stress.mode.sets || reading.forced == 0);
		}
		assert_int_equal(reading.lost, 0);
		counted += reading.refusals;
		check_protections(i);
	}
	/* Each refusal is counted once, by the node that refused. */
	assert_int_equal(counted, refusals);
	print_message("%llu granted, %llu refused\n", (unsigned long long)grants,
		      (unsigned long long)refusals);
}

static void test_charges(void **state)
{
	(void)state;
	run((struct mode){ 0 }, 1);
	check_at_rest();
}

static void test_limits_change(void **state)
{
	(void)state;
	run((struct mode){ .sets = true }, 2);
	check_at_rest();
}

static void test_forced_charges(void **state)
{
	(void)state;
	run((struct mode){ .forces = true }, 3);
	check_at_rest();
	run((struct mode){ .forces = true, .sets = true }, 4);
	check_at_rest();
}

/* ---- claims, at rest after a few steps ---- */

/*
 * Around the settings, where each step changes the claim; over and over with a rest after a few steps, since what is left stale is
 * put right by the next step.
 */
#ifdef __SANITIZE_THREAD__
#define N_RESTS 1500u
#else
#define N_RESTS 6000u
#endif
#define N_RESTS_ENOUGH 600u /* where a barrier takes long */
#define RESTS_NS INT64_C(10000000000)
#define N_STEPS 4u

static struct {
	struct quota_node root, node;
	pthread_barrier_t barrier;
	struct test_random random[N_THREADS];
	int64_t until;
	/* Thread 0's, while the others wait. */
	bool over;
	uint64_t wrong;
} rests;

/* Was rest, counted from 0, the last one? */
static bool is_last(unsigned rest, int64_t until)
{
	return rest + 1 == N_RESTS || !test_goes_on(until, rest + 1 >= N_RESTS_ENOUGH);
}

static void check_claims(void)
{
	struct quota_reading root, node;

	quota_read(&rests.root, &now, &root);
	quota_read(&rests.node, &now, &node);
	rests.wrong += root.children_min != protect_used(node.usage, node.limits.min) ||
		       root.children_low != protect_used(node.usage, node.limits.low);
}

static void *claim_main(void *arg)
{
	struct test_random *random = arg;
	int64_t held = 0;

	for (unsigned rest = 0;; rest++) {
		(void)pthread_barrier_wait(&rests.barrier);
		if (rests.over) {
			return NULL;
		}
		for (unsigned step = 0; step < N_STEPS; step++) {
			int64_t n = 1 + (int64_t)test_random_below(random, 4);

			if (test_random_below(random, 2) == 0) {
				held += quota_try_charge(&rests.node, n, &now, NULL) == 0 ? n : 0;
			} else if (held >= n && quota_uncharge(&rests.node, n) == 0) {
				held -= n;
			}
			if (test_random_below(random, 16) == 0) {
				quota_charge(&rests.node, 1, &now);
				held++;
			}
		}
		(void)pthread_barrier_wait(&rests.barrier);
		if (random == &rests.random[0]) {
			struct quota_limits limits = { .max = 20, .high = QUOTA_NONE };

			check_claims();
			/* Another setting for the next time; also none. */
			limits.min = (int64_t)test_random_below(random, 16);
			limits.low = (int64_t)test_random_below(random, 3) * 6;
			quota_set_limits(&rests.node, &limits, &now);
			check_claims();
			rests.over = is_last(rest, rests.until);
		}
	}
}

static void test_claims_at_rest(void **state)
{
	struct quota_limits root = { .max = 18, .high = QUOTA_NONE };
	struct quota_limits node = { .max = 20, .high = QUOTA_NONE, .min = 10, .low = 5 };
	pthread_t threads[N_THREADS];

	(void)state;
	quota_init(&rests.root, &none, NULL, &root, 0, &now);
	quota_init(&rests.node, &none, &rests.root, &node, 0, &now);
	assert_int_equal(pthread_barrier_init(&rests.barrier, NULL, N_THREADS), 0);
	rests.until = test_now_ns() + RESTS_NS;
	for (size_t i = 0; i < N_THREADS; i++) {
		test_random_init(&rests.random[i], 700 + i);
		assert_int_equal(pthread_create(&threads[i], NULL, claim_main, &rests.random[i]),
				 0);
	}
	for (size_t i = 0; i < N_THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
	(void)pthread_barrier_destroy(&rests.barrier);
	assert_int_equal(rests.wrong, 0);
}

/* ---- a max that is set while a charge is under way ---- */

static struct {
	struct quota_node nodes[2]; /* without a window, and with one */
	pthread_barrier_t barrier;
	int64_t seen; /* by who set the max, right after that */
	bool over;
	int result;
	uint64_t wrong, granted, refused;
} meeting;

static void *meet_main(void *arg)
{
	(void)arg;
	for (unsigned rest = 0; !meeting.over; rest++) {
		(void)pthread_barrier_wait(&meeting.barrier);
		meeting.result = quota_try_charge(&meeting.nodes[rest % 2], 60, &now, NULL);
		(void)pthread_barrier_wait(&meeting.barrier);
	}
	return NULL;
}

/* The charge is refused, or who set the max sees it in usage: never neither. By max, and by a shadow that becomes a max. */
static void test_either_side_sees_the_other(void **state)
{
	static const struct window hour = { .kind = WINDOW_PER,
					    .duration_ns = INT64_C(3600000000000) };
	struct quota_reading reading;
	int64_t until = test_now_ns() + RESTS_NS;
	struct test_random random;
	pthread_t thread;

	(void)state;
	test_random_init(&random, 800);
	assert_int_equal(pthread_barrier_init(&meeting.barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, meet_main, NULL), 0);
	for (unsigned rest = 0; !meeting.over; rest++) {
		struct quota_node *node = &meeting.nodes[rest % 2];
		bool by_shadow = rest % 4 >= 2;
		struct quota_limits before = { .max = by_shadow ? 50 : 100,
					       .high = QUOTA_NONE,
					       .shadow = by_shadow };
		struct quota_limits after = { .max = 50, .high = QUOTA_NONE };

		quota_init(node, rest % 2 == 0 ? &none : &hour, NULL, &before, 0, &now);
		(void)pthread_barrier_wait(&meeting.barrier);
		for (uint64_t i = test_random_below(&random, 40); i > 0; i--) {
			RATION_HOOK();
			atomic_signal_fence(memory_order_seq_cst);
		}
		quota_set_limits(node, &after, &now);
		quota_read(node, &now, &reading);
		meeting.seen = reading.usage;
		meeting.over = is_last(rest, until);
		(void)pthread_barrier_wait(&meeting.barrier);
		meeting.wrong += meeting.result == 0 && meeting.seen != 60;
		meeting.granted += meeting.result == 0;
		meeting.refused += meeting.result != 0;
		quota_read(node, &now, &reading);
		assert_int_equal(reading.usage, meeting.result == 0 ? 60 : 0);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)pthread_barrier_destroy(&meeting.barrier);
	print_message("%llu granted, %llu refused\n", (unsigned long long)meeting.granted,
		      (unsigned long long)meeting.refused);
	assert_int_equal(meeting.wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_charges),
		cmocka_unit_test(test_limits_change),
		cmocka_unit_test(test_forced_charges),
		cmocka_unit_test(test_claims_at_rest),
		cmocka_unit_test(test_either_side_sees_the_other),
	};

#ifdef RATION_HOOKS
	ration_hook_seed(test_seed());
#endif
	return cmocka_run_group_tests_name("quota/stress-charge", tests, NULL, NULL);
}
