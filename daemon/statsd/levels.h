#pragma once
/*
 * levels: what the segments of a metric's paths are called, for those metrics whose configuration says it.
 *
 * One is made of each configuration and never changed. Workers read it in a read section of lib/rcu; who puts another one in its place
 * waits for them before it frees the old one.
 */
#include "daemon/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct statsd_level {
	const char *name;
	size_t len;
};

struct statsd_metric_levels {
	const char *metric;
	size_t metric_len;
	size_t n;
	struct statsd_level levels[CONFIG_MAX_LEVELS];
};

struct statsd_levels {
	uint64_t generation; /* differs from that of every other one */
	size_t n;
	struct statsd_metric_levels metrics[]; /* sorted by metric; the text is behind them */
};

/* NULL: no memory. To be freed by free(). */
struct statsd_levels *statsd_levels_new(const struct config *config, uint64_t generation);

/* Would those of the two be different? */
bool statsd_levels_differ(const struct config *a, const struct config *b);

/* NULL: it has none. */
const struct statsd_metric_levels *statsd_levels_find(const struct statsd_levels *levels,
						      const char *metric, size_t len);
