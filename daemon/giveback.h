#pragma once
/*
 * giveback: units of a gauge on their way back, and who held them.
 *
 * Where they were charged is where they go: at the path, or, if there was no room for its counter when they were charged and its metric
 * overflows, under the __other__ of an ancestor.
 *
 * Everything here also wakes who waits for the room.
 *
 * Thread safety: the worker's thread.
 */
#include "lib/engine/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lease;
struct session;
struct worker;

/* engine_uncharge. What it returns for the path itself, if nothing else was right either. */
int giveback_charge(struct worker *worker, const char *path, size_t len, int64_t n);

/* engine_lease_return and engine_lease_spend of units of a lease. */
int giveback_lease(struct worker *worker, const char *path, size_t len, int64_t n);
int giveback_spend(struct worker *worker, const char *path, size_t len, int64_t n);

/*
 * The session ends: all that it holds and has leased. What is held on many paths goes back some at a time, by giveback_more, so that others are
 * not kept waiting.
 */
void giveback_session(struct worker *worker, struct session *session);
/* Some more; true: there is more still, for another turn of the worker's loop. */
bool giveback_more(struct worker *worker);
/* The session ends because the daemon does: what is held stays so. */
void giveback_forget(struct worker *worker, struct session *session);
/* The worker ends: what sessions have left to it is forgotten. */
void giveback_deinit(struct worker *worker);
