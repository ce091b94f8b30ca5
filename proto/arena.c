#include "proto/arena.h"

#include <stdalign.h>
#include <stdlib.h>

#define ALIGNMENT alignof(max_align_t)

struct arena_block {
	struct arena_block *next;
	size_t size, used; /* of bytes[] */
	alignas(max_align_t) unsigned char bytes[];
};

static struct arena_block *block_new(struct arena *arena, size_t at_least)
{
	size_t size = arena->first > ARENA_BLOCK_MIN ? arena->first : ARENA_BLOCK_MIN;
	if (arena->blocks) {
		size = arena->blocks->size < ARENA_BLOCK_MAX / 2 ? arena->blocks->size * 2
								 : ARENA_BLOCK_MAX;
	}
	if (size < at_least) {
		size = at_least;
	}
	size_t whole;
	if (__builtin_add_overflow(sizeof(struct arena_block), size, &whole)) {
		return NULL;
	}
	struct arena_block *block = malloc(whole);
	if (!block) {
		return NULL;
	}
	block->next = arena->blocks;
	block->size = size;
	block->used = 0;
	arena->blocks = block;
	return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	if (size >
	    arena->limit) { /* also keeps the rounding below from wrapping, see the next test */
		return NULL;
	}
	size_t rounded = size == 0 ? ALIGNMENT : (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	if (rounded < size || rounded > arena->limit - arena->used) {
		return NULL;
	}

	struct arena_block *block = arena->blocks;
	if (!block || rounded > block->size - block->used) {
		block = block_new(arena, rounded);
		if (!block) {
			return NULL;
		}
	}
	void *at = block->bytes + block->used;
	block->used += rounded;
	arena->used += rounded;
	return at;
}

/* Free all blocks but `keep`, which may be NULL. */
static void free_blocks(struct arena *arena, struct arena_block *keep)
{
	struct arena_block *block = arena->blocks;
	while (block) {
		struct arena_block *next = block->next;
		if (block != keep) {
			free(block);
		}
		block = next;
	}
	arena->blocks = keep;
	arena->used = 0;
}

/* More than one block, or none, or one that is not kept. */
static void reset_blocks(struct arena *arena)
{
	struct arena_block *keep = NULL;
	size_t together = 0; /* can't wrap: this much is allocated */
	for (struct arena_block *block = arena->blocks; block; block = block->next) {
		together += block->size;
		if (block->size <= ARENA_KEEP && (!keep || block->size > keep->size)) {
			keep = block;
		}
	}
	if (keep && keep->size < together && together <= ARENA_KEEP) {
		keep = NULL;
		arena->first = together;
	}
	free_blocks(arena, keep);
	if (keep) {
		keep->next = NULL;
		keep->used = 0;
	}
}

void arena_reset(struct arena *arena)
{
	struct arena_block *block = arena->blocks;
	if (block && !block->next && block->size <= ARENA_KEEP) {
		block->used = arena->used = 0;
		return;
	}
	reset_blocks(arena);
}

void arena_deinit(struct arena *arena)
{
	free_blocks(arena, NULL);
	arena->first = 0;
}
