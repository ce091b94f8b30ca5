#include "tests/bench/measure.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_THREADS 8u

double measure_cpu_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

void measure_pin(unsigned number)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all) < 0) {
		return;
	}
	unsigned nth = number % (unsigned)CPU_COUNT(&all);

	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &all) && nth-- == 0) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			(void)sched_setaffinity(0, sizeof(one), &one);
			return;
		}
	}
}

struct lane {
	pthread_t thread;
	void (*run)(unsigned number);
	_Atomic(unsigned) *n_to_come;
	unsigned number;
	double ns;
};

static void *lane_main(void *arg)
{
	struct lane *lane = arg;
	double begun;

	measure_pin(lane->number);
	(void)atomic_fetch_sub_explicit(lane->n_to_come, 1, memory_order_acq_rel);
	while (atomic_load_explicit(lane->n_to_come, memory_order_acquire) > 0) {
	}
	begun = measure_cpu_ns();
	lane->run(lane->number);
	lane->ns = measure_cpu_ns() - begun;
	return NULL;
}

double measure_threads(void (*run)(unsigned number), unsigned n_threads, unsigned long ops)
{
	_Alignas(128) _Atomic(unsigned) n_to_come = n_threads;
	struct lane lanes[MAX_THREADS];
	double sum = 0;

	if (n_threads > MAX_THREADS) {
		abort();
	}
	for (unsigned i = 0; i < n_threads; i++) {
		lanes[i] = (struct lane){ .run = run, .n_to_come = &n_to_come, .number = i };
		if (pthread_create(&lanes[i].thread, NULL, lane_main, &lanes[i]) != 0) {
			abort();
		}
	}
	for (unsigned i = 0; i < n_threads; i++) {
		(void)pthread_join(lanes[i].thread, NULL);
		sum += lanes[i].ns;
	}
	return sum / (double)n_threads / (double)ops;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double measure_median(const double *values, size_t n)
{
	double sorted[MEASURE_MAX_ROUNDS];

	if (n == 0 || n > MEASURE_MAX_ROUNDS) {
		abort();
	}
	memcpy(sorted, values, n * sizeof(sorted[0]));
	qsort(sorted, n, sizeof(sorted[0]), by_size);
	return sorted[n / 2];
}

double measure_median_ratio(const double *a, const double *b, size_t n)
{
	double ratios[MEASURE_MAX_ROUNDS];

	if (n > MEASURE_MAX_ROUNDS) {
		abort();
	}
	for (size_t i = 0; i < n; i++) {
		ratios[i] = a[i] / b[i];
	}
	return measure_median(ratios, n);
}
