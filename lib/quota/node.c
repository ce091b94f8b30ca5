#include "lib/quota/node.h"

#include <assert.h>

#include "lib/quota/charge.h"
#include "lib/quota/level.h"
#include "lib/quota/protect.h"
#include "lib/quota/rate.h"

#define NS_PER_MS INT64_C(1000000)

struct window quota_window(const struct quota_node *node)
{
	return (struct window){
		.kind = node->kind,
		.unit = node->unit,
		.duration_ns = node->kind == WINDOW_PER ? node->duration_ns : 0,
	};
}

/* ---- limits ---- */

static void set_amounts(struct quota_node *node, const struct quota_limits *limits)
{
	/*
	 * Sequentially consistent, max and shadow before who then reads usage: a charge that took under the old max either looks at max
	 * again after this and goes back (level_take), or took before this and is seen in usage. min and low: see level_protect.
	 */
	atomic_store_explicit(&node->max, limits->max, memory_order_seq_cst);
	RATION_HOOK();
	atomic_store_explicit(&node->shadow, limits->shadow, memory_order_seq_cst);
	RATION_HOOK();
	atomic_store_explicit(&node->min, limits->min, memory_order_seq_cst);
	atomic_store_explicit(&node->low, limits->low, memory_order_seq_cst);
	/* Relaxed: only a hint in an answer depends on it. */
	atomic_store_explicit(&node->high, limits->high, memory_order_relaxed);
	RATION_HOOK();
	level_reclaim(node);
}

/* Exclusive, so plain stores do. The limits were checked. */
static void set_rate(struct quota_node *node, const struct quota_limits *limits)
{
	struct rate rate = { .cost = 1, .scale = 1, .burst = 1 };
	bool made = rate_make(limits->rate, limits->per_ns, limits->burst, &rate);

	assert(made);
	(void)made;
	node->burst = rate.burst;
	node->rate = limits->rate;
	node->cost = rate.cost;
	node->scale = rate.scale;
	node->duration_ns = limits->per_ns;
	atomic_store_explicit(&node->shadow, limits->shadow, memory_order_relaxed);
}

void quota_set_limits(struct quota_node *node, const struct quota_limits *limits,
		      const struct quota_time *time)
{
	struct level_moment moment;
	uint64_t word;
	int64_t used;
	struct rate rate;

	if (node->kind != WINDOW_RATE) {
		set_amounts(node, limits);
		return;
	}
	level_moment(node, time, &moment);
	word = atomic_load_explicit(&node->usage, memory_order_acquire);
	used = level_units(node, word, &moment);
	set_rate(node, limits);
	rate = level_rate(node);
	/* Nobody else is here; but usage is never just stored to. */
	while (!atomic_compare_exchange_weak_explicit(&node->usage, &word,
						      rate_level(&rate, used, moment.mono_ns),
						      memory_order_acq_rel, memory_order_acquire)) {
	}
}

/* ---- coming and going ---- */

static uint64_t first_word(const struct quota_node *node, int64_t usage,
			   const struct level_moment *moment)
{
	struct rate rate;
	uint64_t most;

	if (node->kind == WINDOW_NONE) {
		return (uint64_t)usage;
	}
	usage = usage < 0 ? 0 : usage;
	if (node->kind == WINDOW_RATE) {
		rate = level_rate(node);
		return rate_level(&rate, usage, moment->mono_ns);
	}
	most = (UINT64_C(1) << node->count_bits) - 1;
	return ((uint64_t)moment->number << node->count_bits) |
	       ((uint64_t)usage < most ? (uint64_t)usage : most);
}

void quota_init(struct quota_node *node, const struct window *window, struct quota_node *parent,
		const struct quota_limits *limits, int64_t usage, const struct quota_time *time)
{
	struct level_moment moment;

	*node = (struct quota_node){
		.kind = (uint8_t)window->kind,
		.unit = (uint8_t)window->unit,
		.duration_ns = window->duration_ns,
	};
	if (level_is_windowed(node)) {
		node->count_bits = (uint8_t)(64 - window_bits(window));
	}
	level_moment(node, time, &moment);
	if (node->kind == WINDOW_RATE) {
		set_rate(node, limits);
	} else {
		set_amounts(node, limits);
	}
	if (node->kind != WINDOW_NONE) {
		atomic_init(&node->moved, moment.mono_ns);
	}
	atomic_init(&node->usage, first_word(node, usage, &moment));
	atomic_init(&node->peak, usage > 0 ? usage : 0);
	quota_reparent(node, parent);
}

void quota_reparent(struct quota_node *node, struct quota_node *parent)
{
	struct quota_node *old = level_parent(node);

	if (old != NULL && node->kind == WINDOW_NONE) {
		int64_t min = atomic_exchange_explicit(&node->min_used, 0, memory_order_relaxed);
		int64_t low = atomic_exchange_explicit(&node->low_used, 0, memory_order_relaxed);

		(void)atomic_fetch_sub_explicit(&old->children_min, min, memory_order_relaxed);
		(void)atomic_fetch_sub_explicit(&old->children_low, low, memory_order_relaxed);
	}
	/* Release: pairs with level_parent; the parent is ready to be charged. */
	atomic_store_explicit(&node->parent, parent, memory_order_release);
	level_reclaim(node);
}

/* ---- charging one path ---- */

void quota_charge(struct quota_node *node, int64_t n, const struct quota_time *time)
{
	struct level_moment moment;

	level_moment(node, time, &moment);
	level_force(node, n, &moment);
}

int quota_try_charge(struct quota_node *node, int64_t n, const struct quota_time *time,
		     struct quota_outcome *ret_outcome)
{
	struct quota_item item = { .node = node, .n = n };
	uint64_t trail[QUOTA_MAX_LEVELS];

	assert(quota_depth(node) <= QUOTA_MAX_LEVELS);
	return quota_try_charge_all(&item, 1, time, trail, ret_outcome);
}

int quota_uncharge(struct quota_node *node, int64_t n)
{
	struct quota_node *at;
	struct quota_node *back;

	if (node->kind != WINDOW_NONE) {
		return 0;
	}
	/* Look first, so that nothing is taken off and put back where it is plain that there is too little. */
	for (at = node; at != NULL; at = level_parent(at)) {
		if ((int64_t)atomic_load_explicit(&at->usage, memory_order_acquire) < n) {
			return QUOTA_E_UNDERFLOW;
		}
	}
	for (at = node; at != NULL; at = level_parent(at)) {
		RATION_HOOK();
		if (!level_give(at, n)) {
			break;
		}
	}
	if (at == NULL) {
		return 0;
	}
	for (back = node; back != at; back = level_parent(back)) {
		(void)atomic_fetch_add_explicit(&back->usage, (uint64_t)n, memory_order_seq_cst);
		level_reclaim(back);
	}
	return QUOTA_E_UNDERFLOW;
}

/* ---- answers ---- */

static void read_limits(const struct quota_node *node, struct quota_limits *ret_limits)
{
	*ret_limits = (struct quota_limits)QUOTA_LIMITS_INIT;
	ret_limits->shadow = atomic_load_explicit(&node->shadow, memory_order_relaxed);
	if (node->kind == WINDOW_RATE) {
		ret_limits->rate = node->rate;
		ret_limits->per_ns = node->duration_ns;
		ret_limits->burst = node->burst;
		return;
	}
	ret_limits->max = atomic_load_explicit(&node->max, memory_order_relaxed);
	ret_limits->high = atomic_load_explicit(&node->high, memory_order_relaxed);
	ret_limits->low = atomic_load_explicit(&node->low, memory_order_relaxed);
	ret_limits->min = atomic_load_explicit(&node->min, memory_order_relaxed);
}

/* max, shadow or not; of a rate the burst. */
static int64_t nominal_max(const struct quota_node *node)
{
	return node->kind == WINDOW_RATE ? node->burst
					 : atomic_load_explicit(&node->max, memory_order_relaxed);
}

static int64_t left_of(int64_t max, int64_t usage)
{
	int64_t left;

	if (max == QUOTA_NONE) {
		return QUOTA_NONE;
	}
	if (__builtin_sub_overflow(max, usage, &left)) {
		return INT64_MAX; /* max >= 0, so usage is far below 0 */
	}
	return left > 0 ? left : 0;
}

/* The word lags behind usage that has not fallen since (level.c). */
static int64_t peak_of(const struct quota_node *node, uint64_t word)
{
	int64_t peak = atomic_load_explicit(&node->peak, memory_order_acquire);
	int64_t usage = (int64_t)word;

	if (node->kind == WINDOW_RATE) {
		return peak;
	}
	if (level_is_windowed(node)) {
		usage &= (INT64_C(1) << node->count_bits) - 1;
	}
	return usage > peak ? usage : peak;
}

void quota_read(const struct quota_node *node, const struct quota_time *time,
		struct quota_reading *ret_reading)
{
	uint64_t word = atomic_load_explicit(&node->usage, memory_order_seq_cst);
	struct level_moment moment;
	struct quota_reading reading = { .window = quota_window(node) };

	level_moment(node, time, &moment);
	read_limits(node, &reading.limits);
	reading.usage = level_units(node, word, &moment);
	reading.left = left_of(nominal_max(node), reading.usage);
	reading.peak = peak_of(node, word);
	reading.refusals = atomic_load_explicit(&node->refusals, memory_order_relaxed);
	reading.forced = atomic_load_explicit(&node->forced, memory_order_relaxed);
	reading.lost = atomic_load_explicit(&node->lost, memory_order_relaxed);
	if (node->kind == WINDOW_NONE) {
		reading.children_min =
			atomic_load_explicit(&node->children_min, memory_order_relaxed);
		reading.children_low =
			atomic_load_explicit(&node->children_low, memory_order_relaxed);
	} else if (level_is_windowed(node)) {
		int64_t number = level_window(node, word, &moment);

		reading.window_start_ns = window_start(&reading.window, number);
		reading.window_end_ns = window_end(&reading.window, number);
	}
	*ret_reading = reading;
}

/* From ns >= 0 to ms, rounded up. */
static int64_t ms_of(int64_t ns)
{
	return ns / NS_PER_MS + (ns % NS_PER_MS != 0);
}

static int64_t wait_of(const struct quota_node *node, uint64_t word, int64_t n,
		       const struct level_moment *moment)
{
	int64_t max = nominal_max(node);
	struct window window;
	struct rate rate;
	int64_t ns;

	if (n > max) {
		return -1;
	}
	switch (node->kind) {
	case WINDOW_NONE:
		return 0;
	case WINDOW_RATE:
		rate = level_rate(node);
		return ms_of(rate_wait_ns(&rate, word, n, moment->mono_ns));
	default:
		if (level_units(node, word, moment) <= max - n) {
			return 0;
		}
		window = quota_window(node);
		if (__builtin_sub_overflow(window_end(&window, level_window(node, word, moment)),
					   moment->wall_ns, &ns)) {
			return -1; /* after the end of time as int64 tells it */
		}
		return ns > 0 ? ms_of(ns) : 1;
	}
}

int64_t quota_retry_after_ms(const struct quota_node *node, int64_t n,
			     const struct quota_time *time)
{
	struct level_moment moment;

	level_moment(node, time, &moment);
	return wait_of(node, atomic_load_explicit(&node->usage, memory_order_acquire), n, &moment);
}

void quota_judge(const struct quota_node *node, int64_t n, const struct quota_time *time,
		 struct quota_judgement *ret_judgement)
{
	uint64_t word = atomic_load_explicit(&node->usage, memory_order_acquire);
	int64_t high = node->kind == WINDOW_RATE
			       ? QUOTA_NONE
			       : atomic_load_explicit(&node->high, memory_order_relaxed);
	struct level_moment moment;
	struct quota_judgement judgement = { 0 };

	level_moment(node, time, &moment);
	judgement.max = nominal_max(node);
	judgement.usage = level_units(node, word, &moment);
	judgement.left = left_of(judgement.max, judgement.usage);
	judgement.shadow = atomic_load_explicit(&node->shadow, memory_order_relaxed);
	judgement.over_high = judgement.usage > high;
	judgement.refuses = n > 0 && judgement.usage > judgement.max - n;
	if (judgement.refuses) {
		judgement.retry_after_ms = wait_of(node, word, n, &moment);
	}
	*ret_judgement = judgement;
}

/* ---- protections ---- */

void quota_effective(const struct quota_node *node, bool recursive, int64_t *ret_min,
		     int64_t *ret_low)
{
	const struct quota_node *path[QUOTA_MAX_LEVELS];
	struct protect_parent above[2]; /* min, low */
	int64_t effective[2] = { 0, 0 };
	size_t depth = 0;

	if (node->kind == WINDOW_NONE) {
		for (; node != NULL; node = level_parent(node)) {
			assert(depth < QUOTA_MAX_LEVELS);
			path[depth++] = node;
		}
	}
	for (size_t i = depth; i-- > 0;) {
		int64_t usage =
			(int64_t)atomic_load_explicit(&path[i]->usage, memory_order_acquire);
		int64_t min = atomic_load_explicit(&path[i]->min, memory_order_relaxed);
		int64_t low = atomic_load_explicit(&path[i]->low, memory_order_relaxed);
		bool top = i == depth - 1;

		effective[0] = protect_effective(usage, min, top ? NULL : &above[0], recursive);
		effective[1] = protect_effective(usage, low, top ? NULL : &above[1], recursive);
		above[0] = (struct protect_parent){
			.usage = usage,
			.effective = effective[0],
			.children =
				atomic_load_explicit(&path[i]->children_min, memory_order_relaxed),
		};
		above[1] = (struct protect_parent){
			.usage = usage,
			.effective = effective[1],
			.children =
				atomic_load_explicit(&path[i]->children_low, memory_order_relaxed),
		};
	}
	*ret_min = effective[0];
	*ret_low = effective[1];
}
