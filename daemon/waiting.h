#pragma once
/*
 * waiting: charges that wait for room, first come first served at each limit.
 *
 * Whoever waits stands in a queue at every node that refused it, in the order in which it came. It may try when nobody who came
 * before stands at any node on the way of its paths, from each of them up to the metric; so nobody overtakes at a limit, and nobody
 * starves. (A charge that does not wait is not held up: it is granted if it fits.) When something is given back at a path, the first in
 * each queue on the way up is told to try, and no other; when one leaves, the next one is. So a unit given back wakes at most one
 * waiter for each level, however many wait.
 *
 * Only the worker that owns a waiter tries for it. It is told by being put on that worker's ready list, and the worker being woken.
 *
 * No lost wake-ups:
 *
 *	gives back			waits
 *	usage falls			waiting_stand: stands in the queues
 *	fence_light()			fence_heavy()
 *	waiting_wake: anyone there?	tries (again, if it stands somewhere anew)
 *
 * Either whoever gives back finds the waiter, or the waiter finds the room. What makes room without coming here (an add of less than 0,
 * say) is found by waiting_wake_all, every second.
 *
 * Thread safety: any thread; a waiter's own functions: its owner's thread. One mutex guards all of it, and is not taken while nobody waits.
 */
#include "lib/engine/quota.h"
#include "proto/text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum waiting_error {
	WAITING_OK = 0,
	WAITING_E_FULL, /* as many wait as may, or what they ask for takes as much memory as it may */
};

struct waiting_place;

/* A waiter's part here; part of a larger struct of its owner's. */
struct waiter {
	/* Fixed. */
	unsigned worker;
	const struct engine_charge_item *items;
	size_t n_items;
	/* Guarded by the lock. */
	uint64_t turn; /* the order in which they came */
	LIST_HEAD(, waiting_place) stands;
	bool ready; /* on its worker's list */
	TAILQ_ENTRY(waiter) link;
	size_t bytes; /* charged to the limit */
};

TAILQ_HEAD(waiting_ready, waiter);

struct waiting {
	pthread_mutex_t lock;
	_Atomic(uint32_t) n; /* written under the lock */
	uint32_t max;
	size_t bytes, max_bytes;
	uint64_t next_turn;
	struct waiting_node **buckets;
	size_t n_buckets; /* a power of two */
	uint32_t n_nodes;
	uint64_t seed;
	struct waiting_ready *ready; /* by worker */
	unsigned n_workers;
	void (*wake)(void *ctx, unsigned worker); /* quick; called under the lock */
	void *ctx;
};

/* -ENOMEM. */
int waiting_init(struct waiting *waiting, unsigned n_workers, uint64_t seed,
		 void (*wake)(void *ctx, unsigned worker), void *ctx);
/* Accepts what was zeroed. Nobody waits. */
void waiting_deinit(struct waiting *waiting);
void waiting_set_limits(struct waiting *waiting, uint32_t max, size_t max_bytes);

/* How many wait. */
static inline uint32_t waiting_count(const struct waiting *waiting)
{
	/* Relaxed: see waiting_wake for the one case in which more is needed. */
	return atomic_load_explicit((_Atomic(uint32_t) *)(uintptr_t)&waiting->n,
				    memory_order_relaxed);
}

/* ---- waiters ---- */

/* Begins to wait; `bytes` is what the owner keeps for it. WAITING_E_FULL. */
int waiting_join(struct waiting *waiting, struct waiter *waiter, size_t bytes);

/*
 * Is it its turn at every node on its way? Where somebody who came before stands it stands behind now, so that it is told when that
 * changes. -ENOMEM, WAITING_E_FULL: it could not be made sure of that.
 */
int waiting_turn(struct waiting *waiting, struct waiter *waiter, bool *ret_its_turn);

/*
 * It tried, and these nodes refused it: it stands there, and nowhere else. *ret_anew: somewhere for the first time, so that it must try once
 * more, after fence_heavy(). -ENOMEM, WAITING_E_FULL.
 */
int waiting_stand(struct waiting *waiting, struct waiter *waiter, const struct text *nodes,
		  size_t n, bool *ret_anew);

/* It waits no longer. */
void waiting_leave(struct waiting *waiting, struct waiter *waiter);

/* One of the worker's that is to try; NULL: none. */
struct waiter *waiting_next(struct waiting *waiting, unsigned worker);

/* ---- room ---- */

/* Something was given back at a path. */
void waiting_wake(struct waiting *waiting, const char *path, size_t len);
/* Limits were changed, or may have room for another reason. */
void waiting_wake_all(struct waiting *waiting);
