#include "daemon/waiting.h"

#include "lib/count/fence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WAITING_BUCKETS 64u

/* A node at which somebody stands. */
struct waiting_node {
	struct waiting_node *next; /* in its bucket */
	uint64_t hash;
	TAILQ_HEAD(waiting_queue, waiting_place) queue; /* by turn */
	size_t len;
	char path[];
};

struct waiting_place {
	struct waiter *waiter;
	struct waiting_node *node;
	LIST_ENTRY(waiting_place) of_waiter;
	TAILQ_ENTRY(waiting_place) of_node;
	bool kept; /* while places are taken anew */
};

/* ---- nodes ---- */

/*
 * A hash of every prefix of a path in one pass over it: FNV-1a, which has the state after each byte, finished by splitmix64 where it
 * is used.
 */
static uint64_t hash_more(uint64_t hash, const char *at, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		hash = (hash ^ (uint8_t)at[i]) * UINT64_C(0x100000001b3);
	}
	return hash;
}

static uint64_t finish(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static struct waiting_node *find(const struct waiting *waiting, uint64_t hash, const char *path,
				 size_t len)
{
	struct waiting_node *node = waiting->buckets[hash & (waiting->n_buckets - 1)];

	while (node != NULL &&
	       (node->hash != hash || node->len != len || memcmp(node->path, path, len) != 0)) {
		node = node->next;
	}
	return node;
}

/* A path's nodes at which somebody stands, from the metric down. */
struct climb {
	const struct waiting *waiting;
	const char *path;
	size_t len, at;
	uint64_t hash;
};

static struct climb climb_begin(const struct waiting *waiting, const char *path, size_t len)
{
	return (struct climb){ .waiting = waiting,
			       .path = path,
			       .len = len,
			       .hash = UINT64_C(0xcbf29ce484222325) ^ waiting->seed };
}

static struct waiting_node *climb_next(struct climb *climb)
{
	while (climb->at < climb->len) {
		size_t from = climb->at, to = from + (from > 0);
		const char *slash = memchr(climb->path + to, '/', climb->len - to);
		struct waiting_node *node;

		climb->at = slash != NULL ? (size_t)(slash - climb->path) : climb->len;
		climb->hash = hash_more(climb->hash, climb->path + from, climb->at - from);
		node = find(climb->waiting, finish(climb->hash), climb->path, climb->at);
		if (node != NULL) {
			return node;
		}
	}
	return NULL;
}

/* Without memory the chains grow instead. */
static void grow(struct waiting *waiting)
{
	size_t n = waiting->n_buckets * 2;
	struct waiting_node **buckets = calloc(n, sizeof(*buckets));

	if (buckets == NULL) {
		return;
	}
	for (size_t i = 0; i < waiting->n_buckets; i++) {
		struct waiting_node *node, *next;

		for (node = waiting->buckets[i]; node != NULL; node = next) {
			next = node->next;
			node->next = buckets[node->hash & (n - 1)];
			buckets[node->hash & (n - 1)] = node;
		}
	}
	free(waiting->buckets);
	waiting->buckets = buckets;
	waiting->n_buckets = n;
}

static struct waiting_node *node_at(struct waiting *waiting, const char *path, size_t len)
{
	uint64_t hash = finish(hash_more(UINT64_C(0xcbf29ce484222325) ^ waiting->seed, path, len));
	struct waiting_node *node = find(waiting, hash, path, len), **bucket;

	if (node != NULL) {
		return node;
	}
	node = malloc(sizeof(*node) + len);
	if (node == NULL) {
		return NULL;
	}
	if (waiting->n_nodes >= waiting->n_buckets) {
		grow(waiting);
	}
	bucket = &waiting->buckets[hash & (waiting->n_buckets - 1)];
	*node = (struct waiting_node){ .next = *bucket, .hash = hash, .len = len };
	TAILQ_INIT(&node->queue);
	memcpy(node->path, path, len);
	*bucket = node;
	waiting->n_nodes++;
	return node;
}

static void node_tidy(struct waiting *waiting, struct waiting_node *node)
{
	struct waiting_node **link = &waiting->buckets[node->hash & (waiting->n_buckets - 1)];

	if (!TAILQ_EMPTY(&node->queue)) {
		return;
	}
	while (*link != node) {
		link = &(*link)->next;
	}
	*link = node->next;
	waiting->n_nodes--;
	free(node);
}

/* ---- telling ---- */

static void tell(struct waiting *waiting, struct waiter *waiter)
{
	if (!waiter->ready) {
		waiter->ready = true;
		TAILQ_INSERT_TAIL(&waiting->ready[waiter->worker], waiter, link);
		waiting->wake(waiting->ctx, waiter->worker);
	}
}

static void tell_first(struct waiting *waiting, const struct waiting_node *node)
{
	if (!TAILQ_EMPTY(&node->queue)) {
		tell(waiting, TAILQ_FIRST(&node->queue)->waiter);
	}
}

/* ---- standing ---- */

static size_t stand_bytes(const struct waiting_node *node)
{
	return sizeof(struct waiting_place) + sizeof(*node) + node->len;
}

static void leave_stand(struct waiting *waiting, struct waiting_place *stand)
{
	struct waiting_node *node = stand->node;
	bool was_first = TAILQ_FIRST(&node->queue) == stand;

	LIST_REMOVE(stand, of_waiter);
	TAILQ_REMOVE(&node->queue, stand, of_node);
	stand->waiter->bytes -= stand_bytes(node);
	waiting->bytes -= stand_bytes(node);
	free(stand);
	if (was_first) {
		tell_first(waiting, node);
	}
	node_tidy(waiting, node);
}

static struct waiting_place *stand_of(const struct waiter *waiter, const struct waiting_node *node)
{
	struct waiting_place *stand;

	LIST_FOREACH(stand, &waiter->stands, of_waiter)
	{
		if (stand->node == node) {
			return stand;
		}
	}
	return NULL;
}

/* Behind all who came before; most come last, so look from the end. */
static void queue_up(struct waiting_node *node, struct waiting_place *stand)
{
	struct waiting_place *before = TAILQ_LAST(&node->queue, waiting_queue);

	while (before != NULL && before->waiter->turn > stand->waiter->turn) {
		before = TAILQ_PREV(before, waiting_queue, of_node);
	}
	if (before != NULL) {
		TAILQ_INSERT_AFTER(&node->queue, before, stand, of_node);
	} else {
		TAILQ_INSERT_HEAD(&node->queue, stand, of_node);
	}
}

static int stand_at(struct waiting *waiting, struct waiter *waiter, struct waiting_node *node,
		    bool *anew)
{
	struct waiting_place *stand = stand_of(waiter, node);

	if (stand != NULL) {
		stand->kept = true;
		return 0;
	}
	if (waiting->bytes + stand_bytes(node) > waiting->max_bytes) {
		return WAITING_E_FULL;
	}
	stand = calloc(1, sizeof(*stand));
	if (stand == NULL) {
		return -ENOMEM;
	}
	*stand = (struct waiting_place){ .waiter = waiter, .node = node, .kept = true };
	waiter->bytes += stand_bytes(node);
	waiting->bytes += stand_bytes(node);
	LIST_INSERT_HEAD(&waiter->stands, stand, of_waiter);
	queue_up(node, stand);
	*anew = true;
	return 0;
}

static int stand_at_path(struct waiting *waiting, struct waiter *waiter, struct text path,
			 bool *anew)
{
	struct waiting_node *node = node_at(waiting, path.at, path.len);
	int r;

	if (node == NULL) {
		return -ENOMEM;
	}
	r = stand_at(waiting, waiter, node, anew);
	if (r != 0) {
		node_tidy(waiting, node);
	}
	return r;
}

static void forget_kept(struct waiter *waiter)
{
	struct waiting_place *stand;

	LIST_FOREACH(stand, &waiter->stands, of_waiter)
	{
		stand->kept = false;
	}
}

static void leave_unkept(struct waiting *waiting, struct waiter *waiter)
{
	struct waiting_place *stand, *next;

	for (stand = LIST_FIRST(&waiter->stands); stand != NULL; stand = next) {
		next = LIST_NEXT(stand, of_waiter);
		if (!stand->kept) {
			leave_stand(waiting, stand);
		}
	}
}

/* ---- waiters ---- */

int waiting_join(struct waiting *waiting, struct waiter *waiter, size_t bytes)
{
	int r = 0;

	(void)pthread_mutex_lock(&waiting->lock);
	if (waiting_count(waiting) >= waiting->max ||
	    bytes > waiting->max_bytes - (waiting->bytes < waiting->max_bytes
						  ? waiting->bytes
						  : waiting->max_bytes)) {
		r = WAITING_E_FULL;
	} else {
		waiter->turn = waiting->next_turn++;
		waiter->ready = false;
		LIST_INIT(&waiter->stands);
		waiter->bytes = bytes;
		waiting->bytes += bytes;
		atomic_store_explicit(&waiting->n, waiting_count(waiting) + 1,
				      memory_order_relaxed);
	}
	(void)pthread_mutex_unlock(&waiting->lock);
	return r;
}

/* Stands behind whoever came before, at every node of one path. */
static int turn_on_path(struct waiting *waiting, struct waiter *waiter,
			const struct engine_charge_item *item, bool *its_turn)
{
	struct climb climb = climb_begin(waiting, item->path, item->len);
	struct waiting_node *node;
	bool anew;

	while ((node = climb_next(&climb)) != NULL) {
		const struct waiting_place *first = TAILQ_FIRST(&node->queue);
		int r;

		if (first->waiter->turn < waiter->turn) {
			*its_turn = false;
			r = stand_at(waiting, waiter, node, &anew);
			if (r != 0) {
				return r;
			}
		}
	}
	return 0;
}

int waiting_turn(struct waiting *waiting, struct waiter *waiter, bool *ret_its_turn)
{
	bool its_turn = true;
	int r = 0;

	(void)pthread_mutex_lock(&waiting->lock);
	for (size_t i = 0; r == 0 && i < waiter->n_items; i++) {
		r = turn_on_path(waiting, waiter, &waiter->items[i], &its_turn);
	}
	(void)pthread_mutex_unlock(&waiting->lock);
	if (r == 0) {
		*ret_its_turn = its_turn;
	}
	return r;
}

int waiting_stand(struct waiting *waiting, struct waiter *waiter, const struct text *nodes,
		  size_t n, bool *ret_anew)
{
	bool anew = false;
	int r = 0;

	(void)pthread_mutex_lock(&waiting->lock);
	forget_kept(waiter);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = stand_at_path(waiting, waiter, nodes[i], &anew);
	}
	leave_unkept(waiting, waiter);
	(void)pthread_mutex_unlock(&waiting->lock);
	if (r == 0) {
		*ret_anew = anew;
	}
	return r;
}

void waiting_leave(struct waiting *waiting, struct waiter *waiter)
{
	(void)pthread_mutex_lock(&waiting->lock);
	forget_kept(waiter);
	leave_unkept(waiting, waiter);
	if (waiter->ready) {
		TAILQ_REMOVE(&waiting->ready[waiter->worker], waiter, link);
		waiter->ready = false;
	}
	waiting->bytes -= waiter->bytes;
	atomic_store_explicit(&waiting->n, waiting_count(waiting) - 1, memory_order_relaxed);
	(void)pthread_mutex_unlock(&waiting->lock);
}

struct waiter *waiting_next(struct waiting *waiting, unsigned worker)
{
	struct waiter *waiter;

	if (waiting_count(waiting) == 0) {
		return NULL;
	}
	(void)pthread_mutex_lock(&waiting->lock);
	waiter = TAILQ_FIRST(&waiting->ready[worker]);
	if (waiter != NULL) {
		TAILQ_REMOVE(&waiting->ready[worker], waiter, link);
		waiter->ready = false;
	}
	(void)pthread_mutex_unlock(&waiting->lock);
	return waiter;
}

/* ---- room ---- */

void waiting_wake(struct waiting *waiting, const char *path, size_t len)
{
	struct climb climb;
	const struct waiting_node *node;

	fence_light(); /* pairs with fence_heavy between waiting_stand and the next try */
	if (waiting_count(waiting) == 0) {
		return;
	}
	(void)pthread_mutex_lock(&waiting->lock);
	climb = climb_begin(waiting, path, len);
	while ((node = climb_next(&climb)) != NULL) {
		tell_first(waiting, node);
	}
	(void)pthread_mutex_unlock(&waiting->lock);
}

void waiting_wake_all(struct waiting *waiting)
{
	fence_light();
	if (waiting_count(waiting) == 0) {
		return;
	}
	(void)pthread_mutex_lock(&waiting->lock);
	for (size_t i = 0; i < waiting->n_buckets; i++) {
		for (const struct waiting_node *node = waiting->buckets[i]; node != NULL;
		     node = node->next) {
			tell_first(waiting, node);
		}
	}
	(void)pthread_mutex_unlock(&waiting->lock);
}

/* ---- making and freeing ---- */

int waiting_init(struct waiting *waiting, unsigned n_workers, uint64_t seed,
		 void (*wake)(void *ctx, unsigned worker), void *ctx)
{
	*waiting = (struct waiting){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.seed = seed,
		.n_workers = n_workers,
		.wake = wake,
		.ctx = ctx,
	};
	waiting->buckets = calloc(WAITING_BUCKETS, sizeof(*waiting->buckets));
	waiting->ready = calloc(n_workers, sizeof(*waiting->ready));
	if (waiting->buckets == NULL || waiting->ready == NULL) {
		return -ENOMEM;
	}
	waiting->n_buckets = WAITING_BUCKETS;
	for (unsigned i = 0; i < n_workers; i++) {
		TAILQ_INIT(&waiting->ready[i]);
	}
	return 0;
}

void waiting_deinit(struct waiting *waiting)
{
	free(waiting->buckets);
	free(waiting->ready);
	*waiting = (struct waiting){ 0 };
}

void waiting_set_limits(struct waiting *waiting, uint32_t max, size_t max_bytes)
{
	(void)pthread_mutex_lock(&waiting->lock);
	waiting->max = max;
	waiting->max_bytes = max_bytes;
	(void)pthread_mutex_unlock(&waiting->lock);
}
