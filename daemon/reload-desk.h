#pragma once
/*
 * reload-desk: where workers bring what clients asked to be reloaded, and the main thread comes for it.
 *
 *	worker: reload_desk_bring	main: reload_desk_take, reload(), worker_send_reloaded	worker: serve_reloaded
 *
 * A job is with one thread at a time; which, is what the two queues say. Its connection is the worker's alone to look at.
 *
 * Thread safety: reload_desk_bring any thread, all else the main thread.
 */
#include "daemon/reload.h"

#include <pthread.h>
#include <stdint.h>

struct connection;
struct event;
struct event_base;
struct letter;
struct worker;

struct reload_job {
	struct reload_job *next;
	struct worker *worker;
	struct letter *letter;	       /* for the way back: made before, so that it can't fail */
	struct connection *connection; /* NULL: it has gone meanwhile */
	uint64_t id;		       /* of the request */
	struct reload_told told;
};

struct reload_desk {
	pthread_mutex_t lock; /* guards the queue */
	struct reload_job *first, **last;
	int wake_fd;
	struct event *event;
	void (*asked)(void *ctx);
	void *ctx;
};

/* `asked` is called from the loop of `base` when there is something to take. 0 or a negative errno. */
int reload_desk_init(struct reload_desk *desk, struct event_base *base, void (*asked)(void *ctx),
		     void *ctx);
/* Frees what nobody took. Accepts what was zeroed and never initialised. */
void reload_desk_deinit(struct reload_desk *desk);

/* Takes over the job. */
void reload_desk_bring(struct reload_desk *desk, struct reload_job *job);
/* All there are, in a list; NULL: none. */
struct reload_job *reload_desk_take(struct reload_desk *desk);

/* Also its letter. Takes NULL, returns NULL. */
struct reload_job *reload_job_free(struct reload_job *job);
