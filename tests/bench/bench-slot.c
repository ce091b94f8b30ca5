/*
 * What an add costs, in nanoseconds of its thread's processor time: the slots of lib/count against a locked instruction on a line of
 * its own and on a shared one, and the A/B of two ideas: the compare-and-exchange fast path against a lock around the decision,
 * and the signal that is skipped above the threshold against one that always is sent.
 *
 *	bench-slot [ROUNDS]	an odd number; default 7
 *
 * All cases run once in every round, so that a disturbance meets all of them; figures are medians over the rounds. Every case knows
 * how much it has added, and finds all of it in its slots and totals afterwards: the exit status is 1 if not, whatever the figures.
 */
#include "lib/count/bank.h"
#include "lib/count/fence.h"
#include "lib/count/pending.h"
#include "lib/count/percpu.h"
#include "lib/count/slot.h"
#include "tests/bench/measure.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_THREADS 32u
#define N_MANY 1024u /* slots of a case that adds here and there */
#define OPS 8000000ul

/* ---- what the threads add to ---- */

struct lane {
	_Alignas(128) struct slot slot;
	_Alignas(128) _Atomic(uint64_t) word;
	_Alignas(128) pthread_spinlock_t spin;
	int64_t held; /* under `spin` or `mutex` */
	_Alignas(128) pthread_mutex_t mutex;
	_Alignas(128) struct pending_share share;
	_Alignas(128) struct slot *many; /* N_MANY of them */
	_Atomic(uint64_t) *words;	 /* N_MANY */
	uint16_t *order;
	struct bank bank;
};

static struct lane lanes[MAX_THREADS];

static struct shared {
	_Alignas(128) _Atomic(int64_t) total;
	_Alignas(128) _Atomic(uint64_t) word;
	_Alignas(128) pthread_spinlock_t spin;
	int64_t locked_total;
	_Alignas(128) pthread_mutex_t mutex;
	_Alignas(128) struct pending pending;
	struct percpu percpu;
	struct slot *base;
	struct slot *bases[N_MANY];
	_Alignas(128) _Atomic(unsigned) ready;
	_Atomic(bool) stop;
} shared;

/* What the reads of locked instructions are for: xadd, not add. */
static _Atomic(uint64_t) sink;

/* ---- the adds ---- */

static void fold(struct slot *slot, int64_t n)
{
	int64_t growth;

	slot_put(slot, n);
	if (slot_claim(slot, &growth)) {
		(void)atomic_fetch_add_explicit(&shared.total, growth, memory_order_relaxed);
	}
}

#define DEFINE_SLOT_CASE(name, add, batch)                                      \
	static void name(struct lane *lane, unsigned long ops)                  \
	{                                                                       \
		for (unsigned long i = 0; i < ops; i++) {                       \
			if (__builtin_expect(!add(&lane->slot, 1, batch), 0)) { \
				fold(&lane->slot, 1);                           \
			}                                                       \
		}                                                               \
	}

DEFINE_SLOT_CASE(run_owner_32, slot_add_owner, 32)
DEFINE_SLOT_CASE(run_owner_1024, slot_add_owner, 1024)
DEFINE_SLOT_CASE(run_local_32, slot_add_local, 32)
DEFINE_SLOT_CASE(run_local_1024, slot_add_local, 1024)
DEFINE_SLOT_CASE(run_c11_32, slot_add_c11, 32)
DEFINE_SLOT_CASE(run_c11_1024, slot_add_c11, 1024)

static void run_owner_many(struct lane *lane, unsigned long ops)
{
	for (unsigned long i = 0; i < ops; i++) {
		struct slot *slot = &lane->many[lane->order[i % N_MANY]];

		if (__builtin_expect(!slot_add_owner(slot, 1, 32), 0)) {
			fold(slot, 1);
		}
	}
}

/* All a worker does for one add, names and planes apart. */
static void run_worker(struct lane *lane, unsigned long ops)
{
	for (unsigned long i = 0; i < ops; i++) {
		uint32_t id = lane->order[i % N_MANY];
		struct slot *slot = bank_touch(&lane->bank, id);

		if (__builtin_expect(slot == NULL, 0)) {
			abort();
		}
		if (__builtin_expect(!slot_add(slot, 1, 32), 0)) {
			fold(slot, 1);
			continue;
		}
		bank_mark(&lane->bank, id);
		pending_note(&shared.pending, &lane->share, 1);
	}
}

static void run_xadd_own(struct lane *lane, unsigned long ops)
{
	uint64_t last = 0;

	for (unsigned long i = 0; i < ops; i++) {
		last ^= atomic_fetch_add_explicit(&lane->word, 1, memory_order_relaxed);
	}
	atomic_store_explicit(&sink, last, memory_order_relaxed);
}

static void run_xadd_shared(struct lane *lane, unsigned long ops)
{
	uint64_t last = 0;

	(void)lane;
	for (unsigned long i = 0; i < ops; i++) {
		last ^= atomic_fetch_add_explicit(&shared.word, 1, memory_order_relaxed);
	}
	atomic_store_explicit(&sink, last, memory_order_relaxed);
}

/* As a function of a library, which ration_add is. */
__attribute__((noinline)) static void percpu_add_called(struct slot *base, int64_t n)
{
	percpu_add(base, n);
}

static void run_percpu(struct lane *lane, unsigned long ops)
{
	(void)lane;
	for (unsigned long i = 0; i < ops; i++) {
		percpu_add_called(shared.base, 1);
	}
}

/* An add to the same word waits for the last one's store; adds to different ones do not. */
static void run_percpu_many(struct lane *lane, unsigned long ops)
{
	for (unsigned long i = 0; i < ops; i++) {
		percpu_add_called(shared.bases[lane->order[i % N_MANY]], 1);
	}
}

static void run_xadd_many(struct lane *lane, unsigned long ops)
{
	uint64_t last = 0;

	for (unsigned long i = 0; i < ops; i++) {
		last ^= atomic_fetch_add_explicit(&lane->words[lane->order[i % N_MANY]], 1,
						  memory_order_relaxed);
	}
	atomic_store_explicit(&sink, last, memory_order_relaxed);
}

/* ---- A/B: a lock around the decision and the update, the total under another ---- */

static void run_spin_32(struct lane *lane, unsigned long ops)
{
	for (unsigned long i = 0; i < ops; i++) {
		(void)pthread_spin_lock(&lane->spin);
		int64_t held = lane->held + 1;

		if (__builtin_expect(held >= 32 || held <= -32, 0)) {
			(void)pthread_spin_lock(&shared.spin);
			shared.locked_total += held;
			(void)pthread_spin_unlock(&shared.spin);
			held = 0;
		}
		lane->held = held;
		(void)pthread_spin_unlock(&lane->spin);
	}
}

static void run_mutex_32(struct lane *lane, unsigned long ops)
{
	for (unsigned long i = 0; i < ops; i++) {
		(void)pthread_mutex_lock(&lane->mutex);
		int64_t held = lane->held + 1;

		if (__builtin_expect(held >= 32 || held <= -32, 0)) {
			(void)pthread_mutex_lock(&shared.mutex);
			shared.locked_total += held;
			(void)pthread_mutex_unlock(&shared.mutex);
			held = 0;
		}
		lane->held = held;
		(void)pthread_mutex_unlock(&lane->mutex);
	}
}

/* ---- A/B: always signal; each add is a step's worth, as with amounts of some size ---- */

static void run_signal_skipped(struct lane *lane, unsigned long ops)
{
	for (unsigned long i = 0; i < ops; i++) {
		(void)slot_add_owner(&lane->slot, PENDING_STEP, SLOT_BATCH_MAX);
		pending_note(&shared.pending, &lane->share, PENDING_STEP);
	}
}

static void run_signal_always(struct lane *lane, unsigned long ops)
{
	for (unsigned long i = 0; i < ops; i++) {
		(void)slot_add_owner(&lane->slot, PENDING_STEP, SLOT_BATCH_MAX);
		lane->share.local += PENDING_STEP;
		if (lane->share.local >= PENDING_STEP) {
			(void)atomic_fetch_add_explicit(&shared.pending.word, lane->share.local,
							memory_order_relaxed);
			lane->share.local = 0;
		}
	}
}

/* ---- was anything lost ---- */

static uint64_t found_in_slots(unsigned threads)
{
	int64_t held = 0;

	for (unsigned i = 0; i < threads; i++) {
		held += slot_held(&lanes[i].slot);
		for (unsigned k = 0; k < N_MANY; k++) {
			const struct slot *slot = bank_slot(&lanes[i].bank, k);

			held += slot_held(&lanes[i].many[k]);
			held += slot != NULL ? slot_held(slot) : 0;
		}
	}
	return (uint64_t)(held + atomic_load_explicit(&shared.total, memory_order_relaxed));
}

static uint64_t found_in_steps(unsigned threads)
{
	return found_in_slots(threads) / (uint64_t)PENDING_STEP;
}

static uint64_t found_in_words(unsigned threads)
{
	uint64_t sum = atomic_load_explicit(&shared.word, memory_order_relaxed);

	for (unsigned i = 0; i < threads; i++) {
		sum += atomic_load_explicit(&lanes[i].word, memory_order_relaxed);
		for (unsigned k = 0; k < N_MANY; k++) {
			sum += atomic_load_explicit(&lanes[i].words[k], memory_order_relaxed);
		}
	}
	return sum;
}

static uint64_t found_under_locks(unsigned threads)
{
	int64_t sum = shared.locked_total;

	for (unsigned i = 0; i < threads; i++) {
		sum += lanes[i].held;
	}
	return (uint64_t)sum;
}

static uint64_t found_in_percpu(unsigned threads)
{
	uint64_t sum = percpu_sum(shared.base);

	(void)threads;
	for (unsigned k = 0; k < N_MANY; k++) {
		sum += percpu_sum(shared.bases[k]);
	}
	return sum;
}

/* ---- cases ---- */

enum which {
	OWNER_32,
	OWNER_1024,
	OWNER_MANY,
	OWNER_32_2,
	LOCAL_32,
	LOCAL_1024,
	LOCAL_32_2,
	C11_32,
	C11_1024,
	WORKER,
	XADD_OWN,
	XADD_SHARED_2,
	XADD_MANY,
	PERCPU,
	PERCPU_2,
	PERCPU_MANY,
	SPIN_32,
	MUTEX_32,
	SPIN_32_2,
	SKIP_2,
	SKIP_8,
	SKIP_32,
	ALWAYS_2,
	ALWAYS_8,
	ALWAYS_32,
	N_CASES,
};

static const struct bench_case {
	const char *what;
	unsigned threads;
	unsigned long divisor; /* of OPS per thread */
	void (*run)(struct lane *lane, unsigned long ops);
	uint64_t (*found)(unsigned threads);
} cases[N_CASES] = {
	[OWNER_32] = { "slot add by its owner, batch 32", 1, 1, run_owner_32, found_in_slots },
	[OWNER_1024] = { "  batch 1024", 1, 1, run_owner_1024, found_in_slots },
	[OWNER_MANY] = { "  batch 32, 1,024 slots at random", 1, 1, run_owner_many, found_in_slots },
	[OWNER_32_2] = { "  batch 32, 2 owners", 2, 1, run_owner_32, found_in_slots },
	[LOCAL_32] = { "slot add by cmpxchg without lock, batch 32", 1, 1, run_local_32,
		       found_in_slots },
	[LOCAL_1024] = { "  batch 1024", 1, 1, run_local_1024, found_in_slots },
	[LOCAL_32_2] = { "  batch 32, 2 owners", 2, 1, run_local_32, found_in_slots },
	[C11_32] = { "slot add by C11 compare-exchange, batch 32", 1, 1, run_c11_32,
		     found_in_slots },
	[C11_1024] = { "  batch 1024", 1, 1, run_c11_1024, found_in_slots },
	[WORKER] = { "slot look-up, add, mark, pending; 1,024 ids", 1, 1, run_worker,
		     found_in_slots },
	[XADD_OWN] = { "lock xadd, own line", 1, 2, run_xadd_own, found_in_words },
	[XADD_SHARED_2] = { "lock xadd, 2 threads on one line", 2, 4, run_xadd_shared,
			    found_in_words },
	[XADD_MANY] = { "  1,024 words at random", 1, 2, run_xadd_many, found_in_words },
	[PERCPU] = { "per-CPU add from any thread", 1, 1, run_percpu, found_in_percpu },
	[PERCPU_2] = { "  2 threads, the same counter", 2, 1, run_percpu, found_in_percpu },
	[PERCPU_MANY] = { "  1,024 counters at random", 1, 1, run_percpu_many, found_in_percpu },
	[SPIN_32] = { "spin lock around the decision, batch 32", 1, 2, run_spin_32,
		      found_under_locks },
	[MUTEX_32] = { "mutex around the decision, batch 32", 1, 2, run_mutex_32,
		       found_under_locks },
	[SPIN_32_2] = { "spin lock, batch 32, 2 threads", 2, 2, run_spin_32, found_under_locks },
	[SKIP_2] = { "signal skipped above threshold, 2 threads", 2, 4, run_signal_skipped,
		     found_in_steps },
	[SKIP_8] = { "  8 threads", 8, 16, run_signal_skipped, found_in_steps },
	[SKIP_32] = { "  32 threads", 32, 64, run_signal_skipped, found_in_steps },
	[ALWAYS_2] = { "always signalled, 2 threads", 2, 4, run_signal_always, found_in_steps },
	[ALWAYS_8] = { "  8 threads", 8, 16, run_signal_always, found_in_steps },
	[ALWAYS_32] = { "  32 threads", 32, 64, run_signal_always, found_in_steps },
};

/* What is promised: `a` takes at most `bound` times as long as `b`.  */
static const struct promise {
	const char *what;
	enum which a, b;
	double bound;
} promises[] = {
	{ "owner's add, batch 32 : lock xadd", OWNER_32, XADD_OWN, 1.0 / 8 },
	{ "owner's add, batch 1024 : lock xadd", OWNER_1024, XADD_OWN, 1.0 / 8 },
	{ "owner's add : lock xadd, both at random", OWNER_MANY, XADD_MANY, 1.0 / 8 },
	{ "owner's add : 2 threads, one lock xadd", OWNER_32, XADD_SHARED_2, 1.0 / 20 },
	{ "owner's add, batch 1024 : the same", OWNER_1024, XADD_SHARED_2, 1.0 / 20 },
	{ "per-CPU add : lock xadd", PERCPU, XADD_OWN, 1.0 / 3 },
	{ "per-CPU add : lock xadd, both at random", PERCPU_MANY, XADD_MANY, 1.0 / 3 },
	{ "per-CPU add, 2 threads on one counter : 1", PERCPU_2, PERCPU, 1.2 },
	{ "idea 1: cmpxchg : spin lock, 1 thread", LOCAL_32, SPIN_32, 0.6 },
	{ "idea 1: cmpxchg : spin lock, 2 threads", LOCAL_32_2, SPIN_32_2, 0.6 },
	{ "idea 1: cmpxchg : mutex, 1 thread", LOCAL_32, MUTEX_32, 0.6 },
	{ "idea 1: owner's add : spin lock, 1 thread", OWNER_32, SPIN_32, 0.6 },
	{ "idea 2: skipped : always, 2 threads", SKIP_2, ALWAYS_2, 1 },
	{ "idea 2: skipped : always, 8 threads", SKIP_8, ALWAYS_8, 1 },
	{ "idea 2: skipped : always, 32 threads", SKIP_32, ALWAYS_32, 1 },
};

static double figures[N_CASES][MEASURE_MAX_ROUNDS];

/* ---- running ---- */

struct thread_run {
	const struct bench_case *bench;
	struct lane *lane;
	unsigned number;
	unsigned long ops;
	double cpu_ns;
};

static void *thread_main(void *arg)
{
	struct thread_run *run = arg;

	measure_pin(run->number);
	(void)atomic_fetch_add_explicit(&shared.ready, 1, memory_order_acq_rel);
	while (atomic_load_explicit(&shared.ready, memory_order_acquire) < run->bench->threads) {
		(void)sched_yield();
	}
	/* A short run first: pages and caches. */
	run->bench->run(run->lane, run->ops / 16);
	double start = measure_cpu_ns();

	run->bench->run(run->lane, run->ops);
	run->cpu_ns = measure_cpu_ns() - start;
	return NULL;
}

/* Flushes now and then, as a daemon's reader does: without it one skip would decide all others. */
static void *reset_main(void *arg)
{
	(void)arg;
	while (!atomic_load_explicit(&shared.stop, memory_order_relaxed)) {
		struct timespec pause = { .tv_nsec = 1000000 };

		pending_reset(&shared.pending);
		fence_heavy();
		(void)nanosleep(&pause, NULL);
	}
	return NULL;
}

static void must(int r, const char *what)
{
	if (r != 0) {
		(void)fprintf(stderr, "bench-slot: %s: %s\n", what, strerror(r < 0 ? -r : r));
		exit(2);
	}
}

/* False: something was lost. */
static bool run_case(const struct bench_case *bench, double *ret_ns)
{
	struct thread_run runs[MAX_THREADS];
	pthread_t threads[MAX_THREADS], resetter;
	bool resets = bench->found == found_in_steps;
	uint64_t before = bench->found(bench->threads), added = 0;
	double cpu_ns = 0;

	atomic_store_explicit(&shared.ready, 0, memory_order_relaxed);
	atomic_store_explicit(&shared.stop, false, memory_order_relaxed);
	pending_init(&shared.pending, PENDING_STEP * bench->threads);
	if (resets) {
		must(pthread_create(&resetter, NULL, reset_main, NULL), "thread");
	}
	for (unsigned i = 0; i < bench->threads; i++) {
		runs[i] = (struct thread_run){ bench, &lanes[i], i, OPS / bench->divisor, 0 };
		must(pthread_create(&threads[i], NULL, thread_main, &runs[i]), "thread");
	}
	for (unsigned i = 0; i < bench->threads; i++) {
		must(pthread_join(threads[i], NULL), "join");
		cpu_ns += runs[i].cpu_ns;
		added += runs[i].ops + runs[i].ops / 16;
	}
	if (resets) {
		atomic_store_explicit(&shared.stop, true, memory_order_relaxed);
		must(pthread_join(resetter, NULL), "join");
	}
	*ret_ns = cpu_ns / (double)(runs[0].ops * bench->threads);
	if (bench->found(bench->threads) - before != added) {
		(void)fprintf(stderr, "bench-slot: %s: added %llu, found %llu\n", bench->what,
			      (unsigned long long)added,
			      (unsigned long long)(bench->found(bench->threads) - before));
		return false;
	}
	return true;
}

static void setup(void)
{
	fence_setup();
	must(pthread_spin_init(&shared.spin, PTHREAD_PROCESS_PRIVATE), "spin lock");
	must(pthread_mutex_init(&shared.mutex, NULL), "mutex");
	must(percpu_init(&shared.percpu, (uint32_t)sysconf(_SC_NPROCESSORS_CONF), N_MANY + 1),
	     "percpu");
	shared.base = percpu_base(&shared.percpu, N_MANY);
	must(shared.base == NULL, "percpu");
	for (uint32_t k = 0; k < N_MANY; k++) {
		shared.bases[k] = percpu_base(&shared.percpu, k);
		must(shared.bases[k] == NULL, "percpu");
	}
	for (unsigned i = 0; i < MAX_THREADS; i++) {
		struct lane *lane = &lanes[i];
		uint32_t random = 12345 + i;

		must(pthread_spin_init(&lane->spin, PTHREAD_PROCESS_PRIVATE), "spin lock");
		must(pthread_mutex_init(&lane->mutex, NULL), "mutex");
		must(bank_init(&lane->bank, N_MANY, false), "bank");
		lane->many = aligned_alloc(128, N_MANY * sizeof(lane->many[0]));
		lane->words = calloc(N_MANY, sizeof(lane->words[0]));
		lane->order = calloc(N_MANY, sizeof(lane->order[0]));
		must(lane->many == NULL || lane->words == NULL || lane->order == NULL, "memory");
		memset(lane->many, 0, N_MANY * sizeof(lane->many[0]));
		for (unsigned k = 0; k < N_MANY; k++) {
			random = random * 1664525 + 1013904223;
			lane->order[k] = (uint16_t)(random >> 16) % N_MANY;
		}
	}
}

static void teardown(void)
{
	percpu_deinit(&shared.percpu);
	for (unsigned i = 0; i < MAX_THREADS; i++) {
		bank_deinit(&lanes[i].bank);
		free(lanes[i].many);
		free(lanes[i].words);
		free(lanes[i].order);
	}
}

static void print_figures(unsigned rounds)
{
	(void)printf("%-54s %9s\n", "what", "ns/add");
	for (unsigned c = 0; c < N_CASES; c++) {
		(void)printf("%-54s %9.2f\n", cases[c].what, measure_median(figures[c], rounds));
	}
	(void)printf("\n%-54s %9s %9s  %s\n", "ratio", "measured", "bound", "met");
	for (size_t i = 0; i < sizeof(promises) / sizeof(promises[0]); i++) {
		const struct promise *promise = &promises[i];
		double ratio =
			measure_median_ratio(figures[promise->a], figures[promise->b], rounds);

		(void)printf("%-54s %9.3f %9.3f  %s\n", promise->what, ratio, promise->bound,
			     ratio <= promise->bound ? "yes" : "NO");
	}
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 7;
	bool lost = false;

	if (argc > 2 || rounds == 0 || rounds > MEASURE_MAX_ROUNDS) {
		(void)fprintf(stderr, "usage: bench-slot [ROUNDS]\n");
		return 2;
	}
	setup();
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned c = 0; c < N_CASES; c++) {
			lost = !run_case(&cases[c], &figures[c][round]) || lost;
		}
	}
	(void)printf("fences: %s; per-CPU adds: %s; a worker's slot: RATION_SLOT of this build\n\n",
		     atomic_load_explicit(&fence_mode, memory_order_relaxed) == FENCE_ASYMMETRIC
			     ? "membarrier"
			     : "full",
		     percpu_is_fast(&shared.percpu) ? "restartable sequences" : "atomic");
	print_figures((unsigned)rounds);
	(void)printf("\n%s\n", lost ? "COUNTS WERE LOST" : "nothing was lost");
	teardown();
	return lost ? 1 : 0;
}
