/*
 * Charges that wait for room. See daemon/waiting.h for who may try when.
 */
#include "daemon/serve-operation.h"

#include "daemon/clock.h"
#include "daemon/connection.h"
#include "daemon/daemon.h"
#include "daemon/session.h"
#include "daemon/worker.h"
#include "lib/count/fence.h"

#include <event2/event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MAX_TRIES 4u
#define WAIT_RETRY_NS INT64_C(10000000) /* when what refuses has changed with each of them */

struct wait {
	struct waiter waiter;  /* first, so that one is the other */
	LIST_ENTRY(wait) link; /* in its connection */
	struct connection *connection;
	uint64_t id, number;
	int64_t until_ns; /* monotonic */
	struct event timer;
	struct order order;
	struct engine_charge_item items[]; /* and their paths behind them */
};

static void wait_free(struct wait *wait)
{
	LIST_REMOVE(wait, link);
	wait->connection->n_waits--;
	(void)event_del(&wait->timer);
	waiting_leave(&wait->connection->worker->daemon->waiting, &wait->waiter);
	free(wait);
}

/* It is answered, and no more. Its connection may be gone afterwards. */
static void finish(struct wait *wait, int r, const struct serve_bindings *bindings, size_t index)
{
	struct connection *connection = wait->connection;

	serve_order_answer(connection, wait->id, wait->number, &wait->order, r, bindings, index);
	wait_free(wait);
	if (connection->worker->current != connection) {
		connection_settle(connection);
	}
}

static void set_timer(struct wait *wait, int64_t retry_ns)
{
	int64_t left = wait->until_ns - clock_monotonic_ns();
	struct timeval after;

	if (retry_ns > 0 && retry_ns < left) {
		left = retry_ns;
	}
	after = clock_timeval(left > 1000000 ? left : 1000000);
	if (event_add(&wait->timer, &after) != 0) {
		const struct serve_bindings none = { 0 };

		finish(wait, -ENOMEM, &none, 0);
	}
}

/* The nodes that refused it are where it stands. */
static int stand(struct wait *wait, const struct serve_bindings *bindings, bool *anew)
{
	struct text nodes[MESSAGE_MAX_BINDINGS];

	for (size_t i = 0; i < bindings->n_refusing; i++) {
		nodes[i] = bindings->items[i].path;
	}
	return waiting_stand(&wait->connection->worker->daemon->waiting, &wait->waiter, nodes,
			     bindings->n_refusing, anew);
}

/* Those who wait are as many as may, or there is no memory. */
static void give_up(struct wait *wait, int r)
{
	struct connection *connection = wait->connection;

	serve_failure(connection, wait->id, wait->number, CODE_RESOURCE_EXHAUSTED,
		      r < 0 ? "the daemon is out of memory"
			    : "there are as many charges waiting for room as there may be");
	wait_free(wait);
	if (connection->worker->current != connection) {
		connection_settle(connection);
	}
}

/* What would a charge say now? As engine_charge. */
static int ask(const struct wait *wait, struct serve_bindings *bindings, size_t *ret_index)
{
	struct worker *worker = wait->connection->worker;
	const struct engine_charge charge = { .items = wait->order.items,
					      .n = wait->order.n,
					      .time = *worker_time(worker),
					      .dry_run = true };

	return engine_charge(worker->engine, &charge, serve_bindings_note, bindings, ret_index);
}

/* It is not its turn, but is it right, and could it ever fit? */
static bool may_wait(struct wait *wait)
{
	struct serve_bindings bindings = { .arena = &wait->connection->worker->out };
	size_t index = 0;
	int r = ask(wait, &bindings, &index);

	if (r == 0 || (r == ENGINE_E_REFUSED && !bindings.never)) {
		return true;
	}
	finish(wait, r, &bindings, index);
	return false;
}

enum tried {
	TRIED_NOT, /* it is not its turn */
	TRIED_REFUSED,
	TRIED_DONE, /* it was answered, and is gone */
};

/* Once. *ret_retry_ns: when it may fit for all that is known; *ret_anew: it stands where it did not before. */
static enum tried try_once(struct wait *wait, int64_t *ret_retry_ns, bool *ret_anew)
{
	struct worker *worker = wait->connection->worker;
	struct serve_bindings bindings = { .arena = &worker->out };
	bool its_turn = false;
	size_t index = 0;
	int r = waiting_turn(&worker->daemon->waiting, &wait->waiter, &its_turn);

	if (r != 0) {
		give_up(wait, r);
		return TRIED_DONE;
	}
	if (!its_turn) {
		return TRIED_NOT;
	}
	r = serve_order(worker, wait->connection->session, &wait->order, &bindings, &index);
	if (r != ENGINE_E_REFUSED || bindings.never) {
		finish(wait, r, &bindings, index);
		return TRIED_DONE;
	}
	r = stand(wait, &bindings, ret_anew);
	if (r != 0) {
		give_up(wait, r);
		return TRIED_DONE;
	}
	/* Who refused it may have room by now, so that nothing is left to stand at. */
	*ret_anew = *ret_anew || bindings.n_refusing == 0;
	*ret_retry_ns = bindings.retry_after_ms * 1000000;
	return TRIED_REFUSED;
}

static void try(struct wait *wait)
{
	int64_t retry_ns = 0;
	bool anew = true;

	for (unsigned i = 0; i < WAIT_MAX_TRIES && anew; i++) {
		fence_heavy(); /* pairs with fence_light in waiting_wake */
		switch (try_once(wait, &retry_ns, &anew)) {
		case TRIED_NOT:
			set_timer(wait, 0);
			return;
		case TRIED_REFUSED:
			break;
		case TRIED_DONE:
			return;
		}
	}
	set_timer(wait, anew ? WAIT_RETRY_NS : retry_ns);
}

/* Its time is over. */
static void time_out(struct wait *wait)
{
	struct serve_bindings bindings = { .arena = &wait->connection->worker->out };
	size_t index = 0;
	int64_t retry_ns;
	bool anew;
	int r;

	if (try_once(wait, &retry_ns, &anew) == TRIED_DONE) {
		return;
	}
	r = ask(wait, &bindings, &index);
	finish(wait, r == 0 ? ENGINE_E_REFUSED : r, &bindings, index);
}

/* The client is gone, though only the end of what it sends was seen: it may have closed since. */
static bool hung_up(struct wait *wait)
{
	return wait->connection->eof && connection_hung_up(wait->connection);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct wait *wait = arg;

	(void)fd;
	(void)what;
	arena_reset(&wait->connection->worker->out);
	wait->connection->worker->time_left = 0;
	if (hung_up(wait)) {
		connection_close(wait->connection);
	} else if (wait->until_ns <= clock_monotonic_ns()) {
		time_out(wait);
	} else {
		try(wait);
	}
}

void serve_waits(struct worker *worker)
{
	struct waiter *waiter;

	while ((waiter = waiting_next(&worker->daemon->waiting, worker->index)) != NULL) {
		struct wait *wait = (struct wait *)(void *)waiter;

		arena_reset(&worker->out);
		worker->time_left = 0;
		if (hung_up(wait)) {
			connection_close(wait->connection);
		} else {
			try(wait);
		}
	}
}

void serve_waits_drop(struct connection *connection)
{
	struct wait *wait;

	while ((wait = LIST_FIRST(&connection->waits)) != NULL) {
		operations_drop(&connection->session->operations, wait->number);
		wait_free(wait);
	}
}

/* ---- beginning ---- */

static size_t bytes_for(const struct order *order)
{
	size_t bytes = sizeof(struct wait) + order->n * sizeof(struct engine_charge_item);

	for (size_t i = 0; i < order->n; i++) {
		bytes += order->items[i].len;
	}
	return bytes;
}

static struct wait *wait_new(const struct order *order, size_t bytes)
{
	struct wait *wait = malloc(bytes);
	char *at;

	if (wait == NULL) {
		return NULL;
	}
	memset(wait, 0, sizeof(*wait));
	at = (char *)&wait->items[order->n];
	for (size_t i = 0; i < order->n; i++) {
		wait->items[i] = order->items[i];
		wait->items[i].path = memcpy(at, order->items[i].path, order->items[i].len);
		at += order->items[i].len;
	}
	wait->order =
		(struct order){ .items = wait->items, .n = order->n, .detached = order->detached };
	wait->waiter.items = wait->items;
	wait->waiter.n_items = order->n;
	return wait;
}

/* It is the connection's from here on. NULL: it was answered. */
static struct wait *begin(struct connection *connection, uint64_t id, const struct charge *charge,
			  const struct order *order)
{
	struct worker *worker = connection->worker;
	uint32_t wait_ms =
		charge->wait_ms < MESSAGE_MAX_WAIT_MS ? charge->wait_ms : MESSAGE_MAX_WAIT_MS;
	size_t bytes = bytes_for(order);
	struct wait *wait;

	if (connection->n_waits >= MESSAGE_MAX_WAITS) {
		serve_failure(connection, id, charge->number, CODE_RESOURCE_EXHAUSTED,
			      "%u charges of this session wait for room, and no more may",
			      connection->n_waits);
		return NULL;
	}
	wait = wait_new(order, bytes);
	if (wait == NULL) {
		serve_failure(connection, id, charge->number, CODE_RESOURCE_EXHAUSTED,
			      "the daemon is out of memory");
		return NULL;
	}
	wait->waiter.worker = worker->index;
	wait->connection = connection;
	wait->id = id;
	wait->number = charge->number;
	wait->until_ns = worker_time(worker)->mono_ns + (int64_t)wait_ms * 1000000;
	if (waiting_join(&worker->daemon->waiting, &wait->waiter, bytes) != 0) {
		free(wait);
		serve_failure(connection, id, charge->number, CODE_RESOURCE_EXHAUSTED,
			      "there are as many charges waiting for room as there may be");
		return NULL;
	}
	(void)evtimer_assign(&wait->timer, worker->base, on_timer, wait);
	LIST_INSERT_HEAD(&connection->waits, wait, link);
	connection->n_waits++;
	operations_wait(&connection->session->operations, charge->number);
	stats_add(&worker->stats.charges_waited, 1);
	return wait;
}

void serve_wait(struct connection *connection, uint64_t id, const struct charge *charge,
		const struct order *order, const struct serve_bindings *bindings)
{
	struct wait *wait = begin(connection, id, charge, order);
	bool its_turn = true, anew;
	int r;

	if (wait == NULL) {
		return;
	}
	r = bindings != NULL
		    ? stand(wait, bindings, &anew)
		    : waiting_turn(&connection->worker->daemon->waiting, &wait->waiter, &its_turn);
	if (r != 0) {
		give_up(wait, r);
	} else if (its_turn || may_wait(wait)) {
		try(wait);
	}
}
