#include "daemon/reload-desk.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct reload_job *reload_job_free(struct reload_job *job)
{
	if (job != NULL) {
		free(job->letter);
		free(job);
	}
	return NULL;
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct reload_desk *desk = arg;
	uint64_t count;

	(void)what;
	(void)!read(fd, &count, sizeof(count));
	desk->asked(desk->ctx);
}

int reload_desk_init(struct reload_desk *desk, struct event_base *base, void (*asked)(void *ctx),
		     void *ctx)
{
	*desk = (struct reload_desk){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.asked = asked,
		.ctx = ctx,
	};
	desk->last = &desk->first;
	if (desk->wake_fd < 0) {
		return -errno;
	}
	desk->event = event_new(base, desk->wake_fd, EV_READ | EV_PERSIST, on_wake, desk);
	return desk->event != NULL && event_add(desk->event, NULL) == 0 ? 0 : -ENOMEM;
}

void reload_desk_deinit(struct reload_desk *desk)
{
	struct reload_job *job, *next;

	if (desk->last == NULL) {
		return;
	}
	for (job = reload_desk_take(desk); job != NULL; job = next) {
		next = job->next;
		(void)reload_job_free(job);
	}
	if (desk->event != NULL) {
		event_free(desk->event);
	}
	if (desk->wake_fd >= 0) {
		(void)close(desk->wake_fd);
	}
	(void)pthread_mutex_destroy(&desk->lock);
	*desk = (struct reload_desk){ .wake_fd = -1 };
}

void reload_desk_bring(struct reload_desk *desk, struct reload_job *job)
{
	uint64_t one = 1;

	job->next = NULL;
	(void)pthread_mutex_lock(&desk->lock);
	*desk->last = job;
	desk->last = &job->next;
	(void)pthread_mutex_unlock(&desk->lock);
	/* Fails only when the count is full, and then the main thread is awake. */
	(void)!write(desk->wake_fd, &one, sizeof(one));
}

struct reload_job *reload_desk_take(struct reload_desk *desk)
{
	struct reload_job *first;

	(void)pthread_mutex_lock(&desk->lock);
	first = desk->first;
	desk->first = NULL;
	desk->last = &desk->first;
	(void)pthread_mutex_unlock(&desk->lock);
	return first;
}
