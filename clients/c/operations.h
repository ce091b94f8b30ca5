#pragma once
/*
 * operations: charges, their return, and leases, on their way over the session's connection; each is done once.
 *
 *   queued --put--> numbered and on the connection --answer--> take(), and a copy is kept until it is durable
 *	^____________the connection broke______________|
 *
 * An operation keeps its number until it is answered, so that the daemon can tell a repeat, unless the daemon says that it was
 * not done: then it may be numbered anew. Where the daemon has a state file it is kept on with its answer: should another daemon not have
 * it, it is sent once more, as known. Answers need not come in order, since a charge may wait for room. Questions that are no operations
 * (a metric's kind) may stand in the queue as well, and get no number.
 *
 * Threads: all under the client's lock.
 */
#include "clients/c/answered.h"
#include "proto/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPERATIONS_MAX 16384u /* that wait for their answers, all callers' together */

struct stream;
struct operation;

/* What a Welcome means to a session. */
enum session_fate {
	SESSION_RESUMED,  /* the same daemon, with all of it */
	SESSION_RESTORED, /* another daemon, with what was durable of it */
	SESSION_LOST,	  /* the same daemon, which has forgotten it */
	SESSION_ANEW,	  /* another daemon, with nothing of it */
};

enum operation_end {
	OPERATION_ANSWERED,
	OPERATION_UNREACHABLE, /* never sent, and nobody listens */
	OPERATION_LOST, /* not done, or undone with the session, and of no use to send again */
};

/*
 * The end: it is out of the queue and may be queued again or freed. reply: of OPERATION_ANSWERED alone, valid during the call; an Error
 * or what belongs to the request.
 */
typedef void (*operation_fn)(struct operation *operation, enum operation_end end,
			     const struct reply *reply, int64_t now);

struct operation {
	/* set by its owner */
	struct request
		request; /* what it points to must stay as long as it is queued; number and id are set here */
	operation_fn take;
	bool dies_with_session; /* else it is sent again to a daemon that does not know the session */
	bool waits_for_daemon; /* else it ends if nobody listens before it was ever sent */
	bool unwanted; /* nobody wants it any more: it is sent again only to learn whether it was done */
	int64_t room_until; /* of a charge that waits for room: till when */

	/* of the queue */
	struct operation *next;
	bool queued;
	bool sent;	 /* the daemon may have done it */
	uint64_t number; /* 0: none */
	uint64_t id;	 /* of its request on this connection; 0: it is not on it */
	int64_t sent_at; /* first under this number */
};

struct operations {
	struct operation *first, *last;
	size_t n;
	uint64_t next_number;
	uint32_t max_kept; /* so many may follow one that has no answer */
	size_t n_due;	   /* on the connection, and should be answered without delay */

	struct answered_list answered; /* and not durable yet */
	size_t max_bytes;	       /* with as much in it no new ones are sent */
	bool keeps;		       /* the daemon has a state file */
	uint64_t durable; /* up to here the daemon has said so, of some before it has answered them */
	uint64_t used_up; /* the Welcome's last_operation */
};

void operations_init(struct operations *operations, size_t max_bytes);

/* Append. It must not be queued. */
void operations_add(struct operations *operations, struct operation *operation);

/* Take out what is not on the connection and was never sent; true if it is out, false: it must wait for its end. */
bool operations_withdraw(struct operations *operations, struct operation *operation);

/* The lowest number that may still be sent: for the Hello. */
uint64_t operations_next(const struct operations *operations);

/*
 * The connection was welcomed. False: last_operation is not of our session. *ret_lost: what the session held is gone. (It is not if nothing
 * of a session was durable that another daemon does not know: then all is kept, and done again.)
 */
bool operations_welcome(struct operations *operations, const struct welcome *welcome,
			enum session_fate fate, int64_t now, bool *ret_lost);

/* The daemon has all up to this number in its file, with its answers: those that came are not kept any more. */
void operations_durable(struct operations *operations, uint64_t number);

/* The daemon keeps, and as much is kept here as may be. */
bool operations_are_full(const struct operations *operations);

/* Put what is not on the connection yet into its output, as long as that holds less than max_pending. 0 or -ENOMEM. */
int operations_put(struct operations *operations, struct stream *stream, struct arena *arena,
		   size_t max_pending, uint64_t *next_id, int64_t now);

/*
 * Is this the answer to one of them? 1: it was, and is taken; 0: no; -EBADMSG: it does not fit the request; -ENOMEM: it was not taken;
 * -ECONNRESET: it was, and the connection is to be begun anew, since numbers have to be put right.
 */
int operations_take(struct operations *operations, const struct reply *reply, struct arena *arena,
		    int64_t now);

/* Nobody listens at the daemon's address. */
void operations_unreachable(struct operations *operations, int64_t now);

/* With the client, or in the child of a fork: begin anew, with nothing. Returns what was queued, a list without a word to the owners. */
struct operation *operations_forget(struct operations *operations);
