#pragma once
/*
 * state: what an engine and a worker's seat are made of. For the files of this room, and for its tests.
 *
 * Locks, in the order in which they may be taken:
 *	engine.sweep	one engine_expire at a time
 *	registry_lock	what counters there are, the lives, the tallies' shape, metric.n_counters; adds of strict metrics; rules, and which
 *			counters carry limits
 *	seats_mutex	who joined | flush.mutex | metrics.mutex | refused.mutex | gate.mutex	(none inside another)
 * grace_wait is called with the first two held, so nobody waits for these inside a read section.
 */
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/count/bank.h"
#include "lib/count/fold.h"
#include "lib/count/pending.h"
#include "lib/engine/changes.h"
#include "lib/engine/engine.h"
#include "lib/engine/flush.h"
#include "lib/engine/gate.h"
#include "lib/engine/metric.h"
#include "lib/engine/plane.h"
#include "lib/engine/refused.h"
#include "lib/engine/remove.h"
#include "lib/engine/restore.h"
#include "lib/engine/rules.h"
#include "lib/engine/tree.h"
#include "lib/engine/usage.h"
#include "lib/names/registry.h"
#include "lib/rcu/grace.h"

/* A seat: its slots stay readable when its worker has left, and the next worker goes on with them. */
struct engine_worker {
	/* Set once, read by adds. */
	struct engine *engine;
	struct bank bank;
	struct ledger **ledgers; /* the worker's own (ledger.h) */

	/* Written by the worker's thread. */
	alignas(64) struct pending_share share;
	uint32_t depth; /* of engine_begin */
	_Atomic(uint64_t) folds;
	_Atomic(uint64_t) add_negative, add_overflow, add_gone;
	_Atomic(uint64_t) charges_granted, charges_refused, charge_flushes;
	_Atomic(uint64_t) excess; /* ever put beyond a batch while the gate was closed, in magnitude */
	_Atomic(uint64_t) excess_folded; /* of it; written by who opens the gate */
	bool joined;			 /* under seats_mutex */

	struct fold_line fold;
};

struct engine {
	/* Set by engine_new, read by adds. */
	struct tree tree;
	int64_t batch;
	struct registry *registry;
	struct engine_worker *seats;
	uint32_t max_workers;
	uint32_t max_counters;

	/* Written when workers join for the first time, and when counters come and go. */
	alignas(64) _Atomic(uint32_t) n_seats; /* that were ever used; the first ones */
	_Atomic(uint32_t) n_joined;
	_Atomic(uint32_t) n_counters; /* until what they held back is folded */
	_Atomic(uint32_t) n_gauges;   /* of these */
	pthread_mutex_t seats_mutex;

	struct gate gate;

	/* Written by folds and charges of what carries limits: the time; the rest when rules change or such counters come and go. */
	alignas(64) struct planes planes;
	struct rules rules; /* under the registry's lock */

	struct pending pending;
	struct fold_line keeper; /* odd: a removal or a turn to STRICT has slots to fold */
	struct flush flush;
	struct metrics metrics;
	struct refused refused;
	struct sweep sweep;
	struct name *retired; /* whose ids must not be used again */
	struct changes changes;
	struct usage usage;
	struct late late;

	_Atomic(uint64_t) created, removed, expired, refusals, overflowed;
};

/* Statistics that several threads write, seldom. */
static inline void state_count(_Atomic(uint64_t) *count, uint64_t n)
{
	atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

/* Statistics of a single writer: no locked instruction. */
static inline void state_count_own(_Atomic(uint64_t) *count)
{
	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}
