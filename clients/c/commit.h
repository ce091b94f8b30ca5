#pragma once
/*
 * commit: asking the daemon, on the session's connection, to have all that it has applied in its state file.
 *
 * Somebody waits for that, or so much is kept that there must be an end. One Flush is under way at a time; whoever comes meanwhile waits for
 * the next one. What becomes durable is told by Durable, whoever asked; the answer to the Flush says only that it was done, or why it can't be.
 *
 * Threads: all under the client's lock.
 */
#include <stdbool.h>
#include <stdint.h>

/* If nobody waits for it: not sooner after a success, or a failure. */
#define COMMIT_PAUSE_MS 50
#define COMMIT_RETRY_MS 1000

struct reply;

struct commit {
	uint64_t wanted, asked,
		done;	 /* tickets: given out; covered by the Flush under way; answered */
	uint64_t behind; /* the Flush must come behind batches with numbers below this */
	uint64_t id;	 /* of the Flush on this connection; 0: none */
	int64_t at;	 /* when it was asked, or answered */
	int code;	 /* what the last answer was: 0, or a RATION_* */
	char text[128];
};

/* Wait until `done` is at this ticket or above; next_batch: the lowest number of a batch that need not be there. */
uint64_t commit_want(struct commit *commit, uint64_t next_batch);

/*
 * Should a Flush be sent now? `full`: much is kept. first_unsent: number of the first kept batch that is not on the connection yet, or
 * UINT64_MAX.
 */
bool commit_is_due(const struct commit *commit, bool full, uint64_t first_unsent, int64_t now);
/* It was sent. */
void commit_asked(struct commit *commit, uint64_t id, int64_t now);
/* Is this the answer? */
bool commit_take(struct commit *commit, const struct reply *reply, int64_t now);
/* The connection is gone. */
void commit_broken(struct commit *commit);

/* When one should be sent for what is kept. */
int64_t commit_due_at(const struct commit *commit);
