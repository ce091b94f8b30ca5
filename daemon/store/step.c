#include "daemon/store/step.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

void store_step(void)
{
	static long left;
	static pid_t of; /* a child counts its own */

	if (of != getpid()) {
		const char *given = getenv("RATION_KILL_AT_STEP");

		of = getpid();
		left = given != NULL ? strtol(given, NULL, 10) : 0;
	}
	if (left > 0 && --left == 0) {
		(void)kill(of, SIGKILL);
	}
}
