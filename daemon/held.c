#include "daemon/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HELD_MIN_SIZE 4u
#define HELD_MIN_ZERO 16u /* so many paths of 0 are kept in any case */

struct held_entry {
	uint64_t hash;
	int64_t amount;
	size_t len;
	struct held_entry *next_changed;
	bool changed; /* in the list of those; not freed meanwhile */
	char path[];
};

/* The finish of splitmix64 over eight bytes at a time. */
static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t hash_of(const struct held *held, const char *path, size_t len)
{
	uint64_t hash = held->seed ^ len, word;

	for (; len >= sizeof(word); path += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, path, sizeof(word));
		hash = mix(hash ^ word) + held->seed;
	}
	word = 0;
	memcpy(&word, path, len);
	return mix(hash ^ word);
}

/* Where it is, or the free place where it would be; size is not 0. */
static struct held_entry **find(const struct held *held, uint64_t hash, const char *path,
				size_t len)
{
	uint32_t mask = held->size - 1;

	for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
		struct held_entry *entry = held->slots[i];

		if (entry == NULL || (entry->hash == hash && entry->len == len &&
				      memcmp(entry->path, path, len) == 0)) {
			return &held->slots[i];
		}
	}
}

static struct held_entry *look_up(const struct held *held, const char *path, size_t len)
{
	return held->size > 0 ? *find(held, hash_of(held, path, len), path, len) : NULL;
}

static void note(struct held *held, struct held_entry *entry)
{
	if (held->keeps && !entry->changed) {
		entry->changed = true;
		entry->next_changed = held->changed;
		held->changed = entry;
	}
}

/* Into a table of another size, without those of 0 of which that was told. -ENOMEM changes nothing. */
static int rebuild(struct held *held, uint32_t size)
{
	struct held_entry **slots = calloc(size, sizeof(*slots));
	uint32_t mask = size - 1, n = 0, n_zero = 0;

	if (slots == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < held->size; i++) {
		struct held_entry *entry = held->slots[i];
		uint32_t at;

		if (entry == NULL) {
			continue;
		}
		if (entry->amount == 0 && !entry->changed) {
			free(entry);
			continue;
		}
		n++;
		n_zero += entry->amount == 0;
		for (at = (uint32_t)entry->hash & mask; slots[at] != NULL; at = (at + 1) & mask) {
			/* taken */
		}
		slots[at] = entry;
	}
	free(held->slots);
	held->slots = slots;
	held->size = size;
	held->n = n;
	held->n_zero = n_zero;
	return 0;
}

/* The least size in which so many entries leave a third free. */
static uint32_t size_for(uint32_t n)
{
	uint32_t size = HELD_MIN_SIZE;

	while (n >= size - size / 3) {
		size *= 2;
	}
	return size;
}

/* How many a rebuild leaves. */
static uint32_t staying(const struct held *held)
{
	uint32_t n = held_paths(held);

	for (const struct held_entry *entry = held->changed; entry != NULL;
	     entry = entry->next_changed) {
		n += entry->amount == 0;
	}
	return n;
}

void held_tidy(struct held *held)
{
	if (held->n_zero > HELD_MIN_ZERO && held->n_zero > held_paths(held)) {
		(void)rebuild(held, size_for(staying(held) + 1));
	}
}

int64_t held_amount(const struct held *held, const char *path, size_t len)
{
	const struct held_entry *entry = look_up(held, path, len);

	return entry != NULL ? entry->amount : 0;
}

static int insert(struct held *held, uint64_t hash, const char *path, size_t len, int64_t n)
{
	struct held_entry *entry = malloc(sizeof(*entry) + len);
	int r = 0;

	if (entry == NULL) {
		return -ENOMEM;
	}
	if (held->size == 0 || held->n + 1 >= held->size - held->size / 3) {
		r = rebuild(held, size_for(staying(held) + 1));
	}
	if (r < 0) {
		free(entry);
		return r;
	}
	*entry = (struct held_entry){ .hash = hash, .amount = n, .len = len };
	memcpy(entry->path, path, len);
	*find(held, hash, path, len) = entry;
	held->n++;
	note(held, entry);
	return 0;
}

int held_add(struct held *held, const char *path, size_t len, int64_t n)
{
	uint64_t hash = hash_of(held, path, len);
	struct held_entry *entry = held->size > 0 ? *find(held, hash, path, len) : NULL;

	if (entry == NULL) {
		return insert(held, hash, path, len, n);
	}
	held->n_zero -= entry->amount == 0;
	entry->amount += n;
	held->n_zero += entry->amount == 0;
	note(held, entry);
	return 0;
}

int held_take(struct held *held, const char *path, size_t len, int64_t n)
{
	struct held_entry *entry = look_up(held, path, len);

	if (entry == NULL || entry->amount < n) {
		return HELD_E_LACKING;
	}
	entry->amount -= n;
	note(held, entry);
	if (entry->amount == 0) {
		held->n_zero++;
		if (!held->keeps) {
			held_tidy(held);
		}
	}
	return HELD_OK;
}

bool held_drain(struct held *held, uint32_t *at, uint32_t n, held_fn visit, void *ctx)
{
	for (; *at < held->size && n > 0; (*at)++) {
		struct held_entry *entry = held->slots[*at];

		if (entry != NULL && entry->amount > 0) {
			visit(ctx, entry->path, entry->len, entry->amount);
			entry->amount = 0;
			held->n_zero++;
			note(held, entry);
			n--;
		}
	}
	return *at < held->size;
}

static void take_change(struct held_entry *entry, held_fn visit, void *ctx)
{
	entry->changed = false;
	visit(ctx, entry->path, entry->len, entry->amount);
}

void held_take_changes(struct held *held, held_fn visit, void *ctx)
{
	for (uint32_t i = 0; held->all_changed && i < held->size; i++) {
		if (held->slots[i] != NULL) {
			take_change(held->slots[i], visit, ctx);
		}
	}
	for (struct held_entry *entry = held->changed; entry != NULL; entry = entry->next_changed) {
		if (!held->all_changed) {
			take_change(entry, visit, ctx);
		}
	}
	held->changed = NULL;
	held->all_changed = false;
}

void held_keep_all(struct held *held)
{
	held->keeps = true;
	held->all_changed = true;
}

void held_deinit(struct held *held)
{
	for (uint32_t i = 0; i < held->size; i++) {
		free(held->slots[i]);
	}
	free(held->slots);
	*held = (struct held){ .seed = held->seed, .keeps = held->keeps };
}
