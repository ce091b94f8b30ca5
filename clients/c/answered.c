#include "clients/c/answered.h"

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

uint64_t *answered_number(struct request *request)
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

/* ---- the list ---- */

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
static void drop(struct answered_list *list, struct answered *before)
{
	struct answered **at = before == NULL ? &list->first : &before->next;
	struct answered *answered = *at;

	*at = answered->next;
	if (list->last == answered) {
		list->last = before;
	}
	if (list->repeating == answered) {
		list->repeating = answered->next;
	}
	if (list->to_repeat == answered) {
		list->to_repeat = next_untold(answered->next);
	}
	list->bytes -= cost_of(answered);
	list->n_due -= answered->id != 0 ? 1 : 0;
	list->dropped = true;
	free(answered);
}

void answered_clear(struct answered_list *list)
{
	while (list->first != NULL) {
		drop(list, NULL);
	}
}

uint64_t answered_lowest(const struct answered_list *list)
{
	return list->first == NULL ? UINT64_MAX : list->first->number;
}

/* Nearly always the last one; but a charge that waited for room has an older number. */
static void insert(struct answered_list *list, struct answered *answered)
{
	struct answered *before = list->last;

	if (before != NULL && before->number > answered->number) {
		before = NULL;
		for (struct answered *at = list->first; at->number < answered->number;
		     at = at->next) {
			before = at;
		}
	}
	if (before == NULL) {
		answered->next = list->first;
		list->first = answered;
	} else {
		answered->next = before->next;
		before->next = answered;
	}
	if (answered->next == NULL) {
		list->last = answered;
	}
	list->bytes += cost_of(answered);
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

int answered_keep(struct answered_list *list, const struct request *operation, uint64_t number,
		  const struct reply *reply, struct arena *arena)
{
	struct request request = *operation;
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
		.number = number,
		.told = true,
		.is_charge = request.type == REQUEST_CHARGE || request.type == REQUEST_UNCHARGE,
		.len = message_len,
	};
	memcpy(answered->message, message, message_len);
	insert(list, answered);
	return 0;
}

void answered_drop_until(struct answered_list *list, uint64_t number)
{
	while (list->first != NULL && list->first != list->repeating &&
	       list->first->number <= number) {
		drop(list, NULL);
	}
}

void answered_shrink(struct answered_list *list, size_t max_bytes)
{
	while (list->bytes >= max_bytes && list->first != list->repeating) {
		drop(list, NULL);
	}
}

void answered_hang_up(struct answered_list *list)
{
	list->repeating = list->to_repeat = NULL;
	list->n_due = 0;
	for (struct answered *at = list->first; at != NULL; at = at->next) {
		at->id = 0;
	}
}

uint64_t answered_begin(struct answered_list *list, bool all, uint64_t last)
{
	for (struct answered *at = list->first; at != NULL; at = at->next) {
		at->told = at->told && !all;
		at->number = at->number > last ? ++last : at->number;
	}
	list->repeating = list->to_repeat = next_untold(list->first);
	return last;
}

void answered_drop_leases(struct answered_list *list)
{
	struct answered *before = NULL, *next;

	for (struct answered *at = list->first; at != NULL; at = next) {
		next = at->next;
		if (at->is_charge) {
			before = at;
		} else {
			drop(list, before);
		}
	}
}

int answered_put(struct answered_list *list, struct stream *stream, struct arena *arena,
		 uint64_t *next_id)
{
	struct answered *answered = list->to_repeat;
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
	*answered_number(&request) = answered->number;
	r = request_encode(arena, &request, &bytes, &len);
	if (r == 0) {
		r = stream_put(stream, bytes, len);
	}
	if (r < 0) {
		return r;
	}
	*next_id += 2;
	answered->id = request.id;
	list->n_due++;
	list->to_repeat = next_untold(answered->next);
	return 0;
}

int answered_take(struct answered_list *list, const struct reply *reply, uint64_t last, bool keep)
{
	struct answered *answered = list->repeating, *next, *before = NULL;
	bool unused;

	if (answered == NULL || answered->id == 0 || answered->id != reply->id) {
		return 0;
	}
	next = answered->next;
	unused = reply->type == REPLY_ERROR && reply->error.operation == 0 &&
		 answered->number > last;
	/* In between may be some that were answered just now. */
	while (next != list->to_repeat && next->id == 0) {
		next = next->next;
	}
	list->repeating = next;
	answered->id = 0;
	answered->told = true;
	list->n_due--;
	if (keep && !unused) {
		return 1;
	}
	for (struct answered *at = list->first; at != answered; at = at->next) {
		before = at;
	}
	drop(list, before);
	return unused ? -ECONNRESET : 1;
}
