#include "lib/engine/tree.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t n_chunks(uint32_t max_ids)
{
	return (max_ids + TREE_CHUNK - 1) >> TREE_CHUNK_BITS;
}

int tree_init(struct tree *tree, uint32_t max_ids)
{
	uint32_t n = n_chunks(max_ids);

	*tree = (struct tree){ .max_ids = max_ids };
	tree->tallies = calloc(n, sizeof(*tree->tallies));
	tree->lives = calloc(n, sizeof(*tree->lives));
	tree->bases = calloc(n, sizeof(*tree->bases));
	return tree->tallies && tree->lives && tree->bases ? 0 : -ENOMEM;
}

void tree_deinit(struct tree *tree)
{
	for (uint32_t i = 0; i < n_chunks(tree->max_ids); i++) {
		if (tree->tallies) {
			free(atomic_load_explicit(&tree->tallies[i], memory_order_relaxed));
		}
		if (tree->lives) {
			free(atomic_load_explicit(&tree->lives[i], memory_order_relaxed));
		}
		if (tree->bases) {
			free(atomic_load_explicit(&tree->bases[i], memory_order_relaxed));
		}
	}
	free((void *)tree->tallies);
	free((void *)tree->lives);
	free((void *)tree->bases);
	*tree = (struct tree){ 0 };
}

static struct life *lives_new(void)
{
	struct life *lives = calloc(TREE_CHUNK, sizeof(*lives));

	/* The first generation is 1, so that no word is ever 0, and a reference that is all zero fits nothing. */
	for (uint32_t i = 0; lives && i < TREE_CHUNK; i++) {
		atomic_init(&lives[i].word, LIFE_GENERATION);
	}
	return lives;
}

int tree_reserve(struct tree *tree, uint32_t id)
{
	uint32_t i = id >> TREE_CHUNK_BITS;

	/* Release, both: pairs with the acquire in tree_tally and tree_life. */
	if (!atomic_load_explicit(&tree->tallies[i], memory_order_relaxed)) {
		struct tally *tallies = calloc(TREE_CHUNK, sizeof(*tallies));

		if (!tallies) {
			return -ENOMEM;
		}
		atomic_store_explicit(&tree->tallies[i], tallies, memory_order_release);
	}
	if (!atomic_load_explicit(&tree->lives[i], memory_order_relaxed)) {
		struct life *lives = lives_new();

		if (!lives) {
			return -ENOMEM;
		}
		atomic_store_explicit(&tree->lives[i], lives, memory_order_release);
	}
	if (atomic_load_explicit(&tree_tally(tree, id)->folded, memory_order_relaxed) != 0 &&
	    tree_base_reserve(tree, id) < 0) {
		return -ENOMEM;
	}
	if (id >= atomic_load_explicit(&tree->n_ids, memory_order_relaxed)) {
		atomic_store_explicit(&tree->n_ids, id + 1, memory_order_release);
	}
	return 0;
}

int tree_base_reserve(struct tree *tree, uint32_t id)
{
	struct base *chunk, *none = NULL;

	if (tree_base(tree, id)) {
		return 0;
	}
	chunk = calloc(TREE_CHUNK, sizeof(*chunk));
	if (!chunk) {
		return -ENOMEM;
	}
	/* Release: pairs with tree_base. */
	if (!atomic_compare_exchange_strong_explicit(&tree->bases[id >> TREE_CHUNK_BITS], &none,
						     chunk, memory_order_acq_rel,
						     memory_order_relaxed)) {
		free(chunk);
	}
	return 0;
}

int tree_base_reserve_up(struct tree *tree, uint32_t id)
{
	int r = 0;

	for (; r == 0 && id != TREE_NONE; id = tree_parent(tree, id)) {
		r = tree_base_reserve(tree, id);
	}
	return r;
}

static _Atomic(uint32_t) *life_word(struct tree *tree, uint32_t id)
{
	struct life *chunk =
		atomic_load_explicit(&tree->lives[id >> TREE_CHUNK_BITS], memory_order_relaxed);

	return &chunk[id & (TREE_CHUNK - 1)].word;
}

void tree_start(struct tree *tree, uint32_t id, uint32_t parent, uint32_t flags)
{
	struct tally *tally = tree_tally(tree, id);
	struct base *base = tree_base(tree, id);
	uint32_t root = id;

	if (parent != TREE_NONE) {
		flags = tree_life(tree, parent) & (LIFE_STRICT | LIFE_GAUGE);
		root = atomic_load_explicit(&tree_tally(tree, parent)->root, memory_order_relaxed);
	}
	/* Relaxed: publishing the name releases all of it. */
	if (base) {
		atomic_store_explicit(
			&base->word, 0 - atomic_load_explicit(&tally->folded, memory_order_relaxed),
			memory_order_relaxed);
	}
	atomic_store_explicit(&tally->total, 0, memory_order_relaxed);
	atomic_store_explicit(&tally->up, parent, memory_order_relaxed);
	atomic_store_explicit(&tally->root, root, memory_order_relaxed);
	/* Release: the flusher knows ids from marks rather than names; if it finds LIVE it finds the tally above. */
	atomic_fetch_or_explicit(life_word(tree, id), LIFE_LIVE | flags, memory_order_release);
}

void tree_kill(struct tree *tree, uint32_t id)
{
	_Atomic(uint32_t) *word = life_word(tree, id);
	uint32_t generation =
		atomic_load_explicit(word, memory_order_relaxed) / LIFE_GENERATION + 1;
	bool more = generation <= UINT32_MAX / LIFE_GENERATION;

	/* Release: pairs with the acquire in tree_life. At the end of the generations nobody, for ever. */
	atomic_store_explicit(word, more ? generation * LIFE_GENERATION : LIFE_NONE,
			      memory_order_release);
}

void tree_mark_strict(struct tree *tree, uint32_t id)
{
	/* Release: pairs with the acquire in tree_life. */
	atomic_fetch_or_explicit(life_word(tree, id), LIFE_STRICT, memory_order_release);
}

void tree_close(struct tree *tree, uint32_t id, bool closed)
{
	/* Relaxed: a grace period follows, or the end of the lock that others wait for. */
	if (closed) {
		atomic_fetch_or_explicit(life_word(tree, id), LIFE_CLOSED, memory_order_relaxed);
	} else {
		atomic_fetch_and_explicit(life_word(tree, id), ~LIFE_CLOSED, memory_order_relaxed);
	}
}

void tree_limit(struct tree *tree, uint32_t id, bool limited)
{
	_Atomic(uint32_t) *up = &tree_tally(tree, id)->up;
	uint32_t parent = atomic_load_explicit(up, memory_order_relaxed) & ~TREE_LIMITED;

	/* Relaxed: who must see it passes the gate, or finds the name (gate.h, plane.h). */
	atomic_store_explicit(up, parent | (limited ? TREE_LIMITED : 0), memory_order_relaxed);
}
