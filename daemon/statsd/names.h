#pragma once
/*
 * names: what a worker remembers of lines it has seen: the bytes of a name and its tags -> the counter.
 *
 * A table of 8 bytes for each place, addressed linearly by the upper bits of the hash, so that one that doubles is filled from front to back;
 * and entries one behind the other in memory that is reserved at the start and touched as it is needed. Nothing is removed one by
 * one: at its limit the whole is forgotten, and learned again. A reference may be dead (ENGINE_E_GONE); then the owner puts another one in its
 * place.
 *
 * Where there are many names each step waits for memory, so whoever has many to find takes each step for all of them before the
 * next one: statsd_names_ask, statsd_names_ask_entry, statsd_names_find.
 *
 * Thread safety: none, a worker has its own. Names and tags need SCAN_SLACK readable bytes behind them.
 */
#include "daemon/statsd/scan.h"
#include "lib/engine/engine.h"

#include <stddef.h>
#include <stdint.h>

struct statsd_name {
	struct engine_ref ref;
	uint16_t name_len, tags_len;
	char bytes[];
};

struct statsd_place {
	uint32_t hash;
	uint32_t entry; /* its offset by STATSD_NAMES_STEP; 0: the place is free */
};

#define STATSD_NAMES_STEP 8u

struct statsd_names {
	uint64_t seed[2];
	struct statsd_place *places;
	unsigned shift; /* of a hash, to its place */
	size_t n, size; /* entries; places, but for those at the end that only a long run reaches */
	char *entries;
	size_t used, limit;   /* bytes */
	uint64_t n_forgotten; /* entries, ever */
};

struct statsd_key {
	const char *name, *tags;
	size_t name_len, tags_len;
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

/*
 * Of the words of both parts, two at a time: multiplied to 128 bits, halves added, as wyhash does (Wang Yi). Without the seed, which is random,
 * nobody can choose names that meet.
 */
static inline uint64_t statsd_names_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t statsd_names_mix_bytes(uint64_t state, uint64_t seed, const char *at,
					      size_t len)
{
	for (; len > 16; at += 16, len -= 16) {
		state = statsd_names_mix(scan_word(at) ^ seed, scan_word(at + 8) ^ state);
	}
	return len > 8 ? statsd_names_mix(scan_word(at) ^ seed, scan_word(at + len - 8) ^ state)
		       : statsd_names_mix(scan_part(at, len & 7) ^ seed,
					  (len == 8 ? scan_word(at) : len) ^ state);
}

static inline uint32_t statsd_names_hash(const struct statsd_names *names,
					 const struct statsd_key *key)
{
	uint64_t state = statsd_names_mix_bytes(names->seed[0] ^ key->name_len, names->seed[1],
						key->name, key->name_len);

	if (key->tags_len > 0) {
		state = statsd_names_mix_bytes(state ^ key->tags_len, names->seed[1], key->tags,
					       key->tags_len);
	}
	return (uint32_t)(statsd_names_mix(state, names->seed[0] | 1) >> 32);
}

static inline const struct statsd_place *statsd_names_place(const struct statsd_names *names,
							    uint32_t hash)
{
	return &names->places[hash >> names->shift];
}

static inline struct statsd_name *statsd_names_entry(const struct statsd_names *names,
						     uint32_t entry)
{
	return (struct statsd_name *)(void *)(names->entries + (size_t)entry * STATSD_NAMES_STEP);
}

/* Step 1: the place. */
static inline void statsd_names_ask(const struct statsd_names *names, uint32_t hash)
{
	__builtin_prefetch(statsd_names_place(names, hash));
}

/* Step 2: the entry that is it, most likely. */
static inline void statsd_names_ask_entry(const struct statsd_names *names, uint32_t hash)
{
	const struct statsd_place *place = statsd_names_place(names, hash);

	while (place->entry != 0 && place->hash != hash) {
		place++;
	}
	__builtin_prefetch(statsd_names_entry(names, place->entry));
}

/* Step 3. NULL: it is not there. */
static inline struct statsd_name *statsd_names_find(const struct statsd_names *names,
						    const struct statsd_key *key, uint32_t hash)
{
	for (const struct statsd_place *place = statsd_names_place(names, hash); place->entry != 0;
	     place++) {
		struct statsd_name *name;

		if (place->hash != hash) {
			continue;
		}
		name = statsd_names_entry(names, place->entry);
		if (name->name_len == key->name_len && name->tags_len == key->tags_len &&
		    scan_equal(name->bytes, key->name, key->name_len) &&
		    scan_equal(name->bytes + key->name_len, key->tags, key->tags_len)) {
			return name;
		}
	}
	return NULL;
}
