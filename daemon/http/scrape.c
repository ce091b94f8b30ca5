/*
 * /metrics: a page, written as fast as its reader takes it.
 *
 * Each turn writes about SCRAPE_PIECE bytes and waits until they are sent, so a page takes the same memory whatever its length and its
 * reader. One that is not taken whole within http_timeout is given up, with its connection: evhttp reads while it writes, and nothing comes.
 */
#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/http/accept.h"
#include "daemon/http/self.h"
#include "daemon/http/thread.h"
#include "lib/base/cleanup.h"
#include "lib/expose/expose.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#define SCRAPE_PIECE ((size_t)64 << 10)
#define SCRAPE_STEP 512u /* counters before it is looked how much there is */
#define SCRAPE_TURN \
	8192u /* counters after which others have their turn, even if there is little to send */
#define SCRAPE_DEFLATE ((size_t)16 << 10)

#define TYPE_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct scrape {
	TAILQ_ENTRY(scrape) link;
	struct http *http;
	struct evhttp_request *request;
	struct evbuffer *out; /* not handed to the connection yet */
	struct event *again;  /* another turn */
	struct expose expose;
	struct sheet sheet;
	bool gzip, failed;
	bool ended; /* all of it is with the connection, which may not have sent it yet */
	z_stream stream;
};

static struct scrape *scrape_free(struct scrape *scrape)
{
	if (scrape == NULL) {
		return NULL;
	}
	if (scrape->gzip) {
		(void)deflateEnd(&scrape->stream);
	}
	if (scrape->out != NULL) {
		evbuffer_free(scrape->out);
	}
	if (scrape->again != NULL) {
		event_free(scrape->again);
	}
	free(scrape);
	return NULL;
}

DEFINE_CLEANUP(struct scrape *, scrape_free);

static void forget(struct scrape *scrape)
{
	TAILQ_REMOVE(&scrape->http->scrapes, scrape, link);
	scrape->http->n_scrapes--;
	(void)scrape_free(scrape);
}

/* ---- where the page goes ---- */

static void compress_some(struct scrape *scrape, const char *bytes, size_t len, int flush)
{
	scrape->stream.next_in = (Bytef *)(uintptr_t)bytes;
	scrape->stream.avail_in = (uInt)len;
	do {
		struct evbuffer_iovec space;

		if (evbuffer_reserve_space(scrape->out, (ev_ssize_t)SCRAPE_DEFLATE, &space, 1) !=
		    1) {
			scrape->failed = true;
			return;
		}
		space.iov_len = space.iov_len < SCRAPE_DEFLATE ? space.iov_len : SCRAPE_DEFLATE;
		scrape->stream.next_out = space.iov_base;
		scrape->stream.avail_out = (uInt)space.iov_len;
		(void)deflate(&scrape->stream, flush);
		space.iov_len -= scrape->stream.avail_out;
		(void)evbuffer_commit_space(scrape->out, &space, 1);
	} while (scrape->stream.avail_out == 0);
}

static void take(void *ctx, const char *bytes, size_t len)
{
	struct scrape *scrape = ctx;

	if (scrape->gzip) {
		compress_some(scrape, bytes, len, Z_NO_FLUSH);
	} else if (evbuffer_add(scrape->out, bytes, len) != 0) {
		scrape->failed = true;
	}
}

/* ---- turns ---- */

/* True: the page is at its end. */
static bool write_some(struct scrape *scrape)
{
	size_t left = SCRAPE_TURN;

	while (left > 0 && !scrape->failed && evbuffer_get_length(scrape->out) < SCRAPE_PIECE) {
		if (!expose_some(&scrape->expose, SCRAPE_STEP)) {
			sheet_end(&scrape->sheet);
			if (scrape->gzip) {
				compress_some(scrape, NULL, 0, Z_FINISH);
			}
			return true;
		}
		left -= SCRAPE_STEP;
	}
	return false;
}

static void on_written(struct evhttp_connection *connection, void *arg);
static void on_sent(struct evhttp_request *request, void *arg);

static void turn(struct scrape *scrape)
{
	struct evhttp_request *request = scrape->request;
	bool end = write_some(scrape);

	if (scrape->failed) {
		/* A page that is cut short must not look whole: the connection is closed in its midst. */
		evhttp_connection_free(evhttp_request_get_connection(request));
		return;
	}
	if (!end && evbuffer_get_length(scrape->out) == 0) {
		event_active(scrape->again, EV_TIMEOUT, 0);
		return;
	}
	evhttp_send_reply_chunk_with_cb(request, scrape->out, on_written, scrape);
	if (end) {
		scrape->ended = true;
		evhttp_request_set_on_complete_cb(request, on_sent, scrape);
		evhttp_send_reply_end(request);
	}
}

/* All of it is with the kernel. */
static void on_sent(struct evhttp_request *request, void *arg)
{
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
	forget(arg);
}

static void on_written(struct evhttp_connection *connection, void *arg)
{
	(void)connection;
	turn(arg);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	turn(arg);
}

/*
 * The connection is going, and what is queued on it is freed with it. If the client went before the end, evhttp has taken the request off it
 * and left it to us; then this is the way to free it.
 */
static void on_closed(struct evhttp_connection *connection, void *arg)
{
	struct scrape *scrape = arg;
	struct evhttp_request *request = scrape->request;
	bool ended = scrape->ended;

	(void)connection;
	http_count(&scrape->http->stats.aborted);
	forget(scrape);
	if (!ended && evhttp_request_get_connection(request) == NULL) {
		evhttp_send_reply_end(request);
	}
}

/* ---- beginning ---- */

static void copy_text(char *to, const char *from)
{
	size_t len = strlen(from);

	len = len < EXPOSE_MAX_TEXT ? len : EXPOSE_MAX_TEXT - 1;
	memcpy(to, from, len);
	to[len] = '\0';
}

/* A reload may put another configuration in place at any time. */
static void look_up(void *ctx, const char *name, size_t len, struct expose_metric *ret_metric)
{
	const struct scrape *scrape = ctx;
	struct daemon *daemon = scrape->http->daemon;
	char text[CONFIG_MAX_METRIC_NAME + 1];
	const struct config_metric *metric;

	memcpy(text, name, len);
	text[len] = '\0';
	ret_metric->levels[0] = ret_metric->help[0] = ret_metric->unit[0] = '\0';
	(void)pthread_mutex_lock(&daemon->config_lock);
	metric = config_metric_find(daemon->config, text);
	if (metric != NULL) {
		copy_text(ret_metric->levels, metric->levels);
		copy_text(ret_metric->help, metric->help);
		copy_text(ret_metric->unit, metric->unit);
	}
	(void)pthread_mutex_unlock(&daemon->config_lock);
}

static const char *find_header(struct evhttp_request *request, const char *name)
{
	return evhttp_find_header(evhttp_request_get_input_headers(request), name);
}

/*
 * A page has no length in front of it. HTTP/1.0 knows no chunks, so there the connection's end is the page's; evhttp would keep it where that was
 * asked for, and say that the length is 0.
 */
static void let_it_close(struct evhttp_request *request)
{
	const char *wish = find_header(request, "Connection");

	/* As evhttp looks at it. HTTP/1.1 keeps a connection without a word. */
	if (wish != NULL && strncasecmp(wish, "keep-alive", strlen("keep-alive")) == 0) {
		(void)evhttp_remove_header(evhttp_request_get_input_headers(request), "Connection");
	}
}

static void put_headers(struct evhttp_request *request, enum sheet_format format, bool gzip)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);

	(void)evhttp_add_header(headers, "Content-Type",
				format == SHEET_OPENMETRICS ? TYPE_OPENMETRICS : TYPE_TEXT);
	(void)evhttp_add_header(headers, "Vary", "Accept, Accept-Encoding");
	(void)evhttp_add_header(headers, "Cache-Control", "no-store");
	(void)evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	if (gzip) {
		(void)evhttp_add_header(headers, "Content-Encoding", "gzip");
	}
}

/* NULL: no memory. */
static struct scrape *scrape_new(struct http *http, struct evhttp_request *request,
				 enum sheet_format format, bool gzip)
{
	_cleanup_(scrape_freep) struct scrape *scrape = calloc(1, sizeof(*scrape));
	struct scrape *made;

	if (scrape == NULL) {
		return NULL;
	}
	scrape->http = http;
	scrape->request = request;
	scrape->out = evbuffer_new();
	scrape->again = evtimer_new(http->base, on_again, scrape);
	if (scrape->out == NULL || scrape->again == NULL) {
		return NULL;
	}
	/* 15 bits of window, and 16 for gzip's frame. */
	if (gzip && deflateInit2(&scrape->stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8,
				 Z_DEFAULT_STRATEGY) != Z_OK) {
		return NULL;
	}
	scrape->gzip = gzip;
	sheet_init(&scrape->sheet, format, take, scrape);
	expose_init(&scrape->expose, http->daemon->engine, &scrape->sheet, daemon_time(), look_up,
		    scrape);
	made = scrape;
	scrape = NULL;
	return made;
}

void scrape_serve(struct http *http, struct evhttp_request *request)
{
	enum sheet_format format = accept_format(find_header(request, "Accept"));
	bool gzip = accept_gzip(find_header(request, "Accept-Encoding"));
	struct scrape *scrape;

	if (reply_is_head(request)) {
		put_headers(request, format, gzip);
		evhttp_send_reply(request, HTTP_OK, NULL, NULL);
		return;
	}
	scrape =
		http->n_scrapes < HTTP_MAX_SCRAPES ? scrape_new(http, request, format, gzip) : NULL;
	if (scrape == NULL) {
		http_count(&http->stats.refused);
		reply_error(http, request, HTTP_SERVUNAVAIL,
			    "there are %u pages under way already, or no memory", http->n_scrapes);
		return;
	}
	TAILQ_INSERT_TAIL(&http->scrapes, scrape, link);
	http->n_scrapes++;
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_closed, scrape);
	/* So a page has all that was added before it was asked for. */
	engine_flush(http->daemon->engine, clock_wall_ns());
	let_it_close(request);
	put_headers(request, format, gzip);
	evhttp_send_reply_start(request, HTTP_OK, NULL);
	self_put(&scrape->sheet, http->daemon);
	turn(scrape);
}
