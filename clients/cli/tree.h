#pragma once
/*
 * tree: nodes as a walk brings them, put in order and given their lines.
 *
 * A node whose parent is not among them (it was removed while the walk went on) hangs under its nearest ancestor that is.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lines are kept as bits by level; deeper than 16 segments there is no path. */
#define TREE_MAX_LEVELS 32

struct tree_node {
	char *path;
	struct tree_node *parent; /* NULL: a top */
	uint32_t depth;		  /* segments of the path */
	uint32_t level;		  /* 0: a top */
	uint32_t open; /* bit L: at level L a sibling of the ancestor there, or of this node, follows below */
	bool leaf;
	bool gauge;
	int64_t own;
	int64_t total;
};

struct tree {
	struct tree_node *nodes;
	struct tree_node **order; /* after tree_arrange: as they are to be printed */
	size_t n;
	size_t capacity;
};

void tree_init(struct tree *tree);
void tree_deinit(struct tree *tree);

/* Copies the path; parent, level and open are set by tree_arrange. False: no memory. */
bool tree_add(struct tree *tree, const char *path, const struct tree_node *node);

/* By name: siblings by bytes. by_total: siblings by falling total, then by name. False: no memory. */
bool tree_arrange(struct tree *tree, bool by_total);

/* The order of names: by bytes, with '/' before all others, so that a parent stands right before all that is below it. */
int tree_compare_paths(const char *a, const char *b);

/* The part of the path that names the node below its parent in this tree: the whole path at a top. */
const char *tree_name(const struct tree_node *node);
