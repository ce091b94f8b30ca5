#pragma once
/*
 * loop: what the main thread does while the daemon runs: signals, reloads, flushes, expiry, and what systemd is told.
 *
 * Thread safety: the main thread alone.
 */
#include "daemon/store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct event;
struct event_base;

/* What the workers had done, at some moment. */
struct loop_rates {
	int64_t at_ns;
	uint64_t adds, requests;
};

struct loop {
	struct event_base *base;
	int signal_fd;
	struct event *signals, *flush_timer, *second_timer, *time_timer;
	struct loop_rates rates; /* when the status text was made last */
	bool reload_failed;	 /* the last one */
	bool keeps_failing;	 /* as that said */
	char status_text[192 + STORE_MAX_WHY];
};

#define LOOP_INIT               \
	{                       \
		.signal_fd = -1 \
	}

/* The event_base, and signals blocked in the thread and all that it makes: they are taken once the loop runs. 0 or a negative errno. */
int loop_init(struct daemon *daemon);
/* Takes what is LOOP_INIT, too. */
void loop_deinit(struct loop *loop);

/* The timers, and the time of the engine. 0 or a negative errno. */
int loop_arm(struct daemon *daemon);

/* Have flush_interval be in force. */
void loop_set_flush_timer(struct daemon *daemon);

/* The reload desk of the daemon, which is ctx, has something. */
void loop_reload_asked(void *ctx);

/* Say that the daemon is ready, and run until a signal says stop. 0 or a negative errno. */
int loop_run(struct daemon *daemon);
