#include "daemon/operations.h"

#include "proto/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OPERATIONS_MIN_SIZE 8u

static struct operations_slot *slot_at(const struct operations *operations, uint64_t number)
{
	return &operations->slots[number & (operations->size - 1)];
}

/* NULL: not kept. */
static struct operations_slot *find(const struct operations *operations, uint64_t number)
{
	struct operations_slot *slot;

	if (operations->size == 0) {
		return NULL;
	}
	slot = slot_at(operations, number);
	return slot->number == number ? slot : NULL;
}

static void strip(struct operations *operations, struct operations_slot *slot)
{
	if (slot->bytes != NULL) {
		operations->n_bytes -= slot->bytes->len;
		free(slot->bytes);
		slot->bytes = NULL;
	}
}

void operations_greet(struct operations *operations, uint64_t next)
{
	if (next > 0 && next - 1 > operations->last) {
		operations->last = next - 1;
	}
}

enum operation operations_look_up(const struct operations *operations, uint64_t number)
{
	const struct operations_slot *slot;

	if (number > operations->last) {
		return number - operations->last == 1 ? OPERATION_NEW : OPERATION_GAP;
	}
	slot = find(operations, number);
	/* The client may have skipped numbers: what is this old is forgotten, wherever it lies. */
	if (slot == NULL || operations->last - number >= OPERATIONS_KEPT) {
		return OPERATION_FORGOTTEN;
	}
	return (enum operation)slot->state;
}

static int resize(struct operations *operations, uint32_t size)
{
	struct operations old = *operations;
	struct operations_slot *slots = calloc(size, sizeof(*slots));

	if (slots == NULL) {
		return -ENOMEM;
	}
	operations->slots = slots;
	operations->size = size;
	for (uint32_t i = 0; i < old.size; i++) {
		struct operations_slot *to;

		if (old.slots[i].number == 0) {
			continue;
		}
		/* Two may meet only where the client skipped numbers. */
		to = slot_at(operations, old.slots[i].number);
		if (to->number > old.slots[i].number) {
			strip(operations, &old.slots[i]);
			continue;
		}
		strip(operations, to);
		*to = old.slots[i];
	}
	free(old.slots);
	return 0;
}

/* Where this number goes, rid of who had the place. NULL: no memory. */
static struct operations_slot *place_for(struct operations *operations, uint64_t number)
{
	struct operations_slot *slot;

	while (operations->size == 0 ||
	       (operations->size < OPERATIONS_KEPT && slot_at(operations, number)->number != 0)) {
		if (resize(operations,
			   operations->size > 0 ? operations->size * 2 : OPERATIONS_MIN_SIZE) < 0) {
			return NULL;
		}
	}
	slot = slot_at(operations, number);
	strip(operations, slot);
	return slot;
}

int operations_put(struct operations *operations, const struct operations_slot *from)
{
	struct operations_slot *slot = place_for(operations, from->number);

	if (slot == NULL) {
		free(from->bytes);
		return -ENOMEM;
	}
	*slot = *from;
	operations->n_bytes += from->bytes != NULL ? from->bytes->len : 0;
	return 0;
}

int operations_take(struct operations *operations, uint64_t number)
{
	struct operations_slot *slot;

	if (find(operations, number) != NULL) {
		return 0;
	}
	slot = place_for(operations, number);
	if (slot == NULL) {
		return -ENOMEM;
	}
	*slot = (struct operations_slot){ .number = number, .state = OPERATION_AGAIN };
	operations->last = number;
	return 0;
}

void operations_wait(struct operations *operations, uint64_t number)
{
	struct operations_slot *slot = find(operations, number);

	if (slot != NULL) {
		slot->state = OPERATION_WAITING;
	}
}

void operations_drop(struct operations *operations, uint64_t number)
{
	struct operations_slot *slot = find(operations, number);

	if (slot != NULL) {
		slot->state = OPERATION_AGAIN;
	}
}

/* ---- keeping ---- */

static uint64_t number_of(const struct reply *reply)
{
	switch (reply->type) {
	case REPLY_CHARGED:
		return reply->charged.number;
	case REPLY_UNCHARGED:
		return reply->uncharged.number;
	case REPLY_LEASED:
		return reply->leased.number;
	case REPLY_LEASE_RETURNED:
		return reply->lease_returned.number;
	default:
		return reply->error.operation;
	}
}

/* Returns whether there is more to it than fits the slot. */
static bool keep_short(struct operations_slot *slot, const struct reply *reply)
{
	switch (reply->type) {
	case REPLY_CHARGED:
		slot->granted = reply->charged.granted;
		slot->omitted = reply->charged.omitted + (uint32_t)reply->charged.n_bindings;
		return reply->charged.n_bindings > 0;
	case REPLY_LEASED:
		slot->lease = reply->leased.lease;
		slot->ttl_ms = reply->leased.ttl_ms;
		slot->units = reply->leased.granted;
		slot->omitted = reply->leased.omitted + (uint32_t)reply->leased.n_bindings;
		return reply->leased.n_bindings > 0;
	case REPLY_LEASE_RETURNED:
		slot->lease = reply->lease_returned.lease;
		slot->units = reply->lease_returned.returned;
		return false;
	case REPLY_ERROR:
		slot->omitted = reply->error.code;
		return reply->error.text.len > 0;
	default:
		return false;
	}
}

static struct operations_bytes *encode(const struct reply *reply, struct arena *arena)
{
	struct operations_bytes *bytes;
	const uint8_t *frame, *message;
	size_t len, message_len, used;

	if (reply_encode(arena, reply, &frame, &len) != 0 ||
	    frame_find(frame, len, MESSAGE_MAX_FRAME, &message, &message_len, &used) != FRAME_OK ||
	    message_len > OPERATIONS_MAX_BYTES) {
		return NULL;
	}
	bytes = malloc(sizeof(*bytes) + message_len);
	if (bytes != NULL) {
		bytes->len = (uint32_t)message_len;
		memcpy(bytes->at, message, message_len);
	}
	return bytes;
}

/* The oldest lose their bytes until all that are left are within the limit. */
static void strip_oldest(struct operations *operations)
{
	if (operations->last > OPERATIONS_KEPT &&
	    operations->stripped < operations->last - OPERATIONS_KEPT) {
		operations->stripped = operations->last - OPERATIONS_KEPT;
	}
	while (operations->n_bytes > OPERATIONS_MAX_BYTES &&
	       operations->stripped < operations->last) {
		struct operations_slot *slot = find(operations, ++operations->stripped);

		if (slot != NULL) {
			strip(operations, slot);
		}
	}
	/* An old one that waited for room may have come in behind. */
	for (uint32_t i = 0; operations->n_bytes > OPERATIONS_MAX_BYTES && i < operations->size;
	     i++) {
		strip(operations, &operations->slots[i]);
	}
}

void operations_keep(struct operations *operations, const struct reply *reply, struct arena *arena)
{
	struct operations_slot *slot = find(operations, number_of(reply));

	if (slot == NULL) {
		return;
	}
	slot->state = OPERATION_ANSWERED;
	slot->type = (uint8_t)reply->type;
	if (__builtin_expect(keep_short(slot, reply), 0)) {
		slot->bytes = encode(reply, arena);
		operations->n_bytes += slot->bytes != NULL ? slot->bytes->len : 0;
		strip_oldest(operations);
	}
}

/* ---- telling ---- */

static void tell_short(const struct operations_slot *slot, struct reply *reply)
{
	switch (reply->type) {
	case REPLY_CHARGED:
		reply->charged = (struct charged){ .number = slot->number,
						   .granted = slot->granted,
						   .omitted = slot->omitted };
		break;
	case REPLY_UNCHARGED:
		reply->uncharged.number = slot->number;
		break;
	case REPLY_LEASED:
		reply->leased = (struct leased){ .number = slot->number,
						 .lease = slot->lease,
						 .ttl_ms = slot->ttl_ms,
						 .granted = slot->units,
						 .omitted = slot->omitted };
		break;
	case REPLY_LEASE_RETURNED:
		reply->lease_returned = (struct lease_returned){ .number = slot->number,
								 .lease = slot->lease,
								 .returned = slot->units };
		break;
	default:
		reply->error = (struct error_body){
			.code = slot->omitted,
			.text = text_of("it failed; what its answer said is no longer kept"),
			.operation = slot->number,
		};
		break;
	}
}

static void set_duplicate(struct reply *reply)
{
	switch (reply->type) {
	case REPLY_CHARGED:
		reply->charged.duplicate = true;
		break;
	case REPLY_UNCHARGED:
		reply->uncharged.duplicate = true;
		break;
	case REPLY_LEASED:
		reply->leased.duplicate = true;
		break;
	case REPLY_LEASE_RETURNED:
		reply->lease_returned.duplicate = true;
		break;
	default:
		reply->error.duplicate = true;
		break;
	}
}

void operations_tell(const struct operations *operations, uint64_t number, uint64_t id,
		     struct arena *arena, struct reply *ret_reply)
{
	const struct operations_slot *slot = find(operations, number);

	if (slot->bytes == NULL ||
	    reply_decode(arena, slot->bytes->at, slot->bytes->len, ret_reply) != 0) {
		*ret_reply = (struct reply){ .type = (enum reply_type)slot->type };
		tell_short(slot, ret_reply);
	}
	ret_reply->id = id;
	set_duplicate(ret_reply);
}

uint64_t operations_settled(const struct operations *operations)
{
	uint64_t settled = operations->last;

	for (uint32_t i = 0; i < operations->size; i++) {
		const struct operations_slot *slot = &operations->slots[i];

		if (slot->number != 0 && slot->number <= settled &&
		    slot->state != OPERATION_ANSWERED &&
		    operations->last - slot->number < OPERATIONS_KEPT) {
			settled = slot->number - 1;
		}
	}
	return settled;
}

void operations_deinit(struct operations *operations)
{
	for (uint32_t i = 0; i < operations->size; i++) {
		free(operations->slots[i].bytes);
	}
	free(operations->slots);
	*operations = (struct operations){ 0 };
}
