#pragma once
/*
 * daemon: the owner of everything. Made by main, run once, freed in reverse.
 *
 * The main thread accepts, takes signals, reloads, flushes and expires by timers; workers do the rest.
 */
#include "daemon/config.h"
#include "daemon/directory.h"
#include "daemon/http/http.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/reload-desk.h"
#include "daemon/store/checkpoint.h"
#include "daemon/waiting.h"
#include "daemon/watchdog.h"
#include "daemon/worker.h"
#include "lib/engine/engine.h"

#include <stdbool.h>
#include <stdint.h>

#ifndef RATION_VERSION
#define RATION_VERSION "0.1.0"
#endif

#define DAEMON_INCARNATION_BYTES 16u

enum daemon_state {
	DAEMON_STARTING,
	DAEMON_RUNNING,
	DAEMON_RELOADING,
	DAEMON_STOPPING,
};

struct daemon {
	/* Fixed before the workers start; read by all. */
	struct log log;
	struct engine *engine;
	struct directory directory;
	struct worker *workers;
	unsigned n_workers;
	struct http *http; /* NULL: no socket for it */
	uint8_t incarnation[DAEMON_INCARNATION_BYTES];
	int64_t started_ns; /* monotonic */
	struct waiting waiting;
	struct lease_book leases;
	pthread_mutex_t detached_lock;
	struct held detached; /* by detached charges; guarded by the lock before it */

	/*
	 * Guards changes of the rules, from files and at run time, and lists of them; also what the configuration below says of quotas, for
	 * workers.
	 */
	pthread_mutex_t rules_lock;
	uint64_t rules_version; /* one more with every change */
	/*
	 * Guards the pointer to the configuration, for who looks a metric up in it while counters can't go away: nobody waits for anything
	 * with it held. It changes with both locks held.
	 */
	pthread_mutex_t config_lock;

	struct statsd_levels *_Atomic
		statsd_levels; /* what workers' intakes go by; see daemon/statsd/levels.h */

	struct checkpoint checkpoint;
	_Atomic(uint64_t)
		declared; /* one more with every change of metrics and rules; see daemon_declared */

	struct reload_desk reload_desk;

	_Atomic(int) state;		       /* enum daemon_state; for Status alone, so relaxed */
	_Atomic(uint64_t) connections_refused; /* counted by the main thread */
	_Atomic(uint64_t) statsd_connections_refused;
	_Atomic(uint64_t) reloads, reloads_failed;

	/* The main thread's. */
	const struct config_source *source;
	struct config *config;
	struct loop loop;
	struct listener_uses listener_uses;
	struct listeners listeners;
	unsigned next_reader; /* the worker that gets the next socket for datagrams */
	struct watchdog watchdog;
	struct reload_told *told; /* by the reload under way, to whoever asked; NULL: to nobody */
};

/*
 * Everything but the threads: engine, metrics, sockets. Takes over the configuration, also on failure; `source` is kept for reloads.
 * Errors are logged. Needs lib/rcu registration of the calling thread, in which SIGTERM, SIGINT and SIGHUP are blocked from here on.
 */
int daemon_new(struct config *config, const struct config_source *source,
	       struct daemon **ret_daemon);
/* Takes NULL, returns NULL. */
struct daemon *daemon_free(struct daemon *daemon);

/* Serve until a signal says stop; returns when everything acknowledged is in the totals. 0 or a negative errno. */
int daemon_run(struct daemon *daemon);

/* Both clocks, now. */
struct quota_time daemon_time(void);

/* Metrics or rules have changed: from any thread, after the change. */
void daemon_declared(struct daemon *daemon);

/* ---- for reload.c ---- */

/* Let the configuration's limits be in force. */
void daemon_set_limits(struct daemon *daemon);
/* One more; by the main thread, read by Status. */
void daemon_count(_Atomic(uint64_t) *word);
