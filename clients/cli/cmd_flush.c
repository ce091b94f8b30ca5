#include "clients/cli/command.h"

void cmd_flush(struct cli *cli, const struct args *args)
{
	struct ration *client = cli_client(cli, NULL);
	int r = 0;

	(void)args;
	if (client == NULL) {
		return;
	}
	r = ration_fold(client, cli->timeout_ms);
	cli_answer(cli, r, NULL);
	if (r == 0) {
		cli_put(cli, "flushed", json_true());
	}
}
