#pragma once
/*
 * fold: who is between claiming a slot's growth and adding it to the totals.
 *
 * Each folding thread has a line of its own, odd meanwhile:
 *
 *	folder				exact reader
 *	fold_begin(line)		visits the slots, claims what it finds
 *	slot_claim(slot, &growth)	fold_wait(line), for every line but its own
 *	adds growth to the totals	reads the totals
 *	fold_end(line)
 *
 * Why that is enough: a reader finds a slot empty because somebody's claim emptied it. That claim released, the reader's load of
 * `published` acquired, and the odd number was written before the claim: so the reader sees the line odd, or already past.
 *
 * A thread may make several claims between begin and end; the shorter the stretch, the less an exact reader waits.
 *
 *		| begin, end | wait
 * begin, end	|     X      |  -	(X = one thread at a time for one line)
 * wait		|     -      |  -
 */
#include <stdatomic.h>
#include <stdint.h>

#include "lib/base/hook.h"

struct fold_line {
	_Alignas(64) _Atomic(uint64_t) seq; /* odd: under way */
};
_Static_assert(sizeof(struct fold_line) == 64, "no two folders share a cache line");

/* Relaxed store: the release of the claim that follows carries it to fold_wait. */
static inline void fold_begin(struct fold_line *line)
{
	uint64_t seq = atomic_load_explicit(&line->seq, memory_order_relaxed);

	atomic_store_explicit(&line->seq, seq + 1, memory_order_relaxed);
	RATION_HOOK();
}

/* Release: pairs with the acquire in fold_wait, which then sees the totals with what was added. */
static inline void fold_end(struct fold_line *line)
{
	uint64_t seq = atomic_load_explicit(&line->seq, memory_order_relaxed);

	RATION_HOOK();
	atomic_store_explicit(&line->seq, seq + 1, memory_order_release);
	RATION_HOOK();
}

/* Waits for the fold that is under way, if one is; not for those that begin later. Spins briefly, then yields. */
void fold_wait(const struct fold_line *line);
