#pragma once
/*
 * cut: what one worker hands to the store at one point of its loop: growth, and all that its sessions hold and have been answered by then.
 *
 * Made by the worker's thread, read by the store's, freed by whoever has it last. Texts and bytes lie in its arena, the arrays are
 * malloc's.
 */
#include "lib/engine/keep.h"
#include "proto/arena.h"
#include "proto/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes_view {
	const uint8_t *at;
	size_t len;
};

/*
 * A session whose numbers, answers, leases or terms changed; or that ended. In order: one that ended and began anew under the same id comes
 * twice. (A session that ends keeps its worker until that was told, so both are in cuts of the same worker.)
 */
struct cut_session {
	uint8_t id[MESSAGE_SESSION_BYTES];
	bool ended; /* it is forgotten, with all that it holds; nothing below counts */
	bool over; /* it has ended, but what it holds is still on its way back: after a restart it ends at once */
	uint64_t last_batch, last_operation;
	int64_t lifetime_ns;
	struct bytes_view agent;
	struct bytes_view answers; /* operations_save; at NULL: as they were */
	struct bytes_view leases;  /* lease_table_save; at NULL: as they were */
};

/*
 * What a session holds of a gauge changed: its new amount, 0: nothing. Session all zero: what detached
 * charges hold, by so much more or less; for a while that can be less than nothing, until the client is back that had charged what it is taken from.
 * What a session held when it ended is told as 0 in the same cut or an earlier one.
 */
struct cut_held {
	uint8_t session[MESSAGE_SESSION_BYTES];
	const char *path;
	size_t len;
	int64_t amount;
};

struct cut {
	struct arena arena;
	unsigned seat;
	int64_t wall_ns; /* when it was taken */
	struct engine_growth *growth;
	size_t n_growth;
	struct cut_session *sessions;
	size_t n_sessions;
	struct cut_held *held;
	size_t n_held;
};

static inline bool cut_is_nobody(const uint8_t session[MESSAGE_SESSION_BYTES])
{
	static const uint8_t nobody[MESSAGE_SESSION_BYTES];

	return memcmp(session, nobody, sizeof(nobody)) == 0;
}

static inline bool cut_held_is_detached(const struct cut_held *held)
{
	return cut_is_nobody(held->session);
}

/* Takes NULL, returns NULL. */
struct cut *cut_free(struct cut *cut);
