#include "clients/cli/command.h"

#include "clients/cli/charging.h"
#include "clients/cli/input.h"
#include "clients/cli/limits.h"
#include "clients/cli/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- charge PATH [N]... ---- */

static void charge_words(struct cli *cli, const struct args *args)
{
	struct ration_charge_options options = charging_options(args);
	struct charging charging;
	struct ration *client = NULL;

	/* It has to outlive us. */
	options.detached = true;
	charging_init(&charging, cli, "charge");
	if (charging_words(&charging, args->operands, args->n_operands) &&
	    (client = cli_client(cli, NULL)) != NULL &&
	    charging_charge(&charging, client, &options) == 0 && options.dry_run) {
		cli_note(cli, "(it would be granted)");
	}
	charging_deinit(&charging);
}

/* ---- charge - ---- */

struct verdicts {
	struct cli *cli;
	struct ration *client;
	struct ration_charge_options options;
	struct input *input;
	uint64_t n_granted;
	uint64_t n_refused;
	json_t *refused; /* for --json */
};

/* The first limit that refuses, or else that has something to say. To be freed. NULL: none, or no memory. */
static char *first_reason(const struct ration_charge_result *result)
{
	return result != NULL && result->n_bindings > 0 ? limits_binding(&result->bindings[0])
							: NULL;
}

/* VERDICT, N, PATH and REASON, with tabs between: there is none in any of them. */
static void print_verdict(struct verdicts *verdicts, const struct line *line, int r,
			  const struct ration_charge_result *result)
{
	char *path = text_safe_string(line->path);
	char *reason = first_reason(result);

	(void)fprintf(verdicts->cli->out, "%s\t%" PRId64 "\t%s%s%s\n",
		      r == 0 ? "granted" : "refused", line->n, path != NULL ? path : "",
		      reason != NULL ? "\t" : "", reason != NULL ? reason : "");
	if (verdicts->options.wait_ms > 0) {
		(void)fflush(verdicts->cli->out);
	}
	free(reason);
	free(path);
}

static void list_refusal(struct verdicts *verdicts, const struct line *line,
			 const struct ration_charge_result *result)
{
	char *path = text_safe_string(line->path);

	cli_list(verdicts->cli, verdicts->refused,
		 json_pack("{s:o, s:s, s:o, s:o}", "line",
			   json_exact((int64_t)verdicts->input->lines.number), "path", path, "n",
			   json_exact(line->n), "bindings", limits_bindings_array(result)));
	free(path);
}

/* False: there is no use in going on. */
static bool charge_line(struct verdicts *verdicts, const struct line *line)
{
	struct cli *cli = verdicts->cli;
	struct ration_charge_item item = { .path = line->path, .amount = line->n };
	struct ration_charge_result *result = NULL;
	int r = ration_charge(verdicts->client, &item, 1, &verdicts->options, cli->timeout_ms,
			      &result);

	if (r == 0) {
		verdicts->n_granted++;
	} else if (r == RATION_RESOURCE_EXHAUSTED && result != NULL) {
		verdicts->n_refused++;
		list_refusal(verdicts, line, result);
	} else if (r > 0 || r == -EINVAL) {
		char *why = cli_reason(ration_code_name(r));

		input_bad(verdicts->input, "%s", why != NULL ? why : "wrong");
		free(why);
	} else {
		cli_answer(cli, r, NULL);
		return false;
	}
	if (!cli->json && (r == 0 || result != NULL)) {
		print_verdict(verdicts, line, r, result);
	}
	ration_charge_result_free(result);
	return true;
}

static void sum_up(struct verdicts *verdicts)
{
	struct cli *cli = verdicts->cli;
	const struct input *input = verdicts->input;

	if (verdicts->n_refused > 0) {
		cli_fail(cli, CLI_REFUSED, RATION_RESOURCE_EXHAUSTED,
			 "%" PRIu64 " of %" PRIu64 " charges were refused", verdicts->n_refused,
			 verdicts->n_granted + verdicts->n_refused);
	}
	cli_put(cli, "lines", json_exact((int64_t)input->lines.number));
	cli_put(cli, "granted", json_exact((int64_t)verdicts->n_granted));
	cli_put(cli, "refused", json_exact((int64_t)verdicts->n_refused));
	cli_put(cli, "refusals", json_incref(verdicts->refused));
	cli_put(cli, "bad", json_exact((int64_t)input->n_bad));
	cli_put(cli, "bad_lines", json_incref(input->bad));
}

static void charge_lines(struct cli *cli, const struct args *args)
{
	struct verdicts verdicts = { .cli = cli, .options = charging_options(args) };
	struct line line;

	verdicts.options.detached = true;
	verdicts.refused = json_array();
	/* Who waits for room must not have to wait for the end of it. */
	verdicts.input = input_new(cli, NULL, /* catch_signals= */ verdicts.options.wait_ms == 0);
	verdicts.client = verdicts.input != NULL ? cli_client(cli, NULL) : NULL;
	if (verdicts.client != NULL) {
		while (input_next(verdicts.input, &line) && charge_line(&verdicts, &line)) {
		}
		sum_up(&verdicts);
	}
	input_free(verdicts.input);
	json_decref(verdicts.refused);
}

void cmd_charge(struct cli *cli, const struct args *args)
{
	if (strcmp(args->operands[0], "-") != 0) {
		charge_words(cli, args);
	} else if (args->n_operands > 1) {
		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			 "charge: '-' takes no N; each line has its own");
	} else {
		charge_lines(cli, args);
	}
}

/* ---- uncharge PATH [N] ---- */

void cmd_uncharge(struct cli *cli, const struct args *args)
{
	const char *path = args->operands[0];
	struct ration *client = NULL;
	int64_t n = 1;
	int r = 0;

	if (args->n_operands > 1 && !charging_amount(cli, "uncharge", args->operands[1], &n)) {
		return;
	}
	client = cli_client(cli, NULL);
	if (client == NULL) {
		return;
	}
	r = ration_uncharge(client, path, n, /* detached= */ true, cli->timeout_ms);
	cli_answer(cli, r, path);
	if (r == 0) {
		cli_put(cli, "path", json_string(path));
		cli_put(cli, "n", json_exact(n));
	}
}
