#include "lib/quota/rate.h"

/*
 * A level this far ahead of the clock is a level from long ago: in use it is at most RATE_MAX_DEBT ahead of the latest
 * reading, and an older reading may be as much older again.
 */
#define RATE_HORIZON (INT64_C(1) << 62)

#define RATE_MAX_SCALE 256u
#define RATE_FINE_COST (UINT64_C(1) << 20) /* rounding a cost of this size is less than 1 in 10^6 */

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
	while (b != 0) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static bool drains(uint64_t cost, int64_t burst)
{
	return (unsigned __int128)cost * (uint64_t)burst <= (uint64_t)RATE_MAX_DRAIN;
}

bool rate_make(int64_t rate, int64_t per_ns, int64_t burst, struct rate *ret_rate)
{
	uint64_t divisor = greatest_divisor((uint64_t)rate, (uint64_t)per_ns);
	uint64_t n = (uint64_t)rate / divisor;
	uint64_t per = (uint64_t)per_ns / divisor;
	struct rate made = { .cost = per, .scale = n, .burst = burst };

	if (n > RATE_MAX_SCALE || !drains(per, burst)) {
		/* per < 2^52, so the product stays in 64 bits. */
		made.scale = 1;
		while (made.scale < RATE_MAX_SCALE && per * made.scale / n < RATE_FINE_COST) {
			made.scale *= 2;
		}
		made.cost = per * made.scale / n + (per * made.scale % n != 0);
	}
	if (!drains(made.cost, burst)) {
		return false;
	}
	*ret_rate = made;
	return true;
}

int64_t rate_max_burst(int64_t rate, int64_t per_ns)
{
	int64_t low = 0;
	int64_t high = RATE_MAX_DRAIN;

	while (low < high) {
		int64_t middle = low + (high - low + 1) / 2;
		struct rate made;

		if (rate_make(rate, per_ns, middle, &made)) {
			low = middle;
		} else {
			high = middle - 1;
		}
	}
	return low;
}

static uint64_t now_of(const struct rate *rate, int64_t mono_ns)
{
	return (uint64_t)mono_ns * rate->scale;
}

/* Steps until the bucket is empty. */
static uint64_t fill_of(const struct rate *rate, uint64_t level, int64_t mono_ns)
{
	int64_t ahead = (int64_t)(level - now_of(rate, mono_ns));

	return ahead <= 0 || ahead > RATE_HORIZON ? 0 : (uint64_t)ahead;
}

uint64_t rate_level(const struct rate *rate, int64_t used, int64_t mono_ns)
{
	unsigned __int128 fill = (unsigned __int128)rate->cost * (uint64_t)used;

	if (fill > (uint64_t)RATE_MAX_DEBT) {
		fill = (uint64_t)RATE_MAX_DEBT;
	}
	return now_of(rate, mono_ns) + (uint64_t)fill;
}

int64_t rate_used(const struct rate *rate, uint64_t level, int64_t mono_ns)
{
	uint64_t fill = fill_of(rate, level, mono_ns);

	return (int64_t)(fill / rate->cost + (fill % rate->cost != 0));
}

struct rate_taken rate_take(const struct rate *rate, uint64_t level, int64_t n, int64_t mono_ns)
{
	uint64_t now = now_of(rate, mono_ns);
	uint64_t fill = fill_of(rate, level, mono_ns);
	unsigned __int128 filled = fill + (unsigned __int128)rate->cost * (uint64_t)n;
	struct rate_taken taken = { .idle = fill == 0 };

	if (filled <= rate->cost * (uint64_t)rate->burst) {
		taken.granted = true;
	} else if (filled > (uint64_t)RATE_MAX_DEBT) {
		/* fill may be more than that already, by an older reading: it does not shrink. */
		uint64_t edge = fill > (uint64_t)RATE_MAX_DEBT ? fill : (uint64_t)RATE_MAX_DEBT;

		taken.lost = (int64_t)((filled - edge + rate->cost - 1) / rate->cost);
		filled = edge;
	}
	taken.level = now + (uint64_t)filled;
	return taken;
}

uint64_t rate_give(const struct rate *rate, uint64_t level, int64_t n, uint64_t charged,
		   int64_t idle_ns)
{
	if (fill_of(rate, charged, idle_ns) == 0) {
		return level;
	}
	return level - rate->cost * (uint64_t)n;
}

int64_t rate_wait_ns(const struct rate *rate, uint64_t level, int64_t n, int64_t mono_ns)
{
	uint64_t fill = fill_of(rate, level, mono_ns);
	uint64_t room;

	if (n > rate->burst) {
		return -1;
	}
	room = rate->cost * (uint64_t)(rate->burst - n);
	if (fill <= room) {
		return 0;
	}
	return (int64_t)((fill - room + rate->scale - 1) / rate->scale);
}
