#pragma once
/*
 * charge: several items at once, all or nothing: many paths, several planes each, with ancestors in common.
 *
 * Items are taken in the order given, each from its node to the root; the first node that refuses is named, and all that was taken is
 * given back in reverse order. Put the planes of one path next to each other, and "first" is by item, then plane, then leaf to
 * root. A node that several items meet is charged by each: what fits is decided on the sum, without a special case.
 *
 * Thread safety: as quota_try_charge.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/quota/node.h"

struct quota_item {
	struct quota_node *node;
	int64_t n; /* 1 .. QUOTA_MAX_LIMIT */
};

/* How many nodes the items meet in all (sum of their depths): what the functions below need room for. */
size_t quota_trail_len(const struct quota_item *items, size_t count);

/*
 * 0 or QUOTA_E_REFUSED; *ret_outcome (may be NULL) as of quota_try_charge. trail: scratch memory of quota_trail_len words, which
 * remembers what each step made of its node, to be able to undo it; after a grant it serves quota_return_all.
 */
int quota_try_charge_all(const struct quota_item *items, size_t count,
			 const struct quota_time *time, uint64_t *trail,
			 struct quota_outcome *ret_outcome);

/*
 * Takes back a charge that was granted a moment ago and must not have happened after all (something outside the planes failed), from
 * the last item to the first: unless the window it counted in is over, or the bucket has run dry meanwhile. Once, and with nothing of it
 * given back otherwise.
 */
void quota_return_all(const struct quota_item *items, size_t count, const uint64_t *trail);

/* One node, and what all items together ask of it. */
struct quota_need {
	struct quota_node *node;
	int64_t n;   /* the sum, at most INT64_MAX */
	size_t item; /* the first that meets it */
	size_t step; /* the how manieth meeting that was: they come sorted by it */
};

/*
 * The nodes that the items meet, each once, in the order in which a charge meets them. Writes to needs[quota_trail_len] and returns
 * how many. With quota_judge on each: who binds, who is over high, what would a charge say (dry run: granted if nobody refuses but
 * shadows). Read-only: others may charge meanwhile.
 */
size_t quota_gather(const struct quota_item *items, size_t count, struct quota_need *needs);
