/*
 * Charge and Uncharge: may this be taken, and here it is back.
 */
#include "daemon/serve-operation.h"

#include "daemon/connection.h"
#include "daemon/daemon.h"
#include "daemon/giveback.h"
#include "daemon/session.h"
#include "daemon/worker.h"
#include "lib/engine/keep.h"
#include "lib/names/path.h"

#include <inttypes.h>

/* ---- the ledger ---- */

/* How many more paths these gauges would be; a path that comes twice counts twice. */
static size_t new_paths(struct worker *worker, const struct held *held, const struct order *order)
{
	size_t n = 0;

	for (size_t i = 0; i < order->n; i++) {
		const struct engine_charge_item *item = &order->items[i];

		n += kinds_is_gauge(kinds_ask(&worker->kinds, worker->daemon->engine, item->path,
					      item->len, /* counted= */ false)) &&
		     held_amount(held, item->path, item->len) == 0;
	}
	return n;
}

/* Is there room for what this may hold? Looked at closely only near the limit. */
static bool ledger_has_room(struct worker *worker, struct session *session,
			    const struct order *order)
{
	struct daemon *daemon = worker->daemon;
	uint64_t max = (uint64_t)(order->detached ? worker->settings.max_detached
						  : worker->settings.max_held);
	bool has_room;

	if (!order->detached) {
		return held_paths(&session->held) + order->n <= max ||
		       held_paths(&session->held) + new_paths(worker, &session->held, order) <= max;
	}
	(void)pthread_mutex_lock(&daemon->detached_lock);
	has_room =
		held_paths(&daemon->detached) + order->n <= max ||
		held_paths(&daemon->detached) + new_paths(worker, &daemon->detached, order) <= max;
	(void)pthread_mutex_unlock(&daemon->detached_lock);
	return has_room;
}

/* held_add or held_take, with what they return. */
static int change(struct held *held, const struct engine_charge_item *item, bool add)
{
	return add ? held_add(held, item->path, item->len, item->n)
		   : held_take(held, item->path, item->len, item->n);
}

/* The daemon's ledger, and what this worker has changed of it for the state file: both or neither. */
static int change_detached(struct worker *worker, const struct engine_charge_item *item, bool add)
{
	struct daemon *daemon = worker->daemon;
	int64_t n = add ? item->n : -item->n;
	int r;

	(void)pthread_mutex_lock(&daemon->detached_lock);
	r = change(&daemon->detached, item, add);
	if (r == 0) {
		r = keep_detached(worker, item->path, item->len, n);
		if (r < 0) {
			(void)change(&daemon->detached, item, !add);
		}
	}
	(void)pthread_mutex_unlock(&daemon->detached_lock);
	return r;
}

static int ledger_change(struct worker *worker, struct session *session, bool detached,
			 const struct engine_charge_item *item, bool add)
{
	uint32_t before;
	int r;

	if (detached) {
		return change_detached(worker, item, add);
	}
	before = held_paths(&session->held);
	r = change(&session->held, item, add);
	stats_add(&worker->stats.held_paths, held_paths(&session->held) - (uint64_t)before);
	return r;
}

static int ledger_add(struct worker *worker, struct session *session, bool detached,
		      const struct engine_charge_item *item)
{
	return ledger_change(worker, session, detached, item, /* add= */ true);
}

static int ledger_take(struct worker *worker, struct session *session, bool detached,
		       const struct engine_charge_item *item)
{
	return ledger_change(worker, session, detached, item, /* add= */ false);
}

/* Out of memory after the grant: gauges go back, all of them; what was in counters stays there, as if they had been added to. */
static void undo(struct worker *worker, struct session *session, const struct order *order,
		 size_t n_noted)
{
	for (size_t i = 0; i < order->n; i++) {
		const struct engine_charge_item *item = &order->items[i];

		if (!kinds_is_gauge(kinds_ask(&worker->kinds, worker->daemon->engine, item->path,
					      item->len, /* counted= */ true))) {
			continue;
		}
		if (i < n_noted) {
			(void)ledger_take(worker, session, order->detached, item);
		}
		(void)giveback_charge(worker, item->path, item->len, item->n);
	}
}

static int note_held(struct worker *worker, struct session *session, const struct order *order)
{
	for (size_t i = 0; i < order->n; i++) {
		const struct engine_charge_item *item = &order->items[i];
		int r;

		if (!kinds_is_gauge(kinds_ask(&worker->kinds, worker->daemon->engine, item->path,
					      item->len, /* counted= */ true))) {
			continue;
		}
		r = ledger_add(worker, session, order->detached, item);
		if (r < 0) {
			undo(worker, session, order, i);
			return r;
		}
	}
	return 0;
}

/* ---- charging ---- */

int serve_order(struct worker *worker, struct session *session, const struct order *order,
		struct serve_bindings *bindings, size_t *ret_index)
{
	const struct engine_charge charge = {
		.items = order->items,
		.n = order->n,
		.time = *worker_time(worker),
	};
	int r;

	if (order->again) {
		r = engine_charge_again(worker->engine, &charge, ret_index);
		return r == 0 ? note_held(worker, session, order) : r;
	}
	if (!ledger_has_room(worker, session, order)) {
		return SERVE_E_HELD;
	}
	r = engine_charge(worker->engine, &charge, serve_bindings_note, bindings, ret_index);
	return r == 0 ? note_held(worker, session, order) : r;
}

static void fail(struct connection *connection, uint64_t id, uint64_t number,
		 const struct order *order, int r, size_t index)
{
	const struct engine_charge_item *item = &order->items[index < order->n ? index : 0];

	switch (r) {
	case ENGINE_E_PATH:
		serve_failure(connection, id, number, CODE_INVALID_ARGUMENT,
			      "item %zu is no path: %s", index,
			      path_error_text(path_check(item->path, item->len, NULL)));
		break;
	case ENGINE_E_AMOUNT:
		if (item->n >= 1 && item->n <= ENGINE_AMOUNT_MAX) {
			serve_failure(connection, id, number, CODE_INVALID_ARGUMENT,
				      "item %zu: the amounts up to this one are too large together",
				      index);
		} else {
			serve_failure(connection, id, number, CODE_INVALID_ARGUMENT,
				      "item %zu: the amount %" PRIi64
				      " is out of range; allowed is 1 to %" PRIi64,
				      index, item->n, ENGINE_AMOUNT_MAX);
		}
		break;
	case SERVE_E_HELD:
		serve_failure(
			connection, id, number, CODE_RESOURCE_EXHAUSTED,
			order->detached
				? "detached charges hold as many paths as they may (max_detached_paths)"
				: "the session holds as many paths as it may (max_held_paths)");
		break;
	default:
		serve_engine_failure(connection, id, number, r,
				     (struct text){ .at = item->path, .len = item->len });
		break;
	}
}

void serve_order_answer(struct connection *connection, uint64_t id, uint64_t number,
			const struct order *order, int r, const struct serve_bindings *bindings,
			size_t index)
{
	struct reply reply; /* not cleared: it is as large as the largest of all answers */

	reply.id = id;
	reply.type = REPLY_CHARGED;
	reply.charged = (struct charged){
		.number = number,
		.granted = r == 0,
		.omitted = bindings->omitted,
		.n_bindings = bindings->n,
		.bindings = bindings->items,
	};
	if (r != 0 && r != ENGINE_E_REFUSED) {
		fail(connection, id, number, order, r, index);
	} else if (number == 0) {
		connection_reply(connection, &reply);
	} else {
		serve_answer(connection, &reply);
	}
}

/* False: it was answered. */
static bool order_of(struct connection *connection, uint64_t id, const struct charge *charge,
		     struct order *order, struct engine_charge_item *few, size_t n_few)
{
	struct engine_charge_item *items = few;

	if (charge->n_items == 0 || charge->n_items > ENGINE_CHARGE_MAX_ITEMS) {
		serve_failure(connection, id, charge->dry_run ? 0 : charge->number,
			      CODE_INVALID_ARGUMENT, "%zu items in one charge; allowed is 1 to %u",
			      charge->n_items, ENGINE_CHARGE_MAX_ITEMS);
		return false;
	}
	if (charge->n_items > n_few) {
		items = arena_alloc(&connection->worker->in, charge->n_items * sizeof(*items));
	}
	if (items == NULL) {
		serve_failure(connection, id, charge->dry_run ? 0 : charge->number,
			      CODE_RESOURCE_EXHAUSTED, "the daemon is out of memory");
		return false;
	}
	for (size_t i = 0; i < charge->n_items; i++) {
		items[i] = (struct engine_charge_item){
			.path = charge->items[i].path.at,
			.len = charge->items[i].path.len,
			.n = charge->items[i].amount,
		};
	}
	*order =
		(struct order){ .items = items, .n = charge->n_items, .detached = charge->detached };
	return true;
}

static void dry_run(struct connection *connection, const struct request *request)
{
	struct worker *worker = connection->worker;
	struct serve_bindings bindings = { .arena = &worker->out };
	struct engine_charge_item few[4];
	struct engine_charge charge = { .time = *worker_time(worker), .dry_run = true };
	struct order order;
	size_t index = 0;
	int r;

	if (!order_of(connection, request->id, &request->charge, &order, few, 4)) {
		return;
	}
	charge.items = order.items;
	charge.n = order.n;
	r = engine_charge(worker->engine, &charge, serve_bindings_note, &bindings, &index);
	serve_order_answer(connection, request->id, /* number= */ 0, &order, r, &bindings, index);
}

void serve_charge(struct connection *connection, const struct request *request)
{
	const struct charge *charge = &request->charge;
	struct worker *worker = connection->worker;
	struct serve_bindings bindings = { .arena = &worker->out };
	struct engine_charge_item few[4];
	struct order order;
	size_t index = 0;
	int r;

	if (charge->dry_run) {
		dry_run(connection, request);
		return;
	}
	if (!serve_operation(connection, request->id, charge->number) ||
	    !order_of(connection, request->id, charge, &order, few, 4)) {
		return;
	}
	if (request->known.present) {
		/* Refused before, it is so again without a look; granted, it is granted, and waits for nothing. */
		order.again = true;
		r = request->known.done
			    ? serve_order(worker, connection->session, &order, &bindings, &index)
			    : ENGINE_E_REFUSED;
		serve_order_answer(connection, request->id, charge->number, &order, r, &bindings,
				   index);
		return;
	}
	if (charge->wait_ms > 0 && waiting_count(&worker->daemon->waiting) > 0) {
		/* It must not overtake those who wait already. */
		serve_wait(connection, request->id, charge, &order, NULL);
		return;
	}
	r = serve_order(worker, connection->session, &order, &bindings, &index);
	if (r == ENGINE_E_REFUSED && charge->wait_ms > 0 && !bindings.never) {
		serve_wait(connection, request->id, charge, &order, &bindings);
		return;
	}
	serve_order_answer(connection, request->id, charge->number, &order, r, &bindings, index);
}

/* ---- Uncharge ---- */

static void lacking(struct connection *connection, uint64_t id, const struct uncharge *uncharge)
{
	struct worker *worker = connection->worker;
	struct daemon *daemon = worker->daemon;
	struct text path = uncharge->path;
	struct engine_reading reading;
	int64_t held;

	if (engine_get(daemon->engine, path.at, path.len, &reading) == ENGINE_E_NOT_FOUND) {
		serve_failure(connection, id, uncharge->number, CODE_NOT_FOUND,
			      "there is no counter %.*s", (int)path.len, path.at);
		return;
	}
	if (uncharge->detached) {
		(void)pthread_mutex_lock(&daemon->detached_lock);
		held = held_amount(&daemon->detached, path.at, path.len);
		(void)pthread_mutex_unlock(&daemon->detached_lock);
	} else {
		held = held_amount(&connection->session->held, path.at, path.len);
	}
	serve_failure(connection, id, uncharge->number, CODE_FAILED_PRECONDITION,
		      "%" PRIi64 " is more than %s: %" PRIi64, uncharge->amount,
		      uncharge->detached ? "detached charges hold on this path"
					 : "the session holds on this path",
		      held);
}

/* NULL: it may be tried. */
static bool check_uncharge(struct connection *connection, uint64_t id,
			   const struct uncharge *uncharge)
{
	struct worker *worker = connection->worker;
	struct text path = uncharge->path;
	enum kinds_answer kind;

	if (path_check(path.at, path.len, NULL) != PATH_OK) {
		serve_engine_failure(connection, id, uncharge->number, ENGINE_E_PATH, path);
		return false;
	}
	if (uncharge->amount < 1 || uncharge->amount > ENGINE_AMOUNT_MAX) {
		serve_failure(connection, id, uncharge->number, CODE_INVALID_ARGUMENT,
			      "the amount %" PRIi64 " is out of range; allowed is 1 to %" PRIi64,
			      uncharge->amount, ENGINE_AMOUNT_MAX);
		return false;
	}
	kind = kinds_ask(&worker->kinds, worker->daemon->engine, path.at, path.len,
			 /* counted= */ false);
	if (!kinds_is_gauge(kind)) {
		struct engine_reading reading;
		int r = engine_get(worker->daemon->engine, path.at, path.len, &reading);

		if (r == 0) {
			serve_failure(
				connection, id, uncharge->number, CODE_FAILED_PRECONDITION,
				"%.*s is a counter, which only grows; only of gauges can be given back",
				(int)path.len, path.at);
		} else {
			serve_failure(connection, id, uncharge->number, CODE_NOT_FOUND,
				      "there is no counter %.*s", (int)path.len, path.at);
		}
		return false;
	}
	return true;
}

/*
 * What was given back once of detached charges, while they have not been made again: their client comes later. Until then less than nothing is
 * held of it.
 */
static int uncharge_again(struct worker *worker, const struct engine_charge_item *item)
{
	const struct engine_charge_item less = { .path = item->path,
						 .len = item->len,
						 .n = -item->n };
	int r = giveback_again(worker, item->path, item->len, item->n);

	if (r == 0) {
		/* Without memory for it less was given back than is known of: as if it were held on. */
		(void)change_detached(worker, &less, /* add= */ true);
	}
	return r;
}

static void give_back(struct connection *connection, const struct request *request)
{
	const struct uncharge *uncharge = &request->uncharge;
	struct worker *worker = connection->worker;
	struct session *session = connection->session;
	const struct reply reply = { .id = request->id,
				     .type = REPLY_UNCHARGED,
				     .uncharged = { .number = uncharge->number } };
	const struct engine_charge_item item = { .path = uncharge->path.at,
						 .len = uncharge->path.len,
						 .n = uncharge->amount };
	int r;

	if (!serve_operation(connection, request->id, uncharge->number) ||
	    serve_had_failed(connection, request, uncharge->number) ||
	    !check_uncharge(connection, request->id, uncharge)) {
		return;
	}
	r = ledger_take(worker, session, uncharge->detached, &item);
	if (r == HELD_E_LACKING && request->known.present && uncharge->detached) {
		r = uncharge_again(worker, &item);
		if (r == 0) {
			serve_answer(connection, &reply);
		} else {
			serve_engine_failure(connection, request->id, uncharge->number, r,
					     uncharge->path);
		}
		return;
	}
	if (r == HELD_E_LACKING) {
		lacking(connection, request->id, uncharge);
		return;
	}
	r = giveback_charge(worker, item.path, item.len, item.n);
	if (r == ENGINE_E_UNDERFLOW && request->known.present) {
		/* Adds that were there before are not yet there again. */
		r = giveback_again(worker, item.path, item.len, item.n);
	}
	if (r == 0) {
		serve_answer(connection, &reply);
		return;
	}
	/* Adds have taken off the gauge what was held of it, or there is no memory: it stays in the ledger, where it has kept its place. */
	(void)ledger_add(worker, session, uncharge->detached, &item);
	serve_engine_failure(connection, request->id, uncharge->number, r, uncharge->path);
}

int serve_uncharge(struct connection *connection, const struct request *request)
{
	struct worker *worker = connection->worker;

	if (!request->uncharge.detached) {
		give_back(connection, request);
		return SERVE_OK;
	}
	/* Any worker may have charged it. */
	if (!keep_reach_begin(worker)) {
		return SERVE_E_LATER;
	}
	give_back(connection, request);
	keep_reach_end(worker);
	return SERVE_OK;
}
