#pragma once
/*
 * kinds: which metrics are gauges, as far as a worker has met them: the engine is asked once for each, under a lock.
 *
 * The kind of a metric that has been counted never changes, so what was learned after a charge was granted holds for good.
 *
 * Thread safety: none, each worker has its own.
 */
#include "lib/engine/engine.h"
#include "lib/names/path.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KINDS_SLOTS 64u /* metrics that share a slot drive each other out */

struct kinds {
	struct kinds_slot {
		uint8_t len; /* of the name; 0: none */
		bool gauge;
		char name[PATH_MAX_SEGMENT];
	} slots[KINDS_SLOTS];
	struct kinds_slot *last; /* the one that was asked for; NULL: none yet */
};

enum kinds_answer {
	KINDS_COUNTER,	     /* for good */
	KINDS_GAUGE,	     /* for good */
	KINDS_MAYBE_COUNTER, /* as it is now; it may be nothing yet, or be declared anew */
	KINDS_MAYBE_GAUGE,
};

static inline bool kinds_is_gauge(enum kinds_answer answer)
{
	return answer == KINDS_GAUGE || answer == KINDS_MAYBE_GAUGE;
}

/* Of the metric of a path. `counted`: something at the path was granted, so that its metric is one for good. */
enum kinds_answer kinds_ask(struct kinds *kinds, struct engine *engine, const char *path,
			    size_t len, bool counted);
