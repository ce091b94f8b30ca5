#include "daemon/store/step.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

void store_step(void)
{
	static long left = -1;

	if (left < 0) {
		const char *given = getenv("RATION_KILL_AT_STEP");

		left = given != NULL ? strtol(given, NULL, 10) : 0;
	}
	if (left > 0 && --left == 0) {
		(void)kill(getpid(), SIGKILL);
	}
}
