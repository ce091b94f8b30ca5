#include "daemon/watchdog.h"

#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/notify.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>

/* Ticks in the time that the service manager waits: so a question can take up to three of them to be answered. */
#define WATCHDOG_TICKS 4

static void ask(struct watchdog *watchdog, struct daemon *daemon)
{
	watchdog->asked++;
	watchdog->asked_ns = clock_monotonic_ns();
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		worker_ask(&daemon->workers[i], watchdog->asked);
	}
	if (daemon->http != NULL) {
		http_ask(daemon->http, watchdog->asked);
	}
	if (daemon->checkpoint.started) {
		checkpoint_ask(&daemon->checkpoint, watchdog->asked);
	}
}

#define NAME_SIZE 24u

/* The thread that has not answered yet, by its name in name[NAME_SIZE]; false: all have. */
static bool find_silent(const struct watchdog *watchdog, const struct daemon *daemon, char *name)
{
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		if (worker_answered(&daemon->workers[i]) != watchdog->asked) {
			(void)snprintf(name, NAME_SIZE, "worker-%u", i);
			return true;
		}
	}
	if (daemon->http != NULL && http_answered(daemon->http) != watchdog->asked) {
		(void)snprintf(name, NAME_SIZE, "http");
		return true;
	}
	/* While it waits for a disk it does not. */
	if (daemon->checkpoint.started &&
	    checkpoint_answered(&daemon->checkpoint) != watchdog->asked) {
		(void)snprintf(name, NAME_SIZE, "store");
		return true;
	}
	return false;
}

static void name_silent(struct watchdog *watchdog, struct daemon *daemon, const char *silent)
{
	int64_t waited = clock_monotonic_ns() - watchdog->asked_ns;

	if (waited < watchdog->patience_ns || watchdog->named == watchdog->asked) {
		return;
	}
	watchdog->named = watchdog->asked;
	log_event(&daemon->log, LOG_KIND_MAX, 0, LOG_ERR, &(struct log_about){ .id = LOG_ID_HANGS },
		  "%s has not gone round for %" PRIi64
		  " ms: the service manager is no longer told that all is well",
		  silent, waited / 1000000);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;
	struct watchdog *watchdog = &daemon->watchdog;
	char silent[NAME_SIZE];

	(void)fd;
	(void)what;
	if (find_silent(watchdog, daemon, silent)) {
		name_silent(watchdog, daemon, silent);
		return;
	}
	notify_alive();
	ask(watchdog, daemon);
}

int watchdog_start(struct watchdog *watchdog, struct daemon *daemon)
{
	int64_t interval_ns = notify_watchdog_ns();
	struct timeval tick;

	if (interval_ns == 0) {
		return 0;
	}
	tick = clock_timeval(interval_ns / WATCHDOG_TICKS);
	watchdog->patience_ns = interval_ns / 2;
	watchdog->timer = event_new(daemon->loop.base, -1, EV_PERSIST, on_tick, daemon);
	if (watchdog->timer == NULL || event_add(watchdog->timer, &tick) != 0) {
		return -ENOMEM;
	}
	ask(watchdog, daemon);
	return 0;
}

void watchdog_deinit(struct watchdog *watchdog)
{
	if (watchdog->timer != NULL) {
		event_free(watchdog->timer);
	}
	*watchdog = (struct watchdog)WATCHDOG_INIT;
}
