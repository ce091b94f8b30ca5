#include "tests/unit/quota/model.h"

#include "lib/quota/window.h"

static bool is_rate(const struct model_node *node)
{
	return node->window.kind == WINDOW_RATE;
}

static bool is_windowed(const struct model_node *node)
{
	return node->window.kind == WINDOW_PER || node->window.kind == WINDOW_CALENDAR;
}

/* The rate's own clock: how far it has got at this time, in 1/per of a unit. */
static __int128 accrued(const struct model_node *node, const struct quota_time *time)
{
	return (__int128)node->limits.rate * time->mono_ns;
}

/* Which window does a charge at this time count in? */
static int64_t window_for(const struct model_node *node, const struct quota_time *time)
{
	if (time->mono_ns < node->moved ||
	    window_number(&node->window, time->wall_ns + QUOTA_SLACK_NS) == node->number) {
		return node->number;
	}
	return window_number(&node->window, time->wall_ns);
}

static __int128 usage_now(const struct model_node *node, const struct quota_time *time)
{
	__int128 fill;

	if (is_rate(node)) {
		fill = node->level - accrued(node, time);
		return fill <= 0 ? 0 : (fill + node->limits.per_ns - 1) / node->limits.per_ns;
	}
	return is_windowed(node) && window_for(node, time) != node->number ? 0 : node->usage;
}

int64_t model_usage(const struct model_node *node, const struct quota_time *time)
{
	return (int64_t)usage_now(node, time);
}

/* A charge moves the window on. */
static void settle(struct model_node *node, const struct quota_time *time)
{
	if (is_windowed(node) && window_for(node, time) != node->number) {
		node->number = window_for(node, time);
		node->usage = 0;
		node->moved = time->mono_ns > node->moved ? time->mono_ns : node->moved;
	}
	if (is_rate(node) && node->level < accrued(node, time)) {
		node->level = accrued(node, time);
	}
}

static int64_t max_of(const struct model_node *node)
{
	return is_rate(node) ? node->limits.burst : node->limits.max;
}

/* The whole sum fits? usage_now rounds a rate up, which is exact for whole units. */
static bool fits(const struct model_node *node, int64_t n, const struct quota_time *time)
{
	return usage_now(node, time) + n <= max_of(node);
}

static int64_t least(__int128 a, __int128 b)
{
	return (int64_t)(a < b ? a : b);
}

/* Where usage stops. */
static int64_t beyond(const struct model_node *node)
{
	int64_t most = window_count_max(&node->window);

	return node->window.kind == WINDOW_NONE ? most : most + 1;
}

/* Adds n, as far as that can be told; returns what can't. */
static int64_t put(struct model_node *node, int64_t n)
{
	__int128 most = beyond(node);
	__int128 lost = 0;

	if (is_rate(node)) {
		node->level += (__int128)n * node->limits.per_ns;
		return 0;
	}
	node->usage += n;
	if (node->usage > most) {
		lost = node->usage - most;
	} else if (node->usage < INT64_MIN) {
		lost = node->usage - INT64_MIN;
	}
	node->usage -= lost;
	return least(lost < 0 ? -lost : lost, INT64_MAX);
}

static void add_to(int64_t *figure, int64_t n)
{
	*figure = least((__int128)*figure + n, INT64_MAX);
}

void model_init(struct model_node *node, const struct window *window, struct model_node *parent,
		const struct quota_limits *limits, int64_t usage, const struct quota_time *time)
{
	*node = (struct model_node){ .window = *window,
				     .parent = parent,
				     .limits = *limits,
				     .usage = usage,
				     .number = window_number(window, time->wall_ns),
				     .moved = time->mono_ns,
				     .peak = usage > 0 ? usage : 0 };
	node->level = accrued(node, time) + (__int128)usage * limits->per_ns;
}

void model_set_limits(struct model_node *node, const struct quota_limits *limits,
		      const struct quota_time *time)
{
	__int128 used = usage_now(node, time);

	node->limits = *limits;
	if (is_rate(node)) {
		node->level = accrued(node, time) + used * limits->per_ns;
	}
}

static bool take(struct model_node *node, int64_t n, const struct quota_time *time,
		 struct model_outcome *outcome)
{
	bool fit = fits(node, n, time);
	bool full = node->window.kind == WINDOW_NONE && node->usage + n > INT64_MAX;

	if (!fit) {
		node->refusals++;
	} else if (full) {
		node->refusals++;
		fit = false;
	}
	if (!fit && (!node->limits.shadow || full)) {
		outcome->refused = node;
		outcome->usage = model_usage(node, time);
		outcome->max = node->limits.shadow ? QUOTA_NONE : max_of(node);
		return false;
	}
	outcome->shadow |= !fit;
	settle(node, time);
	add_to(&node->lost, put(node, n));
	return true;
}

static void untake(struct model_node *node, int64_t n)
{
	if (is_rate(node)) {
		node->level -= (__int128)n * node->limits.per_ns;
	} else if (node->window.kind == WINDOW_NONE || node->usage != beyond(node)) {
		node->usage -= n;
	}
}

bool model_charge_all(const struct model_item *items, size_t count, const struct quota_time *time,
		      struct model_outcome *ret_outcome)
{
	struct model_outcome outcome = { 0 };
	size_t item;
	struct model_node *at = NULL;

	for (item = 0; item < count; item++) {
		for (at = items[item].node; at != NULL; at = at->parent) {
			if (!take(at, items[item].n, time, &outcome)) {
				goto refused;
			}
		}
	}
	for (item = 0; item < count; item++) {
		/* Every value on the way was a value of usage: the last of a node is its highest. */
		for (at = items[item].node; at != NULL; at = at->parent) {
			int64_t usage = model_usage(at, time);

			at->peak = usage > at->peak ? usage : at->peak;
			outcome.over_high |= !is_rate(at) && usage > at->limits.high;
		}
	}
	*ret_outcome = outcome;
	return true;

refused:
	outcome.item = item;
	for (size_t i = 0; i <= item; i++) {
		for (struct model_node *back = items[i].node;
		     back != NULL && !(i == item && back == at); back = back->parent) {
			untake(back, items[i].n);
		}
	}
	/* What can't be untaken, a count that has stopped telling, was used in vain. */
	for (size_t i = 0; i <= item; i++) {
		for (at = items[i].node; at != NULL; at = at->parent) {
			if (is_windowed(at) && at->usage > at->peak) {
				at->peak = (int64_t)at->usage;
			}
		}
	}
	*ret_outcome = outcome;
	return false;
}

void model_force(struct model_node *node, int64_t n, const struct quota_time *time)
{
	for (; node != NULL; node = node->parent) {
		__int128 wanted;

		if (n < 0 && node->window.kind != WINDOW_NONE) {
			continue;
		}
		settle(node, time);
		wanted = usage_now(node, time) + n;
		if (n > 0 && !node->limits.shadow && wanted > max_of(node)) {
			__int128 told = node->window.kind == WINDOW_NONE ? least(wanted, INT64_MAX)
									 : wanted;

			add_to(&node->forced, least(told - max_of(node), n));
		}
		add_to(&node->lost, put(node, n));
		if (n > 0 && model_usage(node, time) > node->peak) {
			node->peak = model_usage(node, time);
		}
	}
}

bool model_uncharge(struct model_node *node, int64_t n)
{
	if (node->window.kind != WINDOW_NONE) {
		return true;
	}
	for (struct model_node *at = node; at != NULL; at = at->parent) {
		if (at->usage < n) {
			return false;
		}
	}
	for (; node != NULL; node = node->parent) {
		node->usage -= n;
	}
	return true;
}

int64_t model_retry_after_ms(const struct model_node *node, int64_t n,
			     const struct quota_time *time)
{
	__int128 ns = 0;

	if (n > max_of(node)) {
		return -1;
	}
	if (node->window.kind == WINDOW_NONE || fits(node, n, time)) {
		return 0;
	}
	if (is_rate(node)) {
		__int128 excess = node->level - accrued(node, time) -
				  (__int128)(node->limits.burst - n) * node->limits.per_ns;

		ns = (excess + node->limits.rate - 1) / node->limits.rate;
	} else {
		ns = window_end(&node->window, node->number) - (__int128)time->wall_ns;
	}
	return ns <= 0 ? 1 : (int64_t)((ns + 999999) / 1000000);
}

/* ---- protections, by the formula as published ---- */

static int64_t claimed(const struct model_node *node, bool low)
{
	int64_t setting = low ? node->limits.low : node->limits.min;

	return node->usage <= 0 ? 0 : least(node->usage, setting);
}

int64_t model_children(const struct model_node *node, const struct model_node *nodes, size_t count,
		       bool low)
{
	int64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		if (nodes[i].parent == node) {
			sum += claimed(&nodes[i], low);
		}
	}
	return sum;
}

int64_t model_effective(const struct model_node *node, const struct model_node *nodes, size_t count,
			bool low, bool recursive)
{
	__int128 own = claimed(node, low);
	__int128 above, siblings;

	if (node->parent == NULL || node->usage <= 0) {
		return (int64_t)own;
	}
	above = model_effective(node->parent, nodes, count, low, recursive);
	siblings = model_children(node->parent, nodes, count, low);
	if (siblings > above) {
		return (int64_t)(own * above / siblings);
	}
	if (recursive && node->parent->usage > siblings) {
		/* Below 0 a sibling makes the parent's usage less than this node's alone: then all of the rest is this one's. */
		__int128 unprotected = node->parent->usage - siblings;

		own += (above - siblings) * least(node->usage - own, unprotected) / unprotected;
	}
	return least(own, node->usage);
}
