#include "daemon/statsd/names.h"

#include <errno.h>
#include <sys/mman.h>

#define FIRST_BITS 10u
#define MAX_BITS 30u
#define ODD UINT64_C(0x9e3779b97f4a7c15) /* of no meaning but that its bits look random */
/*
 * Places behind the last one that a hash leads to: a run is shorter, or the table grows. So no search needs to begin again at the
 * front, and each ends at a free place.
 */
#define SPARE_PLACES 256u

static size_t bytes_of(size_t size)
{
	return (size + SPARE_PLACES + 1) * sizeof(struct statsd_place);
}

/* Mapped, not malloc'd: of large tables that were freed the heap would keep some. */
static int alloc_places(struct statsd_names *names, unsigned bits)
{
	void *places = mmap(NULL, bytes_of((size_t)1 << bits), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (places == MAP_FAILED) {
		return -ENOMEM;
	}
	names->places = places;
	names->size = (size_t)1 << bits;
	names->shift = 32 - bits;
	return 0;
}

static void free_places(struct statsd_place *places, size_t size)
{
	if (places != NULL) {
		(void)munmap(places, bytes_of(size));
	}
}

int statsd_names_init(struct statsd_names *names, size_t limit, const uint64_t seed[2])
{
	void *entries = mmap(NULL, limit + SCAN_SLACK, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*names = (struct statsd_names){ .limit = limit, .factor = seed[1] | 1 };
	for (size_t i = 0; i < SCAN_BLOCK / 8; i++) {
		names->key[i] = statsd_names_mix(seed[0] + (i + 1) * ODD, seed[1] ^ ODD);
	}
	if (entries == MAP_FAILED) {
		return -ENOMEM;
	}
	names->entries = entries;
	names->used = STATSD_NAMES_STEP; /* 0 is no entry */
	return alloc_places(names, FIRST_BITS);
}

void statsd_names_deinit(struct statsd_names *names)
{
	free_places(names->places, names->size);
	if (names->entries != NULL) {
		(void)munmap(names->entries, names->limit + SCAN_SLACK);
	}
	*names = (struct statsd_names){ 0 };
}

void statsd_names_forget(struct statsd_names *names)
{
	struct statsd_place *before = names->places;
	size_t size = names->size;

	names->n_forgotten += names->n;
	/* Without memory for a small table the large one is used again, emptied. */
	if (alloc_places(names, FIRST_BITS) == 0) {
		free_places(before, size);
	} else {
		memset(before, 0, bytes_of(size));
	}
	(void)madvise(names->entries, names->limit, MADV_DONTNEED);
	names->used = STATSD_NAMES_STEP;
	names->n = 0;
}

/* False: the run of used places is too long. */
static bool put(struct statsd_names *names, struct statsd_place place)
{
	struct statsd_place *at = &names->places[place.hash >> names->shift];
	const struct statsd_place *last = names->places + names->size + SPARE_PLACES;

	while (at < last && at->entry != 0) {
		at++;
	}
	if (at == last) {
		return false;
	}
	*at = place;
	return true;
}

/* All places in order of their hashes, nearly: both tables are gone through from front to back. */
static int grow(struct statsd_names *names)
{
	struct statsd_names before = *names;
	unsigned bits = 32 - names->shift + 1;
	int r = bits <= MAX_BITS ? alloc_places(names, bits) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < before.size + SPARE_PLACES; i++) {
		if (before.places[i].entry != 0 && !put(names, before.places[i])) {
			r = -ENOMEM;
			free_places(names->places, names->size);
		}
	}
	if (r == 0) {
		free_places(before.places, before.size);
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
	struct statsd_place place = { hash, 0 };
	struct statsd_name *name;

	if (len > UINT16_MAX || size > names->limit - STATSD_NAMES_STEP) {
		return NULL;
	}
	if (size > names->limit - names->used) {
		statsd_names_forget(names);
	}
	if (names->n >= names->size / 4 * 3 && grow(names) != 0) {
		statsd_names_forget(names);
	}
	place.entry = (uint32_t)(names->used / STATSD_NAMES_STEP);
	if (!put(names, place) && (grow(names) != 0 || !put(names, place))) {
		return NULL;
	}
	name = statsd_names_entry(names, place.entry);
	*name = (struct statsd_name){ .ref = ref,
				      .name_len = (uint16_t)key->name_len,
				      .tags_len = (uint16_t)key->tags_len };
	memcpy(name->bytes, key->name, key->name_len);
	memcpy(name->bytes + key->name_len, key->tags, key->tags_len);
	names->used += size;
	names->n++;
	return name;
}
