/* restore: counters as they were, before anybody adds. */
#include "lib/engine/restore.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/engine/intern.h"
#include "lib/engine/keep.h"
#include "lib/engine/state.h"
#include "lib/engine/strict.h"
#include "lib/engine/worker.h"

/* Nobody else is here, so what fits stays so. */
static void put_own(struct engine *engine, uint32_t id, int64_t own)
{
	unsigned met = tree_grow(&engine->tree, id, own);

	if (met & TREE_MET_LIMITS) {
		plane_force_held(&engine->planes, &engine->tree, id, own);
	}
	if ((met & TREE_MET_EDGE) || strict_base_is_far(engine, id)) {
		strict_ensure(engine, id);
	}
}

static int wait_for_rest(struct late *late, uint32_t id, int64_t own)
{
	if (late->n == late->room) {
		size_t room = late->room > 0 ? 2 * late->room : 16;
		struct late_own *owns = reallocarray(late->owns, room, sizeof(*owns));

		if (!owns) {
			return -ENOMEM;
		}
		late->owns = owns;
		late->room = room;
	}
	late->owns[late->n++] = (struct late_own){ id, own };
	return 0;
}

/* To be asked before it is put; small ones of metrics that are not strict always do. */
static bool fits(struct engine *engine, uint32_t id, int64_t own)
{
	if (!strict_amount_is_small(own)) {
		strict_ensure(engine, id);
	}
	return !(tree_life(&engine->tree, id) & LIFE_STRICT) || strict_fits(engine, id, own);
}

static int restore_own(struct engine *engine, uint32_t id, int64_t own)
{
	if (own == 0) {
		return 0;
	}
	if (tree_base_reserve(&engine->tree, id) < 0) {
		return -ENOMEM;
	}
	if (!fits(engine, id, own)) {
		return wait_for_rest(&engine->late, id, own);
	}
	put_own(engine, id, own);
	return 0;
}

/* Whatever fits next. Of children of one parent some always do if all of them fit together: those of the other sign than the total. */
int restore_late(struct engine *engine)
{
	struct late *late = &engine->late;
	bool more = true;

	while (more) {
		size_t n = 0;

		for (size_t i = 0; i < late->n; i++) {
			if (fits(engine, late->owns[i].id, late->owns[i].own)) {
				put_own(engine, late->owns[i].id, late->owns[i].own);
			} else {
				late->owns[n++] = late->owns[i];
			}
		}
		more = n > 0 && n < late->n;
		late->n = n;
	}
	return late->n == 0 ? 0 : ENGINE_E_OVERFLOW;
}

void restore_deinit(struct late *late)
{
	free(late->owns);
}

static int restore_ahead(struct engine *engine, uint32_t id, int64_t ahead)
{
	int r;

	if (ahead == 0) {
		return 0;
	}
	r = plane_lease_reserve(&engine->planes, &engine->tree, id);
	if (r == 0) {
		plane_lease_forfeit(&engine->planes, &engine->tree, id, ahead);
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

/* ---- leases ---- */

/* Up to n units; NULL has none. */
static int64_t claim(struct engine *engine, const struct name *name, int64_t n)
{
	return name ? plane_lease_claim(&engine->planes, name->id, n) : 0;
}

int engine_restore_lease(struct engine *engine, const char *path, size_t len, int64_t units)
{
	if (path_check(path, len, NULL) != PATH_OK) {
		return ENGINE_E_PATH;
	}
	grace_enter();
	units -= claim(engine, registry_find(engine->registry, path, len), units);
	while (units > 0 && (len = path_parent(path, len)) > 0) {
		units -= claim(engine, intern_find_other(engine, path, len), units);
		units -= claim(engine, registry_find(engine->registry, path, len), units);
	}
	grace_leave();
	return units > 0 ? ENGINE_E_UNDERFLOW : 0;
}
