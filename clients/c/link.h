#pragma once
/*
 * link: the connection over which growth is sent, as a state machine that never blocks.
 *
 *	DOWN --dial--> CONNECTING --writable--> GREETING --Welcome--> UP
 *	  ^______________________any failure____________________________|
 *
 * A failure closes the connection and sets the time of the next attempt: 50 ms after the first, doubling up to 2 s, each a random
 * part shorter so that clients of a daemon that returns do not all come at once. Whatever the daemon does not have then is sent again on the
 * next connection, in order and under the same numbers.
 *
 * Ids of requests: odd for batches (number * 2 + 1), so that a batch's frame never changes; even for all else.
 *
 * Threads: all under the client's lock. `dial` alone is the background thread's, between link_wants_dial and link_dialed.
 */
#include "clients/c/commit.h"
#include "clients/c/dial.h"
#include "clients/c/intern.h"
#include "clients/c/operations.h"
#include "clients/c/outbox.h"
#include "clients/c/stream.h"

#define LINK_BACKOFF_MIN_MS 50
#define LINK_BACKOFF_MAX_MS 2000
#define LINK_CONNECT_MS 5000 /* for connect, and again for the Welcome */
#define LINK_ANSWER_MS \
	10000 /* without a sign of life while an answer is due: the connection is given up */
#define LINK_IDLE_MS 15000	       /* of silence on TCP, then a Ping */
#define LINK_MAX_PENDING (128u * 1024) /* bytes of output that stand in the stream */
#define LINK_FULL_MS 1000 /* operations wait so long for what is kept to become durable */
#define LINK_INCARNATION 16u
#define LINK_MAX_FAULTS \
	5u /* times in a row that the daemon says it is our fault; then the oldest batch is given up */

enum link_state {
	LINK_DOWN,
	LINK_CONNECTING,
	LINK_GREETING,
	LINK_UP,
};

struct ration;

struct link {
	const struct dial_address *address;
	struct outbox *outbox;
	struct counters *counters;
	struct losses *losses;
	struct operations *operations;
	struct ration *client; /* whose leases are told about the connection */
	uint32_t lifetime_ms;
	size_t max_unacknowledged;

	enum link_state state;
	struct dial dial;
	bool dialing;
	struct stream stream;
	struct interns interns;
	struct batch *
		to_send; /* the first kept batch that is not on this connection yet; NULL: all are */
	struct limits limits;
	bool keeps; /* the daemon has a state file */
	uint8_t incarnation
		[LINK_INCARNATION]; /* of the last daemon that welcomed us; its length is 0 if none has */
	uint8_t incarnation_len;
	struct commit commit;
	uint8_t session[MESSAGE_SESSION_BYTES];
	bool begun;			     /* the session was welcomed */
	uint32_t connection;		     /* number of this one, or of the last */
	uint64_t next_id, hello_id, ping_id; /* ping_id 0: none under way */

	int64_t full_since; /* no more operations can be kept */
	int64_t retry_at;   /* DOWN: when to dial */
	int64_t backoff;    /* ms; 0: the last connection did some good */
	int64_t expires_at; /* CONNECTING, GREETING */
	int64_t heard_at;   /* UP: last sign of life, or the moment since which an answer is due */
	uint64_t random;
	uint64_t n_unreachable; /* attempts that found nobody */
	uint32_t faults;
	uint64_t fault_batch; /* the oldest not applied at that time */
	struct arena arena;
	char text[160]; /* why the last connection ended or none came about */
};

/* The caller has set the first group. 0 or a negative errno. */
int link_init(struct link *link);
void link_deinit(struct link *link);

/* In the child of a fork: a new session and no connection; the parent's goes on untouched. */
void link_forget(struct link *link);

/* Leave the session behind: the next connection begins another one, and the daemon will say that it knows nothing of it. */
void link_leave_session(struct link *link);

/* Is it time to look the daemon's address up (dial_begin on link->dial, without the lock) and hand it over? */
bool link_wants_dial(const struct link *link, int64_t now);
/* The result of dial_begin. */
void link_dialed(struct link *link, int r, int64_t now);

/* Read, answer, cut and write as far as it goes without waiting. `revents`: what poll said of link_fd. */
void link_step(struct link *link, short revents, int64_t now);

/*
 * UP: write operations now, on any thread, instead of in the next link_step. False: there is something left for that.
 */
bool link_send(struct link *link, int64_t now);

/* What to poll for; fd -1 if there is nothing. */
int link_fd(const struct link *link, short *ret_events);
/* When link_step should be called even if nothing happens. */
int64_t link_deadline(const struct link *link);

/* Somebody waits: attempt to connect now, and begin with short pauses again. */
void link_hurry(struct link *link, int64_t now);

bool link_is_up(const struct link *link);

/*
 * Tell the daemon that the session is over, and wait until the deadline for it to say so. All was answered, and no thread uses the link any
 * more. 0; -EOPNOTSUPP: the daemon does not; -ENOTCONN, -ETIMEDOUT or another negative errno.
 */
int link_end_session(struct link *link, int64_t deadline);

/* ---- for answer.c ---- */

/* End the connection for this reason. */
void link_fail(struct link *link, int64_t now, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The daemon says that we broke the protocol: as link_fail, and give up the oldest batch if that keeps happening. */
void link_fault(struct link *link, uint32_t code, const struct text *text, int64_t now);
