#pragma once
/*
 * arena: memory for one frame's worth of decoded or encoded message, given back all at once.
 *
 * A bump allocator over a list of growing blocks. A reset keeps the largest block that is not above ARENA_KEEP; and if
 * one block was not enough, the next one is made as large as all together. So after a few frames the same memory serves
 * every further one without a call to malloc, and one huge frame does not leave a huge block behind.
 *
 * The limit bounds what is handed out between two resets; the memory behind it stays below twice that + ARENA_KEEP.
 *
 * Thread safety: none needed; an arena belongs to one thread.
 */
#include <stddef.h>
#include <stdint.h>

#define ARENA_BLOCK_MIN ((size_t)16 << 10) /* bytes; blocks double from here, ... */
#define ARENA_BLOCK_MAX \
	((size_t)1 << 20) /* ... to here; a larger request gets a block of its own size */
#define ARENA_KEEP \
	((size_t)2 << 20) /* the largest block kept over a reset: the largest charge fits */

struct arena_block;

struct arena {
	struct arena_block *blocks; /* newest first */
	size_t used,
		limit; /* bytes handed out since the last reset (rounded up for alignment), and their ceiling */
	size_t first; /* at least so large is the first block to come; 0 or up to ARENA_KEEP */
};

#define ARENA_INIT(limit_)        \
	{                         \
		.limit = (limit_) \
	}

/* Aligned for any type, not cleared; NULL if there is no memory or the limit would be passed. Size 0 counts as 1. */
void *arena_alloc(struct arena *arena, size_t size);
/* Everything allocated is gone; keeps one block of memory for the next round. */
void arena_reset(struct arena *arena);
/* As after ARENA_INIT with the same limit; nothing is kept. */
void arena_deinit(struct arena *arena);
