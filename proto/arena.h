#pragma once
/*
 * arena: memory for one frame's worth of decoded or encoded message, given back all at once.
 *
 * Thread safety: none needed; an arena belongs to one thread.
 */
#include <stddef.h>
#include <stdint.h>

struct arena_block;

struct arena {
	struct arena_block *blocks; /* newest first; the oldest is kept over a reset */
	size_t used, limit;	    /* bytes handed out since the last reset, and their ceiling */
};

#define ARENA_INIT(limit_) { .limit = (limit_) }

/* Aligned for any type; NULL if there is no memory or the limit would be passed. */
void *arena_alloc(struct arena *arena, size_t size);
/* Everything allocated is gone; keeps one block of memory for the next round. */
void arena_reset(struct arena *arena);
void arena_deinit(struct arena *arena);
