#include "lib/quota/charge.h"

#include <stdlib.h>

#include "lib/quota/level.h"

size_t quota_trail_len(const struct quota_item *items, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++) {
		len += quota_depth(items[i].node);
	}
	return len;
}

/* The items before `count`, of which the trail ends at `end`, from the last to the first. */
static void undo_items(const struct quota_item *items, size_t count, const uint64_t *end)
{
	while (count-- > 0) {
		size_t depth = quota_depth(items[count].node);

		end -= depth;
		level_undo(items[count].node, items[count].n, end, depth);
	}
}

static bool commit_items(const struct quota_item *items, size_t count,
			 const struct quota_time *time, const uint64_t *trail)
{
	bool over_high = false;

	for (size_t i = 0; i < count; i++) {
		trail += level_commit(items[i].node, trail, time->mono_ns, &over_high);
	}
	return over_high;
}

int quota_try_charge_all(const struct quota_item *items, size_t count,
			 const struct quota_time *time, uint64_t *trail,
			 struct quota_outcome *ret_outcome)
{
	struct quota_outcome ignored, *outcome = ret_outcome != NULL ? ret_outcome : &ignored;
	uint64_t *at = trail;

	*outcome = (struct quota_outcome){ 0 };
	for (size_t i = 0; i < count; i++) {
		struct level_moment moment;
		size_t taken;

		level_moment(items[i].node, time, &moment);
		if (!level_take(items[i].node, items[i].n, &moment, at, &taken, outcome)) {
			outcome->item = i;
			level_undo(items[i].node, items[i].n, at, taken);
			undo_items(items, i, at);
			return QUOTA_E_REFUSED;
		}
		at += taken;
	}
	outcome->over_high = commit_items(items, count, time, trail);
	return 0;
}

void quota_return_all(const struct quota_item *items, size_t count, const uint64_t *trail)
{
	undo_items(items, count, trail + quota_trail_len(items, count));
}

/* ---- what all items ask of each node ---- */

static int by_node(const void *a, const void *b)
{
	const struct quota_need *x = a;
	const struct quota_need *y = b;

	if (x->node != y->node) {
		return (uintptr_t)x->node < (uintptr_t)y->node ? -1 : 1;
	}
	return x->step < y->step ? -1 : 1;
}

static int by_step(const void *a, const void *b)
{
	const struct quota_need *x = a;
	const struct quota_need *y = b;

	return x->step < y->step ? -1 : 1;
}

/* Sorted by node and step: one entry for each node, the first, with the sum. */
static size_t merge(struct quota_need *needs, size_t len)
{
	size_t merged = 0;

	for (size_t i = 0; i < len; i++) {
		struct quota_need *last = merged > 0 ? &needs[merged - 1] : NULL;

		if (last == NULL || last->node != needs[i].node) {
			needs[merged++] = needs[i];
		} else if (__builtin_add_overflow(last->n, needs[i].n, &last->n)) {
			last->n = INT64_MAX;
		}
	}
	return merged;
}

size_t quota_gather(const struct quota_item *items, size_t count, struct quota_need *needs)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++) {
		for (struct quota_node *at = items[i].node; at != NULL; at = level_parent(at)) {
			needs[len] = (struct quota_need){
				.node = at, .n = items[i].n, .item = i, .step = len
			};
			len++;
		}
	}
	if (count > 1) {
		qsort(needs, len, sizeof(*needs), by_node);
		len = merge(needs, len);
		qsort(needs, len, sizeof(*needs), by_step);
	}
	return len;
}
