#include "clients/cli/command.h"

#include "clients/cli/amount.h"
#include "clients/cli/limits.h"
#include "clients/cli/table.h"
#include "clients/cli/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- for people ---- */

static void cell_safe(struct table *table, const char *text)
{
	char *safe = text_safe_string(text);

	table_cell(table, "%s", safe != NULL ? safe : "");
	table->no_memory |= safe == NULL;
	free(safe);
}

static void print_table(struct cli *cli, struct table *table)
{
	cli->no_memory |= !table_print(table, cli->out);
	table_deinit(table);
}

/* How much more fits, and by what that is limited, in a sentence. */
static void print_verdict(struct cli *cli, const char *path,
			  const struct ration_explanation *explanation)
{
	const struct ration_level *level = NULL;
	char phrase[LIMITS_PHRASE_BYTES];
	char *safe = text_safe_string(path);
	char *at = NULL;
	int64_t hard = 0;

	for (size_t i = 0; i < explanation->n_levels && level == NULL; i++) {
		level = explanation->levels[i].binds ? &explanation->levels[i] : NULL;
	}
	if (level == NULL || !limits_hard(&level->limits, &hard)) {
		(void)fprintf(cli->out, "%s: no limit refuses anything\n",
			      safe != NULL ? safe : "");
		free(safe);
		return;
	}
	at = text_safe_string(level->path);
	(void)limits_phrase(level->limits.window.kind == RATION_RATE ? "burst" : "max", hard,
			    &level->limits.window, phrase);
	if (level->left > 0) {
		(void)fprintf(cli->out, "%s: %" PRId64 " more fit; the least is left at %s: %s\n",
			      safe != NULL ? safe : "", level->left, at != NULL ? at : "", phrase);
	} else {
		(void)fprintf(cli->out, "%s: nothing more fits; nothing is left at %s: %s\n",
			      safe != NULL ? safe : "", at != NULL ? at : "", phrase);
	}
	free(safe);
	free(at);
}

static void cell_window(struct table *table, const struct ration_level *level)
{
	char window[LIMITS_WINDOW_BYTES];
	char duration[AMOUNT_DURATION_BYTES];

	(void)limits_window(&level->limits, window);
	if (level->ends_in_ms > 0) {
		table_cell(table, "%s, ends in %s", window,
			   amount_format_duration(level->ends_in_ms, duration));
	} else {
		table_cell(table, "%s", window);
	}
}

static void cell_state(struct table *table, const struct ration_level *level)
{
	const char *over = level->over_max ? "over max" : level->over_high ? "over high" : "";

	table_cell(table, "%s%s%s", level->binds ? "binds" : "",
		   level->binds && over[0] != '\0' ? ", " : "", over);
}

static void print_levels(struct cli *cli, const struct ration_explanation *explanation)
{
	static const char *const head[] = { "usage",   "max",	 "left",   "high",  "peak",
					    "refused", "forced", "window", "state", "path" };
	struct table table;

	table_init(&table, "rrrrrrrlll");
	table_head(&table, head);
	for (size_t i = 0; i < explanation->n_levels; i++) {
		const struct ration_level *level = &explanation->levels[i];
		int64_t hard = 0;
		bool has_hard = limits_hard(&level->limits, &hard);

		table_cell(&table, "%" PRId64, level->usage);
		table_number(&table, has_hard, hard);
		table_number(&table, level->left != INT64_MAX, level->left);
		table_number(&table, level->limits.has_high, level->limits.high);
		table_cell(&table, "%" PRId64, level->peak);
		table_cell(&table, "%" PRIu64, level->refusals);
		table_cell(&table, "%" PRId64, level->forced);
		cell_window(&table, level);
		cell_state(&table, level);
		cell_safe(&table, level->path);
	}
	print_table(cli, &table);
}

/* Only planes without a window protect anything. */
static bool protects(const struct ration_level *level)
{
	return level->limits.min != 0 || level->limits.low != 0 || level->effective_min != 0 ||
	       level->effective_low != 0;
}

static void print_protection(struct cli *cli, const struct ration_explanation *explanation)
{
	static const char *const head[] = {
		"usage", "min", "effective", "low", "effective", "path"
	};
	struct table table;
	bool any = false;

	table_init(&table, "rrrrrl");
	table_head(&table, head);
	for (size_t i = 0; i < explanation->n_levels; i++) {
		const struct ration_level *level = &explanation->levels[i];

		if (!protects(level)) {
			continue;
		}
		any = true;
		table_cell(&table, "%" PRId64, level->usage);
		table_cell(&table, "%" PRId64, level->limits.min);
		table_cell(&table, "%" PRId64, level->effective_min);
		table_cell(&table, "%" PRId64, level->limits.low);
		table_cell(&table, "%" PRId64, level->effective_low);
		cell_safe(&table, level->path);
	}
	if (any) {
		(void)fputs("\nprotected against siblings:\n", cli->out);
		print_table(cli, &table);
	} else {
		table_deinit(&table);
	}
}

static void print_siblings(struct cli *cli, const struct ration_explanation *explanation)
{
	static const char *const head[] = { "usage", "effective min", "effective low", "path" };
	struct table table;

	if (explanation->n_siblings == 0) {
		return;
	}
	(void)fputs("\nsiblings that use more than is protected of them:\n", cli->out);
	table_init(&table, "rrrl");
	table_head(&table, head);
	for (size_t i = 0; i < explanation->n_siblings; i++) {
		const struct ration_sibling *sibling = &explanation->siblings[i];

		table_cell(&table, "%" PRId64, sibling->usage);
		table_cell(&table, "%" PRId64, sibling->effective_min);
		table_cell(&table, "%" PRId64, sibling->effective_low);
		cell_safe(&table, sibling->path);
	}
	print_table(cli, &table);
	if (explanation->n_siblings_omitted > 0) {
		(void)fprintf(cli->out, "and %" PRIu32 " more\n", explanation->n_siblings_omitted);
	}
}

static void print_leases(struct cli *cli, const struct ration_explanation *explanation)
{
	static const char *const head[] = { "units", "expires", "holder", "path" };
	struct table table;

	if (explanation->n_leases == 0) {
		return;
	}
	(void)fputs("\nleases:\n", cli->out);
	table_init(&table, "rlll");
	table_head(&table, head);
	for (size_t i = 0; i < explanation->n_leases; i++) {
		const struct ration_leased *lease = &explanation->leases[i];
		char duration[AMOUNT_DURATION_BYTES];

		table_cell(&table, "%" PRId64, lease->units);
		if (lease->expires_in_ms > 0) {
			table_cell(&table, "in %s",
				   amount_format_duration(lease->expires_in_ms, duration));
		} else {
			table_cell(&table, "expired");
		}
		cell_safe(&table, lease->agent);
		cell_safe(&table, lease->path);
	}
	print_table(cli, &table);
	if (explanation->n_leases_omitted > 0) {
		(void)fprintf(cli->out, "and %" PRIu32 " more\n", explanation->n_leases_omitted);
	}
}

/* Where each limit comes from; in the order of the levels. */
static void print_rules(struct cli *cli, const struct ration_explanation *explanation)
{
	static const char *const head[] = { "window", "from", "rule" };
	struct table table;

	(void)fputs("\nrules:\n", cli->out);
	table_init(&table, "lll");
	table_head(&table, head);
	for (size_t i = 0; i < explanation->n_levels; i++) {
		const struct ration_level *level = &explanation->levels[i];
		char window[LIMITS_WINDOW_BYTES];

		table_cell(&table, "%s", limits_window(&level->limits, window));
		if (level->source[0] != '\0') {
			cell_safe(&table, level->source);
		} else {
			table_cell(&table, "%s", limits_layer(level->layer));
		}
		cell_safe(&table, level->pattern);
	}
	print_table(cli, &table);
}

static void print(struct cli *cli, const char *path, const struct ration_explanation *explanation)
{
	print_verdict(cli, path, explanation);
	if (explanation->n_levels > 0) {
		(void)fputs("\n", cli->out);
		print_levels(cli, explanation);
		print_protection(cli, explanation);
	}
	print_siblings(cli, explanation);
	print_leases(cli, explanation);
	if (explanation->n_levels > 0) {
		print_rules(cli, explanation);
	}
}

/* ---- for programs ---- */

static json_t *safe_json(const char *text)
{
	char *safe = text_safe_string(text);
	json_t *string = json_string(safe);

	free(safe);
	return string;
}

/* Moves what `more` has to `object`; takes both references. */
static json_t *joined(json_t *object, json_t *more)
{
	if (more == NULL || json_object_update(object, more) != 0) {
		json_decref(object);
		object = NULL;
	}
	json_decref(more);
	return object;
}

static json_t *level_object(const struct ration_level *level)
{
	json_t *object = json_pack("{s:o}", "path", safe_json(level->path));

	object = joined(object, limits_object(&level->limits));
	return joined(
		object,
		json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:o, s:s, s:o, s:o}",
			  "usage", json_exact(level->usage), "left",
			  level->left == INT64_MAX ? json_null() : json_exact(level->left), "peak",
			  json_exact(level->peak), "refusals", json_exact((int64_t)level->refusals),
			  "forced", json_exact(level->forced), "effective_min",
			  json_exact(level->effective_min), "effective_low",
			  json_exact(level->effective_low), "binds", level->binds, "over_high",
			  level->over_high, "over_max", level->over_max, "ends_in_ms",
			  level->ends_in_ms > 0 ? json_exact((int64_t)level->ends_in_ms)
						: json_null(),
			  "layer", limits_layer(level->layer), "rule", safe_json(level->pattern),
			  "source", safe_json(level->source)));
}

static json_t *sibling_object(const struct ration_sibling *sibling)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "path", safe_json(sibling->path), "usage",
			 json_exact(sibling->usage), "effective_min",
			 json_exact(sibling->effective_min), "effective_low",
			 json_exact(sibling->effective_low));
}

static json_t *lease_object(const struct ration_leased *lease)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "path", safe_json(lease->path), "agent",
			 safe_json(lease->agent), "units", json_exact(lease->units),
			 "expires_in_ms", json_exact((int64_t)lease->expires_in_ms));
}

static void put(struct cli *cli, const char *path, const struct ration_explanation *explanation)
{
	json_t *levels = json_array();
	json_t *siblings = json_array();
	json_t *leases = json_array();

	for (size_t i = 0; i < explanation->n_levels; i++) {
		cli->no_memory |=
			json_array_append_new(levels, level_object(&explanation->levels[i])) != 0;
	}
	for (size_t i = 0; i < explanation->n_siblings; i++) {
		cli->no_memory |= json_array_append_new(
					  siblings, sibling_object(&explanation->siblings[i])) != 0;
	}
	for (size_t i = 0; i < explanation->n_leases; i++) {
		cli->no_memory |=
			json_array_append_new(leases, lease_object(&explanation->leases[i])) != 0;
	}
	cli_put(cli, "path", safe_json(path));
	cli_put(cli, "levels", levels);
	cli_put(cli, "siblings", siblings);
	cli_put(cli, "siblings_omitted", json_exact(explanation->n_siblings_omitted));
	cli_put(cli, "leases", leases);
	cli_put(cli, "leases_omitted", json_exact(explanation->n_leases_omitted));
}

void cmd_quota_explain(struct cli *cli, const struct args *args)
{
	const char *path = args->operands[0];
	struct ration *client = cli_client(cli, NULL);
	struct ration_explanation *explanation = NULL;
	int r = 0;

	if (client == NULL) {
		return;
	}
	r = ration_quota_explain(client, path, cli->timeout_ms, &explanation);
	cli_answer(cli, r, path);
	if (r == 0 && cli->json) {
		put(cli, path, explanation);
	} else if (r == 0) {
		print(cli, path, explanation);
	}
	ration_explanation_free(explanation);
}
