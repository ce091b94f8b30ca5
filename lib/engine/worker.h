#pragma once
/*
 * worker: seats, and the add.
 *
 * Own values are known in two ways. Readers are told base + folded of the tally (tree_own): as far as folded, like totals, and never ahead of the
 * counter's own total. They never look at a slot, so whoever adds keeps his cache lines, however many counters somebody walks.
 *
 * Whoever decides something reads worker_own: base + sum of the seats' slot counts. Counts, not published parts: they are what was added,
 * exactly, at any time, and what is being folded is in it once.
 *
 * Of both none ever steps back in a metric that only grows. After a flush, and with no adds going on, they are the same, and a counter's
 * total is its own plus its children's totals.
 */
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct engine_worker;
struct slot;

/* What all seats' slots of this id count, modulo 2^64. */
uint64_t worker_counted(const struct engine *engine, uint32_t id);

/* The counter's own value, with what is held back. */
int64_t worker_own(const struct engine *engine, uint32_t id);

/*
 * Leave the read section that the worker's thread is in, and come back: whatever was known about a counter has to be asked again. For those
 * few adds that must wait for a lock.
 */
void worker_pause(struct engine_worker *worker);
void worker_resume(struct engine_worker *worker);

/* Add n to the worker's slot and fold what it holds. True if that took a total beyond TREE_EDGE. |n| is below STRICT_AMOUNT, or the sum is known to fit. */
bool worker_fold(struct engine_worker *worker, uint32_t id, struct slot *slot, int64_t n);

/* Fold what all seats' slots of this id hold. Its ancestors stay (under the registry's lock), and a fold line is odd meanwhile. */
void worker_settle(struct engine *engine, uint32_t id);

void worker_deinit(struct engine_worker *worker);
