#pragma once
/*
 * operations: the numbers of a session's operations, and the answers to the newest of them.
 *
 * Numbers are contiguous. Each is used up once, whatever comes of it, and its answer is kept, so that a repeat gets it again and has
 * no effect. Kept is what a repeat must know, in a few words; what can be long (bindings, the text of an error) is kept beside it as bytes,
 * at most OPERATIONS_MAX_BYTES of a session: beyond it the oldest answers lose theirs, and tell how many bindings they had.
 *
 * Thread safety: none, a session belongs to one thread.
 */
#include "proto/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPERATIONS_KEPT MESSAGE_MAX_OPERATIONS_KEPT
#define OPERATIONS_MAX_BYTES ((size_t)64 << 10)

struct cursor_out;

enum operation {
	OPERATION_NEW = 0,   /* carry it out */
	OPERATION_AGAIN,     /* it was waiting when its connection ended: carry it out now */
	OPERATION_ANSWERED,  /* operations_tell */
	OPERATION_WAITING,   /* for room; it will be answered */
	OPERATION_FORGOTTEN, /* used up, and its answer is not kept any more */
	OPERATION_GAP,	     /* numbers before it are missing */
};

/* A reply as a message. */
struct operations_bytes {
	uint32_t len;
	uint8_t at[];
};

/* An answer. What is not of its type is 0. */
struct operations_slot {
	uint64_t number; /* 0: none */
	uint8_t state;	 /* enum operation: AGAIN, ANSWERED or WAITING */
	uint8_t type;	 /* enum reply_type */
	bool granted;
	uint32_t omitted; /* all its bindings; or the code of an error */
	uint32_t lease, ttl_ms;
	int64_t units;
	struct operations_bytes
		*bytes; /* all of it as a message; NULL: nothing more to say, or no longer kept */
};

struct operations {
	uint64_t last; /* the highest number used up */
	struct operations_slot *slots;
	uint32_t size;	   /* a power of two up to OPERATIONS_KEPT; 0 before the first */
	size_t n_bytes;	   /* of all slots */
	uint64_t stripped; /* up to this number nothing has bytes */
};

/* Numbers below `next` count as used up; never back. 0 is taken as 1. */
void operations_greet(struct operations *operations, uint64_t next);

/* What is to be done with this number, which is not 0? Changes nothing. */
enum operation operations_look_up(const struct operations *operations, uint64_t number);

/*
 * Use up a number that is NEW or AGAIN; an answer to it must follow, or operations_wait. -ENOMEM: it was not used up, and there is no
 * room for its answer.
 */
int operations_take(struct operations *operations, uint64_t number);

/* It waits for room; its connection ended meanwhile. */
void operations_wait(struct operations *operations, uint64_t number);
void operations_drop(struct operations *operations, uint64_t number);

/*
 * Keep an answer: a reply of the type CHARGED, UNCHARGED, LEASED, LEASE_RETURNED or ERROR with its number. Needs the arena to
 * encode what is long; without memory only the short part is kept. Nothing, if the number is too old by now.
 */
void operations_keep(struct operations *operations, const struct reply *reply, struct arena *arena);

/* The answer of a number that is ANSWERED, as a duplicate; in the arena. `id` is set. */
void operations_tell(const struct operations *operations, uint64_t number, uint64_t id,
		     struct arena *arena, struct reply *ret_reply);

/* Up to which number is all answered, for good? What waits for room, or is to be carried out when it comes again, is not. */
uint64_t operations_settled(const struct operations *operations);

/* ---- as bytes ---- */

/*
 * All that a repeat must know, in at most operations_save_bound() bytes. What waits for room is saved as what is to be carried out when it comes
 * again.
 */
size_t operations_save_bound(const struct operations *operations);
void operations_save(const struct operations *operations, struct cursor_out *out);
/* Of zeroed ones, to be deinitialised in any case; `last` is the highest number used up. -EINVAL: these bytes are not what was saved; -ENOMEM. */
int operations_load(struct operations *operations, uint64_t last, const uint8_t *bytes, size_t len);
/* For operations_load: one slot of a number up to `last`, with its bytes, which it takes over also on failure. -ENOMEM. */
int operations_put(struct operations *operations, const struct operations_slot *from);

void operations_deinit(struct operations *operations);
