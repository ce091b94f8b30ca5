/* set: an own value by order. */
#include "lib/engine/intern.h"
#include "lib/engine/keep.h"
#include "lib/engine/ledger.h"
#include "lib/engine/state.h"
#include "lib/engine/strict.h"
#include "lib/engine/worker.h"

/*
 * The own value becomes `own` by one exchange of the base; returns by how much that is more. What charges, uncharges and removals do to it
 * meanwhile comes before or after; what an add does, before or after its slot was looked at.
 */
static int64_t exchange(struct engine *engine, uint32_t id, int64_t own)
{
	_Atomic(uint64_t) *base = &tree_base(&engine->tree, id)->word;
	uint64_t is = atomic_load_explicit(base, memory_order_relaxed);
	uint64_t counted;

	do {
		counted = worker_counted(engine, id);
		RATION_HOOK();
	} while (!atomic_compare_exchange_weak_explicit(
		base, &is, (uint64_t)own - counted, memory_order_relaxed, memory_order_relaxed));
	return (int64_t)((uint64_t)own - counted - is);
}

/* Large ones: of a strict metric, to which nobody adds or charges but under the lock that we hold. */
static bool fits(struct engine *engine, uint32_t id, int64_t own)
{
	int64_t growth;

	return !__builtin_sub_overflow(own, worker_own(engine, id), &growth) &&
	       strict_fits(engine, id, growth);
}

static int set_own(struct engine_worker *worker, uint32_t id, int64_t own)
{
	struct engine *engine = worker->engine;
	int64_t growth;
	bool far;

	if (!strict_amount_is_small(own) || !strict_amount_is_small(worker_own(engine, id))) {
		strict_ensure(engine, id);
	}
	if ((tree_life(&engine->tree, id) & LIFE_STRICT) && !fits(engine, id, own)) {
		return ENGINE_E_OVERFLOW;
	}
	fold_begin(&worker->fold);
	/* What is held back is part of what the counter was: its readers must not see it twice over, below 0 for a while. */
	worker_settle(engine, id);
	growth = exchange(engine, id, own);
	ledger_write(worker, id, growth, 0, 0);
	far = tree_raise(&engine->tree, id, growth) || strict_base_is_far(engine, id);
	plane_force_held(&engine->planes, &engine->tree, id, growth);
	fold_end(&worker->fold);
	if (far) {
		strict_ensure(engine, id);
	}
	return 0;
}

static int set_locked(struct engine_worker *worker, const char *path, size_t len, int64_t own,
		      const struct quota_time *time)
{
	struct engine *engine = worker->engine;
	const struct metric *metric = metrics_find(&engine->metrics, path, len);
	struct name *name;
	int r;

	/* Only declared metrics are gauges. */
	if (own < 0 && (!metric || metric->policy.kind != ENGINE_GAUGE)) {
		return ENGINE_E_NEGATIVE;
	}
	r = intern_exact(engine, path, len, time->wall_ns, &name);
	if (r == 0) {
		r = ledger_reserve(worker, name->id);
	}
	if (r == 0) {
		r = tree_base_reserve(&engine->tree, name->id);
	}
	return r == 0 ? set_own(worker, name->id, own) : r;
}

int engine_set(struct engine_worker *worker, const char *path, size_t len, int64_t own,
	       struct quota_time time)
{
	struct engine *engine = worker->engine;
	int r;

	if (path_check(path, len, NULL) != PATH_OK) {
		return ENGINE_E_PATH;
	}
	planes_set_time(&engine->planes, &time);
	worker_pause(worker);
	registry_lock(engine->registry);
	r = set_locked(worker, path, len, own, &time);
	registry_unlock(engine->registry);
	worker_resume(worker);
	return r;
}
