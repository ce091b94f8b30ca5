#pragma once
/*
 * log: where the daemon says what happened.
 *
 * Into the journal when standard error is connected to it, else to standard error, one line each. A line that a peer can
 * provoke names its kind: so many of a kind pass in an interval, the others are counted and told as "suppressed N".
 *
 * Thread safety: any thread, any time between log_init and log_deinit.
 */
#include "daemon/limiter.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <syslog.h>

#define LOG_PEER_BURST 10u
#define LOG_PEER_INTERVAL_NS INT64_C(10000000000)

/* What peers can provoke; each kind has a limiter of its own, so that one can't hide another. */
enum log_kind {
	LOG_KIND_PROTOCOL, /* broken frames and messages, requests out of order */
	LOG_KIND_TIMEOUT,  /* hello, half-open frames, readers that do not read */
	LOG_KIND_REFUSED,  /* connections and sessions over a limit */
	LOG_KIND_CONTROL,  /* what a client may order: metrics, limits, reloads */
	LOG_KIND_DENIED,   /* who may not */
	LOG_KIND_ACCEPT,   /* accepting failed */
	LOG_KIND_MAX,
};

struct log {
	pthread_mutex_t lock; /* guards the limiters */
	bool journal;
	int max_priority; /* LOG_ERR .. LOG_DEBUG; lines above it are dropped */
	struct limiter limiters[LOG_KIND_MAX];
};

#define LOG_INIT                                                            \
	{                                                                   \
		.lock = PTHREAD_MUTEX_INITIALIZER, .max_priority = LOG_INFO \
	}

/* Finds out where to. */
void log_init(struct log *log);
void log_deinit(struct log *log);

void log_line(struct log *log, int priority, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* `peer` says who provoked it ("unix pid 12 uid 0"). now_ns: monotonic. */
void log_peer(struct log *log, enum log_kind kind, int64_t now_ns, int priority, const char *peer,
	      const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Tell what was suppressed and is over. Call it every second or so; `all`: also what is not over yet (at the end). */
void log_suppressed(struct log *log, int64_t now_ns, bool all);
