#pragma once
/*
 * remove: taking counters away, by name or because they are idle.
 *
 *	remover (registry's lock held)				worker, in its read section
 *	keeper's line odd					life fits the reference?
 *	unlinks the name, ends the life				adds to its slot
 *	grace_wait: who found the life good has added
 *	folds what the slots hold
 *	keeper's line even
 *	own value goes to the parent's base
 *	the id may be used again (with `keep`: once that is known, see changes.h)
 *
 * What is idle is closed before that: it must be idle, and limits not keep it, when nobody adds to it or charges it any more.
 *
 *	expiry (registry's lock held)				add, charge, whatever gives back, in its read section
 *	finds it idle						finds the counter open?
 *	closes it						adds, charges
 *	grace_wait: who found it open has done so		finds it closed? leaves the section, remove_wait, begins anew
 *	still idle? removes it; else opens it
 *
 * The total of the parent has the value already; only where it is counted as `own` changes, in one atomic step that a reader of the parent
 * sees as growth. The slots stay as they are: the base of the id's next counter takes off what they count.
 */
#include <pthread.h>
#include <stdint.h>

#include "lib/names/registry.h"

struct engine;

/* When a counter that may expire was last seen to change. */
struct idle {
	uint32_t life;
	int64_t own;
	int64_t since_ns;
};

/* Where engine_expire stands, and what it remembers: only for ids in chunks where some counter may expire. */
struct sweep {
	pthread_mutex_t mutex;
	struct idle **chunks; /* by id / TREE_CHUNK */
	bool resume;
	struct registry_cursor cursor;
};

#define SWEEP_INIT                                 \
	{                                          \
		.mutex = PTHREAD_MUTEX_INITIALIZER \
	}

/* Returns when whoever removes or closes counters now has done with it. Outside a read section, without the registry's lock. */
void remove_wait(struct engine *engine);

/* Frees what removals keep, the retired names included. Before registry_free and tree_deinit. */
void remove_deinit(struct engine *engine);
