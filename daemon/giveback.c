#include "daemon/giveback.h"

#include "daemon/daemon.h"
#include "daemon/keep.h"
#include "daemon/lease.h"
#include "daemon/session.h"
#include "daemon/worker.h"
#include "lib/engine/keep.h"
#include "lib/engine/quota.h"
#include "lib/names/path.h"

#include <stdlib.h>
#include <string.h>

typedef int (*engine_fn)(struct engine_worker *worker, const char *path, size_t len, int64_t n,
			 struct quota_time time);

/* Under ENGINE_OTHER of the nearest ancestor that takes them. */
static int give_other(struct worker *worker, engine_fn engine, const char *path, size_t len,
		      int64_t n)
{
	char other[PATH_MAX_BYTES + sizeof(ENGINE_OTHER) + 1];
	int r = ENGINE_E_NOT_FOUND;

	for (len = path_parent(path, len); len > 0 && r != 0; len = path_parent(path, len)) {
		memcpy(other, path, len);
		memcpy(other + len, "/" ENGINE_OTHER, sizeof(ENGINE_OTHER));
		r = engine(worker->engine, other, len + sizeof(ENGINE_OTHER), n,
			   *worker_time(worker));
	}
	return r;
}

static int give(struct worker *worker, engine_fn engine, const char *path, size_t len, int64_t n)
{
	int r = engine(worker->engine, path, len, n, *worker_time(worker));

	if (__builtin_expect(r == ENGINE_E_NOT_FOUND || r == ENGINE_E_UNDERFLOW, 0) &&
	    give_other(worker, engine, path, len, n) == 0) {
		r = 0;
	}
	return r;
}

int giveback_charge(struct worker *worker, const char *path, size_t len, int64_t n)
{
	int r = give(worker, engine_uncharge, path, len, n);

	if (r == 0) {
		waiting_wake(&worker->daemon->waiting, path, len);
	}
	return r;
}

int giveback_again(struct worker *worker, const char *path, size_t len, int64_t n)
{
	int r = engine_uncharge_again(worker->engine, path, len, n, *worker_time(worker));

	if (r == 0) {
		waiting_wake(&worker->daemon->waiting, path, len);
	}
	return r;
}

int64_t giveback_lease(struct worker *worker, const struct lease *lease, int64_t units)
{
	engine_fn end = lease->gauge ? engine_lease_return : engine_lease_forfeit;

	if (units == 0 || give(worker, end, lease->path, lease->len, units) != 0 || !lease->gauge) {
		return 0;
	}
	waiting_wake(&worker->daemon->waiting, lease->path, lease->len);
	return units;
}

int giveback_spend(struct worker *worker, const char *path, size_t len, int64_t n)
{
	return give(worker, engine_lease_spend, path, len, n);
}

/* So many paths go back in one turn of the worker's loop: well under a millisecond for most. */
#define GIVEBACK_TURN 256u

static void give_held(void *ctx, const char *path, size_t len, int64_t n)
{
	/* It fails only where adds have taken off a gauge what was held of it: then there is nothing left to give. */
	(void)giveback_charge(ctx, path, len, n);
}

static void end_leases(struct worker *worker, struct session *session)
{
	while (session->leases.n > 0) {
		lease_end(&session->leases, &worker->lease_clock, &worker->daemon->leases,
			  session->leases.leases[session->leases.n - 1]);
	}
}

void giveback_forget(struct worker *worker, struct session *session)
{
	end_leases(worker, session);
	stats_add(&worker->stats.held_paths, -(uint64_t)held_paths(&session->held));
	held_deinit(&session->held);
}

bool giveback_more(struct worker *worker)
{
	struct debt *debt = STAILQ_FIRST(&worker->debts);

	if (debt != NULL && !held_drain(&debt->held, &debt->at, GIVEBACK_TURN, give_held, worker)) {
		STAILQ_REMOVE_HEAD(&worker->debts, link);
		keep_paid(worker, debt);
	}
	return !STAILQ_EMPTY(&worker->debts);
}

void giveback_inherit(struct worker *worker, struct debt *debt)
{
	STAILQ_INSERT_TAIL(&worker->debts, debt, link);
	worker_wake(worker);
}

struct debt *giveback_debt_free(struct debt *debt)
{
	if (debt != NULL) {
		held_deinit(&debt->held);
		free(debt);
	}
	return NULL;
}

void giveback_deinit(struct worker *worker)
{
	struct debt *debt;

	while ((debt = STAILQ_FIRST(&worker->debts)) != NULL) {
		STAILQ_REMOVE_HEAD(&worker->debts, link);
		(void)giveback_debt_free(debt);
	}
}

static void give_all_held(struct worker *worker, struct session *session)
{
	uint32_t at = 0;
	struct debt *debt;

	stats_add(&worker->stats.held_paths, -(uint64_t)held_paths(&session->held));
	if (!held_drain(&session->held, &at, GIVEBACK_TURN, give_held, worker)) {
		return;
	}
	debt = calloc(1, sizeof(*debt));
	if (debt == NULL) {
		(void)held_drain(&session->held, &at, UINT32_MAX, give_held, worker);
		return;
	}
	debt->held = session->held;
	debt->at = at;
	session->held = (struct held){ .seed = session->held.seed, .keeps = session->held.keeps };
	keep_debt(worker, session, debt);
	giveback_inherit(worker, debt);
}

void giveback_session(struct worker *worker, struct session *session)
{
	give_all_held(worker, session);
	for (uint32_t i = 0; i < session->leases.n; i++) {
		const struct lease *lease = session->leases.leases[i];

		(void)giveback_lease(worker, lease, lease->units);
	}
	end_leases(worker, session);
}
