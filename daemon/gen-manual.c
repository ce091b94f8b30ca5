/*
 * Writes one of the manual pages to standard output; run at build time.
 */
#include "daemon/manual.h"

#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "rationd.8") == 0) {
		manual_daemon(stdout);
	} else if (argc == 2 && strcmp(argv[1], "rationd.conf.5") == 0) {
		manual_config(stdout);
	} else {
		(void)fprintf(stderr, "usage: rationd-gen-manual rationd.8|rationd.conf.5\n");
		return EXIT_FAILURE;
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
