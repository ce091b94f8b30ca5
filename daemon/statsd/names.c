#include "daemon/statsd/names.h"

#include <errno.h>
#include <sys/mman.h>

#define FIRST_BITS 7u /* of rows */
#define MAX_BITS 27u
#define ODD UINT64_C(0x9e3779b97f4a7c15) /* of no meaning but that its bits look random */
/*
 * Rows behind the last one that a hash leads to: a run of full ones is shorter, or the table grows. So no search needs to begin again at the
 * front, and each ends at a row with a free place.
 */
#define SPARE_ROWS 32u

static size_t bytes_of(size_t n_rows)
{
	return (n_rows + SPARE_ROWS + 1) * sizeof(struct statsd_row);
}

/* Mapped, not malloc'd: of large tables that were freed the heap would keep some. */
static int alloc_rows(struct statsd_names *names, unsigned bits)
{
	size_t size = bytes_of((size_t)1 << bits);
	void *rows = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (rows == MAP_FAILED) {
		return -ENOMEM;
	}
	names->rows = rows;
	names->n_rows = (size_t)1 << bits;
	names->shift = 32 - bits;
	return 0;
}

static void free_rows(struct statsd_row *rows, size_t n_rows)
{
	if (rows != NULL) {
		(void)munmap(rows, bytes_of(n_rows));
	}
}

int statsd_names_init(struct statsd_names *names, size_t limit, const uint64_t seed[2])
{
	void *entries = mmap(NULL, limit + SCAN_SLACK, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*names = (struct statsd_names){ .limit = limit,
					.factor = statsd_names_mix(seed[1], ODD) | 1 };
	for (size_t i = 0; i < SCAN_BLOCK / 8; i++) {
		names->key[i] = statsd_names_mix(seed[0] + (i + 1) * ODD, seed[1] ^ ODD);
	}
	if (entries == MAP_FAILED) {
		return -ENOMEM;
	}
	names->entries = entries;
	names->used = STATSD_NAMES_STEP; /* 0 is no entry */
	return alloc_rows(names, FIRST_BITS);
}

void statsd_names_deinit(struct statsd_names *names)
{
	free_rows(names->rows, names->n_rows);
	if (names->entries != NULL) {
		(void)munmap(names->entries, names->limit + SCAN_SLACK);
	}
	*names = (struct statsd_names){ 0 };
}

void statsd_names_forget(struct statsd_names *names)
{
	struct statsd_row *before = names->rows;
	size_t n_rows = names->n_rows;

	names->n_forgotten += names->n;
	/* Without memory for a small table the large one is used again, emptied. */
	if (alloc_rows(names, FIRST_BITS) == 0) {
		free_rows(before, n_rows);
	} else {
		memset(before, 0, bytes_of(n_rows));
	}
	(void)madvise(names->entries, names->limit, MADV_DONTNEED);
	names->used = STATSD_NAMES_STEP;
	names->n = 0;
}

/* False: the run of full rows is too long. */
static bool put(struct statsd_names *names, uint32_t hash, uint32_t entry)
{
	struct statsd_row *row = statsd_names_row(names, hash);
	const struct statsd_row *last = names->rows + names->n_rows + SPARE_ROWS;
	unsigned place;

	while (row < last && statsd_row_is_full(row)) {
		row++;
	}
	if (row == last) {
		return false;
	}
	place = (unsigned)__builtin_ctz(scan_words(row->hashes, 0));
	row->hashes[place] = hash;
	row->entries[place] = entry;
	return true;
}

static bool put_row(struct statsd_names *names, const struct statsd_row *row)
{
	for (unsigned i = 0; i < SCAN_WORDS && row->hashes[i] != 0; i++) {
		if (!put(names, row->hashes[i], row->entries[i])) {
			return false;
		}
	}
	return true;
}

/* All rows in order of their hashes, nearly: both tables are gone through from front to back. */
static int grow(struct statsd_names *names)
{
	struct statsd_names before = *names;
	unsigned bits = 32 - names->shift + 1;
	int r = bits <= MAX_BITS ? alloc_rows(names, bits) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < before.n_rows + SPARE_ROWS; i++) {
		if (!put_row(names, &before.rows[i])) {
			r = -ENOMEM;
			free_rows(names->rows, names->n_rows);
		}
	}
	if (r == 0) {
		free_rows(before.rows, before.n_rows);
	} else {
		*names = before;
	}
	return r;
}

struct statsd_name *statsd_names_insert(struct statsd_names *names, const struct statsd_key *key,
					uint32_t hash, struct engine_ref ref)
{
	size_t len = key->name_len + key->tags_len;
	size_t size = (sizeof(struct statsd_name) + len + STATSD_NAMES_STEP - 1) /
		      STATSD_NAMES_STEP * STATSD_NAMES_STEP;
	struct statsd_name *name;
	uint32_t entry;

	if (len > UINT16_MAX || size > names->limit - STATSD_NAMES_STEP) {
		return NULL;
	}
	if (size > names->limit - names->used) {
		statsd_names_forget(names);
	}
	if (names->n >= names->n_rows * (SCAN_WORDS * 5 / 8) && grow(names) != 0) {
		statsd_names_forget(names);
	}
	entry = (uint32_t)(names->used / STATSD_NAMES_STEP);
	if (!put(names, hash, entry) && (grow(names) != 0 || !put(names, hash, entry))) {
		return NULL;
	}
	name = statsd_names_entry(names, entry);
	*name = (struct statsd_name){ .ref = ref,
				      .name_len = (uint16_t)key->name_len,
				      .tags_len = (uint16_t)key->tags_len };
	memcpy(name->bytes, key->name, key->name_len);
	memcpy(name->bytes + key->name_len, key->tags, key->tags_len);
	names->used += size;
	names->n++;
	return name;
}
