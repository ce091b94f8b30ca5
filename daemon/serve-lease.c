/*
 * Leases: units charged ahead, for the client to spend without asking.
 */
#include "daemon/serve-operation.h"

#include "daemon/clock.h"
#include "daemon/connection.h"
#include "daemon/daemon.h"
#include "daemon/giveback.h"
#include "daemon/session.h"
#include "daemon/worker.h"
#include "lib/engine/keep.h"
#include "lib/names/path.h"

#include <event2/event.h>
#include <inttypes.h>

/* ---- the clock ---- */

static void set_timer(struct worker *worker)
{
	int64_t next = lease_next(&worker->lease_clock);
	struct timeval wait;
	int64_t left;

	if (next == INT64_MAX || (worker->lease_timer_at != 0 && worker->lease_timer_at <= next)) {
		return;
	}
	left = next - clock_monotonic_ns();
	wait = clock_timeval(left > 1000000 ? left : 1000000);
	/* Without memory for it the next lease tries again: ignoring, since what expires is only told of. */
	worker->lease_timer_at = event_add(&worker->lease_timer, &wait) == 0 ? next : 0;
}

void serve_lease_tick(struct worker *worker)
{
	int64_t now = clock_monotonic_ns();

	worker->lease_timer_at = 0;
	while (lease_expire(&worker->lease_clock, now) != NULL) {
		stats_add(&worker->stats.leases_expired, 1);
	}
	set_timer(worker);
}

static int64_t expiry_of(struct worker *worker, uint32_t ttl_ms)
{
	return worker_time(worker)->mono_ns + (int64_t)ttl_ms * 1000000;
}

/* ---- parts ---- */

static void answer(struct connection *connection, uint64_t id, uint64_t number,
		   const struct lease_terms *terms, int64_t granted,
		   const struct serve_bindings *bindings)
{
	const struct reply reply = {
		.id = id,
		.type = REPLY_LEASED,
		.leased = {
			.number = number,
			.lease = terms->number,
			.ttl_ms = terms->ttl_ms,
			.granted = granted,
			.omitted = bindings->omitted,
			.n_bindings = bindings->n,
			.bindings = bindings->items,
		},
	};

	serve_answer(connection, &reply);
}

static bool check_want(struct connection *connection, uint64_t id, uint64_t number, int64_t want,
		       int64_t least)
{
	if (want >= least && want <= ENGINE_AMOUNT_MAX) {
		return true;
	}
	serve_failure(connection, id, number, CODE_INVALID_ARGUMENT,
		      "want %" PRIi64 " is out of range; allowed is %" PRIi64 " to %" PRIi64, want,
		      least, ENGINE_AMOUNT_MAX);
	return false;
}

/*
 * Less was granted than was asked for, though nothing refused: as much once more would not fit, for what is left by then is less. So a dry
 * run says which limits made it so.
 */
static void note_why(struct worker *worker, const struct engine_charge_item *item,
		     struct serve_bindings *bindings)
{
	const struct engine_charge charge = {
		.items = item, .n = 1, .time = *worker_time(worker), .dry_run = true
	};

	*bindings = (struct serve_bindings){ .arena = &worker->out };
	(void)engine_charge(worker->engine, &charge, serve_bindings_note, bindings, NULL);
}

/* ---- Lease ---- */

static uint32_t clamp_ttl(uint32_t ttl_ms)
{
	return ttl_ms < MESSAGE_MIN_TTL_MS   ? MESSAGE_MIN_TTL_MS
	       : ttl_ms > MESSAGE_MAX_TTL_MS ? MESSAGE_MAX_TTL_MS
					     : ttl_ms;
}

static void not_prepared(struct connection *connection, uint64_t id, uint64_t number, int r,
			 uint32_t lease)
{
	if (r == LEASE_E_EXISTS) {
		serve_failure(connection, id, number, CODE_ALREADY_EXISTS,
			      "the session has a lease %" PRIu32
			      " already; return it, or take another number",
			      lease);
		return;
	}
	serve_failure(connection, id, number, CODE_RESOURCE_EXHAUSTED, "%s",
		      r == LEASE_E_FULL	 ? "the session has as many leases as it may (max_leases)"
		      : r == LEASE_E_ALL ? "the daemon has as many leases as it may"
					 : "the daemon is out of memory");
}

/* engine_lease; or what an earlier daemon has answered, whatever the limits say. */
static int grant(struct worker *worker, struct text path, int64_t want, const struct known *known,
		 struct serve_bindings *bindings, int64_t *ret_granted)
{
	int r;

	if (!known->present) {
		return engine_lease(worker->engine, path.at, path.len, want, *worker_time(worker),
				    serve_bindings_note, bindings, ret_granted);
	}
	if (!known->done || known->granted <= 0) {
		return ENGINE_E_REFUSED;
	}
	r = engine_lease_again(worker->engine, path.at, path.len, known->granted,
			       *worker_time(worker));
	if (r == 0) {
		*ret_granted = known->granted;
	}
	return r;
}

static void take_lease(struct connection *connection, const struct request *request,
		       struct lease *lease, const struct lease_terms *terms)
{
	const struct lease_take *take = &request->lease;
	struct worker *worker = connection->worker;
	struct daemon *daemon = worker->daemon;
	struct serve_bindings bindings = { .arena = &worker->out };
	int64_t granted = 0;
	int r = grant(worker, take->path, take->want, &request->known, &bindings, &granted);

	if (r != 0) {
		lease_discard(&daemon->leases, lease);
		if (r == ENGINE_E_REFUSED) {
			answer(connection, request->id, take->number, terms, 0, &bindings);
		} else {
			serve_engine_failure(connection, request->id, take->number, r, take->path);
		}
		return;
	}
	lease->gauge = kinds_is_gauge(kinds_ask(&worker->kinds, daemon->engine, take->path.at,
						take->path.len, /* counted= */ true));
	lease_make(&connection->session->leases, &worker->lease_clock, &daemon->leases, lease,
		   granted, expiry_of(worker, terms->ttl_ms));
	keep_leases(connection->session);
	set_timer(worker);
	if (granted < take->want && !request->known.present) {
		const struct engine_charge_item item = { .path = take->path.at,
							 .len = take->path.len,
							 .n = take->want };

		note_why(worker, &item, &bindings);
	}
	answer(connection, request->id, take->number, terms, granted, &bindings);
}

void serve_lease(struct connection *connection, const struct request *request)
{
	const struct lease_take *take = &request->lease;
	struct worker *worker = connection->worker;
	struct session *session = connection->session;
	struct lease_terms terms;
	struct lease *lease;
	int r;

	if (!serve_operation(connection, request->id, take->number)) {
		return;
	}
	if (path_check(take->path.at, take->path.len, NULL) != PATH_OK) {
		serve_engine_failure(connection, request->id, take->number, ENGINE_E_PATH,
				     take->path);
		return;
	}
	if (!check_want(connection, request->id, take->number, take->want, 1)) {
		return;
	}
	terms = (struct lease_terms){
		.path = take->path.at,
		.len = take->path.len,
		.agent = session->agent,
		.agent_len = session->agent_len,
		.number = take->lease,
		.ttl_ms = clamp_ttl(take->ttl_ms),
	};
	r = lease_prepare(&session->leases, &worker->lease_clock, &worker->daemon->leases, &terms,
			  request->known.present ? LEASE_NO_MAX
						 : (uint32_t)worker->settings.max_leases,
			  &lease);
	if (r != 0) {
		not_prepared(connection, request->id, take->number, r, take->lease);
		return;
	}
	take_lease(connection, request, lease, &terms);
}

/* ---- reports ---- */

/* NULL: it was answered. */
static struct lease *find(struct connection *connection, uint64_t id, uint64_t number,
			  uint32_t lease_number, int64_t spent)
{
	struct lease *lease = lease_find(&connection->session->leases, lease_number);

	if (lease == NULL) {
		serve_failure(connection, id, number, CODE_NOT_FOUND,
			      "the session has no lease %" PRIu32, lease_number);
		return NULL;
	}
	if (spent < 0) {
		serve_failure(connection, id, number, CODE_INVALID_ARGUMENT,
			      "spent %" PRIi64 " is negative", spent);
		return NULL;
	}
	if (spent > lease->units) {
		serve_failure(connection, id, number, CODE_FAILED_PRECONDITION,
			      "%" PRIi64 " units are reported as spent, but lease %" PRIu32
			      " had %" PRIi64 " unspent",
			      spent, lease_number, lease->units);
		return NULL;
	}
	return lease;
}

/* Spent units reach the totals; of a gauge the session holds them from here on. Else it was answered, and nothing was changed. */
static bool spend(struct connection *connection, const struct request *request, uint64_t number,
		  struct lease *lease, int64_t spent)
{
	struct worker *worker = connection->worker;
	struct held *held = &connection->session->held;
	uint32_t before = held_paths(held);
	int r;

	if (spent == 0) {
		return true;
	}
	if (lease->gauge) {
		if (!request->known.present && before >= worker->settings.max_held &&
		    held_amount(held, lease->path, lease->len) == 0) {
			serve_failure(connection, request->id, number, CODE_RESOURCE_EXHAUSTED,
				      "the session holds as many paths as it may (max_held_paths)");
			return false;
		}
		if (held_add(held, lease->path, lease->len, spent) < 0) {
			serve_failure(connection, request->id, number, CODE_RESOURCE_EXHAUSTED,
				      "the daemon is out of memory");
			return false;
		}
	}
	r = giveback_spend(worker, lease->path, lease->len, spent);
	if (r != 0 && lease->gauge) {
		(void)held_take(held, lease->path, lease->len, spent);
	}
	stats_add(&worker->stats.held_paths, held_paths(held) - (uint64_t)before);
	if (r != 0) {
		serve_engine_failure(connection, request->id, number, r,
				     (struct text){ .at = lease->path, .len = lease->len });
	}
	return r == 0;
}

static int64_t fill_up(struct worker *worker, const struct lease *lease, int64_t n,
		       const struct known *known, struct serve_bindings *bindings)
{
	const struct engine_charge_item item = { .path = lease->path, .len = lease->len, .n = n };
	const struct text path = { .at = lease->path, .len = lease->len };
	int64_t granted = 0;

	if (grant(worker, path, n, known, bindings, &granted) != 0) {
		/* Whatever the reason, the report stands and the lease goes on with what it has. */
		return 0;
	}
	if (granted < n && !known->present) {
		note_why(worker, &item, bindings);
	}
	return granted;
}

void serve_lease_renew(struct connection *connection, const struct request *request)
{
	const struct lease_renew *renew = &request->lease_renew;
	struct worker *worker = connection->worker;
	struct daemon *daemon = worker->daemon;
	struct serve_bindings bindings = { .arena = &worker->out };
	struct lease_terms terms = { .number = renew->lease };
	struct lease *lease;
	int64_t units, granted = 0;

	if (!serve_operation(connection, request->id, renew->number) ||
	    serve_had_failed(connection, request, renew->number) ||
	    !check_want(connection, request->id, renew->number, renew->want, 0)) {
		return;
	}
	lease = find(connection, request->id, renew->number, renew->lease, renew->spent);
	if (lease == NULL || !spend(connection, request, renew->number, lease, renew->spent)) {
		return;
	}
	units = lease->units - renew->spent;
	if (renew->want > units) {
		granted = fill_up(worker, lease, renew->want - units, &request->known, &bindings);
	}
	terms.ttl_ms = lease->ttl_ms;
	lease_renew(&worker->lease_clock, &daemon->leases, lease, units + granted,
		    expiry_of(worker, lease->ttl_ms));
	keep_leases(connection->session);
	set_timer(worker);
	answer(connection, request->id, renew->number, &terms, granted, &bindings);
}

void serve_lease_return(struct connection *connection, const struct request *request)
{
	const struct lease_return *give = &request->lease_return;
	struct worker *worker = connection->worker;
	struct reply reply = { .id = request->id,
			       .type = REPLY_LEASE_RETURNED,
			       .lease_returned = { .number = give->number, .lease = give->lease } };
	struct lease *lease;

	if (!serve_operation(connection, request->id, give->number) ||
	    serve_had_failed(connection, request, give->number)) {
		return;
	}
	lease = find(connection, request->id, give->number, give->lease, give->spent);
	if (lease == NULL || !spend(connection, request, give->number, lease, give->spent)) {
		return;
	}
	reply.lease_returned.returned = giveback_lease(worker, lease, lease->units - give->spent);
	lease_end(&connection->session->leases, &worker->lease_clock, &worker->daemon->leases,
		  lease);
	keep_leases(connection->session);
	serve_answer(connection, &reply);
}
