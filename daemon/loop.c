#include "daemon/loop.h"

#include "daemon/arrivals.h"
#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/notify.h"
#include "daemon/reload.h"
#include "daemon/statsd/statsd.h"
#include "lib/engine/quota.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define LOOP_STATUS_NS INT64_C(5000000000) /* between status texts */
#define LOOP_EXPIRE_BUDGET 10000u	   /* counters looked at in a second */

static void set_state(struct daemon *daemon, enum daemon_state state)
{
	atomic_store_explicit(&daemon->state, (int)state, memory_order_relaxed);
}

/* ---- what is said ---- */

/* How much was done a second, since this was asked last. */
static void take_rates(struct daemon *daemon, uint64_t *ret_adds, uint64_t *ret_requests)
{
	struct loop_rates *last = &daemon->loop.rates;
	struct loop_rates now = { .at_ns = clock_monotonic_ns() };
	double seconds = (double)(now.at_ns - last->at_ns) / CLOCK_NS_PER_S;

	for (unsigned i = 0; i < daemon->n_workers; i++) {
		now.adds += stats_read(&daemon->workers[i].stats.adds_applied);
		now.requests += stats_read(&daemon->workers[i].stats.frames_in);
	}
	*ret_adds = seconds > 0 ? (uint64_t)((double)(now.adds - last->adds) / seconds) : 0;
	*ret_requests =
		seconds > 0 ? (uint64_t)((double)(now.requests - last->requests) / seconds) : 0;
	*last = now;
}

/* Ready: say so too. Else the text alone, if there is anything new in it. */
static void notify_running(struct daemon *daemon, bool ready)
{
	char text[sizeof(daemon->loop.status_text)];
	uint64_t adds, requests;
	uint32_t connections = arrivals_connections(daemon);
	struct checkpoint_stats kept;

	checkpoint_stats(&daemon->checkpoint, &kept);
	take_rates(daemon, &adds, &requests);
	(void)snprintf(text, sizeof(text),
		       "Serving on %zu socket%s with %u worker%s: %" PRIu32
		       " connection%s, %" PRIu64 " requests/s, %" PRIu64 " adds/s.%s%s%s",
		       daemon->listeners.n, daemon->listeners.n == 1 ? "" : "s", daemon->n_workers,
		       daemon->n_workers == 1 ? "" : "s", connections, connections == 1 ? "" : "s",
		       requests, adds,
		       daemon->loop.reload_failed ? " The last reload failed: see the log." : "",
		       kept.failing ? " Nothing becomes durable: " : "", kept.why);
	daemon->loop.keeps_failing = kept.failing;
	if (ready) {
		notify_ready(text);
	} else if (strcmp(text, daemon->loop.status_text) != 0) {
		notify_status(text);
	}
	memcpy(daemon->loop.status_text, text, sizeof(text));
}

/* ---- events ---- */

static void do_reload(struct daemon *daemon, struct reload_told *told)
{
	notify_reloading();
	set_state(daemon, DAEMON_RELOADING);
	daemon->loop.reload_failed = reload(daemon, told) != 0;
	set_state(daemon, DAEMON_RUNNING);
	notify_running(daemon, /* ready= */ true);
}

/* All that have asked by now share one. */
void loop_reload_asked(void *ctx)
{
	struct daemon *daemon = ctx;
	struct reload_job *job = reload_desk_take(&daemon->reload_desk), *next;
	struct reload_told told;

	if (job == NULL) {
		return;
	}
	do_reload(daemon, &told);
	for (; job != NULL; job = next) {
		next = job->next;
		job->told = told;
		worker_send_reloaded(job);
	}
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;
	struct signalfd_siginfo info;
	struct reload_told told;

	(void)what;
	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGHUP) {
			do_reload(daemon, &told);
			continue;
		}
		log_line(&daemon->log, LOG_INFO, "stopping (%s)",
			 info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
		(void)event_base_loopbreak(daemon->loop.base);
		return;
	}
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;

	(void)fd;
	(void)what;
	engine_flush(daemon->engine, clock_wall_ns());
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;
	struct checkpoint_stats kept;

	(void)fd;
	(void)what;
	if (engine_expire(daemon->engine, clock_wall_ns(), LOOP_EXPIRE_BUDGET) > 0) {
		checkpoint_note(&daemon->checkpoint);
	}
	/* What makes room without telling, as adds of less than 0 do. */
	waiting_wake_all(&daemon->waiting);
	statsd_look_for_drops(daemon);
	log_suppressed(&daemon->log, clock_monotonic_ns(), /* all= */ false);
	checkpoint_stats(&daemon->checkpoint, &kept);
	if (clock_monotonic_ns() - daemon->loop.rates.at_ns >= LOOP_STATUS_NS ||
	    kept.failing != daemon->loop.keeps_failing) {
		notify_running(daemon, /* ready= */ false);
	}
}

/* For growth that folds, which brings no time of its own. */
static void on_time(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;
	const struct quota_time time = daemon_time();

	(void)fd;
	(void)what;
	engine_set_time(daemon->engine, &time);
}

/* ---- from the start to the end ---- */

static int new_base(struct event_base **ret_base)
{
	struct event_config *config = event_config_new();

	if (config == NULL) {
		return -ENOMEM;
	}
	(void)event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	*ret_base = event_base_new_with_config(config);
	event_config_free(config);
	return *ret_base != NULL ? 0 : -ENOMEM;
}

/*
 * Signals come in through a descriptor, and are blocked in every thread: those of libraries inherit that from here too. Nothing
 * is ever interrupted, and what comes before the loop runs waits for it.
 */
static int open_signals(int *ret_fd)
{
	sigset_t ours;

	(void)sigemptyset(&ours);
	(void)sigaddset(&ours, SIGTERM);
	(void)sigaddset(&ours, SIGINT);
	(void)sigaddset(&ours, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, &ours, NULL);
	*ret_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_fd >= 0 ? 0 : -errno;
}

int loop_init(struct daemon *daemon)
{
	int r = open_signals(&daemon->loop.signal_fd);

	return r == 0 ? new_base(&daemon->loop.base) : r;
}

void loop_set_flush_timer(struct daemon *daemon)
{
	struct timeval interval = clock_timeval(daemon->config->flush_interval_ns);

	(void)event_add(daemon->loop.flush_timer, &interval);
}

int loop_arm(struct daemon *daemon)
{
	const struct timeval second = { .tv_sec = 1 }, tenth = { .tv_usec = 100000 };
	const struct quota_time time = daemon_time();

	daemon->loop.signals = event_new(daemon->loop.base, daemon->loop.signal_fd,
					 EV_READ | EV_PERSIST, on_signal, daemon);
	daemon->loop.flush_timer = event_new(daemon->loop.base, -1, EV_PERSIST, on_flush, daemon);
	daemon->loop.second_timer = event_new(daemon->loop.base, -1, EV_PERSIST, on_second, daemon);
	if (daemon->loop.signals == NULL || daemon->loop.flush_timer == NULL ||
	    daemon->loop.second_timer == NULL || event_add(daemon->loop.signals, NULL) != 0 ||
	    event_add(daemon->loop.second_timer, &second) != 0) {
		return -ENOMEM;
	}
	daemon->loop.time_timer = event_new(daemon->loop.base, -1, EV_PERSIST, on_time, daemon);
	if (daemon->loop.time_timer == NULL || event_add(daemon->loop.time_timer, &tenth) != 0) {
		return -ENOMEM;
	}
	engine_set_time(daemon->engine, &time);
	loop_set_flush_timer(daemon);
	return 0;
}

int loop_run(struct daemon *daemon)
{
	int r;

	set_state(daemon, DAEMON_RUNNING);
	daemon->loop.rates.at_ns = daemon->started_ns;
	notify_running(daemon, /* ready= */ true);
	r = event_base_dispatch(daemon->loop.base) < 0 ? -EIO : 0;
	notify_stopping();
	set_state(daemon, DAEMON_STOPPING);
	return r;
}

static void free_event(struct event *event)
{
	if (event != NULL) {
		event_free(event);
	}
}

void loop_deinit(struct loop *loop)
{
	free_event(loop->signals);
	free_event(loop->flush_timer);
	free_event(loop->second_timer);
	free_event(loop->time_timer);
	if (loop->base != NULL) {
		event_base_free(loop->base);
	}
	if (loop->signal_fd >= 0) {
		(void)close(loop->signal_fd);
	}
}
