#pragma once
/*
 * thread: what the files of this room share: the thread's state, and replies.
 *
 * Thread safety: the HTTP thread alone, but for what http.h says.
 */
#include "daemon/http/http.h"

#include <jansson.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/queue.h>

struct evbuffer;
struct event;
struct event_base;
struct evconnlistener;
struct evhttp;
struct evhttp_request;
struct scrape;

#define HTTP_MAX_LISTENERS 64u

struct http {
	/* Fixed before the thread starts. */
	struct daemon *daemon;
	struct event_base *base;
	struct evhttp *evhttp;
	struct evconnlistener *listeners[HTTP_MAX_LISTENERS];
	size_t n_listeners;
	int max_connections;
	int own_events; /* of the base, that are no connection's */
	pthread_t thread;
	bool started; /* the main thread's */
	int wake_fd;
	struct event *wake, *pause, *tick;

	/* The thread's. */
	bool paused; /* accepts nobody, until there is room */
	bool stopping;
	int64_t stop_at_ns; /* monotonic: then it ends, whatever is under way */
	TAILQ_HEAD(, scrape) scrapes;
	unsigned n_scrapes;
	size_t pending; /* bytes of replies that are not sent yet */

	struct http_stats stats;
	_Atomic(uint64_t) asked, answered;
	_Atomic(int64_t) stop_ns; /* 0: go on; else how long a stop may take, and 1 */
};

/* One more, of a figure that only this thread writes. */
static inline void http_count(_Atomic(uint64_t) *word)
{
	atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* ---- replies: each ends the request ---- */

/* Takes over `text`, which is freed when it is sent. For HEAD its length alone is. */
void reply_take(struct http *http, struct evhttp_request *request, int code, const char *type,
		char *text, size_t len);
void reply_text(struct http *http, struct evhttp_request *request, int code, const char *format,
		...) __attribute__((format(printf, 4, 5)));
/* Gives up the reference to `object`; NULL: there was no memory for it. */
void reply_json(struct http *http, struct evhttp_request *request, int code, json_t *object);
/* {"error": "..."} */
void reply_error(struct http *http, struct evhttp_request *request, int code, const char *format,
		 ...) __attribute__((format(printf, 4, 5)));

bool reply_is_head(struct evhttp_request *request);

/* ---- what is served ---- */

void route(struct evhttp_request *request, void *arg);
void scrape_serve(struct http *http, struct evhttp_request *request);
void api_counters(struct http *http, struct evhttp_request *request);
void api_tree(struct http *http, struct evhttp_request *request);
void api_explain(struct http *http, struct evhttp_request *request);
