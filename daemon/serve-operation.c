/*
 * Operations: what all of them have in common, their numbers, their answers, and what limits have to say.
 */
#include "daemon/serve-operation.h"

#include "daemon/connection.h"
#include "daemon/session.h"
#include "daemon/worker.h"
#include "lib/engine/quota.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* ---- numbers ---- */

static void tell_again(struct connection *connection, uint64_t id, uint64_t number)
{
	struct worker *worker = connection->worker;
	struct reply reply;

	stats_add(&worker->stats.operations_duplicate, 1);
	operations_tell(&connection->session->operations, number, id, &worker->out, &reply);
	connection_reply(connection, &reply);
}

static bool take(struct connection *connection, uint64_t id, uint64_t number)
{
	if (operations_take(&connection->session->operations, number) < 0) {
		serve_error(connection, id, CODE_RESOURCE_EXHAUSTED, "the daemon is out of memory");
		return false;
	}
	keep_answers(connection->session);
	stats_add(&connection->worker->stats.operations, 1);
	return true;
}

bool serve_operation(struct connection *connection, uint64_t id, uint64_t number)
{
	const struct session *session = connection->session;

	if (session == NULL) {
		serve_error(connection, id, CODE_FAILED_PRECONDITION,
			    "this connection has no session; say Hello with one");
		return false;
	}
	if (number == 0) {
		serve_error(connection, id, CODE_INVALID_ARGUMENT,
			    "the number is 0; numbers of operations begin at 1");
		return false;
	}
	switch (operations_look_up(&session->operations, number)) {
	case OPERATION_NEW:
	case OPERATION_AGAIN:
		return take(connection, id, number);
	case OPERATION_ANSWERED:
		tell_again(connection, id, number);
		break;
	case OPERATION_WAITING:
		serve_error(connection, id, CODE_FAILED_PRECONDITION,
			    "operation %" PRIu64 " is waiting for room; it will be answered",
			    number);
		break;
	case OPERATION_FORGOTTEN:
		serve_error(connection, id, CODE_FAILED_PRECONDITION,
			    "operation %" PRIu64
			    " is used up, and its answer is not kept any more; %" PRIu64
			    " is the next one",
			    number, session->operations.last + 1);
		break;
	case OPERATION_GAP:
		serve_error(connection, id, CODE_FAILED_PRECONDITION,
			    "operation %" PRIu64 " came where operation %" PRIu64 " was expected",
			    number, session->operations.last + 1);
		break;
	}
	return false;
}

bool serve_had_failed(struct connection *connection, const struct request *request, uint64_t number)
{
	if (!request->known.present || request->known.done) {
		return false;
	}
	serve_failure(connection, request->id, number, CODE_FAILED_PRECONDITION,
		      "it had failed, as its client says that an earlier daemon has answered");
	return true;
}

void serve_answer(struct connection *connection, const struct reply *reply)
{
	operations_keep(&connection->session->operations, reply, &connection->worker->out);
	keep_answers(connection->session);
	connection_reply(connection, reply);
}

void serve_failure(struct connection *connection, uint64_t id, uint64_t number, enum code code,
		   const char *format, ...)
{
	struct serve_fault fault;
	struct reply *reply;
	va_list args;

	va_start(args, format);
	reply = serve_fault(connection, id, code, format, args, &fault);
	va_end(args);
	reply->error.operation = number;
	if (number == 0) {
		connection_reply(connection, reply); /* a dry run */
	} else {
		serve_answer(connection, reply);
	}
}

void serve_engine_failure(struct connection *connection, uint64_t id, uint64_t number, int r,
			  struct text path)
{
	const char *slash = memchr(path.at, '/', path.len);
	size_t metric_len = slash != NULL ? (size_t)(slash - path.at) : path.len;

	switch (r) {
	case ENGINE_E_PATH:
		serve_failure(connection, id, number, CODE_INVALID_ARGUMENT, "%s",
			      serve_engine_text(r, path));
		break;
	case ENGINE_E_NOT_FOUND:
		serve_failure(connection, id, number, CODE_NOT_FOUND,
			      "there is no metric %.*s: nobody declared, counted or limited it",
			      (int)metric_len, path.at);
		break;
	default:
		serve_failure(connection, id, number, serve_engine_code(r), "%s",
			      serve_engine_text(r, path));
		break;
	}
}

/* ---- what limits have to say ---- */

struct rule_window serve_window(const struct window *window)
{
	struct rule_window wire = { .kind = (enum rule_window_kind)window->kind };

	/* The numbers are the same on both sides. */
	if (window->kind == WINDOW_PER) {
		wire.duration_ms = (uint64_t)window->duration_ns / 1000000;
	} else if (window->kind == WINDOW_CALENDAR) {
		wire.unit = (enum rule_window_unit)window->unit;
	}
	return wire;
}

bool serve_copy(struct arena *arena, const char *at, size_t len, struct text *ret_text)
{
	char *copy = arena_alloc(arena, len);

	if (copy == NULL) {
		return false;
	}
	memcpy(copy, at, len);
	*ret_text = (struct text){ .at = copy, .len = len };
	return true;
}

static bool is_refusing(enum binding_kind kind)
{
	return kind == BINDING_MAX || kind == BINDING_RATE;
}

static struct binding *place_for(struct serve_bindings *bindings, bool refusing)
{
	struct binding *place;

	if (bindings->items == NULL) {
		bindings->items =
			arena_alloc(bindings->arena, MESSAGE_MAX_BINDINGS * sizeof(struct binding));
	}
	if (bindings->items == NULL ||
	    (bindings->n == MESSAGE_MAX_BINDINGS &&
	     !(refusing && bindings->n_refusing < MESSAGE_MAX_BINDINGS))) {
		bindings->omitted++;
		return NULL;
	}
	if (!refusing) {
		return &bindings->items[bindings->n++];
	}
	/* The first that does not refuse makes way, to the end or out. */
	place = &bindings->items[bindings->n_refusing++];
	if (bindings->n == MESSAGE_MAX_BINDINGS) {
		bindings->omitted++;
	} else {
		bindings->items[bindings->n++] = *place;
	}
	return place;
}

static enum binding_kind kind_of(enum engine_binding_kind kind)
{
	switch (kind) {
	case ENGINE_BINDS_MAX:
		return BINDING_MAX;
	case ENGINE_BINDS_RATE:
		return BINDING_RATE;
	case ENGINE_OVER_HIGH:
		return BINDING_HIGH;
	case ENGINE_SHADOW:
		break;
	}
	return BINDING_SHADOW;
}

void serve_bindings_note(void *ctx, const struct engine_binding *from)
{
	struct serve_bindings *bindings = ctx;
	enum binding_kind kind = kind_of(from->kind);
	struct binding *place;
	struct text path = text_of("");

	if (is_refusing(kind)) {
		bindings->never = bindings->never || from->retry_after_ms < 0;
		if (from->retry_after_ms > bindings->retry_after_ms) {
			bindings->retry_after_ms = from->retry_after_ms;
		}
	}
	place = place_for(bindings, is_refusing(kind));
	if (place == NULL) {
		return;
	}
	(void)serve_copy(bindings->arena, from->path, from->len, &path);
	*place = (struct binding){
		.kind = kind,
		.path = path,
		.window = serve_window(from->window),
		.limit = from->limit,
		.usage = from->usage,
		.left = from->left,
		.retry_after_ms =
			from->retry_after_ms < 0 ? MESSAGE_RETRY_NEVER : from->retry_after_ms,
	};
}
