#pragma once
/*
 * level: the steps of a charge, node by node up a path. For the files of this room; what lib/quota/node.h promises is kept here.
 *
 *	charge one path or many		level_take on each; all granted: level_commit on each; else level_undo, the last first
 *	forced				level_force
 *	given back			level_give, node by node
 *
 * A step that was taken is known by the word it made of usage: that is what a trail is made of. Protections follow committed words only,
 * so that a charge which is refused further up leaves no trace in them.
 *
 * Memory order. Steps on usage, and loads and stores of max, shadow, min and low, are sequentially consistent: each says "I changed mine,
 * then I looked at yours" against quota_set_limits (max) or another charge (usage and claims).
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/hook.h"
#include "lib/quota/node.h"
#include "lib/quota/rate.h"

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
 * From node to root. True: n is taken everywhere; trail has a word for each, *ret_taken is how many. False: the node after *ret_taken of
 * them refused, which is counted there, and the outcome says by whom and why; those below wait for level_undo. The outcome's `shadow`
 * becomes true if a shadow would have refused.
 */
bool level_take(struct quota_node *node, int64_t n, const struct level_moment *moment,
		uint64_t *trail, size_t *ret_taken, struct quota_outcome *outcome);

/* Takes back what level_take took of n, from the node up. */
void level_undo(struct quota_node *node, int64_t n, const uint64_t *trail, size_t taken);

/* What level_take took everywhere is granted. Returns how many nodes that are; *ret_over_high is set if one is over high, else left alone. */
size_t level_commit(struct quota_node *node, const uint64_t *trail, int64_t mono_ns,
		    bool *ret_over_high);

void level_force(struct quota_node *node, int64_t n, const struct level_moment *moment);

/* One node, without a window. False: usage is less than n, nothing changed. */
bool level_give(struct quota_node *node, int64_t n);

/* Brings what the node claims of its parent's protection up to date, also if its settings have changed. */
void level_reclaim(struct quota_node *node);

/* ---- what a node's usage word is ---- */

static inline struct rate level_rate(const struct quota_node *node)
{
	return (struct rate){ .cost = node->cost, .scale = node->scale, .burst = node->burst };
}

static inline bool level_is_windowed(const struct quota_node *node)
{
	return node->kind == WINDOW_PER || node->kind == WINDOW_CALENDAR;
}

/* All ones: the count has got beyond what it can tell, and stays there until its window is over. Every max is below. */
static inline uint64_t level_count_max(const struct quota_node *node)
{
	return (UINT64_C(1) << node->count_bits) - 1;
}

/* Units used, of the window that a charge at this moment would count in. */
int64_t level_units(const struct quota_node *node, uint64_t word,
		    const struct level_moment *moment);
/* The number of that window. */
int64_t level_window(const struct quota_node *node, uint64_t word,
		     const struct level_moment *moment);
