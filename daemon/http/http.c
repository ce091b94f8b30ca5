#include "daemon/http/http.h"

#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/http/thread.h"
#include "lib/base/cleanup.h"
#include "lib/rcu/grace.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define HTTP_PAUSE_NS INT64_C(50000000) /* before it is looked whether there is room again */
#define HTTP_SEND_BUFFER \
	(128 << 10) /* bytes that the kernel keeps for a connection; it takes twice that */
#define HTTP_TICK_NS INT64_C(10000000) /* while stopping: whether all is answered */

DEFINE_CLEANUP(struct http *, http_free);

/* ---- connections ---- */

/*
 * evhttp does not say how many connections it has; but each waits to be read from, with a timeout, which counts as two events; while it is
 * written to it has two more. So this is never less than their number. `n_ours`: events that are no connection's.
 */
static int count_connections(const struct http *http, int n_ours)
{
	return (event_base_get_num_events(http->base, EVENT_BASE_COUNT_ADDED) - n_ours) / 2;
}

static void pause_accepting(struct http *http)
{
	const struct timeval wait = clock_timeval(HTTP_PAUSE_NS);

	if (http->paused) {
		return;
	}
	http->paused = true;
	http_count(&http->stats.pauses);
	for (size_t i = 0; i < http->n_listeners; i++) {
		(void)evconnlistener_disable(http->listeners[i]);
	}
	(void)event_add(http->pause, &wait);
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	struct http *http = arg;
	const struct timeval wait = clock_timeval(HTTP_PAUSE_NS);

	(void)fd;
	(void)what;
	if (http->stopping) {
		return;
	}
	/* The listeners have no events now. */
	if (count_connections(http, http->own_events - (int)http->n_listeners) >=
	    http->max_connections) {
		(void)event_add(http->pause, &wait);
		return;
	}
	http->paused = false;
	for (size_t i = 0; i < http->n_listeners; i++) {
		(void)evconnlistener_enable(http->listeners[i]);
	}
}

/* The thread's own. A listener has one argument for all its callbacks, and evhttp has taken that. */
static _Thread_local struct http *of_this_thread;

/* There are no more file descriptors, most likely: the socket stays readable, so without a pause we would spin. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	struct http *http = of_this_thread;

	(void)listener;
	(void)arg;
	log_peer(&http->daemon->log, LOG_KIND_ACCEPT, clock_monotonic_ns(), LOG_ERR, "http",
		 "can't accept a connection: %s", strerror(errno));
	pause_accepting(http);
}

/* For each connection accepted. */
static struct bufferevent *new_connection(struct event_base *base, void *arg)
{
	struct http *http = arg;
	struct bufferevent *connection = bufferevent_socket_new(base, -1, 0);

	if (connection != NULL) {
		/*
		 * While it writes a reply evhttp goes on reading, to learn of a close, and keeps all that comes: without an end,
		 * if there is none here. What is more than any request may have waits in the socket.
		 */
		bufferevent_setwatermark(connection, EV_READ, 0, HTTP_MAX_HEADERS + HTTP_MAX_BODY);
	}
	if (count_connections(http, http->own_events) + 1 >= http->max_connections) {
		pause_accepting(http);
	}
	return connection;
}

/* ---- stopping, and other words from the main thread ---- */

static bool is_idle(const struct http *http)
{
	return http->n_scrapes == 0 && http->pending == 0;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct http *http = arg;

	(void)fd;
	(void)what;
	if (is_idle(http) || clock_monotonic_ns() >= http->stop_at_ns) {
		(void)event_base_loopbreak(http->base);
	}
}

static void begin_stop(struct http *http, int64_t timeout_ns)
{
	const struct timeval tick = clock_timeval(HTTP_TICK_NS);

	http->stopping = true;
	http->stop_at_ns = clock_monotonic_ns() + timeout_ns;
	for (size_t i = 0; i < http->n_listeners; i++) {
		(void)evconnlistener_disable(http->listeners[i]);
	}
	(void)event_add(http->tick, &tick);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct http *http = arg;
	int64_t stop_ns = atomic_load_explicit(&http->stop_ns, memory_order_relaxed);
	uint64_t count;

	(void)what;
	(void)!read(fd, &count, sizeof(count));
	/* Relaxed: nothing else is concluded from it than that the loop came by. */
	atomic_store_explicit(&http->answered,
			      atomic_load_explicit(&http->asked, memory_order_relaxed),
			      memory_order_relaxed);
	if (stop_ns > 0 && !http->stopping) {
		begin_stop(http, stop_ns - 1);
	}
}

static void wake(struct http *http)
{
	const uint64_t one = 1;

	(void)!write(http->wake_fd, &one, sizeof(one));
}

void http_ask(struct http *http, uint64_t number)
{
	atomic_store_explicit(&http->asked, number, memory_order_relaxed);
	wake(http);
}

uint64_t http_answered(const struct http *http)
{
	return atomic_load_explicit((_Atomic(uint64_t) *)(uintptr_t)&http->answered,
				    memory_order_relaxed);
}

const struct http_stats *http_stats(const struct http *http)
{
	return &http->stats;
}

/* ---- making and freeing ---- */

static int listen_on(struct http *http, int fd)
{
	const int send_buffer = HTTP_SEND_BUFFER;
	struct evconnlistener *listener;

	/* Connections inherit it: else the kernel would keep megabytes of a page for each reader that does not read. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(send_buffer));
	if (http->n_listeners == HTTP_MAX_LISTENERS) {
		return -E2BIG;
	}
	/* The socket listens already. */
	listener = evconnlistener_new(http->base, NULL, NULL, LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (listener == NULL || evhttp_bind_listener(http->evhttp, listener) == NULL) {
		return -ENOMEM;
	}
	evconnlistener_set_error_cb(listener, on_accept_error);
	http->listeners[http->n_listeners++] = listener;
	return 0;
}

static int make_base(struct http *http)
{
	struct event_config *config = event_config_new();

	if (config == NULL) {
		return -ENOMEM;
	}
	(void)event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	http->base = event_base_new_with_config(config);
	event_config_free(config);
	return http->base != NULL ? 0 : -ENOMEM;
}

static int make_evhttp(struct http *http)
{
	const struct timeval timeout = clock_timeval(http->daemon->config->http_timeout_ns);
	const struct listeners *listeners = &http->daemon->listeners;
	int r = 0;

	http->evhttp = evhttp_new(http->base);
	if (http->evhttp == NULL) {
		return -ENOMEM;
	}
	/* All methods: those that are not for reading get an answer that says which are. */
	evhttp_set_allowed_methods(
		http->evhttp, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
				      EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
				      EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH);
	evhttp_set_max_headers_size(http->evhttp, HTTP_MAX_HEADERS);
	evhttp_set_max_body_size(http->evhttp, HTTP_MAX_BODY);
	evhttp_set_timeout_tv(http->evhttp, &timeout);
	evhttp_set_bevcb(http->evhttp, new_connection, http);
	evhttp_set_gencb(http->evhttp, route, http);
	for (size_t i = 0; r == 0 && i < listeners->n; i++) {
		if (listeners->all[i].scheme == ADDRESS_HTTP) {
			r = listen_on(http, listeners->all[i].fd);
		}
	}
	return r;
}

static int make_events(struct http *http)
{
	http->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (http->wake_fd < 0) {
		return -errno;
	}
	http->wake = event_new(http->base, http->wake_fd, EV_READ | EV_PERSIST, on_wake, http);
	http->pause = evtimer_new(http->base, on_pause_over, http);
	http->tick = event_new(http->base, -1, EV_PERSIST, on_tick, http);
	if (http->wake == NULL || http->pause == NULL || http->tick == NULL ||
	    event_add(http->wake, NULL) != 0) {
		return -ENOMEM;
	}
	return 0;
}

int http_new(struct daemon *daemon, struct http **ret_http)
{
	_cleanup_(http_freep) struct http *http = NULL;
	int r;

	if (!listeners_have(&daemon->listeners, ADDRESS_HTTP)) {
		*ret_http = NULL;
		return 0;
	}
	http = calloc(1, sizeof(*http));
	if (http == NULL) {
		return -ENOMEM;
	}
	http->daemon = daemon;
	http->wake_fd = -1;
	http->max_connections = (int)daemon->config->http_max_connections;
	TAILQ_INIT(&http->scrapes);
	r = make_base(http);
	if (r == 0) {
		r = make_events(http);
	}
	if (r == 0) {
		r = make_evhttp(http);
	}
	if (r != 0) {
		return r;
	}
	http->own_events = event_base_get_num_events(http->base, EVENT_BASE_COUNT_ADDED);
	*ret_http = http;
	http = NULL;
	return 0;
}

static void free_event(struct event *event)
{
	if (event != NULL) {
		event_free(event);
	}
}

struct http *http_free(struct http *http)
{
	if (http == NULL) {
		return NULL;
	}
	/* Closes all connections, which ends what is under way on them. */
	if (http->evhttp != NULL) {
		evhttp_free(http->evhttp);
	}
	free_event(http->wake);
	free_event(http->pause);
	free_event(http->tick);
	if (http->base != NULL) {
		event_base_free(http->base);
	}
	if (http->wake_fd >= 0) {
		(void)close(http->wake_fd);
	}
	free(http);
	return NULL;
}

/* ---- the thread ---- */

static void *run(void *arg)
{
	struct http *http = arg;

	(void)pthread_setname_np(pthread_self(), "http");
	of_this_thread = http;
	grace_register();
	(void)event_base_loop(http->base, EVLOOP_NO_EXIT_ON_EMPTY);
	grace_unregister();
	return NULL;
}

int http_start(struct http *http)
{
	int r = pthread_create(&http->thread, NULL, run, http);

	http->started = r == 0;
	return -r;
}

void http_stop(struct http *http, int64_t timeout_ns)
{
	if (http == NULL || !http->started) {
		return;
	}
	atomic_store_explicit(&http->stop_ns, timeout_ns + 1, memory_order_relaxed);
	wake(http);
	(void)pthread_join(http->thread, NULL);
	http->started = false;
}
