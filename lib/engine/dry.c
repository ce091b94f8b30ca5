/*
 * dry: what a charge would say whose counters are not all there. Those that are missing get ghosts: limits as the rules would give them, in
 * no list, with no usage, below the limits of the nearest ancestor that is there. Judging looks at these like at any others.
 *
 * Under the registry's lock, so rules, names and lists stand still.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/engine/charge.h"
#include "lib/engine/state.h"

/* A missing counter: its ghosts, by plane. */
struct ghost {
	struct table_entry entry;
	struct limit *limits[ENGINE_MAX_PLANES];
	size_t n;
};

/* The nearest limit of each plane so far, going down. */
struct nearest {
	struct limit *limits[ENGINE_MAX_PLANES];
	size_t n;
};

static struct limit **nearest_in(struct nearest *nearest, unsigned plane)
{
	size_t i = 0;

	while (i < nearest->n && nearest->limits[i]->plane != plane) {
		i++;
	}
	return i < nearest->n ? &nearest->limits[i] : NULL;
}

static struct limit *ghost_limit(const struct rule *rule, const char *path, size_t len, bool gauge,
				 struct nearest *nearest, const struct quota_time *time)
{
	struct limit **parent = nearest_in(nearest, rule->plane);
	struct limit *limit = aligned_alloc(64, sizeof(*limit));

	if (!limit) {
		return NULL;
	}
	atomic_init(&limit->next, NULL);
	limit->path = path;
	limit->len = (uint16_t)len;
	limit->plane = rule->plane;
	limit->gauge = gauge;
	quota_init(&limit->node, &rule->window, parent ? &(*parent)->node : NULL, &rule->limits, 0,
		   time);
	return limit;
}

/* The ghost's limits come first, in the place of those above in the same planes. */
static void come_nearer(struct nearest *nearest, const struct ghost *ghost)
{
	struct nearest above = *nearest;

	nearest->n = 0;
	for (size_t i = 0; i < ghost->n; i++) {
		nearest->limits[nearest->n++] = ghost->limits[i];
	}
	for (size_t i = 0; i < above.n && nearest->n < ENGINE_MAX_PLANES; i++) {
		if (!nearest_in(nearest, above.limits[i]->plane)) {
			nearest->limits[nearest->n++] = above.limits[i];
		}
	}
}

/* In the order of planes, as in a counter's list. */
static void ghost_add(struct ghost *ghost, struct limit *limit)
{
	size_t at = ghost->n++;

	for (; at > 0 && ghost->limits[at - 1]->plane > limit->plane; at--) {
		ghost->limits[at] = ghost->limits[at - 1];
	}
	ghost->limits[at] = limit;
}

static struct ghost *ghost_make(const struct charging *charging, struct table *ghosts,
				const char *path, size_t len, bool gauge, struct nearest *nearest)
{
	const struct layer *const layers[] = { &charging->engine->rules.layers[ENGINE_FILE],
					       &charging->engine->rules.layers[ENGINE_RUN_TIME] };
	struct ghost *ghost = calloc(1, sizeof(*ghost));
	struct match match;

	if (!ghost) {
		return NULL;
	}
	ghost->entry.key = path;
	ghost->entry.len = len;
	if (table_insert(ghosts, &ghost->entry) < 0) {
		free(ghost);
		return NULL;
	}
	rules_match(layers, path, len, &match);
	for (size_t i = 0; i < match.n; i++) {
		struct limit *limit =
			ghost_limit(match.rules[i], path, len, gauge, nearest, &charging->time);

		if (!limit) {
			return NULL;
		}
		ghost_add(ghost, limit);
	}
	return ghost;
}

static void ghosts_free(struct table *ghosts)
{
	struct table_entry *entry;

	while ((entry = table_pop(ghosts))) {
		struct ghost *ghost = TABLE_THING(struct ghost, entry);

		for (size_t i = 0; i < ghost->n; i++) {
			free(ghost->limits[i]);
		}
		free(ghost);
	}
	table_deinit(ghosts);
}

/* The prefix of the path that is there; 0: none. Its limits, and the kind. */
static size_t find_there(const struct engine *engine, const char *path, size_t len,
			 struct nearest *nearest, bool *ret_gauge)
{
	struct engine_metric policy = { .kind = ENGINE_COUNTER };
	struct name *name = NULL;

	for (;;) {
		grace_enter();
		name = registry_find(engine->registry, path, len);
		grace_leave();
		if (name || path_parent(path, len) == 0) {
			break;
		}
		len = path_parent(path, len);
	}
	nearest->n = 0;
	if (!name) {
		(void)metrics_policy((struct metrics *)(uintptr_t)&engine->metrics, path, len,
				     &policy);
		*ret_gauge = policy.kind == ENGINE_GAUGE;
		return 0;
	}
	*ret_gauge = tree_life(&engine->tree, name->id) & LIFE_GAUGE;
	nearest->n = plane_nearest(&engine->planes, &engine->tree, name->id, nearest->limits);
	return len;
}

static size_t next_prefix(const char *path, size_t len, size_t at)
{
	const char *slash = at < len ? memchr(path + at + 1, '/', len - at - 1) : NULL;

	return slash ? (size_t)(slash - path) : len;
}

static int ask(struct charging *charging, struct table *ghosts, size_t i)
{
	const struct engine_charge_item *item = &charging->items[i];
	struct nearest nearest;
	bool gauge;
	size_t at = find_there(charging->engine, item->path, item->len, &nearest, &gauge);

	while (at < item->len) {
		struct table_entry *entry;
		struct ghost *ghost;

		at = next_prefix(item->path, item->len, at);
		entry = table_find(ghosts, item->path, at);
		ghost = entry ? TABLE_THING(struct ghost, entry)
			      : ghost_make(charging, ghosts, item->path, at, gauge, &nearest);
		if (!ghost) {
			return -ENOMEM;
		}
		come_nearer(&nearest, ghost);
	}
	for (size_t j = 0; j < nearest.n; j++) {
		charging->asks[charging->n_asks++] =
			(struct quota_item){ &nearest.limits[j]->node, item->n };
	}
	return 0;
}

static int check(struct charging *charging, size_t *ret_index)
{
	for (size_t i = 0; i < charging->n; i++) {
		const struct engine_charge_item *item = &charging->items[i];

		*ret_index = i;
		if (path_check(item->path, item->len, NULL) != PATH_OK) {
			return ENGINE_E_PATH;
		}
		if (!charge_known(charging->engine, item->path, item->len)) {
			return ENGINE_E_NOT_FOUND;
		}
	}
	return 0;
}

static int run(struct charging *charging, struct table *ghosts, size_t *ret_index)
{
	int r = check(charging, ret_index);

	charging->n_asks = 0;
	for (size_t i = 0; r == 0 && i < charging->n; i++) {
		r = ask(charging, ghosts, i);
	}
	if (r == 0) {
		r = charging_room(charging);
	}
	if (r == 0) {
		r = verdict_dry(charging) ? 0 : ENGINE_E_REFUSED;
	}
	return r;
}

int dry_run_missing(struct charging *charging, size_t *ret_index)
{
	struct engine *engine = charging->engine;
	struct table ghosts;
	int r;

	table_init(&ghosts, engine->rules.seed);
	registry_lock(engine->registry);
	r = run(charging, &ghosts, ret_index);
	registry_unlock(engine->registry);
	ghosts_free(&ghosts);
	return r;
}
