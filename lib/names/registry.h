#pragma once
/*
 * registry: which counters there are. Path -> struct name, each with a dense id, its parent and its children.
 *
 * Look-ups and walks run under RCU (lib/rcu) and take no lock; creation and removal are serialized by one mutex
 * which no look-up, walk or add ever takes. What a counter counts is not known here: others keep it by id.
 *
 *                     find   walk   create   unlink   release   free
 *   find, walk          -      -       -        -        G        X
 *   create, unlink,     -      -       L        L        L        X
 *     release
 *
 *   -  nothing needed         L  under registry_lock
 *   G  a name is released only after a grace_wait that began after its unlink
 *   X  the caller excludes it
 *
 * Calling threads are registered with lib/rcu. find and walk are called inside a read section (grace_enter),
 * and the names they return are valid until it ends; under registry_lock a name that is linked is valid as long
 * as the lock is held.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <urcu/rculfhash.h>

#include "lib/names/path.h"

struct registry;

enum registry_error {
	REGISTRY_OK = 0,
	REGISTRY_E_FULL = 1, /* the ceiling is reached; nothing was made */
};

/*
 * One counter's name. All of it is fixed before it can be found, except the three links.
 *
 * A million of these are kept: the struct and a path of 30 bytes must fit the 104 usable bytes of a 112-byte
 * malloc chunk.
 */
struct name {
	struct cds_lfht_node node;
	struct name *parent; /* NULL: a metric */
	/* Written under the mutex, read by walkers: newest child first, next has the smaller `born`. */
	_Atomic(struct name *) first_child;
	_Atomic(struct name *)
		next_sibling; /* stays as it was when the name is unlinked, so that a walker on it gets on */
	/* Under the mutex only. */
	union {
		struct name *previous_sibling;
		struct name *next_gone; /* once it is unlinked: the remover's, for a list */
	};
	int64_t born; /* unique and increasing in this registry; nanoseconds if the clock allows it */
	uint32_t id;
	uint16_t len;
	uint8_t depth; /* segments: 1 for a metric */
	char path[];   /* not terminated */
};

static_assert(offsetof(struct name, path) + 30 <= 104,
	      "a name with a path of 30 bytes fits a 112-byte malloc chunk");

/*
 * max_names: how many names there can be at once, each node of a path counting, 1 .. 2^26; ids are below it.
 * seed: keys the hash, so it should be random, or else who chooses paths can choose ones that collide. 0 or
 * -ENOMEM, -EINVAL.
 */
int registry_new(struct registry **ret_registry, uint32_t max_names, uint64_t seed);

/* Nobody else uses it any more, and every name that was unlinked has been released. Takes NULL, returns NULL. */
struct registry *registry_free(struct registry *registry);

/* How many names there are, those unlinked but not yet released included. Any thread, any time; may be stale at once. */
uint32_t registry_count(const struct registry *registry);

/*
 * The `born` of the newest name that was made: names that are made from now on have a larger one, and all with this or a smaller one
 * are in their places. INT64_MIN: there was none. Any thread.
 */
int64_t registry_newest(const struct registry *registry);

/* NULL if there is none. Any bytes may be asked for; what isn't a path is not found. Look-ups don't allocate. */
struct name *registry_find(struct registry *registry, const char *path, size_t len);

/* The name of the metric this one belongs to: itself or its topmost ancestor. */
static inline struct name *registry_root(struct name *name)
{
	while (name->parent) {
		name = name->parent;
	}
	return name;
}

/* ---- creation and removal: between registry_lock and registry_unlock ---- */

void registry_lock(struct registry *registry);
void registry_unlock(struct registry *registry);

/*
 * Told of the names about to be made, ancestors first, each the next one's parent, before anybody can find
 * them: here whoever keeps something by id makes it ready. names[0]->parent exists already or is NULL. Anything
 * but 0 calls the creation off and is what registry_create returns; the ids are given back then.
 */
typedef int (*registry_prepare)(void *ctx, struct name *const *names, size_t n_names);

/*
 * The name at `path`, which is valid (path_check), made with all its missing ancestors or found. All or
 * nothing: 0, REGISTRY_E_FULL, -ENOMEM, or what `prepare` (may be NULL) said. `now` in nanoseconds may step
 * back; births still increase. Ids freed last are used first.
 */
int registry_create(struct registry *registry, const char *path, size_t len, int64_t now,
		    registry_prepare prepare, void *ctx, struct name **ret_name);

/*
 * Take a leaf out: no look-up or walk that begins later meets it, and its path may be made anew, with another
 * id. It stays readable until grace_wait has returned and registry_release is called. Its `parent` is not kept
 * alive by it: who touches it between unlink and release sees to it that the parent isn't released meanwhile.
 */
void registry_unlink(struct registry *registry, struct name *leaf);

/* Free an unlinked name, and its id for the next creation, after the grace period. */
void registry_release(struct registry *registry, struct name *name);

/* ---- walks: inside a read section ---- */

/*
 * Depth first, parents before children, newest sibling first. Creation only ever puts names in front of where a walk
 * can be, and births order siblings, so a walk can stop, leave its read section and go on later from what it saved:
 * a name that is there during the whole walk is visited exactly once, any other path at most once.
 *
 *   registry_walk_init(&walk, registry, root, depth);
 *   name = saved ? registry_resume(&walk, &cursor) : registry_first(&walk);
 *   for (; name; name = registry_next(&walk, name)) { ... registry_save(name, &cursor); ... }
 */
struct registry_walk {
	struct registry *registry;
	struct name *root; /* NULL: all metrics */
	uint32_t max_depth;
};

/* A place in a walk: the last name visited and when each name on the way down to it was born. */
struct registry_cursor {
	uint16_t len;
	uint8_t depth; /* entries of `born` that count */
	char path[PATH_MAX_BYTES];
	int64_t born[PATH_MAX_SEGMENTS];
};

/* `depth`: levels below the root to go down, 0 the root alone, UINT32_MAX all. Metrics are one level below "all metrics". */
void registry_walk_init(struct registry_walk *walk, struct registry *registry, struct name *root,
			uint32_t depth);

/* NULL at the end. */
struct name *registry_first(const struct registry_walk *walk);
struct name *registry_next(const struct registry_walk *walk, struct name *name);

void registry_save(struct name *name, struct registry_cursor *ret_cursor);

/* Could it have come from registry_save? Nothing is looked up. */
bool registry_cursor_valid(const struct registry_cursor *cursor);

/*
 * The name that comes after the saved one, whether that and its ancestors are still there or not. One look-up
 * if it is; else the siblings of the topmost that is gone are scanned once. If the walk's root is no longer the
 * one it began with: NULL, the end. A cursor of any contents is safe; the answer to a forged one is some name
 * of the walk or NULL.
 */
struct name *registry_resume(const struct registry_walk *walk,
			     const struct registry_cursor *cursor);
