#pragma once
/*
 * quota-support: rules and charges in a line, and answers as text to compare.
 */
#include "tests/unit/engine/support.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/engine/gate.h"
#include "lib/engine/quota.h"

static inline struct quota_time at(int64_t s)
{
	return (struct quota_time){ .wall_ns = s * SECOND, .mono_ns = s * SECOND };
}

static inline struct engine_rule rule_max(const char *pattern, int64_t max)
{
	struct engine_rule rule = { .pattern = pattern,
				    .len = strlen(pattern),
				    .limits = QUOTA_LIMITS_INIT };

	rule.limits.max = max;
	return rule;
}

static inline struct engine_rule rule_per(const char *pattern, int64_t max, int64_t s)
{
	struct engine_rule rule = rule_max(pattern, max);

	rule.window = (struct window){ .kind = WINDOW_PER, .duration_ns = s * SECOND };
	return rule;
}

static inline struct engine_rule rule_rate(const char *pattern, int64_t rate, int64_t burst)
{
	struct engine_rule rule = rule_max(pattern, QUOTA_NONE);

	rule.window = (struct window){ .kind = WINDOW_RATE };
	rule.limits.rate = rate;
	rule.limits.per_ns = SECOND;
	rule.limits.burst = burst;
	return rule;
}

static inline void set_rule(struct engine *engine, struct engine_rule rule)
{
	assert_int_equal(engine_rule_set(engine, &rule, at(1000), NULL, NULL), 0);
}

static inline void set_max(struct engine *engine, const char *pattern, int64_t max)
{
	set_rule(engine, rule_max(pattern, max));
}

/* Everything a callback said, as text. */
struct answer {
	char text[16384];
	size_t len;
};

static inline void answer_add(struct answer *answer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static inline void answer_add(struct answer *answer, const char *format, ...)
{
	size_t room = sizeof(answer->text) - answer->len;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(answer->text + answer->len, room, format, args);
	va_end(args);
	if (n > 0 && (size_t)n < room) {
		answer->len += (size_t)n;
	}
}

/* "max a/b (per 10s) 5/10 left 5 retry 3;" */
static inline void answer_binding(void *ctx, const struct engine_binding *binding)
{
	static const char *const kinds[] = { "max", "rate", "high", "shadow" };
	char window[ENGINE_MAX_WINDOW_TEXT];

	answer_add(ctx, "%s %.*s (%s) %" PRId64 "/%" PRId64 " left %" PRId64 " retry %" PRId64 ";",
		   kinds[binding->kind], (int)binding->len, binding->path,
		   engine_window_text(binding->window, window), binding->usage, binding->limit,
		   binding->left, binding->retry_after_ms);
}

static inline void answer_fault(void *ctx, const struct engine_fault *fault)
{
	answer_add(ctx, "%s%" PRIu32 ",%" PRIu32 ": %s\n", fault->fatal ? "fatal " : "", fault->tag,
		   fault->other_tag, fault->text);
}

static inline int charge_items(struct engine_worker *worker, const struct engine_charge_item *items,
			       size_t n, struct quota_time time, bool dry, struct answer *answer,
			       size_t *ret_index)
{
	const struct engine_charge charge = { .items = items, .n = n, .time = time, .dry_run = dry };

	if (answer) {
		answer->text[0] = '\0';
		answer->len = 0;
	}
	return engine_charge(worker, &charge, answer ? answer_binding : NULL, answer, ret_index);
}

static inline int charge_at(struct engine_worker *worker, const char *path, int64_t n,
			    struct quota_time time, struct answer *answer)
{
	const struct engine_charge_item item = { .path = path, .len = strlen(path), .n = n };

	return charge_items(worker, &item, 1, time, false, answer, NULL);
}

static inline int charge(struct engine_worker *worker, const char *path, int64_t n)
{
	return charge_at(worker, path, n, at(1000), NULL);
}

static inline int dry(struct engine_worker *worker, const char *path, int64_t n,
		      struct answer *answer)
{
	const struct engine_charge_item item = { .path = path, .len = strlen(path), .n = n };

	return charge_items(worker, &item, 1, at(1000), true, answer, NULL);
}

static inline int uncharge(struct engine_worker *worker, const char *path, int64_t n)
{
	return engine_uncharge(worker, path, strlen(path), n, at(1000));
}

/* What stands in a counter's plane: -1 if it carries none. White box. */
static inline int64_t usage_at(struct engine *engine, const char *path, struct window window,
			       struct quota_time time)
{
	struct quota_reading reading;
	int64_t usage = -1;
	struct name *name;

	grace_enter();
	name = registry_find(engine->registry, path, strlen(path));
	for (struct limit *limit = name ? plane_first(&engine->planes, name->id) : NULL; limit;
	     limit = plane_next(limit)) {
		struct window own_window = quota_window(&limit->node);

		if (window_equal(&own_window, &window)) {
			quota_read(&limit->node, &time, &reading);
			usage = reading.usage;
		}
	}
	grace_leave();
	return usage;
}

static inline int64_t usage(struct engine *engine, const char *path)
{
	return usage_at(engine, path, (struct window){ 0 }, at(1000));
}

#define GAUGE ((struct engine_metric){ .kind = ENGINE_GAUGE })
