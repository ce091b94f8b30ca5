#include "clients/c/operations.h"

#include "clients/c/stream.h"

#include <errno.h>

void operations_init(struct operations *operations, size_t max_bytes)
{
	*operations =
		(struct operations){ .next_number = 1, .max_kept = 1, .max_bytes = max_bytes };
}

/* ---- numbers ---- */

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
static uint64_t first_unanswered(const struct operations *operations)
{
	const struct operation *at = operations->first;

	while (at != NULL && at->number == 0) {
		at = at->next;
	}
	return at == NULL ? operations->next_number : at->number;
}

uint64_t operations_next(const struct operations *operations)
{
	uint64_t unanswered = first_unanswered(operations);
	uint64_t answered = answered_lowest(&operations->answered);

	return answered < unanswered ? answered : unanswered;
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

void operations_durable(struct operations *operations, uint64_t number)
{
	operations->durable = number;
	answered_drop_until(&operations->answered, number);
}

bool operations_are_full(const struct operations *operations)
{
	return operations->keeps && operations->answered.bytes >= operations->max_bytes;
}

/* ---- ends ---- */

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

	answered_clear(&operations->answered);
	operations_init(operations, operations->max_bytes);
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

/* What becomes of the numbers of those without an answer. `last`: the highest that the daemon has used up. */
static void renumber(struct operations *operations, uint64_t last, bool lost)
{
	for (struct operation *at = operations->first; at != NULL; at = at->next) {
		if (!lost && at->number > last) {
			/* The daemon has not seen it, or has it no more. */
			at->sent = false;
		}
		if (lost || at->number > last) {
			at->number = 0;
		}
	}
}

/* Nothing is on the connection. */
static void hang_up(struct operations *operations)
{
	answered_hang_up(&operations->answered);
	operations->n_due = 0;
	for (struct operation *at = operations->first; at != NULL; at = at->next) {
		at->id = 0;
	}
}

bool operations_welcome(struct operations *operations, const struct welcome *welcome,
			enum session_fate fate, int64_t now, bool *ret_lost)
{
	uint64_t last = welcome->last_operation;
	bool lost = fate == SESSION_LOST || (fate == SESSION_ANEW && operations->answered.dropped);

	if (last >= operations->next_number) {
		return false;
	}
	hang_up(operations);
	operations->keeps = welcome->keeps;
	operations->used_up = last;
	operations->max_kept =
		welcome->limits.max_operations_kept > 0 ? welcome->limits.max_operations_kept : 1;
	operations_durable(operations, welcome->durable_operation);
	if (fate == SESSION_LOST) {
		answered_clear(&operations->answered);
	} else if (lost) {
		answered_drop_leases(&operations->answered);
	}
	renumber(operations, last, lost);
	operations->next_number =
		answered_begin(&operations->answered, fate != SESSION_RESUMED, last) + 1;
	if (lost) {
		end_all(operations, is_lost, OPERATION_LOST, now);
	}
	end_all(operations, is_moot, OPERATION_LOST, now);
	*ret_lost = lost;
	return true;
}

/* A number too far above one that has no answer must wait, for the answer would not be kept; and so it must when all is full. */
static bool may_number(const struct operations *operations)
{
	return operations->next_number - first_unanswered(operations) < operations->max_kept &&
	       !(operations_are_full(operations));
}

static int put(struct operation *operation, uint64_t number, struct stream *stream,
	       struct arena *arena, uint64_t *next_id, int64_t now)
{
	struct request *request = &operation->request;
	uint64_t *at = answered_number(request);
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
	while (answered_is_untold(&operations->answered) && stream_pending(stream) < max_pending) {
		int r = answered_put(&operations->answered, stream, arena, next_id);

		if (r < 0) {
			return r;
		}
	}
	for (struct operation *at = operations->first;
	     at != NULL && stream_pending(stream) < max_pending; at = at->next) {
		bool fresh = at->number == 0 && answered_number(&at->request) != NULL;
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

int operations_take(struct operations *operations, const struct reply *reply, struct arena *arena,
		    int64_t now)
{
	struct operation *before = NULL, *at = operations->first;
	bool numbered, unused;
	int r;

	if (reply->id == 0) {
		return 0;
	}
	r = answered_take(&operations->answered, reply, operations->used_up, operations->keeps);
	if (r != 0) {
		return r;
	}
	while (at != NULL && at->id != reply->id) {
		before = at;
		at = at->next;
	}
	if (at == NULL) {
		return 0;
	}
	if (reply->type != REPLY_ERROR && !fits(at->request.type, reply->type)) {
		return -EBADMSG;
	}
	numbered = at->number != 0;
	unused = reply->type == REPLY_ERROR && reply->error.operation == 0 &&
		 reply->error.code != CODE_UNIMPLEMENTED;
	if (numbered && (!operations->keeps || at->number <= operations->durable)) {
		operations->answered.dropped = true;
	} else if (numbered && !unused) {
		r = answered_keep(&operations->answered, &at->request, at->number, reply, arena);
		if (r < 0) {
			return r;
		}
	}
	unlink_next(operations, before);
	at->take(at, OPERATION_ANSWERED, reply, now);
	return numbered && unused ? -ECONNRESET : 1;
}
