#pragma once
/*
 * quota: limits over the engine's counters, and charges against them.
 *
 * All limits of one metric with the same window form a plane: a tree of its own over the counters that carry such a limit. Adds are
 * usage too, as soon as they fold; a charge walks the planes above its paths and is granted everywhere or nowhere.
 *
 * What usage is. In a plane without a window, of a counter that carries a limit: its total plus the units of leases below it that
 * are not spent yet. In a window: what came in during it (what a gauge gives back is not taken off; adds come in as their sum
 * between two folds of one slot). A rate: the level of its bucket.
 *
 * Threads: as in engine.h, any thread registered with lib/rcu, outside a read section; a worker is used by one thread at a time, and a
 * charge may stand between its engine_begin and engine_end (the read section is left meanwhile, as by engine_add in a strict
 * metric). Changes of rules wait for each other and make charges wait; no add waits for them, unless amounts of 2^53 and more are
 * added meanwhile. Callbacks must not call the engine and should be short: they are called with its locks held, or in a read section.
 */
#include "lib/engine/engine.h"
#include "lib/quota/limits.h"
#include "lib/quota/window.h"

#define ENGINE_CHARGE_MAX_ITEMS 10000u
#define ENGINE_AMOUNT_MAX (INT64_C(1) << 62)
#define ENGINE_MAX_RULES 100000u /* in one layer */
#define ENGINE_MAX_PLANES 8u	 /* windows per metric, in both layers together */
#define ENGINE_MAX_SHAPES \
	64u /* of templates, per metric and layer: where their wildcards stand, and how deep they are */
#define ENGINE_MAX_SIBLINGS 32u	    /* that engine_explain tells of */
#define ENGINE_MAX_FAULT_TEXT 1536u /* two patterns and what is wrong with them */
#define ENGINE_MAX_WINDOW_TEXT 32u

/*
 * What time it is for adds, which bring none: growth that folds counts in the windows of the latest time (by its monotonic clock) that the
 * engine was told here or by a charge. Tell it about once in 100 ms; more often than once in a millisecond has no effect.
 */
void engine_set_time(struct engine *engine, const struct quota_time *time);

/* "without a window", "per 1m", "per calendar day", "rate" */
const char *engine_window_text(const struct window *window, char text[ENGINE_MAX_WINDOW_TEXT]);

/* ---- rules: where limits come from ---- */

/*
 * The second overrides the first: a rule of the same pattern and window, and wherever patterns of both apply and neither is more exact.
 */
enum engine_layer {
	ENGINE_FILE,
	ENGINE_RUN_TIME
};

/*
 * `pattern` is a path, or a template: `*` is any one segment, `**` at the end one or more. The first segment, the metric, is no
 * wildcard. For each window the limits of a counter come from one rule: that of its path, else of the template with the longest literal
 * prefix (in segments). Two templates of a layer with the same window and equally long prefixes that a path could match are a
 * fatal fault.
 *
 * A rule may come before its counter and stays when that is removed. A path that a rule names is counted from then on if its metric is
 * declared or counted (so it can be explained before it is used), and does not expire. One that a template gives a max or a rate does
 * not expire while there is usage of it: until its window is over or its bucket drained, and without a window as long as its total,
 * for a counter made anew would be granted all of it once more.
 */
struct engine_rule {
	const char *pattern;
	size_t len;
	struct window window;
	struct quota_limits limits;
	uint32_t tag; /* the caller's, given back in faults: a line of a file. 0: none */
};

/* What is wrong with a set of rules, or only unwise (`fatal` false). The text is complete. */
struct engine_fault {
	bool fatal;
	uint32_t tag, other_tag; /* of the rules concerned; other_tag 0: none */
	char text[ENGINE_MAX_FAULT_TEXT];
};
typedef void (*engine_fault_fn)(void *ctx, const struct engine_fault *fault);

/* Check a file's rules without changing anything; the number of fatal faults. `fault` may be NULL. -ENOMEM. */
int engine_rules_check(const struct engine_rule *rules, size_t n, engine_fault_fn fault, void *ctx);

/* Replace the file's layer as a whole, or change nothing: ENGINE_E_RULE (a fatal fault), -ENOMEM. */
int engine_rules_replace(struct engine *engine, const struct engine_rule *rules, size_t n,
			 struct quota_time time, engine_fault_fn fault, void *ctx);

/* At run time. Replaces the run-time rule of the same pattern and window. ENGINE_E_RULE, -ENOMEM. */
int engine_rule_set(struct engine *engine, const struct engine_rule *rule, struct quota_time time,
		    engine_fault_fn fault, void *ctx);

/* Remove run-time rules of this pattern (window NULL: all its windows); what the file says holds again. ENGINE_E_NOT_FOUND, -ENOMEM. */
int engine_rule_remove(struct engine *engine, const char *pattern, size_t len,
		       const struct window *window, struct quota_time time);

/* The file's rules, then those of run time, each in the order in which they came. Strings are valid during the call. */
typedef void (*engine_rule_fn)(void *ctx, const struct engine_rule *rule, enum engine_layer layer,
			       bool overridden);
void engine_rules_list(struct engine *engine, engine_rule_fn rule, void *ctx);

/* ---- charges ---- */

struct engine_charge_item {
	const char *path;
	size_t len;
	int64_t n; /* 1 .. ENGINE_AMOUNT_MAX */
};

enum engine_binding_kind {
	ENGINE_BINDS_MAX,  /* refuses */
	ENGINE_BINDS_RATE, /* refuses */
	ENGINE_OVER_HIGH,  /* granted, and it is over its high now */
	ENGINE_SHADOW,	   /* would have refused */
};

/* One ancestor that has something to say. Strings are valid during the call. */
struct engine_binding {
	enum engine_binding_kind kind;
	const char *path;
	size_t len;
	const struct window *window;
	int64_t limit;		/* max, burst or high */
	int64_t usage;		/* of a grant: with it */
	int64_t left;		/* what would still fit, >= 0; QUOTA_NONE without a max */
	int64_t retry_after_ms; /* 0: at any moment, -1: never; 0 in a grant */
};
typedef void (*engine_binding_fn)(void *ctx, const struct engine_binding *binding);

struct engine_charge {
	const struct engine_charge_item *items; /* a path may come more than once */
	size_t n;				/* 1 .. ENGINE_CHARGE_MAX_ITEMS */
	struct quota_time time;
	bool dry_run; /* say what a charge would, and change nothing; counters that don't exist are not made */
};

/*
 * Charge all items or none. 0: granted; what was granted is in the totals. ENGINE_E_REFUSED. `binding` (may be NULL) is called for every
 * ancestor that refuses, every one that is over its high (granted), every shadow limit that would have refused; item by item, the nearest
 * plane first, from there up to the metric, each once.
 *
 * Errors, nothing was charged, *ret_index (may be NULL) is the item:
 *	ENGINE_E_PATH, ENGINE_E_FULL, ENGINE_E_METRIC_FULL
 *	ENGINE_E_AMOUNT		not in range, or the sum of the items up to this one exceeds int64; or their number is out of range
 *	ENGINE_E_NOT_FOUND	of a metric that nobody declared, counted or limited: a slip of the pen must not be granted
 *	ENGINE_E_OVERFLOW	a total would leave int64
 *	-ENOMEM
 */
int engine_charge(struct engine_worker *worker, const struct engine_charge *charge,
		  engine_binding_fn binding, void *ctx, size_t *ret_index);

/*
 * Give n back on a gauge. Nothing was changed: ENGINE_E_PATH, ENGINE_E_NOT_FOUND, ENGINE_E_KIND (not a gauge), ENGINE_E_AMOUNT,
 * ENGINE_E_UNDERFLOW (more than its own value), ENGINE_E_OVERFLOW, -ENOMEM.
 */
int engine_uncharge(struct engine_worker *worker, const char *path, size_t len, int64_t n,
		    struct quota_time time);

/*
 * Leases: charge the planes only (no totals yet) for between 1 and `want` units: at most half of what is left once that is less than
 * 2 x want, but 1 if it fits, so that one client can't take all there is. ENGINE_E_REFUSED, and bindings, as for a charge of 1;
 * errors as engine_charge.
 */
int engine_lease(struct engine_worker *worker, const char *path, size_t len, int64_t want,
		 struct quota_time time, engine_binding_fn binding, void *ctx,
		 int64_t *ret_granted);

/*
 * Units of a lease that were spent reach the totals (the planes have them already). If the counter was removed meanwhile, the nearest
 * ancestor's, as its own value did; if there was no room for it, ENGINE_OTHER's. Nothing was changed: ENGINE_E_PATH, ENGINE_E_AMOUNT,
 * ENGINE_E_OVERFLOW, -ENOMEM, ENGINE_E_NOT_FOUND, ENGINE_E_UNDERFLOW (not that many are leased there).
 */
int engine_lease_spend(struct engine_worker *worker, const char *path, size_t len, int64_t n,
		       struct quota_time time);

/* Unspent units of a gauge's lease go back to the planes without a window. As engine_lease_spend; ENGINE_E_KIND (not a gauge). */
int engine_lease_return(struct engine_worker *worker, const char *path, size_t len, int64_t n,
			struct quota_time time);

/*
 * Unspent units of a counter's lease that ends are forfeited: they stay usage of the limits that were charged, but no lease has them, so that
 * they are not in the way of a removal (then the parent has them). As engine_lease_spend.
 */
int engine_lease_forfeit(struct engine_worker *worker, const char *path, size_t len, int64_t n,
			 struct quota_time time);

/* ---- all limits ---- */

/* Where a walk of the limits stands; zero at the start. */
struct engine_limits_cursor {
	uint32_t next;
};

/* A limit that a counter carries. Strings and the window are valid during the call. */
struct engine_limited {
	const char *path;
	size_t len;
	const struct window *window;
	struct quota_limits limits;
	int64_t usage, peak;
	int64_t refusals, forced;
};
typedef void (*engine_limited_fn)(void *ctx, const struct engine_limited *limited);

/*
 * The limits of the next `n` counters that carry any, in no order; those of one counter together. One that is there during the whole walk
 * is visited exactly once, over any number of calls. *ret_done: none is left.
 */
void engine_limits_walk(struct engine *engine, const struct quota_time *time, size_t n,
			struct engine_limits_cursor *cursor, engine_limited_fn visit, void *ctx,
			bool *ret_done);

/* ---- explain ---- */

struct engine_explained {
	const char *path;
	size_t len;
	uint32_t depth; /* 1: the metric */
	const struct window *window;
	struct quota_limits limits;
	enum engine_layer layer; /* of the rule it comes from */
	const char *pattern;
	size_t pattern_len;
	int64_t usage, peak;
	int64_t left; /* QUOTA_NONE without a max */
	int64_t refusals, forced;
	int64_t effective_min, effective_low;
	bool binds; /* the least left on this chain, over all its planes (not if nothing has a max) */
	bool over_high, over_max;
	bool frozen; /* over max, and nothing but what is given back (or another limit) changes that */
};
typedef void (*engine_explain_fn)(void *ctx, const struct engine_explained *explained);

struct engine_sibling {
	const char *path;
	size_t len;
	int64_t usage, effective_min, effective_low;
	uint32_t more; /* so many are not told of, beyond ENGINE_MAX_SIBLINGS; the same for all */
};
typedef void (*engine_sibling_fn)(void *ctx, const struct engine_sibling *sibling);

/*
 * The chain from `path` to its metric, leaf first, every plane of each counter; then the siblings of the chain's counters (in the plane
 * without a window) whose usage exceeds what is protected of it, if anything is protected of anyone there; those with the most in excess first, at most ENGINE_MAX_SIBLINGS.
 * Effective protections are recursive: what a parent has and its children don't claim floats to them. ENGINE_E_PATH,
 * ENGINE_E_NOT_FOUND.
 */
int engine_explain(struct engine *engine, const char *path, size_t len, struct quota_time time,
		   engine_explain_fn explain, engine_sibling_fn sibling, void *ctx);
