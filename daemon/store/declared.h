#pragma once
/*
 * declared: metrics and rules of run time, on their way into the state file and back.
 *
 * Of a metric that the configuration declares, only the kind goes into the file, and that only once it has counters: they are of that kind,
 * whatever the configuration says by the next start.
 */
#include <stddef.h>

struct daemon;
struct engine_metric;
struct engine_rule;
struct store;

/* Any thread, with the store its own. 0 or -ENOMEM: the store has what it had. */
int declared_keep(struct daemon *daemon, struct store *store);
/* Metrics alone: one has its first counter. */
int declared_keep_metrics(struct daemon *daemon, struct store *store);

/* At the start, when the configuration has been taken; for store_load. What can't be taken is logged and left out. */
int declared_restore_metric(struct daemon *daemon, const char *name, size_t len,
			    const struct engine_metric *metric);
int declared_restore_rule(struct daemon *daemon, const struct engine_rule *rule);
