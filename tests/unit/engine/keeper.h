#pragma once
/*
 * keeper: what a store does with cuts and changes (lib/engine/keep.h), in memory and in the plainest way; and whether an engine that is
 * restored from it is as the one it was told of.
 */
#include "tests/unit/engine/quota-support.h"

#include "lib/engine/keep.h"

#define KEEPER_IDS 8192u

struct keeper_counter {
	bool known;
	uint32_t parent;
	char path[64];
	int64_t born_ns;
	int64_t own, ahead;
};

struct keeper_gone {
	uint32_t id, parent;
};

struct keeper_cut {
	unsigned seat;
	int64_t wall_ns;
	size_t n;
	struct engine_growth growth[KEEPER_IDS];
};

struct keeper {
	struct engine *engine;
	struct keeper_counter counters[KEEPER_IDS];
	struct engine_growth last[ENGINE_MAX_WORKERS][KEEPER_IDS]; /* as merged */
	struct keeper_gone gone[KEEPER_IDS];
	size_t n_gone, n_due;
	size_t n_told; /* growth that was none included */
};

static inline struct engine *make_kept(uint32_t max_counters, uint32_t max_workers, uint32_t batch)
{
	const struct engine_options options = {
		.max_counters = max_counters,
		.max_workers = max_workers,
		.batch = batch,
		.cpus = 2,
		.seed = test_seed(),
		.keep = true,
	};
	struct engine *engine = NULL;

	assert_int_equal(engine_new(&engine, &options), 0);
	return engine;
}

static inline struct keeper *keeper_new(struct engine *engine)
{
	struct keeper *keeper = calloc(1, sizeof(*keeper));

	assert_non_null(keeper);
	keeper->engine = engine;
	return keeper;
}

/* CHECK, not cmocka's asserts: a store has a thread of its own. */
static inline void keeper_born(void *ctx, const struct engine_born *born)
{
	struct keeper *keeper = ctx;
	struct keeper_counter *counter = &keeper->counters[born->id];

	CHECK(born->id < KEEPER_IDS && !counter->known && born->len < sizeof(counter->path));
	CHECK(born->parent == ENGINE_NO_ID || keeper->counters[born->parent].known);
	*counter = (struct keeper_counter){ .known = true,
					    .parent = born->parent,
					    .born_ns = born->born_ns };
	memcpy(counter->path, born->path, born->len);
}

static inline void keeper_gone(void *ctx, uint32_t id, uint32_t parent)
{
	struct keeper *keeper = ctx;

	CHECK(keeper->counters[id].known && keeper->counters[id].parent == parent);
	CHECK(keeper->n_gone < KEEPER_IDS);
	keeper->gone[keeper->n_gone++] = (struct keeper_gone){ id, parent };
}

static inline void keeper_changes(struct keeper *keeper)
{
	const struct engine_changes changes = { keeper_born, keeper_gone, keeper };

	engine_changes(keeper->engine, &changes);
}

static inline void keeper_growth(void *ctx, const struct engine_growth *growth)
{
	struct keeper_cut *cut = ctx;

	CHECK(cut->n < KEEPER_IDS);
	CHECK(cut->n == 0 || cut->growth[cut->n - 1].id < growth->id);
	cut->growth[cut->n++] = *growth;
}

/* By the worker's thread. */
static inline void keeper_cut(struct keeper_cut *cut, struct engine_worker *worker, bool all,
			      int64_t wall_ns)
{
	cut->n = 0;
	cut->seat = engine_seat(worker);
	cut->wall_ns = wall_ns;
	engine_cut(worker, all, keeper_growth, cut);
}

/* Before the cuts of a checkpoint are taken. */
static inline void keeper_begin(struct keeper *keeper)
{
	keeper_changes(keeper);
	keeper->n_due = keeper->n_gone;
}

/* When they all have been, before the first is merged. */
static inline void keeper_births(struct keeper *keeper)
{
	keeper_changes(keeper);
}

static inline void keeper_merge(struct keeper *keeper, const struct keeper_cut *cut)
{
	keeper->n_told += cut->n;
	for (size_t i = 0; i < cut->n; i++) {
		const struct engine_growth *now = &cut->growth[i];
		struct engine_growth *last = &keeper->last[cut->seat][now->id];
		struct keeper_counter *counter = &keeper->counters[now->id];
		int64_t added = (int64_t)(now->added - last->added);
		int64_t charged = (int64_t)(now->charged - last->charged);
		int64_t ahead = (int64_t)(now->ahead - last->ahead);
		int64_t taken = (int64_t)(now->taken - last->taken);
		int64_t came = (added > 0 ? added : 0) + taken;

		if (added == 0 && charged == 0 && ahead == 0 && taken == 0) {
			continue;
		}
		CHECK(counter->known);
		counter->own += added + charged;
		counter->ahead += ahead;
		if (came > 0) {
			engine_usage_add(keeper->engine, now->id, came, cut->wall_ns);
		}
		*last = *now;
	}
}

/* When they are. */
static inline void keeper_end(struct keeper *keeper)
{
	for (size_t i = 0; i < keeper->n_due; i++) {
		struct keeper_counter *counter = &keeper->counters[keeper->gone[i].id];

		if (keeper->gone[i].parent != ENGINE_NO_ID) {
			struct keeper_counter *parent = &keeper->counters[keeper->gone[i].parent];

			parent->own += counter->own;
			parent->ahead += counter->ahead;
		}
		counter->known = false;
	}
	engine_changes_done(keeper->engine, keeper->n_due);
	keeper->n_gone -= keeper->n_due;
	memmove(keeper->gone, keeper->gone + keeper->n_due,
		keeper->n_gone * sizeof(keeper->gone[0]));
	keeper->n_due = 0;
}

/* All of it, nothing else going on. */
static inline void keeper_checkpoint(struct keeper *keeper, struct engine_worker *const *workers,
				     size_t n, bool all, int64_t wall_ns)
{
	struct keeper_cut *cuts = calloc(n, sizeof(*cuts));

	CHECK(cuts);
	keeper_begin(keeper);
	for (size_t i = 0; i < n; i++) {
		keeper_cut(&cuts[i], workers[i], all, wall_ns);
	}
	keeper_births(keeper);
	for (size_t i = 0; i < n; i++) {
		keeper_merge(keeper, &cuts[i]);
	}
	keeper_end(keeper);
	free(cuts);
}

static inline struct keeper_counter *keeper_find(struct keeper *keeper, const char *path)
{
	for (uint32_t id = 0; id < KEEPER_IDS; id++) {
		if (keeper->counters[id].known && strcmp(keeper->counters[id].path, path) == 0) {
			return &keeper->counters[id];
		}
	}
	return NULL;
}

struct keeper_usages {
	struct engine *engine;
	struct quota_time time;
};

static inline int keeper_by_birth(const void *a, const void *b)
{
	const struct keeper_counter *const *x = a, *const *y = b;

	return ((*x)->born_ns > (*y)->born_ns) - ((*x)->born_ns < (*y)->born_ns);
}

static inline void keeper_usage_back(void *ctx, const struct engine_usage *usage)
{
	const struct keeper_usages *usages = ctx;

	assert_int_equal(engine_restore_usage(usages->engine, usage, &usages->time), 0);
}

/* Into an engine in which metrics and rules are declared; usage as it is kept beside the limits of the other one. */
static inline void keeper_restore(struct keeper *keeper, struct engine *engine,
				  struct quota_time time)
{
	struct keeper_usages usages = { engine, time };

	const struct keeper_counter **sorted = calloc(KEEPER_IDS, sizeof(*sorted));
	size_t n = 0;

	assert_non_null(sorted);
	for (uint32_t id = 0; id < KEEPER_IDS; id++) {
		if (keeper->counters[id].known) {
			sorted[n++] = &keeper->counters[id];
		}
	}
	qsort(sorted, n, sizeof(*sorted), keeper_by_birth);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(engine_restore(engine, sorted[i]->path, strlen(sorted[i]->path),
						sorted[i]->own, sorted[i]->ahead,
						sorted[i]->born_ns, NULL),
				 0);
	}
	free(sorted);
	engine_usage_each(keeper->engine, true, keeper_usage_back, &usages);
	(void)engine_restored(engine, time);
}

/* ---- two engines ---- */

struct keeper_side {
	struct engine *engine, *other;
	struct quota_time time;
	size_t n;
};

static inline int64_t keeper_usage(const struct limit *limit, const struct quota_time *time)
{
	struct quota_reading reading;

	quota_read(&limit->node, time, &reading);
	return reading.usage;
}

/* Leased and forfeited at this very counter: what is kept as `ahead`. */
static inline int64_t keeper_ahead(const struct engine *engine, uint32_t id)
{
	const struct leased *chunk = atomic_load_explicit(
		&engine->planes.leased[id >> TREE_CHUNK_BITS], memory_order_acquire);
	const struct leased *leased = chunk ? &chunk[id & (TREE_CHUNK - 1)] : NULL;

	return leased ? plane_leased(&engine->planes, id) +
				atomic_load_explicit(&leased->forfeited, memory_order_relaxed)
		      : 0;
}

static inline void keeper_compare(void *ctx, const struct engine_entry *entry)
{
	struct keeper_side *side = ctx;
	struct engine_reading reading;
	struct name *name, *other;

	assert_int_equal(engine_get(side->other, entry->path, entry->len, &reading), 0);
	assert_int_equal(entry->reading.own, reading.own);
	assert_int_equal(entry->reading.total, reading.total);
	assert_int_equal(entry->reading.kind, reading.kind);
	assert_int_equal(entry->reading.born_ns, reading.born_ns);
	grace_enter();
	name = registry_find(side->engine->registry, entry->path, entry->len);
	other = registry_find(side->other->registry, entry->path, entry->len);
	assert_int_equal(plane_ahead(&side->engine->planes, name->id),
			 plane_ahead(&side->other->planes, other->id));
	assert_int_equal(keeper_ahead(side->engine, name->id),
			 keeper_ahead(side->other, other->id));
	for (struct limit *limit = plane_first(&side->engine->planes, name->id); limit;
	     limit = plane_next(limit)) {
		struct limit *twin = plane_first(&side->other->planes, other->id);
		struct window window = quota_window(&limit->node);

		for (; twin; twin = plane_next(twin)) {
			struct window twins = quota_window(&twin->node);

			if (window_equal(&window, &twins)) {
				break;
			}
		}
		assert_non_null(twin);
		assert_int_equal(keeper_usage(limit, &side->time), keeper_usage(twin, &side->time));
	}
	grace_leave();
	side->n++;
}

/* Counters, own values, totals, births, leased units, usage. Nothing else is going on. */
static inline void keeper_same(struct engine *engine, struct engine *other, struct quota_time time)
{
	struct engine *engines[] = { engine, other };

	for (int i = 0; i < 2; i++) {
		struct keeper_side side = {
			.engine = engines[i],
			.other = engines[!i],
			.time = time,
		};
		struct engine_cursor cursor = { 0 };
		bool done = false;

		engine_flush(engines[0], 0);
		engine_flush(engines[1], 0);
		while (!done) {
			assert_int_equal(engine_walk(side.engine, "", 0, UINT32_MAX, 1000, &cursor,
						     keeper_compare, &side, &done),
					 0);
		}
		assert_int_equal(side.n, stats(side.engine).counters);
	}
}
