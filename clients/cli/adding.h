#pragma once
/*
 * adding: a run of adds, and what becomes of them: counted, refused, or not delivered.
 *
 * Thread safety: losses are reported by libration's thread. Whoever uses `cli` or the fields below `lock` between adding_begin and
 * adding_finish holds the lock; nobody holds it during a call of libration.
 */
#include "clients/cli/cli.h"

#include <pthread.h>

struct adding {
	struct cli *cli;
	struct ration *client; /* NULL: none */
	bool durable;	       /* it is to be in the daemon's state file at the end */
	bool single;	       /* its session ends with its connection, as a single command's */

	pthread_mutex_t lock;
	bool closing; /* losses are what could not be delivered in time: summed up by adding_finish */
	json_t *losses;
	uint64_t n_losses;

	json_t *gauges; /* whether a metric is one, by its name: those that were asked for */
};

void adding_init(struct adding *adding, struct cli *cli, bool single, bool durable);
/* Gives up what adding_finish was not called for. */
void adding_deinit(struct adding *adding);

/* Open the client; the daemon need not be there. False: reported. */
bool adding_begin(struct adding *adding);

/* See whether the daemon is there: libration would wait for it. False: reported. */
bool adding_reach(struct adding *adding);

/* Wait until all that was added is in the totals (and durable, if that is wanted) or reported, and close the client. False: something is not confirmed; reported. */
bool adding_finish(struct adding *adding);

/*
 * The counter at `path`. A client holds a limited number of them; where that is reached another client follows. NULL: errno as of
 * ration_counter; if adding->client is NULL then, the daemon has gone, which was reported.
 */
struct ration_counter *adding_counter(struct adding *adding, const char *path);

/*
 * Why n can't be added at path, for the caller to free; NULL: nothing is against it. libration merges growth before it sends it, so
 * that the daemon would see a negative amount for a counter only if nothing positive was added with it: the metric's kind is asked
 * for, once. False: the daemon did not say; reported.
 */
bool adding_allowed(struct adding *adding, const char *path, int64_t n, char **ret_why);
