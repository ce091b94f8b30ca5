#include "clients/c/lease.h"

#include "clients/c/client.h"
#include "clients/c/clock.h"
#include "clients/c/error.h"
#include "clients/c/include/ration.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

void lease_due(struct ration_lease *lease)
{
	lease->client->leases.due_at = 0;
}

void lease_call(struct ration_lease *lease)
{
	struct ration *client = lease->client;

	/* Pairs with leases_step. */
	if (!atomic_exchange_explicit(&client->leases.called, true, memory_order_acq_rel)) {
		worker_wake(client);
	}
}

/* ---- void ---- */

/* What was spent and is in no report that counts: of a counter it has happened, so it is added. */
static void add_spent(struct ration_lease *lease, int64_t n)
{
	if (n > 0 && lease->kind_known && lease->is_counter) {
		(void)outbox_add(&lease->client->outbox, lease->counter, n);
	}
}

/* The daemon has no such lease: its units are void, but for those that are out. */
static void make_void(struct ration_lease *lease, int64_t now)
{
	int64_t left = 0, out = stock_empty(&lease->stock, &left);

	add_spent(lease, lease->reported + (lease->closing ? lease->final : lease->unspent - left));
	(void)atomic_fetch_add_explicit(&lease->strays, out, memory_order_relaxed);
	atomic_store_explicit(&lease->stock.low, INT64_MIN, memory_order_relaxed);
	lease->held = false;
	lease->unspent = lease->reported = lease->final = 0;
	lease->retry_at = now;
	lease_due(lease);
}

/* ---- answers ---- */

static void note(struct ration_lease *lease, int code, const struct text *text)
{
	lease->code = code;
	lease->n_answers++;
	(void)snprintf(lease->text, sizeof(lease->text), "%.*s", (int)text->len, text->at);
	lease_due(lease);
}

static void note_refusal(struct ration_lease *lease, const struct leased *leased)
{
	const struct text refused = text_of("refused");

	note(lease, RATION_RESOURCE_EXHAUSTED, &refused);
	if (leased->n_bindings > 0) {
		const struct text *by = &leased->bindings[0].path;

		(void)snprintf(lease->text, sizeof(lease->text), "refused by %.*s", (int)by->len,
			       by->at);
	}
}

/* Refused: not before the daemon says that it may fit, and not sooner each time. */
static void back_off(struct ration_lease *lease, const struct leased *leased, int64_t now)
{
	int64_t after = 0;

	lease->backoff = lease->backoff == 0 ? LEASE_RETRY_MIN_MS : lease->backoff * 2;
	if (lease->backoff > LEASE_RETRY_MAX_MS) {
		lease->backoff = LEASE_RETRY_MAX_MS;
	}
	for (size_t i = 0; leased != NULL && i < leased->n_bindings; i++) {
		const struct binding *binding = &leased->bindings[i];

		if ((binding->kind == BINDING_MAX || binding->kind == BINDING_RATE) &&
		    binding->retry_after_ms > after) {
			after = binding->retry_after_ms;
		}
	}
	if (after == 0 || after > LEASE_RETRY_MAX_MS) {
		after = after == 0 ? lease->backoff : LEASE_RETRY_MAX_MS;
	}
	lease->retry_at = now + after;
}

static int64_t margin_of(int64_t ttl_ms)
{
	return ttl_ms / 16 > LEASE_MARGIN_MS ? ttl_ms / 16 : LEASE_MARGIN_MS;
}

/* The units may be spent for as long as both the lease and, without a connection, the session live: counted from the sending. */
static void extend(struct ration_lease *lease, uint32_t ttl_ms)
{
	const struct link *link = &lease->client->link;
	int64_t ttl = ttl_ms;

	ttl = ttl < link->lifetime_ms ? ttl : link->lifetime_ms;
	ttl = ttl < link->limits.max_lifetime_ms ? ttl : link->limits.max_lifetime_ms;
	lease->renew_at = lease->ask.sent_at + ttl / 2;
	/* Pairs with try_slow's look after it has lapsed the stock. */
	atomic_store_explicit(&lease->expires_at, lease->ask.sent_at + ttl - margin_of(ttl),
			      memory_order_release);
	stock_revive(&lease->stock);
}

static void take_leased(struct ration_lease *lease, const struct leased *leased, int64_t now)
{
	bool wanted =
		lease->ask.request.type == REQUEST_LEASE || lease->ask.request.lease_renew.want > 0;
	int64_t granted = leased->granted > 0 ? leased->granted : 0;
	const struct text text = text_of("");

	lease->reported = 0;
	lease->held = lease->held || granted > 0;
	atomic_store_explicit(&lease->called, false, memory_order_relaxed);
	if (wanted && granted == 0 && (!lease->held || leased->n_bindings > 0)) {
		note_refusal(lease, leased);
		back_off(lease, leased, now);
	} else {
		note(lease, RATION_OK, &text);
		lease->backoff = 0;
		lease->retry_at = now;
	}
	atomic_store_explicit(&lease->away, false, memory_order_relaxed);
	if (lease->closing) {
		/* Granted to nobody: it goes back with the LeaseReturn. */
		return;
	}
	lease->client->holds = lease->client->holds || granted > 0;
	lease->unspent += granted;
	stock_put(&lease->stock, granted);
	if (lease->held) {
		extend(lease, leased->ttl_ms);
	}
}

static void take_error(struct ration_lease *lease, const struct error_body *error, int64_t now)
{
	bool unknown = error->code == CODE_NOT_FOUND || error->code == CODE_FAILED_PRECONDITION;

	/* The report was not taken. */
	if (lease->closing) {
		lease->final += lease->reported;
	} else {
		lease->unspent += lease->reported;
	}
	lease->reported = 0;
	atomic_store_explicit(&lease->called, false, memory_order_relaxed);
	note(lease, (int)error->code, &error->text);
	atomic_store_explicit(&lease->away, false, memory_order_relaxed);
	if (lease->held && error->operation != 0 && (unknown || lease->closing)) {
		make_void(lease, now);
	} else {
		back_off(lease, NULL, now);
	}
}

static struct ration_lease *lease_of(struct operation *operation, size_t offset)
{
	return (struct ration_lease *)(void *)((char *)operation - offset);
}

static void take_answer(struct operation *operation, enum operation_end end,
			const struct reply *reply, int64_t now)
{
	struct ration_lease *lease = lease_of(operation, offsetof(struct ration_lease, ask));

	if (end != OPERATION_ANSWERED) {
		/* leases_lost follows. */
		return;
	}
	if (reply->type == REPLY_LEASED) {
		take_leased(lease, &reply->leased, now);
	} else if (reply->type == REPLY_LEASE_RETURNED) {
		lease->held = false;
		lease->reported = lease->final = 0;
		lease_due(lease);
	} else {
		take_error(lease, &reply->error, now);
	}
}

static void take_uncharged(struct operation *operation, enum operation_end end,
			   const struct reply *reply, int64_t now)
{
	/* Refused or lost: the session holds them, or they are gone with it. */
	(void)end;
	(void)reply;
	(void)now;
	lease_due(lease_of(operation, offsetof(struct ration_lease, uncharge)));
}

static void take_kind(struct operation *operation, enum operation_end end,
		      const struct reply *reply, int64_t now)
{
	struct ration_lease *lease = lease_of(operation, offsetof(struct ration_lease, question));

	(void)now;
	if (end == OPERATION_ANSWERED && reply->type == REPLY_METRIC) {
		lease->kind_known = true;
		lease->is_counter = reply->metric.kind == KIND_COUNTER;
	}
	lease_due(lease);
}

/* ---- asking ---- */

static struct text path_of(const struct ration_lease *lease)
{
	return (struct text){ .at = lease->counter->path, .len = lease->counter->path_len };
}

static void ask(struct ration_lease *lease, const struct request *request)
{
	lease->ask = (struct operation){ .request = *request,
					 .take = take_answer,
					 .dies_with_session = true,
					 .waits_for_daemon = true };
	operations_add(&lease->client->operations, &lease->ask);
}

static void ask_kind(struct ration_lease *lease)
{
	const char *slash = memchr(lease->counter->path, '/', lease->counter->path_len);
	struct text metric = path_of(lease);

	if (lease->kind_known || lease->question.queued) {
		return;
	}
	metric.len = slash == NULL ? metric.len : (size_t)(slash - metric.at);
	lease->question =
		(struct operation){ .request = { .type = REQUEST_METRIC_GET, .metric_get = metric },
				    .take = take_kind,
				    .dies_with_session = true,
				    .waits_for_daemon = true };
	operations_add(&lease->client->operations, &lease->question);
}

static void begin(struct ration_lease *lease)
{
	const struct request request = {
		.type = REQUEST_LEASE,
		.lease = { .lease = ++lease->client->leases.next_id,
			   .ttl_ms = lease->ttl_ms,
			   .path = path_of(lease),
			   .want = lease->want },
	};

	lease->id = request.lease.lease;
	ask(lease, &request);
	ask_kind(lease);
}

static void renew(struct ration_lease *lease)
{
	int64_t units = stock_units(&lease->stock), back = units - lease->unspent;
	struct request request = { .type = REQUEST_LEASE_RENEW,
				   .lease_renew = { .lease = lease->id, .want = lease->want } };

	if (back <= 0) {
		request.lease_renew.spent = lease->reported = -back;
		lease->unspent = units;
	} else {
		/* What was given back is in the stock already. */
		request.lease_renew.want =
			lease->want - back > lease->unspent ? lease->want - back : 0;
	}
	ask(lease, &request);
}

static void finish(struct ration_lease *lease)
{
	const struct request request = {
		.type = REQUEST_LEASE_RETURN,
		.lease_return = { .lease = lease->id, .spent = lease->final },
	};

	lease->reported = lease->final;
	lease->final = 0;
	ask(lease, &request);
}

/* n units that the session holds. */
static void uncharge(struct ration_lease *lease, int64_t n)
{
	lease->uncharge = (struct operation){
		.request = { .type = REQUEST_UNCHARGE,
			     .uncharge = { .path = path_of(lease), .amount = n } },
		.take = take_uncharged,
		.dies_with_session = true,
		.waits_for_daemon = true,
	};
	operations_add(&lease->client->operations, &lease->uncharge);
}

/* Of what is in the stock beyond `want`, give back what the daemon does not have as unspent. */
static void give_back(struct ration_lease *lease)
{
	int64_t units = stock_units(&lease->stock);
	int64_t held = units - lease->unspent, above = units - lease->want, n;

	if (lease->uncharge.queued || held <= 0 || above <= 0) {
		return;
	}
	n = stock_remove(&lease->stock, held < above ? held : above);
	if (n > 0) {
		uncharge(lease, n);
	}
}

/* ---- turns ---- */

void lease_step_closing(struct ration_lease *lease, int64_t now)
{
	if (lease->final < 0 && !lease->uncharge.queued) {
		uncharge(lease, -lease->final);
		lease->final = 0;
	}
	if (lease->held && !lease->ask.queued && lease->final >= 0 && now >= lease->retry_at) {
		finish(lease);
	}
	lease->gone = !lease->held && !lease->ask.queued && !lease->uncharge.queued &&
		      !lease->question.queued;
}

void lease_report_opened(struct ration_lease *lease)
{
	int64_t opened = atomic_load_explicit(&lease->opened, memory_order_relaxed);

	if (lease->kind_known && opened > lease->opened_added) {
		add_spent(lease, opened - lease->opened_added);
		lease->opened_added = opened;
	}
}

/*
 * Let tries call for more; true: more is needed already, and the daemon has not just refused it. (After a refusal it takes another try.)
 */
static bool arm(struct ration_lease *lease)
{
	if (atomic_load_explicit(&lease->stock.low, memory_order_relaxed) != INT64_MIN) {
		return false;
	}
	atomic_store_explicit(&lease->stock.low, lease->low_water, memory_order_relaxed);
	return lease->backoff == 0 && stock_units(&lease->stock) < lease->low_water;
}

void lease_check_time(struct ration_lease *lease, int64_t now)
{
	if (!stock_is_lapsed(&lease->stock) &&
	    now >= atomic_load_explicit(&lease->expires_at, memory_order_relaxed)) {
		stock_lapse(&lease->stock);
		atomic_store_explicit(&lease->away, true, memory_order_relaxed);
	}
}

static void step_open(struct ration_lease *lease, int64_t now)
{
	bool called;

	lease_check_time(lease, now);
	lease_report_opened(lease);
	if (atomic_exchange_explicit(&lease->over, false, memory_order_relaxed)) {
		give_back(lease);
	}
	if (lease->ask.queued) {
		return;
	}
	called = atomic_load_explicit(&lease->called, memory_order_relaxed);
	if (!lease->held) {
		if (now >= lease->retry_at) {
			begin(lease);
		}
	} else if (now >= lease->renew_at || (now >= lease->retry_at && (called || arm(lease)))) {
		renew(lease);
	}
}

/* When there is something to do, if nothing happens. */
static int64_t due_at(const struct ration_lease *lease)
{
	int64_t expires = atomic_load_explicit(&lease->expires_at, memory_order_relaxed);
	int64_t at = lease->held && !stock_is_lapsed(&lease->stock) ? expires : CLOCK_NEVER;

	if (lease->ask.queued) {
		return at;
	}
	if (lease->closing) {
		return lease->held ? lease->retry_at : CLOCK_NEVER;
	}
	if (lease->held && lease->renew_at < at) {
		at = lease->renew_at;
	}
	if (!lease->held ||
	    atomic_load_explicit(&lease->stock.low, memory_order_relaxed) == INT64_MIN) {
		at = lease->retry_at < at ? lease->retry_at : at;
	}
	return at;
}

struct ration_lease *lease_free(struct ration_lease *lease)
{
	struct leases *leases = &lease->client->leases;
	struct ration_lease **at = &leases->first;

	while (*at != lease) {
		at = &(*at)->next;
	}
	*at = lease->next;
	leases->n--;
	free(lease);
	return NULL;
}

void leases_step(struct ration *client, int64_t now)
{
	struct leases *leases = &client->leases;
	struct ration_lease *next;

	/* Pairs with lease_call. */
	if (!atomic_exchange_explicit(&leases->called, false, memory_order_acq_rel) &&
	    now < leases->due_at) {
		return;
	}
	leases->due_at = CLOCK_NEVER;
	for (struct ration_lease *lease = leases->first; lease != NULL; lease = next) {
		int64_t due;

		next = lease->next;
		if (lease->closing) {
			lease_step_closing(lease, now);
		} else {
			step_open(lease, now);
		}
		due = due_at(lease);
		leases->due_at = due < leases->due_at ? due : leases->due_at;
		if (lease->gone && lease->orphan) {
			(void)lease_free(lease);
		}
	}
}

int64_t leases_deadline(const struct leases *leases)
{
	return leases->first == NULL ? CLOCK_NEVER : leases->due_at;
}

/* ---- the connection ---- */

void leases_away(struct ration *client)
{
	for (struct ration_lease *lease = client->leases.first; lease != NULL;
	     lease = lease->next) {
		atomic_store_explicit(&lease->away, true, memory_order_relaxed);
	}
}

void leases_back(struct ration *client)
{
	for (struct ration_lease *lease = client->leases.first; lease != NULL;
	     lease = lease->next) {
		atomic_store_explicit(&lease->away, false, memory_order_relaxed);
	}
}

void leases_lost(struct ration *client, int64_t now)
{
	for (struct ration_lease *lease = client->leases.first; lease != NULL;
	     lease = lease->next) {
		make_void(lease, now);
		lease->backoff = 0;
	}
}

void leases_forget(struct leases *leases)
{
	for (struct ration_lease *lease = leases->first; lease != NULL; lease = lease->next) {
		int64_t left;

		atomic_store_explicit(&lease->dead, true, memory_order_relaxed);
		(void)stock_empty(&lease->stock, &left);
		atomic_store_explicit(&lease->stock.low, INT64_MIN, memory_order_relaxed);
		lease->held = false;
		lease->unspent = lease->reported = lease->final = 0;
		lease->closing = lease->gone = true;
		lease->ask.queued = lease->uncharge.queued = lease->question.queued = false;
	}
	leases->due_at = CLOCK_NEVER;
}

void leases_free(struct leases *leases)
{
	while (leases->first != NULL) {
		(void)lease_free(leases->first);
	}
}
