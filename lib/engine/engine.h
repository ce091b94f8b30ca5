#pragma once
/*
 * engine: where names and counts meet.
 *
 * Workers add to counters; what they add is held back in their slots and folded into the totals of a counter and all its
 * ancestors when it reaches a batch, or when somebody flushes. Reads never take a lock that an add can wait for.
 *
 * Contract for every function: the calling thread is registered with lib/rcu (grace_register). Time is a parameter, in
 * nanoseconds since the epoch, and may step; the engine reads no clock, logs nothing and opens nothing.
 *
 * Which thread may call what:
 *   engine_add                     the worker's own thread, inside engine_begin/engine_end
 *   engine_join, engine_leave      any thread; a worker is used by one thread at a time
 *   all others                     any thread, also concurrently, outside a read section
 *
 * Three consistencies (what a read may miss):
 *   ENGINE_CACHED   the folded totals as they are
 *   ENGINE_FRESH    flushed first if more than the pending threshold is held back
 *   ENGINE_EXACT    everything added before the call is included
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct engine_worker;

#define ENGINE_MAX_WORKERS 64u
#define ENGINE_MAX_COUNTERS 1000000u /* default ceiling */
#define ENGINE_MAX_COUNTERS_LIMIT (1u << 26)
#define ENGINE_MAX_METRICS 1024u /* that can be declared */
#define ENGINE_MAX_REFUSED 16u	 /* distinct prefixes remembered */
#define ENGINE_OTHER "__other__"

enum engine_error {
	ENGINE_OK = 0,
	ENGINE_E_PATH,	      /* not a path; ask path_check for the reason */
	ENGINE_E_NOT_FOUND,   /* no such counter */
	ENGINE_E_GONE,	      /* the reference's counter was removed */
	ENGINE_E_NEGATIVE,    /* a negative add to a counter that only grows */
	ENGINE_E_OVERFLOW,    /* a total would leave int64 */
	ENGINE_E_FULL,	      /* the ceiling on counters is reached */
	ENGINE_E_METRIC_FULL, /* the metric's own ceiling is reached */
	ENGINE_E_KIND,	      /* the metric already counts as the other kind */
	ENGINE_E_BUSY,	      /* no seat left for a worker */
	ENGINE_E_CURSOR,      /* not a cursor of this walk */
	/* of lib/engine/quota.h */
	ENGINE_E_REFUSED,   /* a quota refuses the charge */
	ENGINE_E_AMOUNT,    /* an amount out of range */
	ENGINE_E_UNDERFLOW, /* more is given back than is held */
	ENGINE_E_RULE,	    /* a fatal fault in a rule */
};

enum engine_kind {
	ENGINE_COUNTER, /* only grows */
	ENGINE_GAUGE,	/* goes up and down */
};

enum engine_consistency {
	ENGINE_CACHED,
	ENGINE_FRESH,
	ENGINE_EXACT,
};

struct engine_options {
	uint32_t max_counters; /* 1 .. ENGINE_MAX_COUNTERS_LIMIT; every node of a path counts */
	uint32_t max_workers;  /* 1 .. ENGINE_MAX_WORKERS */
	uint32_t batch; /* growth a slot holds back at most is batch - 1; 1 .. 2^20; 0: max(32, 2 x CPUs) by `cpus` */
	uint32_t cpus; /* for the default batch */
	uint64_t seed; /* of the hash; random against crafted names */
	bool keep; /* lib/engine/keep.h can be used; costs some memory for each counter that a worker touches */
};

/* What the owner of a metric may decide. A metric that was never declared is a counter with no ceiling of its own. */
struct engine_metric {
	enum engine_kind kind;
	uint32_t max_counters; /* ceiling under this metric, its root included; 0: none but the engine's */
	bool overflow; /* past the ceiling: count under <parent>/__other__ instead of refusing */
	int64_t expire_after_ns; /* leaves idle this long are removed, their own value stays in the parent; 0: never */
};

/* A counter by number: valid until the counter is removed, and then never valid again. */
struct engine_ref {
	uint32_t id;
	uint32_t life;
};

/* How far an answer can be off. */
struct engine_view {
	int64_t error_bound; /* a value may lack at most this much growth (in magnitude) added before the call */
	int64_t age_ns; /* since the flush it rests on began; 0: exact; INT64_MAX: there was none yet */
};

struct engine_reading {
	enum engine_kind kind;
	bool leaf;
	/*
	 * As far as folded, both: what engine_view is about. In a metric that only grows neither ever steps back for any reader but by engine_set,
	 * and own <= total.
	 */
	int64_t own;   /* added at this very path */
	int64_t total; /* own and below */
	int64_t born_ns;
};

int engine_new(struct engine **ret_engine, const struct engine_options *options);
/* All workers must have left. Takes NULL, returns NULL. */
struct engine *engine_free(struct engine *engine);

/* ---- metrics ---- */

/*
 * Declare or change a metric. The kind can change only while the metric has no counters (ENGINE_E_KIND); the rest at any
 * time. `name` is one segment (ENGINE_E_PATH otherwise). Declared metrics take no place under the ceiling.
 */
int engine_declare(struct engine *engine, const char *name, size_t len,
		   const struct engine_metric *metric);
/* ENGINE_E_NOT_FOUND if never declared and not counted. */
int engine_metric(struct engine *engine, const char *name, size_t len,
		  struct engine_metric *ret_metric);

/* Those that were declared, by name. The name is valid during the call, which must not call the engine. */
typedef void (*engine_metric_fn)(void *ctx, const char *name, size_t len,
				 const struct engine_metric *metric);
void engine_metrics(struct engine *engine, engine_metric_fn metric, void *ctx);

/* ---- workers ---- */

int engine_join(struct engine *engine, struct engine_worker **ret_worker);
/* Folds all the worker holds back, then gives up its seat. No count is lost, none moves backwards for any reader. */
void engine_leave(struct engine_worker *worker);

/*
 * A worker adds between these two; keep the stretch short (one frame), a removal waits for it. They nest. The thread is in no other
 * read section meanwhile: the rare add that must wait for a lock (near the ends of int64) leaves this one and comes back.
 */
void engine_begin(struct engine_worker *worker);
void engine_end(struct engine_worker *worker);

/*
 * The add. 0, or ENGINE_E_GONE, ENGINE_E_NEGATIVE, ENGINE_E_OVERFLOW; -ENOMEM. On any error nothing was counted.
 * No lock, no locked instruction and one cache line written while less than a batch is held back.
 */
int engine_add(struct engine_worker *worker, struct engine_ref ref, int64_t n);

struct engine_item {
	struct engine_ref ref;
	int64_t n;
};

/* `error` as of engine_add, for items[index]. */
typedef void (*engine_add_failed)(void *ctx, size_t index, int error);

/*
 * engine_add for each item, in order, each by itself; `failed` (may be NULL) is called for those that were not counted, of which the number is
 * returned. Cheaper than one by one when there are many counters, since what later items need is asked for ahead.
 */
size_t engine_add_many(struct engine_worker *worker, const struct engine_item *items, size_t n,
		       engine_add_failed failed, void *ctx);

/* ---- names ---- */

/*
 * The counter at `path`, made with all its ancestors if need be. ENGINE_E_PATH, ENGINE_E_FULL, ENGINE_E_METRIC_FULL, -ENOMEM.
 * With the metric's overflow policy the reference returned past a ceiling is that of <parent>/__other__.
 */
int engine_intern(struct engine *engine, const char *path, size_t len, int64_t now_ns,
		  struct engine_ref *ret_ref);

/*
 * Remove a leaf: its own value moves to its parent, whose total does not change (a metric's is gone). ENGINE_E_PATH, ENGINE_E_NOT_FOUND;
 * ENGINE_E_BUSY: it has children, or units of it are leased; ENGINE_E_OVERFLOW: the parent's own value would leave int64. References to it
 * are dead when this returns, and stay so.
 */
int engine_remove(struct engine *engine, const char *path, size_t len);

/*
 * Remove leaves idle for their metric's expire_after, metrics themselves apart: leaves whose own value was the same whenever this looked
 * for that long (so a gauge that always is back at its value by then counts as idle), and limits don't keep them (lib/engine/quota.h). Call it every so often; each call looks at at most `budget`
 * counters and goes on where the last one stopped. Returns how many were removed.
 */
size_t engine_expire(struct engine *engine, int64_t now_ns, size_t budget);

/* ---- reads ---- */

/* Make the totals as consistent as asked (flush if need be) and say what that gives. */
void engine_refresh(struct engine *engine, enum engine_consistency consistency, int64_t now_ns,
		    struct engine_view *ret_view);

/* Fold everything. Any thread; whoever arrives while a flush runs shares the next one. */
void engine_flush(struct engine *engine, int64_t now_ns);

/* As the totals stand; call engine_refresh first. ENGINE_E_PATH, ENGINE_E_NOT_FOUND. */
int engine_get(struct engine *engine, const char *path, size_t len,
	       struct engine_reading *ret_reading);

/* The born_ns of the newest counter: those that are made from now on have a larger one. INT64_MIN: there was none. */
int64_t engine_newest(const struct engine *engine);

/* ---- walk ---- */

#define ENGINE_CURSOR_MAX 768u

/* Where a walk stands: opaque bytes that survive removals; `len` 0 is the start. */
struct engine_cursor {
	uint16_t len;
	uint8_t bytes[ENGINE_CURSOR_MAX];
};

struct engine_entry {
	const char *path; /* not terminated; valid during the call */
	size_t len;
	uint32_t depth; /* 1: a metric */
	struct engine_reading reading;
};

typedef void (*engine_visit)(void *ctx, const struct engine_entry *entry);

/*
 * Visit the subtree under `root` ("" or len 0: all metrics), parents before children, down to `depth` levels below it (0: the
 * root alone; UINT32_MAX: all), at most `limit` entries, from `cursor` on, which moves. A counter that is there during the whole
 * walk is visited exactly once, over any number of calls; one that comes or goes meanwhile at most once.
 * *ret_done: nothing is left. ENGINE_E_PATH, ENGINE_E_NOT_FOUND (no such root), ENGINE_E_CURSOR.
 */
int engine_walk(struct engine *engine, const char *root, size_t len, uint32_t depth, size_t limit,
		struct engine_cursor *cursor, engine_visit visit, void *ctx, bool *ret_done);

/* ---- what the engine says of itself ---- */

struct engine_refused {
	char prefix[513]; /* the refused paths' parent; "" where a metric was refused */
	uint64_t count; /* not too small; too large by at most all refusals / ENGINE_MAX_REFUSED */
};

struct engine_stats {
	/* There may be more than the ceiling says: ENGINE_OTHER of a full engine, with the metric two for each declared one. */
	uint32_t counters, counters_max;
	uint32_t workers;
	uint32_t batch;
	uint64_t created, removed, expired;
	uint64_t refused;    /* paths refused at a ceiling */
	uint64_t overflowed; /* paths counted under __other__ */
	uint64_t folds;	     /* slots whose growth was folded */
	uint64_t flushes_run, flushes_shared, flushes_skipped;
	uint64_t pending_signals, pending_skipped;
	uint64_t add_negative, add_overflow, add_gone; /* adds refused, by reason */
	int64_t pending, pending_threshold;
	uint64_t charges_granted, charges_refused; /* dry runs not counted; a lease is a charge */
	uint64_t charge_flushes;		   /* flushes that charges near a max asked for */
	uint64_t gates_closed;			   /* changes of limits that charges waited for */
	uint32_t rules_file, rules_run_time;
	uint32_t planes; /* limits that counters carry: one for each counter and window */
	size_t n_refused_prefixes;
	struct engine_refused refused_prefixes[ENGINE_MAX_REFUSED]; /* most refused first */
};

void engine_stats(struct engine *engine, struct engine_stats *ret_stats);
