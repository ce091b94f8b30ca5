#include "daemon/lease.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the book ---- */

int lease_book_init(struct lease_book *book, uint32_t max, uint64_t seed)
{
	*book = (struct lease_book){ .lock = PTHREAD_MUTEX_INITIALIZER, .max = max, .seed = seed };
	book->buckets = calloc(LEASE_BUCKETS, sizeof(*book->buckets));
	return book->buckets != NULL ? 0 : -ENOMEM;
}

void lease_book_deinit(struct lease_book *book)
{
	free(book->buckets);
	*book = (struct lease_book){ 0 };
}

void lease_book_set_max(struct lease_book *book, uint32_t max)
{
	(void)pthread_mutex_lock(&book->lock);
	book->max = max;
	(void)pthread_mutex_unlock(&book->lock);
}

uint32_t lease_book_count(struct lease_book *book)
{
	uint32_t n;

	(void)pthread_mutex_lock(&book->lock);
	n = book->n;
	(void)pthread_mutex_unlock(&book->lock);
	return n;
}

/* FNV-1a over the metric, which all that can be asked for together have in common. */
static struct lease_list *bucket_of(const struct lease_book *book, const char *path, size_t len)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ book->seed;

	for (size_t i = 0; i < len && path[i] != '/'; i++) {
		hash = (hash ^ (uint8_t)path[i]) * UINT64_C(0x100000001b3);
	}
	return &book->buckets[(hash ^ (hash >> 32)) % LEASE_BUCKETS];
}

static bool is_on(const struct lease *lease, const char *path, size_t len)
{
	return lease->len >= len && memcmp(lease->path, path, len) == 0 &&
	       (lease->len == len || lease->path[len] == '/');
}

void lease_book_each(struct lease_book *book, const char *path, size_t len, lease_fn visit,
		     void *ctx)
{
	const struct lease *lease;

	(void)pthread_mutex_lock(&book->lock);
	LIST_FOREACH(lease, bucket_of(book, path, len), link)
	{
		if (is_on(lease, path, len)) {
			visit(ctx, lease);
		}
	}
	(void)pthread_mutex_unlock(&book->lock);
}

static bool book_take_place(struct lease_book *book, bool whatever)
{
	bool taken;

	(void)pthread_mutex_lock(&book->lock);
	taken = whatever || book->n < book->max;
	book->n += taken;
	(void)pthread_mutex_unlock(&book->lock);
	return taken;
}

static void book_give_place(struct lease_book *book)
{
	(void)pthread_mutex_lock(&book->lock);
	book->n--;
	(void)pthread_mutex_unlock(&book->lock);
}

/* ---- tables ---- */

/* The first that is not below `number`. */
static uint32_t place_of(const struct lease_table *table, uint32_t number)
{
	uint32_t low = 0, high = table->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table->leases[middle]->number < number) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

struct lease *lease_find(const struct lease_table *table, uint32_t number)
{
	uint32_t at = place_of(table, number);

	return at < table->n && table->leases[at]->number == number ? table->leases[at] : NULL;
}

/* Room for one more in an array of pointers that has `n`. */
static int grow(struct lease ***leases, uint32_t n, uint32_t *size)
{
	struct lease **grown;
	uint32_t wanted = *size > 0 ? *size * 2 : 8;

	if (n < *size) {
		return 0;
	}
	grown = reallocarray(*leases, wanted, sizeof(struct lease *));
	if (grown == NULL) {
		return -ENOMEM;
	}
	*leases = grown;
	*size = wanted;
	return 0;
}

void lease_table_deinit(struct lease_table *table)
{
	for (uint32_t i = 0; i < table->n; i++) {
		free(table->leases[i]);
	}
	free(table->leases);
	*table = (struct lease_table){ 0 };
}

/* ---- clocks ---- */

static void put(struct lease_clock *clock, uint32_t at, struct lease *lease)
{
	clock->heap[at] = lease;
	lease->clock_at = at;
}

static void sift_up(struct lease_clock *clock, struct lease *lease, uint32_t at)
{
	while (at > 1 && clock->heap[at / 2]->expires_ns > lease->expires_ns) {
		put(clock, at, clock->heap[at / 2]);
		at /= 2;
	}
	put(clock, at, lease);
}

static void sift_down(struct lease_clock *clock, struct lease *lease, uint32_t at)
{
	for (;;) {
		uint32_t child = at * 2;

		if (child < clock->n &&
		    clock->heap[child + 1]->expires_ns < clock->heap[child]->expires_ns) {
			child++;
		}
		if (child > clock->n || clock->heap[child]->expires_ns >= lease->expires_ns) {
			break;
		}
		put(clock, at, clock->heap[child]);
		at = child;
	}
	put(clock, at, lease);
}

static void clock_remove(struct lease_clock *clock, struct lease *lease)
{
	uint32_t at = lease->clock_at;
	struct lease *last;

	if (at == 0) {
		return;
	}
	lease->clock_at = 0;
	last = clock->heap[clock->n--];
	if (last != lease) {
		sift_up(clock, last, at);
		sift_down(clock, last, last->clock_at);
	}
}

/* There is room: each lease has kept its place since it was prepared. */
static void clock_add(struct lease_clock *clock, struct lease *lease)
{
	sift_up(clock, lease, ++clock->n);
}

struct lease *lease_expire(struct lease_clock *clock, int64_t now_ns)
{
	struct lease *lease;

	if (clock->n == 0 || clock->heap[1]->expires_ns > now_ns) {
		return NULL;
	}
	lease = clock->heap[1];
	clock_remove(clock, lease);
	return lease;
}

int64_t lease_next(const struct lease_clock *clock)
{
	return clock->n > 0 ? clock->heap[1]->expires_ns : INT64_MAX;
}

void lease_clock_deinit(struct lease_clock *clock)
{
	free(clock->heap);
	*clock = (struct lease_clock){ 0 };
}

/* ---- leases ---- */

static struct lease *lease_new(const struct lease_terms *terms)
{
	struct lease *lease = calloc(1, sizeof(*lease) + terms->len + terms->agent_len);

	if (lease != NULL) {
		lease->number = terms->number;
		lease->ttl_ms = terms->ttl_ms;
		lease->gauge = terms->gauge;
		lease->len = (uint16_t)terms->len;
		lease->agent_len = (uint16_t)terms->agent_len;
		memcpy(lease->path, terms->path, terms->len);
		memcpy(lease->path + terms->len, terms->agent, terms->agent_len);
	}
	return lease;
}

int lease_prepare(struct lease_table *table, struct lease_clock *clock, struct lease_book *book,
		  const struct lease_terms *terms, uint32_t max, struct lease **ret_lease)
{
	struct lease *lease;

	if (lease_find(table, terms->number) != NULL) {
		return LEASE_E_EXISTS;
	}
	if (table->n >= max) {
		return LEASE_E_FULL;
	}
	/* One that has expired is not in the clock, but may come back: a place for each lease, and heaps begin at 1. */
	if (grow(&table->leases, table->n, &table->size) < 0 ||
	    grow(&clock->heap, clock->n_leases + 1, &clock->size) < 0) {
		return -ENOMEM;
	}
	if (!book_take_place(book, max == LEASE_NO_MAX)) {
		return LEASE_E_ALL;
	}
	lease = lease_new(terms);
	if (lease == NULL) {
		book_give_place(book);
		return -ENOMEM;
	}
	*ret_lease = lease;
	return 0;
}

void lease_discard(struct lease_book *book, struct lease *lease)
{
	book_give_place(book);
	free(lease);
}

void lease_make(struct lease_table *table, struct lease_clock *clock, struct lease_book *book,
		struct lease *lease, int64_t units, int64_t expires_ns)
{
	uint32_t at = place_of(table, lease->number);

	memmove(&table->leases[at + 1], &table->leases[at],
		(table->n - at) * sizeof(struct lease *));
	table->leases[at] = lease;
	table->n++;
	clock->n_leases++;
	lease->units = units;
	lease->expires_ns = expires_ns;
	clock_add(clock, lease);
	(void)pthread_mutex_lock(&book->lock);
	LIST_INSERT_HEAD(bucket_of(book, lease->path, lease->len), lease, link);
	(void)pthread_mutex_unlock(&book->lock);
}

void lease_renew(struct lease_clock *clock, struct lease_book *book, struct lease *lease,
		 int64_t units, int64_t expires_ns)
{
	clock_remove(clock, lease);
	(void)pthread_mutex_lock(&book->lock);
	lease->units = units;
	lease->expires_ns = expires_ns;
	(void)pthread_mutex_unlock(&book->lock);
	clock_add(clock, lease);
}

void lease_end(struct lease_table *table, struct lease_clock *clock, struct lease_book *book,
	       struct lease *lease)
{
	uint32_t at = place_of(table, lease->number);

	table->n--;
	memmove(&table->leases[at], &table->leases[at + 1],
		(table->n - at) * sizeof(struct lease *));
	clock_remove(clock, lease);
	clock->n_leases--;
	(void)pthread_mutex_lock(&book->lock);
	LIST_REMOVE(lease, link);
	book->n--;
	(void)pthread_mutex_unlock(&book->lock);
	free(lease);
}
