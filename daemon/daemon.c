#include "daemon/daemon.h"

#include "daemon/clock.h"
#include "daemon/notify.h"
#include "daemon/reload.h"
#include "daemon/statsd/statsd.h"
#include "daemon/store/restore.h"
#include "lib/base/cleanup.h"
#include "lib/engine/quota.h"
#include "proto/frame.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define DAEMON_SPARE_FILES 64u		     /* for all but connections and listeners */
#define DAEMON_STATUS_NS INT64_C(5000000000) /* between status texts */
#define DAEMON_EXPIRE_BUDGET 10000u	     /* counters looked at in a second */

DEFINE_CLEANUP(struct daemon *, daemon_free);

struct quota_time daemon_time(void)
{
	return (struct quota_time){ .wall_ns = clock_wall_ns(), .mono_ns = clock_monotonic_ns() };
}

static void set_state(struct daemon *daemon, enum daemon_state state)
{
	atomic_store_explicit(&daemon->state, (int)state, memory_order_relaxed);
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

/* ---- connections ---- */

static uint32_t count_connections(struct daemon *daemon, struct worker **ret_least)
{
	uint32_t all = 0, least = UINT32_MAX;

	for (unsigned i = 0; i < daemon->n_workers; i++) {
		struct worker *worker = &daemon->workers[i];
		/* Relaxed: one more or less for a moment does not matter to a choice. */
		uint32_t n = atomic_load_explicit(&worker->n_connections, memory_order_relaxed);

		all += n;
		if (n < least) {
			least = n;
			*ret_least = worker;
		}
	}
	return all;
}

/* One frame to a fresh socket, whose buffer has room for it; whoever does not get it sees the connection closed. */
static void refuse(struct daemon *daemon, int fd, const char *peer, const char *text)
{
	const struct reply goodbye = {
		.type = REPLY_GOODBYE,
		.goodbye = { .code = CODE_RESOURCE_EXHAUSTED, .text = text_of(text) },
	};
	struct arena arena = ARENA_INIT(1 << 16);
	uint8_t sink[4096];
	const uint8_t *bytes;
	size_t len;

	daemon_count(&daemon->connections_refused);
	log_peer(&daemon->log, LOG_KIND_REFUSED, clock_monotonic_ns(), LOG_WARNING, peer,
		 "refused: %s", text);
	if (reply_encode(&arena, &goodbye, &bytes, &len) == 0) {
		(void)send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	(void)shutdown(fd, SHUT_WR);
	/* What the client has sent already would turn the close into a reset, and the Goodbye might be lost with it. */
	(void)!recv(fd, sink, sizeof(sink), MSG_DONTWAIT);
	arena_deinit(&arena);
	(void)close(fd);
}

/* Nobody could be told why, in that protocol: it has no replies. */
static void on_statsd_accepted(struct daemon *daemon, int fd, const char *peer)
{
	struct worker *least = &daemon->workers[0];
	struct statsd_stream *stream;
	uint64_t all = 0;

	for (unsigned i = 0; i < daemon->n_workers; i++) {
		uint32_t n = atomic_load_explicit(&daemon->workers[i].n_statsd_streams,
						  memory_order_relaxed);

		all += n;
		if (n < atomic_load_explicit(&least->n_statsd_streams, memory_order_relaxed)) {
			least = &daemon->workers[i];
		}
	}
	if (all >= (uint64_t)daemon->config->max_statsd_connections) {
		daemon_count(&daemon->statsd_connections_refused);
		log_peer(
			&daemon->log, LOG_KIND_REFUSED, clock_monotonic_ns(), LOG_WARNING, peer,
			"refused: there are as many connections for StatsD as there may be (max_statsd_connections)");
		(void)close(fd);
		return;
	}
	stream = statsd_stream_new(fd, peer);
	if (stream != NULL) {
		worker_hand_statsd(least, stream);
	}
}

/* To the workers in turn, so that each reads one of those at an address. */
static int on_datagram_socket(void *ctx, int fd, const char *name)
{
	struct daemon *daemon = ctx;
	struct worker *worker = &daemon->workers[daemon->next_reader++ % daemon->n_workers];
	int r = statsd_open(worker);

	if (r < 0) {
		(void)close(fd);
		return r;
	}
	return statsd_add_socket(worker, fd, name);
}

static void on_accepted(void *ctx, enum address_scheme scheme, int fd, const char *peer)
{
	struct daemon *daemon = ctx;
	struct connection *connection;
	struct worker *least = NULL;

	if (scheme == ADDRESS_STATSD_TCP) {
		on_statsd_accepted(daemon, fd, peer);
		return;
	}

	if (count_connections(daemon, &least) >= (uint64_t)daemon->config->max_connections) {
		refuse(daemon, fd, peer,
		       "the daemon has as many connections as it may have (max_connections)");
		return;
	}
	connection = connection_new(fd, peer, clock_coarse_ns());
	if (connection == NULL) {
		refuse(daemon, fd, peer, "the daemon is out of memory");
		return;
	}
	worker_hand(least, connection);
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

void daemon_set_flush_timer(struct daemon *daemon)
{
	struct timeval interval = clock_timeval(daemon->config->flush_interval_ns);

	(void)event_add(daemon->flush_timer, &interval);
}

/* ---- events of the main thread ---- */

/* How much was done a second, since this was asked last. */
static void take_rates(struct daemon *daemon, uint64_t *ret_adds, uint64_t *ret_requests)
{
	struct daemon_rates *last = &daemon->rates;
	struct daemon_rates now = { .at_ns = clock_monotonic_ns() };
	double seconds = (double)(now.at_ns - last->at_ns) / CLOCK_NS_PER_S;

	for (unsigned i = 0; i < daemon->n_workers; i++) {
		now.adds += stats_read(&daemon->workers[i].stats.adds_applied);
		now.requests += stats_read(&daemon->workers[i].stats.frames_in);
	}
	*ret_adds = seconds > 0 ? (uint64_t)((double)(now.adds - last->adds) / seconds) : 0;
	*ret_requests =
		seconds > 0 ? (uint64_t)((double)(now.requests - last->requests) / seconds) : 0;
	*last = now;
}

/* Ready: say so too. Else the text alone, if there is anything new in it. */
static void notify_running(struct daemon *daemon, bool ready)
{
	char text[sizeof(daemon->status_text)];
	struct worker *least = NULL;
	uint64_t adds, requests;
	uint32_t connections = count_connections(daemon, &least);
	struct checkpoint_stats kept;

	checkpoint_stats(&daemon->checkpoint, &kept);
	take_rates(daemon, &adds, &requests);
	(void)snprintf(text, sizeof(text),
		       "Serving on %zu socket%s with %u worker%s: %" PRIu32
		       " connection%s, %" PRIu64 " requests/s, %" PRIu64 " adds/s.%s%s%s",
		       daemon->listeners.n, daemon->listeners.n == 1 ? "" : "s", daemon->n_workers,
		       daemon->n_workers == 1 ? "" : "s", connections, connections == 1 ? "" : "s",
		       requests, adds,
		       daemon->reload_failed ? " The last reload failed: see the log." : "",
		       kept.failing ? " Nothing becomes durable: " : "", kept.why);
	daemon->keeps_failing = kept.failing;
	if (ready) {
		notify_ready(text);
	} else if (strcmp(text, daemon->status_text) != 0) {
		notify_status(text);
	}
	memcpy(daemon->status_text, text, sizeof(text));
}

static void do_reload(struct daemon *daemon, struct reload_told *told)
{
	notify_reloading();
	set_state(daemon, DAEMON_RELOADING);
	daemon->reload_failed = reload(daemon, told) != 0;
	set_state(daemon, DAEMON_RUNNING);
	notify_running(daemon, /* ready= */ true);
}

/* All that have asked by now share one. */
static void on_reload_asked(void *ctx)
{
	struct daemon *daemon = ctx;
	struct reload_job *job = reload_desk_take(&daemon->reload_desk), *next;
	struct reload_told told;

	if (job == NULL) {
		return;
	}
	do_reload(daemon, &told);
	for (; job != NULL; job = next) {
		next = job->next;
		job->told = told;
		worker_send_reloaded(job);
	}
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;
	struct signalfd_siginfo info;
	struct reload_told told;

	(void)what;
	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGHUP) {
			do_reload(daemon, &told);
			continue;
		}
		log_line(&daemon->log, LOG_INFO, "stopping (%s)",
			 info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
		(void)event_base_loopbreak(daemon->base);
		return;
	}
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;

	(void)fd;
	(void)what;
	engine_flush(daemon->engine, clock_wall_ns());
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;
	struct checkpoint_stats kept;

	(void)fd;
	(void)what;
	if (engine_expire(daemon->engine, clock_wall_ns(), DAEMON_EXPIRE_BUDGET) > 0) {
		checkpoint_note(&daemon->checkpoint);
	}
	/* What makes room without telling, as adds of less than 0 do. */
	waiting_wake_all(&daemon->waiting);
	statsd_look_for_drops(daemon);
	log_suppressed(&daemon->log, clock_monotonic_ns(), /* all= */ false);
	checkpoint_stats(&daemon->checkpoint, &kept);
	if (clock_monotonic_ns() - daemon->rates.at_ns >= DAEMON_STATUS_NS ||
	    kept.failing != daemon->keeps_failing) {
		notify_running(daemon, /* ready= */ false);
	}
}

/* For growth that folds, which brings no time of its own. */
static void on_time(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;
	const struct quota_time time = daemon_time();

	(void)fd;
	(void)what;
	engine_set_time(daemon->engine, &time);
}

static int set_events(struct daemon *daemon)
{
	const struct timeval second = { .tv_sec = 1 }, tenth = { .tv_usec = 100000 };
	const struct quota_time time = daemon_time();

	daemon->signals =
		event_new(daemon->base, daemon->signal_fd, EV_READ | EV_PERSIST, on_signal, daemon);
	daemon->flush_timer = event_new(daemon->base, -1, EV_PERSIST, on_flush, daemon);
	daemon->second_timer = event_new(daemon->base, -1, EV_PERSIST, on_second, daemon);
	if (daemon->signals == NULL || daemon->flush_timer == NULL ||
	    daemon->second_timer == NULL || event_add(daemon->signals, NULL) != 0 ||
	    event_add(daemon->second_timer, &second) != 0) {
		return -ENOMEM;
	}
	daemon->time_timer = event_new(daemon->base, -1, EV_PERSIST, on_time, daemon);
	if (daemon->time_timer == NULL || event_add(daemon->time_timer, &tenth) != 0) {
		return -ENOMEM;
	}
	engine_set_time(daemon->engine, &time);
	daemon_set_flush_timer(daemon);
	return 0;
}

/* ---- making and freeing ---- */

static int new_base(struct event_base **ret_base)
{
	struct event_config *config = event_config_new();

	if (config == NULL) {
		return -ENOMEM;
	}
	(void)event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	*ret_base = event_base_new_with_config(config);
	event_config_free(config);
	return *ret_base != NULL ? 0 : -ENOMEM;
}

/*
 * Signals come in through a descriptor, and are blocked in every thread: those of libraries inherit that from here too. Nothing
 * is ever interrupted, and what comes before the loop runs waits for it.
 */
static int open_signals(int *ret_fd)
{
	sigset_t ours;

	(void)sigemptyset(&ours);
	(void)sigaddset(&ours, SIGTERM);
	(void)sigaddset(&ours, SIGINT);
	(void)sigaddset(&ours, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, &ours, NULL);
	*ret_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_fd >= 0 ? 0 : -errno;
}

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

	daemon->listener_uses = (struct listener_uses){ .n_readers = daemon->n_workers,
							.accepted = on_accepted,
							.datagrams = on_datagram_socket };
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
	return r == 0 ? listeners_start(&daemon->listeners, daemon->base) : r;
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
	daemon->signal_fd = -1;
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
	r = open_signals(&daemon->signal_fd);
	if (r == 0) {
		r = new_base(&daemon->base);
	}
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
		r = reload_desk_init(&daemon->reload_desk, daemon->base, on_reload_asked, daemon);
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
		r = set_events(daemon);
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

static void free_event(struct event *event)
{
	if (event != NULL) {
		event_free(event);
	}
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
	free_event(daemon->signals);
	free_event(daemon->flush_timer);
	free_event(daemon->second_timer);
	free_event(daemon->time_timer);
	if (daemon->base != NULL) {
		event_base_free(daemon->base);
	}
	if (daemon->signal_fd >= 0) {
		(void)close(daemon->signal_fd);
	}
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

struct final {
	size_t n_metrics;
	__int128 sum;
};

static void add_metric(void *ctx, const struct engine_entry *entry)
{
	struct final *final = ctx;

	final->n_metrics++;
	final->sum += entry->reading.total;
}

#define SUM_TEXT 41u /* the longest number of 128 bits, its sign and an end */

/* Totals are of 64 bits; the sum of those of all metrics need not be. */
static const char *sum_text(__int128 sum, char *text)
{
	unsigned __int128 left = sum < 0 ? -(unsigned __int128)sum : (unsigned __int128)sum;
	char *at = text + SUM_TEXT - 1;

	*at = '\0';
	do {
		*--at = (char)('0' + (int)(left % 10));
		left /= 10;
	} while (left > 0);
	if (sum < 0) {
		*--at = '-';
	}
	return at;
}

/* What was counted, now that nobody counts any more: exact. */
static void tell_final(struct daemon *daemon)
{
	struct engine_cursor cursor = { 0 };
	struct engine_stats *stats = calloc(1, sizeof(*stats));
	struct final final = { 0 };
	uint64_t batches = 0, adds = 0;
	char text[SUM_TEXT];
	bool done = false;

	while (!done && engine_walk(daemon->engine, "", 0, 1, 1000, &cursor, add_metric, &final,
				    &done) == 0) {
		/* the next page */
	}
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		batches += stats_read(&daemon->workers[i].stats.batches_applied);
		adds += stats_read(&daemon->workers[i].stats.adds_applied);
	}
	if (stats != NULL) {
		engine_stats(daemon->engine, stats);
		log_event(&daemon->log, LOG_KIND_MAX, 0, LOG_INFO,
			  &(struct log_about){ .id = LOG_ID_STOPPED },
			  "stopped: %" PRIu64 " batches with %" PRIu64 " entries applied, %" PRIu32
			  " counters in %zu metrics, sum of all totals %s",
			  batches, adds, stats->counters, final.n_metrics,
			  sum_text(final.sum, text));
	}
	free(stats);
}

int daemon_run(struct daemon *daemon)
{
	int r = start_threads(daemon), kept;

	if (r == 0) {
		r = watchdog_start(&daemon->watchdog, daemon);
	}
	if (r == 0) {
		set_state(daemon, DAEMON_RUNNING);
		daemon->rates.at_ns = daemon->started_ns;
		log_event(&daemon->log, LOG_KIND_MAX, 0, LOG_INFO,
			  &(struct log_about){ .id = LOG_ID_STARTED }, "serving with %u worker%s",
			  daemon->n_workers, daemon->n_workers == 1 ? "" : "s");
		notify_running(daemon, /* ready= */ true);
		r = event_base_dispatch(daemon->base) < 0 ? -EIO : 0;
	} else {
		log_line(&daemon->log, LOG_ERR, "can't start the threads: %s", strerror(-r));
	}
	notify_stopping();
	set_state(daemon, DAEMON_STOPPING);
	http_stop(daemon->http, daemon->config->stop_timeout_ns);
	listeners_stop(&daemon->listeners);
	stop_workers(daemon);
	kept = checkpoint_stop(&daemon->checkpoint);
	log_suppressed(&daemon->log, clock_monotonic_ns(), /* all= */ true);
	tell_final(daemon);
	return r != 0 ? r : kept;
}
