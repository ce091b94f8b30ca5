#include "lib/quota/kept.h"

#include "lib/quota/level.h"
#include "lib/quota/rate.h"

static bool is_rate(const struct quota_node *node)
{
	return node->kind == WINDOW_RATE;
}

/* `wall_ns` comes before `at`, but by no more than the slack. */
static bool is_late(int64_t wall_ns, int64_t at)
{
	int64_t behind;

	return wall_ns < at && !__builtin_sub_overflow(at, wall_ns, &behind) &&
	       behind <= QUOTA_SLACK_NS;
}

/* A level from one clock to another that is `ahead` of it: as full as it was. */
static uint64_t shifted(const struct rate *rate, uint64_t level, int64_t from_ns, int64_t to_ns)
{
	return level + ((uint64_t)to_ns - (uint64_t)from_ns) * rate->scale;
}

/* Time goes on to wall_ns, or back to it. A level from so long ago that it could be taken for one that is ahead is empty. */
static void bucket_move(const struct rate *rate, struct kept *kept, int64_t wall_ns)
{
	uint64_t elapsed = (uint64_t)wall_ns - (uint64_t)kept->at;

	if (wall_ns < kept->at) {
		kept->used = shifted(rate, kept->used, kept->at, wall_ns);
	} else if (elapsed > (uint64_t)RATE_MAX_DEBT / rate->scale) {
		kept->used = rate_level(rate, 0, wall_ns);
	}
	kept->at = wall_ns;
}

static void bucket_add(const struct quota_node *node, struct kept *kept, int64_t n, int64_t wall_ns)
{
	struct rate rate = level_rate(node);

	if (!is_late(wall_ns, kept->at)) {
		bucket_move(&rate, kept, wall_ns);
	}
	kept->used = rate_take(&rate, kept->used, n, kept->at).level;
}

static void window_add(const struct quota_node *node, struct kept *kept, int64_t n, int64_t wall_ns)
{
	struct window window = quota_window(node);
	int64_t number = window_number(&window, wall_ns);
	int64_t later;

	if (number < kept->at && !__builtin_add_overflow(wall_ns, QUOTA_SLACK_NS, &later) &&
	    window_number(&window, later) == kept->at) {
		number = kept->at;
	}
	if (number != kept->at) {
		kept->at = number;
		kept->used = 0;
	}
	kept->used += (uint64_t)n;
	if (kept->used > level_count_max(node)) {
		kept->used = level_count_max(node);
	}
}

void kept_init(const struct quota_node *node, struct kept *kept, int64_t wall_ns)
{
	struct window window = quota_window(node);
	struct rate rate = level_rate(node);

	*kept = (struct kept){
		.at = is_rate(node) ? wall_ns : window_number(&window, wall_ns),
		.used = is_rate(node) ? rate_level(&rate, 0, wall_ns) : 0,
	};
}

void kept_add(const struct quota_node *node, struct kept *kept, int64_t n, int64_t wall_ns)
{
	if (is_rate(node)) {
		bucket_add(node, kept, n, wall_ns);
	} else {
		window_add(node, kept, n, wall_ns);
	}
}

int64_t kept_count(const struct quota_node *node, const struct kept *kept)
{
	struct rate rate = level_rate(node);

	return is_rate(node) ? rate_used(&rate, kept->used, kept->at) : (int64_t)kept->used;
}

void kept_set(const struct quota_node *node, struct kept *kept, int64_t at, int64_t count)
{
	struct rate rate = level_rate(node);

	count = count < 0 ? 0 : count;
	kept->at = at;
	if (is_rate(node)) {
		kept->used = rate_level(&rate, count, at);
	} else {
		kept->used = (uint64_t)count < level_count_max(node) ? (uint64_t)count
								     : level_count_max(node);
	}
}

bool kept_settle(const struct quota_node *node, struct kept *kept, const struct quota_time *time)
{
	uint64_t word = atomic_load_explicit(&node->usage, memory_order_acquire);
	struct rate rate = level_rate(node);
	struct kept before = *kept;
	struct level_moment moment;

	level_moment(node, time, &moment);
	if (is_rate(node)) {
		bool empty = rate_used(&rate, word, moment.mono_ns) == 0;

		if (empty && rate_used(&rate, kept->used, kept->at) == 0) {
			return false;
		}
		kept->at = time->wall_ns;
		kept->used = empty ? rate_level(&rate, 0, time->wall_ns)
				   : shifted(&rate, word, moment.mono_ns, time->wall_ns);
	} else {
		kept->at = level_window(node, word, &moment);
		kept->used = (uint64_t)level_units(node, word, &moment);
	}
	return kept->at != before.at || kept->used != before.used;
}

static uint64_t bucket_word(const struct quota_node *node, struct kept kept,
			    const struct level_moment *moment)
{
	struct rate rate = level_rate(node);

	bucket_move(&rate, &kept, moment->wall_ns);
	return rate_used(&rate, kept.used, kept.at) == 0
		       ? rate_level(&rate, 0, moment->mono_ns)
		       : shifted(&rate, kept.used, kept.at, moment->mono_ns);
}

void kept_restore(struct quota_node *node, const struct kept *kept, const struct quota_time *time)
{
	uint64_t word = atomic_load_explicit(&node->usage, memory_order_relaxed);
	struct level_moment moment;
	uint64_t next;
	int64_t units;

	level_moment(node, time, &moment);
	next = is_rate(node) ? bucket_word(node, *kept, &moment)
			     : (uint64_t)kept->at << node->count_bits | kept->used;
	/* Nobody else is here; but usage is never just stored to. */
	while (!atomic_compare_exchange_weak_explicit(&node->usage, &word, next,
						      memory_order_acq_rel, memory_order_acquire)) {
	}
	atomic_store_explicit(&node->moved, moment.mono_ns, memory_order_relaxed);
	units = level_units(node, next, &moment);
	if (units > atomic_load_explicit(&node->peak, memory_order_relaxed)) {
		atomic_store_explicit(&node->peak, units, memory_order_relaxed);
	}
}
