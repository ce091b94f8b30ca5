#include "clients/c/worker.h"

#include "clients/c/client.h"
#include "clients/c/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Look the daemon's address up, which may take long: without the lock. */
static void dial(struct ration *client)
{
	struct link *link = &client->link;
	int r;

	link->dialing = true;
	(void)pthread_mutex_unlock(&client->lock);
	r = dial_begin(&link->dial, &client->address);
	(void)pthread_mutex_lock(&client->lock);
	link_dialed(link, r, clock_now());
}

/* Wait for the socket, for somebody in a hurry, or for `until`. Returns what poll said of the socket. */
static short wait_for_events(struct ration *client, int64_t until)
{
	struct pollfd fds[2] = { { .fd = client->worker.wake_fd, .events = POLLIN }, { .fd = -1 } };
	eventfd_t ignored;

	fds[1].fd = link_fd(&client->link, &fds[1].events);
	(void)pthread_mutex_unlock(&client->lock);
	if (poll(fds, 2, clock_poll_timeout(until)) < 0) {
		fds[0].revents = fds[1].revents = 0;
	}
	if (fds[0].revents != 0) {
		(void)eventfd_read(fds[0].fd, &ignored);
	}
	(void)pthread_mutex_lock(&client->lock);
	return fds[1].revents;
}

/* One turn; returns what to go on with. */
static short turn(struct ration *client, short revents, int64_t *next_collection)
{
	struct worker *worker = &client->worker;
	int64_t now = clock_now(), until;

	if (worker->hurry || now >= *next_collection) {
		outbox_collect(&client->outbox);
		*next_collection = now + client->send_interval_ms;
	}
	if (worker->hurry) {
		worker->hurry = false;
		link_hurry(&client->link, now);
	}
	leases_step(client, now);
	link_step(&client->link, revents, now);
	(void)losses_deliver(&client->losses, &client->lock);
	if (client->n_waiting > 0) {
		(void)pthread_cond_broadcast(&client->progress);
	}
	if (link_wants_dial(&client->link, now)) {
		dial(client);
	}
	until = link_deadline(&client->link);
	if (*next_collection < until) {
		until = *next_collection;
	}
	if (leases_deadline(&client->leases) < until) {
		until = leases_deadline(&client->leases);
	}
	return worker->stop || worker->hurry ? 0 : wait_for_events(client, until);
}

static void *run(void *arg)
{
	struct ration *client = arg;
	int64_t next_collection = 0;
	short revents = 0;

	(void)pthread_setname_np(pthread_self(), "libration");
	(void)pthread_mutex_lock(&client->lock);
	while (!client->worker.stop) {
		revents = turn(client, revents, &next_collection);
	}
	(void)pthread_mutex_unlock(&client->lock);
	return NULL;
}

/* A new thread has its creator's signal mask, so the signals are blocked around its creation. */
static int create(struct ration *client)
{
	sigset_t all, before;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&client->worker.thread, NULL, run, client);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

int worker_start(struct ration *client)
{
	struct worker *worker = &client->worker;
	int r;

	if (worker->running) {
		return 0;
	}
	worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (worker->wake_fd < 0) {
		return -errno;
	}
	worker->stop = worker->hurry = false;
	r = create(client);
	if (r < 0) {
		(void)close(worker->wake_fd);
		worker->wake_fd = -1;
		return r;
	}
	worker->running = true;
	return 0;
}

void worker_hurry(struct ration *client)
{
	client->worker.hurry = true;
	if (client->worker.running) {
		(void)eventfd_write(client->worker.wake_fd, 1);
	}
}

void worker_wake(struct ration *client)
{
	(void)eventfd_write(client->worker.wake_fd, 1);
}

void worker_send(struct ration *client)
{
	if (!link_is_up(&client->link)) {
		worker_hurry(client);
	} else if (!link_send(&client->link, clock_now())) {
		worker_wake(client);
	}
}

void worker_stop(struct ration *client)
{
	struct worker *worker = &client->worker;

	(void)pthread_mutex_lock(&client->lock);
	worker->stop = true;
	worker_hurry(client);
	(void)pthread_mutex_unlock(&client->lock);
	if (worker->running) {
		(void)pthread_join(worker->thread, NULL);
		(void)close(worker->wake_fd);
	}
	*worker = (struct worker)WORKER_INIT;
}

void worker_forget(struct ration *client)
{
	if (client->worker.wake_fd >= 0) {
		(void)close(client->worker.wake_fd);
	}
	client->worker = (struct worker)WORKER_INIT;
}
