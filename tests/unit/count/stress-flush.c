/*
 * The whole protocol of a flush, without names and trees: owners add to their banks, mark, note what is pending and fold at batch;
 * a flusher takes the marks, makes the heavy fence, claims what it finds and waits for the folds under way.
 *
 * After every flush the totals must hold what had been added before it began, and no read may step back; with no flush due, what
 * the totals lack must be within the pending bound; at the end everything is exact.
 *
 * Then the same with a part of the protocol left out, to show that the comparison would notice. That depends on timing, so not
 * noticing within the time given is said, and no failure.
 */
#include "tests/support/test.h"

#include "lib/base/hook.h"
#include "lib/count/bank.h"
#include "lib/count/fence.h"
#include "lib/count/fold.h"
#include "lib/count/pending.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define N_OWNERS 3u
#define N_COUNTERS 8u
#define N_GROWING 6u /* the first of them; the others go up and down */
#define BATCH 32
#define RUN_NS INT64_C(1500000000)
#define CONTROL_NS INT64_C(6000000000)

#ifdef SLOT_SANITIZED
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

#ifdef RATION_HOOKS
#define HAS_YIELDS true
#else
#define HAS_YIELDS false
#endif

/* What a run leaves out. */
struct omit {
	bool wait;  /* for folds under way */
	bool signs; /* all counters grow */
	bool ones;  /* small amounts: every second or third add folds */
};

/* Apart, so that words and upper words of the marks differ. */
static const uint32_t ids[N_COUNTERS] = { 0, 1, 63, 64, 300, 5000, 5001, 9999 };

struct owner {
	_Alignas(64) struct bank bank;
	struct fold_line line;
	struct pending_share share;
	_Alignas(64) _Atomic(uint64_t) added[N_COUNTERS]; /* by adds that have returned */
	_Atomic(uint64_t) folds;
	struct stress *stress;
	uint64_t number;
};

struct stress {
	struct owner owners[N_OWNERS];
	_Alignas(64) _Atomic(int64_t) totals[N_COUNTERS];
	struct pending pending;
	struct fold_line flusher;
	_Atomic(bool) stop;
	struct omit omit;

	/* The flusher's thread alone. */
	int64_t last_total[N_COUNTERS];
	uint64_t last_own[N_COUNTERS];
	uint64_t flushes, fresh_reads;
	uint64_t below, backwards, beyond_bound;
};

static size_t counter_of(uint32_t id)
{
	for (size_t i = 0; i < N_COUNTERS; i++) {
		if (ids[i] == id) {
			return i;
		}
	}
	abort();
}

/* ---- owners ---- */

static void fold_slot(struct stress *stress, struct fold_line *line, size_t counter,
		      struct slot *slot)
{
	int64_t growth;

	fold_begin(line);
	if (slot_claim(slot, &growth)) {
		(void)atomic_fetch_add_explicit(&stress->totals[counter], growth,
						memory_order_relaxed);
	}
	fold_end(line);
}

static void owner_add(struct owner *owner, size_t counter, int64_t n)
{
	struct slot *slot = bank_touch(&owner->bank, ids[counter]);

	if (slot == NULL) {
		abort();
	}
	if (slot_add(slot, n, BATCH)) {
		bank_mark(&owner->bank, ids[counter]);
		pending_note(&owner->stress->pending, &owner->share, n < 0 ? -n : n);
	} else {
		slot_put(slot, n);
		fold_slot(owner->stress, &owner->line, counter, slot);
		(void)atomic_fetch_add_explicit(&owner->folds, 1, memory_order_relaxed);
	}
	/* Release: pairs with the acquire in added_so_far. */
	uint64_t added = atomic_load_explicit(&owner->added[counter], memory_order_relaxed);

	atomic_store_explicit(&owner->added[counter], added + (uint64_t)n, memory_order_release);
}

static void *owner_run(void *arg)
{
	struct owner *owner = arg;
	struct test_random random;

	test_random_init(&random, owner->number);
	while (!atomic_load_explicit(&owner->stress->stop, memory_order_relaxed)) {
		uint64_t choice = test_random_next(&random);
		size_t counter = choice % N_COUNTERS;
		int64_t n = 1 + (int64_t)((choice >> 8) % 4);

		if ((choice >> 16) % 64 == 0) {
			n *= 20;
		} else if (owner->stress->omit.ones) {
			n *= 6;
		}
		if (counter >= N_GROWING && !owner->stress->omit.signs && (choice >> 32) % 2 == 0) {
			n = -n;
		}
		owner_add(owner, counter, n);
	}
	return NULL;
}

/* ---- the flusher ---- */

static uint64_t added_so_far(const struct stress *stress, size_t counter)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < N_OWNERS; i++) {
		sum += atomic_load_explicit(&stress->owners[i].added[counter],
					    memory_order_acquire);
	}
	return sum;
}

static uint64_t own(const struct stress *stress, size_t counter)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < N_OWNERS; i++) {
		const struct slot *slot = bank_slot(&stress->owners[i].bank, ids[counter]);

		sum += slot != NULL ? slot_count(slot) : 0;
	}
	return sum;
}

static void visit(void *ctx, uint32_t id, struct slot *slot)
{
	struct stress *stress = ctx;

	fold_slot(stress, &stress->flusher, counter_of(id), slot);
}

static void wait_for_folds(const struct stress *stress)
{
	for (size_t i = 0; i < N_OWNERS && !stress->omit.wait; i++) {
		fold_wait(&stress->owners[i].line);
	}
}

static void flush(struct stress *stress)
{
	pending_reset(&stress->pending);
	for (size_t i = 0; i < N_OWNERS; i++) {
		bank_take(&stress->owners[i].bank);
	}
	fence_heavy();
	for (size_t i = 0; i < N_OWNERS; i++) {
		(void)bank_visit(&stress->owners[i].bank, visit, stress);
	}
	wait_for_folds(stress);
	stress->flushes++;
}

static void flush_and_compare(struct stress *stress)
{
	uint64_t before[N_COUNTERS];

	for (size_t i = 0; i < N_COUNTERS; i++) {
		before[i] = added_so_far(stress, i);
	}
	flush(stress);
	for (size_t i = 0; i < N_GROWING; i++) {
		int64_t total = atomic_load_explicit(&stress->totals[i], memory_order_relaxed);
		uint64_t own_now = own(stress, i);

		stress->below += total < (int64_t)before[i] || own_now < before[i];
		stress->backwards += total < stress->last_total[i] || own_now < stress->last_own[i];
		stress->last_total[i] = total;
		stress->last_own[i] = own_now;
	}
}

/* A fresh read: no flush is under way, since this is the flusher's thread. */
static void read_fresh(struct stress *stress)
{
	int64_t before = 0, totals = 0;

	for (size_t i = 0; i < N_GROWING; i++) {
		before += (int64_t)added_so_far(stress, i);
	}
	if (pending_due(&stress->pending)) {
		return;
	}
	wait_for_folds(stress);
	for (size_t i = 0; i < N_GROWING; i++) {
		totals += atomic_load_explicit(&stress->totals[i], memory_order_relaxed);
	}
	stress->beyond_bound += before - totals > pending_bound(&stress->pending, N_OWNERS);
	stress->fresh_reads++;
}

/* ---- runs ---- */

static struct stress *new_stress(struct omit omit)
{
	struct stress *stress = aligned_alloc(64, sizeof(*stress));

	assert_non_null(stress);
	memset(stress, 0, sizeof(*stress));
	stress->omit = omit;
	/* Higher than design's 64 per worker: fewer flushes are due, more fresh reads look at what is held back. */
	pending_init(&stress->pending, 3 * PENDING_STEP * N_OWNERS);
	for (size_t i = 0; i < N_OWNERS; i++) {
		stress->owners[i].stress = stress;
		stress->owners[i].number = i;
		assert_int_equal(bank_init(&stress->owners[i].bank, 10000, false), 0);
	}
	return stress;
}

static void free_stress(struct stress *stress)
{
	for (size_t i = 0; i < N_OWNERS; i++) {
		bank_deinit(&stress->owners[i].bank);
	}
	free(stress);
}

static bool have_folded(const struct stress *stress)
{
	uint64_t folds = 0;

	for (size_t i = 0; i < N_OWNERS; i++) {
		folds += atomic_load_explicit(&stress->owners[i].folds, memory_order_relaxed);
	}
	return folds > 0;
}

/* After the last add one flush more makes everything exact. */
static void check_end(struct stress *stress)
{
	flush_and_compare(stress);
	for (size_t i = 0; i < N_COUNTERS; i++) {
		uint64_t added = added_so_far(stress, i);

		assert_true(own(stress, i) == added);
		assert_true((uint64_t)atomic_load_explicit(&stress->totals[i],
							   memory_order_relaxed) == added);
	}
	assert_true(have_folded(stress));
}

/* For that time, or, if `until_seen`, until a read was below what had been added. */
static void run(struct stress *stress, int64_t ns, bool until_seen)
{
	pthread_t threads[N_OWNERS];
	int64_t end = test_now_ns() + ns;

	for (size_t i = 0; i < N_OWNERS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, owner_run, &stress->owners[i]),
				 0);
	}
	while (test_goes_on(end, have_folded(stress)) &&
	       !(until_seen && stress->below > 0 && have_folded(stress))) {
		for (int i = 0; i < 10; i++) {
			read_fresh(stress);
			flush_and_compare(stress);
		}
	}
	atomic_store_explicit(&stress->stop, true, memory_order_relaxed);
	for (size_t i = 0; i < N_OWNERS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
	print_message(
		"%llu flushes, %llu fresh reads, %llu below, %llu backwards, %llu beyond the bound\n",
		(unsigned long long)stress->flushes, (unsigned long long)stress->fresh_reads,
		(unsigned long long)stress->below, (unsigned long long)stress->backwards,
		(unsigned long long)stress->beyond_bound);
}

static void run_whole(enum fence_mode mode, struct omit omit)
{
	struct stress *stress = new_stress(omit);

	fence_force(mode);
	run(stress, RUN_NS, /* until_seen= */ false);
	assert_int_equal(stress->below, 0);
	assert_int_equal(stress->backwards, 0);
	assert_int_equal(stress->beyond_bound, 0);
	check_end(stress);
	free_stress(stress);
}

static void test_membarrier(void **state)
{
	(void)state;
	fence_setup();
	if (atomic_load_explicit(&fence_mode, memory_order_relaxed) != FENCE_ASYMMETRIC) {
		print_message("no membarrier here\n");
		skip();
	}
	run_whole(FENCE_ASYMMETRIC, (struct omit){ 0 });
	run_whole(FENCE_ASYMMETRIC, (struct omit){ .signs = true });
}

static void test_full_fences(void **state)
{
	(void)state;
	run_whole(FENCE_FULL, (struct omit){ 0 });
}

static void fold_everything(struct stress *stress)
{
	for (size_t i = 0; i < (size_t)N_OWNERS * N_COUNTERS; i++) {
		struct slot *slot =
			bank_slot(&stress->owners[i / N_COUNTERS].bank, ids[i % N_COUNTERS]);

		if (slot != NULL) {
			fold_slot(stress, &stress->flusher, i % N_COUNTERS, slot);
		}
	}
}

static void run_control(enum fence_mode mode, struct omit omit)
{
	struct stress *stress = new_stress(omit);

	fence_force(mode);
	run(stress, CONTROL_NS, /* until_seen= */ true);
	if (stress->below == 0) {
		print_message("not noticed this time\n");
	}
	/* Marks can have been lost, counts not: folding all slots finds them. */
	fence_force(FENCE_FULL);
	fold_everything(stress);
	check_end(stress);
	free_stress(stress);
}

/* Seen on processors with store buffers, when nothing else orders the two sides: no sanitizer, no yields. */
static void test_without_heavy_fence_is_noticed(void **state)
{
	(void)state;
	if (IS_SANITIZED || HAS_YIELDS) {
		skip();
	}
	run_control(FENCE_BROKEN, (struct omit){ .signs = true });
}

/* Seen when an owner is stopped between its claim and its add: with yields. */
static void test_without_waiting_for_folds_is_noticed(void **state)
{
	(void)state;
	if (!HAS_YIELDS) {
		skip();
	}
	run_control(FENCE_FULL, (struct omit){ .wait = true, .ones = true });
}

static int setup(void **state)
{
	uint64_t seed = test_seed();

	(void)state;
	(void)seed;
#ifdef RATION_HOOKS
	ration_hook_seed(seed);
#endif
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_membarrier),
		cmocka_unit_test(test_full_fences),
		cmocka_unit_test(test_without_heavy_fence_is_noticed),
		cmocka_unit_test(test_without_waiting_for_folds_is_noticed),
	};

	return cmocka_run_group_tests_name("count/stress-flush", tests, setup, NULL);
}
