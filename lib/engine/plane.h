#pragma once
/*
 * plane: the limits that counters carry, and how growth and charges meet them.
 *
 * A counter carries a list of limits, one for each plane it is limited in, by the plane's place in its metric. Each is a node of its
 * plane (lib/quota/node.h), whose parent is the limit in the same plane of the nearest ancestor that has one. Lists are found
 * by id, in a table of chunks made when the first id in it is limited; that a counter has one stands in its tally
 * (TREE_LIMITED), which whoever climbs reads anyway. So where there are no limits a fold costs what it did.
 *
 *	growth		plane_fold: totals, and if a limit was met, plane_force: every plane above gets it
 *	charges		plane_nearest: the first node of each plane above; lib/quota goes on from there
 *
 * Lists change in two ways. With their counter: before its name can be found, and after a grace period that began when it no longer could.
 * And when rules change, while the gate is closed (gate.h). Both under the registry's lock; what is taken out is freed after a grace period.
 * So a list, and what it holds, is good in the read section in which it was found (and past the open gate), or under the lock.
 *
 * Units that are charged and not spent are kept in a table of the same kind: for each counter those that leases have there; those whose
 * lease ended, which are forfeited, and stay charged; and both of them there and below: a node that begins later starts from the total and
 * these. When a counter is removed its units, like its own value, are its parent's from then on. What leases have is in the way of that,
 * what is forfeited is not.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/engine/rules.h"
#include "lib/engine/tree.h"
#include "lib/names/registry.h"
#include "lib/quota/charge.h"
#include "lib/quota/kept.h"
#include "lib/quota/node.h"

struct limit {
	struct quota_node node;
	_Atomic(struct limit *) next; /* of the same counter */
	const char *path;	      /* the name's */
	struct limited *limited;
	uint64_t digest; /* of the rule it comes from */
	uint32_t id;
	uint16_t len;
	uint8_t plane;
	bool exact; /* the rule names this path */
	bool gauge;
	uint8_t usage_state; /* enum usage_state; this and the next two are of usage.h */
	uint8_t usage_young; /* so many trims are to come */
	struct kept kept;
};
static_assert(sizeof(struct limit) == 256, "100,000 of these are kept");

struct leased {
	_Atomic(int64_t) own, forfeited; /* at this very counter */
	_Atomic(int64_t) all;		 /* of both, there and below */
};

struct planes {
	_Atomic(_Atomic(struct limit *) *) *lists; /* by id / TREE_CHUNK */
	_Atomic(struct leased *) *leased;
	uint32_t max_ids;

	/* The latest time told: the monotonic clock, and what the wall clock is ahead of it. */
	_Atomic(int64_t) mono_ns, wall_ahead_ns;

	/* Under the registry's lock. */
	struct limit *free;
	struct slab *slabs;
	_Atomic(uint32_t) n;
};

/* -ENOMEM */
int planes_init(struct planes *planes, uint32_t max_ids);
/* Takes planes that are all zero. */
void planes_deinit(struct planes *planes);

uint32_t planes_count(const struct planes *planes);

struct quota_time planes_time(const struct planes *planes);
void planes_set_time(struct planes *planes, const struct quota_time *time);

/* ---- by id ---- */

/* NULL: none. */
static inline struct limit *plane_first(const struct planes *planes, uint32_t id)
{
	/* Acquire, both: pairs with the release in plane_insert. */
	_Atomic(struct limit *) *chunk =
		atomic_load_explicit(&planes->lists[id >> TREE_CHUNK_BITS], memory_order_acquire);

	return chunk ? atomic_load_explicit(&chunk[id & (TREE_CHUNK - 1)], memory_order_acquire)
		     : NULL;
}

/* The list of a counter will be read. */
static inline void plane_ask_for(const struct planes *planes, uint32_t id)
{
	/* Acquire: as in plane_first. */
	_Atomic(struct limit *) *chunk =
		atomic_load_explicit(&planes->lists[id >> TREE_CHUNK_BITS], memory_order_acquire);

	if (chunk) {
		__builtin_prefetch(&chunk[id & (TREE_CHUNK - 1)]);
	}
}

static inline struct limit *plane_next(const struct limit *limit)
{
	return atomic_load_explicit(&limit->next, memory_order_acquire);
}

static inline struct limit *plane_of(struct quota_node *node)
{
	return (struct limit *)(void *)node;
}
static_assert(offsetof(struct limit, node) == 0, "a node is found in its limit");

/* NULL: the counter has no limit in this plane. */
struct limit *plane_find(const struct planes *planes, uint32_t id, unsigned plane);

/* n (of either sign, and any size) is usage already, here and above. */
void plane_charge(struct limit *limit, int64_t n, const struct quota_time *time);

/* The same for planes without a window alone, at this counter or above. */
void plane_force_held(const struct planes *planes, const struct tree *tree, uint32_t id, int64_t n);

/* Growth that the totals got: every plane above gets it too. */
void plane_force(const struct planes *planes, const struct tree *tree, uint32_t id, int64_t growth);

/* Fold, step 2. True if that took a total beyond TREE_EDGE. */
static inline bool plane_fold(const struct planes *planes, const struct tree *tree, uint32_t id,
			      int64_t growth)
{
	unsigned met = tree_fold(tree, id, growth);

	if (__builtin_expect(met & TREE_MET_LIMITS, 0)) {
		plane_force(planes, tree, id, growth);
	}
	return met & TREE_MET_EDGE;
}

/* The nearest limit of each plane, at this counter or above: how many. */
size_t plane_nearest(const struct planes *planes, const struct tree *tree, uint32_t id,
		     struct limit *ret_limits[ENGINE_MAX_PLANES]);

/* ---- leases ---- */

/* Makes sure there is a place for the counter and its ancestors. Any thread. -ENOMEM. */
int plane_lease_reserve(struct planes *planes, const struct tree *tree, uint32_t id);
/* n more are leased at the counter. It was reserved. */
void plane_lease(const struct planes *planes, const struct tree *tree, uint32_t id, int64_t n);
/* Up to n fewer, as many as are leased at this very counter: how many. */
int64_t plane_lease_take(const struct planes *planes, const struct tree *tree, uint32_t id,
			 int64_t n);
/* n more are forfeited at the counter: charged, and no lease has them. It was reserved. */
void plane_lease_forfeit(const struct planes *planes, const struct tree *tree, uint32_t id,
			 int64_t n);
/* A lease has up to n of those after all, as many as are forfeited at this very counter: how many. */
int64_t plane_lease_claim(const struct planes *planes, uint32_t id, int64_t n);
/* What leases have at this very counter. */
int64_t plane_leased(const struct planes *planes, uint32_t id);
/* Leased and forfeited, at the counter and below: what limits have beside its total. */
int64_t plane_ahead(const struct planes *planes, uint32_t id);
/* The counter, a leaf, is gone: what was leased and forfeited there is its parent's. */
void plane_lease_move(const struct planes *planes, const struct tree *tree, uint32_t id);

/* ---- changes, under the registry's lock ---- */

/* A limit for the counter of this name by this rule, in no list yet; its node is not made. NULL: no memory. */
struct limit *limit_new(struct planes *planes, struct limited *limited, const struct name *name,
			const struct rule *rule, bool gauge);
void limit_free(struct planes *planes, struct limit *limit);

/* Makes sure that the id can have a list. -ENOMEM. */
int plane_reserve(struct planes *planes, uint32_t id);

/* Into or out of the counter's list, and the mark in its tally. An inserted one's node is ready to be charged. */
void plane_insert(struct planes *planes, struct tree *tree, struct limit *limit);
void plane_remove(struct planes *planes, struct tree *tree, struct limit *limit);

/* ---- with their counters, under the registry's lock ---- */

/* Names about to be made, ancestors first: what they will carry. */
struct plane_births {
	struct limit *lists[PATH_MAX_SEGMENTS];
};

/* `gauge`: what they will be. -ENOMEM. */
int planes_conceive(struct planes *planes, struct rules *rules, struct name *const *names, size_t n,
		    bool gauge, struct plane_births *ret_births);
void planes_abort(struct planes *planes, struct plane_births *births);
/* Their ids' tallies are made; nobody can find the names yet. */
void planes_bear(struct planes *planes, struct tree *tree, struct plane_births *births);
/* The counter is gone, and a grace period has passed. */
void planes_bury(struct planes *planes, struct tree *tree, struct rules *rules,
		 const struct name *name);
