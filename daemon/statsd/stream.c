/*
 * Lines over TCP: cut anywhere, so the beginning of one is kept until the rest comes. Only then, and while more of it than fits a line
 * is passed over, has a connection memory of its own.
 */
#include "daemon/statsd/statsd.h"

#include "daemon/clock.h"
#include "daemon/worker.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BEGUN (STATSD_MAX_LINE + 1)
#define STOP_READS 256u /* the last of a connection before a stop */

struct statsd_stream {
	LIST_ENTRY(statsd_stream) link;
	struct statsd *statsd;
	struct event event;
	int fd;
	bool skipping; /* a line that is too long, up to its end */
	size_t begun_len;
	char *begun; /* the beginning of a line; NULL: none */
	struct statsd_sender sender;
	struct sockaddr_storage from;
	char peer[96];
};

struct statsd_stream *statsd_stream_new(int fd, const char *peer)
{
	struct statsd_stream *stream = calloc(1, sizeof(*stream));

	if (stream == NULL) {
		(void)close(fd);
		return NULL;
	}
	stream->fd = fd;
	/* One that is gone already has only the name that it came with. */
	(void)snprintf(stream->peer, sizeof(stream->peer), "statsd %s", peer);
	stream->sender.text = stream->peer;
	stream->sender.address_len = sizeof(stream->from);
	if (getpeername(fd, (struct sockaddr *)&stream->from, &stream->sender.address_len) == 0) {
		stream->sender.text = "statsd tcp";
		stream->sender.address = (struct sockaddr *)&stream->from;
	}
	return stream;
}

struct statsd_stream *statsd_stream_free(struct statsd_stream *stream)
{
	if (stream != NULL) {
		(void)close(stream->fd);
		free(stream->begun);
		free(stream);
	}
	return NULL;
}

static void close_stream(struct statsd_stream *stream)
{
	struct worker *worker = stream->statsd->worker;

	(void)event_del(&stream->event);
	LIST_REMOVE(stream, link);
	(void)atomic_fetch_sub_explicit(&worker->n_statsd_streams, 1, memory_order_relaxed);
	(void)statsd_stream_free(stream);
}

/* ---- lines ---- */

/*
 * Keep what has no end yet. What will be trimmed does not count: blanks before the line are left out; of those behind it, if they are that,
 * one more than the longest line has is enough to tell that something follows them.
 */
static void keep(struct statsd_stream *stream, const char *bytes, size_t len)
{
	struct intake *intake = &stream->statsd->intake;
	const char *line = bytes;
	size_t line_len = len;

	free(stream->begun);
	stream->begun = NULL;
	stream->begun_len = 0;
	statsd_line_trim(&line, &line_len);
	if (stream->skipping || line_len == 0) {
		return;
	}
	if (line_len > STATSD_MAX_LINE) {
		intake_reject(intake, STATSD_line_too_long, bytes, len, &stream->sender);
		stream->skipping = true;
		return;
	}
	len -= (size_t)(line - bytes);
	len = len < MAX_BEGUN ? len : MAX_BEGUN;
	stream->begun = malloc(len);
	if (stream->begun == NULL) {
		intake_reject(intake, STATSD_truncated, bytes, len, &stream->sender);
		stream->skipping = true;
		return;
	}
	memcpy(stream->begun, line, len);
	stream->begun_len = len;
}

static void take(struct statsd_stream *stream, const char *bytes, size_t len)
{
	struct intake *intake = &stream->statsd->intake;
	const char *end = bytes + len, *last;

	if (stream->skipping) {
		const char *newline = memchr(bytes, '\n', len);

		if (newline == NULL) {
			return;
		}
		stream->skipping = false;
		bytes = newline + 1;
	}
	last = bytes < end ? memrchr(bytes, '\n', (size_t)(end - bytes)) : NULL;
	if (last != NULL) {
		intake_take(intake, bytes, (size_t)(last + 1 - bytes), &stream->sender);
		intake_settle(intake);
		keep_note(stream->statsd->worker);
		bytes = last + 1;
	}
	keep(stream, bytes, (size_t)(end - bytes));
}

/* Nothing more comes: what was begun is a line if the end was a good one. */
static void end_of_lines(struct statsd_stream *stream, bool good)
{
	struct intake *intake = &stream->statsd->intake;
	char *bytes = stream->statsd->stream_buffer;

	if (stream->begun_len == 0) {
		return;
	}
	memcpy(bytes, stream->begun, stream->begun_len);
	if (good) {
		intake_take(intake, bytes, stream->begun_len, &stream->sender);
		intake_settle(intake);
		keep_note(stream->statsd->worker);
	} else {
		intake_reject(intake, STATSD_truncated, bytes, stream->begun_len, &stream->sender);
	}
}

/* ---- reading ---- */

/* One read, behind what was kept. False: the connection is over, and closed. */
static bool read_some(struct statsd_stream *stream, bool *ret_empty)
{
	struct statsd *statsd = stream->statsd;
	ssize_t n = read(stream->fd, statsd->stream_buffer + stream->begun_len, STATSD_READ);

	*ret_empty = n < 0 && (errno == EAGAIN || errno == EINTR);
	if (*ret_empty) {
		return true;
	}
	if (n <= 0) {
		end_of_lines(stream, /* good= */ n == 0);
		close_stream(stream);
		return false;
	}
	if (stream->begun_len > 0) {
		memcpy(statsd->stream_buffer, stream->begun, stream->begun_len);
	}
	stats_add(&statsd->worker->statsd_stats.bytes, (uint64_t)n);
	take(stream, statsd->stream_buffer, stream->begun_len + (size_t)n);
	return true;
}

static void on_stream(evutil_socket_t fd, short what, void *arg)
{
	struct statsd_stream *stream = arg;
	bool empty;

	(void)fd;
	if (what & EV_READ) {
		(void)read_some(stream, &empty);
		return;
	}
	stats_add(&stream->statsd->worker->statsd_stats.connections_idle, 1);
	end_of_lines(stream, /* good= */ false);
	close_stream(stream);
}

void statsd_attach(struct statsd *statsd, struct statsd_stream *stream)
{
	struct worker *worker = statsd->worker;
	struct timeval idle = clock_timeval(worker->settings.statsd_idle_ns);

	stream->statsd = statsd;
	LIST_INSERT_HEAD(&statsd->streams, stream, link);
	(void)event_assign(&stream->event, worker->base, stream->fd, EV_READ | EV_PERSIST,
			   on_stream, stream);
	stats_add(&worker->statsd_stats.connections_opened, 1);
	if (worker->stopping ||
	    event_add(&stream->event, worker->settings.statsd_idle_ns > 0 ? &idle : NULL) != 0) {
		close_stream(stream);
	}
}

void statsd_streams_stop(struct statsd *statsd)
{
	struct statsd_stream *stream;

	while ((stream = LIST_FIRST(&statsd->streams)) != NULL) {
		bool open = true, empty = false;

		for (unsigned i = 0; open && !empty && i < STOP_READS; i++) {
			open = read_some(stream, &empty);
		}
		if (open) {
			end_of_lines(stream, /* good= */ false);
			close_stream(stream);
		}
	}
}
