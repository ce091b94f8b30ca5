#include "lib/engine/remove.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/engine/state.h"
#include "lib/engine/strict.h"
#include "lib/engine/worker.h"

/* Counters that one grace period removes. */
#define REMOVE_AT_ONCE 256u

/* Own values of this size leave their place to an exact removal: REMOVE_AT_ONCE of them and the parent's stay below TREE_EDGE. */
#define REMOVE_OWN_SMALL (TREE_EDGE / (2 * REMOVE_AT_ONCE))

void remove_deinit(struct engine *engine)
{
	uint32_t n = (engine->tree.max_ids + TREE_CHUNK - 1) >> TREE_CHUNK_BITS;

	for (uint32_t i = 0; engine->sweep.chunks && i < n; i++) {
		free(engine->sweep.chunks[i]);
	}
	free(engine->sweep.chunks);
	(void)pthread_mutex_destroy(&engine->sweep.mutex);
	while (engine->retired) {
		struct name *name = engine->retired;

		engine->retired = name->next_gone;
		registry_release(engine->registry, name);
	}
}

void remove_wait(struct engine *engine)
{
	registry_lock(engine->registry);
	registry_unlock(engine->registry);
}

/* ---- removing, under the registry's lock ---- */

static void forget(struct engine *engine, struct name *name)
{
	struct metric *metric = metrics_find(&engine->metrics, name->path, name->len);

	if (name->parent) {
		/* All of it is folded. Release: pairs with tree_own; the total has it. */
		atomic_fetch_add_explicit(&tree_base(&engine->tree, name->parent->id)->word,
					  (uint64_t)worker_own(engine, name->id),
					  memory_order_release);
	}
	planes_bury(&engine->planes, &engine->tree, &engine->rules, name);
	if (metric) {
		metric->n_counters--;
		if (metric->policy.kind == ENGINE_GAUGE) {
			atomic_fetch_sub_explicit(&engine->n_gauges, 1, memory_order_relaxed);
		}
	}
	atomic_fetch_sub_explicit(&engine->n_counters, 1, memory_order_relaxed);
	changes_gone(engine, name);
}

/* Leaves all of them, and their parents not among them. -ENOMEM: nothing has happened. */
static int remove_leaves(struct engine *engine, struct name *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (names[i]->parent && tree_base_reserve(&engine->tree, names[i]->parent->id) < 0) {
			return -ENOMEM;
		}
	}
	if (changes_reserve(&engine->changes, n) < 0) {
		return -ENOMEM;
	}
	fold_begin(&engine->keeper);
	for (size_t i = 0; i < n; i++) {
		registry_unlink(engine->registry, names[i]);
		tree_kill(&engine->tree, names[i]->id);
		RATION_HOOK();
	}
	grace_wait();
	for (size_t i = 0; i < n; i++) {
		worker_settle(engine, names[i]->id);
	}
	fold_end(&engine->keeper);
	for (size_t i = 0; i < n; i++) {
		forget(engine, names[i]);
	}
	state_count(&engine->removed, n);
	return 0;
}

static bool is_leaf(const struct name *name)
{
	return atomic_load_explicit(&name->first_child, memory_order_acquire) == NULL;
}

/* Would the parent's own value still be an int64? Near the ends that is only certain once the metric is strict. */
static int check_own(struct engine *engine, const struct name *name)
{
	for (;;) {
		uint32_t id = name->id;
		int64_t sum;
		bool over;

		if (!name->parent) {
			return 0;
		}
		over = __builtin_add_overflow(worker_own(engine, id),
					      worker_own(engine, name->parent->id), &sum);
		if (!over && !tree_far(sum)) {
			return 0;
		}
		if (tree_life(&engine->tree, id) & LIFE_STRICT) {
			return over ? ENGINE_E_OVERFLOW : 0;
		}
		strict_turn_locked(engine,
				   atomic_load_explicit(&tree_tally(&engine->tree, id)->root,
							memory_order_relaxed));
	}
}

static int remove_locked(struct engine *engine, const char *path, size_t len)
{
	struct name *name;
	int r;

	grace_enter();
	name = registry_find(engine->registry, path, len);
	grace_leave();
	if (!name) {
		return ENGINE_E_NOT_FOUND;
	}
	if (!is_leaf(name) || plane_leased(&engine->planes, name->id) != 0) {
		return ENGINE_E_BUSY;
	}
	r = check_own(engine, name);
	return r == 0 ? remove_leaves(engine, &name, 1) : r;
}

int engine_remove(struct engine *engine, const char *path, size_t len)
{
	int r;

	if (path_check(path, len, NULL) != PATH_OK) {
		return ENGINE_E_PATH;
	}
	registry_lock(engine->registry);
	r = remove_locked(engine, path, len);
	registry_unlock(engine->registry);
	return r;
}

/* ---- expiring ---- */

static struct idle *idle_of(struct engine *engine, uint32_t id)
{
	struct idle **chunk;

	if (!engine->sweep.chunks) {
		uint32_t n = (engine->tree.max_ids + TREE_CHUNK - 1) >> TREE_CHUNK_BITS;

		engine->sweep.chunks = calloc(n, sizeof(struct idle *));
		if (!engine->sweep.chunks) {
			return NULL;
		}
	}
	chunk = &engine->sweep.chunks[id >> TREE_CHUNK_BITS];
	if (!*chunk) {
		*chunk = calloc(TREE_CHUNK, sizeof(**chunk));
	}
	return *chunk ? &(*chunk)[id & (TREE_CHUNK - 1)] : NULL;
}

static bool own_is_small(const struct engine *engine, uint32_t id)
{
	int64_t own = worker_own(engine, id);

	return own > -REMOVE_OWN_SMALL && own < REMOVE_OWN_SMALL;
}

/* Unchanged since at least `after_ns` ago, as far as the sweeps saw. No memory to remember it in: not idle. */
static bool is_idle(struct engine *engine, uint32_t id, int64_t after_ns, int64_t now_ns)
{
	struct idle *idle = idle_of(engine, id);
	uint32_t life = tree_life(&engine->tree, id);
	int64_t own = worker_own(engine, id);
	int64_t since;

	if (!idle) {
		return false;
	}
	/* Another counter by now, one that has changed, or a clock that stepped back. */
	if (idle->life != life_ref(life) || idle->own != own || now_ns < idle->since_ns) {
		*idle = (struct idle){ life_ref(life), own, now_ns };
		return false;
	}
	return !__builtin_sub_overflow(now_ns, idle->since_ns, &since) && since >= after_ns;
}

/* Has it used some of a limit that can refuse? Its successor would begin with all of that again. */
static bool is_charged(const struct limit *limit, const struct quota_time *time)
{
	struct quota_reading reading;

	quota_read(&limit->node, time, &reading);
	return reading.usage > 0 &&
	       (reading.window.kind == WINDOW_RATE || reading.limits.max != QUOTA_NONE);
}

/*
 * Limits that somebody set for this very path; limits of templates for as long as some of them is used; units that are leased; what is
 * held of a gauge that charges are made to: all of these outlast any time without a change.
 */
static bool is_wanted(const struct engine *engine, const struct name *name)
{
	struct limit *limits[ENGINE_MAX_PLANES];
	struct limit *limit = plane_first(&engine->planes, name->id);
	struct quota_time time = planes_time(&engine->planes);

	for (; limit; limit = plane_next(limit)) {
		if (limit->exact || is_charged(limit, &time)) {
			return true;
		}
	}
	if (plane_leased(&engine->planes, name->id) != 0) {
		return true;
	}
	return (tree_life(&engine->tree, name->id) & LIFE_GAUGE) &&
	       worker_own(engine, name->id) != 0 &&
	       plane_nearest(&engine->planes, &engine->tree, name->id, limits) > 0;
}

/*
 * A leaf below a metric that asks for it, idle, and far from the ends of int64 like its parent: no check is needed at its removal.
 */
static bool may_go(struct engine *engine, const struct name *name, int64_t now_ns)
{
	const struct metric *metric;

	if (!name->parent || !is_leaf(name)) {
		return false;
	}
	metric = metrics_find(&engine->metrics, name->path, name->len);
	return metric && metric->policy.expire_after_ns > 0 &&
	       is_idle(engine, name->id, metric->policy.expire_after_ns, now_ns) &&
	       !is_wanted(engine, name) && own_is_small(engine, name->id) &&
	       own_is_small(engine, name->parent->id);
}

/* Of these, which may go, those that still may when nobody can change them any more are left, and closed: how many. The others are open. */
static size_t close_all(struct engine *engine, struct name **names, size_t n, int64_t now_ns)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		tree_close(&engine->tree, names[i]->id, true);
	}
	RATION_HOOK();
	grace_wait();
	for (size_t i = 0; i < n; i++) {
		if (may_go(engine, names[i], now_ns)) {
			names[left++] = names[i];
		} else {
			tree_close(&engine->tree, names[i]->id, false);
		}
	}
	return left;
}

/* The lock keeps the names. Without memory they stay for another sweep. */
static size_t expire_all(struct engine *engine, struct name **names, size_t n, int64_t now_ns)
{
	n = n > 0 ? close_all(engine, names, n, now_ns) : 0;
	if (n == 0 || remove_leaves(engine, names, n) == 0) {
		return n;
	}
	for (size_t i = 0; i < n; i++) {
		tree_close(&engine->tree, names[i]->id, false);
	}
	return 0;
}

/* Looks at up to `budget` names from the cursor on; under the registry's lock. False: all have been looked at. */
static bool sweep_some(struct engine *engine, int64_t now_ns, size_t budget, size_t *ret_removed)
{
	struct name *names[REMOVE_AT_ONCE];
	struct sweep *sweep = &engine->sweep;
	struct registry_walk walk;
	struct name *name, *last = NULL;
	size_t n = 0;
	bool more;

	grace_enter();
	registry_walk_init(&walk, engine->registry, NULL, UINT32_MAX);
	name = sweep->resume ? registry_resume(&walk, &sweep->cursor) : registry_first(&walk);
	for (; name && budget > 0; name = registry_next(&walk, name), budget--) {
		if (may_go(engine, name, now_ns)) {
			names[n++] = name;
		} else {
			last = name;
		}
	}
	more = name != NULL;
	/* Only from what stays can it go on without looking for its place; before the first that stays everything is gone. */
	sweep->resume = more && (last || sweep->resume);
	if (last) {
		registry_save(last, &sweep->cursor);
	}
	grace_leave();
	RATION_HOOK();
	*ret_removed = expire_all(engine, names, n, now_ns);
	return more;
}

size_t engine_expire(struct engine *engine, int64_t now_ns, size_t budget)
{
	size_t total = 0;
	bool more = true;

	if (!metrics_expire(&engine->metrics)) {
		return 0;
	}
	(void)pthread_mutex_lock(&engine->sweep.mutex);
	while (more && budget > 0) {
		size_t some = budget < REMOVE_AT_ONCE ? budget : REMOVE_AT_ONCE;
		size_t n;

		registry_lock(engine->registry);
		more = sweep_some(engine, now_ns, some, &n);
		registry_unlock(engine->registry);
		total += n;
		budget -= some;
	}
	(void)pthread_mutex_unlock(&engine->sweep.mutex);
	state_count(&engine->expired, total);
	return total;
}
