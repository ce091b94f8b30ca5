#include "lib/quota/protect.h"

#include <stddef.h>

/* part x whole / of, rounded down: all >= 0, of > 0, and part or whole <= of. */
static int64_t share(int64_t part, int64_t whole, int64_t of)
{
	return (int64_t)((unsigned __int128)(uint64_t)part * (uint64_t)whole / (uint64_t)of);
}

int64_t protect_effective(int64_t usage, int64_t setting, const struct protect_parent *parent,
			  bool recursive)
{
	int64_t used = protect_used(usage, setting);
	int64_t children, unclaimed, unprotected, spare;

	if (parent == NULL || usage <= 0) {
		return used;
	}
	/* Of another moment than the rest, the sum may even be below 0: a claim was taken back before it was added. */
	children = parent->children > 0 ? parent->children : 0;
	if (children > parent->effective) {
		if (used > children) {
			used = children;
		}
		return parent->effective > 0 ? share(used, parent->effective, children) : 0;
	}
	if (!recursive || parent->usage <= children) {
		return used;
	}
	/* What the parent uses beyond its children's claims; consistent numbers need neither of the two cuts. */
	unprotected = parent->usage - children;
	unclaimed = parent->effective - children;
	if (unclaimed > unprotected) {
		unclaimed = unprotected;
	}
	spare = usage - used;
	if (spare > unprotected) {
		spare = unprotected;
	}
	return used + share(spare, unclaimed, unprotected);
}
