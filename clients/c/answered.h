#pragma once
/*
 * answered: operations that were answered and are not durable yet, with what was answered, by their numbers.
 *
 * A daemon that was started anew and does not have them is told: they are sent again as known, in order, and it does again what was done.
 * In the list those that the daemon knows come before `repeating`, those on their way (but for some that were answered just now) before
 * `to_repeat`, those still to be sent from there on.
 *
 * Threads: all under the client's lock.
 */
#include "proto/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct answered;
struct stream;

struct answered_list {
	struct answered *first, *last, *repeating, *to_repeat;
	size_t bytes; /* what they take in memory */
	size_t n_due; /* sent again, and not answered yet */
	bool dropped; /* not all that was answered in this session is in it */
};

/* Where the number of an operation's request stands; NULL: it is none. */
uint64_t *answered_number(struct request *request);

/* Keep a copy of an operation, with its answer. The arena is used, and not reset. 0 or -ENOMEM. */
int answered_keep(struct answered_list *list, const struct request *operation, uint64_t number,
		  const struct reply *reply, struct arena *arena);

/* The lowest number; UINT64_MAX: there is none. */
uint64_t answered_lowest(const struct answered_list *list);

/* Drop those up to this number, of those that the daemon knows. */
void answered_drop_until(struct answered_list *list, uint64_t number);
/* Drop the oldest that the daemon knows, until less than max_bytes are left. */
void answered_shrink(struct answered_list *list, size_t max_bytes);
/* Drop what is about leases; all. */
void answered_drop_leases(struct answered_list *list);
void answered_clear(struct answered_list *list);

/* ---- another connection ---- */

/* Nothing is on its way. */
void answered_hang_up(struct answered_list *list);

/*
 * Begin to tell what the daemon was not told; all: another daemon, which was told nothing. `last`: the highest number that it has used up; those
 * beyond are numbered without gaps. Returns the highest number then.
 */
uint64_t answered_begin(struct answered_list *list, bool all, uint64_t last);

/* Is there something to be told? */
static inline bool answered_is_untold(const struct answered_list *list)
{
	return list->to_repeat != NULL;
}

/* Put the next one into the output. 0 or a negative errno. */
int answered_put(struct answered_list *list, struct stream *stream, struct arena *arena,
		 uint64_t *next_id);

/*
 * Is this the answer to one of them? 1: it was; 0: no; -ECONNRESET: it was, and the daemon has not used its number, so that the others have
 * to be numbered anew. `last`: as of answered_begin. keep: keep it on.
 */
int answered_take(struct answered_list *list, const struct reply *reply, uint64_t last, bool keep);
