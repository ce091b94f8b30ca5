#include "lib/engine/lint.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/duration.h"

const char *engine_window_text(const struct window *window, char text[ENGINE_MAX_WINDOW_TEXT])
{
	static const char *const units[] = { "day", "week", "month" };
	char duration[DURATION_MAX_TEXT];

	static_assert(sizeof("per ") + DURATION_MAX_TEXT <= ENGINE_MAX_WINDOW_TEXT, "fits");
	switch (window->kind) {
	case WINDOW_PER:
		(void)snprintf(text, ENGINE_MAX_WINDOW_TEXT, "per %s",
			       duration_format(window->duration_ns, duration));
		break;
	case WINDOW_CALENDAR:
		(void)snprintf(text, ENGINE_MAX_WINDOW_TEXT, "per calendar %s",
			       units[window->unit]);
		break;
	case WINDOW_RATE:
		(void)snprintf(text, ENGINE_MAX_WINDOW_TEXT, "rate");
		break;
	case WINDOW_NONE:
	default:
		(void)snprintf(text, ENGINE_MAX_WINDOW_TEXT, "without a window");
		break;
	}
	return text;
}

void faults_say(struct faults *faults, bool fatal, uint32_t tag, uint32_t other_tag,
		const char *format, ...)
{
	struct engine_fault fault = { .fatal = fatal, .tag = tag, .other_tag = other_tag };
	va_list args;

	faults->n_fatal += fatal;
	if (!faults->fault) {
		return;
	}
	va_start(args, format);
	(void)vsnprintf(fault.text, sizeof(fault.text), format, args);
	va_end(args);
	faults->fault(faults->ctx, &fault);
}

/* For "%.*s". Patterns are checked before they are printed again, or cut. */
#define TEXT(pattern) (int)(pattern)->entry.len, (pattern)->text

/* ---- a rule by itself ---- */

bool lint_rule(struct faults *faults, const struct engine_rule *rule, struct shape *ret_shape)
{
	int shown = rule->len < PATH_MAX_BYTES ? (int)rule->len : (int)PATH_MAX_BYTES;
	const char *wrong = pattern_parse(rule->pattern, rule->len, ret_shape);
	char text[QUOTA_LIMITS_TEXT];

	if (!wrong) {
		wrong = quota_limits_check(&rule->window, &rule->limits, text);
	}
	if (wrong) {
		faults_say(faults, true, rule->tag, 0, "%.*s: %s", shown, rule->pattern, wrong);
	}
	return !wrong;
}

/* ---- a layer ---- */

void lint_full(struct faults *faults, const struct engine_rule *source, const struct layer *layer)
{
	const struct layer_metric *metric = layer_metric(layer, source->pattern, source->len);
	uint32_t planes = 0;

	for (unsigned i = 0; metric && i < RULES_PLANES; i++) {
		planes += metric->n_rules[i] > 0;
	}
	if (planes >= ENGINE_MAX_PLANES) {
		faults_say(faults, true, source->tag, 0,
			   "%.*s: a metric can have limits of at most %u different windows",
			   (int)source->len, source->pattern, ENGINE_MAX_PLANES);
	} else {
		faults_say(faults, true, source->tag, 0,
			   "%.*s: the wildcards of a metric's templates can stand in at most %u "
			   "different ways",
			   (int)source->len, source->pattern, ENGINE_MAX_SHAPES);
	}
}

static int fill_one(struct faults *faults, struct rules *rules, struct layer *layer,
		    const struct engine_rule *source)
{
	char window[ENGINE_MAX_WINDOW_TEXT];
	const struct rule *other;
	struct shape shape;
	struct rule *rule;
	int r;

	if (!lint_rule(faults, source, &shape)) {
		return 0;
	}
	other = layer_find(layer, source->pattern, source->len, &source->window);
	if (other) {
		faults_say(faults, true, source->tag, other->tag, "%.*s has limits %s twice",
			   (int)source->len, source->pattern,
			   engine_window_text(&source->window, window));
		return 0;
	}
	r = layer_add(rules, layer, source, shape, &rule);
	if (r == ENGINE_E_FULL) {
		lint_full(faults, source, layer);
		return 0;
	}
	return r;
}

int lint_fill(struct faults *faults, struct rules *rules, struct layer *layer,
	      const struct engine_rule *sources, size_t n)
{
	int r = 0;

	if (n > ENGINE_MAX_RULES) {
		faults_say(faults, true, sources[ENGINE_MAX_RULES].tag, 0,
			   "%zu rules; there can be at most %u", n, ENGINE_MAX_RULES);
		return 0;
	}
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = fill_one(faults, rules, layer, &sources[i]);
	}
	return r;
}

static void say_planes(struct faults *faults, const struct layer_metric *metric, unsigned n,
		       uint32_t tag)
{
	faults_say(faults, true, tag, 0,
		   "%.*s has limits of %u different windows, in the file and set at run time; there "
		   "can be at most %u",
		   (int)metric->entry.len, metric->name, n, ENGINE_MAX_PLANES);
}

void lint_metric_planes(struct faults *faults, const struct layer_metric *metric,
			const struct layer *other, uint32_t tag)
{
	const struct layer_metric *more =
		other ? layer_metric(other, metric->name, metric->entry.len) : NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < RULES_PLANES; i++) {
		n += metric->n_rules[i] > 0 || (more && more->n_rules[i] > 0);
	}
	if (n > ENGINE_MAX_PLANES) {
		say_planes(faults, metric, n, tag);
	}
}

void lint_planes(struct faults *faults, const struct layer *layer, const struct layer *other)
{
	for (struct table_entry *at = table_next(&layer->metrics, NULL); at;
	     at = table_next(&layer->metrics, at)) {
		const struct layer_metric *metric = TABLE_THING(struct layer_metric, at);
		const struct rule *rule = metric->shapes[0].patterns->rules;

		lint_metric_planes(faults, metric, other, rule->tag);
	}
}

/* ---- ties ---- */

/* A rule by what its pattern has literal where another shape has, and by its plane. */
struct tie_key {
	struct table_entry entry;
	const struct rule *rule;
	char text[];
};

static size_t tie_text(const struct rule *rule, struct shape other, char text[PATH_MAX_BYTES + 1])
{
	const struct pattern *pattern = rule->pattern;

	text[0] = (char)rule->plane;
	return 1 +
	       pattern_common(pattern->text, pattern->entry.len, pattern->shape, other, text + 1);
}

static int tie_remember(struct table *table, const struct rule *rule, struct shape other)
{
	char text[PATH_MAX_BYTES + 1];
	size_t len = tie_text(rule, other, text);
	struct tie_key *key;

	if (table_find(table, text, len)) {
		return 0;
	}
	key = malloc(sizeof(*key) + len);
	if (!key) {
		return -ENOMEM;
	}
	memcpy(key->text, text, len);
	key->rule = rule;
	key->entry.key = key->text;
	key->entry.len = len;
	if (table_insert(table, &key->entry) < 0) {
		free(key);
		return -ENOMEM;
	}
	return 0;
}

static void tie_meet(struct faults *faults, const struct table *table, const struct rule *rule,
		     struct shape other)
{
	char text[PATH_MAX_BYTES + 1];
	struct table_entry *entry = table_find(table, text, tie_text(rule, other, text));

	if (entry) {
		const struct rule *tied = TABLE_THING(struct tie_key, entry)->rule;

		faults_say(faults, true, rule->tag, tied->tag,
			   "%.*s and %.*s can match the same path and neither is more exact: their "
			   "literal prefixes are equally long",
			   TEXT(rule->pattern), TEXT(tied->pattern));
	}
}

static void tie_forget(struct table *table)
{
	struct table_entry *entry;

	while ((entry = table_pop(table))) {
		free(TABLE_THING(struct tie_key, entry));
	}
	table_deinit(table);
}

static bool may_tie(struct shape a, struct shape b)
{
	return !shape_equal(a, b) && !shape_exact(a) && !shape_exact(b) &&
	       shape_prefix(a) == shape_prefix(b) && shapes_meet(a, b);
}

/* All rules of that shape. To be forgotten also if it fails. */
static int tie_remember_all(struct table *ret_table, const struct layer_shape *some,
			    struct shape other)
{
	int r = 0;

	table_init(ret_table, 0);
	for (const struct pattern *at = some->patterns; r == 0 && at; at = at->next_alike) {
		for (const struct rule *rule = at->rules; r == 0 && rule; rule = rule->next) {
			r = tie_remember(ret_table, rule, other);
		}
	}
	return r;
}

static int tie_all(struct faults *faults, const struct layer_shape *some,
		   const struct layer_shape *others)
{
	struct table table;
	int r = tie_remember_all(&table, some, others->shape);

	for (const struct pattern *at = others->patterns; r == 0 && at; at = at->next_alike) {
		for (const struct rule *rule = at->rules; rule; rule = rule->next) {
			tie_meet(faults, &table, rule, some->shape);
		}
	}
	tie_forget(&table);
	return r;
}

static int tie_metric(struct faults *faults, const struct layer_metric *metric)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < metric->n_shapes; i++) {
		for (uint32_t j = i + 1; r == 0 && j < metric->n_shapes; j++) {
			if (may_tie(metric->shapes[i].shape, metric->shapes[j].shape)) {
				r = tie_all(faults, &metric->shapes[i], &metric->shapes[j]);
			}
		}
	}
	return r;
}

int lint_ties(struct faults *faults, const struct layer *layer)
{
	int r = 0;

	for (struct table_entry *at = table_next(&layer->metrics, NULL); r == 0 && at;
	     at = table_next(&layer->metrics, at)) {
		r = tie_metric(faults, TABLE_THING(struct layer_metric, at));
	}
	return r;
}

int lint_tie(struct faults *faults, const struct rule *rule)
{
	const struct layer_metric *metric = rule->pattern->metric;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < metric->n_shapes; i++) {
		struct table table;

		if (!may_tie(metric->shapes[i].shape, rule->pattern->shape)) {
			continue;
		}
		r = tie_remember_all(&table, &metric->shapes[i], rule->pattern->shape);
		if (r == 0) {
			tie_meet(faults, &table, rule, metric->shapes[i].shape);
		}
		tie_forget(&table);
	}
	return r;
}
