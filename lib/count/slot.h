#pragma once
/*
 * slot: one writer's part of one counter, and the compare-and-exchange fast path (after the Linux kernel's
 * percpu_counter_add_batch of 2024: the decision and the update are one atomic step, and no lock is taken).
 *
 * `count` is all the writer ever added, `published` the part of it that the totals have; both modulo 2^64. The difference is what
 * the slot holds back. A slot is never zeroed, so the sum of `count` over all slots of a counter is its exact value at any
 * time, read without a lock, and never steps back while only non-negative amounts are added.
 *
 *	add	fast:	|n| < batch and |held + n| < batch: count += n, nothing else
 *		slow:	the caller does slot_put and then folds
 *	fold	claim:	published goes from its old value to count, by compare and exchange; whoever wins owns the difference
 *		add:	the winner adds the difference to the totals
 * Between claim and add the growth is in neither place: lib/count/fold.h lets an exact reader wait for that.
 *
 * What a slot can hold back. While only non-negative amounts are added: at most batch - 1. With both signs: at most
 * 3 x (batch - 1) in magnitude, and only until its writer's next add. The excess needs a claim that falls between the load and the store
 * of one add, and publishes a count from before another: such a claim moves `published` by less than 2 x (batch - 1), since
 * an add that finds more than that held back is never fast. SLOT_BOUND_* say it to whoever states an error bound.
 *
 * Three ways to add, the same in effect; slot_add is the one chosen by RATION_SLOT when building:
 *	slot_add_owner	load and store. The slot has a single writing thread (it may change hands, with a happens-before between).
 *	slot_add_local	cmpxchg without lock prefix, x86-64: writers that can only interrupt each other (signal handlers, or
 *			threads bound to one CPU). Never two CPUs at once. Elsewhere, and under sanitizers: slot_add_c11.
 *	slot_add_c11	compare and exchange: any number of writers.
 * One slot is written in one way alone.
 *
 *			| add owner/local | add c11 | put | claim | count, held
 * add owner/local	|       X         |    X    |  X  |   -   |      -
 * add c11		|       X         |    -    |  X  |   -   |      -
 * put			|       X         |    X    |  X  |   -   |      -
 * claim		|       -         |    -    |  -  |   -   |      -
 * count, held		|       -         |    -    |  -  |   -   |      -	(- = nothing needed, X = one thread at a time)
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/hook.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SLOT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || \
	__has_feature(memory_sanitizer)
#define SLOT_SANITIZED 1
#endif
#endif

/* Largest batch: leaves held + n far from the ends of int64. The smallest is 1 (everything is slow). */
#define SLOT_BATCH_MAX (INT64_C(1) << 61)

/* What one slot may hold back, in magnitude: where no negative amounts are added, and where they are. */
#define SLOT_BOUND_GROWING(batch) ((batch)-1)
#define SLOT_BOUND_SIGNED(batch) (3 * ((batch)-1))

struct slot {
	_Atomic(uint64_t) count;     /* written by the slot's writer */
	_Atomic(uint64_t) published; /* moved by whoever folds */
};
_Static_assert(sizeof(struct slot) == 16,
	       "four slots to a cache line; lib/count/percpu.h computes with it");

/* ---- reads: any thread ---- */

/* Everything ever added. Pairs with the release of the adds: what the writer did before an add is seen by who sees the add. */
static inline uint64_t slot_count(const struct slot *slot)
{
	return atomic_load_explicit(&slot->count, memory_order_acquire);
}

/* What is not in the totals (nor claimed). `published` first, so that a slot that only grows never seems to hold back less than 0. */
static inline int64_t slot_held(const struct slot *slot)
{
	uint64_t published = atomic_load_explicit(&slot->published, memory_order_acquire);

	RATION_HOOK();
	return (int64_t)(slot_count(slot) - published);
}

/* ---- adds ---- */

/*
 * |n| < batch and |held + n| < batch, for any n and held: each as one unsigned comparison, so that no sum overflows and no
 * absolute value is taken. n is tested by itself because a claim may come in between: held is then 0, and n alone is held back.
 */
static inline bool slot_fits(uint64_t held, int64_t n, int64_t batch)
{
	uint64_t edge = (uint64_t)batch - 1;
	uint64_t span = edge + (uint64_t)batch;

	return (uint64_t)n + edge < span && held + (uint64_t)n + edge < span;
}

/*
 * Each add: true if n was added and is held back; false if that would reach the batch, and then nothing has changed.
 * batch: 1..SLOT_BATCH_MAX. `published` is loaded relaxed: an old value only makes a slow path early, or is the case of a claim in
 * between, which the bounds above include.
 */
static inline bool slot_add_owner(struct slot *slot, int64_t n, int64_t batch)
{
	uint64_t count = atomic_load_explicit(&slot->count, memory_order_relaxed);
	uint64_t published = atomic_load_explicit(&slot->published, memory_order_relaxed);

	if (__builtin_expect(!slot_fits(count - published, n, batch), 0)) {
		return false;
	}
	RATION_HOOK();
	/* Release: pairs with slot_count. */
	atomic_store_explicit(&slot->count, count + (uint64_t)n, memory_order_release);
	RATION_HOOK();
	return true;
}

static inline bool slot_add_c11(struct slot *slot, int64_t n, int64_t batch)
{
	uint64_t count = atomic_load_explicit(&slot->count, memory_order_relaxed);

	do {
		uint64_t published = atomic_load_explicit(&slot->published, memory_order_relaxed);

		if (__builtin_expect(!slot_fits(count - published, n, batch), 0)) {
			return false;
		}
		RATION_HOOK();
		/* Release: pairs with slot_count. */
	} while (!atomic_compare_exchange_weak_explicit(&slot->count, &count, count + (uint64_t)n,
							memory_order_release, memory_order_relaxed));
	RATION_HOOK();
	return true;
}

#if defined(__x86_64__) && !defined(SLOT_SANITIZED)

/* One instruction, so it can't be interrupted half-way; without the lock prefix another CPU could come in between. */
static inline bool slot_swap_local(_Atomic(uint64_t) *word, uint64_t *expected, uint64_t desired)
{
	bool swapped;

	__asm__ __volatile__("cmpxchgq %[desired], %[word]"
			     : "=@ccz"(swapped), [word] "+m"(*(uint64_t *)word), "+a"(*expected)
			     : [desired] "r"(desired)
			     : "memory");
	return swapped;
}

static inline bool slot_add_local(struct slot *slot, int64_t n, int64_t batch)
{
	uint64_t count = atomic_load_explicit(&slot->count, memory_order_relaxed);

	do {
		uint64_t published = atomic_load_explicit(&slot->published, memory_order_relaxed);

		if (__builtin_expect(!slot_fits(count - published, n, batch), 0)) {
			return false;
		}
		RATION_HOOK();
		/* A plain x86-64 store is a release: pairs with slot_count. */
	} while (__builtin_expect(!slot_swap_local(&slot->count, &count, count + (uint64_t)n), 0));
	RATION_HOOK();
	return true;
}

#else

static inline bool slot_add_local(struct slot *slot, int64_t n, int64_t batch)
{
	return slot_add_c11(slot, n, batch);
}

#endif

/* The variant chosen when building; `owner` unless told otherwise. */
static inline bool slot_add(struct slot *slot, int64_t n, int64_t batch)
{
#if defined(RATION_SLOT_LOCAL)
	return slot_add_local(slot, n, batch);
#elif defined(RATION_SLOT_C11)
	return slot_add_c11(slot, n, batch);
#else
	return slot_add_owner(slot, n, batch);
#endif
}

/* The slot's only writer adds n whatever is held back then; it folds next. */
static inline void slot_put(struct slot *slot, int64_t n)
{
	uint64_t count = atomic_load_explicit(&slot->count, memory_order_relaxed);

	RATION_HOOK();
	/* Release: pairs with slot_count. */
	atomic_store_explicit(&slot->count, count + (uint64_t)n, memory_order_release);
	RATION_HOOK();
}

/* ---- fold ---- */

/*
 * Anyone: take what the slot holds back. True if there was growth and this caller won it: *ret_growth, which it now owes to the
 * totals (exact modulo 2^64). False: nothing was held back at some moment of the call, but another caller may still be
 * on its way to the totals with what it won.
 *
 * The acquire of `published` pairs with the release of the exchange that wrote it: count is then loaded no older than that
 * exchange saw it, so published never moves back while a slot only grows. That `published` may leave a value and come back to it
 * (both signs) does no harm: the growth is the difference to the value that was in fact replaced.
 */
static inline bool slot_claim(struct slot *slot, int64_t *ret_growth)
{
	uint64_t published = atomic_load_explicit(&slot->published, memory_order_acquire);
	uint64_t count;

	do {
		RATION_HOOK();
		count = slot_count(slot);
		if (count == published) {
			return false;
		}
		RATION_HOOK();
	} while (!atomic_compare_exchange_weak_explicit(
		&slot->published, &published, count, memory_order_acq_rel, memory_order_acquire));
	RATION_HOOK();
	*ret_growth = (int64_t)(count - published);
	return true;
}
