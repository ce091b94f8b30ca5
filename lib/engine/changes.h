#pragma once
/*
 * changes: which counters came and went, in order, until it is told (keep.h).
 *
 * A counter that is gone keeps its name, and so its id, until engine_changes_done: those names are a list, in the order in which they went.
 * Under the registry's lock, all of it, except what engine_changes has taken out to tell.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct name;

struct changes {
	bool keep;	   /* engine_options.keep; fixed. False: nothing is noted */
	bool restoring;	   /* until engine_restored */
	uintptr_t *events; /* names, with what happened in the lowest bits */
	size_t n, room;
	struct name *first_gone, *last_gone; /* linked by their next_gone */
};

/* Makes sure that n more can be noted. -ENOMEM. */
int changes_reserve(struct changes *changes, size_t n);

/* They were reserved. */
void changes_born(struct changes *changes, struct name *name);

/* Whoever keeps the counts has had this counter all along: if it was noted as born it isn't told. */
void changes_known(struct changes *changes, const struct name *name);

/*
 * The counter is gone, and a grace period has passed: gives its name back to the registry, with `keep` later, and notes it (which was reserved).
 */
void changes_gone(struct engine *engine, struct name *name);

/* Releases the names. Before registry_free. */
void changes_deinit(struct engine *engine);
