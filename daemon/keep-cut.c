/*
 * The cut that a worker makes of itself.
 */
#include "daemon/keep.h"

#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/giveback.h"
#include "daemon/session.h"
#include "daemon/store/cut.h"
#include "daemon/worker.h"
#include "lib/base/cursor.h"
#include "lib/engine/keep.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory: see keep.h ---- */

static void *must(void *memory)
{
	if (memory == NULL) {
		abort();
	}
	return memory;
}

/* Room for one more in an array that has n. */
static void *grow(void *array, size_t n, size_t *size, size_t each)
{
	if (n < *size) {
		return array;
	}
	*size = *size > 0 ? *size * 2 : 64;
	return must(reallocarray(array, *size, each));
}

/* A cut that is being made. */
struct draft {
	struct worker *worker;
	struct cut *cut;
	size_t growth_size, sessions_size, held_size;
	const uint8_t *holder; /* whose ledger is looked through; NULL: nobody's */
	const uint8_t
		*before; /* of a debt that is told of for the first time: who held it; else NULL */
};

static const uint8_t nobody[MESSAGE_SESSION_BYTES];

static void *copy(struct draft *draft, const void *bytes, size_t len)
{
	return memcpy(must(arena_alloc(&draft->cut->arena, len)), bytes, len);
}

/* ---- growth ---- */

static void add_growth(void *ctx, const struct engine_growth *growth)
{
	struct draft *draft = ctx;
	struct cut *cut = draft->cut;

	cut->growth = grow(cut->growth, cut->n_growth, &draft->growth_size, sizeof(*cut->growth));
	cut->growth[cut->n_growth++] = *growth;
}

/* ---- what is held ---- */

static void put_held(struct draft *draft, const uint8_t *session, const char *path, size_t len,
		     int64_t amount)
{
	struct cut *cut = draft->cut;
	struct cut_held *held;

	cut->held = grow(cut->held, cut->n_held, &draft->held_size, sizeof(*cut->held));
	held = &cut->held[cut->n_held++];
	*held = (struct cut_held){ .path = path, .len = len, .amount = amount };
	memcpy(held->session, session, sizeof(held->session));
}

static void add_held(void *ctx, const char *path, size_t len, int64_t amount)
{
	struct draft *draft = ctx;
	const char *copied = copy(draft, path, len);

	if (draft->before != NULL) {
		put_held(draft, draft->before, copied, len, 0);
		if (amount == 0) {
			return;
		}
	}
	put_held(draft, draft->holder, copied, len, amount);
}

static void add_ledger(struct draft *draft, struct held *held, const uint8_t *holder)
{
	draft->holder = holder;
	held_take_changes(held, add_held, draft);
}

static void add_detached(struct draft *draft)
{
	struct held *detached = &draft->worker->keep.detached;

	add_ledger(draft, detached, nobody);
	held_deinit(detached);
}

/* ---- sessions ---- */

static struct cut_session *add_session(struct draft *draft, const uint8_t *id)
{
	struct cut *cut = draft->cut;
	struct cut_session *place;

	cut->sessions =
		grow(cut->sessions, cut->n_sessions, &draft->sessions_size, sizeof(*cut->sessions));
	place = &cut->sessions[cut->n_sessions++];
	*place = (struct cut_session){ 0 };
	memcpy(place->id, id, sizeof(place->id));
	return place;
}

/* What was written to the worker's memory for replies, into the cut's own. */
static struct bytes_view take_bytes(struct draft *draft, const struct cursor_out *out)
{
	size_t len = cursor_out_len(out);

	return (struct bytes_view){ .at = copy(draft, out->start, len), .len = len };
}

static void begin_bytes(struct draft *draft, struct cursor_out *ret_out, size_t bound)
{
	struct arena *arena = &draft->worker->out;

	arena_reset(arena);
	cursor_out_init(ret_out, must(arena_alloc(arena, bound)), bound);
}

static void add_alive(struct draft *draft, struct session *session)
{
	struct keep_session *keep = &session->keep;
	struct cut_session *place = add_session(draft, session->id);
	struct cursor_out out;

	place->last_batch = session->last_batch;
	place->last_operation = session->operations.last;
	place->lifetime_ns = session->lifetime_ns;
	place->agent.at = copy(draft, session->agent, session->agent_len);
	place->agent.len = session->agent_len;
	if (keep->answers || !keep->in_file) {
		begin_bytes(draft, &out, operations_save_bound(&session->operations));
		operations_save(&session->operations, &out);
		place->answers = take_bytes(draft, &out);
	}
	if (keep->leases || !keep->in_file) {
		begin_bytes(draft, &out, lease_save_bound(&session->leases));
		lease_save(&session->leases, &out);
		place->leases = take_bytes(draft, &out);
	}
	keep->answers = keep->leases = false;
	keep->in_file = true;
	keep->cut_batch = session->last_batch;
	keep->cut_operation = operations_settled(&session->operations);
	if (!keep->cut) {
		keep->cut = true;
		TAILQ_INSERT_TAIL(&draft->worker->keep.cut, session, keep.cut_link);
	}
}

static void add_changed(struct draft *draft, struct session *session)
{
	struct worker *worker = draft->worker;

	TAILQ_REMOVE(&worker->keep.changed, session, keep.changed_link);
	session->keep.changed = false;
	if (session->keep.ended) {
		session->keep.ended = false;
		add_session(draft, session->id)->ended = true;
	}
	add_ledger(draft, &session->held, session->id);
	held_tidy(&session->held);
	if (session->parked) {
		directory_end(&worker->daemon->directory, session);
	} else {
		add_alive(draft, session);
	}
}

/* ---- debts ---- */

static void add_debt(struct draft *draft, struct debt *debt)
{
	if (!debt->in_file) {
		add_session(draft, debt->id)->over = true;
		draft->before = debt->session;
	}
	add_ledger(draft, &debt->held, debt->id);
	draft->before = NULL;
	debt->in_file = true;
}

/* Before the sessions: one of the same id as had the debt may hold something anew. */
static void add_debts(struct draft *draft)
{
	struct keep *keep = &draft->worker->keep;
	struct debt *debt;

	STAILQ_FOREACH(debt, &draft->worker->debts, link)
	{
		add_debt(draft, debt);
	}
	while ((debt = STAILQ_FIRST(&keep->paid)) != NULL) {
		STAILQ_REMOVE_HEAD(&keep->paid, link);
		add_debt(draft, debt);
		add_session(draft, debt->id)->ended = true;
		(void)giveback_debt_free(debt);
	}
}

struct cut *keep_cut(struct worker *worker)
{
	struct draft draft = { .worker = worker, .cut = must(calloc(1, sizeof(*draft.cut))) };
	struct session *session;

	draft.cut->arena = (struct arena)ARENA_INIT(SIZE_MAX);
	draft.cut->seat = engine_seat(worker->engine);
	draft.cut->wall_ns = clock_wall_ns();
	worker->keep.noted = false;
	engine_cut(worker->engine, /* all= */ false, add_growth, &draft);
	add_debts(&draft);
	while ((session = TAILQ_FIRST(&worker->keep.changed)) != NULL) {
		add_changed(&draft, session);
	}
	add_detached(&draft);
	return draft.cut;
}
