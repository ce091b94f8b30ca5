#pragma once
/*
 * checkpoint: the thread that brings what the workers have done into the state file, again and again.
 *
 * One checkpoint: every worker is asked for a cut, the cuts are merged into the store's image, the image is committed in one transaction, and
 * the workers learn that it is over. There is one every checkpoint_interval while something is new, and one at once if a client waits for it; all
 * clients that wait by the time it begins share it. When nothing is new there are none.
 *
 * A commit that fails loses nothing: the image keeps what the file lacks. Counting goes on, nothing more becomes durable, whoever waits is told
 * why, and the next checkpoint tries again: after the interval first, then after up to CHECKPOINT_MAX_RETRY_NS. The beginning and the end
 * of such a time are logged.
 *
 * Workers give their cuts one after the other, so what one of them does between two cuts to what another has counted would be in the file without what it was done to. It
 * has to come before the first of them, or after the last: checkpoint_reach_begin.
 *
 * Numbers. Checkpoints are numbered from 1. `asked` goes up when cuts are asked for, `over` when the commit has succeeded or failed; the next is
 * asked for only when the last one is over.
 *
 * Thread safety: from a worker's thread checkpoint_note, _want, _asked, _last_over, _over, _give, _give_last, _reach_begin, _reach_end; the watchdog's from the main
 * thread; checkpoint_stats, _is_failing and _set_interval from any; the others from the main thread while no worker runs.
 */
#include "daemon/store/store.h"
#include "lib/engine/engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CHECKPOINT_MAX_RETRY_NS INT64_C(1000000000)

struct daemon;

/* What a worker has given. */
struct checkpoint_part {
	struct cut *cut;  /* that was asked for; NULL: not yet */
	struct cut *last; /* unasked, when it ended */
	bool ended;
};

struct checkpoint_stats {
	struct store_stats store;
	bool failing;
	char why[STORE_MAX_WHY]; /* if it is */
	char untidy[STORE_MAX_WHY]; /* why the file's log can't be moved into it, and grows; empty: it can */
	int64_t age_ns;		    /* since all there was, was durable; 0: it is now */
	int64_t took_ns;	    /* the last one, from the first question to the end */
	uint64_t n, n_failed;
};

struct checkpoint {
	struct daemon *daemon;
	struct store *store; /* NULL: there is no file, and no thread */
	char *path;
	pthread_t thread;
	bool started;

	pthread_mutex_t lock;
	pthread_cond_t turn; /* something below has changed */
	/* Guarded by the lock. */
	bool stopping;
	bool fresh;	     /* something is new since the last one was asked for */
	bool cutting;	     /* cuts are asked for, and not all are there */
	unsigned n_reaching; /* workers between checkpoint_reach_begin and _end */
	uint64_t wanted;     /* a client waits for this one */
	int64_t interval_ns;
	struct checkpoint_part parts[ENGINE_MAX_WORKERS];
	struct checkpoint_stats stats;
	int64_t stale_since_ns; /* monotonic: since when something is not durable; 0: all is */

	/* Written under the lock, read by workers without it. */
	_Atomic(uint64_t) asked, over;
	_Atomic(uint64_t) watch_asked, watch_answered; /* see checkpoint_ask */

	/* The thread's own. */
	int64_t last_ns;   /* when the last one began */
	int64_t retry_ns;  /* 0: the last one did not fail */
	size_t n_gone;	   /* removed counters whose last growth is in the next cuts */
	uint64_t declared; /* see daemon.declared */
	bool new_metric; /* one has its first counter, and with it a kind that must outlast the configuration */
	int status; /* of the last one */
};

/* `store` may be NULL, and is taken over, also on failure; `path` is copied. 0 or a negative errno. */
int checkpoint_init(struct checkpoint *checkpoint, struct daemon *daemon, struct store *store,
		    const char *path, int64_t interval_ns);
int checkpoint_start(struct checkpoint *checkpoint);
/* All workers have ended: one more, and the end of the thread. 0; -EIO: it failed, as logged. */
int checkpoint_stop(struct checkpoint *checkpoint);
/* Accepts what was zeroed. */
void checkpoint_deinit(struct checkpoint *checkpoint);

/* ---- from workers ---- */

/* Something is new. From any thread; nothing without a file. */
void checkpoint_note(struct checkpoint *checkpoint);
/* A client waits: for the checkpoint whose number is returned, the next to begin. */
uint64_t checkpoint_want(struct checkpoint *checkpoint);

/* For which one a cut is wanted, and the last one that is over. */
static inline uint64_t checkpoint_asked(struct checkpoint *checkpoint)
{
	/* Pairs with the store in ask(): what was over before that is seen as over by whoever sees this. */
	return atomic_load_explicit(&checkpoint->asked, memory_order_acquire);
}
static inline uint64_t checkpoint_last_over(struct checkpoint *checkpoint)
{
	return atomic_load_explicit(&checkpoint->over, memory_order_acquire);
}
/* Is all that was in cuts up to the last one that is over durable? If not, why[] says why. */
bool checkpoint_over(struct checkpoint *checkpoint, uint64_t *ret_over, char why[STORE_MAX_WHY]);

/* Takes over the cut. */
void checkpoint_give(struct checkpoint *checkpoint, unsigned worker, struct cut *cut);
void checkpoint_give_last(struct checkpoint *checkpoint, unsigned worker, struct cut *cut);

/*
 * Around what a worker does to what others have counted; short. False: not now, cuts are being taken, its own too, which it must not keep waiting for: it has to come again.
 */
bool checkpoint_reach_begin(struct checkpoint *checkpoint);
void checkpoint_reach_end(struct checkpoint *checkpoint);

/* ---- from others ---- */

/* Does the thread go round? As worker_ask and worker_answered. */
void checkpoint_ask(struct checkpoint *checkpoint, uint64_t number);
static inline uint64_t checkpoint_answered(const struct checkpoint *checkpoint)
{
	return atomic_load_explicit((_Atomic(uint64_t) *)(uintptr_t)&checkpoint->watch_answered,
				    memory_order_relaxed);
}

void checkpoint_set_interval(struct checkpoint *checkpoint, int64_t interval_ns);
void checkpoint_stats(struct checkpoint *checkpoint, struct checkpoint_stats *ret_stats);
