#include "clients/cli/tree.h"

#include <stdlib.h>
#include <string.h>

void tree_init(struct tree *tree)
{
	*tree = (struct tree){ 0 };
}

void tree_deinit(struct tree *tree)
{
	for (size_t i = 0; i < tree->n; i++) {
		free(tree->nodes[i].path);
	}
	free(tree->nodes);
	free(tree->order);
	tree_init(tree);
}

bool tree_add(struct tree *tree, const char *path, const struct tree_node *node)
{
	char *copy = NULL;

	if (tree->n == tree->capacity) {
		size_t capacity = tree->capacity > 0 ? 2 * tree->capacity : 64;
		struct tree_node *nodes = reallocarray(tree->nodes, capacity, sizeof(*nodes));

		if (nodes == NULL) {
			return false;
		}
		tree->nodes = nodes;
		tree->capacity = capacity;
	}
	copy = strdup(path);
	if (copy == NULL) {
		return false;
	}
	tree->nodes[tree->n] = *node;
	tree->nodes[tree->n].path = copy;
	tree->n++;
	return true;
}

int tree_compare_paths(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	unsigned x = *a == '/' ? 1 : (unsigned char)*a;
	unsigned y = *b == '/' ? 1 : (unsigned char)*b;

	return (x > y) - (x < y);
}

static int compare_names(const void *a, const void *b)
{
	const struct tree_node *x = a;
	const struct tree_node *y = b;

	return tree_compare_paths(x->path, y->path);
}

static bool is_below(const struct tree_node *node, const struct tree_node *ancestor)
{
	size_t len = strlen(ancestor->path);

	return strncmp(node->path, ancestor->path, len) == 0 && node->path[len] == '/';
}

/* The nodes are sorted by name: so the parent is the last one before that this one is below of. */
static void link_parents(struct tree *tree)
{
	for (size_t i = 0; i < tree->n; i++) {
		struct tree_node *node = &tree->nodes[i];
		struct tree_node *parent = i > 0 ? &tree->nodes[i - 1] : NULL;

		while (parent != NULL && !is_below(node, parent)) {
			parent = parent->parent;
		}
		node->parent = parent;
		node->level = parent != NULL ? parent->level + 1 : 0;
	}
}

/*
 * Two nodes stand as their ancestors do where their ways up meet: an ancestor before what is below it, else the larger total first.
 */
static int compare_totals(const void *a, const void *b)
{
	const struct tree_node *x = *(struct tree_node *const *)a;
	const struct tree_node *y = *(struct tree_node *const *)b;
	int deeper = (x->level > y->level) - (x->level < y->level);

	while (x->level > y->level) {
		x = x->parent;
	}
	while (y->level > x->level) {
		y = y->parent;
	}
	if (x == y) {
		return deeper;
	}
	while (x->parent != y->parent) {
		x = x->parent;
		y = y->parent;
	}
	if (x->total != y->total) {
		return x->total > y->total ? -1 : 1;
	}
	return tree_compare_paths(x->path, y->path);
}

/* From the end: what follows a node at its level, or above it, has been seen. */
static void draw(struct tree *tree)
{
	uint32_t open = 0;

	for (size_t i = tree->n; i-- > 0;) {
		struct tree_node *node = tree->order[i];
		uint32_t bit = UINT32_C(1) << (node->level % TREE_MAX_LEVELS);

		open &= (bit << 1) - 1;
		node->open = open;
		open |= bit;
	}
}

bool tree_arrange(struct tree *tree, bool by_total)
{
	if (tree->n == 0) {
		return true;
	}
	tree->order = calloc(tree->n, sizeof(*tree->order));
	if (tree->order == NULL) {
		return false;
	}
	qsort(tree->nodes, tree->n, sizeof(*tree->nodes), compare_names);
	link_parents(tree);
	for (size_t i = 0; i < tree->n; i++) {
		tree->order[i] = &tree->nodes[i];
	}
	if (by_total) {
		qsort(tree->order, tree->n, sizeof(struct tree_node *), compare_totals);
	}
	draw(tree);
	return true;
}

const char *tree_name(const struct tree_node *node)
{
	return node->parent != NULL ? node->path + strlen(node->parent->path) + 1 : node->path;
}
