#include "lib/engine/plane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hook.h"
#include "lib/engine/usage.h"

/* Limits come in slabs: aligned memory one by one would cost a fifth more. Not where AddressSanitizer is to see each by itself. */
#if defined(__SANITIZE_ADDRESS__)
#define LIMIT_EACH 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LIMIT_EACH 1
#endif
#endif

#define SLAB_LIMITS 255u

/* The time is written no more often than this. */
#define TIME_STEP_NS INT64_C(1000000)

struct slab {
	_Alignas(64) struct slab *next;
	struct limit limits[SLAB_LIMITS];
};

static uint32_t n_chunks(uint32_t max_ids)
{
	return (max_ids + TREE_CHUNK - 1) >> TREE_CHUNK_BITS;
}

int planes_init(struct planes *planes, uint32_t max_ids)
{
	*planes = (struct planes){ .max_ids = max_ids };
	planes->lists = calloc(n_chunks(max_ids), sizeof(*planes->lists));
	planes->leased = calloc(n_chunks(max_ids), sizeof(*planes->leased));
	return planes->lists && planes->leased ? 0 : -ENOMEM;
}

#ifdef LIMIT_EACH
static void lists_free(struct planes *planes)
{
	for (uint32_t id = 0; planes->lists && id < planes->max_ids; id++) {
		struct limit *limit = plane_first(planes, id);

		while (limit) {
			struct limit *next = plane_next(limit);

			free(limit);
			limit = next;
		}
	}
}
#endif

void planes_deinit(struct planes *planes)
{
#ifdef LIMIT_EACH
	lists_free(planes);
#endif
	for (uint32_t i = 0; i < n_chunks(planes->max_ids); i++) {
		if (planes->lists) {
			free((void *)atomic_load_explicit(&planes->lists[i], memory_order_relaxed));
		}
		if (planes->leased) {
			free((void *)atomic_load_explicit(&planes->leased[i], memory_order_relaxed));
		}
	}
	free((void *)planes->lists);
	free((void *)planes->leased);
	while (planes->slabs) {
		struct slab *slab = planes->slabs;

		planes->slabs = slab->next;
		free(slab);
	}
	*planes = (struct planes){ 0 };
}

uint32_t planes_count(const struct planes *planes)
{
	return atomic_load_explicit(&planes->n, memory_order_relaxed);
}

/* ---- time ---- */

/*
 * Two words. Who reads them while they are written may take the one from before: off by a millisecond, or the wall clock from before it
 * was set, with which growth counts for this once.
 */
struct quota_time planes_time(const struct planes *planes)
{
	int64_t mono = atomic_load_explicit(&planes->mono_ns, memory_order_relaxed);
	int64_t ahead = atomic_load_explicit(&planes->wall_ahead_ns, memory_order_relaxed);
	int64_t wall;

	if (__builtin_add_overflow(mono, ahead, &wall)) {
		wall = ahead;
	}
	return (struct quota_time){ .wall_ns = wall, .mono_ns = mono };
}

void planes_set_time(struct planes *planes, const struct quota_time *time)
{
	int64_t mono = atomic_load_explicit(&planes->mono_ns, memory_order_relaxed);
	int64_t ahead;

	if (time->mono_ns - TIME_STEP_NS < mono ||
	    __builtin_sub_overflow(time->wall_ns, time->mono_ns, &ahead)) {
		return;
	}
	if (atomic_load_explicit(&planes->wall_ahead_ns, memory_order_relaxed) != ahead) {
		atomic_store_explicit(&planes->wall_ahead_ns, ahead, memory_order_relaxed);
	}
	atomic_store_explicit(&planes->mono_ns, time->mono_ns, memory_order_relaxed);
}

/* ---- by id ---- */

struct limit *plane_find(const struct planes *planes, uint32_t id, unsigned plane)
{
	struct limit *limit = plane_first(planes, id);

	while (limit && limit->plane != plane) {
		limit = plane_next(limit);
	}
	return limit;
}

/*
 * A charge will write a limit's first line and read the third. The second is looked at now and then (in planes of rates always): to ask for that too
 * costs more than it saves where limits are many.
 */
static inline void ask_for(const struct limit *limit)
{
	__builtin_prefetch(limit, 1);
	__builtin_prefetch((const uint8_t *)limit + 128);
}

size_t plane_nearest(const struct planes *planes, const struct tree *tree, uint32_t id,
		     struct limit *ret_limits[ENGINE_MAX_PLANES])
{
	uint32_t seen = 0;
	size_t n = 0;

	while (id != TREE_NONE) {
		uint32_t up = atomic_load_explicit(&tree_tally(tree, id)->up, memory_order_relaxed);
		struct limit *limit = up & TREE_LIMITED ? plane_first(planes, id) : NULL;

		for (; limit; limit = plane_next(limit)) {
			ask_for(limit);
			if ((seen >> limit->plane & 1) == 0 && n < ENGINE_MAX_PLANES) {
				seen |= 1u << limit->plane;
				ret_limits[n++] = limit;
			}
		}
		id = up & ~TREE_LIMITED;
	}
	return n;
}

/* What quota_charge takes at once. */
static int64_t portion(int64_t n)
{
	return n > QUOTA_MAX_LIMIT ? QUOTA_MAX_LIMIT : n < -QUOTA_MAX_LIMIT ? -QUOTA_MAX_LIMIT : n;
}

void plane_charge(struct limit *limit, int64_t n, const struct quota_time *time)
{
	for (int64_t part; n != 0; n -= part) {
		part = portion(n);
		quota_charge(&limit->node, part, time);
	}
}

void plane_force(const struct planes *planes, const struct tree *tree, uint32_t id, int64_t growth)
{
	struct quota_time time = planes_time(planes);
	struct limit *limits[ENGINE_MAX_PLANES];
	size_t n = plane_nearest(planes, tree, id, limits);

	for (size_t i = 0; i < n; i++) {
		plane_charge(limits[i], growth, &time);
	}
}

void plane_force_held(const struct planes *planes, const struct tree *tree, uint32_t id, int64_t n)
{
	struct quota_time time = planes_time(planes);
	struct limit *limits[ENGINE_MAX_PLANES];
	size_t count = plane_nearest(planes, tree, id, limits);

	for (size_t i = 0; i < count; i++) {
		if (limits[i]->node.kind == WINDOW_NONE) {
			plane_charge(limits[i], n, &time);
		}
	}
}

/* ---- leases ---- */

static struct leased *leased_of(const struct planes *planes, uint32_t id)
{
	/* Acquire: pairs with the exchange in lease_chunk. */
	struct leased *chunk =
		atomic_load_explicit(&planes->leased[id >> TREE_CHUNK_BITS], memory_order_acquire);

	return chunk ? &chunk[id & (TREE_CHUNK - 1)] : NULL;
}

static int lease_chunk(struct planes *planes, uint32_t id)
{
	struct leased *chunk, *none = NULL;

	if (leased_of(planes, id)) {
		return 0;
	}
	chunk = calloc(TREE_CHUNK, sizeof(*chunk));
	if (!chunk) {
		return -ENOMEM;
	}
	/* Release: pairs with leased_of. */
	if (!atomic_compare_exchange_strong_explicit(&planes->leased[id >> TREE_CHUNK_BITS], &none,
						     chunk, memory_order_acq_rel,
						     memory_order_relaxed)) {
		free(chunk);
	}
	return 0;
}

int plane_lease_reserve(struct planes *planes, const struct tree *tree, uint32_t id)
{
	int r = 0;

	for (; r == 0 && id != TREE_NONE; id = tree_parent(tree, id)) {
		r = lease_chunk(planes, id);
	}
	return r;
}

/* Relaxed, all of them: nothing but sums; who needs them exact keeps leases out by the gate. */
static void lease_all(const struct planes *planes, const struct tree *tree, uint32_t id, int64_t n)
{
	for (; id != TREE_NONE; id = tree_parent(tree, id)) {
		atomic_fetch_add_explicit(&leased_of(planes, id)->all, n, memory_order_relaxed);
		RATION_HOOK();
	}
}

void plane_lease(const struct planes *planes, const struct tree *tree, uint32_t id, int64_t n)
{
	lease_all(planes, tree, id, n);
	atomic_fetch_add_explicit(&leased_of(planes, id)->own, n, memory_order_relaxed);
}

void plane_lease_forfeit(const struct planes *planes, const struct tree *tree, uint32_t id,
			 int64_t n)
{
	lease_all(planes, tree, id, n);
	atomic_fetch_add_explicit(&leased_of(planes, id)->forfeited, n, memory_order_relaxed);
}

/* Up to n, as many as there are. */
static int64_t take(_Atomic(int64_t) *units, int64_t n)
{
	int64_t is = atomic_load_explicit(units, memory_order_relaxed);
	int64_t part;

	do {
		part = is < n ? is : n;
		if (part <= 0) {
			return 0;
		}
		RATION_HOOK();
	} while (!atomic_compare_exchange_weak_explicit(units, &is, is - part, memory_order_relaxed,
							memory_order_relaxed));
	return part;
}

int64_t plane_lease_take(const struct planes *planes, const struct tree *tree, uint32_t id,
			 int64_t n)
{
	struct leased *leased = leased_of(planes, id);
	int64_t part = leased ? take(&leased->own, n) : 0;

	if (part > 0) {
		lease_all(planes, tree, id, -part);
	}
	return part;
}

int64_t plane_lease_claim(const struct planes *planes, uint32_t id, int64_t n)
{
	struct leased *leased = leased_of(planes, id);
	int64_t part = leased ? take(&leased->forfeited, n) : 0;

	if (part > 0) {
		atomic_fetch_add_explicit(&leased->own, part, memory_order_relaxed);
	}
	return part;
}

int64_t plane_leased(const struct planes *planes, uint32_t id)
{
	const struct leased *leased = leased_of(planes, id);

	return leased ? atomic_load_explicit(&leased->own, memory_order_relaxed) : 0;
}

int64_t plane_ahead(const struct planes *planes, uint32_t id)
{
	const struct leased *leased = leased_of(planes, id);

	return leased ? atomic_load_explicit(&leased->all, memory_order_relaxed) : 0;
}

void plane_lease_move(const struct planes *planes, const struct tree *tree, uint32_t id)
{
	struct leased *leased = leased_of(planes, id);
	uint32_t parent = tree_parent(tree, id);
	int64_t own, forfeited;

	if (!leased) {
		return;
	}
	own = atomic_exchange_explicit(&leased->own, 0, memory_order_relaxed);
	forfeited = atomic_exchange_explicit(&leased->forfeited, 0, memory_order_relaxed);
	atomic_store_explicit(&leased->all, 0, memory_order_relaxed);
	if ((own != 0 || forfeited != 0) && parent != TREE_NONE) {
		struct leased *to = leased_of(planes, parent);

		atomic_fetch_add_explicit(&to->own, own, memory_order_relaxed);
		atomic_fetch_add_explicit(&to->forfeited, forfeited, memory_order_relaxed);
	}
}

/* ---- limits come and go ---- */

static struct limit *limit_allocate(struct planes *planes)
{
	struct limit *limit = planes->free;

#ifdef LIMIT_EACH
	return aligned_alloc(64, sizeof(*limit));
#endif
	if (!limit) {
		struct slab *slab = aligned_alloc(64, sizeof(*slab));

		if (!slab) {
			return NULL;
		}
		slab->next = planes->slabs;
		planes->slabs = slab;
		for (size_t i = 0; i < SLAB_LIMITS; i++) {
			atomic_init(&slab->limits[i].next, planes->free);
			planes->free = &slab->limits[i];
		}
		limit = planes->free;
	}
	planes->free = plane_next(limit);
	return limit;
}

struct limit *limit_new(struct planes *planes, struct limited *limited, const struct name *name,
			const struct rule *rule, bool gauge)
{
	struct limit *limit = limit_allocate(planes);

	if (!limit) {
		return NULL;
	}
	atomic_init(&limit->next, NULL);
	limit->path = name->path;
	limit->len = name->len;
	limit->id = name->id;
	limit->limited = limited;
	limit->plane = rule->plane;
	limit->digest = rule->digest;
	limit->exact = shape_exact(rule->pattern->shape);
	limit->gauge = gauge;
	limit->usage_state = USAGE_TOLD;
	limit->usage_young = 0;
	limit->kept = (struct kept){ 0 };
	limited->n_nodes[limit->plane]++;
	atomic_fetch_add_explicit(&planes->n, 1, memory_order_relaxed);
	return limit;
}

void limit_free(struct planes *planes, struct limit *limit)
{
	limit->limited->n_nodes[limit->plane]--;
	atomic_fetch_sub_explicit(&planes->n, 1, memory_order_relaxed);
#ifdef LIMIT_EACH
	free(limit);
	return;
#endif
	atomic_store_explicit(&limit->next, planes->free, memory_order_relaxed);
	planes->free = limit;
}

int plane_reserve(struct planes *planes, uint32_t id)
{
	_Atomic(_Atomic(struct limit *) *) *at = &planes->lists[id >> TREE_CHUNK_BITS];
	_Atomic(struct limit *) *chunk = atomic_load_explicit(at, memory_order_relaxed);

	if (chunk) {
		return 0;
	}
	chunk = calloc(TREE_CHUNK, sizeof(*chunk));
	if (!chunk) {
		return -ENOMEM;
	}
	/* Release: pairs with plane_first. */
	atomic_store_explicit(at, chunk, memory_order_release);
	return 0;
}

/* Where this limit is linked from, or would be: lists are in the order of planes. */
static _Atomic(struct limit *) *link_of(struct planes *planes, const struct limit *limit)
{
	_Atomic(struct limit *) *chunk = atomic_load_explicit(
		&planes->lists[limit->id >> TREE_CHUNK_BITS], memory_order_relaxed);
	_Atomic(struct limit *) *link = &chunk[limit->id & (TREE_CHUNK - 1)];
	struct limit *at;

	while ((at = atomic_load_explicit(link, memory_order_relaxed)) && at->plane < limit->plane) {
		link = &at->next;
	}
	return link;
}

void plane_insert(struct planes *planes, struct tree *tree, struct limit *limit)
{
	_Atomic(struct limit *) *link = link_of(planes, limit);

	atomic_store_explicit(&limit->next, atomic_load_explicit(link, memory_order_relaxed),
			      memory_order_relaxed);
	/* Release: pairs with plane_first and plane_next. */
	atomic_store_explicit(link, limit, memory_order_release);
	tree_limit(tree, limit->id, true);
}

/* Its own `next` stays: a reader on it gets on. */
void plane_remove(struct planes *planes, struct tree *tree, struct limit *limit)
{
	_Atomic(struct limit *) *link = link_of(planes, limit);

	atomic_store_explicit(link, plane_next(limit), memory_order_release);
	tree_limit(tree, limit->id, plane_first(planes, limit->id) != NULL);
}

/* ---- with their counters ---- */

static int conceive(struct planes *planes, struct rules *rules, struct limited *limited,
		    const struct name *name, bool gauge, struct limit **ret_list)
{
	const struct layer *const layers[] = { &rules->layers[ENGINE_FILE],
					       &rules->layers[ENGINE_RUN_TIME] };
	struct match match;

	rules_match(layers, name->path, name->len, &match);
	if (match.n > 0 && plane_reserve(planes, name->id) < 0) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < match.n; i++) {
		struct limit *limit = limit_new(planes, limited, name, match.rules[i], gauge);

		if (!limit) {
			return -ENOMEM;
		}
		/* The limits themselves are taken from the rule when it is born, under the same lock. */
		limit->node.owner = (void *)(uintptr_t)&match.rules[i]->limits;
		atomic_store_explicit(&limit->next, *ret_list, memory_order_relaxed);
		*ret_list = limit;
	}
	return 0;
}

int planes_conceive(struct planes *planes, struct rules *rules, struct name *const *names, size_t n,
		    bool gauge, struct plane_births *ret_births)
{
	struct limited *limited = rules_limited(rules, names[0]->path, names[0]->len);

	*ret_births = (struct plane_births){ 0 };
	for (size_t i = 0; limited && i < n; i++) {
		if (conceive(planes, rules, limited, names[i], gauge, &ret_births->lists[i]) < 0) {
			planes_abort(planes, ret_births);
			return -ENOMEM;
		}
	}
	return 0;
}

void planes_abort(struct planes *planes, struct plane_births *births)
{
	for (size_t i = 0; i < PATH_MAX_SEGMENTS; i++) {
		while (births->lists[i]) {
			struct limit *limit = births->lists[i];

			births->lists[i] = plane_next(limit);
			limit_free(planes, limit);
		}
	}
}

static struct quota_node *nearest_above(const struct planes *planes, const struct tree *tree,
					uint32_t id, unsigned plane)
{
	while ((id = tree_parent(tree, id)) != TREE_NONE) {
		struct limit *limit = plane_find(planes, id, plane);

		if (limit) {
			return &limit->node;
		}
	}
	return NULL;
}

/*
 * That others charge the parents meanwhile does no harm: a node without usage claims nothing of them, and nobody knows it yet.
 */
void planes_bear(struct planes *planes, struct tree *tree, struct plane_births *births)
{
	struct quota_time time = planes_time(planes);

	for (size_t i = 0; i < PATH_MAX_SEGMENTS; i++) {
		while (births->lists[i]) {
			struct limit *limit = births->lists[i];
			const struct quota_limits *limits = limit->node.owner;

			births->lists[i] = plane_next(limit);
			quota_init(&limit->node, &limit->limited->windows[limit->plane],
				   nearest_above(planes, tree, limit->id, limit->plane), limits, 0,
				   &time);
			kept_init(&limit->node, &limit->kept, time.wall_ns);
			plane_insert(planes, tree, limit);
		}
	}
}

/*
 * What it used stays in its ancestors, as it does in their totals. Others charge these meanwhile: they meet its claims only as a sum that it
 * takes its own from, in one step.
 */
void planes_bury(struct planes *planes, struct tree *tree, struct rules *rules,
		 const struct name *name)
{
	struct limit *limit;
	bool any = false;

	while ((limit = plane_first(planes, name->id))) {
		plane_remove(planes, tree, limit);
		quota_detach(&limit->node);
		limit_free(planes, limit);
		any = true;
	}
	if (any) {
		rules_tidy(rules, name->path, name->len);
	}
	plane_lease_move(planes, tree, name->id);
}
