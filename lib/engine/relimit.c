#include "lib/engine/relimit.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/engine/state.h"

enum change_kind {
	CHANGE_BEGIN,	/* a new limit */
	CHANGE_NUMBERS, /* other numbers */
	CHANGE_PARENT,	/* another parent */
	CHANGE_END,
	CHANGE_DONE, /* nothing is left to do or to drop */
};

struct change {
	enum change_kind kind;
	struct limit *limit;
	struct limit *parent;
	const struct rule *rule; /* BEGIN, NUMBERS */
};

/* The nearest limit in each plane, after the change. */
struct nearest {
	struct limit *limits[RULES_PLANES];
};

void relimit_init(struct relimit *relimit, struct engine *engine, const struct layer *file,
		  const struct layer *run_time)
{
	*relimit = (struct relimit){ .engine = engine };
	relimit->layers[ENGINE_FILE] = file;
	relimit->layers[ENGINE_RUN_TIME] = run_time;
}

void relimit_deinit(struct relimit *relimit)
{
	for (size_t i = 0; i < relimit->n; i++) {
		if (relimit->changes[i].kind == CHANGE_BEGIN) {
			limit_free(&relimit->engine->planes, relimit->changes[i].limit);
		}
	}
	free(relimit->changes);
	*relimit = (struct relimit){ 0 };
}

/* ---- the plan ---- */

static int note(struct relimit *relimit, struct change change)
{
	if (relimit->n == relimit->room) {
		size_t room = relimit->room > 0 ? 2 * relimit->room : 16;
		struct change *changes = realloc(relimit->changes, room * sizeof(*changes));

		if (!changes) {
			return -ENOMEM;
		}
		relimit->changes = changes;
		relimit->room = room;
	}
	relimit->changes[relimit->n++] = change;
	/* The numbers of a rate mean something else to what is in its bucket, so nobody may charge meanwhile. */
	relimit->gate = relimit->gate || change.kind != CHANGE_NUMBERS ||
			change.rule->window.kind == WINDOW_RATE;
	return 0;
}

static bool is_gauge(const struct engine *engine, uint32_t id)
{
	return tree_life(&engine->tree, id) & LIFE_GAUGE;
}

static int begin(struct relimit *relimit, const struct relimit_scope *scope,
		 const struct name *name, const struct rule *rule, struct nearest *nearest)
{
	struct planes *planes = &relimit->engine->planes;
	struct limit *limit;

	if (plane_reserve(planes, name->id) < 0) {
		return -ENOMEM;
	}
	limit = limit_new(planes, scope->limited, name, rule, is_gauge(relimit->engine, name->id));
	if (!limit) {
		return -ENOMEM;
	}
	if (note(relimit,
		 (struct change){ CHANGE_BEGIN, limit, nearest->limits[rule->plane], rule }) < 0) {
		limit_free(planes, limit);
		return -ENOMEM;
	}
	nearest->limits[rule->plane] = limit;
	return 0;
}

static int keep(struct relimit *relimit, struct limit *limit, const struct rule *rule,
		struct nearest *nearest)
{
	struct limit *parent = nearest->limits[limit->plane];
	struct quota_node *is = atomic_load_explicit(&limit->node.parent, memory_order_relaxed);
	int r = 0;

	if (rule && limit->digest != rule->digest) {
		r = note(relimit, (struct change){ CHANGE_NUMBERS, limit, NULL, rule });
	}
	if (r == 0 && is != (parent ? &parent->node : NULL)) {
		r = note(relimit, (struct change){ CHANGE_PARENT, limit, parent, NULL });
	}
	nearest->limits[limit->plane] = limit;
	return r;
}

/* One plane of one counter. `match` NULL: what holds for it stays. */
static int plan_plane(struct relimit *relimit, const struct relimit_scope *scope,
		      const struct name *name, const struct match *match, unsigned plane,
		      struct nearest *nearest)
{
	struct limit *limit = plane_find(&relimit->engine->planes, name->id, plane);
	const struct rule *rule = match ? match_plane(match, plane) : NULL;

	if (limit && (rule || !match)) {
		return keep(relimit, limit, rule, nearest);
	}
	if (limit) {
		return note(relimit, (struct change){ CHANGE_END, limit, NULL, NULL });
	}
	return rule ? begin(relimit, scope, name, rule, nearest) : 0;
}

static int plan_name(struct relimit *relimit, const struct relimit_scope *scope,
		     const struct name *name, bool rematch, struct nearest *nearest)
{
	struct match match;
	int r = 0;

	if (rematch) {
		rules_match(relimit->layers, name->path, name->len, &match);
	}
	for (unsigned plane = 0; r == 0 && plane < RULES_PLANES; plane++) {
		if (scope->planes >> plane & 1) {
			r = plan_plane(relimit, scope, name, rematch ? &match : NULL, plane,
				       nearest);
		}
	}
	return r;
}

static struct nearest nearest_above(const struct engine *engine, const struct name *name)
{
	struct nearest nearest = { 0 };

	for (name = name->parent; name; name = name->parent) {
		struct limit *limit = plane_first(&engine->planes, name->id);

		for (; limit; limit = plane_next(limit)) {
			if (!nearest.limits[limit->plane]) {
				nearest.limits[limit->plane] = limit;
			}
		}
	}
	return nearest;
}

/* Has the plan for the scope's first counter, from change `from` on, changed what is nearest to those below? Are there any? */
static bool goes_deeper(const struct relimit *relimit, const struct relimit_scope *scope,
			size_t from)
{
	if (!scope->alone) {
		return true;
	}
	for (size_t i = from; i < relimit->n; i++) {
		const struct limit *limit = relimit->changes[i].limit;

		if ((relimit->changes[i].kind == CHANGE_BEGIN ||
		     relimit->changes[i].kind == CHANGE_END) &&
		    limit->limited->n_nodes[limit->plane] > 1) {
			return true;
		}
	}
	return false;
}

/* Parents come before children, so those that begin can be made in this order. */
static int plan_below(struct relimit *relimit, const struct relimit_scope *scope, struct name *top)
{
	struct nearest nearest[PATH_MAX_SEGMENTS + 1]; /* by depth */
	size_t from = relimit->n;
	struct registry_walk walk;
	struct name *name;
	int r = 0;

	registry_walk_init(&walk, relimit->engine->registry, top, UINT32_MAX);
	nearest[top->depth - 1] = nearest_above(relimit->engine, top);
	for (name = registry_first(&walk); r == 0 && name; name = registry_next(&walk, name)) {
		nearest[name->depth] = nearest[name->depth - 1];
		r = plan_name(relimit, scope, name, name == top || !scope->alone,
			      &nearest[name->depth]);
		if (name == top && !goes_deeper(relimit, scope, from)) {
			break;
		}
	}
	return r;
}

int relimit_plan(struct relimit *relimit, const struct relimit_scope *scope)
{
	struct name *top;
	int r = 0;

	grace_enter();
	top = registry_find(relimit->engine->registry, scope->path, scope->len);
	if (top) {
		r = plan_below(relimit, scope, top);
	}
	grace_leave();
	return r;
}

/* ---- its application ---- */

static void apply_begin(struct engine *engine, const struct change *change,
			const struct quota_time *time)
{
	struct limit *limit = change->limit;
	int64_t usage = 0;

	if (change->rule->window.kind == WINDOW_NONE) {
		int64_t total = atomic_load_explicit(&tree_tally(&engine->tree, limit->id)->total,
						     memory_order_relaxed);

		if (__builtin_add_overflow(total, plane_ahead(&engine->planes, limit->id), &usage)) {
			usage = INT64_MAX;
		}
	}
	RATION_HOOK();
	quota_init(&limit->node, &change->rule->window,
		   change->parent ? &change->parent->node : NULL, &change->rule->limits, usage,
		   time);
	kept_init(&limit->node, &limit->kept, time->wall_ns);
	limit->usage_state = USAGE_BEGUN;
	limit->usage_young = USAGE_TRIMS;
	atomic_store_explicit(&engine->usage.young, true, memory_order_release);
	atomic_store_explicit(&engine->usage.begun, true, memory_order_release);
	RATION_HOOK();
	plane_insert(&engine->planes, &engine->tree, limit);
}

static void apply_numbers(const struct change *change, const struct quota_time *time)
{
	struct limit *limit = change->limit;

	/* What is kept of a rate is told in its terms. */
	if (limit->node.kind == WINDOW_RATE) {
		int64_t count = kept_count(&limit->node, &limit->kept);

		quota_set_limits(&limit->node, &change->rule->limits, time);
		kept_set(&limit->node, &limit->kept, limit->kept.at, count);
	} else {
		quota_set_limits(&limit->node, &change->rule->limits, time);
	}
	change->limit->digest = change->rule->digest;
	change->limit->exact = shape_exact(change->rule->pattern->shape);
}

static void apply_end(struct engine *engine, const struct change *change)
{
	plane_remove(&engine->planes, &engine->tree, change->limit);
	quota_detach(&change->limit->node);
}

/* All new ones before the others get their parents, all parents before the old ones go. */
static void apply_all(struct relimit *relimit, const struct quota_time *time)
{
	for (int kind = CHANGE_BEGIN; kind <= CHANGE_END; kind++) {
		for (size_t i = 0; i < relimit->n; i++) {
			const struct change *change = &relimit->changes[i];

			if ((int)change->kind != kind) {
				continue;
			}
			switch (change->kind) {
			case CHANGE_BEGIN:
				apply_begin(relimit->engine, change, time);
				break;
			case CHANGE_NUMBERS:
				apply_numbers(change, time);
				break;
			case CHANGE_PARENT:
				quota_reparent(&change->limit->node,
					       change->parent ? &change->parent->node : NULL);
				break;
			case CHANGE_END:
				apply_end(relimit->engine, change);
				break;
			case CHANGE_DONE:
				break;
			}
		}
	}
}

void relimit_apply(struct relimit *relimit, const struct quota_time *time)
{
	if (relimit->gate) {
		gate_close(relimit->engine);
		apply_all(relimit, time);
		/* Includes a grace period: nobody looks at what has ended any more. */
		gate_open(relimit->engine);
	} else {
		apply_all(relimit, time);
	}
	for (size_t i = 0; i < relimit->n; i++) {
		if (relimit->changes[i].kind == CHANGE_END) {
			limit_free(&relimit->engine->planes, relimit->changes[i].limit);
		}
		relimit->changes[i].kind = CHANGE_DONE;
	}
}
