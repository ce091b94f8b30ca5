#pragma once
/*
 * tree: what is kept for each counter by id: its tally, and its life.
 *
 * The tallies are the hierarchy without the names: a fold climbs from a counter to its metric's root by parent ids alone. The
 * lives are kept apart because every add reads them and almost nothing writes them, while every fold writes tallies.
 *
 * A counter's own value is there twice: base + folded, as far as folded, which is what readers are told, since it costs no add anything;
 * and base + what the workers' slots count, which is ahead of that by what they hold back (worker.h). Bases are in chunks of their own, which
 * are made when the first counter in one has other growth than by adds, and else cost nothing.
 *
 * Both are chunked; a chunk is made when the first id in it is, never moves, and is freed with the tree.
 *
 *			| reserve, start, kill, mark, close, limit | all others
 * reserve, start, kill,|                     X                    |      -
 *   mark, close, limit	|                                          |		(X = under the registry's lock)
 *
 * A life word, low bits first:
 *	STRICT	the metric's totals are near the end of int64: adds take the slow, exact way (strict.h)
 *	GAUGE	of a metric that may go down
 *	LIVE	there is such a counter
 *	CLOSED	somebody looks whether it can go: adds and charges wait until that is known (remove.h)
 *	the rest: the generation, so that a reference to a removed counter never fits its successor
 * A reference carries the word as it is without STRICT and CLOSED. So in the common case one comparison says that the counter is there, that
 * it is the same one, and that nothing about it is special.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/hook.h"

#define TREE_CHUNK_BITS 12
#define TREE_CHUNK (1u << TREE_CHUNK_BITS)
#define TREE_NONE (UINT32_MAX >> 1)
#define TREE_LIMITED (UINT32_C(1) << 31)

#define LIFE_STRICT 1u
#define LIFE_GAUGE 2u
#define LIFE_LIVE 4u
#define LIFE_CLOSED 8u
#define LIFE_GENERATION 16u /* one generation */
#define LIFE_NONE \
	LIFE_STRICT /* of an id that never lived, or will never again: fits no reference */

/*
 * Magnitude from which on a total counts as near the end. A fold may carry a total beyond it, by less than STRICT_AMOUNT; the room
 * left above is for one such fold by every worker and the flusher at once (strict.h).
 */
#define TREE_EDGE (INT64_C(1) << 61)

struct tally {
	_Atomic(uint64_t) folded; /* of what the slots of this id ever counted, modulo 2^64 */
	_Atomic(int64_t) total;	  /* what was folded here and below */
	_Atomic(uint32_t)
		up; /* the parent's id, TREE_NONE: a metric; and TREE_LIMITED: it carries limits (plane.h) */
	_Atomic(uint32_t) root; /* the metric's id */
};
static_assert(sizeof(struct tally) == 24, "a million of these are kept");

struct life {
	_Atomic(uint32_t) word;
};

/* What a counter has that never was in a slot, less what former lives of its id left in them. */
struct base {
	_Atomic(uint64_t) word;
};

struct tree {
	_Atomic(struct tally *) *tallies; /* by id / TREE_CHUNK */
	_Atomic(struct life *) *lives;
	_Atomic(struct base *) *bases;
	uint32_t max_ids;
	_Atomic(uint32_t) n_ids; /* no id at or above it was ever used */
};

/* -ENOMEM */
int tree_init(struct tree *tree, uint32_t max_ids);
/* Takes a tree that is all zero. */
void tree_deinit(struct tree *tree);

/* Makes sure there is a place for this id. -ENOMEM. */
int tree_reserve(struct tree *tree, uint32_t id);

/* Makes sure that there is a base: before tree_grow, or whoever else writes it. Any thread. -ENOMEM. */
int tree_base_reserve(struct tree *tree, uint32_t id);
/* The same for all ancestors too. */
int tree_base_reserve_up(struct tree *tree, uint32_t id);

/*
 * Begin a counter's life under `parent` (TREE_NONE: a metric), whose flags it inherits, and own and total 0: what the workers'
 * slots of this id count from former lives is folded, and taken off. `flags`: of a metric. Nobody knows the id yet.
 */
void tree_start(struct tree *tree, uint32_t id, uint32_t parent, uint32_t flags);

/* No reference to it is good from now on. Its life is LIFE_NONE if the generations of this id are used up by that: it must not be used again. */
void tree_kill(struct tree *tree, uint32_t id);

/* Set LIFE_STRICT on a living counter. */
void tree_mark_strict(struct tree *tree, uint32_t id);

/* Set or clear LIFE_CLOSED of a living counter. */
void tree_close(struct tree *tree, uint32_t id, bool closed);

/* The counter carries limits from now on, or no longer. */
void tree_limit(struct tree *tree, uint32_t id, bool limited);

/* An id that was reserved. */
static inline struct tally *tree_tally(const struct tree *tree, uint32_t id)
{
	/* Acquire: pairs with the release in tree_reserve. */
	struct tally *chunk =
		atomic_load_explicit(&tree->tallies[id >> TREE_CHUNK_BITS], memory_order_acquire);

	return &chunk[id & (TREE_CHUNK - 1)];
}

/* NULL: it is 0. */
static inline struct base *tree_base(const struct tree *tree, uint32_t id)
{
	/* Acquire: pairs with the exchange in tree_base_reserve. */
	struct base *chunk =
		atomic_load_explicit(&tree->bases[id >> TREE_CHUNK_BITS], memory_order_acquire);

	return chunk ? &chunk[id & (TREE_CHUNK - 1)] : NULL;
}

/* Acquire: pairs with the release in tree_climb_own. */
static inline uint64_t tree_base_value(const struct tree *tree, uint32_t id)
{
	const struct base *base = tree_base(tree, id);

	return base ? atomic_load_explicit(&base->word, memory_order_acquire) : 0;
}

/* Any id. LIFE_NONE if it is out of range or was never reserved. */
static inline uint32_t tree_life(const struct tree *tree, uint32_t id)
{
	struct life *chunk;

	if (__builtin_expect(id >= tree->max_ids, 0)) {
		return LIFE_NONE;
	}
	/* Acquire: pairs with the release in tree_reserve. */
	chunk = atomic_load_explicit(&tree->lives[id >> TREE_CHUNK_BITS], memory_order_acquire);
	if (__builtin_expect(chunk == NULL, 0)) {
		return LIFE_NONE;
	}
	/* Acquire: pairs with tree_kill and tree_mark_strict; who sees a flag sees the keeper's line odd, or past (remove.h). */
	return atomic_load_explicit(&chunk[id & (TREE_CHUNK - 1)].word, memory_order_acquire);
}

/* What a reference to the counter of this life carries. */
static inline uint32_t life_ref(uint32_t life)
{
	return life & ~(LIFE_STRICT | LIFE_CLOSED);
}

/* |value| >= TREE_EDGE */
static inline bool tree_far(int64_t value)
{
	return (uint64_t)value + (uint64_t)TREE_EDGE - 1 >= 2 * (uint64_t)TREE_EDGE - 1;
}

/*
 * The own value as far as folded. Who then looks at the total finds it there too: acquire pairs with the release in tree_climb_own.
 */
static inline int64_t tree_own(const struct tree *tree, uint32_t id)
{
	uint64_t base = tree_base_value(tree, id);

	return (int64_t)(base +
			 atomic_load_explicit(&tree_tally(tree, id)->folded, memory_order_acquire));
}

/* TREE_NONE: a metric. */
static inline uint32_t tree_parent(const struct tree *tree, uint32_t id)
{
	return atomic_load_explicit(&tree_tally(tree, id)->up, memory_order_relaxed) &
	       ~TREE_LIMITED;
}

enum tree_met {
	TREE_MET_EDGE = 1,   /* one of the totals was taken beyond TREE_EDGE */
	TREE_MET_LIMITS = 2, /* one of the counters carries limits */
};

/* Add growth to this counter's total. Returns the parent. */
static inline uint32_t tree_step(struct tally *tally, int64_t growth, unsigned *met)
{
	int64_t before = atomic_fetch_add_explicit(&tally->total, growth, memory_order_relaxed);
	uint32_t up = atomic_load_explicit(&tally->up, memory_order_relaxed);

	*met |= tree_far((int64_t)((uint64_t)before + (uint64_t)growth)) ? TREE_MET_EDGE : 0;
	*met |= up >> 31 << 1;
	RATION_HOOK();
	return up & ~TREE_LIMITED;
}
static_assert(TREE_LIMITED >> 31 << 1 == TREE_MET_LIMITS, "without a branch");

/*
 * Add growth to the totals of a counter and all its ancestors, and say what was met on the way. A total can't leave int64 by it, see
 * strict.h.
 *
 * Relaxed: what an exact reader needs to see is carried by the fold line's release (lib/count/fold.h). A reader that comes in
 * between sees a child's total with the growth and the parent's without; for how much see engine_view.error_bound.
 */
static inline unsigned tree_climb(const struct tree *tree, uint32_t id, int64_t growth)
{
	unsigned met = 0;

	while (id != TREE_NONE) {
		id = tree_step(tree_tally(tree, id), growth, &met);
	}
	return met;
}

/* The same of growth that the planes have already. True if a total was taken beyond TREE_EDGE. */
static inline bool tree_raise(const struct tree *tree, uint32_t id, int64_t growth)
{
	return tree_climb(tree, id, growth) & TREE_MET_EDGE;
}

/* The same, and the counter's own value grows by it, in this part of it: after its total, and before the climb takes the line away. */
static inline unsigned tree_climb_own(const struct tree *tree, struct tally *tally,
				      _Atomic(uint64_t) *part, int64_t growth)
{
	unsigned met = 0;
	uint32_t parent = tree_step(tally, growth, &met);

	/* Release: pairs with tree_own. */
	atomic_fetch_add_explicit(part, (uint64_t)growth, memory_order_release);
	RATION_HOOK();
	return met | tree_climb(tree, parent, growth);
}

/* Fold, step 2: what slots of this id count, and nobody has folded. */
static inline unsigned tree_fold(const struct tree *tree, uint32_t id, int64_t growth)
{
	struct tally *tally = tree_tally(tree, id);

	return tree_climb_own(tree, tally, &tally->folded, growth);
}

/* Growth that never was in a slot. Its base was reserved. */
static inline unsigned tree_grow(const struct tree *tree, uint32_t id, int64_t growth)
{
	struct tally *tally = tree_tally(tree, id);

	return tree_climb_own(tree, tally, &tree_base(tree, id)->word, growth);
}
