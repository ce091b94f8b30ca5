#pragma once
/*
 * status: what the daemon says of itself, from one table: `rationctl status` and /metrics show the same.
 *
 * To add a figure: a line in the table (status.c), or, of a worker's own work, in STATS_EACH (stats.h).
 */
#include "daemon/stats.h"
#include "daemon/statsd/statsd-stats.h"
#include "daemon/store/checkpoint.h"
#include "lib/engine/engine.h"

#include <stddef.h>
#include <stdint.h>

struct daemon;

/* What was looked up once for all rows. */
struct status_now {
	struct daemon *daemon;
	struct stats sum; /* over all workers */
	struct statsd_stats statsd;
	struct engine_stats engine;
	struct checkpoint_stats checkpoint;
	char durability[STORE_MAX_WHY + 64];
	char text[ENGINE_MAX_REFUSED *
		  (sizeof(struct engine_refused) + 32)]; /* of the one row that makes up its text */
};

enum status_kind {
	STATUS_GAUGE,
	STATUS_COUNTER, /* since the start */
	STATUS_TEXT,
};

struct status_row {
	const char *name;
	const char *help; /* a sentence */
	enum status_kind kind;
	int64_t (*number)(struct status_now *status);	/* of STATUS_GAUGE and STATUS_COUNTER */
	const char *(*text)(struct status_now *status); /* of STATUS_TEXT; good as long as `status` */
};

extern const struct status_row status_rows[];
extern const size_t status_n_rows;

/* Any thread. */
void status_take(struct daemon *daemon, struct status_now *ret_status);
