#pragma once
/*
 * store: the state file, an SQLite database, and what of the daemon is to be in it.
 *
 * The store keeps an image of what the file should say: cuts are merged into it (store_merge), and a commit writes what of it differs
 * from the file, in one transaction. So a commit that fails loses nothing: what it did not write is written by the next. Everything that a
 * restart needs is in the file: counters with their own values, metrics and rules set at run time, sessions with their numbers, answers and leases,
 * what is held, and the usage of windows. docs/state-file.md says how it looks to others.
 *
 *	store_open	look, refuse or take; nothing of it is changed
 *	store_load	everything it says, checked row by row; from then on it is written to
 *	store_born, store_gone, store_merge, store_set_*, store_usage
 *	store_commit	durable
 *	(whoever waits is told)
 *	store_tidy
 *
 * Thread safety: none; one thread at a time (start-up, then the store's own thread).
 */
#include "daemon/store/cut.h"
#include "lib/engine/keep.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

#define STORE_MAX_WHY 512u /* bytes of a text that says what went wrong, its NUL included */

/* Beside these, functions that return int return -ENOMEM where memory is short. */
enum store_error {
	STORE_OK = 0,
	STORE_E_NEWER,	 /* the file is of a newer version */
	STORE_E_DAMAGED, /* it is no state file, or not as it was written */
	STORE_E_LOCKED,	 /* another daemon has it */
	STORE_E_IO,	 /* it can't be read or written: see why */
};

/*
 * Open the file, or make it if there is none, look whether it is one of ours, of this version or an older one, and whole as a database. It is ours
 * alone then, among daemons; programs that read are welcome. On failure nothing was changed. `why` is for people, complete.
 */
int store_open(const char *path, struct store **ret_store, char why[STORE_MAX_WHY]);
/* Without a commit. Takes NULL, returns NULL. */
struct store *store_close(struct store *store);

/*
 * Move a damaged or newer file (and what SQLite keeps beside it) aside, under a name with the time in it; then store_open begins a new one.
 * ret_lost: what could still be read of it, for people: how many counters, of when. STORE_E_LOCKED, STORE_E_IO: why is in ret_lost.
 */
int store_move_aside(const char *path, int64_t wall_ns, char ret_moved_to[STORE_MAX_WHY],
		     char ret_lost[STORE_MAX_WHY]);

/* ---- loading ---- */

struct store_session {
	uint8_t id[MESSAGE_SESSION_BYTES];
	bool over;
	uint64_t last_batch, last_operation;
	int64_t lifetime_ns;
	struct bytes_view agent, answers, leases;
};

/* From a sink: this row is of no use any more, the next commit takes it out of the file. */
#define STORE_DROP 1000

/*
 * In this order, counters in no order. Each returns 0, or STORE_DROP (usage, sessions and held only), or anything else, which ends the load and is
 * returned. Strings are valid during the call.
 */
struct store_sink {
	void *ctx;
	int (*metric)(void *ctx, const char *name, size_t len, const struct engine_metric *metric);
	int (*rule)(void *ctx, const struct engine_rule *rule);
	/* *ret_id: by which number born, gone and cuts will speak of it. */
	int (*counter)(void *ctx, const char *path, size_t len, int64_t own, int64_t ahead,
		       int64_t born_ns, uint32_t *ret_id);
	int (*usage)(void *ctx, const struct engine_usage *usage);
	int (*session)(void *ctx, const struct store_session *session);
	int (*held)(
		void *ctx,
		const struct cut_held *
			held); /* session all zero: detached, the amount, which can be negative (cut.h) */
};

/*
 * All that is in the file; once, before any of the functions below. STORE_E_DAMAGED: something is not as it was written, and the file was not changed; STORE_E_IO: it
 * can't be read, or not be written to. The sink may have been given a part by then. NULL: all is looked at, and nothing more; then the store can only be closed.
 */
int store_load(struct store *store, const struct store_sink *sink, char why[STORE_MAX_WHY]);

/* ---- keeping; -ENOMEM leaves the image as it was: call again ---- */

/* A counter was made; its parent was told before. One that the load brought (or that was told already) is known and stays as it is. */
int store_born(struct store *store, const struct engine_born *born);
/*
 * It was removed: its own value goes to the parent's (ENGINE_NO_ID: nowhere), and so does growth of it that is in cuts yet to come, until its number is told as born again. At once, so
 * that the file never has two counters of one path.
 */
int store_gone(struct store *store, uint32_t id, uint32_t parent);

/* n > 0 was used at the counter, as windows see it: to be given to engine_usage_add. */
typedef void (*store_used_fn)(void *ctx, uint32_t id, int64_t n);

/*
 * What a worker's cut says is to be in the file. What the seat had grown by in the cut before is known here, from 0 on at the start. `used` (may be NULL) is
 * called for each counter with usage that is new. After -ENOMEM the same cut is to be merged again before the next commit. -ENOENT: growth of a counter that
 * nobody told of.
 */
int store_merge(struct store *store, const struct cut *cut, store_used_fn used, void *ctx);

struct store_metric {
	const char *name;
	size_t len;
	struct engine_metric metric;
};

/* What is to be in the file from the next commit on, as a whole; what is the same as before costs no write. */
int store_set_metrics(struct store *store, const struct store_metric *metrics, size_t n);
int store_set_rules(struct store *store, const struct engine_rule *rules, size_t n);
/* Replaces what was known of this path and window; count 0 takes it out. Usage at counters that are gone goes by itself. */
int store_usage(struct store *store, const struct engine_usage *usage);

/* Does the file differ from the image? */
bool store_is_dirty(const struct store *store);

/*
 * Write what differs; durable when this returns 0. Else STORE_E_IO, a text of why, and the file as it was (or, if the machine goes down before the next
 * attempt, perhaps as it would have been); the image keeps what is to be written.
 */
int store_commit(struct store *store, char why[STORE_MAX_WHY]);

/* Does the log hold so much that tidying it is worth the while? Not at once after a try: that is for when it has grown by as much more. */
bool store_is_untidy(const struct store *store);

/*
 * After a commit, when those who waited for it have been told: move what the log (-wal) holds into the file; it waits for no reader. Nothing depends on its
 * success; if it fails for long, the log grows. STORE_E_IO.
 */
int store_tidy(struct store *store, char why[STORE_MAX_WHY]);

struct store_stats {
	uint64_t commits, failures;
	uint64_t rows, bytes;	/* written: rows, and what is in them */
	int64_t last_commit_ns; /* how long the last one took */
	uint64_t file_bytes, log_bytes;
	uint64_t counters; /* in the file */
};
void store_stats(const struct store *store, struct store_stats *ret_stats);
