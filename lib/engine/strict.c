#include "lib/engine/strict.h"

#include <errno.h>

#include "lib/engine/state.h"
#include "lib/engine/worker.h"

/*
 * As long as neither the base nor any slot's count is larger than this, the sum is below the edge. Every fold looks at its own slot; a
 * base changes by removals and charges, which look themselves.
 */
static const int64_t part = TREE_EDGE / (ENGINE_MAX_WORKERS + 1);

bool strict_base_is_far(const struct engine *engine, uint32_t id)
{
	int64_t base = (int64_t)tree_base_value(&engine->tree, id);

	return (base <= -part || base >= part) && tree_far(worker_own(engine, id));
}

bool strict_own_is_far(const struct engine *engine, uint32_t id, const struct slot *slot)
{
	int64_t base = (int64_t)tree_base_value(&engine->tree, id);
	int64_t count = (int64_t)slot_count(slot);

	if (base > -part && base < part && count > -part && count < part) {
		return false;
	}
	return tree_far(worker_own(engine, id));
}

static bool belongs(const struct engine *engine, uint32_t id, uint32_t root)
{
	return (tree_life(&engine->tree, id) & LIFE_LIVE) &&
	       atomic_load_explicit(&tree_tally(&engine->tree, id)->root, memory_order_relaxed) ==
		       root;
}

/*
 * Looks at all counters there are, twice; it happens once in a metric's life. Nobody adds to the metric fast after the grace period, and the
 * flusher leaves its slots alone; until they are folded the keeper's line makes exact readers wait.
 */
void strict_turn_locked(struct engine *engine, uint32_t root)
{
	uint32_t n = atomic_load_explicit(&engine->tree.n_ids, memory_order_relaxed);

	fold_begin(&engine->keeper);
	for (uint32_t id = 0; id < n; id++) {
		if (belongs(engine, id, root)) {
			tree_mark_strict(&engine->tree, id);
		}
	}
	grace_wait();
	for (uint32_t id = 0; id < n; id++) {
		if (belongs(engine, id, root)) {
			worker_settle(engine, id);
		}
	}
	fold_end(&engine->keeper);
}

void strict_ensure(struct engine *engine, uint32_t id)
{
	if (!(tree_life(&engine->tree, id) & LIFE_STRICT)) {
		strict_turn_locked(engine,
				   atomic_load_explicit(&tree_tally(&engine->tree, id)->root,
							memory_order_relaxed));
	}
}

/* Under the registry's lock, so that lives stand still. The counter's metric is strict when this returns true. */
static bool turn(struct engine *engine, struct engine_ref ref)
{
	uint32_t life = tree_life(&engine->tree, ref.id);

	if (!(life & LIFE_LIVE) || life_ref(life) != ref.life) {
		return false;
	}
	strict_ensure(engine, ref.id);
	return true;
}

void strict_turn(struct engine_worker *worker, struct engine_ref ref)
{
	struct engine *engine = worker->engine;

	worker_pause(worker);
	registry_lock(engine->registry);
	(void)turn(engine, ref);
	registry_unlock(engine->registry);
	worker_resume(worker);
}

bool strict_fits(const struct engine *engine, uint32_t id, int64_t n)
{
	int64_t sum;

	if (__builtin_add_overflow(worker_own(engine, id), n, &sum)) {
		return false;
	}
	while (id != TREE_NONE) {
		struct tally *tally = tree_tally(&engine->tree, id);

		if (__builtin_add_overflow(
			    atomic_load_explicit(&tally->total, memory_order_relaxed), n, &sum)) {
			return false;
		}
		id = tree_parent(&engine->tree, id);
	}
	return true;
}

static int add_locked(struct engine_worker *worker, struct engine_ref ref, int64_t n)
{
	struct slot *slot = bank_touch(&worker->bank, ref.id);

	if (!slot) {
		return -ENOMEM;
	}
	if (!turn(worker->engine, ref)) {
		state_count_own(&worker->add_gone);
		return ENGINE_E_GONE;
	}
	if (!strict_fits(worker->engine, ref.id, n)) {
		state_count_own(&worker->add_overflow);
		return ENGINE_E_OVERFLOW;
	}
	(void)worker_fold(worker, ref.id, slot, n);
	return 0;
}

int strict_add(struct engine_worker *worker, struct engine_ref ref, int64_t n)
{
	struct registry *registry = worker->engine->registry;
	int r;

	worker_pause(worker);
	registry_lock(registry);
	r = add_locked(worker, ref, n);
	registry_unlock(registry);
	worker_resume(worker);
	return r;
}
