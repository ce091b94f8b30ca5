#pragma once
/*
 * ledger: what a worker has brought to counters past its slots, and that it has: for its cuts (keep.h).
 *
 * Charges go to a counter's base and its ancestors' totals, leases to the planes alone, and neither says of whom they came. With
 * engine_options.keep each seat has a few words for every counter that it ever charged; they are written and read by the seat's worker
 * alone, in the same step of its life in which it writes the rest. A cut takes them with what the slots count.
 *
 * All of these do nothing without `keep`. The worker's own thread.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/count/bank.h"
#include "lib/engine/state.h"

/* Cumulative, as in struct engine_growth. */
struct ledger {
	uint64_t charged, ahead, taken;
};

/* Makes sure there are words for this counter; for it and its ancestors. -ENOMEM. */
int ledger_reserve(struct engine_worker *worker, uint32_t id);
int ledger_reserve_up(struct engine_worker *worker, uint32_t id);

/* They were reserved. */
void ledger_write(struct engine_worker *worker, uint32_t id, int64_t charged, int64_t ahead,
		  int64_t taken);

/* The worker's slot of this id grew and was folded at once: no mark says so. */
static inline void ledger_note(struct engine_worker *worker, uint32_t id)
{
	if (worker->bank.touched) {
		bank_note(&worker->bank, id);
	}
}

void ledger_deinit(struct engine_worker *worker);
