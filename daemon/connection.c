#include "daemon/connection.h"

#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/keep.h"
#include "daemon/log.h"
#include "daemon/serve.h"
#include "daemon/session.h"
#include "daemon/worker.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- life ---- */

struct connection *connection_new(int fd, const char *peer, int64_t now_ns)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	if (connection != NULL) {
		connection->fd = fd;
		connection->hello_since = now_ns;
		SIMPLEQ_INIT(&connection->walks);
		LIST_INIT(&connection->waits);
		(void)snprintf(connection->peer, sizeof(connection->peer), "%s", peer);
	}
	return connection;
}

struct connection *connection_free(struct connection *connection)
{
	if (connection != NULL) {
		serve_walks_drop(connection);
		serve_reload_drop(connection);
		input_deinit(&connection->input);
		output_deinit(&connection->output);
		(void)close(connection->fd);
		free(connection);
	}
	return NULL;
}

void connection_defer(struct connection *connection)
{
	struct worker *worker = connection->worker;

	if (!connection->deferred) {
		connection->deferred = true;
		TAILQ_INSERT_TAIL(&worker->deferred, connection, next_deferred);
		worker_wake(worker);
	}
}

static void forget_turns(struct connection *connection)
{
	serve_job_drop(connection);
	if (connection->deferred) {
		connection->deferred = false;
		TAILQ_REMOVE(&connection->worker->deferred, connection, next_deferred);
	}
}

static void release_session(struct connection *connection)
{
	struct session *session = connection->session;

	if (session != NULL) {
		serve_waits_drop(connection);
		connection->session = NULL;
		worker_release_session(connection->worker, session);
	}
}

bool connection_hung_up(const struct connection *connection)
{
	struct pollfd poll_fd = { .fd = connection->fd };

	return poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLHUP | POLLERR)) != 0;
}

void connection_leave(struct connection *connection)
{
	forget_turns(connection);
	keep_waits_drop(connection);
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
	connection_leave(connection);
	(void)connection_free(connection);
}

/* ---- what a client did wrong ---- */

void connection_fault(struct connection *connection, enum code code, const char *text)
{
	struct worker *worker = connection->worker;

	stats_add(&worker->stats.faults_protocol, 1);
	log_peer(&worker->daemon->log, LOG_KIND_PROTOCOL, clock_monotonic_ns(), LOG_NOTICE,
		 connection->peer, "closing: %s", text);
	connection_end(connection, code, "%s", text);
}

void connection_timed_out(struct connection *connection, const char *text)
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

size_t connection_waiting(struct connection *connection)
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

void connection_flush(struct connection *connection)
{
	size_t written = 0;
	int r;

	if (connection_waiting(connection) > 0) {
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

static void begin_end(struct connection *connection)
{
	forget_turns(connection);
	keep_waits_drop(connection);
	release_session(connection);
	serve_walks_drop(connection);
	serve_reload_drop(connection);
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

	if (!connection_is_active(connection)) {
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
		connection_settle(connection);
	}
}

void connection_stop(struct connection *connection)
{
	int held = 0;

	if (!connection_is_active(connection)) {
		return;
	}
	if (ioctl(connection->fd, FIONREAD, &held) != 0) {
		held = 0;
	}
	connection->draining = true;
	connection->drain_left = held;
	connection_settle(connection);
}

/* Stopping, and all that the socket held when the stop came was read. */
static bool has_read_enough(const struct connection *connection)
{
	return connection->draining && connection->drain_left <= 0;
}

/* And answered; what is left is at most the beginning of a frame. */
static bool is_drained(const struct connection *connection)
{
	return has_read_enough(connection) && connection_is_active(connection) &&
	       !connection->paused && !connection_is_held_up(connection) &&
	       connection->n_walks == 0;
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

/*
 * One timer serves all timeouts, and is left alone while it fires early enough. Where there is no timeout there is no timer: the kernel
 * would arm one of its own in every wait for this client's next request, which takes a tenth of a round trip.
 */
static void set_timer(struct connection *connection)
{
	int64_t deadline = next_deadline(connection);
	struct timeval wait;
	int64_t left;

	if (deadline == INT64_MAX) {
		if (connection->timer_at != 0) {
			(void)event_del(&connection->timer);
			connection->timer_at = 0;
		}
		return;
	}
	if (connection->timer_at != 0 && connection->timer_at <= deadline) {
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

void connection_settle(struct connection *connection)
{
	bool pending;

	if (is_drained(connection)) {
		struct worker *worker = connection->worker;
		struct connection *current = worker->current;

		worker->current = connection; /* connection_end must not settle: we are here */
		connection_end(connection, CODE_UNAVAILABLE, "the daemon is stopping");
		connection_flush(connection);
		worker->current = current;
	}
	connection_flush(connection);
	pending = output_pending(&connection->output) > 0;
	if (connection->state == CONNECTION_ENDING && !pending && !connection->lost) {
		begin_linger(connection);
	}
	if (connection->eof && connection_is_active(connection) && !pending &&
	    connection->n_walks == 0 && !connection_is_held_up(connection) &&
	    (connection->n_waits + connection->n_flushes == 0 || connection_hung_up(connection))) {
		connection->lost = true;
	}
	want(connection, &connection->writable, &connection->writing,
	     pending || (connection->n_walks > 0 && !connection->lost));
	want(connection, &connection->readable, &connection->reading,
	     !connection->eof && !connection->paused && !connection_is_held_up(connection) &&
		     connection->state != CONNECTION_ENDING &&
		     !(connection_is_active(connection) && has_read_enough(connection)));
	note_since(&connection->write_since, pending);
	note_since(&connection->frame_since, connection_is_active(connection) &&
						     !connection->paused &&
						     !connection_is_held_up(connection) &&
						     input_left(&connection->input) > 0);
	set_timer(connection);
	if (connection->lost) {
		connection_close(connection);
	}
}
