/*
 * Leases, the program's side: open, wait, look, close. What goes on in between is in lease.c and try.c.
 */
#include "clients/c/client.h"
#include "clients/c/clock.h"
#include "clients/c/error.h"
#include "clients/c/include/ration.h"
#include "clients/c/lease.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

static int known_low_water(const struct ration_lease_options *options, int64_t want,
			   int64_t *ret_low_water)
{
	struct ration_lease_options known = RATION_LEASE_OPTIONS_INIT;

	if (options != NULL) {
		if (options->size < offsetof(struct ration_lease_options, low_water)) {
			return error_set(-EINVAL,
					 "options.size is %zu: begin with RATION_LEASE_OPTIONS_INIT",
					 options->size);
		}
		memcpy(&known, options,
		       options->size < sizeof(known) ? options->size : sizeof(known));
	}
	if (known.low_water < 0 || known.low_water > want) {
		return error_set(-EINVAL, "low_water is %lld: expected 0 to `want`",
				 (long long)known.low_water);
	}
	*ret_low_water = known.low_water > 0 ? known.low_water : want > 1 ? want / 2 : 1;
	return 0;
}

static int check(const struct ration *client, int64_t want, uint32_t ttl_ms)
{
	if (want < 1 || want > MESSAGE_MAX_AMOUNT) {
		return error_set(-EINVAL, "want is %lld: expected 1 to 2^62", (long long)want);
	}
	if (ttl_ms < LEASE_MIN_TTL_MS || ttl_ms > LEASE_MAX_TTL_MS) {
		return error_set(-EINVAL, "ttl_ms is %u: expected %u to %u", ttl_ms,
				 LEASE_MIN_TTL_MS, LEASE_MAX_TTL_MS);
	}
	if (client->link.lifetime_ms < LEASE_MIN_TTL_MS) {
		return error_set(-EINVAL,
				 "session_lifetime_ms is %u: with leases it must be %u or more",
				 client->link.lifetime_ms, LEASE_MIN_TTL_MS);
	}
	return 0;
}

/* Under the client's lock. */
static int lease_new(struct ration *client, const char *path, struct ration_lease **ret_lease)
{
	struct ration_lease *lease;
	struct ration_counter *counter = NULL;
	int r;

	if (client->leases.n >= LEASE_MAX) {
		return error_set(-ENOSPC, "there are %u leases already", LEASE_MAX);
	}
	r = counters_get(&client->counters, client, path, &counter);
	if (r < 0) {
		return r;
	}
	lease = aligned_alloc(STOCK_LINE, sizeof(*lease));
	if (lease == NULL) {
		return error_set(-ENOMEM, "no memory");
	}
	memset(lease, 0, sizeof(*lease));
	stock_init(&lease->stock);
	lease->client = client;
	lease->counter = counter;
	lease->code = -ENOTCONN;
	atomic_init(&lease->away, !link_is_up(&client->link));
	lease->next = client->leases.first;
	client->leases.first = lease;
	client->leases.n++;
	*ret_lease = lease;
	return 0;
}

struct ration_lease *ration_lease_open(struct ration *client, const char *path, int64_t want,
				       uint32_t ttl_ms, const struct ration_lease_options *options)
{
	struct ration_lease *lease = NULL;
	int64_t low_water = 0;
	int r;

	error_clear();
	r = check(client, want, ttl_ms);
	if (r == 0) {
		r = known_low_water(options, want, &low_water);
	}
	if (r < 0) {
		errno = -r;
		return NULL;
	}
	(void)pthread_mutex_lock(&client->lock);
	r = worker_start(client);
	if (r == 0) {
		r = lease_new(client, path, &lease);
	}
	if (lease != NULL) {
		lease->want = want;
		lease->low_water = low_water;
		lease->ttl_ms =
			ttl_ms < client->link.lifetime_ms ? ttl_ms : client->link.lifetime_ms;
		lease_due(lease);
		worker_hurry(client);
	}
	(void)pthread_mutex_unlock(&client->lock);
	if (r < 0) {
		errno = -r;
		return NULL;
	}
	return lease;
}

/* ---- looking ---- */

static bool has_units(const struct ration_lease *lease)
{
	return !stock_is_lapsed(&lease->stock) && stock_units(&lease->stock) > 0;
}

/* Why nothing came of it in time. */
static int not_in_time(const struct ration *client)
{
	if (!link_is_up(&client->link)) {
		return error_set(-ENOTCONN, "no daemon at %s: %s", client->address.url,
				 client->link.text);
	}
	return error_set(-ETIMEDOUT, "the daemon did not answer in time");
}

static int lease_wait(struct ration_lease *lease, int64_t deadline)
{
	struct ration *client = lease->client;
	uint64_t n_answers = lease->n_answers, n_unreachable = client->link.n_unreachable;
	int r = 0;

	while (!has_units(lease) && r == 0) {
		if (atomic_load_explicit(&lease->dead, memory_order_relaxed)) {
			return error_set(-EINVAL, "the lease is that of the parent process");
		}
		if (lease->n_answers != n_answers && lease->code > 0) {
			return error_set(lease->code, "%s", lease->text);
		}
		if (client->link.n_unreachable != n_unreachable) {
			return not_in_time(client);
		}
		r = client_wait(client, deadline);
	}
	return has_units(lease) ? 0 : not_in_time(client);
}

int ration_lease_wait(struct ration_lease *lease, int timeout_ms)
{
	int64_t deadline = clock_deadline(timeout_ms);
	struct ration *client = lease->client;
	int r;

	error_clear();
	(void)pthread_mutex_lock(&client->lock);
	if (!has_units(lease)) {
		atomic_store_explicit(&lease->called, true, memory_order_relaxed);
		lease->retry_at = 0;
		lease_due(lease);
		worker_hurry(client);
	}
	r = lease_wait(lease, deadline);
	(void)pthread_mutex_unlock(&client->lock);
	return r;
}

void ration_lease_get(struct ration_lease *lease, struct ration_lease_info *ret_info)
{
	struct ration *client = lease->client;
	struct ration_lease_info info = RATION_LEASE_INFO_INIT;
	size_t size = ret_info->size < sizeof(info) ? ret_info->size : sizeof(info);
	int64_t now, until;

	(void)pthread_mutex_lock(&client->lock);
	now = clock_now();
	until = atomic_load_explicit(&lease->expires_at, memory_order_relaxed) - now;
	/* The background may not have had a processor since. */
	lease_check_time(lease, now);
	info.size = ret_info->size;
	info.left = has_units(lease) ? stock_units(&lease->stock) : 0;
	info.spent = atomic_load_explicit(&lease->stock.charged, memory_order_relaxed) -
		     stock_units(&lease->stock) +
		     atomic_load_explicit(&lease->strays, memory_order_relaxed);
	info.opened = atomic_load_explicit(&lease->opened, memory_order_relaxed);
	info.expires_in_ms = until > 0 && !stock_is_lapsed(&lease->stock) ? until : 0;
	info.code = lease->code;
	(void)pthread_mutex_unlock(&client->lock);
	memcpy(ret_info, &info, size);
}

/* ---- closing ---- */

static void begin_closing(struct ration_lease *lease, int64_t *ret_left)
{
	struct operations *operations = &lease->client->operations;

	lease_report_opened(lease);
	(void)stock_empty(&lease->stock, ret_left);
	atomic_store_explicit(&lease->stock.low, INT64_MIN, memory_order_relaxed);
	lease->closing = true;
	lease->retry_at = 0;
	lease->final = lease->unspent - *ret_left;
	if (lease->ask.queued && operations_withdraw(operations, &lease->ask)) {
		lease->final += lease->reported;
		lease->reported = 0;
	}
	if (lease->question.queued) {
		(void)operations_withdraw(operations, &lease->question);
	}
	lease_due(lease);
}

/* The lease is given up in any case. */
static int wait_until_gone(struct ration_lease *lease, int64_t deadline)
{
	struct ration *client = lease->client;
	uint64_t n_unreachable = client->link.n_unreachable;
	int r = 0;

	lease_step_closing(lease, clock_now());
	while (!lease->gone && r == 0 && client->link.n_unreachable == n_unreachable) {
		worker_hurry(client);
		r = client_wait(client, deadline);
	}
	if (lease->gone) {
		(void)lease_free(lease);
		return 0;
	}
	lease->orphan = true;
	return not_in_time(client);
}

int ration_lease_close(struct ration_lease *lease, int timeout_ms, int64_t *ret_unspent)
{
	int64_t left = 0, deadline = clock_deadline(timeout_ms);
	struct ration *client;
	int r;

	error_clear();
	if (lease == NULL) {
		return 0;
	}
	client = lease->client;
	(void)pthread_mutex_lock(&client->lock);
	if (!lease->closing) {
		begin_closing(lease, &left);
	}
	r = wait_until_gone(lease, deadline);
	(void)pthread_mutex_unlock(&client->lock);
	if (ret_unspent != NULL) {
		*ret_unspent = left;
	}
	return r;
}
