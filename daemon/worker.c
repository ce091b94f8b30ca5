#include "daemon/worker.h"

#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/directory.h"
#include "daemon/giveback.h"
#include "daemon/reload-desk.h"
#include "daemon/round.h"
#include "daemon/serve.h"
#include "daemon/session.h"
#include "daemon/statsd/statsd.h"
#include "lib/engine/engine.h"
#include "lib/rcu/grace.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WORKER_ARENA_OUT \
	((size_t)64 << 20) /* a reply to the longest list, as structs and as bytes */

enum letter_kind {
	LETTER_CONNECTION,
	LETTER_STATSD,
	LETTER_SETTINGS,
	LETTER_RELOADED,
	LETTER_STOP,
};

struct letter {
	struct letter *next;
	enum letter_kind kind;
	union {
		struct connection *connection;
		struct statsd_stream *stream;
		struct settings settings;
		struct reload_job *job;
		int64_t stop_timeout_ns;
	};
};

/* ---- the inbox ---- */

void worker_wake(struct worker *worker)
{
	uint64_t one = 1;

	/* Fails only when the count is full, and then the worker is awake. */
	(void)!write(worker->wake_fd, &one, sizeof(one));
}

void worker_ask(struct worker *worker, uint64_t number)
{
	atomic_store_explicit(&worker->asked, number, memory_order_relaxed);
	worker_wake(worker);
}

static void post(struct worker *worker, struct letter *letter)
{
	letter->next = NULL;
	(void)pthread_mutex_lock(&worker->lock);
	*worker->last = letter;
	worker->last = &letter->next;
	(void)pthread_mutex_unlock(&worker->lock);
	worker_wake(worker);
}

static struct letter *take_letters(struct worker *worker)
{
	struct letter *first;

	(void)pthread_mutex_lock(&worker->lock);
	first = worker->first;
	worker->first = NULL;
	worker->last = &worker->first;
	(void)pthread_mutex_unlock(&worker->lock);
	return first;
}

static struct letter *letter_new(enum letter_kind kind)
{
	struct letter *letter = calloc(1, sizeof(*letter));

	if (letter != NULL) {
		letter->kind = kind;
	}
	return letter;
}

void worker_hand(struct worker *worker, struct connection *connection)
{
	struct letter *letter = letter_new(LETTER_CONNECTION);

	if (letter == NULL) {
		(void)connection_free(connection);
		return;
	}
	letter->connection = connection;
	(void)atomic_fetch_add_explicit(&worker->n_connections, 1, memory_order_relaxed);
	post(worker, letter);
}

void worker_hand_statsd(struct worker *worker, struct statsd_stream *stream)
{
	struct letter *letter = letter_new(LETTER_STATSD);

	if (letter == NULL) {
		(void)statsd_stream_free(stream);
		return;
	}
	letter->stream = stream;
	(void)atomic_fetch_add_explicit(&worker->n_statsd_streams, 1, memory_order_relaxed);
	post(worker, letter);
}

int worker_send_settings(struct worker *worker, const struct settings *settings)
{
	struct letter *letter = letter_new(LETTER_SETTINGS);

	if (letter == NULL) {
		return -ENOMEM;
	}
	letter->settings = *settings;
	post(worker, letter);
	return 0;
}

struct letter *worker_letter_reloaded(struct reload_job *job)
{
	struct letter *letter = letter_new(LETTER_RELOADED);

	if (letter != NULL) {
		letter->job = job;
	}
	return letter;
}

void worker_send_reloaded(struct reload_job *job)
{
	struct letter *letter = job->letter;

	job->letter = NULL;
	post(job->worker, letter);
}

void worker_forget(struct worker *worker)
{
	(void)atomic_fetch_sub_explicit(&worker->n_connections, 1, memory_order_relaxed);
	if (worker->stopping && LIST_EMPTY(&worker->connections)) {
		(void)event_base_loopbreak(worker->base);
	}
}

/* ---- stopping ---- */

static void close_all(struct worker *worker)
{
	while (!LIST_EMPTY(&worker->connections)) {
		connection_close(LIST_FIRST(&worker->connections));
	}
}

static void on_stop_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct worker *worker = arg;

	(void)fd;
	(void)what;
	close_all(worker);
	(void)event_base_loopbreak(worker->base);
}

static void begin_stop(struct worker *worker, int64_t timeout_ns)
{
	struct timeval wait = clock_timeval(timeout_ns > 1000000 ? timeout_ns : 1000000);
	struct connection *connection, *next;

	worker->stopping = true;
	statsd_stop(worker->statsd);
	(void)event_add(&worker->stop_timer, &wait);
	for (connection = LIST_FIRST(&worker->connections); connection != NULL; connection = next) {
		/* It may be closed by this; no other one is. */
		next = LIST_NEXT(connection, link);
		connection_stop(connection);
	}
	if (LIST_EMPTY(&worker->connections)) {
		(void)event_base_loopbreak(worker->base);
	}
}

void worker_stop(struct worker *worker, int64_t timeout_ns)
{
	struct letter *letter = letter_new(LETTER_STOP);

	if (letter == NULL) {
		abort(); /* without memory for a few bytes nothing more can be promised */
	}
	letter->stop_timeout_ns = timeout_ns;
	post(worker, letter);
}

/* ---- the thread ---- */

static void open_letter(struct worker *worker, struct letter *letter)
{
	switch (letter->kind) {
	case LETTER_CONNECTION:
		stats_add(&worker->stats.connections_opened, letter->connection->settled ? 0 : 1);
		round_attach(letter->connection, worker);
		break;
	case LETTER_STATSD:
		statsd_attach(worker->statsd, letter->stream);
		break;
	case LETTER_SETTINGS:
		worker->settings = letter->settings;
		break;
	case LETTER_RELOADED:
		serve_reloaded(letter->job);
		break;
	case LETTER_STOP:
		begin_stop(worker, letter->stop_timeout_ns);
		break;
	}
	free(letter);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct worker *worker = arg;
	struct letter *letter, *next;
	uint64_t count;
	bool more;

	(void)what;
	(void)!read(fd, &count, sizeof(count));
	atomic_store_explicit(&worker->answered,
			      atomic_load_explicit(&worker->asked, memory_order_relaxed),
			      memory_order_relaxed);
	worker->time_left = 0;
	for (letter = take_letters(worker); letter != NULL; letter = next) {
		next = letter->next;
		open_letter(worker, letter);
	}
	keep_turn(worker);
	serve_waits(worker);
	more = giveback_more(worker);
	if (round_deferred(worker) || more) {
		worker_wake(worker); /* in the next turn, so that others have theirs */
	}
}

static void on_lease_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	serve_lease_tick(arg);
}

static void *run(void *arg)
{
	struct worker *worker = arg;
	char name[16];

	(void)snprintf(name, sizeof(name), "worker-%u", worker->index);
	(void)pthread_setname_np(pthread_self(), name);
	grace_register();
	(void)event_base_loop(worker->base, EVLOOP_NO_EXIT_ON_EMPTY);
	close_all(worker);
	keep_last(worker);
	/* All that was acknowledged is in the slots; from here on it is in the totals. */
	engine_leave(worker->engine);
	worker->engine = NULL;
	grace_unregister();
	return NULL;
}

static struct event_base *base_new(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (config != NULL) {
		(void)event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
		base = event_base_new_with_config(config);
		event_config_free(config);
	}
	return base;
}

int worker_open(struct worker *worker, struct daemon *daemon, unsigned index,
		const struct settings *settings)
{
	*worker = (struct worker){
		.daemon = daemon,
		.index = index,
		.settings = *settings,
		.in = ARENA_INIT(MESSAGE_ARENA_LIMIT),
		.out = ARENA_INIT(WORKER_ARENA_OUT),
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.wake_fd = -1,
	};
	worker->last = &worker->first;
	LIST_INIT(&worker->connections);
	SLIST_INIT(&worker->statsd_sockets);
	TAILQ_INIT(&worker->deferred);
	STAILQ_INIT(&worker->debts);
	worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (worker->wake_fd < 0) {
		return -errno;
	}
	worker->base = base_new();
	worker->scratch = malloc(WORKER_READ);
	worker->stage.bytes = malloc(OUTPUT_STAGE);
	if (worker->base == NULL || worker->scratch == NULL || worker->stage.bytes == NULL) {
		return -ENOMEM;
	}
	(void)event_assign(&worker->wake, worker->base, worker->wake_fd, EV_READ | EV_PERSIST,
			   on_wake, worker);
	(void)evtimer_assign(&worker->stop_timer, worker->base, on_stop_timeout, worker);
	(void)evtimer_assign(&worker->lease_timer, worker->base, on_lease_timer, worker);
	keep_init(&worker->keep, daemon->checkpoint.store != NULL, daemon->directory.seed);
	return event_add(&worker->wake, NULL) == 0 ? 0 : -ENOMEM;
}

int worker_enter(struct worker *worker)
{
	int r = engine_join(worker->daemon->engine, &worker->engine);

	return r > 0 ? -EBUSY
		     : r; /* a seat for each worker was asked for: none left is a fault of ours */
}

int worker_start(struct worker *worker)
{
	int r = pthread_create(&worker->thread, NULL, run, worker);

	worker->started = r == 0;
	return -r;
}

void worker_join(struct worker *worker)
{
	if (worker->started) {
		(void)pthread_join(worker->thread, NULL);
		worker->started = false;
	}
}

/* What other workers handed over while this one was ending: nothing of it was acknowledged. */
static void drop_letters(struct worker *worker)
{
	struct letter *letter, *next;

	for (letter = take_letters(worker); letter != NULL; letter = next) {
		next = letter->next;
		if (letter->kind == LETTER_CONNECTION) {
			(void)connection_free(letter->connection);
		} else if (letter->kind == LETTER_STATSD) {
			(void)statsd_stream_free(letter->stream);
		} else if (letter->kind == LETTER_RELOADED) {
			(void)reload_job_free(letter->job);
		}
		free(letter);
	}
}

void worker_close(struct worker *worker)
{
	if (worker->daemon == NULL) {
		return;
	}
	drop_letters(worker);
	if (worker->engine != NULL) {
		engine_leave(worker->engine);
	}
	worker->statsd = statsd_free(worker->statsd);
	if (worker->base != NULL) {
		event_base_free(worker->base);
	}
	if (worker->wake_fd >= 0) {
		(void)close(worker->wake_fd);
	}
	giveback_deinit(worker);
	keep_deinit(&worker->keep);
	lease_clock_deinit(&worker->lease_clock);
	free(worker->scratch);
	free(worker->stage.bytes);
	arena_deinit(&worker->in);
	arena_deinit(&worker->out);
	(void)pthread_mutex_destroy(&worker->lock);
	*worker = (struct worker){ .wake_fd = -1 };
}

/* ---- sessions ---- */

void worker_end_session(struct worker *worker, struct session *session)
{
	if (session->worker != NULL) {
		(void)event_del(&session->expiry);
	}
	session->connection = NULL;
	if (worker->stopping && !worker->keep.on) {
		giveback_forget(worker, session);
	} else {
		giveback_session(worker, session);
	}
	if (!keep_end(worker, session)) {
		directory_end(&worker->daemon->directory, session);
	}
}

static void on_expiry(evutil_socket_t fd, short what, void *arg)
{
	struct session *session = arg;

	(void)fd;
	(void)what;
	session->worker->time_left = 0;
	worker_end_session(session->worker, session);
}

void worker_release_session(struct worker *worker, struct session *session)
{
	struct timeval wait = clock_timeval(session->lifetime_ns);

	session->connection = NULL;
	if (worker->stopping && worker->keep.on) {
		return; /* it goes on in the state file */
	}
	if (session->lifetime_ns == 0 || worker->stopping ||
	    event_add(&session->expiry, &wait) != 0) {
		worker_end_session(worker, session);
	}
}

void worker_resume_session(struct worker *worker, struct session *session,
			   struct connection *connection)
{
	if (session->worker == NULL) {
		session->worker = worker;
		(void)evtimer_assign(&session->expiry, worker->base, on_expiry, session);
	} else {
		(void)event_del(&session->expiry);
	}
	session->connection = connection;
}
