#pragma once
/*
 * store: the state file, an SQLite database, and what of the daemon is to be in it.
 *
 * The store keeps an image of what the file should say: cuts are merged into it (store_merge), and a commit writes what of it differs
 * from the file, in one transaction. So a commit that fails loses nothing: what it did not write is written by the next. Everything that a
 * restart needs is in the file: counters with their own values, metrics and rules set at run time, sessions with their numbers, answers and leases, what is held,
 * and the usage of windows.
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

enum store_error {
	STORE_OK = 0,
	STORE_E_NEWER,	 /* the file is of a newer version */
	STORE_E_DAMAGED, /* it is no state file, or not as it was written */
	STORE_E_LOCKED,	 /* another daemon has it */
	STORE_E_IO,	 /* it can't be read or written: see why */
};

/* Open or make the file, bring it to this version, check it as a whole. Nothing was changed on failure. `why` is for people, complete. */
int store_open(const char *path, struct store **ret_store, char why[STORE_MAX_WHY]);
/* Without a commit. Takes NULL, returns NULL. */
struct store *store_close(struct store *store);

/*
 * Move a damaged or newer file (and what SQLite keeps beside it) aside, under a name with the time in it; then store_open begins a new one. ret_lost: what
 * could still be read of it, for people: how many counters, of when.
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

/* In this order. Each returns 0 or what store_load is to return. Strings are valid during the call. */
struct store_sink {
	void *ctx;
	int (*metric)(void *ctx, const char *name, size_t len, const struct engine_metric *metric);
	int (*rule)(void *ctx, const struct engine_rule *rule);
	int (*counter)(void *ctx, const char *path, size_t len, int64_t own, int64_t ahead,
		       int64_t born_ns, uint32_t *ret_id);
	int (*usage)(void *ctx, const struct engine_usage *usage);
	int (*session)(void *ctx, const struct store_session *session);
	int (*held)(void *ctx, const struct cut_held *held); /* all zero: detached, the amount */
};

/* All that is in the file. STORE_E_DAMAGED: some row is not as it was written; *why says which. */
int store_load(struct store *store, const struct store_sink *sink, char why[STORE_MAX_WHY]);

/* ---- keeping ---- */

/* A checkpoint, step by step; see daemon/store/checkpoint.h for who does it. -ENOMEM: the image is as before, the cut is to be merged again. */
int store_born(struct store *store, const struct engine_born *born);
int store_gone(struct store *store, uint32_t id, uint32_t parent);
int store_merge(struct store *store, struct engine *engine, const struct cut *cut);
struct store_metric {
	const char *name;
	size_t len;
	struct engine_metric metric;
};

/* What of the other things is to be in the file from the next commit on; replaces what was. */
int store_set_metrics(struct store *store, const struct store_metric *metrics, size_t n);
int store_set_rules(struct store *store, const struct engine_rule *rules, size_t n);
int store_usage(struct store *store, const struct engine_usage *usage);

/* Does the file differ from the image? */
bool store_is_dirty(const struct store *store);

/*
 * Write what differs; durable when this returns 0. Else STORE_E_IO, a text of why, and the file as it was; the image keeps what is to be written.
 */
int store_commit(struct store *store, char why[STORE_MAX_WHY]);

struct store_stats {
	uint64_t commits, failures;
	uint64_t rows, bytes;	/* written */
	int64_t last_commit_ns; /* how long the last one took */
	uint64_t file_bytes;
};
void store_stats(const struct store *store, struct store_stats *ret_stats);
