#pragma once
/*
 * keep: what whoever keeps an engine's counts across restarts needs of it: growth worker by worker, the names that come and go, the usage of
 * windows as far as it is kept, and the way back.
 *
 * Cuts. A worker's cut is taken by its own thread at one point of its loop: all that it has ever brought to counters that it touched since
 * its last cut, as cumulative numbers. So a cut that is handed on together with the numbers of the batches the worker has applied says
 * exactly what these batches have done, whatever has been folded or flushed; one that gets lost is made good by a cut of all; and the sum over
 * all seats, from the value that was restored on, is the counter's own value. Adds pay nothing for it: that a counter was touched is known
 * from the dirty marks that a flush takes (lib/count/bank.h), and from folds.
 *
 * Names. Counters that were made and removed are told in order, once, to one thread. The id of a removed counter is used again only after
 * engine_changes_done said that all cuts which can speak of it have been taken.
 *
 *	engine_changes			removed counters are noted: they get no more growth
 *	every worker: engine_cut	the last of their growth comes
 *	engine_changes			what was made meanwhile, so that every id in the cuts is known
 *	(all cuts are merged; what was told as gone before they were taken gives its own value to its parent, as in the engine)
 *	engine_changes_done		of these
 *
 * Usage. Windows and buckets are shared by all workers, so what stands in them is ahead of the cuts. Beside each the engine keeps a second
 * figure, of what the cuts say: engine_usage_add. Growth counts there in the window of the cut it is in, which may be the one after its
 * own: never less is kept than came in the window that goes on (of a gauge's adds, their sum between two cuts). Limits without a
 * window need none: they have what the totals have, and what is charged but not spent (`ahead`).
 *
 * All this only with engine_options.keep; without, nothing is noted and nothing is spent on it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/engine/engine.h"
#include "lib/engine/quota.h"

#define ENGINE_NO_ID UINT32_MAX

/* All numbers are cumulative over the seat's life, modulo 2^64: the difference to the cut before is what happened between. */
struct engine_growth {
	uint32_t id;
	uint64_t added; /* by adds: to own value and limits */
	uint64_t charged; /* to the own value by charges, uncharges (negative), spent leases, engine_set */
	uint64_t ahead; /* leased and not spent or returned (forfeited too): limits without a window have it, the own value has not (negative where units are spent that others leased) */
	uint64_t taken; /* by charges and leases, only what came: windows and rates have it */
};
typedef void (*engine_growth_fn)(void *ctx, const struct engine_growth *growth);

/* The seat that a worker has: 0 .. ENGINE_MAX_WORKERS - 1. Another worker may have it later, and goes on with its numbers. */
unsigned engine_seat(const struct engine_worker *worker);

/*
 * The worker's thread. Every counter that the worker brought something to since its last cut (and perhaps some that it did not, for which the
 * numbers are as they were; also of an id whose counter has been gone for long), each once, by ascending id. `all`: every one that the seat ever had
 * something for; for when the last cut was lost. Waits for nobody, and nobody for it. What a worker brings after its last cut, the next one on
 * its seat tells: so cut before engine_leave.
 */
void engine_cut(struct engine_worker *worker, bool all, engine_growth_fn growth, void *ctx);

struct engine_born {
	uint32_t id, parent; /* ENGINE_NO_ID: a metric */
	const char *path;    /* not terminated; valid during the call */
	size_t len;
	int64_t born_ns;
};

/*
 * One thread calls these two. What came since the last call, in order, each once. `gone`: its own value, and what it was ahead by, are
 * now its parent's (ENGINE_NO_ID: nobody's), and so is the last of its growth, which comes with the cuts that are taken after this call. Another counter of
 * its path may be born by then, under another id.
 */
struct engine_changes {
	void (*born)(void *ctx, const struct engine_born *born);
	void (*gone)(void *ctx, uint32_t id, uint32_t parent);
	void *ctx;
};
void engine_changes(struct engine *engine, const struct engine_changes *to);
/* The first n of those told as gone and not done yet: their ids may be used again, and go on with the numbers that the seats have for them. */
void engine_changes_done(struct engine *engine, size_t n);

/* ---- usage as kept ---- */

/* n > 0 more at the counter, of whichever window holds `wall_ns`. By one thread. The counter may be gone: its ancestors' limits have it. */
void engine_usage_add(struct engine *engine, uint32_t id, int64_t n, int64_t wall_ns);

struct engine_usage {
	const char *path; /* valid during the call */
	size_t len;
	struct window window; /* no WINDOW_NONE */
	int64_t number; /* of the window (lib/quota/window.h); of a rate: the wall clock, ns, at which it had `count` */
	int64_t count; /* of a rate: what the bucket held, in the units of its limit, rounded up */
};
typedef void (*engine_usage_fn)(void *ctx, const struct engine_usage *usage);

/* Those that changed since the last call (all = false), or all there are. By the thread of engine_usage_add. */
void engine_usage_each(struct engine *engine, bool all, engine_usage_fn usage, void *ctx);

/*
 * Limits that began at run time, at counters that were there, don't have what was added and charged before them; but the next cuts do. To be called once in each checkpoint, with all its
 * growth added: what is kept of such a limit becomes what is used now, which is all that came since it began (and what has come since the cuts were
 * taken, once more). By the thread of engine_usage_add.
 */
void engine_usage_trim(struct engine *engine, const struct quota_time *time);

/*
 * As they stand now, for when nobody adds or charges any more: what is kept becomes what is. By the thread of engine_usage_add.
 */
void engine_usage_settle(struct engine *engine, const struct quota_time *time);

/* ---- the way back: before any worker has joined; metrics and rules are declared already ---- */

/*
 * A counter with its own value and what it is ahead by: that many units were leased there, and are forfeited but for what
 * engine_restore_lease says that leases have. Totals have the own value, limits without a window both. It is not told as born. Ceilings
 * don't count. Call it in the order of `born_ns`: so parents come before their children, and births stay as they were (one that comes too
 * late gets the next after the last); ancestors that are missing all the same are made, and told as born. Nothing was removed before.
 * ENGINE_E_PATH, ENGINE_E_FULL (no more ids), -ENOMEM. ret_id may be NULL.
 */
int engine_restore(struct engine *engine, const char *path, size_t len, int64_t own, int64_t ahead,
		   int64_t born_ns, uint32_t *ret_id);

/*
 * A lease on `path` has so many units of what was restored as ahead there; or, for what is not there, under ENGINE_OTHER of an ancestor (there
 * was no room for the path) or at an ancestor (the path was removed while somebody leased it). After every engine_restore.
 * ENGINE_E_UNDERFLOW: there are not so many, and those that there are are leased; ENGINE_E_PATH.
 */
int engine_restore_lease(struct engine *engine, const char *path, size_t len, int64_t units);

/* ENGINE_E_NOT_FOUND: no limit in this window there any more: nothing to do. A window that is over counts as empty. */
int engine_restore_usage(struct engine *engine, const struct engine_usage *usage,
			 const struct quota_time *time);

/*
 * All that was kept is there. To be called once with `keep`, before any worker joins, also if there was nothing to restore: counters whose
 * paths rules name are made now and not before, so that their births come after those of the counters that were restored. ENGINE_E_OVERFLOW: totals of what was restored leave int64, and
 * are not right.
 */
int engine_restored(struct engine *engine, struct quota_time time);

/* ---- orders ---- */

/*
 * Set the own value, of a counter that is made if need be: to `own` exactly at one moment; adds that come at the same time add to that. Limits without a
 * window follow, windows don't. The worker's own thread. ENGINE_E_PATH, ENGINE_E_FULL, ENGINE_E_METRIC_FULL, ENGINE_E_NEGATIVE (of a counter that only grows),
 * ENGINE_E_OVERFLOW, -ENOMEM. Past a ceiling nothing is counted under ENGINE_OTHER.
 */
int engine_set(struct engine_worker *worker, const char *path, size_t len, int64_t own,
	       struct quota_time time);

/*
 * Charge whatever the limits say: what was granted once is granted again, to the last unit. As engine_charge (no bindings, no dry run; of a metric
 * that nobody knows too) and engine_lease.
 */
int engine_charge_again(struct engine_worker *worker, const struct engine_charge *charge,
			size_t *ret_index);
int engine_lease_again(struct engine_worker *worker, const char *path, size_t len, int64_t units,
		       struct quota_time time);
/*
 * Give back what was given back once, also where it has not been charged again yet: the own value can be less than 0 until then. The counter is made if need be. As engine_uncharge
 * without ENGINE_E_UNDERFLOW, and what can be in the way of making it: ENGINE_E_FULL, ENGINE_E_METRIC_FULL.
 */
int engine_uncharge_again(struct engine_worker *worker, const char *path, size_t len, int64_t n,
			  struct quota_time time);
