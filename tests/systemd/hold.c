/*
 * hold PID THREAD - stop the thread of this name until the process is gone, or we are. Says "held" once it is so.
 */
#include "tests/support/hold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	pid_t thread;

	if (argc != 3) {
		(void)fprintf(stderr, "usage: hold PID THREAD\n");
		return 2;
	}
	thread = hold_thread((pid_t)strtol(argv[1], NULL, 10), argv[2]);
	if (thread < 0) {
		(void)fprintf(stderr, "hold: %s\n", strerror(-thread));
		return 1;
	}
	(void)printf("held\n");
	(void)fflush(stdout);
	hold_wait(thread);
	return 0;
}
