#include "lib/engine/changes.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/engine/keep.h"
#include "lib/engine/state.h"

#define EVENT_GONE ((uintptr_t)1)
#define EVENT_KNOWN ((uintptr_t)2)
#define EVENT_BITS (EVENT_GONE | EVENT_KNOWN)

/* Names that one holding of the lock gives back. */
#define DONE_AT_ONCE 256u

static struct name *name_of(uintptr_t event)
{
	static_assert(alignof(struct name) >= EVENT_BITS + 1, "a name's address has room for them");

	return (struct name *)(event & ~EVENT_BITS);
}

int changes_reserve(struct changes *changes, size_t n)
{
	size_t room = changes->room > 0 ? changes->room : 64;
	uintptr_t *events;

	if (!changes->keep || n <= changes->room - changes->n) {
		return 0;
	}
	while (room - changes->n < n) {
		room *= 2;
	}
	events = realloc(changes->events, room * sizeof(*events));
	if (!events) {
		return -ENOMEM;
	}
	changes->events = events;
	changes->room = room;
	return 0;
}

void changes_born(struct changes *changes, struct name *name)
{
	if (changes->keep) {
		changes->events[changes->n++] = (uintptr_t)name;
	}
}

/* Found by its birth: births increase, and nothing is gone yet while counters are restored. */
void changes_known(struct changes *changes, const struct name *name)
{
	size_t from = 0, to = changes->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (name_of(changes->events[middle])->born < name->born) {
			from = middle + 1;
		} else {
			to = middle;
		}
	}
	if (from < changes->n && name_of(changes->events[from]) == name) {
		changes->events[from] |= EVENT_KNOWN;
	}
}

/* An id whose generations are used up is never given back. */
static void release(struct engine *engine, struct name *name)
{
	if (tree_life(&engine->tree, name->id) == LIFE_NONE) {
		name->next_gone = engine->retired;
		engine->retired = name;
	} else {
		registry_release(engine->registry, name);
	}
}

void changes_gone(struct engine *engine, struct name *name)
{
	struct changes *changes = &engine->changes;

	if (!changes->keep) {
		release(engine, name);
		return;
	}
	changes->events[changes->n++] = (uintptr_t)name | EVENT_GONE;
	name->next_gone = NULL;
	if (changes->last_gone) {
		changes->last_gone->next_gone = name;
	} else {
		changes->first_gone = name;
	}
	changes->last_gone = name;
}

/* False: there is none. */
static bool release_first(struct engine *engine)
{
	struct changes *changes = &engine->changes;
	struct name *name = changes->first_gone;

	if (!name) {
		return false;
	}
	changes->first_gone = name->next_gone;
	if (!changes->first_gone) {
		changes->last_gone = NULL;
	}
	release(engine, name);
	return true;
}

void changes_deinit(struct engine *engine)
{
	while (release_first(engine)) {
	}
	free(engine->changes.events);
}

/* ---- telling ---- */

static uint32_t parent_of(const struct name *name)
{
	return name->parent ? name->parent->id : ENGINE_NO_ID;
}

static void tell(const struct engine_changes *to, uintptr_t event)
{
	const struct name *name = name_of(event);

	if (event & EVENT_GONE) {
		to->gone(to->ctx, name->id, parent_of(name));
	} else if (!(event & EVENT_KNOWN)) {
		const struct engine_born born = {
			.id = name->id,
			.parent = parent_of(name),
			.path = name->path,
			.len = name->len,
			.born_ns = name->born,
		};

		to->born(to->ctx, &born);
	}
}

/* Outside the lock: names that are told of stay as they are, gone or not, until this very thread says it is done. */
void engine_changes(struct engine *engine, const struct engine_changes *to)
{
	struct changes *changes = &engine->changes;
	_cleanup_free_ uintptr_t *events = NULL;
	size_t n;

	registry_lock(engine->registry);
	events = changes->events;
	n = changes->n;
	changes->events = NULL;
	changes->n = 0;
	changes->room = 0;
	registry_unlock(engine->registry);
	for (size_t i = 0; i < n; i++) {
		tell(to, events[i]);
	}
}

void engine_changes_done(struct engine *engine, size_t n)
{
	bool more = true;

	while (more && n > 0) {
		size_t some = n < DONE_AT_ONCE ? n : DONE_AT_ONCE;

		n -= some;
		registry_lock(engine->registry);
		for (; more && some > 0; some--) {
			more = release_first(engine);
		}
		registry_unlock(engine->registry);
	}
}
