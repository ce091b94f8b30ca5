/*
 * rationctl: the command. All it does is in cli_run, which the tests call as well.
 */
#include "clients/cli/cli.h"

#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/*
 * A standard stream that is closed would be the number of the next file we open: the daemon's socket, say. So it becomes a file that
 * can't be used in its direction, and fails as a closed one would.
 */
static void occupy_standard_streams(void)
{
	static const int flags[] = { O_WRONLY, O_RDONLY, O_RDONLY };

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* The lowest free number is fd. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags[fd]) != fd) {
			_exit(CLI_SYSTEM);
		}
	}
}

int main(int argc, char **argv)
{
	struct cli cli = {
		.in = STDIN_FILENO,
		.out = stdout,
		.err = stderr,
		.in_terminal = isatty(STDIN_FILENO) == 1,
		.out_terminal = isatty(STDOUT_FILENO) == 1,
		.err_terminal = isatty(STDERR_FILENO) == 1,
	};
	int status = 0;

	occupy_standard_streams();
	(void)setlocale(LC_CTYPE, "");
	cli.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	status = cli_run(&cli, argc, argv);
	if (cli.signal != 0) {
		(void)raise(cli.signal);
	}
	return status;
}
