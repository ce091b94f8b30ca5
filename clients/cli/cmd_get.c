#include "clients/cli/command.h"

#include "clients/cli/limits.h"
#include "clients/cli/table.h"
#include "clients/cli/text.h"

#include <inttypes.h>
#include <stdlib.h>

/* A value that is none: its code says why. */
static void report(struct cli *cli, const char *path, int code)
{
	char *safe = text_safe_string(path);

	if (code == RATION_INVALID_ARGUMENT) {
		cli_fail(
			cli, CLI_USAGE, code,
			"'%s' is not a path; segments of 1 to 128 bytes joined by '/' are, at most 16 of them and 512 bytes, like requests/acme/web",
			safe != NULL ? safe : "");
	} else if (code == RATION_NOT_FOUND) {
		cli_fail(cli, CLI_NO_PATH, code, "no such path: %s", safe != NULL ? safe : "");
	} else {
		cli_fail(cli, CLI_ANSWERED, code, "%s: the daemon answered %s",
			 safe != NULL ? safe : "", ration_code_name(code));
	}
	free(safe);
}

static json_t *value_object(const char *path, const struct ration_value *value)
{
	char *safe = text_safe_string(path);
	json_t *object = NULL;

	if (value->code == RATION_OK) {
		object = json_pack("{s:s, s:s, s:b, s:o, s:o}", "path", safe, "kind",
				   value->kind == RATION_GAUGE ? "gauge" : "counter", "leaf",
				   value->leaf, "own", json_exact(value->own), "total",
				   json_exact(value->total));
	} else {
		object = json_pack("{s:s, s:s}", "path", safe, "code",
				   ration_code_name(value->code));
	}
	free(safe);
	return object;
}

static void print(struct cli *cli, char **paths, size_t n, const struct ration_value *values)
{
	struct table table;
	json_t *array = json_array();

	table_init(&table, "rl");
	for (size_t i = 0; i < n; i++) {
		cli->no_memory |=
			json_array_append_new(array, value_object(paths[i], &values[i])) != 0;
		if (values[i].code != RATION_OK) {
			report(cli, paths[i], values[i].code);
			continue;
		}
		char *safe = text_safe_string(paths[i]);

		table_cell(&table, "%" PRId64, values[i].total);
		table_cell(&table, "%s", safe != NULL ? safe : "");
		free(safe);
	}
	cli_put(cli, "values", array);
	if (!cli->json) {
		cli->no_memory |= !table_print(&table, cli->out);
	}
	table_deinit(&table);
}

/* Report what is over its max at `path`, or at what it is below of. False: there is no use in going on. */
static bool check(struct cli *cli, struct ration *client, const char *path)
{
	struct ration_explanation *explanation = NULL;
	int r = ration_quota_explain(client, path, cli->timeout_ms, &explanation);

	cli_answer(cli, r, path);
	for (size_t i = 0; r == 0 && i < explanation->n_levels; i++) {
		const struct ration_level *level = &explanation->levels[i];
		char phrase[LIMITS_PHRASE_BYTES];
		char *safe = text_safe_string(path);
		char *at = text_safe_string(level->path);
		int64_t limit = 0;

		if (level->over_max && !level->limits.shadow &&
		    limits_hard(&level->limits, &limit)) {
			cli_fail(cli, CLI_REFUSED, RATION_RESOURCE_EXHAUSTED,
				 "%s: over max at %s: %s, usage %" PRId64, safe != NULL ? safe : "",
				 at != NULL ? at : "",
				 limits_phrase(level->limits.has_max ? "max" : "burst", limit,
					       &level->limits.window, phrase),
				 level->usage);
		}
		free(safe);
		free(at);
	}
	ration_explanation_free(explanation);
	return r >= 0;
}

void cmd_get(struct cli *cli, const struct args *args)
{
	struct ration *client = cli_client(cli, NULL);
	struct ration_value *values = NULL;
	struct ration_view view = { 0 };
	int r = 0;

	if (client == NULL) {
		return;
	}
	values = calloc(args->n_operands, sizeof(*values));
	if (values == NULL) {
		cli->no_memory = true;
		return;
	}
	r = ration_get(client, (const char *const *)args->operands, args->n_operands,
		       args_consistency(args), cli->timeout_ms, values, &view);
	cli_answer(cli, r, NULL);
	if (r == 0) {
		print(cli, args->operands, args->n_operands, values);
		cli_view(cli, &view);
	}
	for (size_t i = 0; r == 0 && args_has(args, OPT_CHECK) && i < args->n_operands; i++) {
		if (values[i].code == RATION_OK && !check(cli, client, args->operands[i])) {
			break;
		}
	}
	free(values);
}
