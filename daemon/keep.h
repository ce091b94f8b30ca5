#pragma once
/*
 * keep: a worker's part in durability. What its sessions have changed since its last cut, the cut, and what has become durable since.
 *
 *	serve_*()		keep_numbers, keep_answers, ...: this session has something new
 *	checkpoint asks		a cut of all that is new, between two turns of the loop: numbers of sessions and growth of counters together
 *	checkpoint is over	what was in cuts until then is in the file: sessions are told, and clients that wait for it
 *
 * A session that ends has its row in the file removed by the next cut. Until then it keeps its place in the directory, empty, so that
 * a new one of the same id begins with the same worker, and the file hears of both in order. What it held on many paths goes back a
 * little at a time (daemon/giveback.h), and stands in the file meanwhile under an id of its own.
 *
 * Without a state file nothing is noted.
 *
 * Memory. A cut that can't be made for want of memory ends the process: what is durable stays so, and clients send the rest again. To go
 * on without knowing what the file lacks would be worse.
 *
 * Thread safety: the worker's thread; keep_init, keep_deinit and keep_restored while it does not run.
 */
#include "daemon/held.h"
#include "proto/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct connection;
struct cut;
struct debt;
struct session;
struct worker;

/* A session's. */
struct keep_session {
	TAILQ_ENTRY(session) changed_link, cut_link;
	bool changed; /* in the worker's list of those */
	bool cut; /* in the other one: it was in a cut, and not all of that is known to be durable */
	bool in_file; /* or it may be */
	bool ended;   /* what the file has of this id is to be removed, before anything new */
	bool answers, leases;		   /* these have changed */
	uint64_t cut_batch, cut_operation; /* in the last cut */
	uint64_t durable_batch, durable_operation;
};

/* A worker's. */
struct keep {
	bool on;    /* there is a state file */
	bool noted; /* the checkpoint knows that there is something new */
	TAILQ_HEAD(, session) changed, cut;
	STAILQ_HEAD(, debt) paid; /* debts that have been given back since the last cut */
	struct held detached; /* by how much more or less detached charges hold, since the last cut */
	TAILQ_HEAD(, keep_wait) waits; /* clients */
	uint64_t answered;	       /* the checkpoint for which the last cut was */
	uint64_t seen;		       /* the last one that is known to be over */
};

void keep_init(struct keep *keep, bool on, uint64_t seed);
void keep_deinit(struct keep *keep);

/* ---- what is new ---- */

/* Something that no session has: a counter, a metric, a rule. */
void keep_note(struct worker *worker);
/* The number of a batch or an operation, or a session's terms. */
void keep_numbers(struct session *session);
/* An answer to an operation, and with it what the session holds. */
void keep_answers(struct session *session);
void keep_leases(struct session *session);
/* Detached charges hold so much more or less there. -ENOMEM: that was not noted, and must not be. */
int keep_detached(struct worker *worker, const char *path, size_t len, int64_t n);

/*
 * A session ends, and holds nothing any more but what has become a debt. True: it was left in the directory for the next cut, which
 * frees it. Else it is the caller's to free.
 */
bool keep_end(struct worker *worker, struct session *session);
/* What it still held is a debt now. */
void keep_debt(struct worker *worker, const struct session *session, struct debt *debt);
/* One that is paid. Takes it over. */
void keep_paid(struct worker *worker, struct debt *debt);

/*
 * Around what is done to what other workers have counted: own values that are set, what they charged detached and is given back. The file must not have it without what it was done
 * to. False: not in this turn.
 */
bool keep_reach_begin(struct worker *worker);
void keep_reach_end(struct worker *worker);

/* It was in the file when the daemon started, just as it is. */
void keep_restored(struct session *session);

/* ---- checkpoints ---- */

/* In each turn of the loop that was woken: a cut if one is asked for, and what has become of earlier ones. */
void keep_turn(struct worker *worker);
/* The worker ends: its last cut. */
void keep_last(struct worker *worker);

/* All that is new since the last one: sessions, debts, growth. */
struct cut *keep_cut(struct worker *worker);

/* ---- clients that wait ---- */

/* Answer this Flush when all that was applied before it is durable, or can't be for now. */
void keep_wait(struct connection *connection, uint64_t id);
/* The connection's are not answered any more. */
void keep_waits_drop(struct connection *connection);
