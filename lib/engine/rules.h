#pragma once
/*
 * rules: the rules there are, in their two layers, and which of them a path has its limits from.
 *
 * Everything here is under the registry's lock (or private to its maker: a layer that is being built).
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/engine/pattern.h"
#include "lib/engine/quota.h"
#include "lib/engine/table.h"

/*
 * Places for a metric's planes: while a layer is being replaced, those of the old one and of the new one. A plane is known by its place.
 */
#define RULES_PLANES (2 * ENGINE_MAX_PLANES)

/* A metric that has rules: its planes. */
struct limited {
	struct table_entry entry;
	struct window windows[RULES_PLANES];
	uint32_t n_rules[RULES_PLANES]; /* 0: the place is free */
	uint32_t n_nodes[RULES_PLANES]; /* counters that carry a limit there */
	char name[];
};

struct rule {
	struct rule *next; /* of the same pattern */
	struct pattern *pattern;
	struct rule *newer, *older; /* of the same layer */
	struct window window;
	struct quota_limits limits;
	uint64_t digest; /* of what a counter takes over from it */
	uint32_t tag;
	uint8_t plane;
};

struct pattern {
	struct table_entry entry; /* by text, in its layer */
	struct shape shape;
	struct pattern *next_alike, *previous_alike; /* of the same metric and shape */
	struct layer_metric *metric;
	struct rule *rules;
	char text[];
};

/* What a layer has for one metric. */
struct layer_metric {
	struct table_entry entry; /* by name, in its layer */
	struct limited *limited;
	uint32_t n_rules[RULES_PLANES];
	uint32_t n_shapes;
	struct layer_shape {
		struct shape shape;
		uint32_t n;
		struct pattern *patterns;
	} shapes[ENGINE_MAX_SHAPES +
		 PATH_MAX_SEGMENTS]; /* highest rank first; paths don't count against the ceiling */
	char name[];
};

struct layer {
	struct table patterns, metrics;
	struct rule *oldest, *newest;
	uint32_t n_rules;
	uint32_t n_mins; /* rules with a min */
};

struct rules {
	struct layer layers[2]; /* by enum engine_layer */
	struct table limited;	/* by metric */
	uint64_t seed;
	_Atomic(uint32_t) n_shown[2]; /* n_rules of the layers, for who reads without the lock */
};

void rules_init(struct rules *rules, uint64_t seed);
void rules_deinit(struct rules *rules);

static inline uint32_t rules_count(const struct rules *rules, enum engine_layer layer)
{
	return atomic_load_explicit(&rules->n_shown[layer], memory_order_relaxed);
}

/* After changes. */
void rules_show(struct rules *rules);

/* Length of the first segment. */
size_t rules_metric_len(const char *path, size_t len);

struct limited *rules_limited(const struct rules *rules, const char *path, size_t len);

/* Forgets the metric if it has neither rules nor counters with limits any more. After changes of either. */
void rules_tidy(struct rules *rules, const char *path, size_t len);

/* ---- one layer ---- */

void layer_init(struct layer *layer, uint64_t seed);
/* Takes all rules out. */
void layer_deinit(struct layer *layer);

/*
 * Put a rule in whose pattern has this shape and whose window and limits were checked, and which is not there yet. -ENOMEM;
 * ENGINE_E_FULL: too many shapes, or no place left for a plane.
 */
int layer_add(struct rules *rules, struct layer *layer, const struct engine_rule *source,
	      struct shape shape, struct rule **ret_rule);
void layer_remove(struct layer *layer, struct rule *rule);
/* Other limits and tag for one that is there. */
void layer_change(struct layer *layer, struct rule *rule, const struct engine_rule *source);

struct pattern *layer_pattern(const struct layer *layer, const char *text, size_t len);
struct rule *layer_find(const struct layer *layer, const char *text, size_t len,
			const struct window *window);
struct layer_metric *layer_metric(const struct layer *layer, const char *path, size_t len);

/* ---- matching ---- */

/* What holds for one path: at most one rule for each plane. */
struct match {
	size_t n;
	const struct rule *rules[ENGINE_MAX_PLANES];
	enum engine_layer layers[ENGINE_MAX_PLANES];
};

/* `layers`: [ENGINE_FILE], [ENGINE_RUN_TIME]; either may be NULL. A pattern's text may stand for the path. */
void rules_match(const struct layer *const layers[2], const char *path, size_t len,
		 struct match *ret_match);

/* NULL: nothing in this plane. */
const struct rule *match_plane(const struct match *match, unsigned plane);

/* As it was given. */
struct engine_rule rule_source(const struct rule *rule);
