#include "daemon/status.h"

#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/worker.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *get_version(struct status_now *status)
{
	(void)status;
	return RATION_VERSION;
}

static const char *get_state(struct status_now *status)
{
	switch ((enum daemon_state)atomic_load_explicit(&status->daemon->state,
							memory_order_relaxed)) {
	case DAEMON_STARTING:
		return "starting";
	case DAEMON_RUNNING:
		return "running";
	case DAEMON_RELOADING:
		return "reloading";
	case DAEMON_STOPPING:
		return "stopping";
	}
	return "unknown";
}

static int64_t get_uptime(struct status_now *status)
{
	return (clock_monotonic_ns() - status->daemon->started_ns) / CLOCK_NS_PER_S;
}

static int64_t get_workers(struct status_now *status)
{
	return status->daemon->n_workers;
}

static int64_t get_connections(struct status_now *status)
{
	int64_t n = 0;

	for (unsigned i = 0; i < status->daemon->n_workers; i++) {
		n += atomic_load_explicit(&status->daemon->workers[i].n_connections,
					  memory_order_relaxed);
	}
	return n;
}

static int64_t get_refused_connections(struct status_now *status)
{
	return (int64_t)stats_read(&status->daemon->connections_refused);
}

static int64_t get_sessions(struct status_now *status)
{
	return directory_sessions(&status->daemon->directory);
}

static int64_t get_handles(struct status_now *status)
{
	return (int64_t)directory_handles(&status->daemon->directory);
}

static int64_t get_waiting(struct status_now *status)
{
	return waiting_count(&status->daemon->waiting);
}

static int64_t get_leases(struct status_now *status)
{
	return lease_book_count(&status->daemon->leases);
}

static int64_t get_detached(struct status_now *status)
{
	struct daemon *daemon = status->daemon;
	int64_t n;

	(void)pthread_mutex_lock(&daemon->detached_lock);
	n = held_paths(&daemon->detached);
	(void)pthread_mutex_unlock(&daemon->detached_lock);
	return n;
}

static int64_t get_reloads(struct status_now *status)
{
	return (int64_t)stats_read(&status->daemon->reloads);
}

static int64_t get_reloads_failed(struct status_now *status)
{
	return (int64_t)stats_read(&status->daemon->reloads_failed);
}

/* Of the HTTP thread, if there is one. */
static const struct http_stats *http_stats_of(const struct status_now *status)
{
	static const struct http_stats none;

	return status->daemon->http != NULL ? http_stats(status->daemon->http) : &none;
}

static int64_t get_http_requests(struct status_now *status)
{
	return (int64_t)stats_read(&http_stats_of(status)->requests);
}

static int64_t get_http_refused(struct status_now *status)
{
	return (int64_t)stats_read(&http_stats_of(status)->refused);
}

static int64_t get_http_aborted(struct status_now *status)
{
	return (int64_t)stats_read(&http_stats_of(status)->aborted);
}

static int64_t get_http_pauses(struct status_now *status)
{
	return (int64_t)stats_read(&http_stats_of(status)->pauses);
}

/* The second number of /proc/self/statm is resident pages. */
static int64_t get_memory(struct status_now *status)
{
	char text[128] = "";
	long long pages = 0;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	(void)status;
	if (fd >= 0) {
		ssize_t n = read(fd, text, sizeof(text) - 1);

		(void)close(fd);
		if (n > 0 && strchr(text, ' ') != NULL) {
			pages = strtoll(strchr(text, ' '), NULL, 10);
		}
	}
	return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

/* "requests/acme (17), sizes (3)" */
static const char *get_refused_prefixes(struct status_now *status)
{
	size_t len = 0;

	status->text[0] = '\0';
	for (size_t i = 0; i < status->engine.n_refused_prefixes; i++) {
		const struct engine_refused *refused = &status->engine.refused_prefixes[i];

		len += (size_t)snprintf(status->text + len, sizeof(status->text) - len,
					"%s%s (%" PRIu64 ")", i > 0 ? ", " : "", refused->prefix,
					refused->count);
	}
	return status->text;
}

#define STATUS_ENGINE_EACH(X)                                                                     \
	X(counters, counters, STATUS_GAUGE, "Counters there are; every node of a path is one.")   \
	X(counters_max, counters_max, STATUS_GAUGE, "Counters there can be.")                     \
	X(batch, batch, STATUS_GAUGE,                                                             \
	  "Growth of a worker's part of a counter at which it is folded.")                        \
	X(counters_created, created, STATUS_COUNTER, "Counters made since the start.")            \
	X(counters_removed, removed, STATUS_COUNTER, "Counters removed since the start.")         \
	X(counters_expired, expired, STATUS_COUNTER,                                              \
	  "Counters of those removed that were idle for their metric's expire_after.")            \
	X(paths_refused, refused, STATUS_COUNTER,                                                 \
	  "New paths refused because a ceiling on counters was reached.")                         \
	X(paths_overflowed, overflowed, STATUS_COUNTER,                                           \
	  "New paths that were counted under __other__ instead.")                                 \
	X(folds, folds, STATUS_COUNTER, "Parts of counters whose growth was folded into totals.") \
	X(flushes_run, flushes_run, STATUS_COUNTER, "Flushes that folded everything.")            \
	X(flushes_shared, flushes_shared, STATUS_COUNTER,                                         \
	  "Flushes that were asked for and answered by one for another.")                         \
	X(flushes_skipped, flushes_skipped, STATUS_COUNTER,                                       \
	  "Reads that needed no flush because little was pending.")                               \
	X(pending_signals, pending_signals, STATUS_COUNTER,                                       \
	  "Times a worker told others how much it holds back.")                                   \
	X(pending_skipped, pending_skipped, STATUS_COUNTER,                                       \
	  "Times it did not, since a flush was due already.")                                     \
	X(pending, pending, STATUS_GAUGE, "Growth known to be held back, in magnitude.")          \
	X(pending_threshold, pending_threshold, STATUS_GAUGE,                                     \
	  "Growth held back at which a fresh read flushes.")                                      \
	X(adds_refused_negative, add_negative, STATUS_COUNTER,                                    \
	  "Negative adds to counters that only grow.")                                            \
	X(adds_refused_overflow, add_overflow, STATUS_COUNTER,                                    \
	  "Adds that would have left the range of 64 bits.")                                      \
	X(adds_refused_gone, add_gone, STATUS_COUNTER, "Adds to counters that had been removed.") \
	X(charges_granted, charges_granted, STATUS_COUNTER,                                       \
	  "Charges and leases that were granted.")                                                \
	X(charges_refused, charges_refused, STATUS_COUNTER,                                       \
	  "Times that charges and leases were refused, each try of those that wait included.")    \
	X(charge_flushes, charge_flushes, STATUS_COUNTER,                                         \
	  "Flushes that charges near a max asked for.")                                           \
	X(limit_changes, gates_closed, STATUS_COUNTER,                                            \
	  "Changes of limits that charges waited for.")                                           \
	X(rules_file, rules_file, STATUS_GAUGE, "Rules of the configuration.")                    \
	X(rules_run_time, rules_run_time, STATUS_GAUGE, "Rules set at run time.")                 \
	X(limits, planes, STATUS_GAUGE,                                                           \
	  "Limits that counters carry, one for each counter and window.")

#define STATUS_ENGINE_GET(name_, member, kind_, help_)               \
	static int64_t get_engine_##name_(struct status_now *status) \
	{                                                            \
		return (int64_t)status->engine.member;               \
	}
STATUS_ENGINE_EACH(STATUS_ENGINE_GET)

#define STATUS_WORKER_GET(name_, help_)                              \
	static int64_t get_worker_##name_(struct status_now *status) \
	{                                                            \
		return (int64_t)stats_read(&status->sum.name_);      \
	}
STATS_EACH(STATUS_WORKER_GET)
STATS_GAUGES_EACH(STATUS_WORKER_GET)

#define STATUS_STATSD_GET(name_, help_)                              \
	static int64_t get_statsd_##name_(struct status_now *status) \
	{                                                            \
		return (int64_t)stats_read(&status->statsd.name_);   \
	}
STATSD_STATS_EACH(STATUS_STATSD_GET)

#define STATUS_REASON_GET(name_, help_)                                               \
	static int64_t get_rejected_##name_(struct status_now *status)                \
	{                                                                             \
		return (int64_t)stats_read(&status->statsd.rejected[STATSD_##name_]); \
	}
STATSD_REASONS(STATUS_REASON_GET)

static int64_t get_statsd_dropped(struct status_now *status)
{
	const struct statsd_socket_stats *socket;
	uint64_t n = 0;

	for (unsigned i = 0; i < status->daemon->n_workers; i++) {
		SLIST_FOREACH(socket, &status->daemon->workers[i].statsd_sockets, link)
		{
			n += stats_read(&socket->dropped);
		}
	}
	return (int64_t)n;
}

static int64_t get_statsd_connections(struct status_now *status)
{
	int64_t n = 0;

	for (unsigned i = 0; i < status->daemon->n_workers; i++) {
		n += atomic_load_explicit(&status->daemon->workers[i].n_statsd_streams,
					  memory_order_relaxed);
	}
	return n;
}

static int64_t get_statsd_refused(struct status_now *status)
{
	return (int64_t)stats_read(&status->daemon->statsd_connections_refused);
}

#define STATUS_STATSD_ROW(name_, help_) \
	{ .name = "statsd_" #name_,     \
	  .kind = STATUS_COUNTER,       \
	  .help = help_,                \
	  .number = get_statsd_##name_ },
#define STATUS_REASON_ROW(name_, help_)      \
	{ .name = "statsd_rejected_" #name_, \
	  .kind = STATUS_COUNTER,            \
	  .help = help_,                     \
	  .number = get_rejected_##name_ },
#define STATUS_ENGINE_ROW(name_, member, kind_, help_) \
	{ .name = #name_, .kind = kind_, .help = help_, .number = get_engine_##name_ },
#define STATUS_COUNTER_ROW(name_, help_) \
	{ .name = #name_, .kind = STATUS_COUNTER, .help = help_, .number = get_worker_##name_ },
#define STATUS_GAUGE_ROW(name_, help_) \
	{ .name = #name_, .kind = STATUS_GAUGE, .help = help_, .number = get_worker_##name_ },

static const char *get_state_file(struct status_now *status)
{
	const struct checkpoint *checkpoint = &status->daemon->checkpoint;

	return checkpoint->store != NULL ? checkpoint->path : "none";
}

static const char *get_durability(struct status_now *status)
{
	if (status->daemon->checkpoint.store == NULL) {
		return "none: what is counted ends with the daemon";
	}
	if (status->checkpoint.failing) {
		(void)snprintf(status->durability, sizeof(status->durability), "failing: %s",
			       status->checkpoint.why);
	} else if (status->checkpoint.untidy[0] != '\0') {
		(void)snprintf(status->durability, sizeof(status->durability),
			       "good, but the log of the state file grows: %s",
			       status->checkpoint.untidy);
	} else {
		return "good";
	}
	return status->durability;
}

#define STATUS_STATE_EACH(X)                                                                      \
	X(checkpoint_age_ms, STATUS_GAUGE, age_ns / 1000000,                                      \
	  "How long something has been counted that is not in the state file yet; 0: all is.")    \
	X(checkpoint_last_us, STATUS_GAUGE, took_ns / 1000, "How long the last checkpoint took.") \
	X(checkpoints, STATUS_COUNTER, n,                                                         \
	  "Times that what was new was written to the state file.")                               \
	X(checkpoints_failed, STATUS_COUNTER, n_failed, "Times that this failed.")                \
	X(state_rows_written, STATUS_COUNTER, store.rows, "Rows written to the state file.")      \
	X(state_bytes_written, STATUS_COUNTER, store.bytes, "Bytes in them.")                     \
	X(state_file_bytes, STATUS_GAUGE, store.file_bytes, "Size of the state file.")            \
	X(state_log_bytes, STATUS_GAUGE, store.log_bytes, "Size of its write-ahead log.")

#define STATUS_STATE_GET(name_, kind_, value, help_)          \
	static int64_t get_##name_(struct status_now *status) \
	{                                                     \
		return (int64_t)(status->checkpoint.value);   \
	}
STATUS_STATE_EACH(STATUS_STATE_GET)

#define STATUS_STATE_ROW(name_, kind_, value, help_) \
	{ .name = #name_, .kind = kind_, .help = help_, .number = get_##name_ },

const struct status_row status_rows[] = {
	{ .name = "version",
	  .kind = STATUS_TEXT,
	  .help = "Version of the daemon.",
	  .text = get_version },
	{ .name = "state",
	  .kind = STATUS_TEXT,
	  .help = "What it is doing: starting, running, reloading, stopping.",
	  .text = get_state },
	{ .name = "uptime_seconds",
	  .kind = STATUS_GAUGE,
	  .help = "Time since it started.",
	  .number = get_uptime },
	{ .name = "workers",
	  .kind = STATUS_GAUGE,
	  .help = "Threads that serve connections.",
	  .number = get_workers },
	{ .name = "memory_bytes",
	  .kind = STATUS_GAUGE,
	  .help = "Resident memory of the process.",
	  .number = get_memory },
	{ .name = "connections",
	  .kind = STATUS_GAUGE,
	  .help = "Connections there are.",
	  .number = get_connections },
	{ .name = "connections_refused",
	  .kind = STATUS_COUNTER,
	  .help = "Connections refused because there were max_connections.",
	  .number = get_refused_connections },
	{ .name = "sessions",
	  .kind = STATUS_GAUGE,
	  .help = "Sessions there are, with or without a connection.",
	  .number = get_sessions },
	{ .name = "handles",
	  .kind = STATUS_GAUGE,
	  .help = "Handles that all sessions have room for.",
	  .number = get_handles },
	{ .name = "charges_waiting",
	  .kind = STATUS_GAUGE,
	  .help = "Charges that wait for room.",
	  .number = get_waiting },
	{ .name = "leases",
	  .kind = STATUS_GAUGE,
	  .help = "Leases there are; those that have expired and were not reported are among them.",
	  .number = get_leases },
	{ .name = "detached_paths",
	  .kind = STATUS_GAUGE,
	  .help = "Paths of gauges on which detached charges hold something.",
	  .number = get_detached },
	{ .name = "reloads",
	  .kind = STATUS_COUNTER,
	  .help = "Times the configuration was reloaded.",
	  .number = get_reloads },
	{ .name = "reloads_failed",
	  .kind = STATUS_COUNTER,
	  .help = "Times it was not, for an error in it.",
	  .number = get_reloads_failed },
	{ .name = "http_requests",
	  .kind = STATUS_COUNTER,
	  .help = "Requests over HTTP.",
	  .number = get_http_requests },
	{ .name = "http_refused",
	  .kind = STATUS_COUNTER,
	  .help = "Requests over HTTP that were refused because there was too much under way.",
	  .number = get_http_refused },
	{ .name = "http_aborted",
	  .kind = STATUS_COUNTER,
	  .help = "Pages for scrapers that were not taken to their end.",
	  .number = get_http_aborted },
	{ .name = "http_pauses",
	  .kind = STATUS_COUNTER,
	  .help = "Times that no more connections for HTTP were accepted for a while.",
	  .number = get_http_pauses },
	STATSD_STATS_EACH(STATUS_STATSD_ROW) STATSD_REASONS(STATUS_REASON_ROW){
		.name = "statsd_dropped",
		.kind = STATUS_COUNTER,
		.help = "Datagrams dropped by the kernel, because a socket's buffer was full.",
		.number = get_statsd_dropped },
	{ .name = "statsd_connections",
	  .kind = STATUS_GAUGE,
	  .help = "TCP connections with StatsD lines there are.",
	  .number = get_statsd_connections },
	{ .name = "statsd_connections_refused",
	  .kind = STATUS_COUNTER,
	  .help = "Such connections refused because there were max_statsd_connections.",
	  .number = get_statsd_refused },
	{ .name = "state_file",
	  .kind = STATUS_TEXT,
	  .help = "Where what is counted is kept.",
	  .text = get_state_file },
	{ .name = "durability",
	  .kind = STATUS_TEXT,
	  .help = "Does what is counted become durable? If not, why not.",
	  .text = get_durability },
	STATUS_STATE_EACH(STATUS_STATE_ROW) STATS_EACH(STATUS_COUNTER_ROW)
		STATS_GAUGES_EACH(STATUS_GAUGE_ROW) STATUS_ENGINE_EACH(STATUS_ENGINE_ROW){
			.name = "refused_prefixes",
			.kind = STATUS_TEXT,
			.help = "Where new paths were refused most, and how often.",
			.text = get_refused_prefixes },
};

const size_t status_n_rows = sizeof(status_rows) / sizeof(status_rows[0]);

static void sum_workers(struct daemon *daemon, struct stats *sum)
{
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		const struct stats *stats = &daemon->workers[i].stats;

#define STATUS_SUM(name_, help_) stats_add(&sum->name_, stats_read(&stats->name_));
		STATS_EACH(STATUS_SUM)
		STATS_GAUGES_EACH(STATUS_SUM)
#undef STATUS_SUM
	}
}

static void sum_statsd(struct daemon *daemon, struct statsd_stats *sum)
{
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		const struct statsd_stats *stats = &daemon->workers[i].statsd_stats;

#define STATUS_SUM(name_, help_) stats_add(&sum->name_, stats_read(&stats->name_));
		STATSD_STATS_EACH(STATUS_SUM)
#undef STATUS_SUM
		for (size_t reason = 0; reason < STATSD_N_REASONS; reason++) {
			stats_add(&sum->rejected[reason], stats_read(&stats->rejected[reason]));
		}
	}
}

void status_take(struct daemon *daemon, struct status_now *ret_status)
{
	memset(ret_status, 0, sizeof(*ret_status));
	ret_status->daemon = daemon;
	sum_workers(daemon, &ret_status->sum);
	sum_statsd(daemon, &ret_status->statsd);
	engine_stats(daemon->engine, &ret_status->engine);
	checkpoint_stats(&daemon->checkpoint, &ret_status->checkpoint);
}
