#include "lib/quota/protect.h"

#include <stddef.h>

int64_t protect_used(int64_t usage, int64_t setting)
{
	if (usage <= 0) {
		return 0;
	}
	return usage < setting ? usage : setting;
}

/* part x whole / of, rounded down: all >= 0, of > 0, part <= of. */
static int64_t share(int64_t part, int64_t whole, int64_t of)
{
	return (int64_t)((unsigned __int128)(uint64_t)part * (uint64_t)whole / (uint64_t)of);
}

int64_t protect_effective(int64_t usage, int64_t setting, const struct protect_parent *parent,
			  bool recursive)
{
	int64_t used = protect_used(usage, setting);
	int64_t effective = used;
	int64_t unclaimed, unprotected, spare;

	if (parent == NULL || usage <= 0) {
		return used;
	}
	if (parent->children > parent->effective) {
		/* The sum may be of another moment than what this node uses: then the part is all there is. */
		if (used > parent->children) {
			used = parent->children;
		}
		return parent->effective > 0 ? share(used, parent->effective, parent->children) : 0;
	}
	if (!recursive || parent->usage <= parent->children) {
		return used;
	}
	/* The parent's usage is more than its children claim, so the quotient exists; it is what they use beyond their claims. */
	unclaimed = parent->effective - parent->children;
	unprotected = parent->usage - parent->children;
	spare = usage - used;
	if (spare > unprotected) {
		spare = unprotected;
	}
	effective += share(spare, unclaimed, unprotected);
	return effective < usage ? effective : usage;
}
