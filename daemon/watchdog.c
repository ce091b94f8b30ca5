#include "daemon/watchdog.h"

#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/notify.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>

/* Ticks in the time that the service manager waits: so a question can take up to three of them to be answered. */
#define WATCHDOG_TICKS 4

static void ask(struct watchdog *watchdog, struct daemon *daemon)
{
	watchdog->asked++;
	watchdog->asked_ns = clock_monotonic_ns();
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		worker_ask(&daemon->workers[i], watchdog->asked);
	}
}

/* The thread that has not answered yet; NULL: all have. */
static const struct worker *silent_worker(const struct watchdog *watchdog,
					  const struct daemon *daemon)
{
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		if (worker_answered(&daemon->workers[i]) != watchdog->asked) {
			return &daemon->workers[i];
		}
	}
	return NULL;
}

static void name_silent(struct watchdog *watchdog, struct daemon *daemon,
			const struct worker *silent)
{
	int64_t waited = clock_monotonic_ns() - watchdog->asked_ns;

	if (waited < watchdog->patience_ns || watchdog->named == watchdog->asked) {
		return;
	}
	watchdog->named = watchdog->asked;
	log_event(&daemon->log, LOG_KIND_MAX, 0, LOG_ERR, &(struct log_about){ .id = LOG_ID_HANGS },
		  "worker-%u has not gone round for %" PRIi64
		  " ms: the service manager is no longer told that all is well",
		  silent->index, waited / 1000000);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;
	struct watchdog *watchdog = &daemon->watchdog;
	const struct worker *silent = silent_worker(watchdog, daemon);

	(void)fd;
	(void)what;
	if (silent != NULL) {
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
	watchdog->timer = event_new(daemon->base, -1, EV_PERSIST, on_tick, daemon);
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
