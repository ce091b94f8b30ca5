#include "lib/engine/worker.h"

#include <errno.h>

#include "lib/engine/ledger.h"
#include "lib/engine/state.h"
#include "lib/engine/strict.h"

/* ---- seats ---- */

/* Seats are used from the first on, so that readers have the fewest to sum. */
static int take_seat(struct engine *engine, struct engine_worker **ret_worker)
{
	uint32_t n = atomic_load_explicit(&engine->n_seats, memory_order_relaxed);

	for (uint32_t i = 0; i < n; i++) {
		if (!engine->seats[i].joined) {
			*ret_worker = &engine->seats[i];
			return 0;
		}
	}
	if (n == engine->max_workers) {
		return ENGINE_E_BUSY;
	}
	if (bank_init(&engine->seats[n].bank, engine->tree.max_ids, engine->changes.keep) < 0) {
		return -ENOMEM;
	}
	engine->seats[n].engine = engine;
	*ret_worker = &engine->seats[n];
	pending_retune(&engine->pending, PENDING_STEP * (n + 1));
	/* Release: whoever counts this seat in finds its bank. */
	atomic_store_explicit(&engine->n_seats, n + 1, memory_order_release);
	return 0;
}

int engine_join(struct engine *engine, struct engine_worker **ret_worker)
{
	struct engine_worker *worker = NULL;
	int r;

	/* The mutex hands the seat's slots over: all their last writer did happens before what the next one does. */
	(void)pthread_mutex_lock(&engine->seats_mutex);
	r = take_seat(engine, &worker);
	if (r == 0) {
		worker->joined = true;
		worker->depth = 0;
		atomic_fetch_add_explicit(&engine->n_joined, 1, memory_order_relaxed);
		*ret_worker = worker;
	}
	(void)pthread_mutex_unlock(&engine->seats_mutex);
	return r;
}

void engine_leave(struct engine_worker *worker)
{
	struct engine *engine = worker->engine;

	/* Marks of this seat may be in the hands of a flush that is running, so this waits for one that is not. */
	flush_all(engine, FLUSH_NO_TIME);
	(void)pthread_mutex_lock(&engine->seats_mutex);
	worker->joined = false;
	atomic_fetch_sub_explicit(&engine->n_joined, 1, memory_order_relaxed);
	(void)pthread_mutex_unlock(&engine->seats_mutex);
}

void worker_settle(struct engine *engine, uint32_t id)
{
	uint32_t n = atomic_load_explicit(&engine->n_seats, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++) {
		struct slot *slot = bank_slot(&engine->seats[i].bank, id);
		int64_t growth;

		if (slot && slot_claim(slot, &growth)) {
			(void)plane_fold(&engine->planes, &engine->tree, id, growth);
		}
	}
}

void worker_deinit(struct engine_worker *worker)
{
	ledger_deinit(worker);
	bank_deinit(&worker->bank);
}

uint64_t worker_counted(const struct engine *engine, uint32_t id)
{
	uint32_t n = atomic_load_explicit(&engine->n_seats, memory_order_acquire);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct slot *slot = bank_slot(&engine->seats[i].bank, id);

		sum += slot ? slot_count(slot) : 0;
		RATION_HOOK();
	}
	return sum;
}

int64_t worker_own(const struct engine *engine, uint32_t id)
{
	return (int64_t)(tree_base_value(&engine->tree, id) + worker_counted(engine, id));
}

/* ---- adds ---- */

void engine_begin(struct engine_worker *worker)
{
	if (worker->depth++ == 0) {
		grace_enter();
	}
}

void engine_end(struct engine_worker *worker)
{
	if (--worker->depth == 0) {
		grace_leave();
	}
}

void worker_pause(struct engine_worker *worker)
{
	if (worker->depth > 0) {
		grace_leave();
	}
}

void worker_resume(struct engine_worker *worker)
{
	if (worker->depth > 0) {
		grace_enter();
	}
}

bool worker_fold(struct engine_worker *worker, uint32_t id, struct slot *slot, int64_t n)
{
	struct engine *engine = worker->engine;
	int64_t growth;
	bool far = false;

	/* Odd before the amount is in the slot: the flusher may leave it to us and waits for the line then. */
	fold_begin(&worker->fold);
	slot_put(slot, n);
	ledger_note(worker, id);
	if (slot_claim(slot, &growth)) {
		far = plane_fold(&engine->planes, &engine->tree, id, growth);
		state_count_own(&worker->folds);
	}
	fold_end(&worker->fold);
	return far;
}

static inline bool add_held(struct engine_worker *worker, uint32_t id, struct slot *slot, int64_t n)
{
	struct engine *engine = worker->engine;

	if (__builtin_expect(!slot_add(slot, n, engine->batch), 0)) {
		return false;
	}
	bank_mark(&worker->bank, id);
	/* |n| < batch here. */
	pending_note(&engine->pending, &worker->share, n < 0 ? -n : n);
	return true;
}

/*
 * The gate is closed and the slot's batch is reached: hold n back all the same. False: too much would be held back. The excess is noted
 * before the slot shows it (flush.c).
 */
static bool hold_excess(struct engine_worker *worker, uint32_t id, struct slot *slot, int64_t n)
{
	struct engine *engine = worker->engine;
	int64_t magnitude = n < 0 ? -n : n;
	int64_t held = gate_seat_excess(worker);

	if (magnitude + held >= GATE_EXCESS) {
		return false;
	}
	atomic_store_explicit(&worker->excess,
			      atomic_load_explicit(&worker->excess, memory_order_relaxed) +
				      (uint64_t)magnitude,
			      memory_order_release);
	slot_put(slot, n);
	bank_mark(&worker->bank, id);
	pending_note(&engine->pending, &worker->share, magnitude);
	return true;
}

/* All but the common case: first touch, batch reached, or the reference doesn't fit as it is. */
static __attribute__((noinline)) int add_slow(struct engine_worker *worker, struct engine_ref ref,
					      int64_t n)
{
	struct engine *engine = worker->engine;
	uint32_t life = tree_life(&engine->tree, ref.id);
	struct slot *slot;

	if (!(life & LIFE_LIVE) || life_ref(life) != ref.life) {
		state_count_own(&worker->add_gone);
		return ENGINE_E_GONE;
	}
	if (life & LIFE_CLOSED) {
		worker_pause(worker);
		remove_wait(engine);
		worker_resume(worker);
		return add_slow(worker, ref, n);
	}
	if (n < 0 && !(life & LIFE_GAUGE)) {
		state_count_own(&worker->add_negative);
		return ENGINE_E_NEGATIVE;
	}
	if ((life & LIFE_STRICT) || !strict_amount_is_small(n)) {
		return strict_add(worker, ref, n);
	}
	slot = bank_touch(&worker->bank, ref.id);
	if (!slot) {
		return -ENOMEM;
	}
	if (add_held(worker, ref.id, slot, n)) {
		return 0;
	}
	if (gate_closed(&engine->gate)) {
		if (hold_excess(worker, ref.id, slot, n)) {
			return 0;
		}
		worker_pause(worker);
		gate_wait(&engine->gate);
		worker_resume(worker);
		return add_slow(worker, ref, n);
	}
	if (worker_fold(worker, ref.id, slot, n) ||
	    ((life & LIFE_GAUGE) && strict_own_is_far(engine, ref.id, slot))) {
		strict_turn(worker, ref);
	}
	return 0;
}

static inline int add(struct engine_worker *worker, struct engine_ref ref, int64_t n)
{
	uint32_t life = tree_life(&worker->engine->tree, ref.id);

	if (__builtin_expect(life == ref.life && (n >= 0 || (life & LIFE_GAUGE)), 1)) {
		struct slot *slot = bank_slot(&worker->bank, ref.id);

		if (__builtin_expect(slot && add_held(worker, ref.id, slot, n), 1)) {
			return 0;
		}
	}
	return add_slow(worker, ref, n);
}

int engine_add(struct engine_worker *worker, struct engine_ref ref, int64_t n)
{
	return add(worker, ref, n);
}

/* How far ahead of its add a life word and a slot are asked for, and from how many ids on: those of fewer are in the cache anyway. */
#define AHEAD 32
#define AHEAD_IDS (1u << 14)

static inline void ask_ahead(const struct engine_worker *worker, uint32_t id)
{
	const struct tree *tree = &worker->engine->tree;

	if (__builtin_expect(id < tree->max_ids, 1)) {
		const struct life *lives = atomic_load_explicit(&tree->lives[id >> TREE_CHUNK_BITS],
								memory_order_relaxed);
		const struct slot *slot = bank_slot(&worker->bank, id);

		if (lives) {
			__builtin_prefetch(&lives[id & (TREE_CHUNK - 1)], 0);
		}
		if (slot) {
			__builtin_prefetch(slot, 1);
		}
	}
}

size_t engine_add_many(struct engine_worker *worker, const struct engine_item *items, size_t n,
		       engine_add_failed failed, void *ctx)
{
	uint32_t n_ids = atomic_load_explicit(&worker->engine->tree.n_ids, memory_order_relaxed);
	size_t to_ask = n_ids >= AHEAD_IDS ? n : 0, asked = 0;
	size_t n_failed = 0;

	for (size_t i = 0; i < n; i++) {
		int r;

		for (; asked < to_ask && asked <= i + AHEAD; asked++) {
			ask_ahead(worker, items[asked].ref.id);
		}
		r = add(worker, items[i].ref, items[i].n);
		if (__builtin_expect(r != 0, 0)) {
			n_failed++;
			if (failed) {
				failed(ctx, i, r);
			}
		}
	}
	return n_failed;
}
