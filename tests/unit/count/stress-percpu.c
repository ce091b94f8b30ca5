/*
 * Many more threads than CPUs add to the same per-CPU counters, while they are moved from CPU to CPU, give the CPU away and are
 * interrupted by a handler that adds as well; a collector sweeps meanwhile. Every sweep must bring what had been added before it
 * began, and all sweeps together exactly what was added.
 */
#include "tests/support/test.h"

#include "lib/base/hook.h"
#include "lib/count/percpu.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define N_THREADS 8u
#define N_COUNTERS 6u
#define N_GROWING 4u /* the first of them; the others go up and down */
#define HANDLER_COUNTER 1u
#define ROUND_MS 1000

/* Apart, so that different blocks and words of a block are used. */
static const uint32_t indices[N_COUNTERS] = { 0, 1, 70, 255, 256, 900 };

static struct stress {
	struct percpu percpu;
	struct slot *bases[N_COUNTERS];
	_Atomic(bool) stop;
	_Atomic(uint64_t) by_handler; /* added by signal handlers that have returned */
	struct adder {
		_Alignas(64) _Atomic(uint64_t) added[N_COUNTERS]; /* by adds that have returned */
		_Atomic(uint64_t) moves;
		uint64_t number;
	} adders[N_THREADS];
	uint64_t collected[N_COUNTERS];
	uint64_t sweeps;
} stress;

static void on_alarm(int signal)
{
	(void)signal;
	percpu_add(stress.bases[HANDLER_COUNTER], 2);
	(void)atomic_fetch_add_explicit(&stress.by_handler, 2, memory_order_release);
}

/* To one CPU of those this process may use, or back to all of them. */
static void move(struct test_random *random, const cpu_set_t *all)
{
	size_t skip = test_random_below(random, (uint64_t)CPU_COUNT(all) + 1);
	cpu_set_t one;

	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, all) && skip-- == 0) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			(void)sched_setaffinity(0, sizeof(one), &one);
			return;
		}
	}
	(void)sched_setaffinity(0, sizeof(*all), all);
}

static void *add_all_the_time(void *arg)
{
	struct adder *adder = arg;
	struct test_random random;
	cpu_set_t all;

	test_random_init(&random, adder->number);
	(void)sched_getaffinity(0, sizeof(all), &all);
	while (!atomic_load_explicit(&stress.stop, memory_order_relaxed)) {
		uint64_t choice = test_random_next(&random);
		size_t counter = choice % N_COUNTERS;
		int64_t n = counter < N_GROWING ? 1 : (int64_t)(choice >> 8 & 15) - 7;

		percpu_add(stress.bases[counter], n);
		/* Release: pairs with the acquire in added_so_far. */
		(void)atomic_fetch_add_explicit(&adder->added[counter], (uint64_t)n,
						memory_order_release);
		if ((choice >> 32) % 512 == 0) {
			move(&random, &all);
			(void)atomic_fetch_add_explicit(&adder->moves, 1, memory_order_relaxed);
		} else if ((choice >> 32) % 64 == 1) {
			(void)sched_yield();
		}
	}
	return NULL;
}

static uint64_t added_so_far(size_t counter)
{
	uint64_t sum = counter == HANDLER_COUNTER
			       ? atomic_load_explicit(&stress.by_handler, memory_order_acquire)
			       : 0;

	for (size_t i = 0; i < N_THREADS; i++) {
		sum += atomic_load_explicit(&stress.adders[i].added[counter], memory_order_acquire);
	}
	return sum;
}

static void grown(void *ctx, uint32_t index, int64_t growth)
{
	(void)ctx;
	for (size_t i = 0; i < N_COUNTERS; i++) {
		if (indices[i] == index) {
			assert_true(i >= N_GROWING || growth > 0);
			stress.collected[i] += (uint64_t)growth;
			return;
		}
	}
	fail_msg("counter %u was never added to", index);
}

static void sweep_and_compare(void)
{
	uint64_t before[N_COUNTERS];

	for (size_t i = 0; i < N_COUNTERS; i++) {
		before[i] = added_so_far(i);
	}
	(void)percpu_sweep(&stress.percpu, grown, NULL);
	stress.sweeps++;
	for (size_t i = 0; i < N_GROWING; i++) {
		assert_true(stress.collected[i] >= before[i]);
		assert_true(percpu_sum(stress.bases[i]) >= stress.collected[i]);
	}
}

static uint64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void sweep_meanwhile(void)
{
	struct itimerval storm = { .it_interval = { .tv_usec = 300 },
				   .it_value = { .tv_usec = 300 } };
	struct itimerval calm = { 0 };
	uint64_t end = now_ms() + ROUND_MS;

	assert_int_equal(setitimer(ITIMER_REAL, &storm, NULL), 0);
	while (now_ms() < end) {
		sweep_and_compare();
		(void)sched_yield();
	}
	assert_int_equal(setitimer(ITIMER_REAL, &calm, NULL), 0);
}

static void run(uint32_t n_cpus, bool sequences)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	pthread_t threads[N_THREADS];
	struct sigaction old;
	uint64_t all = 0, moves = 0;

	memset(&stress, 0, sizeof(stress));
	assert_int_equal(percpu_init(&stress.percpu, n_cpus, 1000), 0);
	if (!sequences) {
		stress.percpu.rseq_cpus = 0;
	}
	for (size_t i = 0; i < N_COUNTERS; i++) {
		stress.bases[i] = percpu_base(&stress.percpu, indices[i]);
		assert_non_null(stress.bases[i]);
	}
	assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
	for (size_t i = 0; i < N_THREADS; i++) {
		stress.adders[i].number = i;
		assert_int_equal(
			pthread_create(&threads[i], NULL, add_all_the_time, &stress.adders[i]), 0);
	}
	sweep_meanwhile();
	atomic_store_explicit(&stress.stop, true, memory_order_relaxed);
	for (size_t i = 0; i < N_THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		moves += atomic_load_explicit(&stress.adders[i].moves, memory_order_relaxed);
	}
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
	sweep_and_compare();
	for (size_t i = 0; i < N_COUNTERS; i++) {
		assert_true(stress.collected[i] == added_so_far(i));
		assert_true(percpu_sum(stress.bases[i]) == added_so_far(i));
		all += i < N_GROWING ? stress.collected[i] : 0;
	}
	print_message(
		"%u CPUs, %s: %llu added to the growing ones, %llu sweeps, %llu moves, %llu by handlers\n",
		n_cpus, percpu_is_fast(&stress.percpu) ? "sequences" : "atomic",
		(unsigned long long)all, (unsigned long long)stress.sweeps,
		(unsigned long long)moves, (unsigned long long)stress.by_handler);
	percpu_deinit(&stress.percpu);
}

static uint32_t cpus(void)
{
	return (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
}

static void test_all_cpus(void **state)
{
	(void)state;
	run(cpus(), true);
}

/* CPUs beyond n_cpus add atomically to the shared slot, beside CPU 0's plain adds. */
static void test_too_few_cpus(void **state)
{
	(void)state;
	run(1, true);
}

static void test_atomic(void **state)
{
	(void)state;
	run(cpus(), false);
}

/* Both sides with full fences, as where membarrier is missing. */
static void test_full_fences(void **state)
{
	(void)state;
	fence_force(FENCE_FULL);
	run(cpus(), true);
	fence_setup();
}

static int setup(void **state)
{
	uint64_t seed = test_seed();

	(void)state;
	(void)seed;
#ifdef RATION_HOOKS
	ration_hook_seed(seed);
#endif
	fence_setup();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_cpus),
		cmocka_unit_test(test_too_few_cpus),
		cmocka_unit_test(test_atomic),
		cmocka_unit_test(test_full_fences),
	};

	return cmocka_run_group_tests_name("count/stress-percpu", tests, setup, NULL);
}
