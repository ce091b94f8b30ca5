#include "daemon/daemon.h"

#include "daemon/arrivals.h"
#include "daemon/clock.h"
#include "daemon/final.h"
#include "daemon/notify.h"
#include "daemon/reload.h"
#include "daemon/statsd/statsd.h"
#include "daemon/store/restore.h"
#include "lib/base/cleanup.h"
#include "lib/engine/quota.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#define DAEMON_SPARE_FILES 64u /* for all but connections and listeners */

DEFINE_CLEANUP(struct daemon *, daemon_free);

struct quota_time daemon_time(void)
{
	return (struct quota_time){ .wall_ns = clock_wall_ns(), .mono_ns = clock_monotonic_ns() };
}

void daemon_declared(struct daemon *daemon)
{
	/* Pairs with the load in the checkpoint's take_declared: who sees this sees the change. */
	atomic_fetch_add_explicit(&daemon->declared, 1, memory_order_release);
	checkpoint_note(&daemon->checkpoint);
}

void daemon_count(_Atomic(uint64_t) *word)
{
	atomic_fetch_add_explicit(word, 1, memory_order_relaxed);
}

/* ---- what a reload can change ---- */

/* As many file descriptors as max_connections needs, where the hard limit allows that. */
static void allow_files(struct daemon *daemon)
{
	rlim_t wanted = (rlim_t)daemon->config->max_connections +
			(rlim_t)daemon->config->http_max_connections +
			(rlim_t)daemon->config->max_statsd_connections + LISTENERS_MAX +
			3 * daemon->n_workers + DAEMON_SPARE_FILES;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
		return;
	}
	limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < wanted) {
		log_line(&daemon->log, LOG_WARNING,
			 "max_connections is %" PRIi64 " and max_statsd_connections %" PRIi64
			 ", but only %ju file descriptors are allowed (RLIMIT_NOFILE)",
			 daemon->config->max_connections, daemon->config->max_statsd_connections,
			 (uintmax_t)limit.rlim_cur);
	}
}

void daemon_set_limits(struct daemon *daemon)
{
	allow_files(daemon);
	directory_set_limits(&daemon->directory, (uint32_t)daemon->config->max_sessions,
			     (uint64_t)daemon->config->max_handles_total);
	waiting_set_limits(&daemon->waiting, (uint32_t)daemon->config->max_waiting,
			   (size_t)daemon->config->max_waiting_bytes);
	lease_book_set_max(&daemon->leases, (uint32_t)daemon->config->max_leases_total);
}

/* ---- making and freeing ---- */

static uint64_t random_u64(void)
{
	uint64_t value = 0;

	(void)!getrandom(&value, sizeof(value), 0);
	return value;
}

static unsigned count_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (unsigned)n : 1;
}

/* The state file, before anything that others could see: it says whether there may be a daemon here at all. */
static int open_store(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	struct store *store = NULL;
	int r = 0;

	if (config->state[0] != '\0') {
		r = restore_open(daemon, daemon->source->recover, &store);
	}
	return r == 0 ? checkpoint_init(&daemon->checkpoint, daemon, store, config->state,
					config->checkpoint_interval_ns)
		      : r;
}

static int restore(struct daemon *daemon)
{
	struct store *store = daemon->checkpoint.store;
	int r = store != NULL ? restore_all(daemon, store) : 0;

	for (unsigned i = 0; r == 0 && i < daemon->n_workers; i++) {
		r = worker_enter(&daemon->workers[i]);
	}
	return r;
}

static int make_engine(struct daemon *daemon)
{
	struct config *config = daemon->config;
	unsigned cpus = count_cpus();
	const struct engine_options options = {
		.max_counters = (uint32_t)config->max_counters,
		.max_workers = daemon->n_workers,
		.batch = (uint32_t)config->batch,
		.cpus = cpus,
		.seed = random_u64(),
		.keep = daemon->checkpoint.store != NULL,
	};
	int r = engine_new(&daemon->engine, &options);

	if (r == 0) {
		r = reload_take(daemon, config, NULL);
	}
	return r == 0 ? statsd_set_levels(daemon) : r;
}

static void wake_worker(void *ctx, unsigned worker)
{
	struct daemon *daemon = ctx;

	worker_wake(&daemon->workers[worker]);
}

static int make_ledgers(struct daemon *daemon)
{
	int r = waiting_init(&daemon->waiting, daemon->n_workers, random_u64(), wake_worker,
			     daemon);

	daemon->detached.seed = random_u64();
	return r == 0 ? lease_book_init(&daemon->leases, 0, random_u64()) : r;
}

static int make_workers(struct daemon *daemon)
{
	daemon->workers = calloc(daemon->n_workers, sizeof(*daemon->workers));
	if (daemon->workers == NULL) {
		return -ENOMEM;
	}
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		int r = worker_open(&daemon->workers[i], daemon, i, &daemon->config->settings);

		if (r < 0) {
			return r;
		}
	}
	return 0;
}

static int open_listeners(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	int r = listeners_adopt(&daemon->listeners);

	for (size_t i = 0; r == 0 && i < config->n_listen; i++) {
		r = listeners_open(&daemon->listeners, &config->listen[i],
				   (mode_t)config->socket_mode);
	}
	if (r == 0 && daemon->listeners.n == 0) {
		struct address fallback;

		(void)address_parse(ADDRESS_DEFAULT, &fallback);
		r = listeners_open(&daemon->listeners, &fallback, (mode_t)config->socket_mode);
	}
	return r;
}

static int make_listeners(struct daemon *daemon)
{
	int r;

	daemon->listener_uses = arrivals_uses(daemon);
	r = listeners_init(&daemon->listeners, &daemon->log, &daemon->listener_uses, daemon);
	if (r == 0) {
		r = open_listeners(daemon);
	}
	/* Any worker may get a connection. */
	for (unsigned i = 0; r == 0 && i < daemon->n_workers; i++) {
		if (listeners_have(&daemon->listeners, ADDRESS_STATSD_TCP)) {
			r = statsd_open(&daemon->workers[i]);
		}
	}
	return r == 0 ? listeners_start(&daemon->listeners, daemon->loop.base) : r;
}

static unsigned choose_workers(const struct config *config)
{
	unsigned n = config->workers != 0 ? (unsigned)config->workers : count_cpus();

	return n < ENGINE_MAX_WORKERS ? n : ENGINE_MAX_WORKERS;
}

int daemon_new(struct config *config, const struct config_source *source,
	       struct daemon **ret_daemon)
{
	_cleanup_(daemon_freep) struct daemon *daemon = calloc(1, sizeof(*daemon));
	int r;

	if (daemon == NULL) {
		(void)config_free(config);
		return -ENOMEM;
	}
	daemon->log = (struct log)LOG_INIT;
	log_init(&daemon->log);
	daemon->loop = (struct loop)LOOP_INIT;
	(void)pthread_mutex_init(&daemon->detached_lock, NULL);
	(void)pthread_mutex_init(&daemon->rules_lock, NULL);
	(void)pthread_mutex_init(&daemon->config_lock, NULL);
	daemon->config = config;
	daemon->source = source;
	daemon->n_workers = choose_workers(config);
	daemon->started_ns = clock_monotonic_ns();
	if (getrandom(daemon->incarnation, sizeof(daemon->incarnation), 0) !=
	    (ssize_t)sizeof(daemon->incarnation)) {
		return -errno;
	}
	r = loop_init(daemon);
	if (r == 0) {
		r = open_store(daemon);
	}
	if (r == 0) {
		r = directory_init(&daemon->directory, daemon->n_workers, random_u64());
		daemon->directory.keeps = daemon->checkpoint.store != NULL;
	}
	if (r == 0) {
		r = make_ledgers(daemon);
	}
	if (r == 0) {
		daemon_set_limits(daemon);
		r = reload_desk_init(&daemon->reload_desk, daemon->loop.base, loop_reload_asked,
				     daemon);
	}
	if (r == 0) {
		r = make_engine(daemon);
	}
	if (r == 0) {
		r = make_workers(daemon);
	}
	if (r == 0) {
		r = restore(daemon);
	}
	/* Last, since from here on clients may come. */
	if (r == 0) {
		r = make_listeners(daemon);
	}
	if (r == 0) {
		r = http_new(daemon, &daemon->http);
	}
	if (r == 0) {
		r = loop_arm(daemon);
	}
	if (r < 0) {
		log_line(&daemon->log, LOG_ERR, "can't start: %s", strerror(-r));
		notify_failed(-r, "Can't start: see the log.");
	}
	if (r != 0) {
		return r;
	}
	*ret_daemon = daemon;
	daemon = NULL;
	return 0;
}

struct daemon *daemon_free(struct daemon *daemon)
{
	if (daemon == NULL) {
		return NULL;
	}
	(void)http_free(daemon->http);
	listeners_deinit(&daemon->listeners);
	for (unsigned i = 0; daemon->workers != NULL && i < daemon->n_workers; i++) {
		worker_close(&daemon->workers[i]);
	}
	free(daemon->workers);
	checkpoint_deinit(&daemon->checkpoint);
	directory_deinit(&daemon->directory);
	waiting_deinit(&daemon->waiting);
	lease_book_deinit(&daemon->leases);
	held_deinit(&daemon->detached);
	(void)pthread_mutex_destroy(&daemon->detached_lock);
	(void)pthread_mutex_destroy(&daemon->rules_lock);
	(void)pthread_mutex_destroy(&daemon->config_lock);
	free(atomic_load_explicit(&daemon->statsd_levels, memory_order_relaxed));
	(void)engine_free(daemon->engine);
	watchdog_deinit(&daemon->watchdog);
	reload_desk_deinit(&daemon->reload_desk);
	loop_deinit(&daemon->loop);
	(void)config_free(daemon->config);
	log_deinit(&daemon->log);
	free(daemon);
	return NULL;
}

/* ---- running ---- */

static int start_threads(struct daemon *daemon)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < daemon->n_workers; i++) {
		r = worker_start(&daemon->workers[i]);
	}
	if (r == 0) {
		r = checkpoint_start(&daemon->checkpoint);
	}
	return r == 0 && daemon->http != NULL ? http_start(daemon->http) : r;
}

static void stop_workers(struct daemon *daemon)
{
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		if (daemon->workers[i].started) {
			worker_stop(&daemon->workers[i], daemon->config->stop_timeout_ns);
		}
	}
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		worker_join(&daemon->workers[i]);
	}
}

int daemon_run(struct daemon *daemon)
{
	int r = start_threads(daemon), kept;

	if (r == 0) {
		r = watchdog_start(&daemon->watchdog, daemon);
	}
	if (r == 0) {
		log_event(&daemon->log, LOG_KIND_MAX, 0, LOG_INFO,
			  &(struct log_about){ .id = LOG_ID_STARTED }, "serving with %u worker%s",
			  daemon->n_workers, daemon->n_workers == 1 ? "" : "s");
		r = loop_run(daemon);
	} else {
		log_line(&daemon->log, LOG_ERR, "can't start the threads: %s", strerror(-r));
	}
	http_stop(daemon->http, daemon->config->stop_timeout_ns);
	listeners_stop(&daemon->listeners);
	stop_workers(daemon);
	kept = checkpoint_stop(&daemon->checkpoint);
	log_suppressed(&daemon->log, clock_monotonic_ns(), /* all= */ true);
	final_tell(daemon);
	return r != 0 ? r : kept;
}
