#pragma once
/*
 * kept: usage of a node in a window or of a rate, as far as somebody knows it who learns of it later, and by the wall clock alone, so that
 * it still means something after a restart.
 *
 *	window	the number of the window, and the count in it
 *	rate	a moment of the wall clock, and what the bucket held then
 *
 * The wall clock may be set back. Within QUOTA_SLACK_NS that counts as a reading that comes late: in the window, or at the moment, that is
 * known already. By more, a window begins empty, and a bucket keeps what it held: it has not drained meanwhile.
 *
 * Planes with windows and rates only. One thread at a time for one struct; the node's rate stands still meanwhile.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/quota/node.h"

struct kept {
	int64_t at;    /* the window's number; the moment */
	uint64_t used; /* the count; the bucket's level (lib/quota/rate.h), by the wall clock */
};

/* Nothing is used. */
void kept_init(const struct quota_node *node, struct kept *kept, int64_t wall_ns);

/* n > 0 more. */
void kept_add(const struct quota_node *node, struct kept *kept, int64_t n, int64_t wall_ns);

/* Units used; of a bucket rounded up. */
int64_t kept_count(const struct quota_node *node, const struct kept *kept);
void kept_set(const struct quota_node *node, struct kept *kept, int64_t at, int64_t count);

/* What the node itself says now. True: that was another figure. */
bool kept_settle(const struct quota_node *node, struct kept *kept, const struct quota_time *time);

/*
 * The node's usage becomes what is kept: its peak too, if that is more. A window that is over, or a bucket that has drained since, is empty to whoever charges
 * next. As quota_init: nobody else uses the node.
 */
void kept_restore(struct quota_node *node, const struct kept *kept, const struct quota_time *time);
