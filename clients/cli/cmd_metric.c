#include "clients/cli/command.h"

#include "clients/cli/amount.h"
#include "clients/cli/table.h"
#include "clients/cli/text.h"
#include "clients/cli/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A metric is a path of one segment. */
static bool is_name(struct cli *cli, const char *name)
{
	char *safe = NULL;

	if (strchr(name, '/') == NULL && name[0] != '\0') {
		return true;
	}
	safe = text_safe_string(name);
	cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
		 "'%s' is not the name of a metric; the first segment of a path is, like %.*s",
		 safe != NULL ? safe : "",
		 name[0] == '\0' || name[0] == '/' ? 8
						   : (int)strcspn(safe != NULL ? safe : "", "/"),
		 name[0] == '\0' || name[0] == '/' || safe == NULL ? "requests" : safe);
	free(safe);
	return false;
}

static void answer(struct cli *cli, int r, const char *name)
{
	char *safe = NULL;

	if (r != RATION_NOT_FOUND) {
		cli_answer(cli, r, name);
		return;
	}
	safe = text_safe_string(name);
	cli_fail(cli, CLI_NO_PATH, r, "no such metric: %s", safe != NULL ? safe : "");
	free(safe);
}

static json_t *metric_object(const char *name, const struct ration_metric *metric)
{
	char *safe = text_safe_string(name);
	json_t *object = json_pack(
		"{s:s, s:s, s:o, s:b, s:o}", "name", safe, "kind",
		metric->kind == RATION_GAUGE ? "gauge" : "counter", "max_counters",
		json_exact(metric->max_counters), "overflow", metric->overflow, "expire_after_ms",
		json_exact(metric->expire_after_ms > INT64_MAX ? INT64_MAX
							       : (int64_t)metric->expire_after_ms));

	free(safe);
	return object;
}

static void add_row(struct table *table, const char *name, const struct ration_metric *metric)
{
	char duration[AMOUNT_DURATION_BYTES];
	char *safe = text_safe_string(name);

	table_cell(table, "%s", metric->kind == RATION_GAUGE ? "gauge" : "counter");
	if (metric->max_counters == 0) {
		table_cell(table, "any");
	} else {
		table_cell(table, "%" PRIu32, metric->max_counters);
	}
	table_cell(table, "%s", metric->overflow ? "yes" : "no");
	table_cell(table, "%s", amount_format_duration(metric->expire_after_ms, duration));
	table_cell(table, "%s", safe != NULL ? safe : "");
	free(safe);
}

/* The metrics named on the command line. */
static void show(struct cli *cli, struct ration *client, const char *const *names, size_t n)
{
	struct table table;
	json_t *array = json_array();
	size_t shown = 0;

	table_init(&table, "lrlll");
	table_cell(&table, "kind");
	table_cell(&table, "max-counters");
	table_cell(&table, "overflow");
	table_cell(&table, "expire-after");
	table_cell(&table, "metric");
	for (size_t i = 0; i < n; i++) {
		struct ration_metric metric = RATION_METRIC_INIT;
		int r = 0;

		if (!is_name(cli, names[i])) {
			continue;
		}
		r = ration_metric_get(client, names[i], cli->timeout_ms, &metric);
		answer(cli, r, names[i]);
		if (r < 0) {
			break;
		}
		if (r == 0) {
			cli->no_memory |=
				json_array_append_new(array, metric_object(names[i], &metric)) != 0;
			add_row(&table, names[i], &metric);
			shown++;
		}
	}
	cli_put(cli, "metrics", array);
	if (!cli->json && shown > 0) {
		cli->no_memory |= !table_print(&table, cli->out);
	}
	table_deinit(&table);
}

static bool collect(void *ctx, const struct ration_entry *entry)
{
	return tree_add(ctx, entry->path, &(struct tree_node){ 0 });
}

static void show_all(struct cli *cli, struct ration *client)
{
	struct tree tree;
	const char **names = NULL;
	int r = 0;

	tree_init(&tree);
	r = ration_walk(client, NULL, 1, RATION_CACHED, cli->timeout_ms, collect, &tree, NULL);
	cli_answer(cli, r, NULL);
	if (r == 0 && tree_arrange(&tree, /* by_total= */ false) &&
	    (names = calloc(tree.n + 1, sizeof(*names))) != NULL) {
		for (size_t i = 0; i < tree.n; i++) {
			names[i] = tree.order[i]->path;
		}
		if (tree.n == 0) {
			cli_note(cli, "(no metric yet)");
		}
		show(cli, client, names, tree.n);
	} else if (r == 0) {
		cli->no_memory = true;
	}
	free(names);
	tree_deinit(&tree);
}

void cmd_metric_show(struct cli *cli, const struct args *args)
{
	struct ration *client = cli_client(cli, NULL);

	if (client == NULL) {
		return;
	}
	if (args->n_operands == 0) {
		show_all(cli, client);
	} else {
		show(cli, client, (const char *const *)args->operands, args->n_operands);
	}
}

/* What is not given stays. Two who change one metric at the same moment may undo each other's change; people do that. */
static void apply(const struct args *args, struct ration_metric *metric)
{
	if (args_has(args, OPT_KIND)) {
		metric->kind = args->option[OPT_KIND].number == 1 ? RATION_GAUGE : RATION_COUNTER;
	}
	if (args_has(args, OPT_MAX_COUNTERS)) {
		metric->max_counters = (uint32_t)args->option[OPT_MAX_COUNTERS].number;
	}
	if (args_has(args, OPT_OVERFLOW)) {
		metric->overflow = args->option[OPT_OVERFLOW].number == 1;
	}
	if (args_has(args, OPT_EXPIRE_AFTER)) {
		metric->expire_after_ms = (uint64_t)args->option[OPT_EXPIRE_AFTER].number;
	}
}

void cmd_metric_set(struct cli *cli, const struct args *args)
{
	const char *name = args->operands[0];
	struct ration_metric metric = RATION_METRIC_INIT;
	struct ration *client = NULL;
	int r = 0;

	if (!is_name(cli, name)) {
		return;
	}
	client = cli_client(cli, NULL);
	if (client == NULL) {
		return;
	}
	r = ration_metric_get(client, name, cli->timeout_ms, &metric);
	if (r == RATION_NOT_FOUND) {
		metric = (struct ration_metric)RATION_METRIC_INIT;
		r = 0;
	}
	if (r == 0) {
		apply(args, &metric);
		r = ration_metric_set(client, name, &metric, cli->timeout_ms);
	}
	answer(cli, r, name);
	if (r == 0) {
		cli_put(cli, "metric", metric_object(name, &metric));
	}
}
