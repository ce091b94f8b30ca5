#include "clients/c/client.h"

#include "clients/c/call.h"
#include "clients/c/charge.h"
#include "clients/c/clock.h"
#include "clients/c/error.h"
#include "clients/c/fork.h"
#include "clients/c/include/ration.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_URL "unix:/run/rationd/rationd.sock"

/* ---- options ---- */

#define MAX_LIFETIME_MS 86400000u

struct range {
	const char *name;
	uint64_t min, max, fallback;
};

static const struct range INTERVAL = { "send_interval_ms", 1, 60000, 50 };
static const struct range UNACKNOWLEDGED = { "max_unacknowledged", 64 << 10, 1 << 30, 4 << 20 };
static const struct range COUNTERS = { "max_counters", 1, 1 << 26, 1000000 };

/* 0 stands for the default. */
static int pick(const struct range *range, uint64_t value, uint64_t *ret_value)
{
	if (value == 0) {
		value = range->fallback;
	}
	if (value < range->min || value > range->max) {
		return error_set(-EINVAL, "%s is %llu: expected %llu to %llu, or 0 for the default",
				 range->name, (unsigned long long)value,
				 (unsigned long long)range->min, (unsigned long long)range->max);
	}
	*ret_value = value;
	return 0;
}

/* What the program knows of the options: it may have been compiled with an older or a newer header. */
static int read_options(const struct ration_options *options, struct ration_options *ret_known)
{
	struct ration_options known = RATION_OPTIONS_INIT;

	if (options != NULL) {
		if (options->size < offsetof(struct ration_options, session_lifetime_ms)) {
			return error_set(-EINVAL,
					 "options.size is %zu: begin with RATION_OPTIONS_INIT",
					 options->size);
		}
		memcpy(&known, options,
		       options->size < sizeof(known) ? options->size : sizeof(known));
	}
	*ret_known = known;
	return 0;
}

static int apply_options(struct ration *client, const struct ration_options *options,
			 uint32_t *ret_max_counters)
{
	uint64_t interval = 0, unacknowledged = 0, counters = 0;
	struct ration_options known = RATION_OPTIONS_INIT;
	int r;

	r = read_options(options, &known);
	if (r == 0 && known.session_lifetime_ms > MAX_LIFETIME_MS) {
		r = error_set(-EINVAL, "session_lifetime_ms is %u: expected 0 to %u",
			      known.session_lifetime_ms, MAX_LIFETIME_MS);
	}
	if (r == 0) {
		r = pick(&INTERVAL, known.send_interval_ms, &interval);
	}
	if (r == 0) {
		r = pick(&UNACKNOWLEDGED, known.max_unacknowledged, &unacknowledged);
	}
	if (r == 0) {
		r = pick(&COUNTERS, known.max_counters, &counters);
	}
	if (r < 0) {
		return r;
	}
	client->send_interval_ms = (uint32_t)interval;
	client->link.lifetime_ms = known.session_lifetime_ms;
	client->link.max_unacknowledged = unacknowledged;
	client->losses.on_loss = known.on_loss;
	client->losses.ctx = known.ctx;
	*ret_max_counters = (uint32_t)counters;
	return 0;
}

/* ---- opening ---- */

int client_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;
	int r;

	r = pthread_condattr_init(&attributes);
	if (r == 0) {
		(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
		r = pthread_cond_init(cond, &attributes);
		(void)pthread_condattr_destroy(&attributes);
	}
	return -r;
}

/* Accepts the half-built client; its thread is not running. */
static struct ration *client_free(struct ration *client)
{
	link_deinit(&client->link);
	charges_forget(operations_forget(&client->operations));
	leases_free(&client->leases);
	outbox_deinit(&client->outbox);
	losses_drop(&client->losses);
	counters_deinit(&client->counters);
	(void)call_free(client->call);
	(void)pthread_cond_destroy(&client->progress);
	(void)pthread_mutex_destroy(&client->lock);
	free(client);
	return NULL;
}
DEFINE_CLEANUP(struct ration *, client_free);

static struct ration *client_alloc(void)
{
	struct ration *client = calloc(1, sizeof(*client));

	if (client != NULL) {
		client->worker = (struct worker)WORKER_INIT;
		client->link.stream = (struct stream)STREAM_INIT;
		(void)pthread_mutex_init(&client->lock, NULL);
		(void)client_cond_init(&client->progress);
	}
	return client;
}

/* All but the thread. */
static int client_new(const char *url, const struct ration_options *options,
		      struct ration **ret_client)
{
	_cleanup_(client_freep) struct ration *client = client_alloc();
	uint32_t max_counters = 0;
	int r;

	if (client == NULL) {
		return -ENOMEM;
	}
	r = dial_parse(url, &client->address);
	if (r == 0) {
		r = apply_options(client, options, &max_counters);
	}
	if (r < 0) {
		return r;
	}
	r = counters_init(&client->counters, max_counters);
	if (r < 0) {
		return r;
	}
	outbox_init(&client->outbox, &client->counters, &client->losses);
	client->link.address = &client->address;
	client->link.outbox = &client->outbox;
	client->link.counters = &client->counters;
	client->link.losses = &client->losses;
	operations_init(&client->operations, client->link.max_unacknowledged);
	client->link.operations = &client->operations;
	client->link.client = client;
	r = link_init(&client->link);
	if (r == 0) {
		r = call_new(&client->address, &client->call);
	}
	if (r < 0) {
		return r;
	}
	*ret_client = client;
	client = NULL;
	return 0;
}

static const char *default_url(void)
{
	const char *url = getenv("RATIOND_SOCKET");

	return url == NULL || *url == '\0' ? DEFAULT_URL : url;
}

static struct ration *open_failed(int r)
{
	if (*ration_error() == '\0') {
		(void)error_set(r, "%s", strerror(-r));
	}
	errno = -r;
	return NULL;
}

struct ration *ration_open(const char *url, const struct ration_options *options)
{
	struct ration *client = NULL;
	int r;

	error_clear();
	r = fork_setup();
	if (r == 0) {
		r = client_new(url == NULL ? default_url() : url, options, &client);
	}
	if (client == NULL) {
		return open_failed(r);
	}
	fork_enlist(client);
	(void)pthread_mutex_lock(&client->lock);
	r = worker_start(client);
	(void)pthread_mutex_unlock(&client->lock);
	if (r < 0) {
		fork_unlist(client);
		(void)client_free(client);
		return open_failed(r);
	}
	return client;
}

/* ---- counters ---- */

struct ration_counter *ration_counter(struct ration *client, const char *path)
{
	struct ration_counter *counter = NULL;
	int r;

	error_clear();
	(void)pthread_mutex_lock(&client->lock);
	r = counters_get(&client->counters, client, path, &counter);
	(void)pthread_mutex_unlock(&client->lock);
	if (r < 0) {
		errno = -r;
		return NULL;
	}
	return counter;
}

/* ---- waiting ---- */

int client_wait(struct ration *client, int64_t deadline)
{
	struct timespec until = clock_timespec(deadline);
	int r;

	client->n_waiting++;
	r = deadline == CLOCK_NEVER
		    ? pthread_cond_wait(&client->progress, &client->lock)
		    : pthread_cond_timedwait(&client->progress, &client->lock, &until);
	client->n_waiting--;
	return -r;
}

/* ---- flushing ---- */

/* Without a connection nobody knows whether the daemon still has what is kept. */
static bool is_settled(const struct ration *client, uint64_t ticket)
{
	const struct outbox *outbox = &client->outbox;

	return outbox_settled(outbox, ticket) &&
	       (link_is_up(&client->link) || !outbox_keeps(outbox, ticket));
}

static bool is_flushed(const struct ration *client, uint64_t ticket)
{
	return is_settled(client, ticket) && is_settled(client, client->outbox.given_back) &&
	       losses_settled(&client->losses);
}

/* Wait under the client's lock until what was handed to the outbox so far is settled. 0, -ETIMEDOUT. */
static int wait_until_flushed(struct ration *client, int64_t deadline)
{
	uint64_t ticket = client->outbox.tickets_given;
	int r = 0;

	worker_hurry(client);
	while (!is_flushed(client, ticket) && r == 0) {
		r = client_wait(client, deadline);
	}
	return is_flushed(client, ticket) ? 0 : -ETIMEDOUT;
}

/* Then until the daemon has it in its file. 0, -ETIMEDOUT, or a code that it answered. */
static int wait_until_durable(struct ration *client, int64_t deadline)
{
	struct commit *commit = &client->link.commit;
	uint64_t ticket = commit_want(commit, client->outbox.next_number);
	int r = 0;

	worker_hurry(client);
	while (commit->done < ticket && r == 0) {
		r = client_wait(client, deadline);
	}
	if (commit->done < ticket) {
		return -ETIMEDOUT;
	}
	return commit->code == 0 ? 0 : error_set(commit->code, "%s", commit->text);
}

static int not_flushed(const struct ration *client, int r, bool durable)
{
	if (r == -ETIMEDOUT && !link_is_up(&client->link)) {
		return error_set(-ENOTCONN, "not connected to the daemon at %s: %s",
				 client->address.url, client->link.text);
	}
	if (r == -ETIMEDOUT) {
		return error_set(r, durable ? "the daemon has not written everything in time"
					    : "the daemon has not acknowledged everything in time");
	}
	return r;
}

/* Under the client's lock. */
static int flush(struct ration *client, int64_t deadline, bool durable)
{
	int r = 0;

	outbox_collect(&client->outbox);
	if (durable || !is_flushed(client, client->outbox.tickets_given)) {
		r = worker_start(client);
		if (r < 0) {
			return error_set(r, "the background thread can't be started: %s",
					 strerror(-r));
		}
		r = wait_until_flushed(client, deadline);
	}
	while (durable && r == 0) {
		r = wait_until_durable(client, deadline);
		/* If the daemon was started anew meanwhile it may have refused what was sent to it again. */
		if (r == 0 && is_flushed(client, client->outbox.given_back)) {
			return 0;
		}
		r = r == 0 ? wait_until_flushed(client, deadline) : r;
	}
	return not_flushed(client, r, durable);
}

static int flush_locked(struct ration *client, int64_t deadline, bool durable)
{
	int r;

	(void)pthread_mutex_lock(&client->lock);
	r = flush(client, deadline, durable);
	(void)pthread_mutex_unlock(&client->lock);
	return r;
}

int ration_flush(struct ration *client, int timeout_ms)
{
	error_clear();
	return flush_locked(client, clock_deadline(timeout_ms), /* durable= */ false);
}

int ration_flush_durable(struct ration *client, int timeout_ms)
{
	error_clear();
	return flush_locked(client, clock_deadline(timeout_ms), /* durable= */ true);
}

/* ---- closing ---- */

/* Report what is in no acknowledged batch; returns how much that is. */
static uint64_t report_undelivered(struct ration *client)
{
	uint64_t undelivered;

	(void)pthread_mutex_lock(&client->lock);
	/* What was spent of them, and is not reported, nobody will report. */
	leases_lost(client, clock_now());
	outbox_collect(&client->outbox);
	undelivered = outbox_give_up(&client->outbox);
	(void)losses_deliver(&client->losses, &client->lock);
	(void)pthread_mutex_unlock(&client->lock);
	return undelivered;
}

static bool is_finished(const struct ration *client)
{
	for (const struct ration_lease *lease = client->leases.first; lease != NULL;
	     lease = lease->next) {
		if (lease->closing && !lease->gone) {
			return false;
		}
	}
	return client->operations.n == 0;
}

/* Leases that go on being returned, charges that are to be undone. */
static void finish_operations(struct ration *client, int64_t deadline)
{
	(void)pthread_mutex_lock(&client->lock);
	while (client->worker.running && !is_finished(client) &&
	       client_wait(client, deadline) == 0) {
	}
	(void)pthread_mutex_unlock(&client->lock);
}

/* An answer to End is not waited for any longer than this: nothing depends on it. */
#define END_MS 1000

static bool end_politely(struct ration *client, int64_t deadline)
{
	int64_t soon = clock_deadline(END_MS);

	return is_flushed(client, client->outbox.tickets_given) && client->operations.n == 0 &&
	       link_end_session(&client->link, deadline < soon ? deadline : soon) == 0;
}

/*
 * The session is over now, not when its lifetime is: the daemon need not remember it, and what it holds goes back. Where End is not
 * enough, because something is left that nobody will wait for or the daemon does not know it: say Hello once more, with no lifetime.
 */
static void end_session(struct ration *client, int64_t deadline)
{
	const struct hello hello = {
		.version = MESSAGE_VERSION,
		.session = { .at = (const char *)client->link.session,
			     .len = sizeof(client->link.session) },
		.next_batch = client->outbox.next_number,
		.agent = text_of("libration/" RATION_VERSION),
		.next_operation = client->operations.next_number,
	};

	if (client->link.lifetime_ms == 0 || !link_is_up(&client->link)) {
		return;
	}
	if (!end_politely(client, deadline) && client->holds) {
		stream_close(&client->link.stream);
		(void)call_hello(client->call, &hello, deadline);
	}
}

int ration_close(struct ration *client, int timeout_ms, uint64_t *ret_undelivered)
{
	int64_t deadline = clock_deadline(timeout_ms);
	uint64_t undelivered;

	error_clear();
	if (client == NULL) {
		return 0;
	}
	(void)flush_locked(client, deadline, /* durable= */ false);
	finish_operations(client, deadline);
	fork_unlist(client);
	worker_stop(client);
	end_session(client, deadline);
	undelivered = report_undelivered(client);
	(void)client_free(client);
	if (ret_undelivered != NULL) {
		*ret_undelivered = undelivered;
	}
	return undelivered == 0 ? 0 : -ETIMEDOUT;
}
