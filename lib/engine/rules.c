#include "lib/engine/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t rules_metric_len(const char *path, size_t len)
{
	const char *slash = memchr(path, '/', len);

	return slash ? (size_t)(slash - path) : len;
}

void rules_init(struct rules *rules, uint64_t seed)
{
	*rules = (struct rules){ .seed = seed };
	layer_init(&rules->layers[ENGINE_FILE], seed);
	layer_init(&rules->layers[ENGINE_RUN_TIME], seed);
	table_init(&rules->limited, seed);
}

void rules_deinit(struct rules *rules)
{
	struct table_entry *entry;

	layer_deinit(&rules->layers[ENGINE_FILE]);
	layer_deinit(&rules->layers[ENGINE_RUN_TIME]);
	while ((entry = table_pop(&rules->limited))) {
		free(TABLE_THING(struct limited, entry));
	}
	table_deinit(&rules->limited);
}

void rules_show(struct rules *rules)
{
	for (int i = ENGINE_FILE; i <= ENGINE_RUN_TIME; i++) {
		atomic_store_explicit(&rules->n_shown[i], rules->layers[i].n_rules,
				      memory_order_relaxed);
	}
}

/* ---- metrics and their planes ---- */

struct limited *rules_limited(const struct rules *rules, const char *path, size_t len)
{
	struct table_entry *entry = table_find(&rules->limited, path, rules_metric_len(path, len));

	return entry ? TABLE_THING(struct limited, entry) : NULL;
}

void rules_tidy(struct rules *rules, const char *path, size_t len)
{
	struct limited *limited = rules_limited(rules, path, len);

	for (unsigned i = 0; limited && i < RULES_PLANES; i++) {
		if (limited->n_rules[i] > 0 || limited->n_nodes[i] > 0) {
			return;
		}
	}
	if (limited) {
		table_remove(&rules->limited, &limited->entry);
		free(limited);
	}
}

static struct limited *limited_make(struct rules *rules, const char *name, size_t len)
{
	struct limited *limited = rules_limited(rules, name, len);

	if (limited) {
		return limited;
	}
	limited = calloc(1, sizeof(*limited) + len);
	if (!limited) {
		return NULL;
	}
	memcpy(limited->name, name, len);
	limited->entry.key = limited->name;
	limited->entry.len = len;
	if (table_insert(&rules->limited, &limited->entry) < 0) {
		free(limited);
		return NULL;
	}
	return limited;
}

static bool plane_take(struct limited *limited, const struct window *window, uint8_t *ret_plane)
{
	unsigned free_place = RULES_PLANES;

	for (unsigned i = 0; i < RULES_PLANES; i++) {
		bool used = limited->n_rules[i] > 0 || limited->n_nodes[i] > 0;

		if (used && window_equal(&limited->windows[i], window)) {
			free_place = i;
			break;
		}
		if (!used && free_place == RULES_PLANES) {
			free_place = i;
		}
	}
	if (free_place == RULES_PLANES) {
		return false;
	}
	limited->windows[free_place] = *window;
	limited->n_rules[free_place]++;
	*ret_plane = (uint8_t)free_place;
	return true;
}

/* ---- a layer's metrics and shapes ---- */

void layer_init(struct layer *layer, uint64_t seed)
{
	*layer = (struct layer){ 0 };
	table_init(&layer->patterns, seed);
	table_init(&layer->metrics, seed);
}

struct layer_metric *layer_metric(const struct layer *layer, const char *path, size_t len)
{
	struct table_entry *entry = table_find(&layer->metrics, path, rules_metric_len(path, len));

	return entry ? TABLE_THING(struct layer_metric, entry) : NULL;
}

static struct layer_metric *metric_make(struct rules *rules, struct layer *layer, const char *path,
					size_t len)
{
	struct layer_metric *metric = layer_metric(layer, path, len);

	if (metric) {
		return metric;
	}
	len = rules_metric_len(path, len);
	metric = calloc(1, sizeof(*metric) + len);
	if (!metric) {
		return NULL;
	}
	metric->limited = limited_make(rules, path, len);
	memcpy(metric->name, path, len);
	metric->entry.key = metric->name;
	metric->entry.len = len;
	if (!metric->limited || table_insert(&layer->metrics, &metric->entry) < 0) {
		free(metric);
		return NULL;
	}
	return metric;
}

static uint32_t templates(const struct layer_metric *metric)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < metric->n_shapes; i++) {
		n += !shape_exact(metric->shapes[i].shape);
	}
	return n;
}

/* False: too many shapes. */
static bool shape_take(struct layer_metric *metric, struct pattern *pattern)
{
	uint32_t at = 0;

	while (at < metric->n_shapes && !shape_equal(metric->shapes[at].shape, pattern->shape)) {
		at++;
	}
	if (at == metric->n_shapes) {
		if (!shape_exact(pattern->shape) && templates(metric) == ENGINE_MAX_SHAPES) {
			return false;
		}
		for (at = 0; at < metric->n_shapes &&
			     shape_rank(metric->shapes[at].shape) >= shape_rank(pattern->shape);) {
			at++;
		}
		memmove(&metric->shapes[at + 1], &metric->shapes[at],
			(metric->n_shapes - at) * sizeof(metric->shapes[0]));
		metric->n_shapes++;
		metric->shapes[at].shape = pattern->shape;
		metric->shapes[at].n = 0;
		metric->shapes[at].patterns = NULL;
	}
	metric->shapes[at].n++;
	pattern->next_alike = metric->shapes[at].patterns;
	if (pattern->next_alike) {
		pattern->next_alike->previous_alike = pattern;
	}
	metric->shapes[at].patterns = pattern;
	return true;
}

static void shape_leave(struct layer_metric *metric, struct pattern *pattern)
{
	uint32_t at = 0;

	while (!shape_equal(metric->shapes[at].shape, pattern->shape)) {
		at++;
	}
	if (pattern->next_alike) {
		pattern->next_alike->previous_alike = pattern->previous_alike;
	}
	if (pattern->previous_alike) {
		pattern->previous_alike->next_alike = pattern->next_alike;
	} else {
		metric->shapes[at].patterns = pattern->next_alike;
	}
	if (--metric->shapes[at].n == 0) {
		metric->n_shapes--;
		memmove(&metric->shapes[at], &metric->shapes[at + 1],
			(metric->n_shapes - at) * sizeof(metric->shapes[0]));
	}
}

static void metric_drop_if_empty(struct layer *layer, struct layer_metric *metric)
{
	if (metric->n_shapes == 0) {
		table_remove(&layer->metrics, &metric->entry);
		free(metric);
	}
}

/* ---- patterns and rules ---- */

struct pattern *layer_pattern(const struct layer *layer, const char *text, size_t len)
{
	struct table_entry *entry = table_find(&layer->patterns, text, len);

	return entry ? TABLE_THING(struct pattern, entry) : NULL;
}

static struct rule *pattern_rule(const struct pattern *pattern, const struct window *window)
{
	for (struct rule *rule = pattern->rules; rule; rule = rule->next) {
		if (window_equal(&rule->window, window)) {
			return rule;
		}
	}
	return NULL;
}

struct rule *layer_find(const struct layer *layer, const char *text, size_t len,
			const struct window *window)
{
	const struct pattern *pattern = layer_pattern(layer, text, len);

	return pattern ? pattern_rule(pattern, window) : NULL;
}

static void pattern_drop(struct layer *layer, struct pattern *pattern)
{
	struct layer_metric *metric = pattern->metric;

	shape_leave(metric, pattern);
	table_remove(&layer->patterns, &pattern->entry);
	free(pattern);
	metric_drop_if_empty(layer, metric);
}

static int pattern_make(struct rules *rules, struct layer *layer, const struct engine_rule *source,
			struct shape shape, struct pattern **ret_pattern)
{
	struct pattern *pattern = layer_pattern(layer, source->pattern, source->len);
	struct layer_metric *metric;
	int r = 0;

	if (pattern) {
		*ret_pattern = pattern;
		return 0;
	}
	metric = metric_make(rules, layer, source->pattern, source->len);
	if (!metric) {
		return -ENOMEM;
	}
	pattern = calloc(1, sizeof(*pattern) + source->len);
	if (!pattern) {
		metric_drop_if_empty(layer, metric);
		return -ENOMEM;
	}
	memcpy(pattern->text, source->pattern, source->len);
	pattern->entry.key = pattern->text;
	pattern->entry.len = source->len;
	pattern->shape = shape;
	pattern->metric = metric;
	r = shape_take(metric, pattern) ? 0 : ENGINE_E_FULL;
	if (r == 0 && table_insert(&layer->patterns, &pattern->entry) < 0) {
		shape_leave(metric, pattern);
		r = -ENOMEM;
	}
	if (r != 0) {
		free(pattern);
		metric_drop_if_empty(layer, metric);
		return r;
	}
	*ret_pattern = pattern;
	return 0;
}

static uint64_t digest(const struct quota_limits *limits, bool exact)
{
	const struct siphash_key key = { 0, 0 };
	const int64_t content[] = {
		limits->max,  limits->high,   limits->low,   limits->min, limits->shadow,
		limits->rate, limits->per_ns, limits->burst, exact,
	};

	return siphash(&key, content, sizeof(content));
}

void layer_change(struct layer *layer, struct rule *rule, const struct engine_rule *source)
{
	layer->n_mins += source->limits.min > 0;
	layer->n_mins -= rule->limits.min > 0;
	rule->limits = source->limits;
	rule->tag = source->tag;
	rule->digest = digest(&rule->limits, shape_exact(rule->pattern->shape));
}

int layer_add(struct rules *rules, struct layer *layer, const struct engine_rule *source,
	      struct shape shape, struct rule **ret_rule)
{
	struct rule *rule = calloc(1, sizeof(*rule));
	int r;

	if (!rule) {
		return -ENOMEM;
	}
	r = pattern_make(rules, layer, source, shape, &rule->pattern);
	if (r != 0) {
		free(rule);
		return r;
	}
	if (!plane_take(rule->pattern->metric->limited, &source->window, &rule->plane)) {
		if (!rule->pattern->rules) {
			pattern_drop(layer, rule->pattern);
		}
		free(rule);
		return ENGINE_E_FULL;
	}
	rule->window = source->window;
	layer_change(layer, rule, source);
	rule->next = rule->pattern->rules;
	rule->pattern->rules = rule;
	rule->pattern->metric->n_rules[rule->plane]++;
	rule->older = layer->newest;
	*(rule->older ? &rule->older->newer : &layer->oldest) = rule;
	layer->newest = rule;
	layer->n_rules++;
	*ret_rule = rule;
	return 0;
}

void layer_remove(struct layer *layer, struct rule *rule)
{
	struct pattern *pattern = rule->pattern;
	struct rule **link = &pattern->rules;

	while (*link != rule) {
		link = &(*link)->next;
	}
	*link = rule->next;
	*(rule->older ? &rule->older->newer : &layer->oldest) = rule->newer;
	*(rule->newer ? &rule->newer->older : &layer->newest) = rule->older;
	layer->n_rules--;
	layer->n_mins -= rule->limits.min > 0;
	pattern->metric->n_rules[rule->plane]--;
	pattern->metric->limited->n_rules[rule->plane]--;
	if (!pattern->rules) {
		pattern_drop(layer, pattern);
	}
	free(rule);
}

void layer_deinit(struct layer *layer)
{
	while (layer->oldest) {
		layer_remove(layer, layer->oldest);
	}
	table_deinit(&layer->patterns);
	table_deinit(&layer->metrics);
}

struct engine_rule rule_source(const struct rule *rule)
{
	return (struct engine_rule){
		.pattern = rule->pattern->text,
		.len = rule->pattern->entry.len,
		.window = rule->window,
		.limits = rule->limits,
		.tag = rule->tag,
	};
}

/* ---- matching ---- */

const struct rule *match_plane(const struct match *match, unsigned plane)
{
	for (size_t i = 0; i < match->n; i++) {
		if (match->rules[i]->plane == plane) {
			return match->rules[i];
		}
	}
	return NULL;
}

/*
 * Patterns come with falling rank, and the run-time layer before the file's: what is there stays, unless it is of the other layer
 * and the new one's rank is higher.
 */
static void consider(struct match *match, const struct rule *rule, enum engine_layer layer)
{
	size_t i = 0;

	while (i < match->n && match->rules[i]->plane != rule->plane) {
		i++;
	}
	if (i < match->n &&
	    (match->layers[i] == layer ||
	     shape_rank(match->rules[i]->pattern->shape) >= shape_rank(rule->pattern->shape))) {
		return;
	}
	if (i == ENGINE_MAX_PLANES) {
		return; /* a layer that is still being checked may have more */
	}
	match->rules[i] = rule;
	match->layers[i] = layer;
	match->n += i == match->n;
}

static void match_layer(const struct layer *layer, enum engine_layer which,
			const struct segments *segments, size_t len, struct match *match)
{
	const struct layer_metric *metric = layer_metric(layer, segments->path, len);
	char key[PATH_MAX_BYTES + 3];

	for (uint32_t i = 0; metric && i < metric->n_shapes; i++) {
		struct shape shape = metric->shapes[i].shape;
		const struct pattern *pattern;

		if (!shape_fits(shape, segments->n)) {
			continue;
		}
		pattern = layer_pattern(layer, key, pattern_key(shape, segments, key));
		for (const struct rule *rule = pattern ? pattern->rules : NULL; rule;
		     rule = rule->next) {
			consider(match, rule, which);
		}
	}
}

void rules_match(const struct layer *const layers[2], const char *path, size_t len,
		 struct match *ret_match)
{
	struct segments segments;

	ret_match->n = 0;
	segments_split(&segments, path, len);
	if (layers[ENGINE_RUN_TIME]) {
		match_layer(layers[ENGINE_RUN_TIME], ENGINE_RUN_TIME, &segments, len, ret_match);
	}
	if (layers[ENGINE_FILE]) {
		match_layer(layers[ENGINE_FILE], ENGINE_FILE, &segments, len, ret_match);
	}
}
