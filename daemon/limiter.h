#pragma once
/*
 * limiter: lets so many events through in each interval and counts the others.
 *
 * Time is a parameter and must not step back (the monotonic clock). Thread safety: none, the caller excludes.
 */
#include <stdbool.h>
#include <stdint.h>

struct limiter {
	int64_t began_ns;    /* of the interval; 0: none yet */
	uint32_t passed;     /* in this interval */
	uint64_t suppressed; /* since the last limiter_collect */
};

/* True: let it through. False: it was counted as suppressed. */
bool limiter_pass(struct limiter *limiter, int64_t now_ns, uint32_t burst, int64_t interval_ns);

/*
 * How many events were suppressed, once the interval in which that happened is over, and 0 before; they are counted from 0
 * again. Ask before limiter_pass, and every so often, so that the number is told even when nothing follows.
 */
uint64_t limiter_collect(struct limiter *limiter, int64_t now_ns, int64_t interval_ns);
