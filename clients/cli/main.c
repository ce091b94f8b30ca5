/*
 * rationctl: the command. All it does is in cli_run, which the tests call as well.
 */
#include "clients/cli/cli.h"

#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct cli cli = {
		.in = STDIN_FILENO,
		.out = stdout,
		.err = stderr,
		.out_terminal = isatty(STDOUT_FILENO) == 1,
		.err_terminal = isatty(STDERR_FILENO) == 1,
	};
	int status = 0;

	(void)setlocale(LC_CTYPE, "");
	cli.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	status = cli_run(&cli, argc, argv);
	if (cli.signal != 0) {
		(void)raise(cli.signal);
	}
	return status;
}
