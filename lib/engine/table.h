#pragma once
/*
 * table: things by a text, hashed; the entry is part of the thing. For what changes seldom, under somebody else's lock.
 *
 * Keys belong to the things and stay as long as their entries are in. The hash is keyed, so that who chooses texts can't choose ones
 * that collide, if the seed is random.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/names/siphash.h"

struct table_entry {
	struct table_entry *next;
	uint64_t hash;
	const void *key;
	size_t len;
};

/* The thing whose member `entry` this is. */
#define TABLE_THING(type, from) ((type *)(void *)((char *)(from)-offsetof(type, entry)))

struct table {
	struct table_entry **buckets;
	size_t n_buckets; /* 0 or a power of two */
	size_t n;
	struct siphash_key seed;
};

void table_init(struct table *table, uint64_t seed);
/* The things are the caller's; see table_each. A table that is all zero is an empty one. */
void table_deinit(struct table *table);

/* NULL if there is none. */
struct table_entry *table_find(const struct table *table, const void *key, size_t len);

/* Not there yet; key and len are set. -ENOMEM. */
int table_insert(struct table *table, struct table_entry *entry);

/* It is there. */
void table_remove(struct table *table, struct table_entry *entry);

/* One after the other in no order, from NULL on; NULL at the end. */
struct table_entry *table_next(const struct table *table, const struct table_entry *entry);

/* Takes out any one entry: NULL if there is none. To empty a table. */
struct table_entry *table_pop(struct table *table);
