#include "clients/c/operations.h"

#include "clients/c/stream.h"

#include <errno.h>

void operations_init(struct operations *operations)
{
	*operations = (struct operations){ .next_number = 1, .max_kept = 1 };
}

/* ---- numbers ---- */

/* Where the number of a request stands; NULL: it is no operation. */
static uint64_t *number_of(struct request *request)
{
	switch (request->type) {
	case REQUEST_CHARGE:
		return &request->charge.number;
	case REQUEST_UNCHARGE:
		return &request->uncharge.number;
	case REQUEST_LEASE:
		return &request->lease.number;
	case REQUEST_LEASE_RENEW:
		return &request->lease_renew.number;
	case REQUEST_LEASE_RETURN:
		return &request->lease_return.number;
	default:
		return NULL;
	}
}

static bool fits(enum request_type request, enum reply_type reply)
{
	switch (request) {
	case REQUEST_CHARGE:
		return reply == REPLY_CHARGED;
	case REQUEST_UNCHARGE:
		return reply == REPLY_UNCHARGED;
	case REQUEST_LEASE:
	case REQUEST_LEASE_RENEW:
		return reply == REPLY_LEASED;
	case REQUEST_LEASE_RETURN:
		return reply == REPLY_LEASE_RETURNED;
	case REQUEST_METRIC_GET:
		return reply == REPLY_METRIC;
	default:
		return false;
	}
}

/* Numbers rise along the queue, but for those that have none yet. */
uint64_t operations_next(const struct operations *operations)
{
	const struct operation *at = operations->first;

	while (at != NULL && at->number == 0) {
		at = at->next;
	}
	return at == NULL ? operations->next_number : at->number;
}

static bool waits_for_room(const struct operation *operation)
{
	return operation->request.type == REQUEST_CHARGE && operation->request.charge.wait_ms > 0;
}

/* ---- the queue ---- */

void operations_add(struct operations *operations, struct operation *operation)
{
	operation->next = NULL;
	operation->queued = true;
	operation->sent = false;
	operation->number = 0;
	operation->id = 0;
	if (operations->last == NULL) {
		operations->first = operation;
	} else {
		operations->last->next = operation;
	}
	operations->last = operation;
	operations->n++;
}

static void unlink_next(struct operations *operations, struct operation *before)
{
	struct operation **at = before == NULL ? &operations->first : &before->next;
	struct operation *operation = *at;

	*at = operation->next;
	if (operations->last == operation) {
		operations->last = before;
	}
	operation->next = NULL;
	operation->queued = false;
	operations->n--;
	if (operation->id != 0 && !waits_for_room(operation)) {
		operations->n_due--;
	}
	operation->id = 0;
}

bool operations_withdraw(struct operations *operations, struct operation *operation)
{
	struct operation *before = NULL;

	if (operation->sent) {
		return false;
	}
	for (struct operation *at = operations->first; at != operation; at = at->next) {
		before = at;
	}
	unlink_next(operations, before);
	return true;
}

/* Take all out for which `ends` is true, then tell their owners, who may add again. */
static void end_all(struct operations *operations, bool (*ends)(const struct operation *operation),
		    enum operation_end end, int64_t now)
{
	struct operation *before = NULL, *ended = NULL, **last = &ended;
	struct operation *at = operations->first;

	while (at != NULL) {
		struct operation *next = at->next;

		if (ends(at)) {
			unlink_next(operations, before);
			*last = at;
			last = &at->next;
		} else {
			before = at;
		}
		at = next;
	}
	while (ended != NULL) {
		at = ended;
		ended = at->next;
		at->next = NULL;
		at->take(at, end, NULL, now);
	}
}

static bool is_unreachable(const struct operation *operation)
{
	return !operation->sent && !operation->waits_for_daemon;
}

void operations_unreachable(struct operations *operations, int64_t now)
{
	end_all(operations, is_unreachable, OPERATION_UNREACHABLE, now);
}

struct operation *operations_forget(struct operations *operations)
{
	struct operation *all = operations->first;

	operations_init(operations);
	return all;
}

/* ---- the connection ---- */

static bool is_lost(const struct operation *operation)
{
	return operation->dies_with_session;
}

static bool is_moot(const struct operation *operation)
{
	return operation->unwanted && !operation->sent;
}

bool operations_welcome(struct operations *operations, const struct welcome *welcome, int64_t now)
{
	if (welcome->last_operation >= operations->next_number) {
		return false;
	}
	operations->n_due = 0;
	operations->max_kept =
		welcome->limits.max_operations_kept > 0 ? welcome->limits.max_operations_kept : 1;
	for (struct operation *at = operations->first; at != NULL; at = at->next) {
		at->id = 0;
		if (welcome->resumed && at->number > welcome->last_operation) {
			/* The daemon has not seen it. */
			at->sent = false;
		}
		if (!welcome->resumed || at->number > welcome->last_operation) {
			at->number = 0;
		}
	}
	operations->next_number = welcome->last_operation + 1;
	if (!welcome->resumed) {
		end_all(operations, is_lost, OPERATION_LOST, now);
	}
	end_all(operations, is_moot, OPERATION_LOST, now);
	return true;
}

/* A number too far above one that has no answer must wait: the answer would not be kept. */
static bool may_number(const struct operations *operations)
{
	return operations->next_number - operations_next(operations) < operations->max_kept;
}

static int put(struct operation *operation, uint64_t number, struct stream *stream,
	       struct arena *arena, uint64_t *next_id, int64_t now)
{
	struct request *request = &operation->request;
	uint64_t *at = number_of(request);
	const uint8_t *bytes;
	size_t len;
	int r;

	if (at != NULL) {
		*at = number;
	}
	if (request->type == REQUEST_CHARGE) {
		int64_t left = operation->room_until - now;

		request->charge.wait_ms = left > 0 ? (uint32_t)left : 0;
	}
	request->id = *next_id;
	arena_reset(arena);
	r = request_encode(arena, request, &bytes, &len);
	if (r == 0) {
		r = stream_put(stream, bytes, len);
	}
	if (r < 0) {
		return r;
	}
	*next_id += 2;
	operation->id = request->id;
	operation->number = number;
	operation->sent_at = operation->sent ? operation->sent_at : now;
	operation->sent = true;
	return 0;
}

int operations_put(struct operations *operations, struct stream *stream, struct arena *arena,
		   size_t max_pending, uint64_t *next_id, int64_t now)
{
	for (struct operation *at = operations->first;
	     at != NULL && stream_pending(stream) < max_pending; at = at->next) {
		bool fresh = at->number == 0 && number_of(&at->request) != NULL;
		int r;

		if (at->id != 0) {
			continue;
		}
		if (fresh && !may_number(operations)) {
			break;
		}
		r = put(at, fresh ? operations->next_number : at->number, stream, arena, next_id,
			now);
		if (r < 0) {
			return r;
		}
		operations->next_number += fresh ? 1 : 0;
		operations->n_due += waits_for_room(at) ? 0 : 1;
	}
	return 0;
}

int operations_take(struct operations *operations, const struct reply *reply, int64_t now)
{
	struct operation *before = NULL, *at = operations->first;
	bool numbered, unused;

	while (at != NULL && at->id != reply->id) {
		before = at;
		at = at->next;
	}
	if (at == NULL || reply->id == 0) {
		return 0;
	}
	if (reply->type != REPLY_ERROR && !fits(at->request.type, reply->type)) {
		return -EBADMSG;
	}
	numbered = at->number != 0;
	unused = reply->type == REPLY_ERROR && reply->error.operation == 0 &&
		 reply->error.code != CODE_UNIMPLEMENTED;
	unlink_next(operations, before);
	at->take(at, OPERATION_ANSWERED, reply, now);
	return numbered && unused ? -ECONNRESET : 1;
}
