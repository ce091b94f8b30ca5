#include "lib/names/registry.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include <urcu/urcu-memb.h>

#include "lib/base/cleanup.h"
#include "lib/base/hook.h"
#include "lib/names/siphash.h"
#include "lib/rcu/grace.h"

#define REGISTRY_MAX_NAMES (1u << 26)
#define REGISTRY_FIRST_BUCKETS 1024ul
/*
 * Names per bucket at which the table is doubled: 1 while it has few buckets, which take little whatever is done; at a hundred thousand
 * names that takes a tenth off a charge of a random one. With many, 4: at a million names it makes a look-up by path a fifth slower than
 * 2 (970 to 800 ns of an engine_get, all of it cache misses) and takes 4 bytes less a name, without which the daemon would be above 200
 * bytes a counter; 1 would save another sixth of the time, and take 8 more.
 */
#define REGISTRY_LOAD 4ul
#define REGISTRY_FEW_BUCKETS (1ul << 17)

/*
 * How a name is published. Its fields and its parent are fixed, then it is put in front of its parent's
 * children (release store of first_child; partner: the acquire loads in children_first and sibling_next), then
 * into the table. So whoever finds a name can go anywhere from it. Removal goes the other way round: what the
 * table finds was in the list a moment ago.
 *
 * Why a walker may stand on an unlinked name X and go on: all names it came by were linked at some time since
 * its read section began, hence none has been freed. X's next_sibling stays as it was when X was unlinked,
 * after the section began, so the name Y it points to was still linked then, and the same holds for Y in turn.
 * As list order is descending birth and new names only come in at the front, following it neither skips a name
 * that stays nor meets one twice.
 */
struct registry {
	/* Read by every look-up, never written after registry_new. */
	struct cds_lfht *table;
	struct siphash_key key;
	uint32_t max_names;

	/* Read by walks, written by creation and removal. */
	alignas(64) _Atomic(struct name *) first_metric;
	_Atomic(uint32_t) n_names; /* ids in use */
	_Atomic(int64_t) newest;   /* the last `born` of a name that is in its place */

	/* Creation's and removal's own. */
	alignas(64) pthread_mutex_t mutex;
	int64_t last_born;
	uint32_t next_id; /* ids from here on were never used */
	uint32_t n_free_ids;
	uint32_t *free_ids; /* a stack with room for all; the pages of it that aren't used take no memory */

	/* The table's size as last asked for, and the thread that sees to it. */
	unsigned long n_buckets, max_buckets;
	pthread_t grower;
	bool grower_started; /* and not yet joined */
	_Atomic(bool) grower_done;
};

DEFINE_CLEANUP(struct registry *, registry_free);

static unsigned long load_of(unsigned long n_buckets)
{
	return n_buckets < REGISTRY_FEW_BUCKETS ? 1 : REGISTRY_LOAD;
}

int registry_new(struct registry **ret_registry, uint32_t max_names, uint64_t seed)
{
	_cleanup_(registry_freep) struct registry *registry = NULL;

	if (max_names == 0 || max_names > REGISTRY_MAX_NAMES) {
		return -EINVAL;
	}
	registry = aligned_alloc(alignof(struct registry), sizeof(*registry));
	if (!registry) {
		return -ENOMEM;
	}
	*registry = (struct registry){
		/* The second half is made from the first: 64 unknown bits are enough against guessing from outside. */
		.key = { seed,
			 (seed ^ UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9) },
		.max_names = max_names,
		.newest = INT64_MIN,
		.last_born = INT64_MIN,
		.mutex = PTHREAD_MUTEX_INITIALIZER,
		.n_buckets = REGISTRY_FIRST_BUCKETS,
		.max_buckets = REGISTRY_FIRST_BUCKETS,
	};
	while (registry->max_buckets * load_of(registry->max_buckets) < max_names) {
		registry->max_buckets *= 2;
	}
	registry->free_ids = malloc(max_names * sizeof(*registry->free_ids));
	registry->table = cds_lfht_new_flavor(REGISTRY_FIRST_BUCKETS, REGISTRY_FIRST_BUCKETS,
					      registry->max_buckets,
					      /* flags= */ 0, &urcu_memb_flavor, NULL);
	if (!registry->free_ids || !registry->table) {
		return -ENOMEM;
	}

	*ret_registry = registry;
	registry = NULL;
	return 0;
}

uint32_t registry_count(const struct registry *registry)
{
	/* Relaxed: a figure to show; who must not pass the ceiling holds the mutex. */
	return atomic_load_explicit(&registry->n_names, memory_order_relaxed);
}

int64_t registry_newest(const struct registry *registry)
{
	/* Acquire: pairs with the release in registry_create, so that who begins a walk now meets that name. */
	return atomic_load_explicit(&registry->newest, memory_order_acquire);
}

void registry_lock(struct registry *registry)
{
	(void)pthread_mutex_lock(&registry->mutex);
}

void registry_unlock(struct registry *registry)
{
	(void)pthread_mutex_unlock(&registry->mutex);
}

/* ---- the table ---- */

struct key {
	const char *path;
	size_t len;
};

static unsigned long hash(const struct registry *registry, const char *path, size_t len)
{
	return (unsigned long)siphash(&registry->key, path, len);
}

static struct name *name_of(struct cds_lfht_node *node)
{
	static_assert(offsetof(struct name, node) == 0, "the node is the name's beginning");

	return (struct name *)node;
}

static int matches(struct cds_lfht_node *node, const void *key_pointer)
{
	const struct key *key = key_pointer;
	const struct name *name = name_of(node);

	grace_observe(name); /* partner: grace_publish in publish() */
	return name->len == key->len && memcmp(name->path, key->path, key->len) == 0;
}

struct name *registry_find(struct registry *registry, const char *path, size_t len)
{
	const struct key key = { path, len };
	struct cds_lfht_node *node;
	struct cds_lfht_iter iter;

	if (len == 0 || len > PATH_MAX_BYTES) {
		return NULL;
	}
	RATION_HOOK();
	cds_lfht_lookup(registry->table, hash(registry, path, len), matches, &key, &iter);
	RATION_HOOK();
	node = cds_lfht_iter_get_node(&iter);
	return node ? name_of(node) : NULL;
}

/*
 * The table is doubled by a thread of its own, as that takes tens of milliseconds when it is large, and whoever
 * creates a name is not to wait for it; until it is done chains are longer. cds_lfht's own CDS_LFHT_AUTO_RESIZE
 * lets the load rise to 8 before it acts (look-ups took twice as long at a million names), or else,
 * without its accounting, makes the table as large as it may get at the first few collisions.
 */
static void *grow(void *registry_pointer)
{
	struct registry *registry = registry_pointer;

	grace_register();
	cds_lfht_resize(registry->table, registry->n_buckets);
	grace_unregister();
	/* Release; partner: the acquire in table_grow, which may then change n_buckets. */
	atomic_store_explicit(&registry->grower_done, true, memory_order_release);
	return NULL;
}

static void table_settle(struct registry *registry)
{
	if (registry->grower_started) {
		(void)pthread_join(registry->grower, NULL);
		registry->grower_started = false;
	}
}

/* Called with each creation. If no thread can be had the table stays as it is; the next creation tries again. */
static void table_grow(struct registry *registry)
{
	sigset_t all, before;

	if (registry_count(registry) <= registry->n_buckets * load_of(registry->n_buckets) ||
	    registry->n_buckets >= registry->max_buckets ||
	    (registry->grower_started &&
	     !atomic_load_explicit(&registry->grower_done, memory_order_acquire))) {
		return;
	}
	table_settle(registry);
	atomic_store_explicit(&registry->grower_done, false, memory_order_relaxed);
	registry->n_buckets *= 2;
	/* Signals are the business of other threads; threads that the resize starts inherit the mask. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	registry->grower_started = pthread_create(&registry->grower, NULL, grow, registry) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!registry->grower_started) {
		registry->n_buckets /= 2;
	}
}

/* ---- lists of children ---- */

static _Atomic(struct name *) *children_head(struct registry *registry, struct name *parent)
{
	return parent ? &parent->first_child : &registry->first_metric;
}

static struct name *children_first(struct registry *registry, struct name *parent)
{
	RATION_HOOK();
	return atomic_load_explicit(children_head(registry, parent), memory_order_acquire);
}

static struct name *sibling_next(struct name *name)
{
	RATION_HOOK();
	return atomic_load_explicit(&name->next_sibling, memory_order_acquire);
}

static void children_push(struct registry *registry, struct name *name)
{
	_Atomic(struct name *) *head = children_head(registry, name->parent);
	struct name *next = atomic_load_explicit(head, memory_order_relaxed);

	name->previous_sibling = NULL;
	if (next) {
		next->previous_sibling = name;
	}
	atomic_store_explicit(&name->next_sibling, next, memory_order_relaxed);
	RATION_HOOK();
	atomic_store_explicit(head, name, memory_order_release);
}

/* name->next_sibling is left alone: a walker may stand on it. */
static void children_take(struct registry *registry, struct name *name)
{
	struct name *next = atomic_load_explicit(&name->next_sibling, memory_order_relaxed);
	struct name *previous = name->previous_sibling;

	if (next) {
		next->previous_sibling = previous;
	}
	RATION_HOOK();
	/* Release, though `next` was published long ago: the walker that gets it from here has perhaps never met that store. */
	atomic_store_explicit(previous ? &previous->next_sibling
				       : children_head(registry, name->parent),
			      next, memory_order_release);
}

/* ---- creation ---- */

static uint32_t id_take(struct registry *registry)
{
	return registry->n_free_ids > 0 ? registry->free_ids[--registry->n_free_ids]
					: registry->next_id++;
}

static void id_give(struct registry *registry, uint32_t id)
{
	registry->free_ids[registry->n_free_ids++] = id;
}

static void count_change(struct registry *registry, uint32_t change)
{
	/* A plain sum will do, the mutex is held; atomic for registry_count. */
	uint32_t n = atomic_load_explicit(&registry->n_names, memory_order_relaxed);

	atomic_store_explicit(&registry->n_names, n + change, memory_order_relaxed);
}

static struct name *name_new(struct name *parent, const char *path, size_t len)
{
	size_t size = offsetof(struct name, path) + len;
	struct name *name = malloc(size > sizeof(*name) ? size : sizeof(*name));

	if (!name) {
		return NULL;
	}
	*name = (struct name){
		.parent = parent,
		.len = (uint16_t)len,
		.depth = (uint8_t)(parent ? parent->depth + 1 : 1),
	};
	memcpy(name->path, path, len);
	return name;
}

/* The deepest name there is on the path, or NULL; the lengths of the paths below it that are missing, deepest first. */
static struct name *find_deepest(struct registry *registry, const char *path, size_t len,
				 size_t missing[PATH_MAX_SEGMENTS], size_t *ret_n_missing)
{
	struct name *name = NULL;
	size_t n = 0;

	grace_enter();
	for (; len > 0; len = path_parent(path, len)) {
		name = registry_find(registry, path, len);
		if (name || n == PATH_MAX_SEGMENTS) {
			break;
		}
		missing[n++] = len;
	}
	grace_leave();
	*ret_n_missing = n;
	return name;
}

static void chain_discard(struct registry *registry, struct name **chain, size_t n, bool with_ids)
{
	while (n-- > 0) {
		if (with_ids) {
			id_give(registry,
				chain[n]->id); /* last taken first, so that the stack is as before */
		}
		free(chain[n]);
	}
}

static int chain_make(struct registry *registry, struct name *parent, const char *path,
		      const size_t *missing, size_t n, struct name **chain)
{
	for (size_t i = 0; i < n; i++) {
		chain[i] = name_new(parent, path, missing[n - 1 - i]);
		if (!chain[i]) {
			chain_discard(registry, chain, i, false);
			return -ENOMEM;
		}
		parent = chain[i];
	}
	for (size_t i = 0; i < n; i++) {
		chain[i]->id = id_take(registry);
	}
	return 0;
}

static void publish(struct registry *registry, struct name *name)
{
	children_push(registry, name);
	RATION_HOOK();
	grace_publish(name); /* partner: grace_observe in matches() */
	cds_lfht_add(registry->table, hash(registry, name->path, name->len), &name->node);
}

int registry_create(struct registry *registry, const char *path, size_t len, int64_t now,
		    registry_prepare prepare, void *ctx, struct name **ret_name)
{
	struct name *chain[PATH_MAX_SEGMENTS];
	size_t missing[PATH_MAX_SEGMENTS];
	size_t n;
	struct name *name = find_deepest(registry, path, len, missing, &n);
	int r;

	if (n == 0) {
		*ret_name = name;
		return 0;
	}
	if (n > registry->max_names - registry_count(registry)) {
		return REGISTRY_E_FULL;
	}
	r = chain_make(registry, name, path, missing, n, chain);
	if (r) {
		return r;
	}
	for (size_t i = 0; i < n; i++) {
		registry->last_born = now > registry->last_born ? now : registry->last_born + 1;
		chain[i]->born = registry->last_born;
	}
	r = prepare ? prepare(ctx, chain, n) : 0;
	if (r) {
		chain_discard(registry, chain, n, true);
		return r;
	}

	count_change(registry, (uint32_t)n);
	grace_enter();
	for (size_t i = 0; i < n; i++) {
		publish(registry, chain[i]);
		RATION_HOOK();
	}
	grace_leave();
	atomic_store_explicit(&registry->newest, registry->last_born, memory_order_release);
	table_grow(registry);
	*ret_name = chain[n - 1];
	return 0;
}

/* ---- removal ---- */

void registry_unlink(struct registry *registry, struct name *leaf)
{
	assert(!atomic_load_explicit(&leaf->first_child, memory_order_relaxed));

	grace_enter();
	(void)cds_lfht_del(registry->table, &leaf->node);
	grace_leave();
	RATION_HOOK();
	children_take(registry, leaf);
}

void registry_release(struct registry *registry, struct name *name)
{
	id_give(registry, name->id);
	count_change(registry, (uint32_t)-1);
	free(name);
}

static void release_all(struct registry *registry)
{
	struct name *name, *child;

	while ((name = children_first(registry, NULL))) {
		while ((child = children_first(registry, name))) {
			name = child;
		}
		registry_unlink(registry, name);
		registry_release(registry, name);
	}
}

struct registry *registry_free(struct registry *registry)
{
	if (!registry) {
		return NULL;
	}
	if (registry->table) {
		table_settle(registry);
		release_all(registry);
		(void)cds_lfht_destroy(registry->table, NULL);
	}
	(void)pthread_mutex_destroy(&registry->mutex);
	free(registry->free_ids);
	free(registry);
	return NULL;
}

/* ---- walks ---- */

void registry_walk_init(struct registry_walk *walk, struct registry *registry, struct name *root,
			uint32_t depth)
{
	uint32_t above = root ? root->depth : 0;

	*walk = (struct registry_walk){
		.registry = registry,
		.root = root,
		.max_depth = depth < PATH_MAX_SEGMENTS ? above + depth : PATH_MAX_SEGMENTS,
	};
}

struct name *registry_first(const struct registry_walk *walk)
{
	if (walk->root) {
		return walk->root;
	}
	return walk->max_depth > 0 ? children_first(walk->registry, NULL) : NULL;
}

/* What comes after all that is below `name`. */
static struct name *next_beside(const struct registry_walk *walk, struct name *name)
{
	for (; name && name != walk->root; name = name->parent) {
		struct name *next = sibling_next(name);

		if (next) {
			return next;
		}
	}
	return NULL;
}

struct name *registry_next(const struct registry_walk *walk, struct name *name)
{
	struct name *child =
		name->depth < walk->max_depth ? children_first(walk->registry, name) : NULL;

	return child ? child : next_beside(walk, name);
}

void registry_save(struct name *name, struct registry_cursor *ret_cursor)
{
	ret_cursor->len = name->len;
	ret_cursor->depth = name->depth;
	memcpy(ret_cursor->path, name->path, name->len);
	for (; name; name = name->parent) {
		ret_cursor->born[name->depth - 1] = name->born;
	}
}

bool registry_cursor_valid(const struct registry_cursor *cursor)
{
	return cursor->len > 0 && cursor->len <= PATH_MAX_BYTES &&
	       cursor->depth <= PATH_MAX_SEGMENTS &&
	       path_depth(cursor->path, cursor->len) == cursor->depth;
}

/* The deepest name of the saved chain that is still there; its depth, or 0, into *ret_depth. */
static struct name *find_survivor(struct registry *registry, const struct registry_cursor *cursor,
				  uint32_t *ret_depth)
{
	size_t len = cursor->len;

	for (uint32_t depth = cursor->depth; depth > 0; depth--) {
		struct name *name = registry_find(registry, cursor->path, len);

		/* Births are never used twice: the same birth is the same name, and so are its ancestors. */
		if (name && name->born == cursor->born[depth - 1]) {
			*ret_depth = depth;
			return name;
		}
		len = path_parent(cursor->path, len);
	}
	*ret_depth = 0;
	return NULL;
}

/* Is `name` (NULL: where all metrics are) the walk's root or below it? */
static bool is_within(const struct registry_walk *walk, struct name *name)
{
	while (name && name != walk->root) {
		name = name->parent;
	}
	return name == walk->root;
}

struct name *registry_resume(const struct registry_walk *walk, const struct registry_cursor *cursor)
{
	struct name *survivor, *name;
	uint32_t depth;

	if (!registry_cursor_valid(cursor)) {
		return NULL;
	}
	survivor = find_survivor(walk->registry, cursor, &depth);
	if (!is_within(walk, survivor)) {
		return NULL; /* the root has gone, and with it all that was there when the walk began */
	}
	if (depth == cursor->depth) {
		return registry_next(walk, survivor);
	}
	/* What is left of the level where the chain breaks: the younger ones were before the lost name, or are new. */
	name = depth < walk->max_depth ? children_first(walk->registry, survivor) : NULL;
	while (name && name->born >= cursor->born[depth]) {
		name = sibling_next(name);
	}
	return name ? name : next_beside(walk, survivor);
}
