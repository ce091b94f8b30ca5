#pragma once
/*
 * statsd_stats: what a worker counts about the StatsD lines it gets, for whoever shows it.
 *
 * One writer, the worker; any thread may read (stats_read). Everything only grows. Of what was sent, a line is either in `lines` or in
 * one of `rejected`, or its datagram is in a socket's `dropped`: there is no fourth way.
 */
#include "daemon/stats.h"
#include "daemon/statsd/reason.h"

#include <stdint.h>
#include <sys/queue.h>

/* X(name, help) */
#define STATSD_STATS_EACH(X)                                                                       \
	X(lines, "Lines that were counted.")                                                       \
	X(datagrams, "Datagrams received.")                                                        \
	X(datagrams_truncated, "Datagrams of which the kernel had to cut off the end.")            \
	X(bytes, "Bytes received, in datagrams and streams.")                                      \
	X(connections_opened, "TCP connections that were served.")                                 \
	X(connections_idle, "TCP connections closed because nothing came for too long.")           \
	X(unknown_fields, "Fields of lines that were ignored: containers, timestamps and others.") \
	X(tags_dropped, "Tags of new names that are no level of their metric.")                    \
	X(names_learned,                                                                           \
	  "Names, with their tags, that were looked up since they were new or gone.")              \
	X(names_forgotten, "Names forgotten because there was no room for more, or for a reload.")

struct statsd_stats {
#define STATSD_STATS_FIELD(name, help) _Atomic(uint64_t) name;
	STATSD_STATS_EACH(STATSD_STATS_FIELD)
#undef STATSD_STATS_FIELD
	_Atomic(uint64_t) rejected[STATSD_N_REASONS]; /* by enum statsd_reason */
};

/*
 * A socket for datagrams. The list of a worker's is complete before its thread starts and stays until it has ended, so any thread may
 * walk it meanwhile: SLIST_FOREACH(socket, &worker->statsd_sockets, link).
 */
struct statsd_socket_stats {
	SLIST_ENTRY(statsd_socket_stats) link;
	const char *name; /* as an address */
	_Atomic(uint64_t) datagrams;
	_Atomic(uint64_t)
		dropped; /* by the kernel, because the socket's buffer was full; since the socket exists */
};

SLIST_HEAD(statsd_socket_list, statsd_socket_stats);
