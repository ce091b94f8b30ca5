#include "clients/c/operations.h"

#include "clients/c/stream.h"

#include "proto/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct answered {
	struct answered *next;
	uint64_t number;
	uint64_t id;	/* of its repetition, on this connection and without an answer; else 0 */
	bool told;	/* the daemon that there is now has answered it, or its repetition */
	bool is_charge; /* or an uncharge; else about a lease */
	size_t len;
	uint8_t message[]; /* the request, with what is known of the answer */
};

void operations_init(struct operations *operations, size_t max_bytes)
{
	*operations =
		(struct operations){ .next_number = 1, .max_kept = 1, .max_bytes = max_bytes };
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

	return operations->kept != NULL && operations->kept->number < unanswered
		       ? operations->kept->number
		       : unanswered;
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

/* ---- those that are kept with their answers ---- */

/* What one takes in memory, more or less. */
static size_t cost_of(const struct answered *answered)
{
	return sizeof(*answered) + answered->len;
}

/* The next that the daemon has to be told, from there on. */
static struct answered *next_untold(struct answered *at)
{
	while (at != NULL && at->told) {
		at = at->next;
	}
	return at;
}

/* Take out the one behind `before` (NULL: the first). */
static void drop_kept(struct operations *operations, struct answered *before)
{
	struct answered **at = before == NULL ? &operations->kept : &before->next;
	struct answered *answered = *at;

	*at = answered->next;
	if (operations->last_kept == answered) {
		operations->last_kept = before;
	}
	if (operations->repeating == answered) {
		operations->repeating = answered->next;
	}
	if (operations->to_repeat == answered) {
		operations->to_repeat = next_untold(answered->next);
	}
	operations->kept_bytes -= cost_of(answered);
	operations->n_due -= answered->id != 0 ? 1 : 0;
	operations->dropped = true;
	free(answered);
}

static void drop_all_kept(struct operations *operations)
{
	while (operations->kept != NULL) {
		drop_kept(operations, NULL);
	}
}

/* Nearly always the last one; but a charge that waited for room has an older number. */
static void insert_kept(struct operations *operations, struct answered *answered)
{
	struct answered *before = operations->last_kept;

	if (before != NULL && before->number > answered->number) {
		before = NULL;
		for (struct answered *at = operations->kept; at->number < answered->number;
		     at = at->next) {
			before = at;
		}
	}
	if (before == NULL) {
		answered->next = operations->kept;
		operations->kept = answered;
	} else {
		answered->next = before->next;
		before->next = answered;
	}
	if (answered->next == NULL) {
		operations->last_kept = answered;
	}
	operations->kept_bytes += cost_of(answered);
}

static struct known known_of(const struct request *request, const struct reply *reply)
{
	struct known known = { .present = true };

	switch (reply->type) {
	case REPLY_CHARGED:
		known.done = reply->charged.granted;
		break;
	case REPLY_LEASED:
		/* A renewal has reported what was spent, whatever it got. */
		known.done = request->type == REQUEST_LEASE_RENEW || reply->leased.granted > 0;
		known.granted = reply->leased.granted > 0 ? reply->leased.granted : 0;
		break;
	case REPLY_UNCHARGED:
	case REPLY_LEASE_RETURNED:
		known.done = true;
		break;
	default:
		break;
	}
	return known;
}

/* A copy of an operation, with what came of it. 0 or -ENOMEM. */
static int keep(struct operations *operations, const struct operation *operation,
		const struct reply *reply, struct arena *arena)
{
	struct request request = operation->request;
	const uint8_t *bytes, *message;
	struct answered *answered;
	size_t len, message_len, used;

	request.known = known_of(&request, reply);
	if (request.type == REQUEST_CHARGE) {
		request.charge.wait_ms = 0;
	}
	if (request_encode(arena, &request, &bytes, &len) < 0 ||
	    frame_find(bytes, len, MESSAGE_MAX_FRAME, &message, &message_len, &used) != FRAME_OK) {
		return -ENOMEM;
	}
	answered = malloc(sizeof(*answered) + message_len);
	if (answered == NULL) {
		return -ENOMEM;
	}
	*answered = (struct answered){
		.number = operation->number,
		.told = true,
		.is_charge = request.type == REQUEST_CHARGE || request.type == REQUEST_UNCHARGE,
		.len = message_len,
	};
	memcpy(answered->message, message, message_len);
	insert_kept(operations, answered);
	return 0;
}

void operations_durable(struct operations *operations, uint64_t number)
{
	while (operations->kept != NULL && operations->kept != operations->repeating &&
	       operations->kept->number <= number) {
		drop_kept(operations, NULL);
	}
}

bool operations_are_full(const struct operations *operations)
{
	return operations->kept_bytes >= operations->max_bytes;
}

void operations_let_go(struct operations *operations)
{
	while (operations_are_full(operations) && operations->kept != operations->repeating) {
		drop_kept(operations, NULL);
	}
}

/* Begin to tell what the daemon was not told. What it does not know is numbered without gaps; returns the highest number. */
static uint64_t repeat(struct operations *operations, bool all, uint64_t last)
{
	for (struct answered *at = operations->kept; at != NULL; at = at->next) {
		at->told = at->told && !all;
		at->number = at->number > last ? ++last : at->number;
	}
	operations->repeating = operations->to_repeat = next_untold(operations->kept);
	return last;
}

static void drop_leases(struct operations *operations)
{
	struct answered *before = NULL, *next;

	for (struct answered *at = operations->kept; at != NULL; at = next) {
		next = at->next;
		if (at->is_charge) {
			before = at;
		} else {
			drop_kept(operations, before);
		}
	}
}

static int put_repetition(struct operations *operations, struct answered *answered,
			  struct stream *stream, struct arena *arena, uint64_t *next_id)
{
	struct request request;
	const uint8_t *bytes;
	size_t len;
	int r;

	arena_reset(arena);
	r = request_decode(arena, answered->message, answered->len, &request);
	if (r < 0) {
		return r;
	}
	request.id = *next_id;
	*number_of(&request) = answered->number;
	r = request_encode(arena, &request, &bytes, &len);
	if (r == 0) {
		r = stream_put(stream, bytes, len);
	}
	if (r < 0) {
		return r;
	}
	*next_id += 2;
	answered->id = request.id;
	operations->n_due++;
	operations->to_repeat = next_untold(answered->next);
	return 0;
}

/* The daemon has answered the oldest of those sent again. */
static int take_repetition(struct operations *operations, const struct reply *reply)
{
	struct answered *answered = operations->repeating, *next = answered->next, *before = NULL;
	bool unused = reply->type == REPLY_ERROR && reply->error.operation == 0 &&
		      answered->number > operations->used_up;

	/* In between may be some that were answered just now. */
	while (next != operations->to_repeat && next->id == 0) {
		next = next->next;
	}
	operations->repeating = next;
	answered->id = 0;
	answered->told = true;
	operations->n_due--;
	if (operations->keeps && !unused) {
		return 1;
	}
	for (struct answered *at = operations->kept; at != answered; at = at->next) {
		before = at;
	}
	drop_kept(operations, before);
	return unused ? -ECONNRESET : 1;
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

	drop_all_kept(operations);
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
	operations->repeating = operations->to_repeat = NULL;
	operations->n_due = 0;
	for (struct answered *at = operations->kept; at != NULL; at = at->next) {
		at->id = 0;
	}
	for (struct operation *at = operations->first; at != NULL; at = at->next) {
		at->id = 0;
	}
}

bool operations_welcome(struct operations *operations, const struct welcome *welcome,
			enum session_fate fate, int64_t now, bool *ret_lost)
{
	uint64_t last = welcome->last_operation;
	bool lost = fate == SESSION_LOST || (fate == SESSION_ANEW && operations->dropped);

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
		drop_all_kept(operations);
	} else if (lost) {
		drop_leases(operations);
	}
	renumber(operations, last, lost);
	operations->next_number = repeat(operations, fate != SESSION_RESUMED, last) + 1;
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
	       !(operations->keeps && operations_are_full(operations));
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
	while (operations->to_repeat != NULL && stream_pending(stream) < max_pending) {
		int r = put_repetition(operations, operations->to_repeat, stream, arena, next_id);

		if (r < 0) {
			return r;
		}
	}
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

int operations_take(struct operations *operations, const struct reply *reply, struct arena *arena,
		    int64_t now)
{
	struct operation *before = NULL, *at = operations->first;
	bool numbered, unused;

	if (reply->id == 0) {
		return 0;
	}
	if (operations->repeating != NULL && operations->repeating->id == reply->id) {
		return take_repetition(operations, reply);
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
	if (operations->keeps && numbered && !unused && keep(operations, at, reply, arena) < 0) {
		return -ENOMEM;
	}
	operations->dropped = operations->dropped || (numbered && !operations->keeps);
	unlink_next(operations, before);
	at->take(at, OPERATION_ANSWERED, reply, now);
	return numbered && unused ? -ECONNRESET : 1;
}
