/*
 * What ration_add costs a program that is linked with libration, in nanoseconds of its thread's processor time, against a locked
 * instruction on a line of the thread's own; and whether two threads on one counter pay for each other.
 *
 *	bench-ration-add [ROUNDS]	an odd number; default 9
 *
 * The background thread runs all the while, takes in what has grown every 50 ms, and looks for a daemon that is not there. All cases
 * run once in every round, so that a disturbance meets all of them; figures and ratios are medians over the rounds. In the end ration_close
 * must report exactly what was added as undelivered: the exit status is 1 if not, whatever the figures.
 */
#include "clients/c/include/ration.h"
#include "tests/bench/measure.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define OPS 10000000ul
#define N_MANY 1000u

static struct {
	_Alignas(128) _Atomic(uint64_t) word[2][16]; /* one line and more for each thread */
	_Alignas(128) _Atomic(uint64_t) shared_word;
	_Alignas(128) struct ration_counter *counter;
	struct ration_counter *many[N_MANY];
	_Atomic(uint64_t) added; /* through libration */
} shared;

/* ---- the cases: OPS adds each, by thread number `self` ---- */

static void add_one(unsigned self)
{
	(void)self;
	for (unsigned long i = 0; i < OPS; i++) {
		ration_add(shared.counter, 1);
	}
	(void)atomic_fetch_add_explicit(&shared.added, OPS, memory_order_relaxed);
}

static void inc_one(unsigned self)
{
	(void)self;
	for (unsigned long i = 0; i < OPS; i++) {
		ration_inc(shared.counter);
	}
	(void)atomic_fetch_add_explicit(&shared.added, OPS, memory_order_relaxed);
}

static void add_many(unsigned self)
{
	unsigned at = self;

	for (unsigned long i = 0; i < OPS; i++) {
		ration_add(shared.many[at], 1);
		at = (at * 5 + 7) % N_MANY;
	}
	(void)atomic_fetch_add_explicit(&shared.added, OPS, memory_order_relaxed);
}

static void xadd_own(unsigned self)
{
	for (unsigned long i = 0; i < OPS; i++) {
		(void)atomic_fetch_add_explicit(&shared.word[self][0], 1, memory_order_relaxed);
		/* Keeps the loop from being folded, and the operation a locked one. */
		atomic_signal_fence(memory_order_seq_cst);
	}
}

static void xadd_shared(unsigned self)
{
	(void)self;
	for (unsigned long i = 0; i < OPS; i++) {
		(void)atomic_fetch_add_explicit(&shared.shared_word, 1, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
	}
}

/* What any function of a shared library costs before it does anything. */
static void call(unsigned self)
{
	(void)self;
	for (unsigned long i = 0; i < OPS; i++) {
		(void)ration_version();
	}
}

enum which {
	ADD,
	ADD_2,
	INC,
	MANY,
	CALL,
	XADD,
	XADD_2,
	N_CASES
};

static const struct {
	const char *name;
	void (*run)(unsigned self);
	unsigned n_threads;
} cases[N_CASES] = {
	[ADD] = { "ration_add, one thread", add_one, 1 },
	[ADD_2] = { "ration_add, two threads on one counter", add_one, 2 },
	[INC] = { "ration_inc, one thread", inc_one, 1 },
	[MANY] = { "ration_add, 1,000 counters in turn", add_many, 1 },
	[CALL] = { "a call into the library that does nothing", call, 1 },
	[XADD] = { "lock xadd, a line of its own", xadd_own, 1 },
	[XADD_2] = { "lock xadd, two threads on one line", xadd_shared, 2 },
};

static double ns[N_CASES][MEASURE_MAX_ROUNDS];

static void print_ratio(const char *what, enum which a, enum which b, unsigned n,
			const char *target)
{
	(void)printf("%-56s %6.2f   %s\n", what, measure_median_ratio(ns[a], ns[b], n), target);
}

static void print(unsigned n)
{
	(void)printf("%-56s %6s\n", "nanoseconds of the thread's own time for an add", "ns");
	for (unsigned i = 0; i < N_CASES; i++) {
		(void)printf("%-56s %6.2f\n", cases[i].name, measure_median(ns[i], n));
	}
	(void)printf("\n%-56s %6s   %s\n", "ratio", "times", "target");
	print_ratio("lock xadd / ration_add", XADD, ADD, n, "at least 3");
	print_ratio("ration_add with two threads / with one", ADD_2, ADD, n, "at most 1.2");
	print_ratio("lock xadd with two threads / ration_add with two", XADD_2, ADD_2, n, "");
}

static struct ration *open_client(void)
{
	struct ration *client = ration_open("unix:/nonexistent/rationd.sock", NULL);

	if (client == NULL) {
		(void)fprintf(stderr, "bench-ration-add: %s\n", ration_error());
		exit(1);
	}
	shared.counter = ration_counter(client, "bench/one");
	for (unsigned i = 0; i < N_MANY; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "bench/many/%u", i);
		shared.many[i] = ration_counter(client, path);
	}
	return client;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 9;
	uint64_t undelivered = 0, added;
	struct ration *client;

	if (n < 1 || n > MEASURE_MAX_ROUNDS) {
		(void)fprintf(stderr, "bench-ration-add: ROUNDS is 1 to %u\n", MEASURE_MAX_ROUNDS);
		return 2;
	}
	client = open_client();
	for (unsigned round = 0; round < n; round++) {
		for (unsigned i = 0; i < N_CASES; i++) {
			ns[i][round] = measure_threads(cases[i].run, cases[i].n_threads, OPS);
		}
	}
	(void)ration_close(client, 0, &undelivered);
	added = atomic_load_explicit(&shared.added, memory_order_relaxed);
	print(n);
	(void)printf("\n%llu added, %llu found: %s\n", (unsigned long long)added,
		     (unsigned long long)undelivered, added == undelivered ? "all" : "LOST SOME");
	return added == undelivered ? 0 : 1;
}
