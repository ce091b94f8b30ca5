#pragma once
/*
 * held: what charges of gauges hold, path by path. One of each session, and the daemon's for what is held by nobody.
 *
 * A hash table with linear probing. A path whose amount has come down to 0 keeps its place for the next time, until there are more of
 * those than others, so that a charge that is given back and made again costs no call to malloc.
 *
 * One that is kept in the state file (`keeps`) notes which amounts have changed, for held_take_changes.
 *
 * Thread safety: none, the caller excludes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum held_error {
	HELD_OK = 0,
	HELD_E_LACKING, /* not so much is held there */
};

struct held {
	struct held_entry **slots;
	uint32_t size;	 /* a power of two, or 0 */
	uint32_t n;	 /* entries, those of 0 included */
	uint32_t n_zero; /* of those: with nothing */
	uint64_t seed;	 /* against crafted paths; set before the first path */
	bool keeps;	 /* set before the first path, or by held_keep_all */
	bool all_changed;
	struct held_entry *changed;
};

/* Paths with more than nothing. */
static inline uint32_t held_paths(const struct held *held)
{
	return held->n - held->n_zero;
}

int64_t held_amount(const struct held *held, const char *path, size_t len);

/*
 * What is held of a path never leaves int64, for its counter would have first. -ENOMEM. n >= 1; but in a ledger of differences, and in that of detached charges, n can be less than 0, and
 * what is held too: given back by one worker's cut or a client that came back sooner, and charged by another's.
 */
int held_add(struct held *held, const char *path, size_t len, int64_t n);

/* HELD_E_LACKING changes nothing. */
int held_take(struct held *held, const char *path, size_t len, int64_t n);

/*
 * Take out what is held of the next `n` paths with more than nothing, from *at on, which is 0 at first; false: these were the last. The
 * table must not change otherwise between the first call and the last, nor in `visit`.
 */
typedef void (*held_fn)(void *ctx, const char *path, size_t len, int64_t n);
bool held_drain(struct held *held, uint32_t *at, uint32_t n, held_fn visit, void *ctx);

/* ---- what of it is to be kept ---- */

/* All amounts that have changed since the last call, each once, as they are now. */
void held_take_changes(struct held *held, held_fn visit, void *ctx);
/*
 * Forget paths with nothing, once they are too many; without memory the next time tries again. One that notes changes does not do that
 * by itself: to be called when they have been taken, and not while it is drained.
 */
void held_tidy(struct held *held);
/* From here on it notes changes; all that there is now is one. */
void held_keep_all(struct held *held);

/* Keeps the seed, and whether it notes changes. */
void held_deinit(struct held *held);
