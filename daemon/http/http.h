#pragma once
/*
 * http: what is counted, to read over HTTP, on a thread of its own.
 *
 * evhttp takes requests apart. What a peer can make us hold is bounded: connections (http_max_connections; beyond them who comes waits to be
 * accepted), headers and bodies, time (http_timeout), pages under way (HTTP_MAX_SCRAPES) and the bytes of other replies
 * (HTTP_MAX_PENDING); beyond the last two a client is told 503. No lock is taken that an add waits for, and no work of a turn takes long.
 *
 * Thread safety: as said for each function; a thread other than the main one is the HTTP thread.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HTTP_MAX_HEADERS 16384 /* bytes of a request's line and headers */
#define HTTP_MAX_BODY 65536    /* bytes that come with a request, and are not looked at */
#define HTTP_MAX_SCRAPES 32u
#define HTTP_MAX_PENDING ((size_t)32 << 20)

struct daemon;
struct http;

/* What it has done; read by any thread. */
struct http_stats {
	_Atomic(uint64_t) requests;
	_Atomic(uint64_t) refused; /* answered with 503 */
	_Atomic(uint64_t) aborted; /* pages of which the client did not take all */
	_Atomic(uint64_t) pauses;  /* of accepting, for there being http_max_connections */
};

/* ---- the main thread ---- */

/* For the daemon's sockets for HTTP, which it leaves open. NULL in *ret_http: there are none. 0 or a negative errno. */
int http_new(struct daemon *daemon, struct http **ret_http);
/* The thread has ended, or never began. Takes NULL, returns NULL. */
struct http *http_free(struct http *http);
int http_start(struct http *http);
/* Accept no more, answer what was asked, for `timeout_ns` at most; returns when the thread has ended. Takes NULL. */
void http_stop(struct http *http, int64_t timeout_ns);

/* Does its loop still turn? As worker_ask and worker_answered. */
void http_ask(struct http *http, uint64_t number);
uint64_t http_answered(const struct http *http);

/* ---- any thread ---- */

const struct http_stats *http_stats(const struct http *http);
