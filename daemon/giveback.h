#pragma once
/*
 * giveback: units of a gauge on their way back, and who held them; and what else becomes of a lease's units.
 *
 * Where they were charged is where they go: at the path, or, if there was no room for its counter when they were charged and its metric
 * overflows, under the __other__ of an ancestor.
 *
 * What makes room also wakes who waits for it.
 *
 * Thread safety: the worker's thread.
 */
#include "daemon/held.h"
#include "lib/engine/engine.h"
#include "proto/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct lease;
struct session;
struct worker;

/* What a session has left. */
struct debt {
	STAILQ_ENTRY(debt) link;
	struct held held;
	uint32_t at; /* what is before it has been given back */
	/* For the state file: the id under which it stands there, that of the session which had it, and is it there? */
	uint8_t id[MESSAGE_SESSION_BYTES], session[MESSAGE_SESSION_BYTES];
	bool in_file;
};

/* engine_uncharge. What it returns for the path itself, if nothing else was right either. */
int giveback_charge(struct worker *worker, const char *path, size_t len, int64_t n);

/* engine_uncharge_again. */
int giveback_again(struct worker *worker, const char *path, size_t len, int64_t n);

/* The lease ends, and so many of its units were not spent: a gauge's go back, a counter's are forfeited. How many went back. */
int64_t giveback_lease(struct worker *worker, const struct lease *lease, int64_t units);
/* engine_lease_spend of units of a lease. */
int giveback_spend(struct worker *worker, const char *path, size_t len, int64_t n);

/*
 * The session ends: all that it holds and has leased. What is held on many paths goes back some at a time, by giveback_more, so that others are
 * not kept waiting.
 */
void giveback_session(struct worker *worker, struct session *session);
/* Some more; true: there is more still, for another turn of the worker's loop. */
bool giveback_more(struct worker *worker);
/* What a session of an earlier daemon has left: it is the worker's from here on, and goes back as soon as that runs. */
void giveback_inherit(struct worker *worker, struct debt *debt);
/* The session ends because the daemon does: what is held stays so. */
void giveback_forget(struct worker *worker, struct session *session);
/* Takes NULL, returns NULL. */
struct debt *giveback_debt_free(struct debt *debt);
/* The worker ends: what sessions have left to it is forgotten. */
void giveback_deinit(struct worker *worker);
