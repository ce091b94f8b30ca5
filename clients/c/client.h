#pragma once
/*
 * client: what a struct ration is made of. Private to this room.
 *
 *	any thread                    the background thread                       the daemon
 *	ration_add -> slots --------> worker: outbox -> link -------------------> session connection
 *	ration_charge ... -> operations -----------------> link ----------------> session connection
 *	ration_try -> a lease's stock <-------------------- leases -> operations
 *	ration_get ... -> call -------------------------------------------------> a connection of its own
 *
 * Locks: fork.c's list -> client->lock and client->call->lock (never both but in fork.c, in that order). Nothing is waited for, no
 * file is looked up and nothing of the program is called under either.
 */
#include "clients/c/counters.h"
#include "clients/c/dial.h"
#include "clients/c/lease.h"
#include "clients/c/link.h"
#include "clients/c/loss.h"
#include "clients/c/operations.h"
#include "clients/c/outbox.h"
#include "clients/c/worker.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct call;

struct ration {
	/* set by ration_open */
	struct dial_address address;
	uint32_t send_interval_ms;

	struct ration *next; /* fork.c's list, under its lock */

	pthread_mutex_t lock;	 /* of all that follows, but for `call` */
	pthread_cond_t progress; /* after each round of the worker in which somebody waits */
	uint32_t n_waiting;
	struct counters counters;
	struct losses losses;
	struct outbox outbox;
	struct operations operations;
	struct leases leases;
	bool holds; /* something was charged in this session */
	struct link link;
	struct worker worker;

	struct call *call; /* changes in the child of a fork alone */
};

/* A condition variable whose timed waits go by clock_now(). 0 or a negative errno. */
int client_cond_init(pthread_cond_t *cond);

/* Wait under the client's lock for the end of a round of the background thread. 0, -ETIMEDOUT. */
int client_wait(struct ration *client, int64_t deadline);
