/* restore: counters as they were, before anybody adds. */
#include "lib/engine/intern.h"
#include "lib/engine/keep.h"
#include "lib/engine/state.h"
#include "lib/engine/strict.h"
#include "lib/engine/worker.h"

/* Nobody else is here, so what fits stays so. */
static int restore_own(struct engine *engine, uint32_t id, int64_t own)
{
	unsigned met;

	if (own == 0) {
		return 0;
	}
	if (!strict_amount_is_small(own)) {
		strict_ensure(engine, id);
	}
	if ((tree_life(&engine->tree, id) & LIFE_STRICT) && !strict_fits(engine, id, own)) {
		return ENGINE_E_OVERFLOW;
	}
	met = tree_climb(&engine->tree, id, own);
	atomic_fetch_add_explicit(&tree_tally(&engine->tree, id)->base, (uint64_t)own,
				  memory_order_relaxed);
	if (met & TREE_MET_LIMITS) {
		plane_force_held(&engine->planes, &engine->tree, id, own);
	}
	if ((met & TREE_MET_EDGE) || strict_base_is_far(engine, id)) {
		strict_ensure(engine, id);
	}
	return 0;
}

static int restore_ahead(struct engine *engine, uint32_t id, int64_t ahead)
{
	int r;

	if (ahead == 0) {
		return 0;
	}
	r = plane_lease_reserve(&engine->planes, &engine->tree, id);
	if (r == 0) {
		plane_lease(&engine->planes, &engine->tree, id, ahead);
		plane_force_held(&engine->planes, &engine->tree, id, ahead);
	}
	return r;
}

static int restore_locked(struct engine *engine, const char *path, size_t len, int64_t own,
			  int64_t ahead, int64_t born_ns, uint32_t *ret_id)
{
	struct name *name;
	int r = intern_restored(engine, path, len, born_ns, &name);

	if (r == 0) {
		r = restore_own(engine, name->id, own);
	}
	if (r == 0) {
		r = restore_ahead(engine, name->id, ahead);
	}
	if (r == 0 && ret_id) {
		*ret_id = name->id;
	}
	return r;
}

int engine_restore(struct engine *engine, const char *path, size_t len, int64_t own, int64_t ahead,
		   int64_t born_ns, uint32_t *ret_id)
{
	int r;

	if (path_check(path, len, NULL) != PATH_OK) {
		return ENGINE_E_PATH;
	}
	registry_lock(engine->registry);
	r = restore_locked(engine, path, len, own, ahead, born_ns, ret_id);
	registry_unlock(engine->registry);
	return r;
}
