#include "clients/cli/command.h"

void cmd_flush(struct cli *cli, const struct args *args)
{
	struct ration *client = cli_client(cli, NULL);
	int r = 0;

	if (client == NULL) {
		return;
	}
	/* What is durable is folded too. */
	r = args_has(args, OPT_DURABLE) ? ration_flush_durable(client, cli->timeout_ms)
					: ration_fold(client, cli->timeout_ms);
	cli_answer(cli, r, NULL);
	if (r == 0) {
		cli_put(cli, "flushed", json_true());
		if (args_has(args, OPT_DURABLE)) {
			cli_put(cli, "durable", json_true());
		}
	}
}
