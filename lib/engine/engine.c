#include "lib/engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/engine/intern.h"
#include "lib/engine/state.h"
#include "lib/engine/worker.h"

DEFINE_CLEANUP(struct engine *, engine_free);

#define BATCH_MAX (1u << 20)

static int64_t batch_of(const struct engine_options *options)
{
	if (options->batch > 0) {
		return options->batch;
	}
	if (options->cpus > BATCH_MAX / 2) {
		return BATCH_MAX;
	}
	return options->cpus > 16 ? 2 * (int64_t)options->cpus : 32;
}

/* Room for the members, and for seats whose banks are empty. */
static int allocate(struct engine **ret_engine, const struct engine_options *options)
{
	size_t seats_size = options->max_workers * sizeof(struct engine_worker);
	struct engine *engine = aligned_alloc(alignof(struct engine), sizeof(*engine));

	if (!engine) {
		return -ENOMEM;
	}
	*engine = (struct engine){
		.batch = batch_of(options),
		.max_workers = options->max_workers,
		.max_counters = options->max_counters,
		.seats_mutex = PTHREAD_MUTEX_INITIALIZER,
		.flush = FLUSH_INIT,
		.gate = GATE_INIT,
		.metrics = METRICS_INIT,
		.refused = REFUSED_INIT,
		.sweep = SWEEP_INIT,
		.changes = { .keep = options->keep, .restoring = options->keep },
	};
	pending_init(&engine->pending, PENDING_STEP);
	engine->seats = aligned_alloc(alignof(struct engine_worker), seats_size);
	if (!engine->seats) {
		(void)engine_free(engine);
		return -ENOMEM;
	}
	memset(engine->seats, 0, seats_size);
	*ret_engine = engine;
	return 0;
}

int engine_new(struct engine **ret_engine, const struct engine_options *options)
{
	_cleanup_(engine_freep) struct engine *engine = NULL;
	uint32_t max_ids;
	int r;

	if (options->max_counters == 0 || options->max_counters > ENGINE_MAX_COUNTERS_LIMIT ||
	    options->max_workers == 0 || options->max_workers > ENGINE_MAX_WORKERS ||
	    options->batch > BATCH_MAX) {
		return -EINVAL;
	}
	fence_setup();
	r = allocate(&engine, options);
	if (r < 0) {
		return r;
	}
	max_ids = options->max_counters + intern_reserve(options->max_counters, options->keep);
	r = tree_init(&engine->tree, max_ids);
	if (r < 0) {
		return r;
	}
	r = planes_init(&engine->planes, max_ids);
	if (r < 0) {
		return r;
	}
	rules_init(&engine->rules, options->seed);
	r = registry_new(&engine->registry, max_ids, options->seed);
	if (r < 0) {
		return r;
	}

	*ret_engine = engine;
	engine = NULL;
	return 0;
}

struct engine *engine_free(struct engine *engine)
{
	if (!engine) {
		return NULL;
	}
	changes_deinit(engine);
	restore_deinit(&engine->late);
	remove_deinit(engine);
	usage_deinit(&engine->usage);
	(void)registry_free(engine->registry);
	rules_deinit(&engine->rules);
	planes_deinit(&engine->planes);
	tree_deinit(&engine->tree);
	for (uint32_t i = 0; engine->seats && i < engine->max_workers; i++) {
		worker_deinit(&engine->seats[i]);
	}
	free(engine->seats);
	metrics_deinit(&engine->metrics);
	(void)pthread_mutex_destroy(&engine->refused.mutex);
	(void)pthread_mutex_destroy(&engine->seats_mutex);
	flush_deinit(&engine->flush);
	gate_deinit(&engine->gate);
	free(engine);
	return NULL;
}

/* ---- statistics ---- */

static uint64_t read_count(const _Atomic(uint64_t) *count)
{
	/* Relaxed, as all of these: each figure is right by itself, they need not fit each other. */
	return atomic_load_explicit(count, memory_order_relaxed);
}

static void sum_workers(const struct engine *engine, struct engine_stats *stats)
{
	uint32_t n = atomic_load_explicit(&engine->n_seats, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++) {
		const struct engine_worker *seat = &engine->seats[i];

		stats->folds += read_count(&seat->folds);
		stats->pending_signals += read_count(&seat->share.signals);
		stats->pending_skipped += read_count(&seat->share.skipped);
		stats->add_negative += read_count(&seat->add_negative);
		stats->add_overflow += read_count(&seat->add_overflow);
		stats->add_gone += read_count(&seat->add_gone);
		stats->charges_granted += read_count(&seat->charges_granted);
		stats->charges_refused += read_count(&seat->charges_refused);
		stats->charge_flushes += read_count(&seat->charge_flushes);
	}
}

void engine_stats(struct engine *engine, struct engine_stats *ret_stats)
{
	struct engine_stats stats = {
		.counters = atomic_load_explicit(&engine->n_counters, memory_order_relaxed),
		.counters_max = engine->max_counters,
		.workers = atomic_load_explicit(&engine->n_joined, memory_order_relaxed),
		.batch = (uint32_t)engine->batch,
		.created = read_count(&engine->created),
		.removed = read_count(&engine->removed),
		.expired = read_count(&engine->expired),
		.refused = read_count(&engine->refusals),
		.overflowed = read_count(&engine->overflowed),
		.folds = read_count(&engine->flush.folds),
		.flushes_run = read_count(&engine->flush.finished),
		.flushes_shared = read_count(&engine->flush.shared),
		.flushes_skipped = read_count(&engine->flush.skipped),
		.pending = atomic_load_explicit(&engine->pending.word, memory_order_relaxed),
		.pending_threshold = pending_threshold(&engine->pending),
		.gates_closed = read_count(&engine->gate.closures),
		.rules_file = rules_count(&engine->rules, ENGINE_FILE),
		.rules_run_time = rules_count(&engine->rules, ENGINE_RUN_TIME),
		.planes = planes_count(&engine->planes),
	};

	sum_workers(engine, &stats);
	stats.n_refused_prefixes = refused_list(&engine->refused, stats.refused_prefixes);
	*ret_stats = stats;
}
