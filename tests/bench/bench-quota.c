/*
 * What a charge costs, in nanoseconds of its thread's processor time, against a locked instruction: alone and with two threads on one
 * subtree, with windows and rates, among few nodes and many. And the A/B of an idea: protections propagated to the parent only when
 * they change, against always.
 *
 *	bench-quota [ROUNDS]	an odd number; default 7
 *
 * All cases run once in every round, so that a disturbance meets all of them; figures are medians over the rounds, and so are ratios.
 * Two threads meet on a line only while both have a processor: where they had not, the case is run again, a number of times.
 *
 * Whatever the figures, the exit status is 1 only if usage afterwards is not what was charged and not given back.
 */
#include "lib/quota/charge.h"
#include "lib/quota/protect.h"
#include "tests/bench/measure.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_THREADS 2u
#define MAX_TRIES 12u
#define OPS 1000000ul
#define N_FEW 1000u
#define N_MANY 100000u
#define S INT64_C(1000000000)
#define PROTECTED_MIN 1000
#define PROTECTED_LOW 2000

static const struct window none = { .kind = WINDOW_NONE };
static const struct window hour = { .kind = WINDOW_PER, .duration_ns = 3600 * S };
static const struct window month = { .kind = WINDOW_CALENDAR, .unit = WINDOW_MONTH };
static const struct window per_second = { .kind = WINDOW_RATE };
static const struct quota_time now = { .wall_ns = 1700000000 * S, .mono_ns = 1000 * S };
static const struct quota_limits wide = { .max = INT64_C(1) << 40, .high = QUOTA_NONE };
static const struct quota_limits fast = {
	.max = QUOTA_NONE, .high = QUOTA_NONE, .rate = 1, .per_ns = S, .burst = 100000000
};

/* A tree for one case: 4 levels, of which the leaves are one for each thread; or many leaves. */
struct tree {
	struct quota_node root, top, middle;
	struct quota_node leaves[MAX_THREADS];
	struct quota_node *many;
	uint32_t n_many, stride;
};

static struct tree trees[9];
enum {
	PLAIN,
	WINDOWED,
	CALENDAR,
	RATES,
	CHANGED,
	ALWAYS,
	FEW,
	SPREAD,
	MANY
};

static struct {
	_Alignas(128) _Atomic(uint64_t) own[MAX_THREADS][16];
	_Alignas(128) _Atomic(uint64_t) shared;
	_Alignas(128) _Atomic(unsigned) ready;
} words;

/* What the threads of a case do. */
struct lane {
	unsigned number;
	const struct bench_case *bench;
	unsigned long ops;
	int64_t held;			   /* charged and not given back */
	uint64_t cpu_ns, start_ns, end_ns; /* of the thread; by the clock */
};

struct bench_case {
	const char *what;
	unsigned threads;
	unsigned long ops;
	int tree; /* -1: none */
	void (*run)(struct lane *, struct tree *, unsigned long);
};

/* ---- cases ---- */

static void run_xadd_own(struct lane *lane, struct tree *tree, unsigned long ops)
{
	uint64_t sum = 0;

	(void)tree;
	for (unsigned long i = 0; i < ops; i++) {
		/* The value is used, or the compiler takes lock add instead. */
		sum += atomic_fetch_add_explicit(&words.own[lane->number][0], 1,
						 memory_order_seq_cst);
	}
	lane->held += sum == 1;
}

static void run_xadd_shared(struct lane *lane, struct tree *tree, unsigned long ops)
{
	uint64_t sum = 0;

	(void)tree;
	for (unsigned long i = 0; i < ops; i++) {
		sum += atomic_fetch_add_explicit(&words.shared, 1, memory_order_seq_cst);
	}
	lane->held += sum == 1;
}

static void run_charge(struct lane *lane, struct tree *tree, unsigned long ops)
{
	for (unsigned long i = 0; i < ops; i++) {
		lane->held += quota_try_charge(&tree->leaves[lane->number], 1, &now, NULL) == 0;
	}
}

static void run_forced(struct lane *lane, struct tree *tree, unsigned long ops)
{
	for (unsigned long i = 0; i < ops; i++) {
		quota_charge(&tree->leaves[lane->number], 1, &now);
	}
	lane->held += (int64_t)ops;
}

static void run_pair(struct lane *lane, struct tree *tree, unsigned long ops)
{
	for (unsigned long i = 0; i < ops; i++) {
		bool granted = quota_try_charge(&tree->leaves[lane->number], 1, &now, NULL) == 0;

		if (granted && quota_uncharge(&tree->leaves[lane->number], 1) != 0) {
			lane->held++;
		}
	}
}

static void run_refused(struct lane *lane, struct tree *tree, unsigned long ops)
{
	for (unsigned long i = 0; i < ops; i++) {
		lane->held += quota_try_charge(&tree->leaves[lane->number], QUOTA_MAX_LIMIT, &now,
					       NULL) == 0;
	}
}

/*
 * The other way: as the library does it, but for the look whether anything has changed. The settings of this tree's top are told to this
 * alone, so the library has nothing to propagate.
 */
static __attribute__((noinline)) void claim_always(struct quota_node *node,
						   _Atomic(int64_t) *setting,
						   _Atomic(int64_t) *used, _Atomic(int64_t) *sum)
{
	int64_t usage = (int64_t)atomic_load_explicit(&node->usage, memory_order_seq_cst);
	int64_t want, old;

	do {
		want = protect_used(usage, atomic_load_explicit(setting, memory_order_seq_cst));
		old = atomic_exchange_explicit(used, want, memory_order_seq_cst);
		if (want != old) {
			(void)atomic_fetch_add_explicit(sum, want - old, memory_order_relaxed);
		}
		usage = (int64_t)atomic_load_explicit(&node->usage, memory_order_seq_cst);
	} while (protect_used(usage, atomic_load_explicit(setting, memory_order_seq_cst)) != want);
}

static _Atomic(int64_t) always_min = PROTECTED_MIN, always_low = PROTECTED_LOW;

static void run_always(struct lane *lane, struct tree *tree, unsigned long ops)
{
	for (unsigned long i = 0; i < ops; i++) {
		lane->held += quota_try_charge(&tree->leaves[lane->number], 1, &now, NULL) == 0;
		claim_always(&tree->top, &always_min, &tree->top.min_used,
			     &tree->root.children_min);
		claim_always(&tree->top, &always_low, &tree->top.low_used,
			     &tree->root.children_low);
	}
}

static void run_many(struct lane *lane, struct tree *tree, unsigned long ops)
{
	uint32_t random = 1;

	for (unsigned long i = 0; i < ops; i++) {
		random = random * 1664525 + 1013904223;
		uint32_t at = (uint32_t)(((uint64_t)random * (tree->n_many / tree->stride)) >> 32) *
			      tree->stride;

		lane->held += quota_try_charge(&tree->many[at], 1, &now, NULL) == 0;
	}
}

enum which {
	XADD,
	XADD_2,
	CHARGE,
	CHARGE_2,
	PAIR,
	FORCED,
	REFUSED,
	CHARGE_HOUR,
	CHARGE_MONTH,
	CHARGE_RATE,
	CHANGED_1,
	CHANGED_2,
	ALWAYS_1,
	ALWAYS_2,
	FEW_NODES,
	SPREAD_NODES,
	MANY_NODES,
	N_CASES,
};

static const struct bench_case cases[N_CASES] = {
	[XADD] = { "lock xadd, own line", 1, OPS * 4, -1, run_xadd_own },
	[XADD_2] = { "lock xadd, 2 threads on one line", 2, OPS / 2, -1, run_xadd_shared },
	[CHARGE] = { "try_charge, 4 levels", 1, OPS, PLAIN, run_charge },
	[CHARGE_2] = { "  2 threads, 3 of the levels in common", 2, OPS / 10, PLAIN, run_charge },
	[PAIR] = { "  and uncharge", 1, OPS, PLAIN, run_pair },
	[FORCED] = { "forced charge", 1, OPS, PLAIN, run_forced },
	[REFUSED] = { "refused by the leaf", 1, OPS, PLAIN, run_refused },
	[CHARGE_HOUR] = { "window of an hour", 1, OPS, WINDOWED, run_charge },
	[CHARGE_MONTH] = { "calendar month", 1, OPS, CALENDAR, run_charge },
	[CHARGE_RATE] = { "rate", 1, OPS, RATES, run_charge },
	[CHANGED_1] = { "3 levels, min and low, propagated if changed", 1, OPS, CHANGED,
			run_charge },
	[CHANGED_2] = { "  2 threads", 2, OPS / 10, CHANGED, run_charge },
	[ALWAYS_1] = { "3 levels, min and low, always propagated", 1, OPS, ALWAYS, run_always },
	[ALWAYS_2] = { "  2 threads", 2, OPS / 10, ALWAYS, run_always },
	[FEW_NODES] = { "2 levels, 1,000 leaves at random", 1, OPS, FEW, run_many },
	[SPREAD_NODES] = { "  1,000 of 100,000 leaves", 1, OPS, SPREAD, run_many },
	[MANY_NODES] = { "  all 100,000: more than the caches hold", 1, OPS, MANY, run_many },
};

/* What is promised: `a` takes at most `bound` times as long as `b`. */
static const struct promise {
	const char *what;
	enum which a, b;
	double bound;
} promises[] = {
	{ "charge, 4 levels : lock xadd", CHARGE, XADD, 12 },
	{ "charge, 4 levels, 2 threads : lock xadd", CHARGE_2, XADD, 4 * 12 },
	{ "charge and uncharge : lock xadd", PAIR, XADD, 24 },
	{ "charge, 4 levels of an hour : lock xadd", CHARGE_HOUR, XADD, 24 },
	{ "idea 3: if changed : always, 1 thread", CHANGED_1, ALWAYS_1, 1 },
	{ "idea 3: if changed : always, 2 threads", CHANGED_2, ALWAYS_2, 1 },
	{ "1,000 of 100,000 leaves : 1,000", SPREAD_NODES, FEW_NODES, 1.25 },
};

static double figures[N_CASES][MEASURE_MAX_ROUNDS];
static double shares[N_CASES][MEASURE_MAX_ROUNDS]; /* see share_of; of the try that counts */

/* ---- running ---- */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	(void)clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void *lane_main(void *arg)
{
	struct lane *lane = arg;
	const struct bench_case *bench = lane->bench;
	struct tree *tree = bench->tree < 0 ? NULL : &trees[bench->tree];

	measure_pin(lane->number);
	(void)atomic_fetch_add_explicit(&words.ready, 1, memory_order_acq_rel);
	while (atomic_load_explicit(&words.ready, memory_order_acquire) < bench->threads) {
		(void)sched_yield();
	}
	/* A short run first: pages and caches. */
	bench->run(lane, tree, lane->ops / 16);
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	lane->start_ns = clock_ns(CLOCK_MONOTONIC);
	bench->run(lane, tree, lane->ops);
	lane->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	lane->end_ns = clock_ns(CLOCK_MONOTONIC);
	return NULL;
}

static void must(int r, const char *what)
{
	if (r != 0) {
		(void)fprintf(stderr, "bench-quota: %s: %s\n", what, strerror(r));
		exit(2);
	}
}

static int64_t usage(const struct quota_node *node)
{
	struct quota_reading reading;

	quota_read(node, &now, &reading);
	return reading.usage;
}

static int64_t usage_of_leaves(const struct tree *tree)
{
	int64_t sum = usage(&tree->leaves[0]) + usage(&tree->leaves[1]);

	for (uint32_t i = 0; i < tree->n_many; i++) {
		sum += usage(&tree->many[i]);
	}
	return sum;
}

/* The part of its time that the thread had a processor while the other ran too. */
static double share_of(const struct lane *lane, const struct lane *other)
{
	uint64_t from = lane->start_ns > other->start_ns ? lane->start_ns : other->start_ns;
	uint64_t to = lane->end_ns < other->end_ns ? lane->end_ns : other->end_ns;
	double length = (double)(lane->end_ns - lane->start_ns);

	return from < to ? (double)lane->cpu_ns / length * ((double)(to - from) / length) : 0;
}

/* False: something was lost. *ret_share: the lesser share_of of the two threads; 1 for one. */
static bool try_case(const struct bench_case *bench, double *ret_ns, double *ret_share)
{
	struct lane lanes[MAX_THREADS];
	pthread_t threads[MAX_THREADS];
	const struct tree *tree = bench->tree < 0 ? NULL : &trees[bench->tree];
	int64_t before = tree == NULL ? 0 : usage(&tree->root), held = 0;
	uint64_t cpu_ns = 0;

	atomic_store_explicit(&words.ready, 0, memory_order_relaxed);
	for (unsigned i = 0; i < bench->threads; i++) {
		lanes[i] = (struct lane){ .number = i, .bench = bench, .ops = bench->ops };
		must(pthread_create(&threads[i], NULL, lane_main, &lanes[i]), "thread");
	}
	for (unsigned i = 0; i < bench->threads; i++) {
		must(pthread_join(threads[i], NULL), "join");
		cpu_ns += lanes[i].cpu_ns;
		held += lanes[i].held;
	}
	*ret_share = 1;
	if (bench->threads == 2) {
		double a = share_of(&lanes[0], &lanes[1]), b = share_of(&lanes[1], &lanes[0]);

		*ret_share = a < b ? a : b;
	}
	*ret_ns = (double)cpu_ns / (double)(bench->ops * bench->threads);
	if (tree == NULL) {
		return true;
	}
	if (usage(&tree->root) - before != held || usage_of_leaves(tree) != usage(&tree->root)) {
		(void)fprintf(stderr,
			      "bench-quota: %s: charged %lld, found %lld, in the leaves %lld\n",
			      bench->what, (long long)held,
			      (long long)(usage(&tree->root) - before),
			      (long long)usage_of_leaves(tree));
		return false;
	}
	return true;
}

/* Two threads that take turns on one processor do not meet: again, until they had one each or it is enough. The best counts. */
static bool run_case(const struct bench_case *bench, double *ret_ns, double *ret_share)
{
	double best = -1;
	bool kept = true;

	for (unsigned i = 0; i < (bench->threads > 1 ? MAX_TRIES : 1) && best < 0.9; i++) {
		double ns, share;

		kept = try_case(bench, &ns, &share) && kept;
		if (share > best) {
			best = share;
			*ret_ns = ns;
		}
	}
	*ret_share = best;
	return kept;
}

/* ---- trees ---- */

static void plant(struct tree *tree, const struct window *window, const struct quota_limits *limits,
		  const struct quota_limits *top)
{
	quota_init(&tree->root, window, NULL, limits, 0, &now);
	quota_init(&tree->top, window, &tree->root, top, 0, &now);
	quota_init(&tree->middle, window, &tree->top, limits, 0, &now);
	for (size_t i = 0; i < MAX_THREADS; i++) {
		quota_init(&tree->leaves[i], window, &tree->middle, limits, 0, &now);
	}
}

/* Without the middle: root, top, leaves. */
static void plant_3(struct tree *tree, const struct quota_limits *top)
{
	plant(tree, &none, &wide, top);
	for (size_t i = 0; i < MAX_THREADS; i++) {
		quota_reparent(&tree->leaves[i], &tree->top);
	}
}

static void plant_many(struct tree *tree, uint32_t n, uint32_t stride)
{
	plant(tree, &none, &wide, &wide);
	tree->many = aligned_alloc(64, n * sizeof(struct quota_node));
	must(tree->many == NULL, "memory");
	tree->n_many = n;
	tree->stride = stride;
	for (uint32_t i = 0; i < n; i++) {
		quota_init(&tree->many[i], &none, &tree->root, &wide, 0, &now);
	}
}

static void setup(void)
{
	struct quota_limits protected = wide;

	protected.min = PROTECTED_MIN;
	protected.low = PROTECTED_LOW;
	plant(&trees[PLAIN], &none, &wide, &wide);
	plant(&trees[WINDOWED], &hour, &wide, &wide);
	plant(&trees[CALENDAR], &month, &wide, &wide);
	plant(&trees[RATES], &per_second, &fast, &fast);
	plant_3(&trees[CHANGED], &protected);
	plant_3(&trees[ALWAYS], &wide);
	plant_many(&trees[FEW], N_FEW, 1);
	plant_many(&trees[SPREAD], N_MANY, N_MANY / N_FEW);
	plant_many(&trees[MANY], N_MANY, 1);
}

static void print_figures(unsigned rounds)
{
	(void)printf("%-54s %9s\n", "what", "ns");
	for (unsigned c = 0; c < N_CASES; c++) {
		(void)printf("%-54s %9.2f", cases[c].what, measure_median(figures[c], rounds));
		if (cases[c].threads > 1) {
			(void)printf("   side by side %.0f %% of the time",
				     100 * measure_median(shares[c], rounds));
		}
		(void)printf("\n");
	}
	(void)printf("\n%-54s %9s %9s  %s\n", "ratio", "measured", "bound", "met");
	for (size_t i = 0; i < sizeof(promises) / sizeof(promises[0]); i++) {
		const struct promise *promise = &promises[i];
		double ratio =
			measure_median_ratio(figures[promise->a], figures[promise->b], rounds);

		(void)printf("%-54s %9.3f %9.3f  %s\n", promise->what, ratio, promise->bound,
			     ratio <= promise->bound ? "yes" : "NO");
	}
	(void)printf("\nbytes a node in one plane: %zu\n", sizeof(struct quota_node));
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 7;
	bool lost = false;

	if (argc > 2 || rounds == 0 || rounds > MEASURE_MAX_ROUNDS) {
		(void)fprintf(stderr, "usage: bench-quota [ROUNDS]\n");
		return 2;
	}
	setup();
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned c = 0; c < N_CASES; c++) {
			lost = !run_case(&cases[c], &figures[c][round], &shares[c][round]) || lost;
		}
	}
	print_figures((unsigned)rounds);
	(void)printf("\n%s\n", lost ? "UNITS WERE LOST" : "nothing was lost");
	free(trees[FEW].many);
	free(trees[SPREAD].many);
	free(trees[MANY].many);
	return lost ? 1 : 0;
}
