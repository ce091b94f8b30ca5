#pragma once
/*
 * pending: how much is held back altogether, well enough to tell a reader whether a flush is worth it (after the Linux
 * kernel's memcg stats_flush_threshold of 2022).
 *
 * A worker counts the magnitude of what it holds back by itself and passes it on in steps of PENDING_STEP, but only while the shared
 * word is at or below the threshold: above it a flush is due already, and one more step would tell nobody anything. So under
 * load the word's cache line stays shared instead of travelling from worker to worker.
 *
 *	worker				flusher
 *	adds to a slot			pending_reset
 *	bank_mark (a light fence)	fence_heavy
 *	pending_note			visits the slots
 *
 * The same Dekker pattern as the marks': a note that was skipped because the word was over the threshold belongs to an add that
 * this flush (or one before) finds in the slot. So while pending_due is false, no more than pending_bound is held back
 * that no flush under way will take.
 *
 *			| note (same share) | note (others) | due, bound | reset, retune
 * note			|        X          |       -       |     -      |       -
 * due, bound		|        -          |       -       |     -      |       -
 * reset, retune	|        -          |       -       |     -      |       -	(X = the share's own thread)
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/hook.h"
#include "lib/count/fence.h"

#define PENDING_STEP INT64_C(64)

struct pending {
	_Alignas(64) _Atomic(int64_t) word; /* passed on since the last reset */
	_Atomic(int64_t) threshold;	    /* seldom changed; always read with the word */
};

/* One worker's, written by its thread alone. */
struct pending_share {
	int64_t local;		   /* 0..PENDING_STEP - 1 between calls */
	_Atomic(uint64_t) signals; /* steps passed on; readable by all */
	_Atomic(uint64_t) skipped; /* steps not passed on, as a flush was due already */
};

/* threshold: 0..2^61. */
static inline void pending_init(struct pending *pending, int64_t threshold)
{
	atomic_init(&pending->word, 0);
	atomic_init(&pending->threshold, threshold);
}

/* Another threshold from now on (workers came or went). */
static inline void pending_retune(struct pending *pending, int64_t threshold)
{
	atomic_store_explicit(&pending->threshold, threshold, memory_order_relaxed);
}

static inline int64_t pending_threshold(const struct pending *pending)
{
	return atomic_load_explicit(&pending->threshold, memory_order_relaxed);
}

/* The share has a step's worth: pass it on, or skip. */
void pending_signal(struct pending *pending, struct pending_share *share);

/* `magnitude` (0..2^61) more is held back. After the add and its mark. */
static inline void pending_note(struct pending *pending, struct pending_share *share,
				int64_t magnitude)
{
	share->local += magnitude;
	if (__builtin_expect(share->local >= PENDING_STEP, 0)) {
		pending_signal(pending, share);
	}
}

/* A flush is worth it. */
bool pending_due(const struct pending *pending);

/* What may be held back at most, in magnitude, when pending_due says no. */
int64_t pending_bound(const struct pending *pending, uint32_t workers);

/* The flusher, before its fence_heavy. */
void pending_reset(struct pending *pending);
