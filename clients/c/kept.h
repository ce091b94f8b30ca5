#pragma once
/*
 * kept: a question with one reply, which is kept until the turn is over: the program's function that it is told to may ask something itself.
 *
 * Threads: a struct kept belongs to one thread.
 */
#include "clients/c/call.h"

struct kept {
	struct kept *next; /* the caller's */
	uint8_t *message;
	size_t len;
	enum reply_type type;
	struct arena arena;
	struct reply reply; /* valid until kept_deinit */
};

#define KEPT_INIT                                        \
	{                                                \
		.arena = ARENA_INIT(MESSAGE_ARENA_LIMIT) \
	}

/* Ask, and have a reply of this type. Returns as call_ask. */
int kept_ask(struct kept *kept, struct call *call, struct request *request, int64_t deadline,
	     enum reply_type type);
void kept_deinit(struct kept *kept);
