#pragma once
/*
 * crash_client: a client of raw frames that does what PROTOCOL.md asks for, of a daemon that is killed again and
 * again: it keeps what is not durable, and sends it again. It adds, charges gauges and counters and gives back, at
 * random, many requests in flight; and checks that what it is told agrees with what it was told before.
 *
 * What it finds wrong ends the process (abort), for it runs in a thread of its own or in another process.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CRASH_PATHS 4u

/* Shared with whoever waits for the end of a client that is killed. Read at that end, so order is of no matter. */
struct crash_sums {
	_Atomic(int64_t) added[CRASH_PATHS];   /* "adds/<i>" */
	_Atomic(int64_t) durable[CRASH_PATHS]; /* of that, as far as was told */
	_Atomic(int64_t) charged[CRASH_PATHS]; /* granted on "spent/<i>" */
	_Atomic(int64_t) held[CRASH_PATHS];    /* granted on "held/<i>" and not given back */
	_Atomic(int64_t) refused;
};

struct crash_client {
	const char *socket;
	uint32_t session;
	uint64_t seed;
	struct crash_sums *sums;
	bool adds_only;
	_Atomic(bool) stop; /* begin nothing new, and end when all is durable */
	pthread_t thread;
	struct crash_state *state;
};

/* socket, session, seed and sums are set. Returns when all is durable after `stop`. */
void crash_client_run(struct crash_client *client);
void crash_client_start(struct crash_client *client);
void crash_client_join(struct crash_client *client);
