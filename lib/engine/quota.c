/* quota: rules come, go and are listed. Charges are in charge.c and lease.c, explanations in explain.c. */
#include "lib/engine/quota.h"

#include <string.h>

#include "lib/engine/intern.h"
#include "lib/engine/keep.h"
#include "lib/engine/lint.h"
#include "lib/engine/relimit.h"
#include "lib/engine/state.h"

void engine_set_time(struct engine *engine, const struct quota_time *time)
{
	planes_set_time(&engine->planes, time);
}

/* ---- the file's layer ---- */

/* All that can be said of a layer, together with one of run time (may be NULL). Fatal faults are counted; -ENOMEM. */
static int build(struct faults *faults, struct rules *rules, struct layer *layer,
		 const struct layer *run_time, const struct engine_rule *sources, size_t n)
{
	const struct layer *const layers[] = { layer, run_time };
	int r = lint_fill(faults, rules, layer, sources, n);

	if (r == 0) {
		r = lint_ties(faults, layer);
	}
	if (r < 0) {
		return r;
	}
	lint_planes(faults, layer, run_time);
	if (faults->n_fatal == 0) {
		for (const struct rule *rule = layer->oldest; rule; rule = rule->newer) {
			lint_unwise(faults, layers, rule);
			lint_windows(faults, layers, rule, /* both= */ false);
		}
		lint_mins(faults, layers, NULL);
	}
	return 0;
}

int engine_rules_check(const struct engine_rule *rules, size_t n, engine_fault_fn fault, void *ctx)
{
	struct faults faults = { .fault = fault, .ctx = ctx };
	struct rules scratch;
	struct layer layer;
	int r;

	rules_init(&scratch, 0);
	layer_init(&layer, 0);
	r = build(&faults, &scratch, &layer, NULL, rules, n);
	layer_deinit(&layer);
	rules_deinit(&scratch);
	return r < 0 ? r : faults.n_fatal;
}

static int plan_metric(struct relimit *relimit, const struct layer_metric *metric)
{
	const struct relimit_scope scope = {
		.limited = metric->limited,
		.planes = UINT32_MAX,
		.path = metric->name,
		.len = metric->entry.len,
	};

	return relimit_plan(relimit, &scope);
}

static int plan_metrics(struct relimit *relimit, const struct layer *layer)
{
	int r = 0;

	for (struct table_entry *at = table_next(&layer->metrics, NULL); r == 0 && at;
	     at = table_next(&layer->metrics, at)) {
		r = plan_metric(relimit, TABLE_THING(struct layer_metric, at));
	}
	return r;
}

static int plan_replacement(struct relimit *relimit, const struct layer *old,
			    const struct layer *new)
{
	int r = plan_metrics(relimit, new);

	/* Metrics that are in both were planned already. */
	for (struct table_entry *at = table_next(&old->metrics, NULL); r == 0 && at;
	     at = table_next(&old->metrics, at)) {
		const struct layer_metric *metric = TABLE_THING(struct layer_metric, at);

		if (!layer_metric(new, metric->name, metric->entry.len)) {
			r = plan_metric(relimit, metric);
		}
	}
	return r;
}

/*
 * A path that has limits of its own is counted from now on, if its metric is known; there being no room for it is no reason not to have
 * them. While counters are being restored this waits: births are to be in order.
 */
static void intern_locked(struct engine *engine, const struct rule *rule,
			  const struct quota_time *time)
{
	const struct pattern *pattern = rule->pattern;
	size_t len = pattern->entry.len;
	struct name *name;
	bool known;

	if (!shape_exact(pattern->shape) || engine->changes.restoring) {
		return;
	}
	grace_enter();
	known = registry_find(engine->registry, pattern->text,
			      rules_metric_len(pattern->text, len)) ||
		metrics_find(&engine->metrics, pattern->text, len);
	grace_leave();
	if (known) {
		(void)intern_exact(engine, pattern->text, len, time->wall_ns, &name);
	}
}

static void intern_layer(struct engine *engine, enum engine_layer layer,
			 const struct quota_time *time)
{
	for (const struct rule *rule = engine->rules.layers[layer].oldest; rule;
	     rule = rule->newer) {
		intern_locked(engine, rule, time);
	}
}

int engine_restored(struct engine *engine, struct quota_time time)
{
	int r;

	planes_set_time(&engine->planes, &time);
	registry_lock(engine->registry);
	engine->changes.restoring = false;
	r = restore_late(engine);
	intern_layer(engine, ENGINE_FILE, &time);
	intern_layer(engine, ENGINE_RUN_TIME, &time);
	registry_unlock(engine->registry);
	return r;
}

/* Takes the layer's rules out and forgets what only they needed. */
static void layer_drop(struct rules *rules, struct layer *layer)
{
	while (layer->oldest) {
		const struct pattern *pattern = layer->oldest->pattern;
		char name[PATH_MAX_SEGMENT];
		size_t len = pattern->metric->entry.len;

		memcpy(name, pattern->text, len);
		layer_remove(layer, layer->oldest);
		rules_tidy(rules, name, len);
	}
	layer_deinit(layer);
}

/* The layers change places, so that what is in `layer` afterwards is what is no longer in force. */
static void swap_file(struct rules *rules, struct layer *layer)
{
	struct layer old = rules->layers[ENGINE_FILE];

	rules->layers[ENGINE_FILE] = *layer;
	*layer = old;
}

static int replace_locked(struct engine *engine, struct layer *layer,
			  const struct engine_rule *sources, size_t n,
			  const struct quota_time *time, struct faults *faults)
{
	struct rules *rules = &engine->rules;
	struct relimit relimit;
	int r = build(faults, rules, layer, &rules->layers[ENGINE_RUN_TIME], sources, n);

	if (r < 0 || faults->n_fatal > 0) {
		return r < 0 ? r : ENGINE_E_RULE;
	}
	relimit_init(&relimit, engine, layer, &rules->layers[ENGINE_RUN_TIME]);
	r = plan_replacement(&relimit, &rules->layers[ENGINE_FILE], layer);
	if (r == 0) {
		swap_file(rules, layer);
		relimit_apply(&relimit, time);
	}
	relimit_deinit(&relimit);
	if (r == 0) {
		intern_layer(engine, ENGINE_FILE, time);
	}
	return r;
}

int engine_rules_replace(struct engine *engine, const struct engine_rule *rules, size_t n,
			 struct quota_time time, engine_fault_fn fault, void *ctx)
{
	struct faults faults = { .fault = fault, .ctx = ctx };
	struct layer layer;
	int r;

	planes_set_time(&engine->planes, &time);
	registry_lock(engine->registry);
	layer_init(&layer, engine->rules.seed);
	r = replace_locked(engine, &layer, rules, n, &time, &faults);
	layer_drop(&engine->rules, &layer);
	rules_show(&engine->rules);
	registry_unlock(engine->registry);
	return r;
}

/* ---- the layer of run time ---- */

/* The leading literal segments: all a pattern can match is at or below this path. */
static size_t literal_len(const struct pattern *pattern)
{
	struct segments segments;

	segments_split(&segments, pattern->text, pattern->entry.len);
	return segments.end[shape_prefix(pattern->shape) - 1];
}

/* What a rule of this pattern and plane, there or gone, can have changed. */
static struct relimit_scope scope_of(struct limited *limited, const struct pattern *pattern,
				     uint32_t planes)
{
	return (struct relimit_scope){
		.limited = limited,
		.planes = planes,
		.path = pattern->text,
		.len = literal_len(pattern),
		.alone = shape_exact(pattern->shape),
	};
}

static int relimit_now(struct engine *engine, const struct relimit_scope *scope,
		       const struct quota_time *time)
{
	struct relimit relimit;
	int r;

	relimit_init(&relimit, engine, &engine->rules.layers[ENGINE_FILE],
		     &engine->rules.layers[ENGINE_RUN_TIME]);
	r = relimit_plan(&relimit, scope);
	if (r == 0 && relimit.n > 0) {
		relimit_apply(&relimit, time);
	}
	relimit_deinit(&relimit);
	return r;
}

static int check_added(struct engine *engine, const struct rule *rule, struct faults *faults)
{
	const struct layer *const layers[] = { &engine->rules.layers[ENGINE_FILE],
					       &engine->rules.layers[ENGINE_RUN_TIME] };
	int r = lint_tie(faults, rule);

	if (r < 0) {
		return r;
	}
	lint_metric_planes(faults, rule->pattern->metric, layers[ENGINE_FILE], rule->tag);
	if (layers[ENGINE_RUN_TIME]->n_rules > ENGINE_MAX_RULES) {
		faults_say(faults, true, rule->tag, 0, "there can be at most %u rules",
			   ENGINE_MAX_RULES);
	}
	if (faults->n_fatal > 0) {
		return ENGINE_E_RULE;
	}
	lint_unwise(faults, layers, rule);
	lint_windows(faults, layers, rule, /* both= */ true);
	if (rule->window.kind == WINDOW_NONE) {
		lint_mins(faults, layers, rule);
	}
	return 0;
}

/* The rule takes the place of an equal one's content. The new one is in force when this returns 0; else all is as before. */
static int set_locked(struct engine *engine, const struct engine_rule *source, struct shape shape,
		      const struct quota_time *time, struct faults *faults)
{
	struct layer *layer = &engine->rules.layers[ENGINE_RUN_TIME];
	struct rule *old = layer_find(layer, source->pattern, source->len, &source->window);
	struct engine_rule before;
	struct relimit_scope scope;
	struct rule *rule = old;
	int r = 0;

	if (old) {
		before = rule_source(old);
		layer_change(layer, old, source);
	} else {
		r = layer_add(&engine->rules, layer, source, shape, &rule);
		if (r == ENGINE_E_FULL) {
			lint_full(faults, source, layer);
			return ENGINE_E_RULE;
		}
		if (r < 0) {
			return r;
		}
	}
	r = check_added(engine, rule, faults);
	if (r == 0) {
		scope = scope_of(rule->pattern->metric->limited, rule->pattern,
				 UINT32_C(1) << rule->plane);
		r = relimit_now(engine, &scope, time);
	}
	if (r == 0) {
		intern_locked(engine, rule, time);
	} else if (old) {
		layer_change(layer, old, &before);
	} else {
		layer_remove(layer, rule);
	}
	return r;
}

int engine_rule_set(struct engine *engine, const struct engine_rule *rule, struct quota_time time,
		    engine_fault_fn fault, void *ctx)
{
	struct faults faults = { .fault = fault, .ctx = ctx };
	struct shape shape;
	int r;

	if (!lint_rule(&faults, rule, &shape)) {
		return ENGINE_E_RULE;
	}
	planes_set_time(&engine->planes, &time);
	registry_lock(engine->registry);
	r = set_locked(engine, rule, shape, &time, &faults);
	rules_tidy(&engine->rules, rule->pattern, rule->len);
	rules_show(&engine->rules);
	registry_unlock(engine->registry);
	return r;
}

/* Takes one out of force; it stays in the layer if there is no memory to do so. */
static int remove_rule(struct engine *engine, struct rule *rule, const struct quota_time *time)
{
	struct layer *layer = &engine->rules.layers[ENGINE_RUN_TIME];
	struct engine_rule source = rule_source(rule);
	struct limited *limited = rule->pattern->metric->limited;
	char pattern[PATH_MAX_BYTES];
	struct relimit_scope scope = scope_of(limited, rule->pattern, UINT32_C(1) << rule->plane);
	struct shape shape = rule->pattern->shape;
	struct rule *again;
	int r;

	memcpy(pattern, source.pattern, source.len);
	source.pattern = pattern;
	scope.path = pattern;
	layer_remove(layer, rule);
	r = relimit_now(engine, &scope, time);
	if (r < 0) {
		/* What it needs was freed a moment ago. If that is not to be had again, the counters keep limits whose rule is gone. */
		(void)layer_add(&engine->rules, layer, &source, shape, &again);
	}
	return r;
}

static int remove_locked(struct engine *engine, const char *text, size_t len,
			 const struct window *window, const struct quota_time *time)
{
	struct layer *layer = &engine->rules.layers[ENGINE_RUN_TIME];
	bool any = false;

	for (;;) {
		struct pattern *pattern = layer_pattern(layer, text, len);
		struct rule *rule = pattern ? pattern->rules : NULL;
		int r;

		while (rule && window && !window_equal(&rule->window, window)) {
			rule = rule->next;
		}
		if (!rule) {
			return any ? 0 : ENGINE_E_NOT_FOUND;
		}
		r = remove_rule(engine, rule, time);
		if (r < 0) {
			return r;
		}
		any = true;
	}
}

int engine_rule_remove(struct engine *engine, const char *pattern, size_t len,
		       const struct window *window, struct quota_time time)
{
	int r;

	planes_set_time(&engine->planes, &time);
	registry_lock(engine->registry);
	r = remove_locked(engine, pattern, len, window, &time);
	rules_tidy(&engine->rules, pattern, len);
	rules_show(&engine->rules);
	registry_unlock(engine->registry);
	return r;
}

/* ---- the list ---- */

void engine_rules_list(struct engine *engine, engine_rule_fn rule, void *ctx)
{
	const struct layer *run_time = &engine->rules.layers[ENGINE_RUN_TIME];

	registry_lock(engine->registry);
	for (int i = ENGINE_FILE; i <= ENGINE_RUN_TIME; i++) {
		for (const struct rule *at = engine->rules.layers[i].oldest; at; at = at->newer) {
			const struct engine_rule source = rule_source(at);
			bool overridden =
				i == ENGINE_FILE && layer_find(run_time, source.pattern, source.len,
							       &source.window) != NULL;

			rule(ctx, &source, (enum engine_layer)i, overridden);
		}
	}
	registry_unlock(engine->registry);
}
