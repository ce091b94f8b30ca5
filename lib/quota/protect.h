#pragma once
/*
 * protect: how much of what is set as `min` or `low` a node effectively has (after the Linux kernel's effective_protection),
 * as pure functions of numbers. The same for min and for low.
 *
 * What a node has used of its protection is min(usage, setting): it protects nothing that is not there. A node without a parent in
 * its plane has just that. Any other shares what its parent effectively has:
 *
 *	1 overcommitted (the children use more protection than the parent has): each gets its part of the parent's, in proportion to
 *	  what it uses
 *	2 not overcommitted: each has all it uses
 *	3 recursive, and something of the parent's protection is left unclaimed: the rest floats to the children in proportion to
 *	  what they use beyond their own
 *
 * So 0 <= effective <= usage; the sum over all children of a parent never exceeds the parent's. Quotients are rounded down, products
 * are taken in 128 bits.
 *
 * Only a walk from the top gives meaning: parent_effective must itself come from here (quota_effective in lib/quota/node.h does it).
 * The numbers may be read while others change them; what comes out is then off by what changed meanwhile, never below 0, above
 * usage or a division by zero.
 *
 * Thread safety: pure functions.
 */
#include <stdbool.h>
#include <stdint.h>

/* What a node with this usage (negative: nothing) claims of its setting (>= 0). */
static inline int64_t protect_used(int64_t usage, int64_t setting)
{
	if (usage <= 0) {
		return 0;
	}
	return usage < setting ? usage : setting;
}

struct protect_parent {
	int64_t usage;
	int64_t effective; /* its own, from this walk */
	int64_t children;  /* sum of protect_used over its children */
};

/* parent NULL: at the top of its plane. */
int64_t protect_effective(int64_t usage, int64_t setting, const struct protect_parent *parent,
			  bool recursive);
