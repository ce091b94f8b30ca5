#include "lib/engine/intern.h"

#include <errno.h>
#include <string.h>

#include "lib/engine/state.h"

/* A few for ENGINE_OTHER of metrics that want to count what is past the ceiling; places cost only address space until they are used. */
uint32_t intern_reserve(uint32_t max_counters, bool keep)
{
	uint32_t left = ENGINE_MAX_COUNTERS_LIMIT - max_counters;
	uint32_t reserve = 2 * ENGINE_MAX_METRICS + (keep ? max_counters : 0);

	return reserve < left ? reserve : left;
}

/* Which ceilings hold for names that are being made. */
struct creation {
	struct engine *engine;
	struct metric *metric; /* NULL: never declared */
	bool past_metric_ceiling, past_engine_ceiling;
	bool restored; /* whoever keeps the counts has it already */
};

static uint32_t reference_of(uint32_t life)
{
	return life_ref(life);
}

static int check_ceilings(const struct creation *creation, size_t n)
{
	struct engine *engine = creation->engine;
	const struct metric *metric = creation->metric;

	if (metric && metric->policy.max_counters > 0 && !creation->past_metric_ceiling &&
	    metric->n_counters + n > metric->policy.max_counters) {
		return ENGINE_E_METRIC_FULL;
	}
	if (!creation->past_engine_ceiling &&
	    atomic_load_explicit(&engine->n_counters, memory_order_relaxed) + n >
		    engine->max_counters) {
		return ENGINE_E_FULL;
	}
	return 0;
}

static int prepare(void *ctx, struct name *const *names, size_t n_names)
{
	struct creation *creation = ctx;
	struct engine *engine = creation->engine;
	const struct metric *metric = creation->metric;
	bool gauge = metric && metric->policy.kind == ENGINE_GAUGE;
	struct plane_births births;
	int r = check_ceilings(creation, n_names);

	if (r == 0) {
		r = changes_reserve(&engine->changes, n_names);
	}
	for (size_t i = 0; r == 0 && i < n_names; i++) {
		r = tree_reserve(&engine->tree, names[i]->id);
	}
	if (r == 0) {
		r = planes_conceive(&engine->planes, &engine->rules, names, n_names, gauge,
				    &births);
	}
	if (r != 0) {
		return r;
	}
	for (size_t i = 0; i < n_names; i++) {
		const struct name *parent = names[i]->parent;
		uint32_t id = names[i]->id;

		tree_start(&engine->tree, id, parent ? parent->id : TREE_NONE,
			   gauge ? LIFE_GAUGE : 0);
		if (!creation->restored || i + 1 < n_names) {
			changes_born(&engine->changes, names[i]);
		}
	}
	planes_bear(&engine->planes, &engine->tree, &births);
	/* The kind can't change while there are counters, so the policy's is all its counters'. */
	if (creation->metric) {
		creation->metric->n_counters += (uint32_t)n_names;
	}
	atomic_fetch_add_explicit(&engine->n_gauges, gauge ? (uint32_t)n_names : 0,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&engine->n_counters, (uint32_t)n_names, memory_order_relaxed);
	state_count(&engine->created, n_names);
	return 0;
}

static int create(struct creation *creation, const char *path, size_t len, int64_t now_ns,
		  struct name **ret_name)
{
	int r = registry_create(creation->engine->registry, path, len, now_ns, prepare, creation,
				ret_name);

	/* The registry is full when even the reserve is used up. */
	static_assert((int)REGISTRY_E_FULL != (int)ENGINE_E_FULL &&
			      (int)REGISTRY_E_FULL != (int)ENGINE_E_METRIC_FULL,
		      "prepare's answers are none of the registry's own");
	return r == REGISTRY_E_FULL ? ENGINE_E_FULL : r;
}

/* ---- past a ceiling ---- */

static bool other_path(char path[PATH_MAX_BYTES], const char *parent, size_t len, size_t *ret_len)
{
	return path_child(path, parent, len, ENGINE_OTHER, strlen(ENGINE_OTHER), ret_len) ==
	       PATH_OK;
}

struct name *intern_find_other(struct engine *engine, const char *parent, size_t len)
{
	char path[PATH_MAX_BYTES];
	size_t path_len;

	return other_path(path, parent, len, &path_len)
		       ? registry_find(engine->registry, path, path_len)
		       : NULL;
}

static int create_other(struct creation *creation, const char *parent, size_t len, int64_t now_ns,
			struct name **ret_name)
{
	char path[PATH_MAX_BYTES];
	size_t path_len;

	return other_path(path, parent, len, &path_len)
		       ? create(creation, path, path_len, now_ns, ret_name)
		       : ENGINE_E_FULL;
}

/*
 * Where to count a path that was refused: under the nearest ancestor that exists, ENGINE_OTHER. These don't count towards the metric's
 * ceiling: there is at most one for each of its counters. They do towards the engine's, except those directly under a metric, for which
 * there is a reserve; so a metric with the overflow policy always has one place at least.
 */
static int find_other(struct creation *creation, const char *path, size_t len, int64_t now_ns,
		      struct name **ret_name)
{
	struct registry *registry = creation->engine->registry;
	const char *slash = memchr(path, '/', len);

	creation->past_metric_ceiling = true;
	if (slash) {
		for (size_t at = path_parent(path, len); at > 0; at = path_parent(path, at)) {
			struct name *parent;
			int r;

			grace_enter();
			parent = registry_find(registry, path, at);
			grace_leave();
			if (!parent) {
				continue;
			}
			r = create_other(creation, path, at, now_ns, ret_name);
			if (r == 0) {
				return 0;
			}
		}
		creation->past_engine_ceiling = true;
		return create_other(creation, path, (size_t)(slash - path), now_ns, ret_name);
	}
	creation->past_engine_ceiling = true;
	return create(creation, path, len, now_ns, ret_name);
}

/* ---- intern ---- */

static bool find(struct engine *engine, const char *path, size_t len, struct engine_ref *ret_ref)
{
	struct name *name;
	uint32_t life = 0;
	uint32_t id = 0;

	grace_enter();
	name = registry_find(engine->registry, path, len);
	if (name) {
		id = name->id;
		/* Being removed: no longer LIVE, and the lock decides what is there afterwards. */
		life = tree_life(&engine->tree, id);
	}
	grace_leave();
	if (!(life & LIFE_LIVE)) {
		return false;
	}
	*ret_ref = (struct engine_ref){ id, reference_of(life) };
	return true;
}

static int make(struct engine *engine, const char *path, size_t len, int64_t now_ns,
		struct engine_ref *ret_ref)
{
	struct creation creation = {
		.engine = engine,
		.metric = metrics_find(&engine->metrics, path, len),
	};
	struct name *name = NULL;
	int r = create(&creation, path, len, now_ns, &name);

	if (r == ENGINE_E_FULL || r == ENGINE_E_METRIC_FULL) {
		if (creation.metric && creation.metric->policy.overflow &&
		    find_other(&creation, path, len, now_ns, &name) == 0) {
			state_count(&engine->overflowed, 1);
			r = 0;
		} else {
			state_count(&engine->refusals, 1);
			refused_note(&engine->refused, path, len);
		}
	}
	if (r == 0) {
		*ret_ref = (struct engine_ref){ name->id,
						reference_of(tree_life(&engine->tree, name->id)) };
	}
	return r;
}

int intern_exact(struct engine *engine, const char *path, size_t len, int64_t now_ns,
		 struct name **ret_name)
{
	struct creation creation = {
		.engine = engine,
		.metric = metrics_find(&engine->metrics, path, len),
	};

	return create(&creation, path, len, now_ns, ret_name);
}

int intern_restored(struct engine *engine, const char *path, size_t len, int64_t born_ns,
		    struct name **ret_name)
{
	struct creation creation = {
		.engine = engine,
		.metric = metrics_find(&engine->metrics, path, len),
		.past_metric_ceiling = true,
		.past_engine_ceiling = true,
		.restored = true,
	};
	int r = create(&creation, path, len, born_ns, ret_name);

	if (r == 0) {
		changes_known(&engine->changes, *ret_name);
	}
	return r;
}

int engine_intern(struct engine *engine, const char *path, size_t len, int64_t now_ns,
		  struct engine_ref *ret_ref)
{
	int r;

	if (find(engine, path, len, ret_ref)) {
		return 0;
	}
	if (path_check(path, len, NULL) != PATH_OK) {
		return ENGINE_E_PATH;
	}
	registry_lock(engine->registry);
	r = make(engine, path, len, now_ns, ret_ref);
	registry_unlock(engine->registry);
	return r;
}

/* ---- metrics ---- */

static uint32_t counters_of(const struct engine *engine, uint32_t root)
{
	uint32_t n_ids = atomic_load_explicit(&engine->tree.n_ids, memory_order_relaxed);
	uint32_t n = 0;

	for (uint32_t id = 0; id < n_ids; id++) {
		n += (tree_life(&engine->tree, id) & LIFE_LIVE) &&
		     atomic_load_explicit(&tree_tally(&engine->tree, id)->root,
					  memory_order_relaxed) == root;
	}
	return n;
}

static enum engine_kind kind_of(const struct engine *engine, uint32_t id)
{
	return tree_life(&engine->tree, id) & LIFE_GAUGE ? ENGINE_GAUGE : ENGINE_COUNTER;
}

static int declare_locked(struct engine *engine, const char *name, size_t len,
			  const struct engine_metric *policy)
{
	struct metric *metric;
	struct name *root;
	bool is_new;
	int r;

	grace_enter();
	root = registry_find(engine->registry, name, len);
	grace_leave();
	if (root && kind_of(engine, root->id) != policy->kind) {
		return ENGINE_E_KIND;
	}
	r = metrics_declare(&engine->metrics, name, len, policy, &metric, &is_new);
	if (r == 0 && is_new && root) {
		metric->n_counters = counters_of(engine, root->id);
	}
	return r;
}

int engine_declare(struct engine *engine, const char *name, size_t len,
		   const struct engine_metric *metric)
{
	int r;

	if (path_check_segment(name, len, NULL) != PATH_OK) {
		return ENGINE_E_PATH;
	}
	if ((metric->kind != ENGINE_COUNTER && metric->kind != ENGINE_GAUGE) ||
	    metric->expire_after_ns < 0) {
		return -EINVAL;
	}
	registry_lock(engine->registry);
	r = declare_locked(engine, name, len, metric);
	registry_unlock(engine->registry);
	return r;
}

int engine_metric(struct engine *engine, const char *name, size_t len,
		  struct engine_metric *ret_metric)
{
	struct name *root;
	int r = ENGINE_E_NOT_FOUND;

	if (path_check_segment(name, len, NULL) != PATH_OK) {
		return ENGINE_E_NOT_FOUND;
	}
	if (metrics_policy(&engine->metrics, name, len, ret_metric)) {
		return 0;
	}
	grace_enter();
	root = registry_find(engine->registry, name, len);
	if (root) {
		*ret_metric = (struct engine_metric){ .kind = kind_of(engine, root->id) };
		r = 0;
	}
	grace_leave();
	return r;
}

void engine_metrics(struct engine *engine, engine_metric_fn metric, void *ctx)
{
	metrics_each(&engine->metrics, metric, ctx);
}
