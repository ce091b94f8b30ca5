#pragma once
/*
 * image: the numbers of all counters as the file should say them, and what each seat had grown by in its last cut.
 *
 * A counter's place in the file, its row, is a number of the store's own: what the engine calls it may be another one after each start. Rows are
 * given out lowest first, so that the file stays dense. A number of the engine that is used again goes on from what its seats had.
 *
 * Thread safety: none.
 */
#include "lib/engine/keep.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_BLOCK 504u /* numbers in a block: with its row's other values a page of the file */
#define IMAGE_MAX_ROW (ENGINE_MAX_COUNTERS_LIMIT * 2u)
#define IMAGE_NO_ROW 0u

/* A seat's part of a number is modulo 2^64, their sum is an int64. */
struct image_block {
	uint64_t numbers[IMAGE_BLOCK];
	bool changed;
};

enum image_plane {
	IMAGE_OWN,
	IMAGE_AHEAD,
};
#define IMAGE_PLANES 2u

struct image_blocks {
	struct image_block **at; /* NULL: all zero */
	size_t n;
};

struct image_seat {
	struct image_seen **at;
	size_t n;
};

struct image {
	struct image_blocks planes[IMAGE_PLANES];
	bool changed; /* one of the blocks is */

	uint32_t *rows; /* by the engine's numbers; of a counter that is gone, who has what it had */
	size_t n_rows;
	uint64_t *used;	  /* rows that are: a bit each */
	size_t n_used;	  /* words */
	size_t free_from; /* no word before this one has a free row */
	uint32_t n_counters;

	struct image_seat seats[ENGINE_MAX_WORKERS];
};

void image_init(struct image *image);
void image_deinit(struct image *image);

/* IMAGE_NO_ROW: there is no such counter, or not any more. */
uint32_t image_row(const struct image *image, uint32_t id);
/* Can growth be of it: is it there, or is it gone and its number not another's yet? */
bool image_knows(const struct image *image, uint32_t id);

/* ---- all of these: -ENOMEM leaves everything as it was ---- */

/* A free row for a new counter. */
int image_new_row(struct image *image, uint32_t id, uint32_t *ret_row);
/* This very row, which is free. */
int image_take_row(struct image *image, uint32_t id, uint32_t row);
/* Its numbers go to those of the counter `heir` (ENGINE_NO_ID: nowhere), and what it has still grown by goes there too, or to the heir's heir. -ENOMEM: nothing happened. */
int image_free_row(struct image *image, uint32_t id, uint32_t heir);

int image_reserve(struct image *image, unsigned seat, const struct engine_growth *growth);
/* What is new in it; there is room for it. Returns what was used, as windows see it. */
int64_t image_grow(struct image *image, unsigned seat, const struct engine_growth *growth);
/* Does it say what the seat's last one said? */
bool image_is_old(const struct image *image, unsigned seat, const struct engine_growth *growth);

/* ---- numbers ---- */

int64_t image_number(const struct image *image, enum image_plane plane, uint32_t row);
/* As they stand in the file; not a change. false: no memory. */
bool image_set_block(struct image *image, enum image_plane plane, uint32_t block,
		     const uint8_t bytes[IMAGE_BLOCK * 8]);
/* false: all zero. */
bool image_get_block(const struct image_block *block, uint8_t bytes[IMAGE_BLOCK * 8]);
void image_saved(struct image *image);
