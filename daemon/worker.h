#pragma once
/*
 * worker: a thread that serves connections and owns sessions.
 *
 * One thread from socket to slot: a worker reads, decodes, counts and answers without a lock. Others reach it only by letters:
 * a queue under a mutex, and an eventfd that wakes its loop.
 */
#include "daemon/clock.h"
#include "daemon/connection.h"
#include "daemon/keep.h"
#include "daemon/kinds.h"
#include "daemon/lease.h"
#include "daemon/settings.h"
#include "daemon/stats.h"
#include "daemon/statsd/statsd-stats.h"
#include "lib/quota/window.h"
#include "proto/arena.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define WORKER_READ \
	((size_t)256 << 10) /* what one round reads at most, beside the rest of a frame begun */

struct daemon;
struct debt;
struct engine_worker;
struct event_base;
struct letter;
struct reload_job;
struct serve_job;
struct session;
struct statsd;
struct statsd_stream;

struct worker {
	/* Fixed before the thread starts. */
	struct daemon *daemon;
	unsigned index;
	pthread_t thread;
	bool started; /* the main thread's */

	/* The thread's own. */
	struct event_base *base;
	struct engine_worker *engine;
	struct settings settings;
	struct arena in, out; /* for the request at hand, and for its reply */
	uint8_t *scratch;     /* WORKER_READ bytes */
	struct output_stage stage;
	struct connection *current; /* whose round it is */
	LIST_HEAD(, connection) connections;
	struct statsd *statsd; /* NULL: the daemon does not listen for any */
	TAILQ_HEAD(, connection)
	deferred;	       /* what they have sent waits for another turn of the loop */
	struct serve_job *job; /* the one long request that is under way; NULL: none */
	size_t turn_left; /* paths that may be made or set in this turn still; what begins one sets it to SERVE_TURN */
	bool stopping;
	struct event stop_timer;
	struct quota_time time; /* see worker_time */
	unsigned time_left;
	struct kinds kinds;
	STAILQ_HEAD(, debt) debts; /* see daemon/giveback.h */
	struct keep keep;
	struct lease_clock lease_clock;
	struct event lease_timer;
	int64_t lease_timer_at; /* monotonic; 0: not set */

	/* The inbox. `lock` guards the queue. */
	pthread_mutex_t lock;
	struct letter *first, **last;
	int wake_fd;
	struct event wake;

	/* Written by the thread, read by any. */
	struct stats stats;
	struct statsd_stats statsd_stats;
	struct statsd_socket_list statsd_sockets; /* fixed before the thread starts */
	_Atomic(uint32_t) n_statsd_streams;	  /* as n_connections */
	_Atomic(uint64_t) asked, answered;	  /* worker_ask */
	_Atomic(uint32_t)
		n_connections; /* counted from the moment one is handed over; by whoever hands or closes */
};

/* Everything but the thread and the place in the engine. 0 or a negative errno; a half-built one is good for worker_close. */
int worker_open(struct worker *worker, struct daemon *daemon, unsigned index,
		const struct settings *settings);
/* Its place in the engine, once what an earlier daemon has kept is there. */
int worker_enter(struct worker *worker);
int worker_start(struct worker *worker);
/* The thread has ended or never began. Connections still in the inbox are closed. */
void worker_close(struct worker *worker);

/* ---- from any thread ---- */

/* Hand over a connection; it is closed if there is no memory for the letter. */
void worker_hand(struct worker *worker, struct connection *connection);
/* The same for a connection that brings StatsD lines. */
void worker_hand_statsd(struct worker *worker, struct statsd_stream *stream);
/* 0 or -ENOMEM. */
int worker_send_settings(struct worker *worker, const struct settings *settings);
/* A letter that says that a reload was done, for worker_send_reloaded; NULL: no memory. free() if it is never sent. */
struct letter *worker_letter_reloaded(struct reload_job *job);
/* Send the job's letter, and with it the job, back to its worker. */
void worker_send_reloaded(struct reload_job *job);
/* Answer what the sockets hold, within the time; then the thread ends, all it holds back folded. */
void worker_stop(struct worker *worker, int64_t timeout_ns);
/* Somebody of its is to try for room: see daemon/waiting.h. */
void worker_wake(struct worker *worker);
/*
 * Does its loop still turn? worker_answered gives the number last asked once it has come to the inbox since. By one thread.
 */
void worker_ask(struct worker *worker, uint64_t number);
static inline uint64_t worker_answered(const struct worker *worker)
{
	/* Relaxed, as is the question: nothing else is concluded from it than that the loop came by. */
	return atomic_load_explicit((_Atomic(uint64_t) *)(uintptr_t)&worker->answered,
				    memory_order_relaxed);
}
/* Wait for the thread. */
void worker_join(struct worker *worker);

/* ---- from its own thread ---- */

/*
 * What time it is for quotas. The clocks are read at most once for every WORKER_TIME_USES requests of a round; what begins a round
 * sets time_left to 0.
 */
#define WORKER_TIME_USES 32u
static inline const struct quota_time *worker_time(struct worker *worker)
{
	if (worker->time_left == 0) {
		worker->time_left = WORKER_TIME_USES;
		worker->time = (struct quota_time){ .wall_ns = clock_wall_ns(),
						    .mono_ns = clock_monotonic_ns() };
	}
	worker->time_left--;
	return &worker->time;
}

/* A connection was closed. */
void worker_forget(struct worker *worker);
/* The session has no connection any more: it ends after its lifetime, or now. */
void worker_release_session(struct worker *worker, struct session *session);
/* It ends now, and with it all that it holds. Frees. No connection has it any more. */
void worker_end_session(struct worker *worker, struct session *session);
/* It has one again. */
void worker_resume_session(struct worker *worker, struct session *session,
			   struct connection *connection);
