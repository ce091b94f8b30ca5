#pragma once
/*
 * watchdog: telling the service manager that we live, and only as long as that is true.
 *
 * Alive is: every thread that serves has gone round since the last time we said so. At each tick the main thread sees whether all
 * have answered what it asked them at an earlier one; only then it says so, and asks anew. A thread that hangs does not answer, a
 * main thread that hangs does not tick, and the service manager ends and restarts us.
 *
 * Thread safety: the main thread alone.
 */
#include <stdint.h>

struct daemon;
struct event;

struct watchdog {
	struct event *timer; /* NULL: nobody wants to know */
	uint64_t asked;	     /* the number of the last question */
	int64_t asked_ns;    /* when that was; monotonic */
	int64_t patience_ns; /* a thread that takes longer to answer is named in the log */
	uint64_t named;	     /* the question about which that was done */
};

#define WATCHDOG_INIT \
	{             \
		0     \
	}

/* Start, if the service manager wants it (WATCHDOG_USEC). To be called once the threads run. 0 or -ENOMEM. */
int watchdog_start(struct watchdog *watchdog, struct daemon *daemon);
/* Accepts what never started. */
void watchdog_deinit(struct watchdog *watchdog);
