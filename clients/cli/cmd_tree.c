#include "clients/cli/command.h"

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

static void print(struct cli *cli, const struct tree *tree)
{
	char buffer[INDENT_BYTES];
	struct table table;

	if (tree->n == 0) {
		cli_note(cli, "(nothing has been counted yet)");
		return;
	}
	table_init(&table, "rrl");
	table_cell(&table, "total");
	table_cell(&table, "own");
	table_cell(&table, "path");
	for (size_t i = 0; i < tree->n; i++) {
		const struct tree_node *node = tree->order[i];
		char *safe = text_safe_string(tree_name(node));

		table_cell(&table, "%" PRId64, node->total);
		table_cell(&table, "%" PRId64, node->own);
		table_cell(&table, "%s%s", indent(node, cli->utf8 && cli->out_terminal, buffer),
			   safe != NULL ? safe : "");
		free(safe);
	}
	cli->no_memory |= !table_print(&table, cli->out);
	table_deinit(&table);
}

static void put(struct cli *cli, const char *root, const struct tree *tree)
{
	json_t *nodes = json_array();

	for (size_t i = 0; i < tree->n; i++) {
		const struct tree_node *node = tree->order[i];
		json_t *object =
			json_pack("{s:s, s:i, s:s, s:b, s:o, s:o}", "path", node->path, "depth",
				  (int)node->depth, "kind", node->gauge ? "gauge" : "counter",
				  "leaf", node->leaf, "own", json_exact(node->own), "total",
				  json_exact(node->total));

		cli->no_memory |= json_array_append_new(nodes, object) != 0;
	}
	cli_put(cli, "path", json_string(root));
	cli_put(cli, "nodes", nodes);
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
		if (cli->json) {
			put(cli, root, &walk.tree);
		} else {
			print(cli, &walk.tree);
		}
		cli_view(cli, &view);
	}
	tree_deinit(&walk.tree);
}
