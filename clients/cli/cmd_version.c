#include "clients/cli/command.h"

void cmd_version(struct cli *cli, const struct args *args)
{
	(void)args;
	cli_put(cli, "rationctl", json_string(RATION_VERSION));
	cli_put(cli, "libration", json_string(ration_version()));
	if (!cli->json) {
		(void)fprintf(cli->out, "rationctl %s\nlibration %s\n", RATION_VERSION,
			      ration_version());
	}
}
