#pragma once
/*
 * rate: N per duration with a burst, decided exactly (the generic cell rate algorithm, ITU-T I.371, counted in units instead
 * of in time).
 *
 * Let accrued(t) = t x rate / per be what the rate has let through by the monotonic time t. The one word of a bucket, its level V,
 * is the position up to which that has been spent:
 *
 *	idle, V <= accrued(t)	n <= burst is granted; V becomes accrued(t) + n
 *	else			V + n <= accrued(t) + burst is granted; V becomes V + n
 *
 * accrued is computed anew from t each time, with a 128-bit product, so that no error adds up: in the long run exactly `rate` is
 * granted. Words count in steps of 1/2^shift unit. Where accrued(t) is no whole number of steps it is rounded down to compare
 * and up to start from, so that for every interval, whatever its ends,
 *
 *	granted in [t1, t2] <= burst + rate x (t2 - t1) / per		exactly.
 *
 * A reading of the clock that is older than another's is only stricter. Words are taken modulo 2^64: a bucket left alone for more than
 * 8 years at the highest rate (68 at 2^32/s, more below) might look in use.
 *
 * Thread safety: pure functions.
 */
#include <stdbool.h>
#include <stdint.h>

#define RATE_MAX_PER_SECOND (INT64_C(1) << 35)
#define RATE_MAX_BURST (INT64_C(1) << 60)

/* Made from limits by rate_make. */
struct rate {
	uint64_t steps; /* rate x 2^shift, per per_ns */
	uint64_t per_ns;
	int64_t burst;
	unsigned shift;
};

/* rate, per_ns, burst as quota_limits_check accepts them. */
struct rate rate_make(int64_t rate, int64_t per_ns, int64_t burst);

/* The level of a bucket of which `used` (0 .. burst; beyond: a debt) is used at this moment. */
uint64_t rate_level(const struct rate *rate, int64_t used, int64_t mono_ns);

/* How much is used: level - accrued in whole units, rounded up; 0 if idle. burst - used is left. */
int64_t rate_used(const struct rate *rate, uint64_t level, int64_t mono_ns);

/*
 * Would n >= 0 be granted now? *ret_level is then the new level, *ret_idle whether the bucket was idle. Not granted: false, and
 * both are set as if it had been, but that what is used stops at what a word can tell (2^61 steps): *ret_lost is what is not in it then.
 */
bool rate_take(const struct rate *rate, uint64_t level, int64_t n, int64_t mono_ns,
	       uint64_t *ret_level, bool *ret_idle, int64_t *ret_lost);

/*
 * Had the bucket that stood at `level` after a charge run dry by `mono_ns`? Then what was charged has drained, and giving it
 * back would be a present.
 */
bool rate_drained(const struct rate *rate, uint64_t level, int64_t mono_ns);

/* ns from mono_ns until n would be granted if nothing else were charged: 0 now, -1 never (n > burst). */
int64_t rate_wait_ns(const struct rate *rate, uint64_t level, int64_t n, int64_t mono_ns);
