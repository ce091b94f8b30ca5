#include "clients/cli/command.h"

#include "clients/cli/limits.h"
#include "clients/cli/standing.h"
#include "clients/cli/table.h"
#include "clients/cli/text.h"
#include "clients/cli/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define INDENT_BYTES (TREE_MAX_LEVELS * sizeof("│   "))

struct walk {
	struct tree tree;
	bool no_memory;
};

static bool visit(void *ctx, const struct ration_entry *entry)
{
	struct walk *walk = ctx;
	struct tree_node node = {
		.depth = entry->depth,
		.leaf = entry->value.leaf,
		.gauge = entry->value.kind == RATION_GAUGE,
		.own = entry->value.own,
		.total = entry->value.total,
	};

	walk->no_memory = !tree_add(&walk->tree, entry->path, &node);
	return !walk->no_memory;
}

/* What stands before a node's name: a piece for each level, lines or blanks. A top has nothing. */
static const char *indent(const struct tree_node *node, bool lines, char *buffer)
{
	char *to = buffer;

	for (uint32_t level = 1; level <= node->level && level < TREE_MAX_LEVELS; level++) {
		bool open = (node->open & (UINT32_C(1) << level)) != 0;
		const char *piece = "  ";

		if (lines && level == node->level) {
			piece = open ? "├── " : "└── ";
		} else if (lines) {
			piece = open ? "│   " : "    ";
		}
		to = mempcpy(to, piece, strlen(piece));
	}
	*to = '\0';
	return buffer;
}

/* Bar, usage, limit and what that is: of the fullest of a node's limits. */
static void cells_of_limits(struct table *table, const struct standing *standing, bool utf8)
{
	char bar[STANDING_BAR_BYTES];
	char window[LIMITS_WINDOW_BYTES];
	int64_t limit = 0;
	const struct ration_level *level = standing_fullest(standing, &limit);
	const char *what = NULL;

	if (level == NULL) {
		for (int i = 0; i < 4; i++) {
			table_cell(table, "%s", "");
		}
		return;
	}
	what = level->limits.has_max ? "max" : level->limits.has_high ? "high" : "";
	(void)limits_window(&level->limits, window);
	table_cell(table, "%s", standing_bar(level->usage, limit, utf8, bar));
	table_cell(table, "%" PRId64, level->usage);
	table_cell(table, "%" PRId64, limit);
	table_cell(table, "%s%s%s", what, what[0] != '\0' && window[0] != '-' ? " " : "",
		   window[0] != '-' ? window : window + 1);
}

static void print(struct cli *cli, const struct tree *tree, const struct standings *standings)
{
	static const char *const head[] = { "total", "own", "path" };
	static const char *const head_limits[] = {
		"total", "own", "", "usage", "limit", "", "path"
	};
	bool limits = standings != NULL && standings->n_limited > 0;
	char buffer[INDENT_BYTES];
	struct table table;

	if (tree->n == 0) {
		cli_note(cli, "(nothing has been counted yet)");
		return;
	}
	table_init(&table, limits ? "rrlrrll" : "rrl");
	table_head(&table, limits ? head_limits : head);
	for (size_t i = 0; i < tree->n; i++) {
		const struct tree_node *node = tree->order[i];
		char *safe = text_safe_string(tree_name(node));

		table_cell(&table, "%" PRId64, node->total);
		table_cell(&table, "%" PRId64, node->own);
		if (limits) {
			cells_of_limits(&table, standings_of(standings, tree, node), cli->utf8);
		}
		table_cell(&table, "%s%s", indent(node, cli->utf8 && cli->out_terminal, buffer),
			   safe != NULL ? safe : "");
		free(safe);
	}
	cli->no_memory |= !table_print(&table, cli->out);
	table_deinit(&table);
}

/* All limits of a node, each with how it stands. */
static json_t *limits_array(const struct standing *standing)
{
	json_t *array = json_array();

	for (size_t i = 0; i < standing->n; i++) {
		const struct ration_level *level = &standing->levels[i];
		json_t *object = limits_object(&level->limits);

		if (json_object_set_new(object, "usage", json_exact(level->usage)) != 0 ||
		    json_object_set_new(object, "left",
					level->left == INT64_MAX ? json_null()
								 : json_exact(level->left)) != 0 ||
		    json_array_append(array, object) != 0) {
			json_decref(array);
			array = NULL;
		}
		json_decref(object);
		if (array == NULL) {
			break;
		}
	}
	return array;
}

static void put(struct cli *cli, const char *root, const struct tree *tree,
		const struct standings *standings)
{
	json_t *nodes = json_array();

	for (size_t i = 0; i < tree->n; i++) {
		const struct tree_node *node = tree->order[i];
		const struct standing *standing = standings_of(standings, tree, node);
		json_t *object =
			json_pack("{s:s, s:i, s:s, s:b, s:o, s:o}", "path", node->path, "depth",
				  (int)node->depth, "kind", node->gauge ? "gauge" : "counter",
				  "leaf", node->leaf, "own", json_exact(node->own), "total",
				  json_exact(node->total));

		if (standing != NULL) {
			cli->no_memory |=
				json_object_set_new(object, "limits", limits_array(standing)) != 0;
		}
		cli->no_memory |= json_array_append_new(nodes, object) != 0;
	}
	cli_put(cli, "path", json_string(root));
	cli_put(cli, "nodes", nodes);
}

/* Print what was walked. */
static void show(struct cli *cli, struct ration *client, const char *root, const struct tree *tree,
		 bool limits)
{
	struct standings standings = { 0 };

	if (!limits) {
		print(cli, tree, NULL);
	} else if (standings_init(&standings, cli, client, tree)) {
		if (cli->json) {
			put(cli, root, tree, &standings);
		} else {
			print(cli, tree, &standings);
		}
	}
	standings_deinit(&standings);
}

void cmd_tree(struct cli *cli, const struct args *args)
{
	const char *root = args->n_operands > 0 ? args->operands[0] : "";
	uint32_t depth =
		args_has(args, OPT_DEPTH) ? (uint32_t)args->option[OPT_DEPTH].number : UINT32_MAX;
	struct ration *client = cli_client(cli, NULL);
	struct ration_view view = { 0 };
	struct walk walk = { 0 };
	int r = 0;

	if (client == NULL) {
		return;
	}
	r = ration_walk(client, root, depth, args_consistency(args), cli->timeout_ms, visit, &walk,
			&view);
	cli_answer(cli, r, root[0] != '\0' ? root : NULL);
	if (walk.no_memory || !tree_arrange(&walk.tree, args->option[OPT_SORT].number == 1)) {
		cli->no_memory = true;
	} else if (r == 0) {
		show(cli, client, root, &walk.tree,
		     cli->json || cli->out_terminal || args_has(args, OPT_LIMITS));
		cli_view(cli, &view);
	}
	tree_deinit(&walk.tree);
}
