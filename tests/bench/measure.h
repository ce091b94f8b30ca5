#pragma once
/*
 * measure: what benchmarks of one process have in common: threads' own time, threads on processors of their own, medians over rounds.
 */
#include <stddef.h>

#define MEASURE_MAX_ROUNDS 99u

/* Of processor time, of this thread. */
double measure_cpu_ns(void);

/* This thread to the number-th of the processors we may use, round and round, so that two threads do meet on a line. */
void measure_pin(unsigned number);

/* n_threads at once, each on a processor, start when all of them are there. The mean over them of the own time for one of `ops`. */
double measure_threads(void (*run)(unsigned number), unsigned n_threads, unsigned long ops);

/* The values stay as they are. 0 < n <= MEASURE_MAX_ROUNDS. */
double measure_median(const double *values, size_t n);
/* The median of the rounds' ratios: both sides of each met the same disturbances. */
double measure_median_ratio(const double *a, const double *b, size_t n);
