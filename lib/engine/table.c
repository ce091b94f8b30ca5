#include "lib/engine/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS_MIN 16u

void table_init(struct table *table, uint64_t seed)
{
	*table = (struct table){ .seed = { seed, ~seed } };
}

void table_deinit(struct table *table)
{
	free(table->buckets);
	table->buckets = NULL;
	table->n_buckets = 0;
	table->n = 0;
}

static struct table_entry **bucket(const struct table *table, uint64_t hash)
{
	return &table->buckets[hash & (table->n_buckets - 1)];
}

struct table_entry *table_find(const struct table *table, const void *key, size_t len)
{
	uint64_t hash;

	if (table->n == 0) {
		return NULL;
	}
	hash = siphash(&table->seed, key, len);
	for (struct table_entry *at = *bucket(table, hash); at; at = at->next) {
		if (at->hash == hash && at->len == len && memcmp(at->key, key, len) == 0) {
			return at;
		}
	}
	return NULL;
}

static int grow(struct table *table)
{
	size_t n_old = table->n_buckets;
	struct table_entry **old = table->buckets;
	size_t n_new = n_old > 0 ? 2 * n_old : BUCKETS_MIN;
	struct table_entry **buckets = calloc(n_new, sizeof(*buckets));

	if (!buckets) {
		return -ENOMEM;
	}
	table->buckets = buckets;
	table->n_buckets = n_new;
	for (size_t i = 0; i < n_old; i++) {
		struct table_entry *entry = old[i];

		while (entry) {
			struct table_entry *next = entry->next;
			struct table_entry **to = bucket(table, entry->hash);

			entry->next = *to;
			*to = entry;
			entry = next;
		}
	}
	free(old);
	return 0;
}

int table_insert(struct table *table, struct table_entry *entry)
{
	struct table_entry **to;

	/* Fuller than full works too. */
	if (table->n >= table->n_buckets && grow(table) < 0 && table->n_buckets == 0) {
		return -ENOMEM;
	}
	entry->hash = siphash(&table->seed, entry->key, entry->len);
	to = bucket(table, entry->hash);
	entry->next = *to;
	*to = entry;
	table->n++;
	return 0;
}

void table_remove(struct table *table, struct table_entry *entry)
{
	struct table_entry **link = bucket(table, entry->hash);

	while (*link != entry) {
		link = &(*link)->next;
	}
	*link = entry->next;
	table->n--;
}

static struct table_entry *first_from(const struct table *table, size_t i)
{
	for (; i < table->n_buckets; i++) {
		if (table->buckets[i]) {
			return table->buckets[i];
		}
	}
	return NULL;
}

struct table_entry *table_next(const struct table *table, const struct table_entry *entry)
{
	if (!entry) {
		return first_from(table, 0);
	}
	if (entry->next) {
		return entry->next;
	}
	return first_from(table, (entry->hash & (table->n_buckets - 1)) + 1);
}

struct table_entry *table_pop(struct table *table)
{
	struct table_entry *entry = table->n > 0 ? first_from(table, 0) : NULL;

	if (entry) {
		table_remove(table, entry);
	}
	return entry;
}
