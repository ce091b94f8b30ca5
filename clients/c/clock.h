#pragma once
/*
 * clock: points in time, in milliseconds of CLOCK_MONOTONIC, which no step of the wall clock moves.
 */
#include <stdint.h>
#include <time.h>

#define CLOCK_NEVER INT64_MAX

static inline int64_t clock_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The point timeout_ms from now; a negative timeout never comes. */
static inline int64_t clock_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? CLOCK_NEVER : clock_now() + timeout_ms;
}

/* For pthread's timed waits. */
static inline struct timespec clock_timespec(int64_t at)
{
	int64_t seconds = at / 1000 < INT32_MAX ? at / 1000 : INT32_MAX;

	return (struct timespec){ .tv_sec = (time_t)seconds,
				  .tv_nsec = (long)(at % 1000 * 1000000) };
}

/* For poll(): 0 if the deadline has passed, -1 if it never comes. Rounds so that a wait does not end too early. */
static inline int clock_poll_timeout(int64_t deadline)
{
	int64_t left;

	if (deadline == CLOCK_NEVER) {
		return -1;
	}
	left = deadline - clock_now();
	if (left <= 0) {
		return 0;
	}
	return left < INT32_MAX ? (int)left : INT32_MAX;
}
