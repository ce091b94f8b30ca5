#include "daemon/store/image.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEEN 512u /* counters of one chunk */
#define WORD 64u
#define GONE (UINT32_C(1) << 31) /* instead of a row: the number of the heir, with this bit */

/* Few counters are charged. */
struct image_charged {
	uint64_t charged, ahead, taken;
};

struct image_seen {
	uint64_t added[SEEN];
	struct image_charged *charged; /* SEEN of them, or NULL: all zero */
};

void image_init(struct image *image)
{
	*image = (struct image){ 0 };
}

void image_deinit(struct image *image)
{
	for (unsigned p = 0; p < IMAGE_PLANES; p++) {
		for (size_t i = 0; i < image->planes[p].n; i++) {
			free(image->planes[p].at[i]);
		}
		free(image->planes[p].at);
	}
	for (unsigned s = 0; s < ENGINE_MAX_WORKERS; s++) {
		for (size_t i = 0; i < image->seats[s].n; i++) {
			if (image->seats[s].at[i] != NULL) {
				free(image->seats[s].at[i]->charged);
				free(image->seats[s].at[i]);
			}
		}
		free(image->seats[s].at);
	}
	free(image->rows);
	free(image->used);
	image_init(image);
}

/* An array of n elements gets at least `wanted`, the new ones zero. */
static int grow(void **array, size_t *n, size_t wanted, size_t size)
{
	size_t more = wanted > *n * 2 ? wanted : *n * 2;
	char *grown;

	if (wanted <= *n) {
		return 0;
	}
	grown = reallocarray(*array, more, size);
	if (grown == NULL) {
		return -ENOMEM;
	}
	memset(grown + *n * size, 0, (more - *n) * size);
	*array = grown;
	*n = more;
	return 0;
}

/* ---- blocks ---- */

static int block_reserve(struct image *image, enum image_plane plane, uint32_t row)
{
	struct image_blocks *blocks = &image->planes[plane];
	size_t i = row / IMAGE_BLOCK;
	void *at = blocks->at;
	int r = grow(&at, &blocks->n, i + 1, sizeof(struct image_block *));

	blocks->at = at;
	if (r == 0 && blocks->at[i] == NULL) {
		blocks->at[i] = calloc(1, sizeof(struct image_block));
		r = blocks->at[i] != NULL ? 0 : -ENOMEM;
	}
	return r;
}

/* n modulo 2^64; the block is there unless n is 0. */
static void block_add(struct image *image, enum image_plane plane, uint32_t row, uint64_t n)
{
	if (n != 0 && row != IMAGE_NO_ROW) {
		struct image_block *block = image->planes[plane].at[row / IMAGE_BLOCK];

		block->numbers[row % IMAGE_BLOCK] += n;
		block->changed = true;
		image->changed = true;
	}
}

int64_t image_number(const struct image *image, enum image_plane plane, uint32_t row)
{
	const struct image_blocks *blocks = &image->planes[plane];
	size_t i = row / IMAGE_BLOCK;

	return i < blocks->n && blocks->at[i] != NULL
		       ? (int64_t)blocks->at[i]->numbers[row % IMAGE_BLOCK]
		       : 0;
}

bool image_set_block(struct image *image, enum image_plane plane, uint32_t block,
		     const uint8_t bytes[IMAGE_BLOCK * 8])
{
	if (block_reserve(image, plane, block * IMAGE_BLOCK) < 0) {
		return false;
	}
	for (size_t i = 0; i < IMAGE_BLOCK; i++) {
		uint64_t number;

		memcpy(&number, bytes + i * sizeof(number), sizeof(number));
		image->planes[plane].at[block]->numbers[i] = be64toh(number);
	}
	return true;
}

bool image_get_block(const struct image_block *block, uint8_t bytes[IMAGE_BLOCK * 8])
{
	uint64_t any = 0;

	for (size_t i = 0; i < IMAGE_BLOCK; i++) {
		uint64_t number = htobe64(block->numbers[i]);

		any |= number;
		memcpy(bytes + i * sizeof(number), &number, sizeof(number));
	}
	return any != 0;
}

void image_saved(struct image *image)
{
	for (unsigned p = 0; p < IMAGE_PLANES; p++) {
		for (size_t i = 0; i < image->planes[p].n; i++) {
			if (image->planes[p].at[i] != NULL) {
				image->planes[p].at[i]->changed = false;
			}
		}
	}
	image->changed = false;
}

/* ---- rows ---- */

static uint32_t row_or_heir(const struct image *image, uint32_t id)
{
	return id < image->n_rows ? image->rows[id] : IMAGE_NO_ROW;
}

uint32_t image_row(const struct image *image, uint32_t id)
{
	uint32_t row = row_or_heir(image, id);

	return (row & GONE) == 0 ? row : IMAGE_NO_ROW;
}

bool image_knows(const struct image *image, uint32_t id)
{
	return row_or_heir(image, id) != IMAGE_NO_ROW;
}

/* Where its growth goes. An heir's number is not used again before those of whom it has something. */
static uint32_t growing_row(const struct image *image, uint32_t id)
{
	uint32_t row = row_or_heir(image, id);

	while ((row & GONE) != 0) {
		row = row_or_heir(image, row & ~GONE);
	}
	return row;
}

static int used_reserve(struct image *image, uint32_t row)
{
	void *used = image->used;
	int r = grow(&used, &image->n_used, row / WORD + 1, sizeof(*image->used));

	image->used = used;
	return r;
}

int image_take_row(struct image *image, uint32_t id, uint32_t row)
{
	void *rows = image->rows;
	int r = grow(&rows, &image->n_rows, (size_t)id + 1, sizeof(*image->rows));

	image->rows = rows;
	if (r == 0) {
		r = used_reserve(image, row);
	}
	if (r == 0) {
		r = block_reserve(image, IMAGE_OWN, row);
	}
	if (r == 0) {
		image->rows[id] = row;
		image->used[row / WORD] |= UINT64_C(1) << row % WORD;
		image->n_counters++;
	}
	return r;
}

int image_new_row(struct image *image, uint32_t id, uint32_t *ret_row)
{
	size_t word = image->free_from;
	uint32_t row;
	int r = used_reserve(image, IMAGE_NO_ROW);

	if (r < 0) {
		return r;
	}
	image->used[0] |= 1; /* no counter's: IMAGE_NO_ROW */
	while (word < image->n_used && image->used[word] == UINT64_MAX) {
		word++;
	}
	image->free_from = word;
	row = (uint32_t)(word * WORD);
	if (word < image->n_used) {
		row += (uint32_t)__builtin_ctzll(~image->used[word]);
	}
	r = row < IMAGE_MAX_ROW ? image_take_row(image, id, row) : -ENOMEM;
	if (r == 0) {
		*ret_row = row;
	}
	return r;
}

int image_free_row(struct image *image, uint32_t id, uint32_t heir)
{
	uint32_t row = image->rows[id], heirs = growing_row(image, heir);

	for (unsigned p = 0; p < IMAGE_PLANES; p++) {
		if (heirs != IMAGE_NO_ROW && image_number(image, p, row) != 0 &&
		    block_reserve(image, p, heirs) < 0) {
			return -ENOMEM;
		}
	}
	for (unsigned p = 0; p < IMAGE_PLANES; p++) {
		uint64_t number = (uint64_t)image_number(image, p, row);

		block_add(image, p, row, -number);
		block_add(image, p, heirs, number);
	}
	image->rows[id] = heir | GONE;
	image->used[row / WORD] &= ~(UINT64_C(1) << row % WORD);
	image->n_counters--;
	if (row / WORD < image->free_from) {
		image->free_from = row / WORD;
	}
	return 0;
}

/* ---- growth ---- */

static const struct image_seen *seen_find(const struct image *image, unsigned seat, uint32_t id)
{
	const struct image_seat *of = &image->seats[seat];

	return id / SEEN < of->n ? of->at[id / SEEN] : NULL;
}

static bool is_charged(const struct engine_growth *growth)
{
	return (growth->charged | growth->ahead | growth->taken) != 0;
}

int image_reserve(struct image *image, unsigned seat, const struct engine_growth *growth)
{
	struct image_seat *of = &image->seats[seat];
	size_t i = growth->id / SEEN;
	uint32_t row = growing_row(image, growth->id);
	void *at = of->at;
	int r = grow(&at, &of->n, i + 1, sizeof(struct image_seen *));

	of->at = at;
	if (r < 0) {
		return r;
	}
	if (of->at[i] == NULL) {
		of->at[i] = calloc(1, sizeof(struct image_seen));
	}
	if (of->at[i] != NULL && of->at[i]->charged == NULL && is_charged(growth)) {
		of->at[i]->charged = calloc(SEEN, sizeof(struct image_charged));
	}
	if (of->at[i] == NULL || (of->at[i]->charged == NULL && is_charged(growth))) {
		return -ENOMEM;
	}
	/* Also where it comes back to 0: the counter may have another row than when it was not. */
	return of->at[i]->charged != NULL && row != IMAGE_NO_ROW
		       ? block_reserve(image, IMAGE_AHEAD, row)
		       : 0;
}

bool image_is_old(const struct image *image, unsigned seat, const struct engine_growth *growth)
{
	static const struct image_charged none;
	const struct image_seen *seen = seen_find(image, seat, growth->id);
	const struct image_charged *charged =
		seen != NULL && seen->charged != NULL ? &seen->charged[growth->id % SEEN] : &none;

	return growth->added == (seen != NULL ? seen->added[growth->id % SEEN] : 0) &&
	       growth->charged == charged->charged && growth->ahead == charged->ahead &&
	       growth->taken == charged->taken;
}

int64_t image_grow(struct image *image, unsigned seat, const struct engine_growth *growth)
{
	struct image_seen *seen = image->seats[seat].at[growth->id / SEEN];
	uint64_t *last = &seen->added[growth->id % SEEN];
	uint32_t row = growing_row(image, growth->id);
	int64_t added = (int64_t)(growth->added - *last);
	uint64_t own = growth->added - *last;
	int64_t used = added > 0 ? added : 0;

	*last = growth->added;
	if (seen->charged != NULL) {
		struct image_charged *charged = &seen->charged[growth->id % SEEN];

		own += growth->charged - charged->charged;
		block_add(image, IMAGE_AHEAD, row, growth->ahead - charged->ahead);
		/* What came in is never more than what there was room for; the sum of both is at most what was counted. */
		used = (int64_t)((uint64_t)used + (growth->taken - charged->taken));
		*charged = (struct image_charged){ .charged = growth->charged,
						   .ahead = growth->ahead,
						   .taken = growth->taken };
	}
	block_add(image, IMAGE_OWN, row, own);
	return used;
}
