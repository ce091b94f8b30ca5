#include "daemon/connection.h"

#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/serve.h"
#include "daemon/session.h"
#include "daemon/worker.h"
#include "proto/frame.h"

#include <errno.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Pages of walks in one round, so that a fast reader does not keep the worker from others. */
#define CONNECTION_WALK_PAGES 4u

/* How the bytes at hand were dealt with. */
enum taken {
	TAKEN_ALL,   /* but for the beginning of a frame, which is kept */
	TAKEN_MOVED, /* the connection was handed to another worker: not ours any more */
};

static void on_readable(evutil_socket_t fd, short what, void *arg);
static void on_writable(evutil_socket_t fd, short what, void *arg);
static void on_timer(evutil_socket_t fd, short what, void *arg);

/* ---- life ---- */

struct connection *connection_new(int fd, const char *peer, int64_t now_ns)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	if (connection != NULL) {
		connection->fd = fd;
		connection->hello_since = now_ns;
		SIMPLEQ_INIT(&connection->walks);
		(void)snprintf(connection->peer, sizeof(connection->peer), "%s", peer);
	}
	return connection;
}

struct connection *connection_free(struct connection *connection)
{
	if (connection != NULL) {
		serve_walks_drop(connection);
		input_deinit(&connection->input);
		output_deinit(&connection->output);
		(void)close(connection->fd);
		free(connection);
	}
	return NULL;
}

static bool is_active(const struct connection *connection)
{
	return connection->state == CONNECTION_NEW || connection->state == CONNECTION_OPEN;
}

static void release_session(struct connection *connection)
{
	struct session *session = connection->session;

	if (session != NULL) {
		connection->session = NULL;
		worker_release_session(connection->worker, session);
	}
}

static void leave_worker(struct connection *connection)
{
	(void)event_del(&connection->readable);
	(void)event_del(&connection->writable);
	(void)event_del(&connection->timer);
	connection->reading = connection->writing = false;
	connection->timer_at = 0;
	LIST_REMOVE(connection, link);
	worker_forget(connection->worker);
	connection->worker = NULL;
}

void connection_close(struct connection *connection)
{
	release_session(connection);
	leave_worker(connection);
	(void)connection_free(connection);
}

/* ---- what a client did wrong ---- */

static void fault(struct connection *connection, enum code code, const char *text)
{
	struct worker *worker = connection->worker;

	stats_add(&worker->stats.faults_protocol, 1);
	log_peer(&worker->daemon->log, LOG_KIND_PROTOCOL, clock_monotonic_ns(), LOG_NOTICE,
		 connection->peer, "closing: %s", text);
	connection_end(connection, code, "%s", text);
}

static void timed_out(struct connection *connection, const char *text)
{
	struct worker *worker = connection->worker;

	stats_add(&worker->stats.faults_timeout, 1);
	log_peer(&worker->daemon->log, LOG_KIND_TIMEOUT, clock_monotonic_ns(), LOG_NOTICE,
		 connection->peer, "closing: %s", text);
}

/* ---- sending ---- */

/* The stage is lent to the connection whose round it is. */
static struct output_stage *stage_of(struct connection *connection)
{
	struct worker *worker = connection->worker;

	return worker->current == connection ? &worker->stage : NULL;
}

static size_t waiting_output(struct connection *connection)
{
	struct output_stage *stage = stage_of(connection);

	return output_pending(&connection->output) + (stage != NULL ? stage->len : 0);
}

static void count_written(struct connection *connection, int r, size_t written)
{
	stats_add(&connection->worker->stats.bytes_out, written);
	if (written > 0) {
		connection->write_since = 0; /* it reads: the timeout starts anew */
	}
	if (r < 0) {
		connection->lost = true;
	}
}

static void flush_output(struct connection *connection)
{
	size_t written = 0;
	int r;

	if (waiting_output(connection) > 0) {
		r = output_flush(&connection->output, stage_of(connection), connection->fd,
				 &written);
		count_written(connection, r, written);
	}
}

static void send_bytes(struct connection *connection, const uint8_t *bytes, size_t len)
{
	size_t written = 0;
	int r;

	if (connection->lost) {
		return;
	}
	r = output_add(&connection->output, stage_of(connection), connection->fd, bytes, len,
		       &written);
	count_written(connection, r, written);
	stats_add(&connection->worker->stats.frames_out, 1);
}

void connection_reply(struct connection *connection, const struct reply *reply)
{
	static const char too_long[] = "the answer would not fit a frame; ask for less at a time";
	struct arena *arena = &connection->worker->out;
	const uint8_t *bytes;
	size_t len;
	int r = reply_encode(arena, reply, &bytes, &len);

	if (r == -EMSGSIZE || r == -ENOMEM) {
		const struct reply error = {
			.id = reply->id,
			.type = REPLY_ERROR,
			.error = { .code = CODE_RESOURCE_EXHAUSTED, .text = text_of(too_long) },
		};

		r = reply_encode(arena, &error, &bytes, &len);
	}
	if (r < 0) {
		connection->lost =
			true; /* no memory for a few bytes: this client can't be kept in step */
		return;
	}
	send_bytes(connection, bytes, len);
}

/* ---- ending ---- */

static void settle(struct connection *connection);

static void begin_end(struct connection *connection)
{
	release_session(connection);
	serve_walks_drop(connection);
	input_deinit(&connection->input);
	connection->state = CONNECTION_ENDING;
	connection->paused = false;
	connection->frame_since = connection->hello_since = 0;
}

void connection_end(struct connection *connection, enum code code, const char *format, ...)
{
	struct reply goodbye = { .type = REPLY_GOODBYE, .goodbye = { .code = code } };
	char text[256];
	va_list args;

	if (!is_active(connection)) {
		return;
	}
	if (connection->worker->current == NULL) {
		arena_reset(&connection->worker->out);
	}
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	goodbye.goodbye.text = text_of(text);
	connection_reply(connection, &goodbye);
	if (code != CODE_UNAVAILABLE && code != CODE_ABORTED) {
		stats_add(&connection->worker->stats.connections_lost, 1);
	}
	begin_end(connection);
	if (connection->worker->current != connection) {
		settle(connection);
	}
}

void connection_stop(struct connection *connection)
{
	int held = 0;

	if (!is_active(connection)) {
		return;
	}
	if (ioctl(connection->fd, FIONREAD, &held) != 0) {
		held = 0;
	}
	connection->draining = true;
	connection->drain_left = held;
	settle(connection);
}

/* All that the socket held when the stop came was answered, or its last frame is not whole. */
static bool is_drained(const struct connection *connection)
{
	return connection->draining && is_active(connection) && !connection->paused &&
	       connection->drain_left <= 0;
}

/* ---- what is waited for ---- */

static void want(struct connection *connection, struct event *event, bool *set, bool wanted)
{
	if (*set != wanted) {
		*set = wanted;
		if ((wanted ? event_add(event, NULL) : event_del(event)) != 0) {
			connection->lost = true;
		}
	}
}

static void sooner(int64_t *deadline, int64_t since, int64_t timeout)
{
	if (since != 0 && since + timeout < *deadline) {
		*deadline = since + timeout;
	}
}

static int64_t next_deadline(const struct connection *connection)
{
	const struct settings *settings = &connection->worker->settings;
	int64_t deadline = INT64_MAX;

	sooner(&deadline, connection->hello_since, settings->hello_timeout_ns);
	sooner(&deadline, connection->frame_since, settings->idle_frame_ns);
	sooner(&deadline, connection->write_since, settings->write_timeout_ns);
	sooner(&deadline, connection->linger_since, CONNECTION_LINGER_NS);
	return deadline;
}

/* One timer serves all timeouts, and is left alone while it fires early enough: a busy connection hardly ever sets it. */
static void set_timer(struct connection *connection)
{
	int64_t deadline = next_deadline(connection);
	struct timeval wait;
	int64_t left;

	if (deadline == INT64_MAX ||
	    (connection->timer_at != 0 && connection->timer_at <= deadline)) {
		return;
	}
	left = deadline - clock_coarse_ns();
	wait = clock_timeval(left > 1000000 ? left : 1000000);
	connection->timer_at = deadline;
	if (event_add(&connection->timer, &wait) != 0) {
		connection->lost = true;
	}
}

static void note_since(int64_t *since, bool is_so)
{
	if (!is_so) {
		*since = 0;
	} else if (*since == 0) {
		*since = clock_coarse_ns();
	}
}

/* The Goodbye was sent: tell the client that nothing follows, and wait for it to close. */
static void begin_linger(struct connection *connection)
{
	if (connection->eof || shutdown(connection->fd, SHUT_WR) != 0) {
		connection->lost = true;
		return;
	}
	connection->state = CONNECTION_LINGERING;
	connection->linger_since = clock_coarse_ns();
}

/*
 * The one place where a round ends: what is to be sent is sent, and what comes next is decided. The connection may be gone
 * afterwards.
 */
static void settle(struct connection *connection)
{
	bool pending;

	if (is_drained(connection)) {
		struct worker *worker = connection->worker;
		struct connection *current = worker->current;

		worker->current = connection; /* connection_end must not settle: we are here */
		connection_end(connection, CODE_UNAVAILABLE, "the daemon is stopping");
		flush_output(connection);
		worker->current = current;
	}
	flush_output(connection);
	pending = output_pending(&connection->output) > 0;
	if (connection->state == CONNECTION_ENDING && !pending && !connection->lost) {
		begin_linger(connection);
	}
	if (connection->eof && is_active(connection) && !pending && connection->n_walks == 0) {
		connection->lost = true;
	}
	want(connection, &connection->writable, &connection->writing,
	     pending || (connection->n_walks > 0 && !connection->lost));
	want(connection, &connection->readable, &connection->reading,
	     !connection->eof && !connection->paused && connection->state != CONNECTION_ENDING);
	note_since(&connection->write_since, pending);
	note_since(&connection->frame_since, is_active(connection) && !connection->paused &&
						     input_left(&connection->input) > 0);
	set_timer(connection);
	if (connection->lost) {
		connection_close(connection);
	}
}

/* ---- requests ---- */

/* False: the rest is not to be taken now. */
static bool go_on(struct connection *connection)
{
	if (!is_active(connection) || connection->lost) {
		return false;
	}
	if (waiting_output(connection) < (size_t)connection->worker->settings.max_output / 2) {
		return true;
	}
	flush_output(connection);
	if (waiting_output(connection) >= (size_t)connection->worker->settings.max_output / 2) {
		connection->paused = true;
		stats_add(&connection->worker->stats.pauses, 1);
		return false;
	}
	return !connection->lost;
}

/* One message. SERVE_E_MOVE: nothing was done. */
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
		fault(connection, CODE_RESOURCE_EXHAUSTED,
		      "a message needs more memory to decode than is allowed");
		return SERVE_OK;
	}
	if (r < 0) {
		fault(connection, CODE_INVALID_ARGUMENT,
		      "a frame holds no message of this protocol");
		return SERVE_OK;
	}
	connection->frame_since = 0;
	r = serve(connection, &request, ret_worker);
	if (r == SERVE_OK) {
		stats_add(&worker->stats.frames_in, 1);
	}
	return r;
}

static void hand_over(struct connection *connection, unsigned target)
{
	struct daemon *daemon = connection->worker->daemon;

	leave_worker(connection);
	connection->settled = true;
	worker_hand(&daemon->workers[target], connection);
}

static void keep(struct connection *connection, const uint8_t *bytes, size_t len)
{
	if (len > 0 && !connection->lost && is_active(connection) &&
	    input_append(&connection->input, bytes, len) < 0) {
		connection->lost = true;
	}
}

static void bad_frame(struct connection *connection)
{
	fault(connection, CODE_INVALID_ARGUMENT,
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

		switch (frame_find(input->bytes + input->off, input_left(input), MESSAGE_MAX_FRAME,
				   &message, &message_len, &used)) {
		case FRAME_OK:
			if (take_message(connection, message, message_len, &target) ==
			    SERVE_E_MOVE) {
				keep(connection, *at, (size_t)(end - *at));
				hand_over(connection, target);
				return TAKEN_MOVED;
			}
			if (is_active(connection)) {
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

		switch (frame_find(at, (size_t)(end - at), MESSAGE_MAX_FRAME, &message,
				   &message_len, &used)) {
		case FRAME_OK:
			if (take_message(connection, message, message_len, &target) ==
			    SERVE_E_MOVE) {
				keep(connection, at, (size_t)(end - at));
				hand_over(connection, target);
				return TAKEN_MOVED;
			}
			at += used;
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

static void finish_round(struct connection *connection, struct worker *worker, enum taken taken)
{
	if (taken != TAKEN_MOVED) {
		settle(connection);
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
	worker->current = connection;
	n = read_some(connection);
	if (n > 0 && is_active(connection)) {
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
	worker->current = connection;
	flush_output(connection);
	if (connection->paused &&
	    waiting_output(connection) < (size_t)worker->settings.max_output / 8) {
		connection->paused = false;
		taken = take(connection, NULL, NULL);
	}
	if (taken != TAKEN_MOVED && connection->n_walks > 0 && !connection->lost &&
	    waiting_output(connection) == 0) {
		arena_reset(&worker->out);
		serve_walks(connection, CONNECTION_WALK_PAGES);
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
	worker->current = connection;
	arena_reset(&worker->out);
	if (is_over(connection->write_since, settings->write_timeout_ns, now)) {
		timed_out(connection, "it does not read what waits for it");
		stats_add(&worker->stats.connections_lost, 1);
		connection->lost = true;
	} else if (is_over(connection->linger_since, CONNECTION_LINGER_NS, now)) {
		connection->lost = true;
	} else if (is_over(connection->hello_since, settings->hello_timeout_ns, now)) {
		timed_out(connection, "it did not say Hello in time");
		connection_end(connection, CODE_DEADLINE_EXCEEDED, "no Hello came in time");
	} else if (is_over(connection->frame_since, settings->idle_frame_ns, now)) {
		timed_out(connection, "a frame it began did not become whole in time");
		connection_end(connection, CODE_DEADLINE_EXCEEDED,
			       "a frame that was begun did not become whole in time");
	}
	finish_round(connection, worker, TAKEN_ALL);
}

void connection_attach(struct connection *connection, struct worker *worker)
{
	enum taken taken;

	connection->worker = worker;
	LIST_INSERT_HEAD(&worker->connections, connection, link);
	(void)event_assign(&connection->readable, worker->base, connection->fd,
			   EV_READ | EV_PERSIST, on_readable, connection);
	(void)event_assign(&connection->writable, worker->base, connection->fd,
			   EV_WRITE | EV_PERSIST, on_writable, connection);
	(void)evtimer_assign(&connection->timer, worker->base, on_timer, connection);
	worker->current = connection;
	taken = take(connection, NULL, NULL);
	if (taken != TAKEN_MOVED && worker->stopping) {
		worker->current = NULL;
		connection_stop(connection);
		return;
	}
	finish_round(connection, worker, taken);
}
