#include "lib/engine/usage.h"

#include <stdlib.h>

#include "lib/engine/keep.h"
#include "lib/engine/state.h"

void usage_deinit(struct usage *usage)
{
	free(usage->changed);
}

static bool is_kept(const struct limit *limit)
{
	return limit->node.kind != WINDOW_NONE;
}

/* ---- what has changed ---- */

static bool make_room(struct usage *usage)
{
	size_t room = usage->room > 0 ? 2 * usage->room : 64;
	uint64_t *changed;

	if (usage->n < usage->room) {
		return true;
	}
	changed = realloc(usage->changed, room * sizeof(*changed));
	if (!changed) {
		return false;
	}
	usage->changed = changed;
	usage->room = room;
	return true;
}

static void note(struct usage *usage, struct limit *limit)
{
	if (limit->usage_state == USAGE_CHANGED) {
		return;
	}
	limit->usage_state = USAGE_CHANGED;
	if (make_room(usage)) {
		usage->changed[usage->n++] = (uint64_t)limit->id << 32 | limit->plane;
	} else {
		usage->all = true;
	}
}

/* ---- growth ---- */

/* The ids of counters that are gone still lead to their ancestors, until they are done with. */
void engine_usage_add(struct engine *engine, uint32_t id, int64_t n, int64_t wall_ns)
{
	const struct tree *tree = &engine->tree;

	if (planes_count(&engine->planes) == 0) {
		return;
	}
	gate_enter(&engine->gate);
	while (id != TREE_NONE) {
		uint32_t up = atomic_load_explicit(&tree_tally(tree, id)->up, memory_order_relaxed);
		struct limit *limit = up & TREE_LIMITED ? plane_first(&engine->planes, id) : NULL;

		for (; limit; limit = plane_next(limit)) {
			if (is_kept(limit)) {
				kept_add(&limit->node, &limit->kept, n, wall_ns);
				note(&engine->usage, limit);
			}
		}
		id = up & ~TREE_LIMITED;
	}
	grace_leave();
}

/* ---- telling ---- */

typedef void (*limit_fn)(void *ctx, struct limit *limit);

static void visit_limits(struct engine *engine, uint32_t id, limit_fn visit, void *ctx)
{
	struct limit *limit = plane_first(&engine->planes, id);

	for (; limit; limit = plane_next(limit)) {
		if (is_kept(limit)) {
			visit(ctx, limit);
		}
	}
}

/* All limits there are with something kept; those of one chunk of ids in one read section. */
static void visit_all(struct engine *engine, limit_fn visit, void *ctx)
{
	uint32_t n = atomic_load_explicit(&engine->tree.n_ids, memory_order_acquire);

	for (uint32_t first = 0; first < n; first += TREE_CHUNK) {
		gate_enter(&engine->gate);
		for (uint32_t id = first; id < n && id < first + TREE_CHUNK; id++) {
			visit_limits(engine, id, visit, ctx);
		}
		grace_leave();
	}
}

struct telling {
	bool all;
	engine_usage_fn usage;
	void *ctx;
};

static void tell(void *ctx, struct limit *limit)
{
	const struct telling *telling = ctx;
	const struct engine_usage usage = {
		.path = limit->path,
		.len = limit->len,
		.window = quota_window(&limit->node),
		.number = limit->kept.at,
		.count = kept_count(&limit->node, &limit->kept),
	};

	if (telling->all || limit->usage_state != USAGE_TOLD) {
		limit->usage_state = USAGE_TOLD;
		telling->usage(telling->ctx, &usage);
	}
}

static void tell_changed(struct engine *engine, struct telling *telling)
{
	const struct usage *usage = &engine->usage;

	for (size_t i = 0; i < usage->n; i++) {
		struct limit *limit;

		gate_enter(&engine->gate);
		limit = plane_find(&engine->planes, (uint32_t)(usage->changed[i] >> 32),
				   (uint32_t)usage->changed[i]);
		if (limit && is_kept(limit)) {
			tell(telling, limit);
		}
		grace_leave();
	}
}

void engine_usage_each(struct engine *engine, bool all, engine_usage_fn usage, void *ctx)
{
	struct telling telling = { .all = all, .usage = usage, .ctx = ctx };
	/* Before looking: what begins later is for another time. Acquire: pairs with apply_begin; who finds it set finds the gate closed, or past. */
	bool begun = atomic_exchange_explicit(&engine->usage.begun, false, memory_order_acquire);

	if (all || begun || engine->usage.all) {
		visit_all(engine, tell, &telling);
	} else {
		tell_changed(engine, &telling);
	}
	engine->usage.n = 0;
	engine->usage.all = false;
}

/* ---- what is ---- */

struct settling {
	struct engine *engine;
	const struct quota_time *time;
};

static void settle(void *ctx, struct limit *limit)
{
	const struct settling *settling = ctx;

	if (kept_settle(&limit->node, &limit->kept, settling->time)) {
		note(&settling->engine->usage, limit);
	}
}

void engine_usage_settle(struct engine *engine, const struct quota_time *time)
{
	struct settling settling = { engine, time };

	visit_all(engine, settle, &settling);
}

/* Past the window in which the node stands there is nothing to trim by: what the cuts say is in a later one. */
static void trim(void *ctx, struct limit *limit)
{
	const struct settling *settling = ctx;
	struct usage *usage = &settling->engine->usage;
	struct kept live = limit->kept;

	if (limit->usage_young == 0) {
		return;
	}
	if (kept_settle(&limit->node, &live, settling->time) && live.at >= limit->kept.at) {
		limit->kept = live;
		note(usage, limit);
	}
	if (--limit->usage_young > 0) {
		atomic_store_explicit(&usage->young, true, memory_order_relaxed);
	}
}

void engine_usage_trim(struct engine *engine, const struct quota_time *time)
{
	struct settling settling = { engine, time };

	/* Acquire: pairs with apply_begin, as `begun`. */
	if (!atomic_exchange_explicit(&engine->usage.young, false, memory_order_acquire)) {
		return;
	}
	/* What the cuts have must be in the nodes. */
	flush_all(engine, FLUSH_NO_TIME);
	visit_all(engine, trim, &settling);
}

static void restore(struct limit *limit, const struct engine_usage *usage,
		    const struct quota_time *time)
{
	kept_set(&limit->node, &limit->kept, usage->number, usage->count);
	kept_restore(&limit->node, &limit->kept, time);
}

int engine_restore_usage(struct engine *engine, const struct engine_usage *usage,
			 const struct quota_time *time)
{
	int r = ENGINE_E_NOT_FOUND;
	struct name *name;

	if (usage->window.kind == WINDOW_NONE) {
		return r;
	}
	grace_enter();
	name = registry_find(engine->registry, usage->path, usage->len);
	for (struct limit *limit = name ? plane_first(&engine->planes, name->id) : NULL; limit;
	     limit = plane_next(limit)) {
		struct window window = quota_window(&limit->node);

		if (window_equal(&window, &usage->window)) {
			restore(limit, usage, time);
			r = 0;
		}
	}
	grace_leave();
	return r;
}
