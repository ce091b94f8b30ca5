#pragma once
/*
 * node: one limit-carrying node of a plane: how much is used, and may n more be? (After the Linux kernel's page_counter.)
 *
 * A plane is a tree of nodes that share one window; `parent` is the nearest ancestor that carries limits in the same plane. A
 * charge goes from its node to the root. There are no locks: usage is one word per node, changed by compare and exchange (or
 * fetch-and-add), never stored to after quota_init.
 *
 *	no window	usage, a signed 64-bit number: held (gauge) or ever counted (counter)
 *	window		number of the window and the count in it, in one word; rolling over is one compare and exchange
 *	rate		the level of a bucket (lib/quota/rate.h)
 *
 * What is promised
 *  - quota_try_charge takes n at each level only if it fits there, leaf first: usage + n <= max, so exactly reaching max is granted.
 *    Refused at one level, it gives back what it took below, from there down to the leaf. So at no instant does usage exceed
 *    a max but by quota_charge, by shadow limits, or by a max that was set below usage.
 *  - A charge under way may for a moment stand in a node below the one that refuses it, and another may be refused because of it.
 *  - quota_set_limits against a racing charge: both use sequentially consistent steps. Either the charge, which reads max
 *    again after taking, sees the new one and gives back what does not fit; or its taking came before the new max, and who reads
 *    usage after quota_set_limits sees it. So once quota_set_limits has returned nothing is granted past the new max. A max below usage
 *    freezes the node: all is refused until usage has come down. (A charge that was under way may show up in usage for a
 *    moment, on its way out again.)
 *  - peak is the highest usage has been: peak <= max but for the three exceptions above, and peak >= whatever was granted and not returned
 *    at one time. What is refused further up does not raise it, unless something is given back just while it passes through.
 *  - min, low: each node's protect_used stands in its parent's sum (children_min, children_low). It is changed only when it differs, by
 *    an exchange of which the difference goes to the sum: so the sum is always the sum of what has been exchanged. Whoever
 *    exchanged looks again, and again, until usage and settings agree with what stands there: at rest nothing is stale.
 *
 * Windows and clocks. The window follows the reading with the latest monotonic time. A thread that read the clock before another
 * rolled the node over counts in the window it finds; so does one whose wall clock is within QUOTA_SLACK_NS of that window.
 * Any other difference is the clock's doing: the node starts an empty window there, also when the wall clock was set back.
 *
 * Saturation. Forced usage that would leave int64, a windowed count beyond its bits, or a bucket beyond RATE_MAX_DEBT stops there;
 * what could not be told is added up in `lost`. Only forced charges, shadow nodes and nodes without a max come there; without a window
 * the latter two refuse what would leave int64.
 *
 * Depth: a path has at most QUOTA_MAX_LEVELS nodes of one plane.
 *
 *			| charge, try, uncharge, read, retry | set_limits | init, reparent, detach
 * charge, try, ...	|                 -                  |     -      |          X
 * set_limits		|                 -                  |     X      |          X
 * init, reparent, ...	|                 X                  |     X      |          X
 *	(- = nothing needed, X = one thread at a time among the nodes concerned: the node, its parent before and after)
 * In rate planes set_limits is like reparent: what the word means depends on the rate.
 *
 * Amounts n are 1 .. QUOTA_MAX_LIMIT where not said otherwise; limits are as quota_limits_check accepts them.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/quota/limits.h"
#include "lib/quota/window.h"

#define QUOTA_MAX_LEVELS 16u

/* A reading this much older (by the wall clock) than the window it meets counts in that window. */
#define QUOTA_SLACK_NS INT64_C(1000000000)

enum quota_error {
	QUOTA_OK = 0,
	QUOTA_E_REFUSED,   /* it does not fit somewhere */
	QUOTA_E_UNDERFLOW, /* more is given back than is held */
};

struct quota_node {
	/* Written by every charge: alone on its line, so that only who charges here pays for it. */
	_Alignas(64) _Atomic(uint64_t) usage;
	uint8_t usage_alone[56];

	/*
	 * Written now and then: when usage crosses a protection or falls from a new peak, when something is refused. Apart from usage, so that
	 * looking whether there is something to write does not meet the charges' line; apart from the limits, which all read.
	 */
	union {
		struct {			   /* planes without a window */
			_Atomic(int64_t) min_used; /* what the parent's sums hold of this node */
			_Atomic(int64_t) low_used;
			_Atomic(int64_t) children_min; /* the sums over this node's children */
			_Atomic(int64_t) children_low;
		};
		_Atomic(int64_t) moved; /* others: mono_ns of who last rolled over or found it idle */
	};
	_Atomic(int64_t) peak;	   /* before usage last fell; quota_read has the peak */
	_Atomic(int64_t) refusals; /* decisions of this node, shadow ones included */
	_Atomic(int64_t) forced;   /* what forced charges put past max */
	_Atomic(int64_t) lost;	   /* what saturated */

	/* Read by every charge, seldom written: the line stays shared among all CPUs. */
	union {
		struct {
			_Atomic(int64_t) max;
			_Atomic(int64_t) high;
			_Atomic(int64_t) low;
			_Atomic(int64_t) min;
		};
		struct { /* rate planes; per_ns is in duration_ns */
			int64_t burst;
			int64_t rate;
			uint64_t cost, scale; /* as in struct rate */
		};
	};
	_Atomic(struct quota_node *) parent; /* NULL: root of its plane */
	int64_t duration_ns; /* this and the next three: the window, as at quota_init */
	uint8_t kind;
	uint8_t unit;
	uint8_t count_bits; /* of a windowed usage; the number has the others */
	_Atomic(bool) shadow;
	void *owner; /* the caller's; this room does not look at it */
};
_Static_assert(sizeof(struct quota_node) == 192, "three cache lines");
_Static_assert(offsetof(struct quota_node, usage) == 0, "usage has the first to itself");
_Static_assert(offsetof(struct quota_node, min_used) == 64 &&
		       offsetof(struct quota_node, lost) == 120,
	       "bookkeeping fills the second");
_Static_assert(offsetof(struct quota_node, max) == 128 && offsetof(struct quota_node, owner) == 184,
	       "what is only read fills the third");

/*
 * A node below `parent` (NULL: a root), both in planes with this window, whose usage is `usage` at `time`: units; in the window that holds
 * `time`; of the bucket. What it claims of its protection is added to the parent. Memory must be 64-byte aligned; there is nothing
 * to release. peak starts at usage (at 0 if that is negative), the other figures at 0. owner is set to NULL.
 */
void quota_init(struct quota_node *node, const struct window *window, struct quota_node *parent,
		const struct quota_limits *limits, int64_t usage, const struct quota_time *time);

/* Another parent (NULL: a root) from now on; its claims move from the one's sums to the other's. Usage of neither changes. */
void quota_reparent(struct quota_node *node, struct quota_node *parent);

/* Before its memory goes, and when no node has it as a parent any more: its claims leave the parent's sums. */
static inline void quota_detach(struct quota_node *node)
{
	quota_reparent(node, NULL);
}

/* ---- charging one path ---- */

/*
 * Forced: n is usage already, whatever the limits say. Node to root. n may be negative (a gauge's adds): taken off without a window, and
 * no concern of the other planes, which count what comes in only.
 */
void quota_charge(struct quota_node *node, int64_t n, const struct quota_time *time);

struct quota_outcome {
	struct quota_node *refused; /* the first that refused, leaf to root; NULL: granted */
	size_t item;		    /* lib/quota/charge.h: of which item; 0 here */
	int64_t n;		    /* what was asked of that node by this item */
	int64_t usage,
		max; /* of that node as it decided (rate: burst), earlier items of the same charge included */
	bool over_high; /* granted, and some node of the path is over its high */
	bool shadow;	/* a shadow max on the way would have refused (also if another did) */
};

/*
 * All or nothing from node to root: 0, or QUOTA_E_REFUSED. *ret_outcome (may be NULL) is set either way. Which other nodes bind, which are
 * over their high and which shadows refuse: quota_judge on each; the two flags say whether that is worth it.
 */
int quota_try_charge(struct quota_node *node, int64_t n, const struct quota_time *time,
		     struct quota_outcome *ret_outcome);

/*
 * Give n back, node to root. QUOTA_E_UNDERFLOW: some node on the path has less, and nothing was changed. In planes with a window or a
 * rate nothing comes back: 0, and nothing happens. Who gives back what was never granted takes it from others' usage as long as that lasts: the caller keeps
 * account of who holds what. Usage that is still held never passes max by this if each gives back only what it holds.
 */
int quota_uncharge(struct quota_node *node, int64_t n);

/* ---- limits and answers ---- */

/* The node's shadow, max, high, low and min from now on; its window stays. `time` matters in rate planes alone. */
void quota_set_limits(struct quota_node *node, const struct quota_limits *limits,
		      const struct quota_time *time);

struct quota_reading {
	struct window window;
	struct quota_limits limits;
	int64_t usage; /* in the window of `time`; of the bucket, rounded up */
	int64_t left;  /* max - usage, at least 0; QUOTA_NONE without a max */
	int64_t peak;
	int64_t refusals;
	int64_t forced;
	int64_t lost;
	int64_t window_start_ns, window_end_ns; /* windowed planes; 0 in the others */
	int64_t children_min, children_low;	/* what the children claim; 0 with a window */
};

/* Each figure for itself is right at some moment of the call. Changes nothing. */
void quota_read(const struct quota_node *node, const struct quota_time *time,
		struct quota_reading *ret_reading);

struct quota_judgement {
	bool refuses;	/* n does not fit; of a shadow node: would not */
	bool shadow;	/* but this one refuses nothing */
	bool over_high; /* usage, n not added, is past high */
	int64_t usage, max, left;
	int64_t retry_after_ms; /* 0 if it fits; else as quota_retry_after_ms */
};

/* One node by itself, read-only: what would it say to n more? n = 0: how does it stand (for what has just been granted)? */
void quota_judge(const struct quota_node *node, int64_t n, const struct quota_time *time,
		 struct quota_judgement *ret_judgement);

/*
 * When might this node, by itself, grant n? In ms, rounded up. 0: now, or at any moment at which held amounts come back
 * (no window); -1: never, as n > max. (That a counter's usage without a window never falls is for the caller to know.)
 */
int64_t quota_retry_after_ms(const struct quota_node *node, int64_t n,
			     const struct quota_time *time);

/* Effective min and low (lib/quota/protect.h), from the root of the plane down to node. 0 and 0 in planes with a window. */
void quota_effective(const struct quota_node *node, bool recursive, int64_t *ret_min,
		     int64_t *ret_low);

/* The window given at init. */
struct window quota_window(const struct quota_node *node);

/* Nodes from here to the root, this one included. */
static inline size_t quota_depth(const struct quota_node *node)
{
	size_t depth = 0;

	for (; node != NULL; node = atomic_load_explicit(&node->parent, memory_order_acquire)) {
		depth++;
	}
	return depth;
}
