/*
 * Metric declarations.
 */
#include "daemon/serve.h"

#include "daemon/clock.h"
#include "daemon/connection.h"
#include "daemon/daemon.h"
#include "daemon/worker.h"
#include "lib/engine/engine.h"
#include "lib/names/path.h"

#define METRIC_MAX_EXPIRE_MS (UINT64_C(3660) * 24 * 3600 * 1000) /* as in the configuration */

static void answer(struct connection *connection, uint64_t id, struct text name,
		   const struct engine_metric *metric)
{
	const struct reply reply = {
		.id = id,
		.type = REPLY_METRIC,
		.metric = {
			.name = name,
			.kind = metric->kind == ENGINE_GAUGE ? KIND_GAUGE : KIND_COUNTER,
			.max_counters = metric->max_counters,
			.overflow = metric->overflow,
			.expire_after_ms = (uint64_t)metric->expire_after_ns / 1000000,
		},
	};

	connection_reply(connection, &reply);
}

static void refuse(struct connection *connection, uint64_t id, int r, struct text name)
{
	if (r == ENGINE_E_PATH) {
		enum path_error fault = path_check_segment(name.at, name.len, NULL);

		serve_error(connection, id, CODE_INVALID_ARGUMENT,
			    "the name of a metric is one segment of a path: %s",
			    fault == PATH_E_TOO_DEEP ? "it has no '/'" : path_error_text(fault));
	} else if (r == ENGINE_E_NOT_FOUND) {
		serve_error(connection, id, CODE_NOT_FOUND, "there is no such metric");
	} else {
		serve_error(connection, id, serve_engine_code(r), "%s", serve_engine_text(r, name));
	}
}

void serve_metric_set(struct connection *connection, const struct request *request)
{
	const struct metric *set = &request->metric_set;
	struct daemon *daemon = connection->worker->daemon;
	struct engine_metric metric = {
		.kind = set->kind == KIND_GAUGE ? ENGINE_GAUGE : ENGINE_COUNTER,
		.max_counters = set->max_counters,
		.overflow = set->overflow,
		.expire_after_ns = (int64_t)set->expire_after_ms * 1000000,
	};
	int r;

	if (!kind_known(set->kind)) {
		serve_error(connection, request->id, CODE_INVALID_ARGUMENT,
			    "kind %d does not exist; 0 is counter, 1 gauge", (int)set->kind);
		return;
	}
	if (set->expire_after_ms > METRIC_MAX_EXPIRE_MS ||
	    (set->expire_after_ms > 0 && set->expire_after_ms < 1000)) {
		serve_error(connection, request->id, CODE_INVALID_ARGUMENT,
			    "expire_after is out of range; allowed is 1s to 3660d, or 0 for never");
		return;
	}
	r = engine_declare(daemon->engine, set->name.at, set->name.len, &metric);
	if (r != 0) {
		refuse(connection, request->id, r, set->name);
		return;
	}
	daemon_declared(daemon);
	log_event(&daemon->log, LOG_KIND_CONTROL, clock_monotonic_ns(), LOG_INFO,
		  &(struct log_about){
			  .id = LOG_ID_METRIC, .peer = connection->peer, .path = set->name },
		  "declared metric %.*s", (int)set->name.len, set->name.at);
	answer(connection, request->id, set->name, &metric);
}

void serve_metric_get(struct connection *connection, const struct request *request)
{
	struct engine_metric metric;
	struct text name = request->metric_get;
	int r = engine_metric(connection->worker->daemon->engine, name.at, name.len, &metric);

	if (r == ENGINE_E_NOT_FOUND && path_check_segment(name.at, name.len, NULL) != PATH_OK) {
		r = ENGINE_E_PATH;
	}
	if (r != 0) {
		refuse(connection, request->id, r, name);
		return;
	}
	answer(connection, request->id, name, &metric);
}
