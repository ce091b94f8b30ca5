#pragma once
/*
 * strict: metrics whose totals come near the ends of int64, where adds must be exact and may be refused.
 *
 * Far from the ends nothing is checked before it is counted. A fold by a worker looks at the totals it made; if one is TREE_EDGE (2^61) or
 * more in magnitude the whole metric turns strict: LIFE_STRICT in every life of it, a grace period, and all its slots folded.
 * From then on each add to it runs under the registry's lock, is checked against every ancestor, and changes all or nothing. A metric
 * stays strict until it is removed.
 *
 * Why no total wraps before that: each amount added without a check is below STRICT_AMOUNT (2^54; a larger one turns the metric strict
 * first), and whoever takes or finds a total beyond the edge waits for the turn before it adds again. So what comes on top of the edge is at
 * most one such amount, and one slot's growth below a batch, from each of ENGINE_MAX_WORKERS workers, and the flusher's
 * slots: far less than 2^61 together. The total stays below 2^62.
 *
 * Own values: a metric that only grows has own <= total. In a gauge an own value can run away while the totals cancel out, so its folds
 * check that as well: first by the parts, of which there are few and none may be large, then by the sum.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/engine/engine.h"
#include "lib/engine/tree.h"

struct slot;

#define STRICT_AMOUNT (INT64_C(1) << 54)

static_assert((ENGINE_MAX_WORKERS + 1) * (uint64_t)STRICT_AMOUNT + (UINT64_C(1) << 58) <
		      (uint64_t)TREE_EDGE,
	      "what may be under way when a total reaches the edge fits above it");

/* |n| < STRICT_AMOUNT */
static inline bool strict_amount_is_small(int64_t n)
{
	return n > -STRICT_AMOUNT && n < STRICT_AMOUNT;
}

/* The slot's worker has just folded it: has the own value of this gauge come near the ends? */
bool strict_own_is_far(const struct engine *engine, uint32_t id, const struct slot *slot);

/*
 * Own and all totals stay in int64 with n more. Nobody else changes them, in a strict metric and under the registry's lock.
 */
bool strict_fits(const struct engine *engine, uint32_t id, int64_t n);

/* The base of this counter has changed other than by its slots: has the own value come near the ends? */
bool strict_base_is_far(const struct engine *engine, uint32_t id);

/* The add, where it must be exact; turns the metric strict if it isn't yet. Results as of engine_add. */
int strict_add(struct engine_worker *worker, struct engine_ref ref, int64_t n);

/* Turn the counter's metric strict, unless it is or the counter has gone. Inside the worker's read section, which it leaves meanwhile. */
void strict_turn(struct engine_worker *worker, struct engine_ref ref);

/* The same under the registry's lock, outside any read section. */
void strict_turn_locked(struct engine *engine, uint32_t root);

/* The same for the metric of this counter, unless it is strict. */
void strict_ensure(struct engine *engine, uint32_t id);
