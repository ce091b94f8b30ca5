#include "clients/cli/command.h"

#include "clients/cli/limits.h"
#include "clients/cli/pattern.h"
#include "clients/cli/table.h"
#include "clients/cli/text.h"
#include "clients/cli/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct shown_rule {
	char *pattern;
	char *source;
	struct ration_limits limits;
	enum ration_layer layer;
	bool overridden;
};

struct rules {
	const char *about; /* NULL: all */
	struct shown_rule *list;
	size_t n;
	size_t capacity;
	bool no_memory;
};

static void take_rule(void *ctx, const struct ration_rule *rule)
{
	struct rules *rules = ctx;
	struct shown_rule *shown = NULL;

	if (rules->about != NULL && !pattern_is_within(rule->pattern, rules->about) &&
	    !pattern_matches(rule->pattern, rules->about)) {
		return;
	}
	if (rules->n == rules->capacity) {
		size_t capacity = rules->capacity > 0 ? 2 * rules->capacity : 64;
		struct shown_rule *list = reallocarray(rules->list, capacity, sizeof(*list));

		if (list == NULL) {
			rules->no_memory = true;
			return;
		}
		rules->list = list;
		rules->capacity = capacity;
	}
	shown = &rules->list[rules->n++];
	*shown = (struct shown_rule){
		.pattern = strdup(rule->pattern),
		.source = text_safe_string(rule->source),
		.limits = rule->limits,
		.layer = rule->layer,
		.overridden = rule->overridden,
	};
	rules->no_memory |= shown->pattern == NULL || shown->source == NULL;
}

static void rules_deinit(struct rules *rules)
{
	for (size_t i = 0; i < rules->n; i++) {
		free(rules->list[i].pattern);
		free(rules->list[i].source);
	}
	free(rules->list);
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* As a tree is, each node's windows from the shortest to none; the rule that holds before the one it overrides. */
static int compare_rules(const void *a, const void *b)
{
	const struct shown_rule *x = a;
	const struct shown_rule *y = b;
	const struct ration_window *v = &x->limits.window;
	const struct ration_window *w = &y->limits.window;
	int order = tree_compare_paths(x->pattern, y->pattern);

	order = order != 0 ? order : COMPARE(v->kind, w->kind);
	order = order != 0 ? order : COMPARE(v->duration_ms, w->duration_ms);
	order = order != 0 ? order : COMPARE(v->unit, w->unit);
	return order != 0 ? order : COMPARE(x->overridden, y->overridden);
}

static void print_rules(struct cli *cli, const struct rules *rules)
{
	static const char *const head[] = { "max", "high", "low", "min", "window", "from", "rule" };
	struct table table;

	table_init(&table, "rrrrlll");
	table_head(&table, head);
	for (size_t i = 0; i < rules->n; i++) {
		const struct shown_rule *rule = &rules->list[i];
		const struct ration_limits *limits = &rule->limits;
		char window[LIMITS_WINDOW_BYTES];
		char *safe = text_safe_string(rule->pattern);
		int64_t hard = 0;
		bool has_hard = limits_hard(limits, &hard);

		table_number(&table, has_hard, hard);
		table_number(&table, limits->has_high, limits->high);
		table_number(&table, limits->low != 0, limits->low);
		table_number(&table, limits->min != 0, limits->min);
		table_cell(&table, "%s", limits_window(limits, window));
		table_cell(&table, "%s%s",
			   rule->source[0] != '\0' ? rule->source : limits_layer(rule->layer),
			   rule->overridden ? " (overridden)" : "");
		table_cell(&table, "%s", safe != NULL ? safe : "");
		free(safe);
	}
	cli->no_memory |= !table_print(&table, cli->out);
	table_deinit(&table);
}

static void put_rules(struct cli *cli, const struct rules *rules)
{
	json_t *array = json_array();

	for (size_t i = 0; i < rules->n; i++) {
		const struct shown_rule *rule = &rules->list[i];
		json_t *object = limits_rule(&rule->limits, rule->pattern);

		cli->no_memory |=
			json_object_set_new(object, "layer",
					    json_string(limits_layer(rule->layer))) != 0 ||
			json_object_set_new(object, "overridden", json_boolean(rule->overridden)) !=
				0 ||
			json_object_set_new(object, "source", json_string(rule->source)) != 0 ||
			json_array_append(array, object) != 0;
		json_decref(object);
	}
	cli_put(cli, "rules", array);
}

void cmd_quota_show(struct cli *cli, const struct args *args)
{
	struct rules rules = { .about = args->n_operands > 0 ? args->operands[0] : NULL };
	struct ration *client = cli_client(cli, NULL);
	int r = 0;

	if (client == NULL) {
		return;
	}
	r = ration_quota_list(client, cli->timeout_ms, take_rule, &rules);
	cli_answer(cli, r, NULL);
	cli->no_memory |= rules.no_memory;
	if (r == 0 && !rules.no_memory) {
		if (rules.n > 0) {
			qsort(rules.list, rules.n, sizeof(*rules.list), compare_rules);
		}
		if (cli->json) {
			put_rules(cli, &rules);
		} else if (rules.n > 0) {
			print_rules(cli, &rules);
		}
		if (rules.n == 0 && rules.about != NULL) {
			char *safe = text_safe_string(rules.about);

			cli_fail(cli, CLI_NO_PATH, RATION_NOT_FOUND,
				 "no limits for %s, nor below it", safe != NULL ? safe : "");
			free(safe);
		} else if (rules.n == 0) {
			cli_note(cli, "(no limits are set)");
		}
	}
	rules_deinit(&rules);
}
