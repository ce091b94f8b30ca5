#pragma once
/*
 * charge: what all requests for room have in common. engine_charge is here, engine_lease in lease.c, dry runs in dry.c.
 *
 * A charge's way: find the counters, making those that are missing; find the nearest limit of each plane above each; if it comes near a
 * max and something is held back, flush once and begin anew; decide (lib/quota); add what was granted to the totals. From finding to adding
 * it stays in one read section, begun with the gate open: so no counter it found goes, no limit it found changes places, and whoever closes
 * the gate or removes a counter finds all of the charge or nothing.
 *
 * Totals get it only after the planes have granted it, and without passing the planes again (tree_grow). Before that one thing must be
 * certain: that they can't leave int64. As with adds (strict.h): charges below STRICT_AMOUNT go on, and look whether a total is beyond
 * the edge afterwards; others, and those to strict metrics, are decided under the registry's lock, where totals are checked first.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/engine/plane.h"
#include "lib/engine/quota.h"

/* Requests of up to so many items take no memory. */
#define CHARGE_SMALL 4u
#define CHARGE_SMALL_ITEMS (CHARGE_SMALL * ENGINE_MAX_PLANES)
#define CHARGE_SMALL_STEPS (CHARGE_SMALL_ITEMS * PATH_MAX_SEGMENTS)

struct target {
	struct engine_ref ref; /* life 0: not found yet */
	int64_t n;
};

struct charging;

/*
 * Decide, with everything found and nothing in the way, and add to the totals. 0 or ENGINE_E_REFUSED, or another refusal without effect.
 */
typedef int (*charge_decide)(struct charging *charging);

struct charging {
	struct engine_worker *worker;
	struct engine *engine;
	const struct engine_charge_item *items;
	size_t n;
	struct quota_time time;
	engine_binding_fn binding;
	void *ctx;
	charge_decide decide;
	bool totals; /* what is decided reaches the totals */
	bool again;  /* it was granted before, and is whatever anybody says now */
	int64_t sum; /* of the items */

	struct target *targets;
	bool strict; /* some target is of a strict metric, or sum is too large to be added without a look */
	bool closed; /* some target may be about to expire */
	bool locked; /* under the registry's lock instead of in a read section */
	bool turn;   /* `turn_ref`'s metric came beyond the edge and has to turn strict */
	struct engine_ref turn_ref;

	/* What the planes are asked; trail and needs have room for all steps. */
	struct quota_item *asks;
	size_t n_asks;
	size_t steps_room;
	uint64_t *trail;
	struct quota_need *needs;
	struct quota_outcome outcome;

	struct target small_targets[CHARGE_SMALL];
	struct quota_item small_asks[CHARGE_SMALL_ITEMS];
	uint64_t small_trail[CHARGE_SMALL_STEPS];
	struct quota_need small_needs[CHARGE_SMALL_STEPS];
};

/* ENGINE_E_AMOUNT, -ENOMEM. */
int charging_init(struct charging *charging, struct engine_worker *worker,
		  const struct engine_charge_item *items, size_t n, const struct quota_time *time,
		  size_t *ret_index);
void charging_deinit(struct charging *charging);

/* What `decide` says, or why it came to no decision. Outside read sections. */
int charging_run(struct charging *charging, size_t *ret_index);

/* Room for what `asks` can meet. -ENOMEM. */
int charging_room(struct charging *charging);

/* Is the metric declared, counted or limited? Under the registry's lock. */
bool charge_known(struct engine *engine, const char *path, size_t len);

/* Put all items into the planes, whatever their limits say. */
void charging_force(struct charging *charging);

/* Add n at this counter and up, as growth that is charged already. True: a total or the own value is far. Between fold_begin and fold_end. */
bool charge_add(struct engine *engine, uint32_t id, int64_t n);

/* ---- verdict.c: what the ancestors say ---- */

/* Would the charge come so near to some limit that growth which is held back may matter? */
bool verdict_near(const struct charging *charging);

/* After a refusal: everyone who refuses, shadows included. */
void verdict_refused(const struct charging *charging);

/* After a grant that said somebody is over high, or a shadow refused. */
void verdict_granted(const struct charging *charging);

/* Without having charged. True: granted. */
bool verdict_dry(const struct charging *charging);

/* ---- dry.c ---- */

/* 0 or ENGINE_E_REFUSED, as it would be; some counters are missing. */
int dry_run_missing(struct charging *charging, size_t *ret_index);
