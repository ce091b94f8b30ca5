#pragma once
/*
 * proxy: stands between clients and a daemon's unix socket and passes bytes on, until it cuts a connection.
 *
 *	struct proxy *proxy = proxy_start(daemon->dir, daemon->socket);
 *	... clients connect to proxy->url ...
 *	proxy_cut_after(proxy, 1, 20000);	// each connection, after so many bytes, at random
 *	proxy_stop(proxy);
 *
 * A cut is as abrupt as a socket allows: both sides are closed, with whatever has not been passed on.
 *
 * Threads: one of its own; its functions are for the thread that started it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct proxy {
	char path[100], url[108];
	char target[100];
	pthread_t thread;
	int wake_fd;
	_Atomic(uint64_t) cut_min, cut_max; /* bytes of both directions together; max 0: no cuts */
	_Atomic(uint64_t) n_cuts;	    /* so far */
	_Atomic(uint64_t) max_cuts;	    /* then no more */
	_Atomic(bool) down, stop;
};

struct proxy *proxy_start(const char *dir, const char *target);

/* From the next connection on: cut after a random number of bytes from min to max; at most max_cuts times in all. */
void proxy_cut_after(struct proxy *proxy, uint64_t min, uint64_t max, uint64_t max_cuts);

/* Down: no connection, and nobody listens. Returns when it is so. */
void proxy_set_down(struct proxy *proxy, bool down);

void proxy_stop(struct proxy *proxy);
