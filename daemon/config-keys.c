#include "daemon/config-keys.h"

#include "lib/base/duration.h"
#include "lib/engine/engine.h"
#include "lib/quota/window.h"
#include "proto/message.h"

#define DAEMON(name_, type_, member)                            \
	.section = CONFIG_DAEMON, .name = name_, .type = type_, \
	.offset = offsetof(struct config, member)
#define METRIC(name_, type_, member)                            \
	.section = CONFIG_METRIC, .name = name_, .type = type_, \
	.offset = offsetof(struct config_metric, member)

#define QUOTA(name_, type_, member)                            \
	.section = CONFIG_QUOTA, .name = name_, .type = type_, \
	.offset = offsetof(struct config_quota, member)

const struct config_key config_keys[] = {
	{
		.section = CONFIG_DAEMON,
		.name = "listen",
		.type = CONFIG_LISTEN,
		.fixed = true,
		.flag = "URL",
		.help = "Where to listen: unix:PATH or tcp:HOST:PORT; for StatsD lines statsd+udp:HOST:PORT, statsd+tcp:HOST:PORT or "
			"statsd+unix:PATH; http:HOST:PORT to read what is counted. May be given more than once; a later file or a flag replaces "
			"what earlier ones said. HOST is a name, an IPv4 address, an IPv6 address in brackets, or * for all addresses of both "
			"families; 0.0.0.0 is all of IPv4 and [::] all of IPv6, each without the other. Without any: "
			"the sockets that systemd passed, or else " ADDRESS_DEFAULT ".",
	},
	{
		DAEMON("socket_mode", CONFIG_MODE, socket_mode),
		.fallback = 0666,
		.min = 0,
		.max = 0777,
		.fixed = true,
		.help = "Permissions of unix sockets: who may write to one may count, charge and read.",
	},
	{
		DAEMON("admin_group", CONFIG_GROUP, settings.admin_group),
		.zero = "none",
		.help = "The group whose members may declare metrics, set and remove quotas, reset and import counters, and have the configuration reloaded, "
			"over a unix socket. Root and the user that the daemon runs as may in any case, and nobody over TCP.",
	},
	{
		DAEMON("workers", CONFIG_COUNT, workers),
		.min = 1,
		.max = ENGINE_MAX_WORKERS,
		.zero = "auto",
		.fixed = true,
		.flag = "N",
		.help = "How many threads serve connections. auto: one for each CPU.",
	},
	{
		DAEMON("batch", CONFIG_COUNT, batch),
		.min = 1,
		.max = 1 << 20,
		.zero = "auto",
		.fixed = true,
		.help = "A worker's part of a counter is folded into the totals when it has grown by so much. auto: twice the number of "
			"CPUs, and at least 32.",
	},
	{
		DAEMON("flush_interval", CONFIG_DURATION, flush_interval_ns),
		.fallback = DURATION_S,
		.min = 10 * DURATION_MS,
		.max = DURATION_H,
		.help = "How often everything is folded, which bounds the age of every total.",
	},
	{
		DAEMON("max_counters", CONFIG_COUNT, max_counters),
		.fallback = ENGINE_MAX_COUNTERS,
		.min = 1,
		.max = ENGINE_MAX_COUNTERS_LIMIT,
		.fixed = true,
		.help = "How many counters there can be. Every node of a path is one.",
	},
	{
		DAEMON("max_connections", CONFIG_COUNT, max_connections),
		.fallback = 4096,
		.min = 1,
		.max = 1000000,
		.help = "How many connections there can be. One more is told so and closed.",
	},
	{
		DAEMON("max_statsd_connections", CONFIG_COUNT, max_statsd_connections),
		.fallback = 1024,
		.min = 1,
		.max = 1000000,
		.help = "How many TCP connections with StatsD lines there can be, beside those. One more is closed at once.",
	},
	{
		DAEMON("statsd_idle_timeout", CONFIG_DURATION, settings.statsd_idle_ns),
		.fallback = 10 * DURATION_M,
		.min = 10 * DURATION_MS,
		.max = 31 * DURATION_D,
		.zero = "never",
		.help = "A TCP connection with StatsD lines on which nothing comes for so long is closed.",
	},
	{
		DAEMON("statsd_names", CONFIG_BYTES, statsd_names),
		.fallback = 128 << 20,
		.min = 1 << 20,
		.max = INT64_C(1) << 34,
		.fixed = true,
		.help = "How much memory each worker may take to remember the names of StatsD lines. When that is full it forgets them all and "
			"looks each of them up again.",
	},
	{
		DAEMON("max_sessions", CONFIG_COUNT, max_sessions),
		.fallback = 10000,
		.min = 1,
		.max = 1000000,
		.help = "How many sessions there can be, with or without a connection.",
	},
	{
		DAEMON("max_session_lifetime", CONFIG_DURATION, settings.max_lifetime_ns),
		.fallback = DURATION_D,
		.min = 0,
		.max = 31 * DURATION_D,
		.help = "How long a session can outlive its connection; a client that asks for more gets this.",
	},
	{
		DAEMON("max_handles", CONFIG_COUNT, settings.max_handles),
		.fallback = 1000000,
		.min = 1,
		.max = 1 << 26,
		.help = "How many handles a session can have; a handle is a number below this.",
	},
	{
		DAEMON("max_handles_total", CONFIG_COUNT, max_handles_total),
		.fallback = 16000000,
		.min = 1,
		.max = 1 << 30,
		.help = "How many handles all sessions together can have.",
	},
	{
		DAEMON("max_items", CONFIG_COUNT, settings.max_items),
		.fallback = 65536,
		.min = 1,
		.max = 65536,
		.help = "How many paths or entries one request can have.",
	},
	{
		DAEMON("max_walks", CONFIG_COUNT, settings.max_walks),
		.fallback = 4,
		.min = 1,
		.max = 64,
		.help = "How many walks can be under way on one connection.",
	},
	{
		/* The least is two frames: reading pauses at half of it, and the reply then on its way still fits. */
		DAEMON("max_output", CONFIG_BYTES, settings.max_output),
		.fallback = 4 << 20,
		.min = (2 << 20) + 16,
		.max = 1 << 30,
		.help = "How much the daemon keeps for a client that does not read. At half of it no more requests are taken from this client.",
	},
	{
		DAEMON("max_held_paths", CONFIG_COUNT, settings.max_held),
		.fallback = 100000,
		.min = 1,
		.max = 10000000,
		.help = "On how many paths of gauges a session can hold something.",
	},
	{
		DAEMON("max_detached_paths", CONFIG_COUNT, settings.max_detached),
		.fallback = 100000,
		.min = 1,
		.max = 10000000,
		.help = "On how many paths of gauges detached charges, which no session holds, can hold something.",
	},
	{
		DAEMON("max_leases", CONFIG_COUNT, settings.max_leases),
		.fallback = MESSAGE_MAX_LEASES,
		.min = 1,
		.max = 1000000,
		.help = "How many leases a session can have.",
	},
	{
		DAEMON("max_leases_total", CONFIG_COUNT, max_leases_total),
		.fallback = 1000000,
		.min = 1,
		.max = 1 << 26,
		.help = "How many leases all sessions together can have.",
	},
	{
		DAEMON("max_waiting", CONFIG_COUNT, max_waiting),
		.fallback = 100000,
		.min = 1,
		.max = 10000000,
		.help = "How many charges can wait for room at a time.",
	},
	{
		DAEMON("max_waiting_bytes", CONFIG_BYTES, max_waiting_bytes),
		.fallback = 64 << 20,
		.min = 1 << 20,
		.max = INT64_C(1) << 36,
		.help = "How much memory they can take together.",
	},
	{
		DAEMON("hello_timeout", CONFIG_DURATION, settings.hello_timeout_ns),
		.fallback = 10 * DURATION_S,
		.min = 10 * DURATION_MS,
		.max = DURATION_H,
		.help = "A new connection must say Hello within this.",
	},
	{
		DAEMON("idle_frame", CONFIG_DURATION, settings.idle_frame_ns),
		.fallback = 10 * DURATION_S,
		.min = 10 * DURATION_MS,
		.max = DURATION_H,
		.help = "A frame that was begun must be whole within this.",
	},
	{
		DAEMON("write_timeout", CONFIG_DURATION, settings.write_timeout_ns),
		.fallback = 30 * DURATION_S,
		.min = 10 * DURATION_MS,
		.max = DURATION_H,
		.help = "A client that takes nothing of what waits for it for so long is dropped.",
	},
	{
		DAEMON("stop_timeout", CONFIG_DURATION, stop_timeout_ns),
		.fallback = 5 * DURATION_S,
		.min = 0,
		.max = 10 * DURATION_M,
		.help = "How long a stop may take to answer what the sockets hold.",
	},
	{
		DAEMON("http_max_connections", CONFIG_COUNT, http_max_connections),
		.fallback = 1024,
		.min = 2,
		.max = 100000,
		.fixed = true,
		.help = "How many connections for HTTP there can be. Who comes then waits to be accepted.",
	},
	{
		DAEMON("http_timeout", CONFIG_DURATION, http_timeout_ns),
		.fallback = 30 * DURATION_S,
		.min = 10 * DURATION_MS,
		.max = DURATION_H,
		.fixed = true,
		.help = "A connection for HTTP on which nothing comes for so long is closed; so a page must be taken whole within it.",
	},
	{
		DAEMON("state", CONFIG_PATH, state),
		.fallback_path = CONFIG_DEFAULT_STATE,
		.zero = "none",
		.fixed = true,
		.flag = "FILE",
		.help = "The file that keeps what was counted, limits, and what is held and leased, across restarts and crashes; one daemon has it at a "
			"time. none: all of it ends with the daemon.",
	},
	{
		DAEMON("checkpoint_interval", CONFIG_DURATION, checkpoint_interval_ns),
		.fallback = 200 * DURATION_MS,
		.min = 10 * DURATION_MS,
		.max = 10 * DURATION_M,
		.help = "How often what is new is written to that file, while there is anything; sooner if a client waits for it.",
	},
	{
		METRIC("kind", CONFIG_KIND, kind),
		.help = "counter: it only grows. gauge: it goes up and down.",
	},
	{
		METRIC("max_counters", CONFIG_COUNT, max_counters),
		.min = 1,
		.max = ENGINE_MAX_COUNTERS_LIMIT,
		.zero = "none",
		.help = "How many counters this metric can have, itself included. none: only the daemon's own max_counters counts.",
	},
	{
		METRIC("overflow", CONFIG_BOOL, overflow),
		.max = 1,
		.help = "What happens to a new path past max_counters. yes: it is counted under PARENT/" ENGINE_OTHER
			". no: it is refused.",
	},
	{
		METRIC("expire_after", CONFIG_DURATION, expire_after_ns),
		.min = DURATION_S,
		.max = 3660 * DURATION_D,
		.zero = "never",
		.help = "A counter without children that has not grown for so long is removed; its value stays in its parent. "
			"Not one that a [quota] names, one with usage of a max or rate that a template gives it, nor "
			"one of which a client has leased units.",
	},
	{
		METRIC("help", CONFIG_TEXT, help),
		.fallback_path = "",
		.zero = "none",
		.help = "What the metric counts, in a sentence; for Prometheus.",
	},
	{
		METRIC("unit", CONFIG_UNIT, unit),
		.fallback_path = "",
		.zero = "none",
		.help = "What it counts in, such as bytes or seconds; for Prometheus, where it is at the end of the metric's name.",
	},
	{
		METRIC("levels", CONFIG_LEVELS, levels),
		.help = "What the segments of its paths are called, from the second on: host, route. Prometheus gets them as labels. The tags of a StatsD "
			"line are sorted by it: the values of these tags become the path, in this order, and other tags are dropped. Without "
			"it each tag is a segment KEY=VALUE.",
	},
	{
		QUOTA("max", CONFIG_LIMIT, max),
		.fallback = QUOTA_NONE,
		.min = 0,
		.max = QUOTA_MAX_LIMIT,
		.help = "A charge that would pass this is refused. 0 refuses all. What is added is counted in any case.",
	},
	{
		QUOTA("high", CONFIG_LIMIT, high),
		.fallback = QUOTA_NONE,
		.min = 0,
		.max = QUOTA_MAX_LIMIT,
		.help = "A charge that passes this is granted, and told so.",
	},
	{
		QUOTA("low", CONFIG_LIMIT, low),
		.min = 0,
		.max = QUOTA_MAX_LIMIT,
		.help = "So much is protected against siblings as far as there is room. Without a window only.",
	},
	{
		QUOTA("min", CONFIG_LIMIT, min),
		.min = 0,
		.max = QUOTA_MAX_LIMIT,
		.help = "So much is protected against siblings. Without a window only.",
	},
	{
		QUOTA("per", CONFIG_DURATION, per_ns),
		.min = WINDOW_MIN_NS,
		.max = WINDOW_MAX_NS,
		.zero = "none",
		.help = "The window: max and high are for each stretch of this length. Stretches follow each other from 1970-01-01 00:00 UTC.",
	},
	{
		QUOTA("calendar", CONFIG_CALENDAR, calendar),
		.help = "The window: max and high are for each day, week (from Monday) or month, in UTC.",
	},
	{
		QUOTA("rate", CONFIG_RATE, rate),
		.help = "The window: COUNT/DURATION. Instead of max and high: so many in this time, in the long run.",
	},
	{
		QUOTA("burst", CONFIG_LIMIT, burst),
		.min = 1,
		.max = QUOTA_MAX_LIMIT,
		.zero = "rate",
		.help = "How many of a rate can come at once. rate: as many as its COUNT.",
	},
	{
		QUOTA("shadow", CONFIG_BOOL, shadow),
		.max = 1,
		.help = "Try the limit out: decide and count what would be refused, but refuse nothing.",
	},
};

const size_t config_n_keys = sizeof(config_keys) / sizeof(config_keys[0]);
