#pragma once
/*
 * stock: units that were charged already, spent and given back by any thread without a lock.
 *
 * One word holds how many units there are, and whether they have lapsed: then it is negative, and nothing but stock_take_lapsed
 * takes any. So the ordinary way asks one question of one word.
 *
 *		 | stock_take	  stock_give	 stock_lapse/revive  stock_put	    stock_empty
 *	take	 | exclude each other by compare-and-exchange; what fits is taken once
 *	give	 |		  as take	 keeps the mark	     never above what is out
 *	put	 | `charged` grows first, so that no give is refused for units that are out
 *
 * Threads: take, give and lapse: any. put, remove, revive, empty: one at a time (the client's lock).
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define STOCK_LINE 64
#define STOCK_LAPSED INT64_MIN
#define STOCK_CHECK_UNITS \
	16 /* a power of two: whoever takes the units past a multiple of it looks at the clock */

struct stock {
	/* written by every take */
	_Alignas(STOCK_LINE) _Atomic(int64_t) word;
	/* seldom written: read by every take that succeeds */
	_Alignas(STOCK_LINE) _Atomic(int64_t)
		low; /* call for more below this; INT64_MIN: somebody has, or it is of no use now */
	_Atomic(int64_t)
		charged; /* units in the stock, and those spent that may still be given back */
};

/* Empty and lapsed. */
static inline void stock_init(struct stock *stock)
{
	atomic_init(&stock->word, STOCK_LAPSED);
	atomic_init(&stock->low, INT64_MIN);
	atomic_init(&stock->charged, 0);
}

static inline int64_t stock_units_of(int64_t word)
{
	return word & INT64_MAX;
}

static inline int64_t stock_units(const struct stock *stock)
{
	return stock_units_of(atomic_load_explicit(&stock->word, memory_order_relaxed));
}

static inline bool stock_is_lapsed(const struct stock *stock)
{
	return atomic_load_explicit(&stock->word, memory_order_relaxed) < 0;
}

/*
 * Take n, if the stock has not lapsed, holds them, needs no look at the clock and has not run low with this: then all is done. Else
 * nothing was changed.
 */
static inline bool stock_take_plainly(struct stock *stock, int64_t n)
{
	int64_t low = atomic_load_explicit(&stock->low, memory_order_relaxed);
	int64_t word = atomic_load_explicit(&stock->word, memory_order_relaxed), left;

	do {
		left = (int64_t)((uint64_t)word - (uint64_t)n);
		/* A lapsed word is below any n. */
		if (n < 1 || word < n || left < low || ((word ^ left) & -STOCK_CHECK_UNITS) != 0) {
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&stock->word, &word, left, memory_order_relaxed, memory_order_relaxed));
	return true;
}

/* Take n >= 1 if it holds them, and has not lapsed or `lapsed` may be taken too. */
static inline bool stock_take(struct stock *stock, int64_t n, bool lapsed)
{
	int64_t word = atomic_load_explicit(&stock->word, memory_order_relaxed);

	do {
		if ((word < 0 && !lapsed) || stock_units_of(word) < n) {
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&stock->word, &word, word - n, memory_order_relaxed, memory_order_relaxed));
	return true;
}

/* Put n >= 1 spent units back; false: so many are not out. */
static inline bool stock_give(struct stock *stock, int64_t n)
{
	/* Pairs with stock_put: whoever has taken a unit sees that it is charged. */
	int64_t word = atomic_load_explicit(&stock->word, memory_order_acquire);

	do {
		int64_t charged = atomic_load_explicit(&stock->charged, memory_order_relaxed);

		if (n > charged - stock_units_of(word)) {
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&stock->word, &word, word + n, memory_order_acquire, memory_order_acquire));
	return true;
}

/* n >= 0 more units have come. Pairs with stock_give. */
static inline void stock_put(struct stock *stock, int64_t n)
{
	(void)atomic_fetch_add_explicit(&stock->charged, n, memory_order_relaxed);
	(void)atomic_fetch_add_explicit(&stock->word, n, memory_order_release);
}

/* Take up to n units out for good; returns how many. */
static inline int64_t stock_remove(struct stock *stock, int64_t n)
{
	int64_t word = atomic_load_explicit(&stock->word, memory_order_relaxed), some;

	do {
		some = stock_units_of(word) < n ? stock_units_of(word) : n;
	} while (!atomic_compare_exchange_weak_explicit(
		&stock->word, &word, word - some, memory_order_relaxed, memory_order_relaxed));
	(void)atomic_fetch_sub_explicit(&stock->charged, some, memory_order_relaxed);
	return some;
}

/*
 * These two order what stands beside the stock (until when it may be spent): whoever lapses it after it was revived sees what was written
 * before that.
 */
static inline void stock_lapse(struct stock *stock)
{
	(void)atomic_fetch_or_explicit(&stock->word, STOCK_LAPSED, memory_order_acq_rel);
}

static inline void stock_revive(struct stock *stock)
{
	(void)atomic_fetch_and_explicit(&stock->word, INT64_MAX, memory_order_acq_rel);
}

/* All units are void, in the stock or out. *ret_left: those that were in it; returns how many were out. */
static inline int64_t stock_empty(struct stock *stock, int64_t *ret_left)
{
	int64_t charged = atomic_exchange_explicit(&stock->charged, 0, memory_order_relaxed);
	int64_t left = stock_units_of(
		atomic_exchange_explicit(&stock->word, STOCK_LAPSED, memory_order_relaxed));

	*ret_left = left;
	return charged - left;
}
