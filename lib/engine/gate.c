#include "lib/engine/gate.h"

#include "lib/engine/state.h"

void gate_deinit(struct gate *gate)
{
	(void)pthread_cond_destroy(&gate->opened);
	(void)pthread_mutex_destroy(&gate->mutex);
}

void gate_wait(struct gate *gate)
{
	(void)pthread_mutex_lock(&gate->mutex);
	while (atomic_load_explicit(&gate->closed, memory_order_relaxed)) {
		(void)pthread_cond_wait(&gate->opened, &gate->mutex);
	}
	(void)pthread_mutex_unlock(&gate->mutex);
}

void gate_enter(struct gate *gate)
{
	for (;;) {
		grace_enter();
		if (!gate_closed(gate)) {
			return;
		}
		grace_leave();
		gate_wait(gate);
	}
}

static void set_closed(struct gate *gate, bool closed)
{
	(void)pthread_mutex_lock(&gate->mutex);
	/* Release: pairs with gate_closed. */
	atomic_store_explicit(&gate->closed, closed, memory_order_release);
	(void)pthread_cond_broadcast(&gate->opened);
	(void)pthread_mutex_unlock(&gate->mutex);
	RATION_HOOK();
}

void gate_close(struct engine *engine)
{
	flush_hold(engine);
	set_closed(&engine->gate, true);
	state_count(&engine->gate.closures, 1);
	grace_wait();
	flush_held(engine);
}

void gate_open(struct engine *engine)
{
	uint32_t n = atomic_load_explicit(&engine->n_seats, memory_order_acquire);
	uint64_t excess[ENGINE_MAX_WORKERS];

	set_closed(&engine->gate, false);
	grace_wait();
	for (uint32_t i = 0; i < n; i++) {
		excess[i] = atomic_load_explicit(&engine->seats[i].excess, memory_order_acquire);
	}
	flush_held(engine);
	for (uint32_t i = 0; i < n; i++) {
		/* Release: pairs with the acquire in gate_seat_excess: who leaves it out of a bound finds it in the totals. */
		atomic_store_explicit(&engine->seats[i].excess_folded, excess[i],
				      memory_order_release);
	}
	flush_release(engine);
}

int64_t gate_seat_excess(const struct engine_worker *seat)
{
	/* In this order, so that the difference is never negative. */
	uint64_t folded = atomic_load_explicit(&seat->excess_folded, memory_order_acquire);

	return (int64_t)(atomic_load_explicit(&seat->excess, memory_order_acquire) - folded);
}

int64_t gate_excess(const struct engine *engine)
{
	uint32_t n = atomic_load_explicit(&engine->n_seats, memory_order_acquire);
	int64_t sum = 0;

	/* At most ENGINE_MAX_WORKERS times GATE_EXCESS. */
	for (uint32_t i = 0; i < n; i++) {
		sum += gate_seat_excess(&engine->seats[i]);
	}
	return sum;
}
