#pragma once
/*
 * clock: the one place where the daemon reads the time. lib/ gets it as a parameter.
 */
#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_S INT64_C(1000000000)

static inline int64_t clock_read(clockid_t id)
{
	struct timespec now = { 0 };

	(void)clock_gettime(id, &now);
	return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

/* Nanoseconds since the epoch; may step. */
static inline int64_t clock_wall_ns(void)
{
	return clock_read(CLOCK_REALTIME);
}

static inline int64_t clock_monotonic_ns(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

/* As of the last timer tick, some milliseconds old: for timeouts, where it costs a tenth. */
static inline int64_t clock_coarse_ns(void)
{
	return clock_read(CLOCK_MONOTONIC_COARSE);
}

static inline struct timeval clock_timeval(int64_t ns)
{
	/* Rounded up: a timer that fires early would find nothing to do and be set again. */
	int64_t us = (ns + 999) / 1000;

	return (struct timeval){ .tv_sec = us / 1000000, .tv_usec = us % 1000000 };
}
