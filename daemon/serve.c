#include "daemon/serve.h"

#include "daemon/clock.h"
#include "daemon/connection.h"
#include "daemon/daemon.h"
#include "daemon/peer.h"
#include "daemon/session.h"
#include "daemon/worker.h"
#include "lib/engine/engine.h"
#include "lib/names/path.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void count_error(struct connection *connection, enum code code)
{
	struct stats *stats = &connection->worker->stats;

	switch (code) {
	case CODE_INVALID_ARGUMENT:
		stats_add(&stats->errors_invalid_argument, 1);
		break;
	case CODE_NOT_FOUND:
		stats_add(&stats->errors_not_found, 1);
		break;
	case CODE_PERMISSION_DENIED:
		stats_add(&stats->errors_permission_denied, 1);
		break;
	case CODE_RESOURCE_EXHAUSTED:
		stats_add(&stats->errors_resource_exhausted, 1);
		break;
	case CODE_FAILED_PRECONDITION:
		stats_add(&stats->errors_failed_precondition, 1);
		break;
	default:
		stats_add(&stats->errors_other, 1);
		break;
	}
}

/* Bytes of the UTF-8 character at `at`; 0: there is none. */
static size_t utf8_len(const char *at)
{
	uint8_t first = (uint8_t)at[0], second = (uint8_t)at[1];
	size_t len = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	if (len == 0 || first > 0xf4 || (first == 0xe0 && second < 0xa0) ||
	    (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
	    (first == 0xf4 && second > 0x8f)) {
		return 0;
	}
	for (size_t i = 1; i < len; i++) {
		if (((uint8_t)at[i] & 0xc0) != 0x80) {
			return 0;
		}
	}
	return len;
}

const char *serve_clean(char *text)
{
	for (char *at = text; *at != '\0';) {
		size_t len = utf8_len(at);

		if (len == 0) {
			*at = strlen(at) < 4 && (uint8_t)*at >= 0xc2 ? '\0' : '?';
			len = *at != '\0';
		}
		at += len;
	}
	return text;
}

struct reply *serve_fault(struct connection *connection, uint64_t id, enum code code,
			  const char *format, va_list args, struct serve_fault *ret_fault)
{
	(void)vsnprintf(ret_fault->text, sizeof(ret_fault->text), format, args);
	ret_fault->reply = (struct reply){
		.id = id,
		.type = REPLY_ERROR,
		.error = { .code = code, .text = text_of(serve_clean(ret_fault->text)) },
	};
	count_error(connection, code);
	return &ret_fault->reply;
}

void serve_error(struct connection *connection, uint64_t id, enum code code, const char *format,
		 ...)
{
	struct serve_fault fault;
	va_list args;

	va_start(args, format);
	connection_reply(connection, serve_fault(connection, id, code, format, args, &fault));
	va_end(args);
}

bool serve_check_items(struct connection *connection, uint64_t id, size_t n, const char *what)
{
	int64_t max = connection->worker->settings.max_items;

	if (n <= (size_t)max) {
		return true;
	}
	serve_error(connection, id, CODE_INVALID_ARGUMENT,
		    "%zu %s in one request; at most %" PRIi64 " are allowed", n, what, max);
	return false;
}

enum code serve_engine_code(int r)
{
	switch (r) {
	case 0:
		return CODE_OK;
	case ENGINE_E_PATH:
	case ENGINE_E_NEGATIVE:
	case ENGINE_E_CURSOR:
	case ENGINE_E_AMOUNT:
	case ENGINE_E_RULE:
		return CODE_INVALID_ARGUMENT;
	case ENGINE_E_NOT_FOUND:
	case ENGINE_E_GONE:
		return CODE_NOT_FOUND;
	case ENGINE_E_OVERFLOW:
		return CODE_OUT_OF_RANGE;
	case ENGINE_E_FULL:
	case ENGINE_E_METRIC_FULL:
		return CODE_RESOURCE_EXHAUSTED;
	case ENGINE_E_KIND:
	case ENGINE_E_BUSY:
	case ENGINE_E_UNDERFLOW:
		return CODE_FAILED_PRECONDITION;
	default:
		return r < 0 ? CODE_RESOURCE_EXHAUSTED : CODE_INTERNAL;
	}
}

const char *serve_engine_text(int r, struct text path)
{
	switch (r) {
	case ENGINE_E_PATH:
		return path_error_text(path_check(path.at, path.len, NULL));
	case ENGINE_E_NEGATIVE:
		return "a negative add to a counter that only grows; declare the metric as a gauge";
	case ENGINE_E_CURSOR:
		return "this cursor does not belong to a walk of this root and depth";
	case ENGINE_E_NOT_FOUND:
		return "there is no such counter";
	case ENGINE_E_GONE:
		return "the counter was removed; intern its path again";
	case ENGINE_E_OVERFLOW:
		return "the total would leave the range of 64 bits";
	case ENGINE_E_FULL:
		return "the daemon has as many counters as it may have (max_counters)";
	case ENGINE_E_METRIC_FULL:
		return "the metric has as many counters as it may have (its max_counters)";
	case ENGINE_E_AMOUNT:
		return "an amount is out of range; allowed is 1 to 4611686018427387904";
	case ENGINE_E_UNDERFLOW:
		return "the counter has less than that by now; adds have taken it off";
	case ENGINE_E_RULE:
		return "this is not a rule";
	case ENGINE_E_KIND:
		return "the kind can't change while the metric has counters";
	default:
		return r < 0 ? "the daemon is out of memory" : "internal error";
	}
}

void serve_errors_add(struct connection *connection, struct serve_errors *errors, size_t index,
		      enum code code, const char *text)
{
	if (errors->n == errors->size) {
		size_t size = errors->size > 0 ? errors->size * 2 : 16;
		struct item_error *items =
			arena_alloc(&connection->worker->out, size * sizeof(*items));

		if (items == NULL) {
			connection->lost =
				true; /* the client could not be told what was not counted */
			return;
		}
		if (errors->n > 0) {
			memcpy(items, errors->items, errors->n * sizeof(*items));
		}
		errors->items = items;
		errors->size = size;
	}
	errors->items[errors->n] = (struct item_error){
		.index = (uint32_t)index,
		.code = code,
		.text = text_of(errors->n < SERVE_MAX_TEXTS ? text : ""),
	};
	errors->n++;
}

static void serve_ping(struct connection *connection, const struct request *request)
{
	const struct reply reply = { .id = request->id, .type = REPLY_PONG };

	connection_reply(connection, &reply);
}

/* What the peer must be an admin for; NULL: who could open the socket may do it. */
static const char *order_of(const struct request *request)
{
	switch (request->type) {
	case REQUEST_METRIC_SET:
		return "declare metrics";
	case REQUEST_QUOTA_SET:
		return "set limits";
	case REQUEST_QUOTA_REMOVE:
		return "remove limits";
	case REQUEST_RESET:
		return "reset counters";
	case REQUEST_IMPORT:
		return "import counters";
	case REQUEST_RELOAD:
		return "have the configuration reloaded";
	default:
		return NULL;
	}
}

/* Asked anew for each: a reload may have named another group. */
static bool is_allowed(struct connection *connection, const struct request *request)
{
	struct worker *worker = connection->worker;
	const char *order = order_of(request);

	if (order == NULL || peer_is_admin(connection->fd, worker->settings.admin_group)) {
		return true;
	}
	log_event(&worker->daemon->log, LOG_KIND_DENIED, clock_monotonic_ns(), LOG_WARNING,
		  &(struct log_about){ .id = LOG_ID_DENIED, .peer = connection->peer },
		  "denied: it may not %s", order);
	serve_error(
		connection, request->id, CODE_PERMISSION_DENIED,
		"only root, the daemon's own user and the members of its admin_group may %s, over a unix socket",
		order);
	return false;
}

int serve(struct connection *connection, const struct request *request, unsigned *ret_worker)
{
	if (request->type == REQUEST_HELLO) {
		return serve_hello(connection, request, ret_worker);
	}
	if (connection->state == CONNECTION_NEW) {
		stats_add(&connection->worker->stats.faults_protocol, 1);
		serve_unwelcome(connection, request->id, CODE_FAILED_PRECONDITION,
				"the first request on a connection must be Hello");
		return SERVE_OK;
	}
	if (connection->session != NULL) {
		session_asked(connection->session);
	}
	if (!is_allowed(connection, request)) {
		return SERVE_OK;
	}
	switch (request->type) {
	case REQUEST_ADD:
		serve_add(connection, request);
		break;
	case REQUEST_INTERN:
		return serve_intern(connection, request);
	case REQUEST_GET:
		serve_get(connection, request);
		break;
	case REQUEST_WALK:
		serve_walk(connection, request);
		break;
	case REQUEST_FLUSH:
		serve_flush(connection, request);
		break;
	case REQUEST_STATUS:
		serve_status(connection, request);
		break;
	case REQUEST_METRIC_SET:
		serve_metric_set(connection, request);
		break;
	case REQUEST_METRIC_GET:
		serve_metric_get(connection, request);
		break;
	case REQUEST_METRIC_LIST:
		serve_metric_list(connection, request);
		break;
	case REQUEST_RESET:
		return serve_reset(connection, request);
	case REQUEST_IMPORT:
		return serve_import(connection, request);
	case REQUEST_PING:
		serve_ping(connection, request);
		break;
	case REQUEST_RELOAD:
		serve_reload(connection, request);
		break;
	case REQUEST_END:
		serve_end(connection, request);
		break;
	case REQUEST_CHARGE:
		serve_charge(connection, request);
		break;
	case REQUEST_UNCHARGE:
		return serve_uncharge(connection, request);
	case REQUEST_LEASE:
		serve_lease(connection, request);
		break;
	case REQUEST_LEASE_RENEW:
		serve_lease_renew(connection, request);
		break;
	case REQUEST_LEASE_RETURN:
		serve_lease_return(connection, request);
		break;
	case REQUEST_QUOTA_SET:
		serve_quota_set(connection, request);
		break;
	case REQUEST_QUOTA_REMOVE:
		serve_quota_remove(connection, request);
		break;
	case REQUEST_QUOTA_LIST:
		serve_quota_list(connection, request);
		break;
	case REQUEST_QUOTA_EXPLAIN:
		serve_quota_explain(connection, request);
		break;
	case REQUEST_HELLO:
	case REQUEST_NONE:
		serve_error(connection, request->id, CODE_UNIMPLEMENTED,
			    "this daemon does not know this request");
		break;
	}
	return SERVE_OK;
}
