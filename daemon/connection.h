#pragma once
/*
 * connection: one client's stream of requests and replies.
 *
 * A round: one read of bounded size, every whole frame in it answered in order, one write. So one request costs one epoll_wait, one
 * read, one write; a busy client gets no more than one round before the others had theirs; and an idle one holds little memory,
 * since bytes are kept only while a frame is half there or the client does not read.
 *
 *	NEW	 no Hello yet; it has hello_timeout for it
 *	OPEN	 greeted
 *	ENDING	 a Goodbye is the last thing it gets; requests are no longer taken
 *	LINGERING the Goodbye was sent; what still comes is thrown away until the client closes, so that it is not lost with a reset
 *
 * Who reads nothing is not read from once half of max_output waits for it, and is dropped once it has taken nothing for
 * write_timeout.
 *
 * Thread safety: a connection belongs to one worker at a time, and only its thread touches it. connection_new and
 * connection_free may be called while it has none.
 */
#include "daemon/input.h"
#include "daemon/output.h"
#include "proto/message.h"

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define CONNECTION_MAX_PEER 72u
#define CONNECTION_LINGER_NS INT64_C(1000000000)

struct reload_job;
struct serve_job;
struct session;
struct wait;
struct walk_job;
struct worker;

enum connection_state {
	CONNECTION_NEW,
	CONNECTION_OPEN,
	CONNECTION_ENDING,
	CONNECTION_LINGERING,
};

struct connection {
	LIST_ENTRY(connection) link; /* in its worker's list */
	TAILQ_ENTRY(connection) next_deferred;
	struct worker *worker; /* NULL while on its way to one */
	int fd;
	enum connection_state state;
	bool paused;	 /* not read from: too much output waits */
	bool eof;	 /* the client has shut down its direction */
	bool lost;	 /* an error on the socket: to be closed at once */
	bool settled;	 /* sent here by another worker to get its session */
	bool working;	 /* a long request of it is under way: see struct serve_job */
	bool awaits_job; /* deferred until that of somebody else is done */
	bool deferred; /* in its worker's list of those who come again, with what they have sent: see round_deferred */
	bool draining; /* stopping: what was in the socket when the stop came is still answered */
	bool reading, writing; /* which events are set */
	int64_t drain_left;
	struct input input;
	struct output output;
	struct session *session; /* NULL: none */
	SIMPLEQ_HEAD(, walk_job) walks;
	unsigned n_walks;
	struct reload_job *reload; /* asked for and not answered yet; NULL: none */
	LIST_HEAD(, wait) waits;   /* charges that wait for room */
	unsigned n_waits;
	unsigned n_flushes; /* that wait for what was applied to be durable */
	/* Monotonic; when each of these began, 0: it is not so. */
	int64_t hello_since, frame_since, write_since, linger_since;
	int64_t timer_at; /* when the timer fires; 0: not set */
	struct event readable, writable, timer;
	char peer[CONNECTION_MAX_PEER];
};

/* Takes over the fd, which is non-blocking, only on success. NULL: no memory. */
struct connection *connection_new(int fd, const char *peer, int64_t now_ns);
/* Of one that no worker has. Closes. Takes NULL, returns NULL. */
struct connection *connection_free(struct connection *connection);

/* ---- for the handlers of requests, and for the worker ---- */

/* Encode and send. A reply that does not fit a frame is replaced by an error that says so. */
void connection_reply(struct connection *connection, const struct reply *reply);

/* Say Goodbye and take no more requests. */
void connection_end(struct connection *connection, enum code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Stopping: end once what the socket holds now was answered. */
void connection_stop(struct connection *connection);

/* Close at once, whatever waits. Frees. */
void connection_close(struct connection *connection);

/* ---- for round.c ---- */

/* NEW or OPEN. */
static inline bool connection_is_active(const struct connection *connection)
{
	return connection->state == CONNECTION_NEW || connection->state == CONNECTION_OPEN;
}
/* The client has closed, not only shut down its direction. A TCP client that has done both is not told from one that has done the second. */
bool connection_hung_up(const struct connection *connection);
/* Write what the socket takes. */
void connection_flush(struct connection *connection);
/* What it has sent is to wait for another turn of the worker's loop. */
void connection_defer(struct connection *connection);
/* It waits for one: nothing more of it is taken now. */
static inline bool connection_is_held_up(const struct connection *connection)
{
	return connection->working || connection->deferred;
}
/* Bytes that wait for the socket. */
size_t connection_waiting(struct connection *connection);
/* A fault of the client's: log it, count it, and end. */
void connection_fault(struct connection *connection, enum code code, const char *text);
/* Log and count that a timeout is over; what follows is up to the caller. */
void connection_timed_out(struct connection *connection, const char *text);
/* The worker has it no more: no events, not in its list. */
void connection_leave(struct connection *connection);
/*
 * The one place where a round ends: what is to be sent is sent, and what comes next is decided. The connection may be
 * gone afterwards.
 */
void connection_settle(struct connection *connection);
