#include "clients/cli/command.h"

#include "clients/cli/limits.h"
#include "clients/cli/pattern.h"
#include "clients/cli/table.h"
#include "clients/cli/text.h"
#include "clients/cli/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- quota set ---- */

/* The limits that the options say. False: reported. */
static bool read_limits(struct cli *cli, const struct args *args, struct ration_limits *ret_limits)
{
	struct ration_limits limits = RATION_LIMITS_INIT;
	bool any = args_has(args, OPT_MAX) || args_has(args, OPT_HIGH) || args_has(args, OPT_LOW) ||
		   args_has(args, OPT_MIN);

	if (args_has(args, OPT_RATE) != args_has(args, OPT_BURST)) {
		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			 "quota set: --rate N/D and --burst N go together; %s is missing",
			 args_has(args, OPT_RATE) ? "--burst" : "--rate");
		return false;
	}
	if (!any && !args_has(args, OPT_RATE)) {
		cli_fail(
			cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			"quota set: a limit is missing; one of --max, --high, --low, --min or --rate is right");
		return false;
	}
	if (args_has(args, OPT_PER)) {
		limits.window.kind = RATION_PER;
		limits.window.duration_ms = (uint64_t)args->option[OPT_PER].number;
	} else if (args_has(args, OPT_CALENDAR)) {
		limits.window.kind = RATION_CALENDAR;
		limits.window.unit = (enum ration_window_unit)args->option[OPT_CALENDAR].number;
	} else if (args_has(args, OPT_RATE)) {
		limits.window.kind = RATION_RATE;
		limits.rate = args->option[OPT_RATE].number;
		limits.per_ms = (uint64_t)args->option[OPT_RATE].per_ms;
		limits.burst = args->option[OPT_BURST].number;
	}
	limits.has_max = args_has(args, OPT_MAX);
	limits.max = args->option[OPT_MAX].number;
	limits.has_high = args_has(args, OPT_HIGH);
	limits.high = args->option[OPT_HIGH].number;
	limits.low = args->option[OPT_LOW].number;
	limits.min = args->option[OPT_MIN].number;
	limits.shadow = args_has(args, OPT_SHADOW);
	*ret_limits = limits;
	return true;
}

struct notes {
	struct cli *cli;
	json_t *list;
};

static void take_note(void *ctx, const char *text)
{
	struct notes *notes = ctx;
	char *safe = text_safe_string(text);

	cli_warn(notes->cli, "note: %s", safe != NULL ? safe : "");
	cli_list(notes->cli, notes->list, json_string(safe));
	free(safe);
}

static json_t *with_pattern(json_t *object, const char *pattern)
{
	char *safe = text_safe_string(pattern);

	if (json_object_set_new(object, "pattern", json_string(safe)) != 0) {
		json_decref(object);
		object = NULL;
	}
	free(safe);
	return object;
}

void cmd_quota_set(struct cli *cli, const struct args *args)
{
	const char *pattern = args->operands[0];
	struct notes notes = { .cli = cli };
	struct ration_limits limits;
	struct ration *client = NULL;
	int r = 0;

	if (!read_limits(cli, args, &limits) || (client = cli_client(cli, NULL)) == NULL) {
		return;
	}
	notes.list = json_array();
	r = ration_quota_set(client, pattern, &limits, cli->timeout_ms, take_note, &notes);
	if (r == RATION_INVALID_ARGUMENT) {
		/* The daemon's text names the pattern. */
		char *why = cli_reason(ration_code_name(r));

		cli_fail(cli, CLI_USAGE, r, "quota set: %s", why != NULL ? why : "");
		free(why);
	} else {
		cli_answer(cli, r, pattern);
	}
	if (r == 0) {
		cli_put(cli, "rule", with_pattern(limits_object(&limits), pattern));
		cli_put(cli, "notes", json_incref(notes.list));
	}
	json_decref(notes.list);
}

/* ---- quota remove ---- */

/* The window that the options say; NULL: all. */
static const struct ration_window *read_window(const struct args *args,
					       struct ration_window *window)
{
	*window = (struct ration_window){ RATION_NO_WINDOW, RATION_DAY, 0 };
	if (args_has(args, OPT_PER)) {
		window->kind = RATION_PER;
		window->duration_ms = (uint64_t)args->option[OPT_PER].number;
	} else if (args_has(args, OPT_CALENDAR)) {
		window->kind = RATION_CALENDAR;
		window->unit = (enum ration_window_unit)args->option[OPT_CALENDAR].number;
	} else if (args_has(args, OPT_WINDOW)) {
		window->kind =
			args->option[OPT_WINDOW].number == 0 ? RATION_NO_WINDOW : RATION_RATE;
	} else {
		return NULL;
	}
	return window;
}

void cmd_quota_remove(struct cli *cli, const struct args *args)
{
	const char *pattern = args->operands[0];
	struct ration_window space;
	const struct ration_window *window = read_window(args, &space);
	struct ration *client = cli_client(cli, NULL);
	char text[RATION_WINDOW_TEXT];
	char *safe = NULL;
	int r = 0;

	if (client == NULL) {
		return;
	}
	r = ration_quota_remove(client, pattern, window, cli->timeout_ms);
	safe = text_safe_string(pattern);
	if (r == RATION_NOT_FOUND) {
		cli_fail(cli, CLI_NO_PATH, r, "%s: no limits%s%s were set at run time",
			 safe != NULL ? safe : "",
			 window != NULL && window->kind == RATION_NO_WINDOW ? " without a window"
			 : window != NULL				    ? " of the window "
									    : "",
			 window != NULL ? ration_window_text(window, text, sizeof(text)) : "");
	} else {
		cli_answer(cli, r, pattern);
	}
	if (r == 0) {
		cli_put(cli, "removed", json_string(safe));
	}
	free(safe);
}

/* ---- quota show ---- */

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

static const char *layer_name(enum ration_layer layer)
{
	return layer == RATION_FILE ? "file" : "run time";
}

/* A number, or "-" for none. */
static void cell(struct table *table, bool has, int64_t number)
{
	if (has) {
		table_cell(table, "%" PRId64, number);
	} else {
		table_cell(table, "-");
	}
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

		cell(&table, has_hard, hard);
		cell(&table, limits->has_high, limits->high);
		cell(&table, limits->low != 0, limits->low);
		cell(&table, limits->min != 0, limits->min);
		table_cell(&table, "%s", limits_window(limits, window));
		table_cell(&table, "%s%s",
			   rule->source[0] != '\0' ? rule->source : layer_name(rule->layer),
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
		json_t *object = with_pattern(limits_object(&rule->limits), rule->pattern);

		cli->no_memory |=
			json_object_set_new(object, "layer",
					    json_string(layer_name(rule->layer))) != 0 ||
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
