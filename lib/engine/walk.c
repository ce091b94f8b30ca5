/* walk: reading counters, one by its path or a subtree page by page. */
#include <string.h>

#include "lib/engine/state.h"

/* Entries after which a walk leaves its read section and finds its place again, so that a long one holds up no removal. */
#define WALK_STRETCH 4096u

/*
 * A cursor's bytes: depth, 8 bytes for each `born`, then the path. They go out to clients and come back, so any bytes may come.
 */
static_assert(1 + PATH_MAX_SEGMENTS * sizeof(int64_t) + PATH_MAX_BYTES <= ENGINE_CURSOR_MAX,
	      "any place fits a cursor");

/* False: the name is being removed. */
static bool read_counter(const struct engine *engine, const struct name *name,
			 struct engine_reading *ret_reading)
{
	uint32_t life = tree_life(&engine->tree, name->id);

	if (!(life & LIFE_LIVE)) {
		return false;
	}
	*ret_reading = (struct engine_reading){
		.kind = life & LIFE_GAUGE ? ENGINE_GAUGE : ENGINE_COUNTER,
		.leaf = atomic_load_explicit(&name->first_child, memory_order_acquire) == NULL,
		.own = tree_own(&engine->tree, name->id),
		.born_ns = name->born,
	};
	/* After `own`, which it has (tree.h). */
	ret_reading->total = atomic_load_explicit(&tree_tally(&engine->tree, name->id)->total,
						  memory_order_relaxed);
	return true;
}

int engine_get(struct engine *engine, const char *path, size_t len,
	       struct engine_reading *ret_reading)
{
	struct name *name;
	bool found;

	grace_enter();
	name = registry_find(engine->registry, path, len);
	found = name && read_counter(engine, name, ret_reading);
	grace_leave();
	if (found) {
		return 0;
	}
	return path_check(path, len, NULL) == PATH_OK ? ENGINE_E_NOT_FOUND : ENGINE_E_PATH;
}

int64_t engine_newest(const struct engine *engine)
{
	return registry_newest(engine->registry);
}

/* ---- cursors ---- */

static void cursor_pack(const struct registry_cursor *place, struct engine_cursor *ret_cursor)
{
	size_t born = place->depth * sizeof(place->born[0]);

	ret_cursor->bytes[0] = place->depth;
	memcpy(ret_cursor->bytes + 1, place->born, born);
	memcpy(ret_cursor->bytes + 1 + born, place->path, place->len);
	ret_cursor->len = (uint16_t)(1 + born + place->len);
}

static bool cursor_unpack(const struct engine_cursor *cursor, struct registry_cursor *ret_place)
{
	size_t born;

	if (cursor->len > ENGINE_CURSOR_MAX || cursor->bytes[0] == 0 ||
	    cursor->bytes[0] > PATH_MAX_SEGMENTS) {
		return false;
	}
	ret_place->depth = cursor->bytes[0];
	born = ret_place->depth * sizeof(ret_place->born[0]);
	if (cursor->len < 1 + born || cursor->len - 1 - born > PATH_MAX_BYTES) {
		return false;
	}
	memcpy(ret_place->born, cursor->bytes + 1, born);
	ret_place->len = (uint16_t)(cursor->len - 1 - born);
	memcpy(ret_place->path, cursor->bytes + 1 + born, ret_place->len);
	return path_check(ret_place->path, ret_place->len, NULL) == PATH_OK &&
	       path_depth(ret_place->path, ret_place->len) == ret_place->depth;
}

/* The place is in the subtree of `root`. */
static bool cursor_is_below(const struct registry_cursor *place, const char *root, size_t len)
{
	return len == 0 || (place->len >= len && memcmp(place->path, root, len) == 0 &&
			    (place->len == len || place->path[len] == '/'));
}

/* ---- walk ---- */

struct stretch {
	struct engine *engine;
	const char *root;
	size_t root_len;
	uint32_t depth;
	engine_visit visit;
	void *ctx;
};

static void show(const struct stretch *stretch, const struct name *name)
{
	struct engine_entry entry = { .path = name->path, .len = name->len, .depth = name->depth };

	if (read_counter(stretch->engine, name, &entry.reading)) {
		stretch->visit(stretch->ctx, &entry);
	}
}

/* In a read section: up to `limit` names from `place` on (`resume`) or from the first. */
static int walk_some(const struct stretch *stretch, size_t limit, struct registry_cursor *place,
		     bool resume, bool *ret_done)
{
	struct registry *registry = stretch->engine->registry;
	struct registry_walk walk;
	struct name *root = NULL, *name, *last = NULL;

	if (stretch->root_len > 0) {
		root = registry_find(registry, stretch->root, stretch->root_len);
		if (!root) {
			return ENGINE_E_NOT_FOUND;
		}
	}
	registry_walk_init(&walk, registry, root, stretch->depth);
	name = resume ? registry_resume(&walk, place) : registry_first(&walk);
	for (; name && limit > 0; limit--) {
		show(stretch, name);
		last = name;
		name = registry_next(&walk, name);
	}
	if (last) {
		registry_save(last, place);
	}
	*ret_done = name == NULL;
	return 0;
}

static int walk_all(const struct stretch *stretch, size_t limit, struct engine_cursor *cursor,
		    bool *ret_done)
{
	struct registry_cursor place;
	bool resume = cursor->len > 0;
	bool done = false;

	if (resume && (!cursor_unpack(cursor, &place) ||
		       !cursor_is_below(&place, stretch->root, stretch->root_len))) {
		return ENGINE_E_CURSOR;
	}
	while (limit > 0 && !done) {
		size_t some = limit < WALK_STRETCH ? limit : WALK_STRETCH;
		int r;

		grace_enter();
		r = walk_some(stretch, some, &place, resume, &done);
		grace_leave();
		if (r != 0) {
			return r;
		}
		limit -= some;
		if (!done) {
			cursor_pack(&place, cursor);
			resume = true;
		}
	}
	*ret_done = done;
	return 0;
}

int engine_walk(struct engine *engine, const char *root, size_t len, uint32_t depth, size_t limit,
		struct engine_cursor *cursor, engine_visit visit, void *ctx, bool *ret_done)
{
	const struct stretch stretch = {
		.engine = engine,
		.root = root,
		.root_len = len,
		.depth = depth,
		.visit = visit,
		.ctx = ctx,
	};

	if (len > 0 && path_check(root, len, NULL) != PATH_OK) {
		return ENGINE_E_PATH;
	}
	return walk_all(&stretch, limit, cursor, ret_done);
}
