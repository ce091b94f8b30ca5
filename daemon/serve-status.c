/*
 * Status: what the daemon says of itself, from one table.
 */
#include "daemon/serve.h"

#include "daemon/clock.h"
#include "daemon/connection.h"
#include "daemon/daemon.h"
#include "daemon/stats.h"
#include "daemon/worker.h"
#include "lib/engine/engine.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct status_ctx {
	struct daemon *daemon;
	struct arena *arena;
	struct stats sum; /* over all workers */
	struct engine_stats engine;
};

struct status_row {
	const char *name;
	const char *help;
	int64_t (*number)(struct status_ctx *ctx); /* one of the two */
	const char *(*text)(struct status_ctx *ctx);
};

static const char *get_version(struct status_ctx *ctx)
{
	(void)ctx;
	return RATION_VERSION;
}

static const char *get_state(struct status_ctx *ctx)
{
	switch ((enum daemon_state)atomic_load_explicit(&ctx->daemon->state, memory_order_relaxed)) {
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

static int64_t get_uptime(struct status_ctx *ctx)
{
	return (clock_monotonic_ns() - ctx->daemon->started_ns) / CLOCK_NS_PER_S;
}

static int64_t get_workers(struct status_ctx *ctx)
{
	return ctx->daemon->n_workers;
}

static int64_t get_connections(struct status_ctx *ctx)
{
	int64_t n = 0;

	for (unsigned i = 0; i < ctx->daemon->n_workers; i++) {
		n += atomic_load_explicit(&ctx->daemon->workers[i].n_connections,
					  memory_order_relaxed);
	}
	return n;
}

static int64_t get_refused_connections(struct status_ctx *ctx)
{
	return (int64_t)stats_read(&ctx->daemon->connections_refused);
}

static int64_t get_sessions(struct status_ctx *ctx)
{
	return directory_sessions(&ctx->daemon->directory);
}

static int64_t get_handles(struct status_ctx *ctx)
{
	return (int64_t)directory_handles(&ctx->daemon->directory);
}

static int64_t get_waiting(struct status_ctx *ctx)
{
	return waiting_count(&ctx->daemon->waiting);
}

static int64_t get_leases(struct status_ctx *ctx)
{
	return lease_book_count(&ctx->daemon->leases);
}

static int64_t get_detached(struct status_ctx *ctx)
{
	struct daemon *daemon = ctx->daemon;
	int64_t n;

	(void)pthread_mutex_lock(&daemon->detached_lock);
	n = held_paths(&daemon->detached);
	(void)pthread_mutex_unlock(&daemon->detached_lock);
	return n;
}

static int64_t get_reloads(struct status_ctx *ctx)
{
	return (int64_t)stats_read(&ctx->daemon->reloads);
}

static int64_t get_reloads_failed(struct status_ctx *ctx)
{
	return (int64_t)stats_read(&ctx->daemon->reloads_failed);
}

/* The second number of /proc/self/statm is resident pages. */
static int64_t get_memory(struct status_ctx *ctx)
{
	char text[128] = "";
	long long pages = 0;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	(void)ctx;
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
static const char *get_refused_prefixes(struct status_ctx *ctx)
{
	size_t size = ctx->engine.n_refused_prefixes *
			      (sizeof(ctx->engine.refused_prefixes[0].prefix) + 32) +
		      1,
	       len = 0;
	char *text = arena_alloc(ctx->arena, size);

	if (text == NULL) {
		return "";
	}
	text[0] = '\0';
	for (size_t i = 0; i < ctx->engine.n_refused_prefixes; i++) {
		const struct engine_refused *refused = &ctx->engine.refused_prefixes[i];

		len += (size_t)snprintf(text + len, size - len, "%s%s (%" PRIu64 ")",
					i > 0 ? ", " : "", refused->prefix, refused->count);
	}
	return text;
}

#define STATUS_ENGINE_EACH(X)                                                                      \
	X(counters, counters, "Counters there are; every node of a path is one.")                  \
	X(counters_max, counters_max, "Counters there can be.")                                    \
	X(batch, batch, "Growth of a worker's part of a counter at which it is folded.")           \
	X(counters_created, created, "Counters made since the start.")                             \
	X(counters_removed, removed, "Counters removed since the start.")                          \
	X(counters_expired, expired,                                                               \
	  "Counters of those removed that were idle for their metric's expire_after.")             \
	X(paths_refused, refused, "New paths refused because a ceiling on counters was reached.")  \
	X(paths_overflowed, overflowed, "New paths that were counted under __other__ instead.")    \
	X(folds, folds, "Parts of counters whose growth was folded into totals.")                  \
	X(flushes_run, flushes_run, "Flushes that folded everything.")                             \
	X(flushes_shared, flushes_shared,                                                          \
	  "Flushes that were asked for and answered by one for another.")                          \
	X(flushes_skipped, flushes_skipped,                                                        \
	  "Reads that needed no flush because little was pending.")                                \
	X(pending_signals, pending_signals, "Times a worker told others how much it holds back.")  \
	X(pending_skipped, pending_skipped, "Times it did not, since a flush was due already.")    \
	X(pending, pending, "Growth known to be held back, in magnitude.")                         \
	X(pending_threshold, pending_threshold, "Growth held back at which a fresh read flushes.") \
	X(adds_refused_negative, add_negative, "Negative adds to counters that only grow.")        \
	X(adds_refused_overflow, add_overflow, "Adds that would have left the range of 64 bits.")  \
	X(adds_refused_gone, add_gone, "Adds to counters that had been removed.")                  \
	X(charges_granted, charges_granted, "Charges and leases that were granted.")               \
	X(charges_refused, charges_refused,                                                        \
	  "Times that charges and leases were refused, each try of those that wait included.")     \
	X(charge_flushes, charge_flushes, "Flushes that charges near a max asked for.")            \
	X(limit_changes, gates_closed, "Changes of limits that charges waited for.")               \
	X(rules_file, rules_file, "Rules of the configuration.")                                   \
	X(rules_run_time, rules_run_time, "Rules set at run time.")                                \
	X(limits, planes, "Limits that counters carry, one for each counter and window.")

#define STATUS_ENGINE_GET(name_, member, help_)                   \
	static int64_t get_engine_##name_(struct status_ctx *ctx) \
	{                                                         \
		return (int64_t)ctx->engine.member;               \
	}
STATUS_ENGINE_EACH(STATUS_ENGINE_GET)

#define STATUS_WORKER_GET(name_, help_)                           \
	static int64_t get_worker_##name_(struct status_ctx *ctx) \
	{                                                         \
		return (int64_t)stats_read(&ctx->sum.name_);      \
	}
STATS_EACH(STATUS_WORKER_GET)

#define STATUS_ENGINE_ROW(name_, member, help_) \
	{ .name = #name_, .help = help_, .number = get_engine_##name_ },
#define STATUS_WORKER_ROW(name_, help_) \
	{ .name = #name_, .help = help_, .number = get_worker_##name_ },

static const struct status_row rows[] = {
	{ .name = "version", .help = "Version of the daemon.", .text = get_version },
	{ .name = "state",
	  .help = "What it is doing: starting, running, reloading, stopping.",
	  .text = get_state },
	{ .name = "uptime_seconds", .help = "Time since it started.", .number = get_uptime },
	{ .name = "workers", .help = "Threads that serve connections.", .number = get_workers },
	{ .name = "memory_bytes", .help = "Resident memory of the process.", .number = get_memory },
	{ .name = "connections", .help = "Connections there are.", .number = get_connections },
	{ .name = "connections_refused",
	  .help = "Connections refused because there were max_connections.",
	  .number = get_refused_connections },
	{ .name = "sessions",
	  .help = "Sessions there are, with or without a connection.",
	  .number = get_sessions },
	{ .name = "handles",
	  .help = "Handles that all sessions have room for.",
	  .number = get_handles },
	{ .name = "charges_waiting", .help = "Charges that wait for room.", .number = get_waiting },
	{ .name = "leases",
	  .help = "Leases there are; those that have expired and were not reported are among them.",
	  .number = get_leases },
	{ .name = "detached_paths",
	  .help = "Paths of gauges on which detached charges hold something.",
	  .number = get_detached },
	{ .name = "reloads",
	  .help = "Times the configuration was reloaded.",
	  .number = get_reloads },
	{ .name = "reloads_failed",
	  .help = "Times it was not, for an error in it.",
	  .number = get_reloads_failed },
	STATS_EACH(STATUS_WORKER_ROW) STATUS_ENGINE_EACH(STATUS_ENGINE_ROW){
		.name = "refused_prefixes",
		.help = "Where new paths were refused most, and how often.",
		.text = get_refused_prefixes },
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static void sum_workers(struct daemon *daemon, struct stats *sum)
{
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		const struct stats *stats = &daemon->workers[i].stats;

#define STATUS_SUM(name_, help_) stats_add(&sum->name_, stats_read(&stats->name_));
		STATS_EACH(STATUS_SUM)
#undef STATUS_SUM
	}
}

static void fill(struct status_ctx *ctx, struct status_item *items)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct status_row *row = &rows[i];

		items[i] = (struct status_item){
			.name = text_of(row->name),
			.is_text = row->text != NULL,
			.number = row->number != NULL ? row->number(ctx) : 0,
			.text = text_of(row->text != NULL ? row->text(ctx) : ""),
			.help = text_of(row->help),
		};
	}
}

void serve_status(struct connection *connection, const struct request *request)
{
	struct arena *arena = &connection->worker->out;
	struct status_item *items = arena_alloc(arena, N_ROWS * sizeof(*items));
	struct status_ctx *ctx = arena_alloc(arena, sizeof(*ctx));
	struct reply reply = { .id = request->id, .type = REPLY_STATUS };

	if (items == NULL || ctx == NULL) {
		serve_error(connection, request->id, CODE_RESOURCE_EXHAUSTED,
			    "the daemon is out of memory");
		return;
	}
	memset(ctx, 0, sizeof(*ctx));
	ctx->daemon = connection->worker->daemon;
	ctx->arena = arena;
	sum_workers(ctx->daemon, &ctx->sum);
	engine_stats(ctx->daemon->engine, &ctx->engine);
	fill(ctx, items);
	reply.status.items = items;
	reply.status.n_items = N_ROWS;
	connection_reply(connection, &reply);
}
