#pragma once
/*
 * names: what a worker remembers of lines it has seen: the bytes of a name and its tags -> the counter.
 *
 * A table of rows of 8 places, one line of the caches each, addressed by the upper bits of the hash, so that one that doubles is filled from front
 * to back; and entries one behind the other in memory that is reserved at the start and touched as it is needed. A row is looked at as a whole:
 * which of its places it is takes no branch, which no processor could foresee. What a full row has no room for is in the next one that has. Nothing
 * is removed one by one: at its limit the whole is forgotten, and learned again. A reference may be dead (ENGINE_E_GONE); then the owner puts
 * another one in its place.
 *
 * Where there are many names each step waits for memory, so whoever has many to find takes each step for all of them before the
 * next one: statsd_names_ask, statsd_names_ask_entry, statsd_names_find.
 *
 * Thread safety: none, a worker has its own. Names and tags need SCAN_SLACK readable bytes behind them.
 */
#include "daemon/statsd/line.h"
#include "daemon/statsd/scan.h"
#include "lib/engine/engine.h"

#include <stddef.h>
#include <stdint.h>

struct statsd_name {
	struct engine_ref ref;
	uint16_t name_len, tags_len;
	char bytes[];
};

struct statsd_row {
	_Alignas(64) uint32_t hashes[SCAN_WORDS]; /* filled from the first on; 0: free */
	uint32_t entries[SCAN_WORDS];		  /* their offsets by STATSD_NAMES_STEP */
};

#define STATSD_NAMES_STEP 8u

struct statsd_names {
	uint64_t key[SCAN_BLOCK / 8], factor; /* of the hash */
	struct statsd_row *rows;
	unsigned shift;	  /* of a hash, to its row */
	size_t n, n_rows; /* entries; rows, but for those at the end that only a long run reaches */
	char *entries;
	size_t used, limit;   /* bytes */
	uint64_t n_forgotten; /* entries, ever */
};

/* `limit`: bytes of memory for entries. 0 or -ENOMEM. */
int statsd_names_init(struct statsd_names *names, size_t limit, const uint64_t seed[2]);
/* Takes what is zeroed. */
void statsd_names_deinit(struct statsd_names *names);

void statsd_names_forget(struct statsd_names *names);

/* Forgets everything if there is no room otherwise. NULL: no memory, or longer than any entry. The key is not there yet. */
struct statsd_name *statsd_names_insert(struct statsd_names *names, const struct statsd_key *key,
					uint32_t hash, struct engine_ref ref);

/* ---- to find ---- */

static inline uint64_t statsd_names_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t statsd_names_mix_bytes(const struct statsd_names *names, uint64_t state,
					      const char *at, size_t len)
{
	for (; len > SCAN_BLOCK; at += SCAN_BLOCK, len -= SCAN_BLOCK) {
		state = statsd_names_mix(state ^ scan_hash(at, SCAN_BLOCK, names->key),
					 names->factor);
	}
	return statsd_names_mix(state ^ scan_hash(at, len, names->key), names->factor);
}

/* Without the key, which is random, nobody can choose names that meet. Never 0. */
static inline uint32_t statsd_names_hash(const struct statsd_names *names,
					 const struct statsd_key *key)
{
	uint64_t state = statsd_names_mix_bytes(names, key->name_len, key->name, key->name_len);

	if (key->tags_len > 0) {
		state = statsd_names_mix_bytes(names, state ^ key->tags_len, key->tags,
					       key->tags_len);
	}
	return (uint32_t)(state >> 32) | 1;
}

static inline struct statsd_row *statsd_names_row(const struct statsd_names *names, uint32_t hash)
{
	return &names->rows[hash >> names->shift];
}

static inline bool statsd_row_is_full(const struct statsd_row *row)
{
	return row->hashes[SCAN_WORDS - 1] != 0;
}

static inline struct statsd_name *statsd_names_entry(const struct statsd_names *names,
						     uint32_t entry)
{
	return (struct statsd_name *)(void *)(names->entries + (size_t)entry * STATSD_NAMES_STEP);
}

/* Step 1: the row. */
static inline void statsd_names_ask(const struct statsd_names *names, uint32_t hash)
{
	__builtin_prefetch(statsd_names_row(names, hash));
}

/* Step 2: the entry that is it, most likely, in full; NULL: it is not there. */
static inline struct statsd_name *statsd_names_ask_entry(const struct statsd_names *names,
							 const struct statsd_key *key,
							 uint32_t hash)
{
	const struct statsd_row *row = statsd_names_row(names, hash);
	unsigned hits = scan_words(row->hashes, hash);
	struct statsd_name *name;

	while (__builtin_expect(hits == 0, 0)) {
		if (!statsd_row_is_full(row)) {
			return NULL;
		}
		hits = scan_words((++row)->hashes, hash);
	}
	name = statsd_names_entry(names, row->entries[__builtin_ctz(hits)]);
	__builtin_prefetch(name);
	__builtin_prefetch(name->bytes + key->name_len);
	return name;
}

/* Step 3: is it? */
static inline bool statsd_name_is(const struct statsd_name *name, const struct statsd_key *key)
{
	return name->name_len == key->name_len && name->tags_len == key->tags_len &&
	       scan_equal(name->bytes, key->name, key->name_len) &&
	       (key->tags_len == 0 ||
		scan_equal(name->bytes + key->name_len, key->tags, key->tags_len));
}

/* All steps at once. NULL: it is not there. */
static inline struct statsd_name *statsd_names_find(const struct statsd_names *names,
						    const struct statsd_key *key, uint32_t hash)
{
	for (const struct statsd_row *row = statsd_names_row(names, hash);; row++) {
		unsigned hits = scan_words(row->hashes, hash);

		for (; hits != 0; hits &= hits - 1) {
			struct statsd_name *name =
				statsd_names_entry(names, row->entries[__builtin_ctz(hits)]);

			if (statsd_name_is(name, key)) {
				return name;
			}
		}
		if (!statsd_row_is_full(row)) {
			return NULL;
		}
	}
}
