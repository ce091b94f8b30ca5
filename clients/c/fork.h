#pragma once
/*
 * fork: a process and its child each count what is added in them, once.
 *
 * The child has a copy of every client, but no background threads. There each client starts empty with a session of its own; its
 * connections are closed on the child's side alone. The threads are started by the first add, so that a child which only execs
 * has none.
 *
 * This is the one place of the library with state outside of a client: the list of clients, which pthread_atfork's handlers need.
 */
#include <stdatomic.h>
#include <stdbool.h>

struct ration;

/* Register the handlers, once for the process. 0 or a negative errno. */
int fork_setup(void);

void fork_enlist(struct ration *client);
void fork_unlist(struct ration *client);

/*
 * In this process there are clients whose thread has not been started. Set in the child of a fork before it runs anything else,
 * cleared by fork_resume.
 */
extern _Atomic(bool) fork_asleep;

static inline bool fork_is_asleep(void)
{
	return atomic_load_explicit(&fork_asleep, memory_order_relaxed);
}

/* Start the threads of all clients. Takes locks and memory: not for a signal handler. */
void fork_resume(void);
