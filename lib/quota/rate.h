#pragma once
/*
 * rate: N per duration with a burst, decided exactly (the generic cell rate algorithm, ITU-T I.371).
 *
 * A bucket is one word, its level: the moment (monotonic clock, in steps of 1/scale ns) at which all that was granted will have
 * drained, at `cost` steps a unit.
 *
 *	n is granted if max(level, now) + n x cost <= now + burst x cost, and level becomes the left side
 *
 * Everything is a whole number: the clock is not rounded, products are taken in 128 bits. So at one instant exactly `burst` can
 * be had, in whatever portions, and for every interval, whatever its ends,
 *
 *	granted in [t1, t2] <= burst + rate x (t2 - t1) / per
 *
 * exactly. cost is per x scale / rate, exact where the rate in lowest terms allows (up to 256 in 1 ns x any whole number: 100/s,
 * 7/min, 1000/s, 10^10/s all do); else rounded up, which makes the rate smaller by less than 1 in `cost`: 1 in 10^6 up to 10^5/s,
 * 1 in 250 at 10^9/s.
 *
 * A reading of the clock that is older than another's is only stricter. Words are taken modulo 2^64: a bucket that nobody has
 * charged for 20 months (438 years with the scale 1) may seem in use for a while.
 *
 * Thread safety: pure functions.
 */
#include <stdbool.h>
#include <stdint.h>

#define RATE_MAX_PER_SECOND (INT64_C(1) << 35)

/* Steps that `burst` may take to drain (4.5 to 1100 years), and to which forced charges may fill the bucket. */
#define RATE_MAX_DRAIN (INT64_C(1) << 60)
#define RATE_MAX_DEBT (INT64_C(1) << 61)

struct rate {
	uint64_t cost;	/* steps a unit */
	uint64_t scale; /* steps a nanosecond */
	int64_t burst;
};

/* All three >= 1; the rate at most RATE_MAX_PER_SECOND. False: the burst takes more than RATE_MAX_DRAIN to drain. */
bool rate_make(int64_t rate, int64_t per_ns, int64_t burst, struct rate *ret_rate);

/* The largest burst that rate_make accepts with this rate. */
int64_t rate_max_burst(int64_t rate, int64_t per_ns);

/* The level of a bucket of which `used` units (>= 0; beyond burst: a debt; at most RATE_MAX_DEBT in steps) are used now. */
uint64_t rate_level(const struct rate *rate, int64_t used, int64_t mono_ns);

/* How many units are used, rounded up: burst less that (at least 0) would be granted now. */
int64_t rate_used(const struct rate *rate, uint64_t level, int64_t mono_ns);

struct rate_taken {
	uint64_t level; /* after n, granted or not */
	bool granted;
	bool idle;    /* the bucket was empty */
	int64_t lost; /* not granted only: units that are not in level, as it stops at RATE_MAX_DEBT */
};

/* What n more (>= 0) would make of the bucket now. */
struct rate_taken rate_take(const struct rate *rate, uint64_t level, int64_t n, int64_t mono_ns);

/*
 * The level with n units given back, which had made it `charged`; `idle_ns` is the latest moment at which anybody found the bucket
 * empty. If that is past `charged`, what was charged had drained by then and giving it back would be a present: the level stays.
 */
uint64_t rate_give(const struct rate *rate, uint64_t level, int64_t n, uint64_t charged,
		   int64_t idle_ns);

/* ns from mono_ns until n would be granted if nothing else were: 0 now, -1 never (n > burst). */
int64_t rate_wait_ns(const struct rate *rate, uint64_t level, int64_t n, int64_t mono_ns);
