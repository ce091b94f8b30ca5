#include "clients/c/fork.h"

#include "clients/c/call.h"
#include "clients/c/charge.h"
#include "clients/c/client.h"
#include "clients/c/clock.h"

#include <pthread.h>

#define FORK_RETRY_MS 100

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ration *list;
static int64_t retry_at; /* of fork_resume, when threads could not be started */
_Atomic(bool) fork_asleep;

/* With these locks held no client is in the middle of anything. */
static void prepare(void)
{
	(void)pthread_mutex_lock(&list_lock);
	for (struct ration *client = list; client != NULL; client = client->next) {
		(void)pthread_mutex_lock(&client->lock);
		call_lock(client->call);
	}
}

static void release(void)
{
	for (struct ration *client = list; client != NULL; client = client->next) {
		call_unlock(client->call);
		(void)pthread_mutex_unlock(&client->lock);
	}
	(void)pthread_mutex_unlock(&list_lock);
}

static void start_empty(struct ration *client)
{
	counters_restart(&client->counters);
	outbox_clear(&client->outbox);
	losses_drop(&client->losses);
	link_forget(&client->link);
	charges_forget(operations_forget(&client->operations));
	leases_forget(&client->leases);
	client->holds = false;
	worker_forget(client);
	/* Who waited here waits in the parent. */
	client->n_waiting = 0;
	(void)client_cond_init(&client->progress);
	call_forget(client->call);
}

static void child(void)
{
	for (struct ration *client = list; client != NULL; client = client->next) {
		start_empty(client);
	}
	retry_at = 0;
	atomic_store_explicit(&fork_asleep, list != NULL, memory_order_relaxed);
	release();
}

static int registered;

static void setup(void)
{
	registered = -pthread_atfork(prepare, release, child);
}

int fork_setup(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, setup);
	return registered;
}

void fork_enlist(struct ration *client)
{
	(void)pthread_mutex_lock(&list_lock);
	client->next = list;
	list = client;
	(void)pthread_mutex_unlock(&list_lock);
}

void fork_unlist(struct ration *client)
{
	struct ration **at = &list;

	(void)pthread_mutex_lock(&list_lock);
	while (*at != NULL && *at != client) {
		at = &(*at)->next;
	}
	if (*at != NULL) {
		*at = client->next;
	}
	(void)pthread_mutex_unlock(&list_lock);
}

void fork_resume(void)
{
	int64_t now = clock_now();
	bool all = true;

	(void)pthread_mutex_lock(&list_lock);
	if (fork_is_asleep() && now >= retry_at) {
		for (struct ration *client = list; client != NULL; client = client->next) {
			(void)pthread_mutex_lock(&client->lock);
			all = worker_start(client) == 0 && all;
			(void)pthread_mutex_unlock(&client->lock);
		}
		retry_at = now + FORK_RETRY_MS;
		atomic_store_explicit(&fork_asleep, !all, memory_order_relaxed);
	}
	(void)pthread_mutex_unlock(&list_lock);
}
