/*
 * Hello, End, Add: who the client is, and what it reports.
 */
#include "daemon/serve.h"

#include "daemon/clock.h"
#include "daemon/connection.h"
#include "daemon/daemon.h"
#include "daemon/session.h"
#include "daemon/worker.h"
#include "lib/engine/engine.h"

#include <inttypes.h>
#include <string.h>

/* ---- Hello ---- */

/* NULL if this Hello may be answered with a Welcome. */
static const char *hello_fault(const struct hello *hello)
{
	if (hello->version == 0) {
		return "version 0 does not exist; this daemon speaks version 1";
	}
	if (hello->session.len != 0 && hello->session.len != MESSAGE_SESSION_BYTES) {
		return "a session is 16 random bytes, or none";
	}
	if (hello->session.len != 0 && hello->next_batch == 0) {
		return "next_batch is 0; batch numbers begin at 1";
	}
	if (hello->agent.len > MESSAGE_MAX_AGENT) {
		return "the agent is longer than 128 bytes";
	}
	return NULL;
}

static uint32_t clamp_u32(int64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static struct limits limits_of(const struct settings *settings)
{
	return (struct limits){
		.max_frame = MESSAGE_MAX_FRAME,
		.max_handles = clamp_u32(settings->max_handles),
		.max_items = clamp_u32(settings->max_items),
		.max_walks = clamp_u32(settings->max_walks),
		.max_lifetime_ms = clamp_u32(settings->max_lifetime_ns / 1000000),
		.max_output = (uint64_t)settings->max_output,
		.idle_frame_ms = clamp_u32(settings->idle_frame_ns / 1000000),
		.max_charge_items = MESSAGE_MAX_CHARGE_ITEMS,
		.max_operations_kept = MESSAGE_MAX_OPERATIONS_KEPT,
		.max_leases = clamp_u32(settings->max_leases),
		.max_wait_ms = MESSAGE_MAX_WAIT_MS,
		.max_waits = MESSAGE_MAX_WAITS,
	};
}

static void welcome(struct connection *connection, uint64_t id)
{
	struct worker *worker = connection->worker;
	const struct session *session = connection->session;
	const struct daemon *daemon = worker->daemon;
	const struct reply reply = {
		.id = id,
		.type = REPLY_WELCOME,
		.welcome = {
			.version = MESSAGE_VERSION,
			.daemon = text_of("rationd/" RATION_VERSION),
			.resumed = session != NULL && session->resumable,
			.last_batch = session != NULL ? session->last_batch : 0,
			.last_operation = session != NULL ? session->operations.last : 0,
			.limits = limits_of(&worker->settings),
			.incarnation = { .at = (const char *)daemon->incarnation, .len = sizeof(daemon->incarnation) },
			.keeps = worker->keep.on,
			.restored = session != NULL && session->restored,
			.durable_batch = session != NULL ? session->keep.durable_batch : 0,
			.durable_operation = session != NULL ? session->keep.durable_operation : 0,
		},
	};

	connection->state = CONNECTION_OPEN;
	connection->hello_since = 0;
	connection_reply(connection, &reply);
}

/*
 * The client was welcomed by this daemon before. If its session is new all the same, it was forgotten, and a Welcome that says so can get lost: so it is said again, until
 * something is asked for in the session. Else the client would go on with handles, numbers and held charges that are gone.
 */
static bool was_welcome(const struct daemon *daemon, const struct hello *hello)
{
	return hello->incarnation.len == sizeof(daemon->incarnation) &&
	       memcmp(hello->incarnation.at, daemon->incarnation, sizeof(daemon->incarnation)) == 0;
}

/* Another connection may have the session: the newer one gets it, for the older one may be dead without knowing it. */
static void take_over(struct connection *connection, struct session *session)
{
	struct connection *older = session->connection;

	if (older != NULL) {
		stats_add(&connection->worker->stats.sessions_taken_over, 1);
		serve_waits_drop(older);
		older->session = NULL;
		session->connection = NULL;
		connection_end(older, CODE_ABORTED, "another connection took the session over");
	}
}

/* Answers a request that was to be a Hello and can't be welcomed, and ends the connection. */
void serve_unwelcome(struct connection *connection, uint64_t id, enum code code, const char *text)
{
	serve_error(connection, id, code, "%s", text);
	connection_end(connection, code, "%s", text);
}

static int open_session(struct connection *connection, const struct request *request,
			unsigned *ret_worker)
{
	const struct hello *hello = &request->hello;
	struct worker *worker = connection->worker;
	int64_t lifetime_ns = (int64_t)hello->lifetime_ms * 1000000;
	struct session *session;
	int r = directory_claim(&worker->daemon->directory, (const uint8_t *)hello->session.at,
				worker->index, connection->settled, &session, ret_worker);

	if (r == DIRECTORY_E_ELSEWHERE && worker->stopping) {
		connection_end(connection, CODE_UNAVAILABLE, "the daemon is stopping");
		return SERVE_OK;
	}
	if (r == DIRECTORY_E_ELSEWHERE) {
		return SERVE_E_MOVE;
	}
	if (r != 0) {
		const char *text =
			r < 0 ? "the daemon is out of memory"
			      : "the daemon has as many sessions as it may have (max_sessions)";

		log_peer(&worker->daemon->log, LOG_KIND_REFUSED, clock_monotonic_ns(), LOG_WARNING,
			 connection->peer, "no session: %s", text);
		serve_unwelcome(connection, request->id, CODE_RESOURCE_EXHAUSTED, text);
		return SERVE_OK;
	}
	take_over(connection, session);
	if (lifetime_ns > worker->settings.max_lifetime_ns) {
		lifetime_ns = worker->settings.max_lifetime_ns;
	}
	session_greet(session, hello->next_batch, lifetime_ns);
	operations_greet(&session->operations, hello->next_operation);
	session_set_agent(session, hello->agent);
	worker_resume_session(worker, session, connection);
	connection->session = session;
	keep_numbers(session);
	welcome(connection, request->id);
	if (!was_welcome(worker->daemon, hello)) {
		session_asked(session);
	}
	return SERVE_OK;
}

int serve_hello(struct connection *connection, const struct request *request, unsigned *ret_worker)
{
	const char *fault_text = hello_fault(&request->hello);

	if (connection->state != CONNECTION_NEW) {
		serve_error(connection, request->id, CODE_FAILED_PRECONDITION,
			    "Hello was said before on this connection");
		return SERVE_OK;
	}
	if (fault_text != NULL) {
		stats_add(&connection->worker->stats.faults_protocol, 1);
		serve_unwelcome(connection, request->id, CODE_INVALID_ARGUMENT, fault_text);
		return SERVE_OK;
	}
	if (request->hello.session.len != 0) {
		return open_session(connection, request, ret_worker);
	}
	welcome(connection, request->id);
	return SERVE_OK;
}

bool serve_check_session(struct connection *connection, uint64_t id)
{
	if (connection->session != NULL) {
		return true;
	}
	serve_error(connection, id, CODE_FAILED_PRECONDITION,
		    "this connection has no session; say Hello with one");
	return false;
}

/* ---- End ---- */

void serve_end(struct connection *connection, const struct request *request)
{
	const struct reply reply = { .id = request->id, .type = REPLY_ENDED };
	struct session *session = connection->session;

	if (!serve_check_session(connection, request->id)) {
		return;
	}
	if (connection->n_waits > 0) {
		serve_error(connection, request->id, CODE_FAILED_PRECONDITION,
			    "%u charges of this session wait for room; their answers come first",
			    connection->n_waits);
		return;
	}
	connection->session = NULL;
	worker_end_session(connection->worker, session);
	connection_reply(connection, &reply);
}

/* ---- Add ---- */

/* Entries are handed to the engine in groups, whose handles were looked up before. */
#define ADD_GROUP 256u

struct adding {
	struct connection *connection;
	struct serve_errors *errors;
	size_t first; /* index in the request of the group's first entry */
	size_t n;
	struct engine_item items[ADD_GROUP];
};

static void add_failed(void *ctx, size_t index, int error)
{
	struct adding *adding = ctx;

	serve_errors_add(adding->connection, adding->errors, adding->first + index,
			 serve_engine_code(error),
			 serve_engine_text(error, (struct text){ .at = "" }));
}

static void add_group(struct adding *adding)
{
	(void)engine_add_many(adding->connection->worker->engine, adding->items, adding->n,
			      add_failed, adding);
	adding->first += adding->n;
	adding->n = 0;
}

static void add_all(struct connection *connection, const struct add *add,
		    struct serve_errors *errors)
{
	const struct session *session = connection->session;
	struct engine_worker *engine = connection->worker->engine;
	struct adding adding; /* not cleared: 4 KiB */

	adding.connection = connection;
	adding.errors = errors;
	adding.first = adding.n = 0;
	engine_begin(engine);
	for (size_t i = 0; i < add->n_handles; i++) {
		struct engine_item *item = &adding.items[adding.n];

		if (__builtin_expect(!session_look_up(session, add->handles[i], &item->ref), 0)) {
			add_group(&adding);
			serve_errors_add(connection, errors, adding.first++, CODE_NOT_FOUND,
					 "there is no counter behind this handle");
			continue;
		}
		item->n = add->deltas[i];
		if (++adding.n == ADD_GROUP) {
			add_group(&adding);
		}
	}
	add_group(&adding);
	engine_end(engine);
}

/* True: count it. Else it was answered, and its number was not consumed. */
static bool check_batch(struct connection *connection, const struct request *request)
{
	const struct session *session = connection->session;
	const struct add *add = &request->add;

	if (add->n_handles != add->n_deltas) {
		serve_error(connection, request->id, CODE_INVALID_ARGUMENT,
			    "%zu handles and %zu deltas; there must be as many of both",
			    add->n_handles, add->n_deltas);
		return false;
	}
	if (!serve_check_items(connection, request->id, add->n_handles, "entries")) {
		return false;
	}
	if (session_check_batch(session, add->batch) == SESSION_E_GAP) {
		serve_error(connection, request->id, CODE_FAILED_PRECONDITION,
			    "batch %" PRIu64 " came where batch %" PRIu64 " was expected",
			    add->batch, session->last_batch + 1);
		return false;
	}
	return true;
}

void serve_add(struct connection *connection, const struct request *request)
{
	struct stats *stats = &connection->worker->stats;
	struct reply reply = { .id = request->id,
			       .type = REPLY_APPLIED,
			       .applied = { .batch = request->add.batch } };
	struct serve_errors errors = { 0 };

	if (!serve_check_session(connection, request->id) || !check_batch(connection, request)) {
		return;
	}
	if (session_check_batch(connection->session, request->add.batch) == SESSION_E_DUPLICATE) {
		reply.applied.duplicate = true;
		stats_add(&stats->batches_duplicate, 1);
	} else {
		add_all(connection, &request->add, &errors);
		connection->session->last_batch = request->add.batch;
		keep_numbers(connection->session);
		stats_add(&stats->batches_applied, 1);
		stats_add(&stats->adds_applied, request->add.n_handles - errors.n);
		stats_add(&stats->adds_refused, errors.n);
		reply.applied.errors = errors.items;
		reply.applied.n_errors = errors.n;
	}
	connection_reply(connection, &reply);
}
