/*
 * Trying: spending a unit of a lease must cost next to nothing. In the ordinary case ration_try is a compare-and-exchange in a leaf. All
 * else is out of line: each 16th unit, for a look at the clock; the one with which the stock runs low; and what is refused.
 *
 * A program that was stopped while its lease expired may spend up to 16 units late, until somebody has looked at the clock.
 */
#include "clients/c/client.h"
#include "clients/c/include/ration.h"
#include "clients/c/lease.h"

#include <time.h>

/* As clock_now(), a few milliseconds behind, at a fifth of the price; LEASE_MARGIN_MS makes up for that. */
static int64_t coarse_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_over(const struct ration_lease *lease)
{
	return coarse_now() >= atomic_load_explicit(&lease->expires_at, memory_order_acquire);
}

static void lapse_if_over(struct ration_lease *lease)
{
	if (stock_is_lapsed(&lease->stock) || !is_over(lease)) {
		return;
	}
	stock_lapse(&lease->stock);
	/* The lease may have been extended and revived just before: then what it says now is seen here (extend). */
	if (!is_over(lease)) {
		stock_revive(&lease->stock);
	}
}

static void call_if_low(struct ration_lease *lease)
{
	int64_t low = atomic_load_explicit(&lease->stock.low, memory_order_relaxed);

	/* One signal until the background has answered it. */
	if (stock_units(&lease->stock) < low &&
	    atomic_exchange_explicit(&lease->stock.low, INT64_MIN, memory_order_relaxed) !=
		    INT64_MIN) {
		atomic_store_explicit(&lease->called, true, memory_order_relaxed);
		lease_call(lease);
	}
}

static bool grant_open(struct ration_lease *lease, int64_t n)
{
	if (!atomic_load_explicit(&lease->away, memory_order_relaxed)) {
		return false;
	}
	(void)atomic_fetch_add_explicit(&lease->strays, n, memory_order_relaxed);
	(void)atomic_fetch_add_explicit(&lease->opened, n, memory_order_relaxed);
	return true;
}

static __attribute__((noinline)) bool try_slow(struct ration_lease *lease, int64_t n,
					       enum ration_fallback fallback)
{
	bool taken;

	if (n < 1 || atomic_load_explicit(&lease->dead, memory_order_relaxed)) {
		return false;
	}
	lapse_if_over(lease);
	taken = stock_take(&lease->stock, n, fallback == RATION_LAST_LEASE);
	call_if_low(lease);
	return taken || (fallback == RATION_OPEN && grant_open(lease, n));
}

bool ration_try(struct ration_lease *lease, int64_t n, enum ration_fallback fallback)
{
	if (__builtin_expect(stock_take_plainly(&lease->stock, n), 1)) {
		return true;
	}
	return try_slow(lease, n, fallback);
}

/* Units that no lease knows are given back first; returns what is left of n. */
static int64_t give_strays(struct ration_lease *lease, int64_t n)
{
	int64_t strays = atomic_load_explicit(&lease->strays, memory_order_relaxed), some;

	do {
		some = strays < n ? strays : n;
		if (some <= 0) {
			return n;
		}
	} while (!atomic_compare_exchange_weak_explicit(&lease->strays, &strays, strays - some,
							memory_order_relaxed, memory_order_relaxed));
	return n - some;
}

void ration_give(struct ration_lease *lease, int64_t n)
{
	if (n < 1 || atomic_load_explicit(&lease->dead, memory_order_relaxed)) {
		return;
	}
	n = give_strays(lease, n);
	if (n > 0 && stock_give(&lease->stock, n) && stock_units(&lease->stock) > lease->want &&
	    !atomic_exchange_explicit(&lease->over, true, memory_order_relaxed)) {
		lease_call(lease);
	}
}
