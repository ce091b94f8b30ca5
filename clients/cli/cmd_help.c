#include "clients/cli/command.h"

#include "clients/cli/help.h"

void cmd_help(struct cli *cli, const struct args *args)
{
	const struct command *command = NULL;
	size_t words = 0;

	if (args->n_operands == 0) {
		help_all(cli->out);
		return;
	}
	command = command_find(args->operands, args->n_operands, &words);
	if (command != NULL && words == args->n_operands) {
		help_command(cli->out, command);
	} else if (args->n_operands > 1 || !help_group(cli, args->operands[0])) {
		command_unknown(cli, args->operands, args->n_operands);
	}
}
