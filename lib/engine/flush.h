#pragma once
/*
 * flush: folding everything that is held back, once for all who want it.
 *
 * One flush runs at a time, on the thread of one of those who wait for it. Flushes are numbered. A flush serves who asked before it
 * began, and not who asked while it ran, since it may have passed their slots already; those share the next one.
 *
 *	flusher						FRESH reader
 *	started = k			(release)	pending_due?		(acquire)
 *	pending_reset			(release)	load started		(acquire)
 *	takes the marks, fence_heavy, visits		finished < started? wait
 *	waits for folds under way
 *	finished = k			(release)
 *
 * Why FRESH keeps its bound against a flush that begins meanwhile: the word is reset after `started` shows the new flush. So a reader
 * that found the word low because of that reset finds the flush too, and waits for it. And one that found no flush running
 * found a word that counts all that was held back since the last finished flush began, all before which is folded.
 *
 * Any thread, outside a read section. No add waits for any of this.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct engine_view;

/* The caller doesn't know the time; the age of what is read counts on from the flush before. */
#define FLUSH_NO_TIME INT64_MIN

struct flush {
	pthread_mutex_t mutex;
	pthread_cond_t finish;
	bool running;
	_Atomic(uint64_t) started, finished; /* written under the mutex */
	_Atomic(int64_t)
		begun_ns; /* when the last finished one began; FLUSH_NO_TIME: there was none */
	_Atomic(uint64_t) shared, skipped, folds;
};

#define FLUSH_INIT                                                                      \
	{                                                                               \
		.mutex = PTHREAD_MUTEX_INITIALIZER, .finish = PTHREAD_COND_INITIALIZER, \
		.begun_ns = FLUSH_NO_TIME                                               \
	}

void flush_deinit(struct flush *flush);

/* Returns when a flush that began after the call has finished. */
void flush_all(struct engine *engine, int64_t now_ns);

/*
 * Some slot is marked, or a flush is under way. False: all that was added before the call is in the totals and in the planes.
 */
bool flush_pending(const struct engine *engine);

/* What the totals may lack at most, in magnitude, of what was added before the call. */
int64_t flush_bound(const struct engine *engine);

/*
 * For gate.h: wait for the flush that runs and let none begin; run one oneself, as often as need be; let others begin.
 */
void flush_hold(struct engine *engine);
void flush_held(struct engine *engine);
void flush_release(struct engine *engine);
