#pragma once
/*
 * intern: which paths the daemon has been told, and which it has refused.
 *
 * A path is told on the way: its Intern goes out right before the first batch that needs it, and nobody waits for the answer. What
 * was told on a connection that broke is certain only if the daemon has applied the batch it was told for; everything is told
 * again to a daemon that did not resume the session. Telling a path twice does no harm.
 *
 * Threads: all under the client's lock.
 */
#include "clients/c/counters.h"
#include "clients/c/stream.h"
#include "proto/message.h"

#define INTERN_REFUSED_MS 1000 /* how long a refused path is not asked for again */
#define INTERN_MAX_STRIKES 3u  /* for a handle that is unknown right after it was told, ... */
#define INTERN_STRIKES_MS 1000 /* ... each so soon after the one before */

struct intern_run {
	uint64_t id;
	uint32_t first, n; /* handles */
};

/* Why paths were refused: the daemon has few texts for that. Each stays where it is, for counters point to it. */
#define INTERN_MAX_REASONS 32u
#define INTERN_MAX_REASON 128u

/* Requests under way on the present connection, in a ring. */
struct interns {
	struct intern_run *runs;
	size_t first, n, size;
	uint32_t connection; /* number of the present connection */
	uint32_t session_since; /* of the first on which this session of the daemon was told anything */
	uint64_t certain_before; /* batches up to this one are applied, and so are the paths told for them known */
	struct arena arena;
	size_t n_reasons;
	char reasons[INTERN_MAX_REASONS][INTERN_MAX_REASON];
};

void interns_init(struct interns *interns);
void interns_deinit(struct interns *interns);

/* A connection (numbered from 1) was welcomed, with all batches up to last_batch applied. */
void interns_welcome(struct interns *interns, uint32_t connection, bool resumed,
		     uint64_t last_batch);

/* Forget the connection, and everything that was told. For the child of a fork. */
void interns_forget(struct interns *interns);

/*
 * Put before `batch` (number and entries) the Interns for those handles the daemon can't know. ids: *next_id is used and moved on.
 * 0 or -ENOMEM.
 */
int interns_tell(struct interns *interns, struct counters *counters, struct stream *stream,
		 const struct limits *limits, uint64_t batch, const struct add *entries,
		 uint64_t *next_id);

/* The oldest request under way, whose reply is the next to come; NULL if there is none. */
const struct intern_run *interns_oldest(const struct interns *interns);
void interns_drop_oldest(struct interns *interns);

/* The daemon has refused a path, has refused it no longer, has forgotten it. */
void interns_refused(struct interns *interns, struct ration_counter *counter, uint32_t code,
		     const struct text *text, int64_t now);
