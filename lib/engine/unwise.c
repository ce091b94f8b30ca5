/* unwise: what rules are better without. */
#include "lib/engine/lint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* For "%.*s". Patterns are checked before they are printed again, or cut. */
#define TEXT(pattern) (int)(pattern)->entry.len, (pattern)->text

/* ---- one rule ---- */

/* The pattern without its last segment; 0 for a metric. */
static size_t above(const char *path, size_t len)
{
	while (len > 0 && path[len - 1] != '/') {
		len--;
	}
	return len > 0 ? len - 1 : 0;
}

static void lint_max(struct faults *faults, const struct layer *const layers[2],
		     const struct rule *rule)
{
	const struct pattern *pattern = rule->pattern;
	char window[ENGINE_MAX_WINDOW_TEXT];

	for (size_t len = above(pattern->text, pattern->entry.len); len > 0;
	     len = above(pattern->text, len)) {
		const struct rule *parent;
		struct match match;

		rules_match(layers, pattern->text, len, &match);
		parent = match_plane(&match, rule->plane);
		if (!parent || parent->limits.max == QUOTA_NONE || parent->limits.shadow) {
			continue;
		}
		if (rule->limits.max > parent->limits.max) {
			faults_say(faults, false, rule->tag, parent->tag,
				   "%.*s: max %" PRId64 " (%s) is never reached, as that of %.*s "
				   "above is %" PRId64,
				   TEXT(pattern), rule->limits.max,
				   engine_window_text(&rule->window, window), TEXT(parent->pattern),
				   parent->limits.max);
		}
		return;
	}
}

void lint_unwise(struct faults *faults, const struct layer *const layers[2],
		 const struct rule *rule)
{
	const struct quota_limits *limits = &rule->limits;
	const struct pattern *pattern = rule->pattern;

	if (rule->window.kind == WINDOW_RATE) {
		return;
	}
	if (limits->high != QUOTA_NONE && limits->max != QUOTA_NONE && limits->high >= limits->max) {
		faults_say(faults, false, rule->tag, 0,
			   "%.*s: high %" PRId64 " is never passed, as max is %" PRId64,
			   TEXT(pattern), limits->high, limits->max);
	}
	if (limits->low > limits->max) {
		faults_say(faults, false, rule->tag, 0,
			   "%.*s: low %" PRId64 " is more than max, %" PRId64, TEXT(pattern),
			   limits->low, limits->max);
	}
	if (limits->max != QUOTA_NONE) {
		lint_max(faults, layers, rule);
	}
}

/* ---- windows of one pattern ---- */

static void compare(struct faults *faults, const struct rule *shorter, const struct rule *longer)
{
	char window[ENGINE_MAX_WINDOW_TEXT], other[ENGINE_MAX_WINDOW_TEXT];

	if (shorter->limits.max == QUOTA_NONE || shorter->limits.max <= longer->limits.max ||
	    longer->limits.shadow || !window_within(&shorter->window, &longer->window)) {
		return;
	}
	faults_say(faults, false, shorter->tag, longer->tag,
		   "%.*s: max %" PRId64 " (%s) is never reached, as that %s is %" PRId64,
		   TEXT(shorter->pattern), shorter->limits.max,
		   engine_window_text(&shorter->window, window),
		   engine_window_text(&longer->window, other), longer->limits.max);
}

static bool same_pattern(const struct pattern *a, const struct pattern *b)
{
	return a->entry.len == b->entry.len && memcmp(a->text, b->text, a->entry.len) == 0;
}

void lint_windows(struct faults *faults, const struct layer *const layers[2],
		  const struct rule *rule, bool both)
{
	const struct pattern *pattern = rule->pattern;
	struct match match;

	if (rule->window.kind == WINDOW_RATE || rule->window.kind == WINDOW_NONE) {
		return;
	}
	rules_match(layers, pattern->text, pattern->entry.len, &match);
	for (size_t i = 0; i < match.n; i++) {
		const struct rule *other = match.rules[i];

		if (other->plane == rule->plane || !same_pattern(other->pattern, pattern)) {
			continue;
		}
		compare(faults, rule, other);
		if (both) {
			compare(faults, other, rule);
		}
	}
}

/* ---- sums of min ---- */

/* A path, and what its children in the plane without a window want protected. */
struct min_sum {
	struct table_entry entry;
	const struct rule *parent, *child;
	int64_t sum;
	char path[];
};

/* The nearest ancestor of the path with a limit without a window. */
static const struct rule *parent_rule(const struct layer *const layers[2], const struct rule *child,
				      size_t *ret_len)
{
	const struct pattern *pattern = child->pattern;
	size_t len = pattern->entry.len;

	while ((len = above(pattern->text, len)) > 0) {
		const struct rule *parent;
		struct match match;

		rules_match(layers, pattern->text, len, &match);
		parent = match_plane(&match, child->plane);
		if (parent) {
			*ret_len = len;
			return parent;
		}
	}
	return NULL;
}

static bool holds(const struct layer *const layers[2], const struct rule *rule)
{
	struct match match;

	rules_match(layers, rule->pattern->text, rule->pattern->entry.len, &match);
	return match_plane(&match, rule->plane) == rule;
}

static struct min_sum *sum_of(struct table *sums, const char *path, size_t len)
{
	struct table_entry *entry = table_find(sums, path, len);
	struct min_sum *sum;

	if (entry) {
		return TABLE_THING(struct min_sum, entry);
	}
	sum = calloc(1, sizeof(*sum) + len);
	if (!sum) {
		return NULL;
	}
	memcpy(sum->path, path, len);
	sum->entry.key = sum->path;
	sum->entry.len = len;
	if (table_insert(sums, &sum->entry) < 0) {
		free(sum);
		return NULL;
	}
	return sum;
}

static void sum_rule(struct table *sums, const struct layer *const layers[2],
		     const struct rule *rule)
{
	const struct rule *parent;
	struct min_sum *sum;
	size_t len;

	if (rule->window.kind != WINDOW_NONE || rule->limits.min == 0 ||
	    !shape_exact(rule->pattern->shape) || !holds(layers, rule)) {
		return;
	}
	parent = parent_rule(layers, rule, &len);
	sum = parent ? sum_of(sums, rule->pattern->text, len) : NULL;
	if (!sum) {
		return;
	}
	sum->parent = parent;
	sum->child = rule;
	if (__builtin_add_overflow(sum->sum, rule->limits.min, &sum->sum)) {
		sum->sum = INT64_MAX;
	}
}

/* Does this rule take part? As the parent's, or by a child's path directly below it. */
static bool concerns(const struct layer *const layers[2], const struct min_sum *sum,
		     const struct rule *rule)
{
	size_t len;

	if (!rule || sum->parent == rule) {
		return true;
	}
	return shape_exact(rule->pattern->shape) && rule->limits.min > 0 &&
	       rule->window.kind == WINDOW_NONE && parent_rule(layers, rule, &len) &&
	       len == sum->entry.len && memcmp(rule->pattern->text, sum->path, len) == 0;
}

void lint_mins(struct faults *faults, const struct layer *const layers[2], const struct rule *rule)
{
	struct table_entry *entry;
	struct table sums;
	uint32_t n_mins = 0;

	for (int i = 0; i < 2; i++) {
		n_mins += layers[i] ? layers[i]->n_mins : 0;
	}
	if (n_mins == 0 || (rule && n_mins > LINT_MINS_AT_ONCE)) {
		return;
	}
	table_init(&sums, 0);
	for (int i = 0; i < 2; i++) {
		for (const struct rule *at = layers[i] ? layers[i]->oldest : NULL; at;
		     at = at->newer) {
			if (!rule || at->plane == rule->plane) {
				sum_rule(&sums, layers, at);
			}
		}
	}
	while ((entry = table_pop(&sums))) {
		struct min_sum *sum = TABLE_THING(struct min_sum, entry);

		if (sum->sum > sum->parent->limits.min && concerns(layers, sum, rule)) {
			faults_say(faults, false, sum->child->tag, sum->parent->tag,
				   "%.*s: the min of what is below add up to %" PRId64
				   ", its own is %" PRId64,
				   (int)sum->entry.len, sum->path, sum->sum,
				   sum->parent->limits.min);
		}
		free(sum);
	}
	table_deinit(&sums);
}
