#include "daemon/statsd/statsd.h"

#include "daemon/daemon.h"
#include "daemon/worker.h"
#include "lib/rcu/grace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

int statsd_open(struct worker *worker)
{
	struct statsd *statsd;
	uint64_t seed[2];
	int r;

	if (worker->statsd != NULL) {
		return 0;
	}
	statsd = calloc(1, sizeof(*statsd));
	if (statsd == NULL) {
		return -ENOMEM;
	}
	worker->statsd = statsd;
	statsd->worker = worker;
	statsd->sockets = &worker->statsd_sockets;
	LIST_INIT(&statsd->streams);
	statsd->stream_buffer = malloc(STATSD_MAX_LINE + 1 + STATSD_READ + SCAN_SLACK);
	if (statsd->stream_buffer == NULL) {
		return -ENOMEM;
	}
	statsd->intake.engine = worker->daemon->engine;
	statsd->intake.worker = worker->engine;
	statsd->intake.stats = &worker->statsd_stats;
	statsd->intake.levels = &worker->daemon->statsd_levels;
	statsd->intake.complaints.log = &worker->daemon->log;
	if (getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
		return -EIO;
	}
	r = intake_init(&statsd->intake, (size_t)worker->daemon->config->statsd_names, seed);
	return r;
}

struct statsd *statsd_free(struct statsd *statsd)
{
	if (statsd == NULL) {
		return NULL;
	}
	statsd_sockets_free(statsd);
	intake_deinit(&statsd->intake);
	free(statsd->stream_buffer);
	free(statsd);
	return NULL;
}

int statsd_set_levels(struct daemon *daemon)
{
	struct statsd_levels *before =
		atomic_load_explicit(&daemon->statsd_levels, memory_order_relaxed);
	struct statsd_levels *levels =
		statsd_levels_new(daemon->config, before != NULL ? before->generation + 1 : 1);

	if (levels == NULL) {
		return -ENOMEM;
	}
	grace_publish(levels);
	/* Release: pairs with the acquire in the intake, so that who finds it finds it filled in. */
	atomic_store_explicit(&daemon->statsd_levels, levels, memory_order_release);
	if (before != NULL) {
		grace_wait();
		free(before);
	}
	return 0;
}

void statsd_stop(struct statsd *statsd)
{
	if (statsd != NULL) {
		statsd_sockets_stop(statsd);
		statsd_streams_stop(statsd);
	}
}
