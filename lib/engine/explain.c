/* explain: the chain from a counter to its metric, with every limit on it and where that comes from; and its siblings. */
#include <string.h>

#include "lib/engine/quota.h"
#include "lib/engine/state.h"

struct explaining {
	struct engine *engine;
	const struct quota_time *time;
	engine_explain_fn explain;
	void *ctx;
	const struct limit *binds;
};

static struct quota_reading reading_of(const struct explaining *explaining,
				       const struct limit *limit)
{
	struct quota_reading reading;

	quota_read(&limit->node, explaining->time, &reading);
	return reading;
}

/* The one with the least left; the nearest of several. */
static const struct limit *find_binding(const struct explaining *explaining,
					const struct name *name)
{
	const struct limit *binds = NULL;
	int64_t least = QUOTA_NONE;

	for (; name; name = name->parent) {
		const struct limit *limit = plane_first(&explaining->engine->planes, name->id);

		for (; limit; limit = plane_next(limit)) {
			struct quota_reading reading = reading_of(explaining, limit);

			if (!reading.limits.shadow && reading.left < least) {
				least = reading.left;
				binds = limit;
			}
		}
	}
	return binds;
}

static void explain_rule(const struct match *match, unsigned plane,
			 struct engine_explained *explained)
{
	for (size_t i = 0; i < match->n; i++) {
		if (match->rules[i]->plane == plane) {
			explained->layer = match->layers[i];
			explained->pattern = match->rules[i]->pattern->text;
			explained->pattern_len = match->rules[i]->pattern->entry.len;
		}
	}
}

static void explain_limit(const struct explaining *explaining, const struct name *name,
			  const struct match *match, struct limit *limit)
{
	struct quota_reading reading = reading_of(explaining, limit);
	int64_t max = limit->node.kind == WINDOW_RATE ? reading.limits.burst : reading.limits.max;
	struct engine_explained explained = {
		.path = name->path,
		.len = name->len,
		.depth = name->depth,
		.window = &reading.window,
		.limits = reading.limits,
		.usage = reading.usage,
		.peak = reading.peak,
		.left = reading.left,
		.refusals = reading.refusals,
		.forced = reading.forced,
		.binds = limit == explaining->binds,
		.over_high = reading.usage > reading.limits.high,
		.over_max = reading.usage > max,
	};

	if (limit->node.kind == WINDOW_RATE) {
		explained.limits.max = QUOTA_NONE;
	}
	explained.frozen =
		explained.over_max && limit->node.kind == WINDOW_NONE && !reading.limits.shadow;
	quota_effective(&limit->node, true, &explained.effective_min, &explained.effective_low);
	explain_rule(match, limit->plane, &explained);
	explaining->explain(explaining->ctx, &explained);
}

static void explain_chain(struct explaining *explaining, const struct name *name)
{
	const struct rules *rules = &explaining->engine->rules;
	const struct layer *const layers[] = { &rules->layers[ENGINE_FILE],
					       &rules->layers[ENGINE_RUN_TIME] };

	explaining->binds = find_binding(explaining, name);
	for (; name; name = name->parent) {
		struct limit *limit = plane_first(&explaining->engine->planes, name->id);
		struct match match;

		if (limit) {
			rules_match(layers, name->path, name->len, &match);
		}
		for (; limit; limit = plane_next(limit)) {
			explain_limit(explaining, name, &match, limit);
		}
	}
}

/* ---- siblings ---- */

struct sibling {
	const struct name *name;
	struct engine_sibling is;
	int64_t excess;
};

struct worst {
	size_t n;
	uint32_t more;				      /* beyond those */
	struct sibling siblings[ENGINE_MAX_SIBLINGS]; /* most in excess first */
};

static void note_sibling(struct worst *worst, const struct sibling *sibling)
{
	size_t at = worst->n;

	while (at > 0 && worst->siblings[at - 1].excess < sibling->excess) {
		at--;
	}
	if (worst->n < ENGINE_MAX_SIBLINGS) {
		worst->n++;
	} else {
		worst->more++;
	}
	if (at == ENGINE_MAX_SIBLINGS) {
		return;
	}
	memmove(&worst->siblings[at + 1], &worst->siblings[at],
		(worst->n - 1 - at) * sizeof(*sibling));
	worst->siblings[at] = *sibling;
}

static struct limit *windowless(const struct engine *engine, uint32_t id)
{
	struct limit *limit = plane_first(&engine->planes, id);

	while (limit && limit->node.kind != WINDOW_NONE) {
		limit = plane_next(limit);
	}
	return limit;
}

/* Is anything protected of this one, or meant to be? It is noted if it is a sibling and uses more than that. */
static bool look_at(const struct engine *engine, const struct name *name, bool is_sibling,
		    const struct quota_time *time, struct worst *worst)
{
	struct limit *limit = windowless(engine, name->id);
	struct quota_reading reading;
	struct sibling sibling;
	int64_t protected;

	if (!limit) {
		return false;
	}
	quota_read(&limit->node, time, &reading);
	sibling.name = name;
	sibling.is = (struct engine_sibling){
		.path = name->path,
		.len = name->len,
		.usage = reading.usage,
	};
	quota_effective(&limit->node, true, &sibling.is.effective_min, &sibling.is.effective_low);
	protected = sibling.is.effective_min > sibling.is.effective_low ? sibling.is.effective_min
									: sibling.is.effective_low;
	sibling.excess = reading.usage - protected;
	if (is_sibling && sibling.excess > 0) {
		note_sibling(worst, &sibling);
	}
	return protected > 0 || reading.limits.min > 0 || reading.limits.low > 0;
}

/* In a read section. Those under the same parent; where nothing is protected of anyone, no excess is at anybody's expense. */
static void find_beside(const struct engine *engine, const struct name *name,
			const struct quota_time *time, struct worst *worst)
{
	const struct worst before = *worst;
	const struct name *at =
		atomic_load_explicit(&name->parent->first_child, memory_order_acquire);
	bool any = false;

	for (; at; at = atomic_load_explicit(&at->next_sibling, memory_order_acquire)) {
		any |= look_at(engine, at, at != name, time, worst);
	}
	if (!any) {
		*worst = before;
	}
}

static void find_siblings(const struct engine *engine, const struct name *name,
			  const struct quota_time *time, struct worst *worst)
{
	for (; name->parent; name = name->parent) {
		if (windowless(engine, name->id)) {
			find_beside(engine, name, time, worst);
		}
	}
}

static void explain_siblings(struct engine *engine, const char *path, size_t len,
			     const struct quota_time *time, engine_sibling_fn say, void *ctx)
{
	struct worst worst = { 0 };
	struct name *name;

	grace_enter();
	name = registry_find(engine->registry, path, len);
	if (name) {
		find_siblings(engine, name, time, &worst);
	}
	for (size_t i = 0; i < worst.n; i++) {
		worst.siblings[i].is.more = worst.more;
		say(ctx, &worst.siblings[i].is);
	}
	grace_leave();
}

int engine_explain(struct engine *engine, const char *path, size_t len, struct quota_time time,
		   engine_explain_fn explain, engine_sibling_fn sibling, void *ctx)
{
	struct explaining explaining = {
		.engine = engine, .time = &time, .explain = explain, .ctx = ctx
	};
	struct name *name;

	if (path_check(path, len, NULL) != PATH_OK) {
		return ENGINE_E_PATH;
	}
	/* The lock keeps the rules; a gate that is closed is closed under it. */
	registry_lock(engine->registry);
	grace_enter();
	name = registry_find(engine->registry, path, len);
	grace_leave();
	if (name) {
		explain_chain(&explaining, name);
	}
	registry_unlock(engine->registry);
	if (!name) {
		return ENGINE_E_NOT_FOUND;
	}
	if (sibling) {
		explain_siblings(engine, path, len, &time, sibling, ctx);
	}
	return 0;
}
