/* verdict: what the ancestors of a charge say, read-only. Inside the charge's read section (or under the lock). */
#include "lib/engine/charge.h"
#include "lib/engine/state.h"

/* Is n more past max? Shadows too: they say what they would do. */
static bool node_is_near(const struct quota_node *node, int64_t n, const struct quota_time *time)
{
	struct quota_judgement judgement;

	if (node->kind == WINDOW_NONE) {
		int64_t max = atomic_load_explicit(&node->max, memory_order_relaxed);
		int64_t usage = (int64_t)atomic_load_explicit(&node->usage, memory_order_relaxed);
		int64_t left;

		/* With usage below 0, of a gauge, more may be left than int64 can say. */
		return max != QUOTA_NONE && !__builtin_sub_overflow(max, usage, &left) && n > left;
	}
	quota_judge(node, n > QUOTA_MAX_LIMIT ? QUOTA_MAX_LIMIT : n, time, &judgement);
	return judgement.refuses;
}

bool verdict_near(const struct charging *charging)
{
	int64_t n;

	if (charging->n_asks == 0) {
		return false;
	}
	if (__builtin_add_overflow(charging->sum, flush_bound(charging->engine), &n)) {
		return true; /* whatever the limits are */
	}
	for (size_t i = 0; i < charging->n_asks; i++) {
		const struct quota_node *node = charging->asks[i].node;

		for (; node; node = atomic_load_explicit(&node->parent, memory_order_acquire)) {
			if (node_is_near(node, n, &charging->time)) {
				return true;
			}
		}
	}
	return false;
}

static void say(const struct charging *charging, struct quota_node *node,
		struct engine_binding binding)
{
	const struct limit *limit = plane_of(node);
	struct window window = quota_window(node);

	binding.path = limit->path;
	binding.len = limit->len;
	binding.window = &window;
	charging->binding(charging->ctx, &binding);
}

static enum engine_binding_kind binds(const struct quota_node *node, bool shadow)
{
	if (shadow) {
		return ENGINE_SHADOW;
	}
	return node->kind == WINDOW_RATE ? ENGINE_BINDS_RATE : ENGINE_BINDS_MAX;
}

/* What a counter has counted without a window never becomes less. */
static int64_t retry_after(struct quota_node *node, int64_t retry_after_ms)
{
	return node->kind == WINDOW_NONE && !plane_of(node)->gauge ? -1 : retry_after_ms;
}

/* True: this node refuses, and is no shadow. */
static bool judge(const struct charging *charging, const struct quota_need *need)
{
	struct quota_node *node = need->node;
	struct quota_judgement judgement;

	quota_judge(node, need->n, &charging->time, &judgement);
	if (judgement.refuses && charging->binding) {
		say(charging, node,
		    (struct engine_binding){
			    .kind = binds(node, judgement.shadow),
			    .limit = judgement.max,
			    .usage = judgement.usage,
			    .left = judgement.left,
			    .retry_after_ms = retry_after(node, judgement.retry_after_ms),
		    });
	}
	return judgement.refuses && !judgement.shadow;
}

/* It refused a moment ago, and room has come back since. */
static void say_outcome(const struct charging *charging)
{
	const struct quota_outcome *outcome = &charging->outcome;
	int64_t left = outcome->max - outcome->usage;

	say(charging, outcome->refused,
	    (struct engine_binding){
		    .kind = binds(outcome->refused, false),
		    .limit = outcome->max,
		    .usage = outcome->usage,
		    .left = left > 0 ? left : 0,
	    });
}

void verdict_refused(const struct charging *charging)
{
	size_t n;

	if (!charging->binding) {
		return;
	}
	n = quota_gather(charging->asks, charging->n_asks, charging->needs);
	for (size_t i = 0; i < n; i++) {
		if (!judge(charging, &charging->needs[i]) &&
		    charging->needs[i].node == charging->outcome.refused) {
			say_outcome(charging);
		}
	}
}

/* How a node stands with `more` on top of its usage, which fits. */
static void stand(const struct charging *charging, struct quota_node *node, int64_t more)
{
	struct quota_reading reading;
	struct engine_binding binding = { 0 };
	int64_t max;

	quota_read(node, &charging->time, &reading);
	max = node->kind == WINDOW_RATE ? reading.limits.burst : reading.limits.max;
	if (__builtin_add_overflow(reading.usage, more, &binding.usage)) {
		binding.usage = INT64_MAX;
	}
	binding.left = reading.left == QUOTA_NONE ? QUOTA_NONE
		       : reading.left > more	  ? reading.left - more
						  : 0;
	if (reading.limits.shadow && binding.usage > max) {
		binding.kind = ENGINE_SHADOW;
		binding.limit = max;
		say(charging, node, binding);
	}
	if (binding.usage > reading.limits.high) {
		binding.kind = ENGINE_OVER_HIGH;
		binding.limit = reading.limits.high;
		say(charging, node, binding);
	}
}

void verdict_granted(const struct charging *charging)
{
	size_t n;

	if (!charging->binding) {
		return;
	}
	n = quota_gather(charging->asks, charging->n_asks, charging->needs);
	for (size_t i = 0; i < n; i++) {
		stand(charging, charging->needs[i].node, 0);
	}
}

bool verdict_dry(const struct charging *charging)
{
	size_t n = quota_gather(charging->asks, charging->n_asks, charging->needs);
	bool refused = false;

	for (size_t i = 0; i < n; i++) {
		struct quota_judgement judgement;

		quota_judge(charging->needs[i].node, charging->needs[i].n, &charging->time,
			    &judgement);
		refused = refused || (judgement.refuses && !judgement.shadow);
	}
	for (size_t i = 0; charging->binding && i < n; i++) {
		if (refused) {
			(void)judge(charging, &charging->needs[i]);
		} else {
			stand(charging, charging->needs[i].node, charging->needs[i].n);
		}
	}
	return !refused;
}
