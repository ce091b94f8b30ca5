#pragma once
/*
 * worker: a client's background thread. Every send_interval it takes in what has grown, and it runs the link.
 *
 * It blocks all signals and never raises SIGPIPE. It is the only thread that calls link_step, and that calls the program's on_loss before
 * ration_close.
 */
#include <pthread.h>
#include <stdbool.h>

struct ration;

struct worker {
	pthread_t thread;
	int wake_fd; /* an eventfd; -1 while there is no thread */
	bool running;
	bool stop, hurry;
};

#define WORKER_INIT           \
	{                     \
		.wake_fd = -1 \
	}

/* Start it if it is not there. Under the client's lock. 0 or a negative errno. */
int worker_start(struct ration *client);

/* Have it collect, and connect if it must, now. Under the client's lock. */
void worker_hurry(struct ration *client);

/* Have it look around. Any thread; takes no lock. */
void worker_wake(struct ration *client);

/* What was put in the queue of operations is to be sent: here and now if that needs no waiting. Under the client's lock. */
void worker_send(struct ration *client);

/* End it and wait for that. Not under the client's lock. */
void worker_stop(struct ration *client);

/* In the child of a fork it is not there. */
void worker_forget(struct ration *client);
