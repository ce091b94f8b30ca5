/*
 * Charges and their return: on the caller's thread, by way of the session's connection. A caller that has no answer in time leaves its charge
 * behind, to be undone as soon as it is known to be granted.
 */
#include "clients/c/charge.h"
#include "clients/c/call.h"
#include "clients/c/client.h"
#include "clients/c/clock.h"
#include "clients/c/error.h"
#include "clients/c/include/ration.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- results ---- */

void charge_window(const struct rule_window *window, struct ration_window *ret_window)
{
	*ret_window = (struct ration_window){
		.kind = (enum ration_window_kind)window->kind,
		.unit = (enum ration_window_unit)window->unit,
		.duration_ms = window->duration_ms,
	};
}

/* One block: the result, its bindings, their paths. */
struct ration_charge_result *charge_result(const struct charged *charged)
{
	size_t size = sizeof(struct ration_charge_result) +
		      charged->n_bindings * sizeof(struct ration_binding);
	struct ration_charge_result *result;
	struct ration_binding *bindings;
	char *text;

	for (size_t i = 0; i < charged->n_bindings; i++) {
		size += charged->bindings[i].path.len + 1;
	}
	result = calloc(1, size);
	if (result == NULL) {
		return NULL;
	}
	bindings = (struct ration_binding *)(void *)(result + 1);
	text = (char *)(bindings + charged->n_bindings);
	*result = (struct ration_charge_result){
		.granted = charged->granted,
		.n_bindings = charged->n_bindings,
		.bindings = bindings,
		.n_omitted = charged->omitted,
	};
	for (size_t i = 0; i < charged->n_bindings; i++) {
		const struct binding *from = &charged->bindings[i];

		bindings[i] = (struct ration_binding){
			.kind = (enum ration_binding_kind)from->kind,
			.path = text,
			.limit = from->limit,
			.usage = from->usage,
			.left = from->left,
			.retry_after_ms = from->retry_after_ms,
		};
		charge_window(&from->window, &bindings[i].window);
		memcpy(text, from->path.at, from->path.len);
		text += from->path.len + 1;
	}
	return result;
}

void ration_charge_result_free(struct ration_charge_result *result)
{
	free(result);
}

/* ---- one charge or uncharge under way ---- */

/* One block with its items and their paths. */
struct charging {
	struct operation operation;
	struct ration *client;
	pthread_cond_t answered;
	bool waited_for; /* by the thread that asked; else it frees itself */
	bool done;
	bool detached;
	int result;
	char text[256];
	struct ration_charge_result *answer,
		*spare; /* spare: for a grant that comes when there is no memory */
	size_t n_items, n_undone;
	struct charge_item items[];
};

static struct charging *charging_free(struct charging *charging)
{
	if (charging != NULL) {
		free(charging->answer);
		free(charging->spare);
		(void)pthread_cond_destroy(&charging->answered);
		free(charging);
	}
	return NULL;
}

static struct charging *charging_new(struct ration *client, const struct ration_charge_item *items,
				     size_t n)
{
	size_t size = sizeof(struct charging) + n * sizeof(struct charge_item);
	const struct charged none = { .granted = true };
	struct charging *charging;
	char *text;

	for (size_t i = 0; i < n; i++) {
		size += strlen(items[i].path);
	}
	charging = calloc(1, size);
	if (charging == NULL) {
		return NULL;
	}
	(void)client_cond_init(&charging->answered);
	charging->client = client;
	charging->n_items = n;
	text = (char *)(charging->items + n);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(items[i].path);

		memcpy(text, items[i].path, len);
		charging->items[i] = (struct charge_item){ .path = { .at = text, .len = len },
							   .amount = items[i].amount };
		text += len;
	}
	charging->spare = charge_result(&none);
	return charging->spare == NULL ? charging_free(charging) : charging;
}

/* Granted, and nobody wants it: uncharge item by item. True if another one is under way. */
static bool undo(struct charging *charging)
{
	const struct charge_item *item = &charging->items[charging->n_undone];

	if (charging->n_undone == charging->n_items) {
		return false;
	}
	charging->n_undone++;
	charging->operation.request = (struct request){
		.type = REQUEST_UNCHARGE,
		.uncharge = { .path = item->path,
			      .amount = item->amount,
			      .detached = charging->detached },
	};
	/* What the session held is given back with it; detached it must be. */
	charging->operation.dies_with_session = !charging->detached;
	charging->operation.unwanted = false;
	charging->operation.waits_for_daemon = true;
	operations_add(&charging->client->operations, &charging->operation);
	return true;
}

static void finish(struct charging *charging, int result, const char *text, size_t len)
{
	charging->result = result;
	charging->done = true;
	len = len < sizeof(charging->text) - 1 ? len : sizeof(charging->text) - 1;
	memcpy(charging->text, text, len);
	charging->text[len] = '\0';
	(void)pthread_cond_signal(&charging->answered);
}

static void take_charged(struct charging *charging, const struct charged *charged)
{
	charging->answer = charge_result(charged);
	if (charging->answer == NULL) {
		charging->answer = charging->spare;
		charging->spare = NULL;
		charging->answer->granted = charged->granted;
		charging->answer->n_omitted = charged->omitted + (uint32_t)charged->n_bindings;
	}
	if (charged->granted) {
		charging->client->holds = true;
		finish(charging, 0, "", 0);
	} else {
		finish(charging, RATION_RESOURCE_EXHAUSTED, "", 0);
	}
}

/* Nobody waits for it any more. */
static void take_unwanted(struct charging *charging, enum operation_end end,
			  const struct reply *reply)
{
	bool granted =
		end == OPERATION_ANSWERED && reply->type == REPLY_CHARGED && reply->charged.granted;
	bool undoing = charging->n_undone > 0 && end == OPERATION_ANSWERED;

	if (!((granted || undoing) && undo(charging))) {
		(void)charging_free(charging);
	}
}

static void take(struct operation *operation, enum operation_end end, const struct reply *reply,
		 int64_t now)
{
	/* The operation comes first in it. */
	struct charging *charging = (struct charging *)(void *)operation;
	struct ration *client = charging->client;
	static const char lost[] = "the daemon has forgotten the session, and what it held";

	(void)now;
	if (!charging->waited_for) {
		take_unwanted(charging, end, reply);
	} else if (end == OPERATION_UNREACHABLE) {
		finish(charging, -ENOTCONN, client->link.text, strlen(client->link.text));
	} else if (end == OPERATION_LOST) {
		finish(charging, -ECANCELED, lost, sizeof(lost) - 1);
	} else if (reply->type == REPLY_CHARGED) {
		take_charged(charging, &reply->charged);
	} else if (reply->type == REPLY_UNCHARGED) {
		finish(charging, 0, "", 0);
	} else if (reply->error.code == CODE_OK || reply->error.code > INT32_MAX) {
		finish(charging, -EBADMSG, "the daemon sent an error without a code", 39);
	} else {
		finish(charging, (int)reply->error.code, reply->error.text.at,
		       reply->error.text.len);
	}
}
_Static_assert(offsetof(struct charging, operation) == 0, "take() relies on it");

void charges_forget(struct operation *operations)
{
	while (operations != NULL) {
		struct operation *next = operations->next;

		if (operations->take == take) {
			struct charging *charging = (struct charging *)(void *)operations;

			/* Not the condition: in the child of a fork it seems to be waited for. */
			free(charging->answer);
			free(charging->spare);
			free(charging);
		}
		operations = next;
	}
}

/* ---- asking ---- */

/* Can it be sent at all? Numbers take up to 10 bytes more than they do now, and what is known of it 16. */
static int check_size(const struct request *request)
{
	_cleanup_(arena_deinit) struct arena arena = ARENA_INIT(MESSAGE_ARENA_LIMIT);
	const uint8_t *bytes;
	size_t len;
	int r;

	r = request_encode(&arena, request, &bytes, &len);
	if (r == 0 && len > MESSAGE_MAX_FRAME - 64) {
		r = -EMSGSIZE;
	}
	if (r == -EMSGSIZE) {
		return error_set(r, "the request does not fit a message of the protocol");
	}
	return r < 0 ? error_set(r, "%s", strerror(-r)) : 0;
}

/* The time is over. What was never sent was not done; else leave it behind, a charge to be undone, an uncharge to be done. */
static int abandon(struct charging *charging)
{
	struct ration *client = charging->client;
	bool is_charge = charging->operation.request.type == REQUEST_CHARGE;
	bool is_up = link_is_up(&client->link);

	if ((is_charge || !is_up) &&
	    operations_withdraw(&client->operations, &charging->operation)) {
		(void)charging_free(charging);
	} else {
		charging->waited_for = false;
		charging->operation.unwanted = is_charge;
		charging->operation.dies_with_session |= is_charge;
		is_up = true;
	}
	if (!is_up) {
		return error_set(-ENOTCONN, "no daemon at %s: %s", client->address.url,
				 client->link.text);
	}
	return error_set(-ETIMEDOUT, "the daemon did not answer in time");
}

static int refused(const struct ration_charge_result *result)
{
	if (result->n_bindings == 0) {
		return error_set(RATION_RESOURCE_EXHAUSTED, "refused");
	}
	return error_set(RATION_RESOURCE_EXHAUSTED, "refused by %s", result->bindings[0].path);
}

static int result_of(struct charging *charging, struct ration_charge_result **ret_result)
{
	int r = charging->result;

	if (r == -ENOTCONN) {
		(void)error_set(r, "no daemon at %s: %s", charging->client->address.url,
				charging->text);
	} else if (charging->answer != NULL && !charging->answer->granted) {
		(void)refused(charging->answer);
	} else if (r != 0) {
		(void)error_set(r, "%s", charging->text);
	}
	if (ret_result != NULL) {
		*ret_result = charging->answer;
		charging->answer = NULL;
	}
	(void)charging_free(charging);
	return r;
}

/* Queue it and wait; it is freed, or left behind. */
static int wait_for(struct charging *charging, int64_t deadline,
		    struct ration_charge_result **ret_result)
{
	struct ration *client = charging->client;
	struct timespec until = clock_timespec(deadline);
	int r = 0;

	charging->waited_for = true;
	operations_add(&client->operations, &charging->operation);
	worker_send(client);
	while (!charging->done && r == 0) {
		r = deadline == CLOCK_NEVER
			    ? pthread_cond_wait(&charging->answered, &client->lock)
			    : pthread_cond_timedwait(&charging->answered, &client->lock, &until);
	}
	return charging->done ? result_of(charging, ret_result) : abandon(charging);
}

static int run(struct charging *charging, int64_t deadline,
	       struct ration_charge_result **ret_result)
{
	struct ration *client = charging->client;
	int r;

	charging->operation.take = take;
	r = check_size(&charging->operation.request);
	if (r < 0) {
		(void)charging_free(charging);
		return r;
	}
	(void)pthread_mutex_lock(&client->lock);
	r = worker_start(client);
	if (r < 0) {
		(void)error_set(r, "the background thread can't be started: %s", strerror(-r));
	} else if (client->operations.n >= OPERATIONS_MAX) {
		r = error_set(-EAGAIN, "%u charges wait for their answers already", OPERATIONS_MAX);
	}
	if (r < 0) {
		(void)charging_free(charging);
	} else {
		r = wait_for(charging, deadline, ret_result);
	}
	(void)pthread_mutex_unlock(&client->lock);
	return r;
}

/* ---- dry runs ---- */

static int take_dry(void *ctx, const struct reply *reply, const uint8_t *message, size_t len)
{
	struct ration_charge_result **result = ctx;

	(void)message;
	(void)len;
	if (reply->type != REPLY_CHARGED) {
		return -EBADMSG;
	}
	free(*result);
	*result = charge_result(&reply->charged);
	return *result == NULL ? -ENOMEM : CALL_DONE;
}

static int run_dry(struct ration *client, struct request *request, int64_t deadline,
		   struct ration_charge_result **ret_result)
{
	_cleanup_free_ struct ration_charge_result *result = NULL;
	const struct call_sink sink = { .take = take_dry, .ctx = &result };
	int r;

	request->charge.dry_run = true;
	r = call_ask(client->call, request, deadline, &sink);
	if (r != 0) {
		return r;
	}
	if (!result->granted) {
		r = refused(result);
	}
	if (ret_result != NULL) {
		*ret_result = result;
		result = NULL;
	}
	return r;
}

/* ---- the program's side ---- */

static int check_items(const struct ration_charge_item *items, size_t n)
{
	if (n < 1 || n > MESSAGE_MAX_CHARGE_ITEMS) {
		return error_set(RATION_INVALID_ARGUMENT, "%zu items: expected 1 to %u", n,
				 MESSAGE_MAX_CHARGE_ITEMS);
	}
	for (size_t i = 0; i < n; i++) {
		if (items[i].amount < 1 || items[i].amount > MESSAGE_MAX_AMOUNT) {
			return error_set(RATION_INVALID_ARGUMENT,
					 "%s: the amount is %lld: expected 1 to 2^62",
					 items[i].path, (long long)items[i].amount);
		}
	}
	return 0;
}

static int read_options(const struct ration_charge_options *options,
			struct ration_charge_options *ret_known)
{
	if (options == NULL) {
		return 0;
	}
	if (options->size < offsetof(struct ration_charge_options, dry_run)) {
		return error_set(-EINVAL,
				 "options.size is %zu: begin with RATION_CHARGE_OPTIONS_INIT",
				 options->size);
	}
	memcpy(ret_known, options,
	       options->size < sizeof(*ret_known) ? options->size : sizeof(*ret_known));
	return 0;
}

int ration_charge(struct ration *client, const struct ration_charge_item *items, size_t n,
		  const struct ration_charge_options *options, int timeout_ms,
		  struct ration_charge_result **ret_result)
{
	struct ration_charge_options known = RATION_CHARGE_OPTIONS_INIT;
	int64_t now = clock_now(), deadline = clock_deadline(timeout_ms);
	struct charging *charging;
	uint32_t wait_ms;
	int r;

	error_clear();
	if (ret_result != NULL) {
		*ret_result = NULL;
	}
	r = read_options(options, &known);
	if (r == 0) {
		r = check_items(items, n);
	}
	if (r != 0) {
		return r;
	}
	charging = charging_new(client, items, n);
	if (charging == NULL) {
		return error_set(-ENOMEM, "no memory");
	}
	wait_ms = known.wait_ms < MESSAGE_MAX_WAIT_MS ? known.wait_ms : MESSAGE_MAX_WAIT_MS;
	charging->detached = known.detached;
	charging->operation.room_until = now + wait_ms;
	charging->operation.request = (struct request){
		.type = REQUEST_CHARGE,
		.charge = { .n_items = n,
			    .items = charging->items,
			    .detached = known.detached,
			    .wait_ms = wait_ms },
	};
	if (known.dry_run) {
		r = run_dry(client, &charging->operation.request, deadline, ret_result);
		(void)charging_free(charging);
		return r;
	}
	return run(charging, deadline == CLOCK_NEVER ? deadline : deadline + wait_ms, ret_result);
}

int ration_uncharge(struct ration *client, const char *path, int64_t n, bool detached,
		    int timeout_ms)
{
	const struct ration_charge_item item = { path, n };
	int64_t deadline = clock_deadline(timeout_ms);
	struct charging *charging;
	int r;

	error_clear();
	r = check_items(&item, 1);
	if (r != 0) {
		return r;
	}
	charging = charging_new(client, &item, 1);
	if (charging == NULL) {
		return error_set(-ENOMEM, "no memory");
	}
	charging->detached = detached;
	charging->operation.dies_with_session = !detached;
	charging->operation.request = (struct request){
		.type = REQUEST_UNCHARGE,
		.uncharge = { .path = charging->items[0].path, .amount = n, .detached = detached },
	};
	return run(charging, deadline, NULL);
}
