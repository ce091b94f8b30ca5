#include "clients/cli/command.h"

#include "clients/cli/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* The first letter of a line from standard input; 0: none. */
static char read_letter(struct cli *cli)
{
	char first = 0, letter = 0;

	while (read(cli->in, &letter, 1) == 1 && letter != '\n') {
		first = first == 0 ? letter : first;
	}
	return first;
}

/* Asked in so many words, of somebody who sees them. */
static bool is_confirmed(struct cli *cli, const char *path, int64_t total)
{
	char *safe = NULL;
	char letter = 0;

	if (!cli->in_terminal || !cli->err_terminal) {
		cli_fail(
			cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			"reset: there is no terminal to ask on whether it is meant; --yes says that it is");
		return false;
	}
	safe = text_safe_string(path);
	(void)fprintf(cli->err, "reset %s and all below it, %" PRId64 " in total, to 0? [y/N] ",
		      safe != NULL ? safe : "", total);
	(void)fflush(cli->err);
	free(safe);
	letter = read_letter(cli);
	if (letter == 'y' || letter == 'Y') {
		return true;
	}
	cli_fail(cli, CLI_USAGE, RATION_ABORTED, "reset: not confirmed, and nothing was changed");
	return false;
}

void cmd_reset(struct cli *cli, const struct args *args)
{
	const char *path = args->operands[0];
	struct ration *client = cli_client(cli, NULL);
	struct ration_value value = { 0 };
	uint64_t counters = 0;
	int r = 0;

	if (client == NULL) {
		return;
	}
	r = ration_get(client, &path, 1, RATION_EXACT, cli->timeout_ms, &value, NULL);
	r = r == 0 ? value.code : r;
	if (r == 0 && !args_has(args, OPT_YES) && !is_confirmed(cli, path, value.total)) {
		return;
	}
	if (r == 0) {
		r = ration_reset(client, path, cli->timeout_ms, &counters);
	}
	cli_answer(cli, r, path);
	if (r == 0) {
		cli_note(cli, "%" PRIu64 " counters are at 0", counters);
		cli_put(cli, "counters", json_exact((int64_t)counters));
		cli_put(cli, "was", json_exact(value.total));
	}
}
