#include "lib/engine/flush.h"

#include "lib/engine/state.h"

void flush_deinit(struct flush *flush)
{
	(void)pthread_cond_destroy(&flush->finish);
	(void)pthread_mutex_destroy(&flush->mutex);
}

/* What a slot holds back at most. */
static int64_t slot_bound(const struct engine *engine, bool gauge)
{
	return gauge ? SLOT_BOUND_SIGNED(engine->batch) : SLOT_BOUND_GROWING(engine->batch);
}

struct visit {
	struct engine *engine;
	struct engine_worker *seat;
};

/*
 * slot_claim, but growth that only an add of a batch or more can have put there is left to its worker: it is about to claim it
 * itself, between its fold_begin and fold_end, for which the flusher waits. So what the flusher has in hand is bounded like what a slot
 * holds back, and an add that has returned is held back or in the totals, except for that. What was put there while the gate was
 * closed nobody is about to claim; the bound is then as much wider.
 */
static bool claim_held(const struct visit *visit, struct slot *slot, int64_t batch_bound,
		       int64_t *ret_growth)
{
	/* The orders are slot_claim's. */
	uint64_t published = atomic_load_explicit(&slot->published, memory_order_acquire);
	uint64_t count;
	int64_t bound;

	do {
		RATION_HOOK();
		count = slot_count(slot);
		/* After the count: excess is noted before it is put. */
		bound = batch_bound + gate_seat_excess(visit->seat);
		if (count == published ||
		    count - published + (uint64_t)bound > 2 * (uint64_t)bound) {
			return false;
		}
		RATION_HOOK();
	} while (!atomic_compare_exchange_weak_explicit(
		&slot->published, &published, count, memory_order_acq_rel, memory_order_acquire));
	RATION_HOOK();
	*ret_growth = (int64_t)(count - published);
	return true;
}

/*
 * The read section keeps the counter and its ancestors in place while the fold climbs, and a removal or a turn to STRICT from
 * settling the slot before the fold is done. A counter whose life says that one of these is under way is theirs to fold; they show
 * the keeper's line odd until it is.
 */
static void fold_marked(void *ctx, uint32_t id, struct slot *slot)
{
	const struct visit *visit = ctx;
	struct engine *engine = visit->engine;
	uint32_t life;
	int64_t growth;

	grace_enter();
	life = tree_life(&engine->tree, id);
	if ((life & (LIFE_LIVE | LIFE_STRICT)) == LIFE_LIVE &&
	    claim_held(visit, slot, slot_bound(engine, life & LIFE_GAUGE), &growth)) {
		/* Beyond the edge? The next fold by a worker finds that too, and turns the metric strict. */
		(void)plane_fold(&engine->planes, &engine->tree, id, growth);
		state_count(&engine->flush.folds, 1);
	}
	grace_leave();
}

static void run(struct engine *engine)
{
	uint32_t n = atomic_load_explicit(&engine->n_seats, memory_order_acquire);

	pending_reset(&engine->pending);
	RATION_HOOK();
	for (uint32_t i = 0; i < n; i++) {
		bank_take(&engine->seats[i].bank);
	}
	/* Pairs with the light fence in bank_mark. */
	fence_heavy();
	for (uint32_t i = 0; i < n; i++) {
		struct visit visit = { .engine = engine, .seat = &engine->seats[i] };

		(void)bank_visit(&engine->seats[i].bank, fold_marked, &visit);
	}
	for (uint32_t i = 0; i < n; i++) {
		fold_wait(&engine->seats[i].fold);
	}
	fold_wait(&engine->keeper);
}

/* Called and returns with the mutex held, while `running` keeps others from leading. */
static void run_as(struct engine *engine, uint64_t number, int64_t now_ns)
{
	struct flush *flush = &engine->flush;

	atomic_store_explicit(&flush->started, number, memory_order_release);
	(void)pthread_mutex_unlock(&flush->mutex);
	run(engine);
	(void)pthread_mutex_lock(&flush->mutex);
	if (now_ns != FLUSH_NO_TIME) {
		atomic_store_explicit(&flush->begun_ns, now_ns, memory_order_relaxed);
	}
	/* Release: pairs with the acquire in wait_fresh and engine_refresh. */
	atomic_store_explicit(&flush->finished, number, memory_order_release);
	(void)pthread_cond_broadcast(&flush->finish);
}

static void lead(struct engine *engine, uint64_t number, int64_t now_ns)
{
	engine->flush.running = true;
	run_as(engine, number, now_ns);
	engine->flush.running = false;
}

void flush_all(struct engine *engine, int64_t now_ns)
{
	struct flush *flush = &engine->flush;
	uint64_t wanted;
	bool led = false;

	(void)pthread_mutex_lock(&flush->mutex);
	wanted = atomic_load_explicit(&flush->started, memory_order_relaxed) + 1;
	while (atomic_load_explicit(&flush->finished, memory_order_relaxed) < wanted) {
		if (flush->running) {
			(void)pthread_cond_wait(&flush->finish, &flush->mutex);
		} else {
			led = true;
			lead(engine, wanted, now_ns);
		}
	}
	(void)pthread_mutex_unlock(&flush->mutex);
	if (!led) {
		state_count(&flush->shared, 1);
	}
}

/* ---- for the gate ---- */

void flush_hold(struct engine *engine)
{
	struct flush *flush = &engine->flush;

	(void)pthread_mutex_lock(&flush->mutex);
	while (flush->running) {
		(void)pthread_cond_wait(&flush->finish, &flush->mutex);
	}
	flush->running = true;
	(void)pthread_mutex_unlock(&flush->mutex);
}

void flush_held(struct engine *engine)
{
	struct flush *flush = &engine->flush;

	(void)pthread_mutex_lock(&flush->mutex);
	run_as(engine, atomic_load_explicit(&flush->started, memory_order_relaxed) + 1,
	       FLUSH_NO_TIME);
	(void)pthread_mutex_unlock(&flush->mutex);
}

void flush_release(struct engine *engine)
{
	struct flush *flush = &engine->flush;

	(void)pthread_mutex_lock(&flush->mutex);
	flush->running = false;
	(void)pthread_cond_broadcast(&flush->finish);
	(void)pthread_mutex_unlock(&flush->mutex);
}

void engine_flush(struct engine *engine, int64_t now_ns)
{
	flush_all(engine, now_ns);
}

/* Returns when flush `number`, which has begun, has finished. */
static void wait_for(struct flush *flush, uint64_t number)
{
	(void)pthread_mutex_lock(&flush->mutex);
	while (atomic_load_explicit(&flush->finished, memory_order_relaxed) < number) {
		(void)pthread_cond_wait(&flush->finish, &flush->mutex);
	}
	(void)pthread_mutex_unlock(&flush->mutex);
	state_count(&flush->shared, 1);
}

/* A flush that began is not finished. To be asked after pending_due (see the head of flush.h). */
static bool under_way(const struct flush *flush, uint64_t *ret_number)
{
	*ret_number = atomic_load_explicit(&flush->started, memory_order_acquire);
	return atomic_load_explicit(&flush->finished, memory_order_acquire) < *ret_number;
}

bool flush_pending(const struct engine *engine)
{
	uint32_t n = atomic_load_explicit(&engine->n_seats, memory_order_acquire);
	uint64_t number;

	/*
	 * Marks first: one that is gone was taken by a flush, and that flush is then seen under way, or done. (Growth without a mark of
	 * its own was added before the mark was taken, so the same flush has it.)
	 */
	for (uint32_t i = 0; i < n; i++) {
		if (bank_marked(&engine->seats[i].bank)) {
			return true;
		}
	}
	RATION_HOOK();
	return under_way(&engine->flush, &number);
}

/*
 * True: a flush that began after the call has finished, everything added before is folded. False: no more than pending_bound is
 * held back. Waits for at most two flushes: the second one that is met under way began after the first had finished.
 */
static bool make_fresh(struct engine *engine, int64_t now_ns)
{
	struct flush *flush = &engine->flush;
	uint64_t asked = atomic_load_explicit(&flush->started, memory_order_acquire);

	for (;;) {
		uint64_t number;

		if (pending_due(&engine->pending)) {
			flush_all(engine, now_ns);
			return true;
		}
		RATION_HOOK();
		if (!under_way(flush, &number)) {
			state_count(&flush->skipped, 1);
			return false;
		}
		wait_for(flush, number);
		if (number > asked) {
			return true;
		}
	}
}

/* What all slots may hold back together, by their number; with `slots` more than there are. */
static int64_t slots_bound(const struct engine *engine, int64_t slots)
{
	int64_t seats = atomic_load_explicit(&engine->n_seats, memory_order_acquire);
	int64_t counters = atomic_load_explicit(&engine->n_counters, memory_order_relaxed);
	bool gauges = atomic_load_explicit(&engine->n_gauges, memory_order_relaxed) > 0;

	/* At most (2^26 * 2^6 + 1) * 3 * 2^20, and 2^59. */
	return (counters * seats + slots) * slot_bound(engine, gauges) + gate_excess(engine);
}

static int64_t pending_or_slots(const struct engine *engine)
{
	int64_t slots = slots_bound(engine, 0);
	int64_t pending = pending_bound(
		&engine->pending, atomic_load_explicit(&engine->n_seats, memory_order_acquire));

	return pending < slots ? pending : slots;
}

int64_t flush_bound(const struct engine *engine)
{
	bool due = pending_due(&engine->pending);
	uint64_t number;

	RATION_HOOK();
	if (under_way(&engine->flush, &number)) {
		/* What the flusher has in its hand: one slot's growth, which may hold as much again by now. */
		return slots_bound(engine, 1);
	}
	return due ? slots_bound(engine, 0) : pending_or_slots(engine);
}

static int64_t age(const struct engine *engine, int64_t now_ns)
{
	int64_t begun = atomic_load_explicit(&engine->flush.begun_ns, memory_order_relaxed);
	int64_t age_ns;

	if (begun == FLUSH_NO_TIME || __builtin_sub_overflow(now_ns, begun, &age_ns)) {
		return INT64_MAX;
	}
	return age_ns > 0 ? age_ns : 0;
}

void engine_refresh(struct engine *engine, enum engine_consistency consistency, int64_t now_ns,
		    struct engine_view *ret_view)
{
	*ret_view = (struct engine_view){ 0 };
	switch (consistency) {
	case ENGINE_EXACT:
		flush_all(engine, now_ns);
		break;
	case ENGINE_FRESH:
		if (!make_fresh(engine, now_ns)) {
			ret_view->error_bound = pending_or_slots(engine);
			ret_view->age_ns = age(engine, now_ns);
		}
		break;
	case ENGINE_CACHED:
	default:
		ret_view->error_bound = flush_bound(engine);
		ret_view->age_ns = age(engine, now_ns);
		break;
	}
}
