#pragma once
/*
 * metric: what was declared of metrics, by name.
 *
 * There are at most ENGINE_MAX_METRICS of these records and none ever goes away, so a pointer to one stays good. Metrics that were
 * never declared have none; they count by the defaults (metric_default).
 *
 * The table has a mutex of its own, taken last and only for a look-up or a change: no add waits for it.
 *
 *	find, copy	any thread
 *	declare		under the registry's lock
 *	n_counters	under the registry's lock
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/engine/engine.h"
#include "lib/names/path.h"

struct metric {
	struct engine_metric
		policy; /* under the table's mutex to change, or to read without the registry's lock */
	uint32_t n_counters; /* its counters; those under ENGINE_OTHER past the ceiling included */
	size_t len;
	char name[PATH_MAX_SEGMENT];
};

struct metrics {
	pthread_mutex_t mutex;
	struct metric **sorted; /* by name */
	size_t n;
	size_t n_expiring; /* records that ask for expiry */
};

#define METRICS_INIT                               \
	{                                          \
		.mutex = PTHREAD_MUTEX_INITIALIZER \
	}

void metrics_deinit(struct metrics *metrics);

/* NULL if never declared. `path`: the metric's name or any path below it. */
struct metric *metrics_find(struct metrics *metrics, const char *path, size_t len);

/* A new or changed record. ENGINE_E_FULL, -ENOMEM. *ret_new: it was not there before. */
int metrics_declare(struct metrics *metrics, const char *name, size_t len,
		    const struct engine_metric *policy, struct metric **ret_metric, bool *ret_new);

/* The policy as it stands: true if declared. */
bool metrics_policy(struct metrics *metrics, const char *path, size_t len,
		    struct engine_metric *ret_policy);

/* All records, by name; the callback must not come here. */
void metrics_each(struct metrics *metrics, engine_metric_fn each, void *ctx);

/* Some metric asks for expiry. */
bool metrics_expire(struct metrics *metrics);
