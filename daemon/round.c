#include "daemon/round.h"

#include "daemon/clock.h"
#include "daemon/connection.h"
#include "daemon/daemon.h"
#include "daemon/serve.h"
#include "daemon/worker.h"
#include "proto/frame.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/uio.h>
#include <unistd.h>

/* Pages of walks in one round, so that a fast reader does not keep the worker from others. */
#define ROUND_WALK_PAGES 4u

/* How the bytes at hand were dealt with. */
enum taken {
	TAKEN_ALL,   /* but for the beginning of a frame, which is kept */
	TAKEN_MOVED, /* the connection was handed to another worker: not ours any more */
};

/* ---- requests ---- */

/* False: the rest is not to be taken now. */
static bool go_on(struct connection *connection)
{
	if (!connection_is_active(connection) || connection->lost ||
	    connection_is_held_up(connection)) {
		return false;
	}
	if (connection->worker->turn_left == 0) {
		connection_defer(connection);
		return false;
	}
	if (connection_waiting(connection) < (size_t)connection->worker->settings.max_output / 2) {
		return true;
	}
	connection_flush(connection);
	if (connection_waiting(connection) >= (size_t)connection->worker->settings.max_output / 2) {
		connection->paused = true;
		stats_add(&connection->worker->stats.pauses, 1);
		return false;
	}
	return !connection->lost;
}

/* One message. SERVE_E_MOVE, SERVE_E_LATER: nothing was done. */
static int take_message(struct connection *connection, const uint8_t *message, size_t len,
			unsigned *ret_worker)
{
	struct worker *worker = connection->worker;
	struct request request;
	int r;

	arena_reset(&worker->in);
	arena_reset(&worker->out);
	r = request_decode(&worker->in, message, len, &request);
	if (r == -ENOMEM) {
		connection_fault(connection, CODE_RESOURCE_EXHAUSTED,
				 "a message needs more memory to decode than is allowed");
		return SERVE_OK;
	}
	if (r < 0) {
		connection_fault(connection, CODE_INVALID_ARGUMENT,
				 "a frame holds no message of this protocol");
		return SERVE_OK;
	}
	connection->frame_since = 0;
	r = serve(connection, &request, ret_worker);
	if (r == SERVE_OK) {
		stats_add(&worker->stats.frames_in, 1);
	} else if (r == SERVE_E_LATER) {
		connection->awaits_job = true;
		connection_defer(connection);
	}
	return r;
}

static void hand_over(struct connection *connection, unsigned target)
{
	struct daemon *daemon = connection->worker->daemon;

	connection_leave(connection);
	connection->settled = true;
	worker_hand(&daemon->workers[target], connection);
}

static void keep(struct connection *connection, const uint8_t *bytes, size_t len)
{
	if (len > 0 && !connection->lost && connection_is_active(connection) &&
	    input_append(&connection->input, bytes, len) < 0) {
		connection->lost = true;
	}
}

static void bad_frame(struct connection *connection)
{
	connection_fault(connection, CODE_INVALID_ARGUMENT,
			 "a frame is longer than 1048576 bytes, or its length is malformed");
}

/* First what was kept from earlier rounds, completed with the bytes at hand as far as it takes; returns what is left of those. */
static enum taken take_kept(struct connection *connection, const uint8_t **at, const uint8_t *end)
{
	struct input *input = &connection->input;

	while (input_left(input) > 0 && go_on(connection)) {
		const uint8_t *message;
		size_t message_len, used, lacking;
		unsigned target;
		int r;

		switch (frame_find(input->bytes + input->off, input_left(input), MESSAGE_MAX_FRAME,
				   &message, &message_len, &used)) {
		case FRAME_OK:
			r = take_message(connection, message, message_len, &target);
			if (r == SERVE_E_MOVE) {
				keep(connection, *at, (size_t)(end - *at));
				hand_over(connection, target);
				return TAKEN_MOVED;
			}
			if (r == SERVE_OK && connection_is_active(connection)) {
				input_consume(input, used);
			}
			break;
		case FRAME_E_SHORT:
			lacking = used - input_left(input);
			lacking = lacking < (size_t)(end - *at) ? lacking : (size_t)(end - *at);
			if (input_want(input, used) < 0) {
				connection->lost = true;
				break;
			}
			if (lacking == 0) {
				return TAKEN_ALL;
			}
			keep(connection, *at, lacking);
			*at += lacking;
			break;
		case FRAME_E_LONG:
			bad_frame(connection);
			break;
		}
	}
	return TAKEN_ALL;
}

static enum taken take(struct connection *connection, const uint8_t *at, const uint8_t *end)
{
	enum taken taken = take_kept(connection, &at, end);

	if (taken != TAKEN_ALL) {
		return taken;
	}
	while (at < end && input_left(&connection->input) == 0 && go_on(connection)) {
		const uint8_t *message;
		size_t message_len, used;
		unsigned target;
		int r;

		switch (frame_find(at, (size_t)(end - at), MESSAGE_MAX_FRAME, &message,
				   &message_len, &used)) {
		case FRAME_OK:
			r = take_message(connection, message, message_len, &target);
			if (r == SERVE_E_MOVE) {
				keep(connection, at, (size_t)(end - at));
				hand_over(connection, target);
				return TAKEN_MOVED;
			}
			at += r == SERVE_OK ? used : 0;
			break;
		case FRAME_E_SHORT:
			keep(connection, at, (size_t)(end - at));
			if (!connection->lost && input_want(&connection->input, used) < 0) {
				connection->lost = true;
			}
			return TAKEN_ALL;
		case FRAME_E_LONG:
			bad_frame(connection);
			break;
		}
	}
	keep(connection, at, (size_t)(end - at));
	return TAKEN_ALL;
}

/* ---- rounds ---- */

static void begin_round(struct connection *connection, struct worker *worker)
{
	worker->current = connection;
	worker->time_left = 0;
	worker->turn_left = SERVE_TURN;
}

static void finish_round(struct connection *connection, struct worker *worker, enum taken taken)
{
	if (taken != TAKEN_MOVED) {
		connection_settle(connection);
	}
	worker->current = NULL;
}

static ssize_t read_some(struct connection *connection)
{
	struct input *input = &connection->input;
	struct worker *worker = connection->worker;
	size_t room = input_room(input);
	struct iovec parts[2] = {
		{ .iov_base = room > 0 ? input->bytes + input->len : NULL, .iov_len = room },
		{ .iov_base = worker->scratch, .iov_len = WORKER_READ },
	};
	ssize_t n = room > 0 ? readv(connection->fd, parts, 2)
			     : read(connection->fd, worker->scratch, WORKER_READ);

	if (n < 0) {
		connection->lost = errno != EAGAIN && errno != EINTR;
		return -1;
	}
	connection->eof = n == 0;
	connection->drain_left -= n > 0 ? n : connection->drain_left;
	stats_add(&worker->stats.bytes_in, (uint64_t)n);
	return n;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *connection = arg;
	struct worker *worker = connection->worker;
	size_t room = input_room(&connection->input), direct;
	enum taken taken = TAKEN_ALL;
	ssize_t n;

	(void)fd;
	(void)what;
	begin_round(connection, worker);
	n = read_some(connection);
	if (n > 0 && connection_is_active(connection)) {
		direct = (size_t)n < room ? (size_t)n : room;
		connection->input.len += direct;
		taken = take(connection, worker->scratch, worker->scratch + ((size_t)n - direct));
	} else if (n == 0 && connection->state == CONNECTION_LINGERING) {
		connection->lost = true; /* it has closed, as it should */
	}
	finish_round(connection, worker, taken);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *connection = arg;
	struct worker *worker = connection->worker;
	enum taken taken = TAKEN_ALL;

	(void)fd;
	(void)what;
	begin_round(connection, worker);
	connection_flush(connection);
	if (connection->paused &&
	    connection_waiting(connection) < (size_t)worker->settings.max_output / 8) {
		connection->paused = false;
		taken = take(connection, NULL, NULL);
	}
	if (taken != TAKEN_MOVED && connection->n_walks > 0 && !connection->lost &&
	    connection_waiting(connection) == 0) {
		arena_reset(&worker->out);
		serve_walks(connection, ROUND_WALK_PAGES);
	}
	finish_round(connection, worker, taken);
}

static bool is_over(int64_t since, int64_t timeout, int64_t now)
{
	return since != 0 && now - since >= timeout;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct connection *connection = arg;
	struct worker *worker = connection->worker;
	const struct settings *settings = &worker->settings;
	int64_t now = clock_coarse_ns();

	(void)fd;
	(void)what;
	connection->timer_at = 0;
	begin_round(connection, worker);
	arena_reset(&worker->out);
	if (is_over(connection->write_since, settings->write_timeout_ns, now)) {
		connection_timed_out(connection, "it does not read what waits for it");
		stats_add(&worker->stats.connections_lost, 1);
		connection->lost = true;
	} else if (is_over(connection->linger_since, CONNECTION_LINGER_NS, now)) {
		connection->lost = true;
	} else if (is_over(connection->hello_since, settings->hello_timeout_ns, now)) {
		connection_timed_out(connection, "it did not say Hello in time");
		connection_end(connection, CODE_DEADLINE_EXCEEDED, "no Hello came in time");
	} else if (is_over(connection->frame_since, settings->idle_frame_ns, now)) {
		connection_timed_out(connection, "a frame it began did not become whole in time");
		connection_end(connection, CODE_DEADLINE_EXCEEDED,
			       "a frame that was begun did not become whole in time");
	}
	finish_round(connection, worker, TAKEN_ALL);
}

void round_attach(struct connection *connection, struct worker *worker)
{
	enum taken taken;

	connection->worker = worker;
	LIST_INSERT_HEAD(&worker->connections, connection, link);
	(void)event_assign(&connection->readable, worker->base, connection->fd,
			   EV_READ | EV_PERSIST, on_readable, connection);
	(void)event_assign(&connection->writable, worker->base, connection->fd,
			   EV_WRITE | EV_PERSIST, on_writable, connection);
	(void)evtimer_assign(&connection->timer, worker->base, on_timer, connection);
	begin_round(connection, worker);
	taken = take(connection, NULL, NULL);
	if (taken != TAKEN_MOVED && worker->stopping) {
		worker->current = NULL;
		connection_stop(connection);
		return;
	}
	finish_round(connection, worker, taken);
}

/* Once it is done, its connection goes on behind others who wait for their turn. */
static void go_on_working(struct worker *worker)
{
	struct connection *connection = serve_job_connection(worker);

	if (connection != NULL) {
		begin_round(connection, worker);
		serve_job_more(worker);
		if (!connection->working) {
			connection_defer(connection);
		}
		finish_round(connection, worker, TAKEN_ALL);
	}
}

/* The first for whom it is of use. */
static struct connection *next_deferred(const struct worker *worker)
{
	struct connection *connection = TAILQ_FIRST(&worker->deferred);

	while (connection != NULL && connection->awaits_job && worker->job != NULL) {
		connection = TAILQ_NEXT(connection, next_deferred);
	}
	return connection;
}

bool round_deferred(struct worker *worker)
{
	struct connection *connection = next_deferred(worker);

	if (connection != NULL) {
		TAILQ_REMOVE(&worker->deferred, connection, next_deferred);
		connection->deferred = connection->awaits_job = false;
		begin_round(connection, worker);
		finish_round(connection, worker, take(connection, NULL, NULL));
	}
	go_on_working(worker);
	return worker->job != NULL || !TAILQ_EMPTY(&worker->deferred);
}
