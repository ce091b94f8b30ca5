#include "daemon/keep.h"

#include "daemon/clock.h"
#include "daemon/connection.h"
#include "daemon/daemon.h"
#include "daemon/giveback.h"
#include "daemon/serve.h"
#include "daemon/session.h"
#include "daemon/store/checkpoint.h"
#include "daemon/worker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* In the order of their checkpoints. */
struct keep_wait {
	TAILQ_ENTRY(keep_wait) link;
	struct connection *connection;
	uint64_t id;
	uint64_t checkpoint; /* it is answered when this one is over */
};

void keep_init(struct keep *keep, bool on, uint64_t seed)
{
	*keep = (struct keep){ .on = on, .detached = { .seed = seed, .keeps = true } };
	TAILQ_INIT(&keep->changed);
	TAILQ_INIT(&keep->cut);
	STAILQ_INIT(&keep->paid);
	TAILQ_INIT(&keep->waits);
}

void keep_deinit(struct keep *keep)
{
	struct keep_wait *wait;
	struct debt *debt;

	while ((wait = TAILQ_FIRST(&keep->waits)) != NULL) {
		TAILQ_REMOVE(&keep->waits, wait, link);
		free(wait);
	}
	while ((debt = STAILQ_FIRST(&keep->paid)) != NULL) {
		STAILQ_REMOVE_HEAD(&keep->paid, link);
		(void)giveback_debt_free(debt);
	}
	held_deinit(&keep->detached);
}

/* ---- what is new ---- */

void keep_note(struct worker *worker)
{
	struct keep *keep = &worker->keep;

	if (keep->on && !keep->noted) {
		keep->noted = true;
		checkpoint_note(&worker->daemon->checkpoint);
	}
}

static void mark(struct worker *worker, struct session *session)
{
	if (!session->keep.changed) {
		session->keep.changed = true;
		TAILQ_INSERT_TAIL(&worker->keep.changed, session, keep.changed_link);
		keep_note(worker);
	}
}

void keep_numbers(struct session *session)
{
	if (session->worker->keep.on) {
		mark(session->worker, session);
	}
}

void keep_answers(struct session *session)
{
	session->keep.answers = true;
	keep_numbers(session);
}

void keep_leases(struct session *session)
{
	session->keep.leases = true;
	keep_numbers(session);
}

int keep_detached(struct worker *worker, const char *path, size_t len, int64_t n)
{
	return worker->keep.on ? held_add(&worker->keep.detached, path, len, n) : 0;
}

bool keep_reach_begin(struct worker *worker)
{
	return !worker->keep.on || checkpoint_reach_begin(&worker->daemon->checkpoint);
}

void keep_reach_end(struct worker *worker)
{
	if (worker->keep.on) {
		checkpoint_reach_end(&worker->daemon->checkpoint);
	}
}

static void leave_cut(struct worker *worker, struct session *session)
{
	if (session->keep.cut) {
		session->keep.cut = false;
		TAILQ_REMOVE(&worker->keep.cut, session, keep.cut_link);
	}
}

bool keep_end(struct worker *worker, struct session *session)
{
	leave_cut(worker, session);
	if (!session->keep.in_file && !session->keep.ended) {
		if (session->keep.changed) {
			TAILQ_REMOVE(&worker->keep.changed, session, keep.changed_link);
		}
		return false;
	}
	directory_park(&worker->daemon->directory, session);
	session->keep.ended = true;
	session->keep.in_file = false;
	session->keep.durable_batch = session->keep.durable_operation = 0;
	mark(worker, session);
	return true;
}

void keep_debt(struct worker *worker, const struct session *session, struct debt *debt)
{
	if (!worker->keep.on) {
		return;
	}
	memcpy(debt->session, session->id, sizeof(debt->session));
	(void)!getrandom(debt->id, sizeof(debt->id), 0);
	held_keep_all(&debt->held);
	keep_note(worker);
}

void keep_paid(struct worker *worker, struct debt *debt)
{
	if (!worker->keep.on) {
		(void)giveback_debt_free(debt);
		return;
	}
	STAILQ_INSERT_TAIL(&worker->keep.paid, debt, link);
	keep_note(worker);
}

void keep_restored(struct session *session)
{
	session->keep.in_file = true;
	session->keep.durable_batch = session->last_batch;
	session->keep.durable_operation = operations_settled(&session->operations);
}

/* ---- what has become durable ---- */

static void tell_durable(struct session *session)
{
	const struct reply reply = {
		.type = REPLY_DURABLE,
		.durable = { .batch = session->keep.cut_batch,
			     .operation = session->keep.cut_operation },
	};
	struct connection *connection = session->connection;

	if (session->keep.durable_batch == session->keep.cut_batch &&
	    session->keep.durable_operation == session->keep.cut_operation) {
		return;
	}
	session->keep.durable_batch = session->keep.cut_batch;
	session->keep.durable_operation = session->keep.cut_operation;
	if (connection != NULL && connection_is_active(connection)) {
		connection_reply(connection, &reply);
		connection_settle(connection);
	}
}

static void wait_free(struct keep_wait *wait)
{
	TAILQ_REMOVE(&wait->connection->worker->keep.waits, wait, link);
	wait->connection->n_flushes--;
	free(wait);
}

static void answer(struct keep_wait *wait, const char *why)
{
	struct connection *connection = wait->connection;
	const struct reply reply = { .id = wait->id,
				     .type = REPLY_FLUSHED,
				     .flushed = { .durable = true } };
	uint64_t id = wait->id;

	wait_free(wait);
	if (why == NULL) {
		connection_reply(connection, &reply);
	} else {
		serve_error(connection, id, CODE_UNAVAILABLE, "it is counted, but not durable: %s",
			    why);
	}
	connection_settle(connection);
}

static void answer_waits(struct worker *worker, const char *why)
{
	struct keep *keep = &worker->keep;
	struct keep_wait *wait;

	while ((wait = TAILQ_FIRST(&keep->waits)) != NULL && wait->checkpoint <= keep->seen) {
		arena_reset(&worker->out);
		answer(wait, why);
	}
}

/* A checkpoint is over since the last turn. What it did not write the next one will, with its own. */
static void take_over(struct worker *worker)
{
	struct keep *keep = &worker->keep;
	char why[STORE_MAX_WHY];
	bool durable = checkpoint_over(&worker->daemon->checkpoint, &keep->seen, why);
	struct session *session;

	while (durable && (session = TAILQ_FIRST(&keep->cut)) != NULL) {
		leave_cut(worker, session);
		arena_reset(&worker->out);
		tell_durable(session);
	}
	answer_waits(worker, durable ? NULL : why);
}

void keep_turn(struct worker *worker)
{
	struct keep *keep = &worker->keep;
	struct checkpoint *checkpoint = &worker->daemon->checkpoint;
	uint64_t asked;

	if (!keep->on) {
		return;
	}
	/* In this order: a checkpoint is over before the next is asked for, so what is asked for here comes after all that is over by then. */
	asked = checkpoint_asked(checkpoint);
	if (checkpoint_last_over(checkpoint) != keep->seen) {
		take_over(worker);
	}
	if (asked != keep->answered) {
		keep->answered = asked;
		checkpoint_give(checkpoint, worker->index, keep_cut(worker));
	}
}

void keep_last(struct worker *worker)
{
	if (worker->keep.on) {
		checkpoint_give_last(&worker->daemon->checkpoint, worker->index, keep_cut(worker));
	}
}

/* ---- clients that wait ---- */

void keep_wait(struct connection *connection, uint64_t id)
{
	struct worker *worker = connection->worker;
	struct keep_wait *wait;

	if (!worker->keep.on) {
		serve_error(connection, id, CODE_FAILED_PRECONDITION,
			    "this daemon keeps no state file: nothing becomes durable");
		return;
	}
	if (connection->n_flushes >= MESSAGE_MAX_WAITS) {
		serve_error(connection, id, CODE_RESOURCE_EXHAUSTED,
			    "%u durable flushes of this connection wait, and no more may",
			    connection->n_flushes);
		return;
	}
	wait = malloc(sizeof(*wait));
	if (wait == NULL) {
		serve_error(connection, id, CODE_RESOURCE_EXHAUSTED, "the daemon is out of memory");
		return;
	}
	*wait = (struct keep_wait){
		.connection = connection,
		.id = id,
		.checkpoint = checkpoint_want(&worker->daemon->checkpoint),
	};
	connection->n_flushes++;
	TAILQ_INSERT_TAIL(&worker->keep.waits, wait, link);
}

void keep_waits_drop(struct connection *connection)
{
	struct keep_wait *wait, *next;

	if (connection->n_flushes == 0) {
		return;
	}
	for (wait = TAILQ_FIRST(&connection->worker->keep.waits); wait != NULL; wait = next) {
		next = TAILQ_NEXT(wait, link);
		if (wait->connection == connection) {
			wait_free(wait);
		}
	}
}
