#include "daemon/final.h"

#include "daemon/daemon.h"

#include <inttypes.h>
#include <stdlib.h>

struct final {
	size_t n_metrics;
	__int128 sum;
};

static void add_metric(void *ctx, const struct engine_entry *entry)
{
	struct final *final = ctx;

	final->n_metrics++;
	final->sum += entry->reading.total;
}

#define SUM_TEXT 41u /* the longest number of 128 bits, its sign and an end */

/* Totals are of 64 bits; the sum of those of all metrics need not be. */
static const char *sum_text(__int128 sum, char *text)
{
	unsigned __int128 left = sum < 0 ? -(unsigned __int128)sum : (unsigned __int128)sum;
	char *at = text + SUM_TEXT - 1;

	*at = '\0';
	do {
		*--at = (char)('0' + (int)(left % 10));
		left /= 10;
	} while (left > 0);
	if (sum < 0) {
		*--at = '-';
	}
	return at;
}

void final_tell(struct daemon *daemon)
{
	struct engine_cursor cursor = { 0 };
	struct engine_stats *stats = calloc(1, sizeof(*stats));
	struct final final = { 0 };
	uint64_t batches = 0, adds = 0;
	char text[SUM_TEXT];
	bool done = false;

	while (!done && engine_walk(daemon->engine, "", 0, 1, 1000, &cursor, add_metric, &final,
				    &done) == 0) {
		/* the next page */
	}
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		batches += stats_read(&daemon->workers[i].stats.batches_applied);
		adds += stats_read(&daemon->workers[i].stats.adds_applied);
	}
	if (stats != NULL) {
		engine_stats(daemon->engine, stats);
		log_event(&daemon->log, LOG_KIND_MAX, 0, LOG_INFO,
			  &(struct log_about){ .id = LOG_ID_STOPPED },
			  "stopped: %" PRIu64 " batches with %" PRIu64 " entries applied, %" PRIu32
			  " counters in %zu metrics, sum of all totals %s",
			  batches, adds, stats->counters, final.n_metrics,
			  sum_text(final.sum, text));
	}
	free(stats);
}
