/* limits: what counters carry, one after the other. */
#include <stdatomic.h>

#include "lib/engine/quota.h"
#include "lib/engine/state.h"

/* Counters' numbers that are looked at in one read section. */
#define LIMITS_STRETCH 4096u

struct limits_walk {
	const struct quota_time *time;
	engine_limited_fn visit;
	void *ctx;
};

static void show(const struct limits_walk *walk, const struct limit *limit)
{
	struct quota_reading reading;
	struct engine_limited limited = { .path = limit->path, .len = limit->len };

	quota_read(&limit->node, walk->time, &reading);
	limited.window = &reading.window;
	limited.limits = reading.limits;
	limited.usage = reading.usage;
	limited.peak = reading.peak;
	limited.refusals = reading.refusals;
	limited.forced = reading.forced;
	walk->visit(walk->ctx, &limited);
}

/* Up to `n` counters that carry limits, and at most a stretch. */
static size_t walk_some(const struct engine *engine, const struct limits_walk *walk, size_t n,
			struct engine_limits_cursor *cursor)
{
	uint32_t n_ids = atomic_load_explicit(&engine->tree.n_ids, memory_order_relaxed);
	uint32_t end =
		n_ids - cursor->next < LIMITS_STRETCH ? n_ids : cursor->next + LIMITS_STRETCH;
	size_t met = 0;

	while (cursor->next < end && met < n) {
		const struct limit *limit = plane_first(&engine->planes, cursor->next++);

		met += limit != NULL;
		for (; limit; limit = plane_next(limit)) {
			show(walk, limit);
		}
	}
	return met;
}

void engine_limits_walk(struct engine *engine, const struct quota_time *time, size_t n,
			struct engine_limits_cursor *cursor, engine_limited_fn visit, void *ctx,
			bool *ret_done)
{
	const struct limits_walk walk = { .time = time, .visit = visit, .ctx = ctx };
	bool done = planes_count(&engine->planes) == 0;

	while (!done && n > 0) {
		gate_enter(&engine->gate);
		n -= walk_some(engine, &walk, n, cursor);
		done = cursor->next >=
		       atomic_load_explicit(&engine->tree.n_ids, memory_order_relaxed);
		grace_leave();
	}
	*ret_done = done;
}
