#pragma once
/*
 * statsd: what a worker has to do with StatsD: its sockets for datagrams, its TCP connections, and the intake that both feed.
 *
 * A worker has one if the daemon listens for StatsD at all. Everything is the worker's own thread's, but where it says otherwise.
 */
#include "daemon/statsd/intake.h"

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

struct daemon;
struct statsd_socket;
struct statsd_stream;
struct worker;

#define STATSD_DATAGRAMS 64u		/* that one call receives */
#define STATSD_DATAGRAM 65535u		/* bytes of the longest that is taken whole */
#define STATSD_READ ((size_t)256 << 10) /* from a stream at a time */

struct statsd {
	struct worker *worker;
	struct statsd_socket_list *sockets; /* the worker's */
	LIST_HEAD(, statsd_stream) streams;
	char *stream_buffer; /* STATSD_READ bytes, with room for the beginning of a line before them */
	struct datagrams *datagrams; /* what one call receives; NULL: no socket */
	struct intake intake;
};

/* ---- before the worker's thread starts: the main thread ---- */

/* Makes worker->statsd, unless it is there. 0 or -ENOMEM. */
int statsd_open(struct worker *worker);
/* A datagram socket that is bound: takes it over, also on failure. 0 or a negative errno. */
int statsd_add_socket(struct worker *worker, int fd, const char *name);
/* The thread has ended, or never began. Takes NULL, returns NULL. */
struct statsd *statsd_free(struct statsd *statsd);

/* ---- any thread ---- */

/* An accepted connection; closes it on failure, when it is NULL. `peer` is copied. */
struct statsd_stream *statsd_stream_new(int fd, const char *peer);
/* One that no worker has. Closes. Takes NULL, returns NULL. */
struct statsd_stream *statsd_stream_free(struct statsd_stream *stream);

/* ---- the main thread ---- */

/* The levels of the daemon's configuration from now on. 0 or -ENOMEM. */
int statsd_set_levels(struct daemon *daemon);
/* Ask the kernel what it has dropped; every second or so. */
void statsd_look_for_drops(struct daemon *daemon);

/* ---- the worker's thread ---- */

/* Serve it. */
void statsd_attach(struct statsd *statsd, struct statsd_stream *stream);
/* Count what sockets and connections hold, then close them. Takes NULL. */
void statsd_stop(struct statsd *statsd);

/* ---- among the files of this folder ---- */

void statsd_sockets_stop(struct statsd *statsd);
void statsd_sockets_free(struct statsd *statsd);
void statsd_streams_stop(struct statsd *statsd);
