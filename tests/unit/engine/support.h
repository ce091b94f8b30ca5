#pragma once
/*
 * support: an engine with workers in a few lines. Every call asserts that it went as it should; what may fail is called by its
 * own name.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/engine/engine.h"
#include "lib/engine/state.h"
#include "lib/engine/strict.h"
#include "lib/engine/worker.h"

#define SECOND INT64_C(1000000000)

/* For other threads: cmocka's own asserts are for the main thread alone. */
#define CHECK(condition)                                                                      \
	do {                                                                                  \
		if (!(condition)) {                                                           \
			(void)fprintf(stderr, "%s:%d: %s (RATION_SEED=%llu)\n", __FILE__,     \
				      __LINE__, #condition, (unsigned long long)test_seed()); \
			abort();                                                              \
		}                                                                             \
	} while (0)

struct bench {
	struct engine *engine;
	struct engine_worker *workers[ENGINE_MAX_WORKERS];
	uint32_t n_workers;
};

static inline struct engine *make_engine(uint32_t max_counters, uint32_t max_workers,
					 uint32_t batch)
{
	const struct engine_options options = {
		.max_counters = max_counters,
		.max_workers = max_workers,
		.batch = batch,
		.cpus = 2,
		.seed = test_seed(),
	};
	struct engine *engine = NULL;

	assert_int_equal(engine_new(&engine, &options), 0);
	return engine;
}

static inline struct bench bench_new(uint32_t max_counters, uint32_t n_workers, uint32_t batch)
{
	struct bench bench = { .engine = make_engine(max_counters, n_workers, batch),
			       .n_workers = n_workers };

	for (uint32_t i = 0; i < n_workers; i++) {
		assert_int_equal(engine_join(bench.engine, &bench.workers[i]), 0);
	}
	return bench;
}

static inline void bench_free(struct bench *bench)
{
	for (uint32_t i = 0; i < bench->n_workers; i++) {
		engine_leave(bench->workers[i]);
	}
	assert_null(engine_free(bench->engine));
}

static inline struct engine_ref intern(struct engine *engine, const char *path)
{
	struct engine_ref ref = { 0 };

	assert_int_equal(engine_intern(engine, path, strlen(path), 1, &ref), 0);
	return ref;
}

static inline int try_add(struct engine_worker *worker, struct engine_ref ref, int64_t n)
{
	int r;

	engine_begin(worker);
	r = engine_add(worker, ref, n);
	engine_end(worker);
	return r;
}

static inline void add(struct engine_worker *worker, struct engine_ref ref, int64_t n)
{
	assert_int_equal(try_add(worker, ref, n), 0);
}

static inline struct engine_reading get(struct engine *engine, const char *path)
{
	struct engine_reading reading = { 0 };

	assert_int_equal(engine_get(engine, path, strlen(path), &reading), 0);
	return reading;
}

static inline int64_t total(struct engine *engine, const char *path)
{
	return get(engine, path).total;
}

static inline int64_t own(struct engine *engine, const char *path)
{
	return get(engine, path).own;
}

static inline struct engine_view refresh(struct engine *engine, enum engine_consistency consistency,
					 int64_t now_ns)
{
	struct engine_view view;

	engine_refresh(engine, consistency, now_ns, &view);
	return view;
}

static inline int64_t exact(struct engine *engine, const char *path)
{
	(void)refresh(engine, ENGINE_EXACT, 0);
	return total(engine, path);
}

static inline void declare(struct engine *engine, const char *name, struct engine_metric metric)
{
	assert_int_equal(engine_declare(engine, name, strlen(name), &metric), 0);
}

static inline int drop(struct engine *engine, const char *path)
{
	return engine_remove(engine, path, strlen(path));
}

static inline struct engine_stats stats(struct engine *engine)
{
	struct engine_stats result;

	engine_stats(engine, &result);
	return result;
}

/* Setup and teardown for groups: this thread may read. */
static inline int reader_setup(void **state)
{
	(void)state;
	grace_register();
	return 0;
}

static inline int reader_teardown(void **state)
{
	(void)state;
	grace_unregister();
	return 0;
}

#define RUN(tests) cmocka_run_group_tests(tests, reader_setup, reader_teardown)
