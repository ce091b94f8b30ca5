#pragma once
/*
 * gate: the moments at which the shape of the planes changes (which counters carry limits, whose usage starts from what).
 *
 * A node's usage must start from the exact total of its counter, so while it is made nothing may be on its way to the totals or to the
 * planes. Charges can wait for that, adds can't: while the gate is closed they hold their growth back in their slots, beyond the batch.
 *
 *	setter (registry's lock held)			worker, in its read section
 *	gate_close:					an add reaches its batch
 *	  waits for the flush that runs, keeps others	closed? (acquire)
 *	    from beginning				  yes: notes the excess, puts it in the slot, marks it
 *	  closed = true					  no:  folds
 *	  grace_wait: who saw it open has folded	a charge, a lease
 *	  folds all slots				closed? (acquire)
 *	changes the planes				  yes: leaves its read section and waits
 *	gate_open:					  no:  goes on, inside this read section
 *	  closed = false			(release)
 *	  grace_wait: who saw it closed has put
 *	  folds all slots again, lets flushes begin
 *
 * The second fold takes what was held back beyond the batch; until it is done error bounds include it (gate_excess). Both are flushes like
 * any other to whoever waits for one.
 *
 * What an add can't do is hold back without end: totals are watched for the ends of int64 only when folded (strict.h). A worker that would
 * hold back GATE_EXCESS beyond its batches waits for the gate.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct engine_worker;

#define GATE_EXCESS (INT64_C(1) << 53)

struct gate {
	_Atomic(bool) closed; /* read by every fold of a worker, and by every charge */
	pthread_mutex_t mutex;
	pthread_cond_t opened;
	_Atomic(uint64_t) closures;
};

#define GATE_INIT                                                                      \
	{                                                                              \
		.mutex = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER \
	}

void gate_deinit(struct gate *gate);

/* Inside the read section in which the answer is used. */
static inline bool gate_closed(const struct gate *gate)
{
	/* Acquire: pairs with the release in gate_open; who finds it open finds the planes as they were made. */
	return __builtin_expect(atomic_load_explicit(&gate->closed, memory_order_acquire), 0);
}

/* Returns when the gate is open, or was. Outside a read section. */
void gate_wait(struct gate *gate);

/* Enters a read section in which limits stand still: one that finds the gate open. Outside a read section. */
void gate_enter(struct gate *gate);

/* Under the registry's lock. When gate_close returns all that was added before is in the totals and planes, and these stand still. */
void gate_close(struct engine *engine);
void gate_open(struct engine *engine);

/* What may be held back beyond the batches, in magnitude: by one seat, by all. */
int64_t gate_seat_excess(const struct engine_worker *seat);
int64_t gate_excess(const struct engine *engine);
