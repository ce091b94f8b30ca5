#include "lib/engine/ledger.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/engine/keep.h"

/* Ledgers come in chunks like slots: who charges a counter charges those made with it. */
#define LEDGER_CHUNK_BITS BANK_CHUNK_BITS
#define LEDGER_CHUNK BANK_CHUNK

static struct ledger *find(const struct engine_worker *worker, uint32_t id)
{
	struct ledger *chunk = worker->ledgers ? worker->ledgers[id >> LEDGER_CHUNK_BITS] : NULL;

	return chunk ? &chunk[id & (LEDGER_CHUNK - 1)] : NULL;
}

static uint32_t n_chunks(const struct engine_worker *worker)
{
	return (worker->bank.max_ids + LEDGER_CHUNK - 1) >> LEDGER_CHUNK_BITS;
}

int ledger_reserve(struct engine_worker *worker, uint32_t id)
{
	struct ledger **chunk;

	if (!worker->bank.touched || find(worker, id)) {
		return 0;
	}
	if (!worker->ledgers) {
		worker->ledgers = calloc(n_chunks(worker), sizeof(*worker->ledgers));
		if (!worker->ledgers) {
			return -ENOMEM;
		}
	}
	chunk = &worker->ledgers[id >> LEDGER_CHUNK_BITS];
	*chunk = calloc(LEDGER_CHUNK, sizeof(**chunk));
	return *chunk ? 0 : -ENOMEM;
}

int ledger_reserve_up(struct engine_worker *worker, uint32_t id)
{
	int r = 0;

	if (!worker->bank.touched) {
		return 0;
	}
	for (; r == 0 && id != TREE_NONE; id = tree_parent(&worker->engine->tree, id)) {
		r = ledger_reserve(worker, id);
	}
	return r;
}

void ledger_write(struct engine_worker *worker, uint32_t id, int64_t charged, int64_t ahead,
		  int64_t taken)
{
	struct ledger *ledger = find(worker, id);

	if (ledger) {
		ledger->charged += (uint64_t)charged;
		ledger->ahead += (uint64_t)ahead;
		ledger->taken += (uint64_t)taken;
		bank_note(&worker->bank, id);
	}
}

void ledger_deinit(struct engine_worker *worker)
{
	for (uint32_t i = 0; worker->ledgers && i < n_chunks(worker); i++) {
		free(worker->ledgers[i]);
	}
	free(worker->ledgers);
	worker->ledgers = NULL;
}

/* ---- cuts ---- */

unsigned engine_seat(const struct engine_worker *worker)
{
	return (unsigned)(worker - worker->engine->seats);
}

struct cutting {
	const struct engine_worker *worker;
	engine_growth_fn growth;
	void *ctx;
};

static void tell(void *ctx, uint32_t id)
{
	const struct cutting *cutting = ctx;
	const struct slot *slot = bank_slot(&cutting->worker->bank, id);
	const struct ledger *ledger = find(cutting->worker, id);
	struct engine_growth growth = { .id = id, .added = slot ? slot_count(slot) : 0 };

	if (ledger) {
		growth.charged = ledger->charged;
		growth.ahead = ledger->ahead;
		growth.taken = ledger->taken;
	}
	cutting->growth(cutting->ctx, &growth);
}

static void ignore(void *ctx, uint32_t id)
{
	(void)ctx;
	(void)id;
}

/* The marks are used up by it: what they say is among what is told. Numbers that came back to 0 are told too. */
static void cut_all(struct engine_worker *worker, struct cutting *cutting)
{
	uint32_t n = atomic_load_explicit(&worker->bank.n_ids, memory_order_relaxed);

	bank_cut(&worker->bank, ignore, NULL);
	for (uint32_t id = 0; id < n && id < worker->bank.max_ids; id++) {
		if (bank_slot(&worker->bank, id) || find(worker, id)) {
			tell(cutting, id);
		}
	}
}

void engine_cut(struct engine_worker *worker, bool all, engine_growth_fn growth, void *ctx)
{
	struct cutting cutting = { .worker = worker, .growth = growth, .ctx = ctx };

	if (!worker->bank.touched) {
		return;
	}
	if (all) {
		cut_all(worker, &cutting);
	} else {
		bank_cut(&worker->bank, tell, &cutting);
	}
}
