#pragma once
/*
 * model: what lib/quota promises, the plain way: one thing after the other, in numbers wide enough for anything, without a word
 * about words. Tests run it beside the real thing and compare.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/quota/node.h"

struct model_node {
	struct model_node *parent;
	struct window window;
	struct quota_limits limits;
	__int128 usage; /* without a window, or in window `number` */
	int64_t number;
	__int128 level; /* rate: spent up to here, in 1/per of a unit */
	int64_t moved;	/* the latest monotonic time that moved on the window */
	int64_t peak, refusals, forced, lost;
};

struct model_item {
	struct model_node *node;
	int64_t n;
};

struct model_outcome {
	struct model_node *refused;
	size_t item;
	int64_t usage, max;
	bool over_high, shadow;
};

void model_init(struct model_node *node, const struct window *window, struct model_node *parent,
		const struct quota_limits *limits, int64_t usage, const struct quota_time *time);
void model_set_limits(struct model_node *node, const struct quota_limits *limits,
		      const struct quota_time *time);

bool model_charge_all(const struct model_item *items, size_t count, const struct quota_time *time,
		      struct model_outcome *ret_outcome);
void model_force(struct model_node *node, int64_t n, const struct quota_time *time);
bool model_uncharge(struct model_node *node, int64_t n);

int64_t model_usage(const struct model_node *node, const struct quota_time *time);
int64_t model_retry_after_ms(const struct model_node *node, int64_t n,
			     const struct quota_time *time);

/* Sum of what the children claim; nodes[count] are all nodes. */
int64_t model_children(const struct model_node *node, const struct model_node *nodes, size_t count,
		       bool low);
int64_t model_effective(const struct model_node *node, const struct model_node *nodes, size_t count,
			bool low, bool recursive);
