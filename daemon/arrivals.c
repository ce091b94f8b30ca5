#include "daemon/arrivals.h"

#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/statsd/statsd.h"
#include "proto/frame.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of all workers; *ret_least: the one that has fewest. */
static uint32_t count_connections(const struct daemon *daemon, struct worker **ret_least)
{
	uint32_t all = 0, least = UINT32_MAX;

	for (unsigned i = 0; i < daemon->n_workers; i++) {
		struct worker *worker = &daemon->workers[i];
		/* Relaxed: one more or less for a moment does not matter to a choice. */
		uint32_t n = atomic_load_explicit(&worker->n_connections, memory_order_relaxed);

		all += n;
		if (n < least) {
			least = n;
			*ret_least = worker;
		}
	}
	return all;
}

uint32_t arrivals_connections(const struct daemon *daemon)
{
	struct worker *least = NULL;

	return count_connections(daemon, &least);
}

/* One frame to a fresh socket, whose buffer has room for it; whoever does not get it sees the connection closed. */
static void refuse(struct daemon *daemon, int fd, const char *peer, const char *text)
{
	const struct reply goodbye = {
		.type = REPLY_GOODBYE,
		.goodbye = { .code = CODE_RESOURCE_EXHAUSTED, .text = text_of(text) },
	};
	struct arena arena = ARENA_INIT(1 << 16);
	uint8_t sink[4096];
	const uint8_t *bytes;
	size_t len;

	daemon_count(&daemon->connections_refused);
	log_peer(&daemon->log, LOG_KIND_REFUSED, clock_monotonic_ns(), LOG_WARNING, peer,
		 "refused: %s", text);
	if (reply_encode(&arena, &goodbye, &bytes, &len) == 0) {
		(void)send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	(void)shutdown(fd, SHUT_WR);
	/* What the client has sent already would turn the close into a reset, and the Goodbye might be lost with it. */
	(void)!recv(fd, sink, sizeof(sink), MSG_DONTWAIT);
	arena_deinit(&arena);
	(void)close(fd);
}

/* Nobody could be told why, in that protocol: it has no replies. */
static void on_statsd_accepted(struct daemon *daemon, int fd, const char *peer)
{
	struct worker *least = &daemon->workers[0];
	struct statsd_stream *stream;
	uint64_t all = 0;

	for (unsigned i = 0; i < daemon->n_workers; i++) {
		uint32_t n = atomic_load_explicit(&daemon->workers[i].n_statsd_streams,
						  memory_order_relaxed);

		all += n;
		if (n < atomic_load_explicit(&least->n_statsd_streams, memory_order_relaxed)) {
			least = &daemon->workers[i];
		}
	}
	if (all >= (uint64_t)daemon->config->max_statsd_connections) {
		daemon_count(&daemon->statsd_connections_refused);
		log_peer(
			&daemon->log, LOG_KIND_REFUSED, clock_monotonic_ns(), LOG_WARNING, peer,
			"refused: there are as many connections for StatsD as there may be (max_statsd_connections)");
		(void)close(fd);
		return;
	}
	stream = statsd_stream_new(fd, peer);
	if (stream != NULL) {
		worker_hand_statsd(least, stream);
	}
}

/* To the workers in turn, so that each reads one of those at an address. */
static int on_datagrams(void *ctx, int fd, const char *name)
{
	struct daemon *daemon = ctx;
	struct worker *worker = &daemon->workers[daemon->next_reader++ % daemon->n_workers];
	int r = statsd_open(worker);

	if (r < 0) {
		(void)close(fd);
		return r;
	}
	return statsd_add_socket(worker, fd, name);
}

static void on_accepted(void *ctx, enum address_scheme scheme, int fd, const char *peer)
{
	struct daemon *daemon = ctx;
	struct connection *connection;
	struct worker *least = NULL;

	if (scheme == ADDRESS_STATSD_TCP) {
		on_statsd_accepted(daemon, fd, peer);
		return;
	}

	if (count_connections(daemon, &least) >= (uint64_t)daemon->config->max_connections) {
		refuse(daemon, fd, peer,
		       "the daemon has as many connections as it may have (max_connections)");
		return;
	}
	connection = connection_new(fd, peer, clock_coarse_ns());
	if (connection == NULL) {
		refuse(daemon, fd, peer, "the daemon is out of memory");
		return;
	}
	worker_hand(least, connection);
}

struct listener_uses arrivals_uses(const struct daemon *daemon)
{
	return (struct listener_uses){ .n_readers = daemon->n_workers,
				       .accepted = on_accepted,
				       .datagrams = on_datagrams };
}
