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
#include "proto/text.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <syslog.h>

#define LOG_PEER_BURST 10u
#define LOG_PEER_INTERVAL_NS INT64_C(10000000000)

/* Events that programs may wait for in the journal: MESSAGE_ID=. rationd(8) lists them. */
#define LOG_ID_STARTED "0d3384a28db3472dbd961cece18bb600"	/* it serves */
#define LOG_ID_STOPPED "06adeae63a2b4513b523c441a7901fa9"	/* it has ended in good order */
#define LOG_ID_RELOADED "a8965b771c374dc191084f6836849418"	/* the configuration was taken */
#define LOG_ID_RELOAD_FAILED "c74b9378897c4692877248e5b5ee2d2c" /* it was not */
#define LOG_ID_DENIED "20e1f1d000514615b9fdac7235e8d116" /* a peer may not do what it asked for */
#define LOG_ID_LIMITS \
	"ee3b8f4adb5a476b9513c1b31c70050d" /* they were set, or removed, at run time */
#define LOG_ID_METRIC "06854669e72f4afb9720a215ae137c3b" /* a metric was declared at run time */
#define LOG_ID_SET "896daf37c70e4c9695d326f7b1729465"	 /* own values were imported or reset */
#define LOG_ID_HANGS "f67762da5a704135ab27e3ff0e167fe4"	 /* a thread does not go round */
#define LOG_ID_NOT_DURABLE "5b1c9fd8a0f94c0a9c3f6f0b2f3b7a41" /* the state file can't be written */
#define LOG_ID_DURABLE_AGAIN "c2f0a1be7d6e4d51a6cf0b92d9e3c817" /* it can be again */
#define LOG_ID_STATE_REFUSED "9e4de3b84b5a4e1e8d0f7a6b5c2d1f30" /* it was not taken at the start */
#define LOG_ID_RECOVERED "7a3d52c1e9b84f06b1d84c7e6a905f2b" /* it was moved aside, for --recover */

/* What peers can provoke; each kind has a limiter of its own, so that one can't hide another. */
enum log_kind {
	LOG_KIND_PROTOCOL, /* broken frames and messages, requests out of order */
	LOG_KIND_TIMEOUT,  /* hello, half-open frames, readers that do not read */
	LOG_KIND_REFUSED,  /* connections and sessions over a limit */
	LOG_KIND_CONTROL,  /* what a client may order: metrics, limits, reloads */
	LOG_KIND_DENIED,   /* who may not */
	LOG_KIND_ACCEPT,   /* accepting failed */
	LOG_KIND_STATSD,   /* lines that can't be counted */
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

/* What an event is about, for the journal's fields. */
struct log_about {
	const char *id;	  /* LOG_ID_*, or NULL */
	const char *peer; /* RATIOND_PEER, or NULL */
	struct text path; /* RATIOND_PATH; empty: none */
};

/* As log_line; or, if `about` has a peer, as log_peer. */
void log_event(struct log *log, enum log_kind kind, int64_t now_ns, int priority,
	       const struct log_about *about, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

/* Tell what was suppressed and is over. Call it every second or so; `all`: also what is not over yet (at the end). */
void log_suppressed(struct log *log, int64_t now_ns, bool all);
