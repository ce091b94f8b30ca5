#pragma once
/*
 * level: one step of a charge, on one node. For the files of this room; what lib/quota/node.h promises is kept here.
 *
 *	charge one path or many		level_take, leaf to root; all granted: level_commit on each; else level_undo, root to leaf
 *	forced				level_force
 *	given back			level_give
 *
 * A step that was taken is known by the word it made of usage: that is what a trail is made of. Peaks and protections follow committed words
 * only, so that a charge which is refused further up leaves no trace in them.
 *
 * Memory order. Steps on usage, and loads and stores of max, shadow, min and low, are sequentially consistent: each says "I changed mine,
 * then I looked at yours" against quota_set_limits (max) or another charge's level_protect (usage and contributions).
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/hook.h"
#include "lib/quota/node.h"

/* What a whole charge needs to know of its moment, worked out once for a path. */
struct level_moment {
	int64_t wall_ns;
	int64_t mono_ns; /* >= 0 */
	int64_t number;	 /* of the window that holds wall_ns */
};

void level_moment(const struct quota_node *node, const struct quota_time *time,
		  struct level_moment *ret_moment);

static inline struct quota_node *level_parent(const struct quota_node *node)
{
	return atomic_load_explicit(&node->parent, memory_order_acquire);
}

/* The max that refuses. */
static inline int64_t level_hard(const struct quota_node *node)
{
	if (atomic_load_explicit(&node->shadow, memory_order_seq_cst)) {
		return QUOTA_NONE;
	}
	return atomic_load_explicit(&node->max, memory_order_seq_cst);
}

/* Adds to one of a node's figures, which stay at INT64_MAX when they get there. */
void level_tally(_Atomic(int64_t) *figure, int64_t amount);

/*
 * True: n is taken, *ret_word is what usage became. False: refused and counted, nothing is changed, and the outcome says by whom and
 * why. Its `shadow` becomes true if the node is a shadow that would have refused.
 */
bool level_take(struct quota_node *node, int64_t n, const struct level_moment *moment,
		uint64_t *ret_word, struct quota_outcome *outcome);

/* Takes back a level_take of n that made usage `word`. */
void level_undo(struct quota_node *node, int64_t n, uint64_t word);

/* A level_take whose whole charge was granted. True: over high now. */
bool level_commit(struct quota_node *node, uint64_t word, const struct level_moment *moment);

void level_force(struct quota_node *node, int64_t n, const struct level_moment *moment);

/* No window. False: usage is less than n, nothing changed. */
bool level_give(struct quota_node *node, int64_t n);

/* Brings what the node claims of its parent's protection up to date: after usage has changed; after the settings have. */
void level_protect(struct quota_node *node);
void level_reclaim(struct quota_node *node);

/* ---- reading a usage word ---- */

/* Units used, of the window that a charge at this moment would count in. */
int64_t level_units(const struct quota_node *node, uint64_t word,
		    const struct level_moment *moment);
/* The number of that window. */
int64_t level_window(const struct quota_node *node, uint64_t word,
		     const struct level_moment *moment);
