#pragma once
/*
 * standing: how the nodes of a tree stand with their limits.
 *
 * The daemon explains a path with its whole chain, so it is asked once for each node with a rule that has none below it.
 */
#include "clients/cli/cli.h"
#include "clients/cli/tree.h"

/* The limits of one node; the strings of its levels are NULL, as they are the daemon's. */
struct standing {
	size_t n;
	struct ration_level levels[];
};

struct standings {
	struct standing **list; /* by the node's place in tree->nodes; NULL: no limits */
	size_t n;
	size_t n_limited; /* that are not NULL */
};

/* `tree` has been arranged. False: reported. */
bool standings_init(struct standings *standings, struct cli *cli, struct ration *client,
		    const struct tree *tree);
void standings_deinit(struct standings *standings);

static inline const struct standing *standings_of(const struct standings *standings,
						  const struct tree *tree,
						  const struct tree_node *node)
{
	return standings->list[node - tree->nodes];
}

/*
 * The fullest of its limits: the one with the largest part of max, burst or (where there is neither) high in use. One in shadow only if all
 * are. NULL: none.
 */
const struct ration_level *standing_fullest(const struct standing *standing, int64_t *ret_limit);

/* A bar of ten cells: full only if nothing is left, empty only if nothing is used. With UTF-8 in eighths of cells. Returns bar. */
#define STANDING_CELLS 10
#define STANDING_BAR_BYTES (3 * STANDING_CELLS + 1)
const char *standing_bar(int64_t usage, int64_t limit, bool utf8, char bar[STANDING_BAR_BYTES]);
