#include "clients/cli/command.h"

#include "clients/cli/adding.h"
#include "clients/cli/amount.h"
#include "clients/cli/input.h"
#include "clients/cli/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- add PATH [N] ---- */

/* What is wrong with PATH or N is said before the daemon is asked for. */
static bool add_one(struct adding *adding, const char *path, const char *text, int64_t *ret_n)
{
	struct ration_counter *counter = NULL;
	char *why = NULL;
	int64_t n = 0;
	enum amount_error error = amount_parse(text, &n);

	if (error != AMOUNT_OK) {
		char *safe = text_safe_string(text);

		cli_fail(adding->cli, CLI_USAGE, RATION_INVALID_ARGUMENT, "add: N '%s': %s",
			 safe != NULL ? safe : "", amount_error_text(error));
		free(safe);
		return false;
	}
	if (!adding_begin(adding)) {
		return false;
	}
	counter = ration_counter(adding->client, path);
	if (counter == NULL) {
		cli_answer(adding->cli, -errno, path);
		return false;
	}
	if (!adding_reach(adding) || !adding_allowed(adding, path, n, &why)) {
		return false;
	}
	if (why != NULL) {
		cli_fail(adding->cli, CLI_ANSWERED, RATION_INVALID_ARGUMENT, "add: %s", why);
		free(why);
		return false;
	}
	ration_add(counter, n);
	*ret_n = n;
	return adding_finish(adding) && adding->n_losses == 0;
}

static void run_one(struct cli *cli, const struct args *args)
{
	const char *path = args->operands[0];
	struct adding adding;
	int64_t n = 0;

	adding_init(&adding, cli, /* single= */ true, args_has(args, OPT_DURABLE));
	if (add_one(&adding, path, args->n_operands > 1 ? args->operands[1] : "1", &n)) {
		cli_put(cli, "path", json_string(path));
		cli_put(cli, "n", json_exact(n));
	}
	adding_deinit(&adding);
}

/* ---- add - ---- */

/* False: there is no use in going on. */
static bool add_line(struct adding *adding, struct input *input, const struct line *line,
		     uint64_t *n_added)
{
	struct ration_counter *counter = adding_counter(adding, line->path);
	int error = errno;
	char *why = NULL;

	if (counter != NULL && !adding_allowed(adding, line->path, line->n, &why)) {
		return false;
	}
	if (why != NULL) {
		input_bad(input, "%s", why);
		free(why);
		return true;
	}
	if (counter != NULL) {
		ration_add(counter, line->n);
		(*n_added)++;
		return true;
	}
	if (adding->client == NULL) {
		return false;
	}
	if (error != EINVAL) {
		input_fail(input, "no counter", error);
		return false;
	}
	why = cli_reason("not a path");
	input_bad(input, "%s", why != NULL ? why : "not a path");
	free(why);
	return true;
}

static void sum_up(struct cli *cli, const struct input *input, const struct adding *adding,
		   uint64_t n_added)
{
	if (cli->signal != 0) {
		cli_note(cli, "(interrupted)");
	}
	cli_note(cli, "%" PRIu64 " lines: %" PRIu64 " added, %" PRIu64 " wrong",
		 input->lines.number, n_added, input->n_bad);
	cli_put(cli, "lines", json_exact((int64_t)input->lines.number));
	cli_put(cli, "added", json_exact((int64_t)n_added));
	cli_put(cli, "bad", json_exact((int64_t)input->n_bad));
	cli_put(cli, "bad_lines", json_incref(input->bad));
	cli_put(cli, "losses", json_incref(adding->losses));
}

static void run_lines(struct cli *cli, bool durable)
{
	struct adding adding;
	struct input *input = NULL;
	struct line line;
	uint64_t n_added = 0;

	adding_init(&adding, cli, /* single= */ false, durable);
	input = input_new(cli, &adding.lock, /* catch_signals= */ true);
	if (input != NULL && adding_begin(&adding) && adding_reach(&adding)) {
		while (input_next(input, &line) && add_line(&adding, input, &line, &n_added)) {
		}
		/* From here a further interrupt ends us at once. */
		input_release(input);
		if (adding.client != NULL) {
			(void)adding_finish(&adding);
		}
		sum_up(cli, input, &adding, n_added);
	}
	adding_deinit(&adding);
	input_free(input);
}

void cmd_add(struct cli *cli, const struct args *args)
{
	if (strcmp(args->operands[0], "-") != 0) {
		run_one(cli, args);
	} else if (args->n_operands > 1) {
		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			 "add: '-' takes no N; each line has its own");
	} else {
		run_lines(cli, args_has(args, OPT_DURABLE));
	}
}
