/*
 * operations, kept as bytes: one record for each slot, oldest or newest first as they lie.
 *
 *	varint	last - number
 *	u8	state, and whether it was granted: SAVED_*
 *	u8	type; 0 of one that is AGAIN
 *	varint	omitted, lease, ttl_ms, units
 *	varint	length, and so many bytes: the message
 */
#include "daemon/operations.h"

#include "lib/base/cursor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SAVED_ANSWERED 1u
#define SAVED_GRANTED 2u
#define SAVED_MAX_RECORD (6 * (size_t)CURSOR_MAX_VARINT + 2)

size_t operations_save_bound(const struct operations *operations)
{
	return operations->size * SAVED_MAX_RECORD + operations->n_bytes;
}

static void save_slot(const struct operations *operations, const struct operations_slot *slot,
		      struct cursor_out *out)
{
	bool answered = slot->state == OPERATION_ANSWERED;
	size_t len = slot->bytes != NULL ? slot->bytes->len : 0;

	cursor_put_varint(out, operations->last - slot->number);
	cursor_put_u8(out, (uint8_t)((answered ? SAVED_ANSWERED : 0) |
				     (slot->granted ? SAVED_GRANTED : 0)));
	cursor_put_u8(out, answered ? slot->type : 0);
	cursor_put_varint(out, slot->omitted);
	cursor_put_varint(out, slot->lease);
	cursor_put_varint(out, slot->ttl_ms);
	cursor_put_varint(out, (uint64_t)slot->units);
	cursor_put_varint(out, len);
	if (len > 0) {
		cursor_put_bytes(out, slot->bytes->at, len);
	}
}

void operations_save(const struct operations *operations, struct cursor_out *out)
{
	for (uint32_t i = 0; i < operations->size; i++) {
		const struct operations_slot *slot = &operations->slots[i];

		/* One that lies where a number was skipped may be older than what is kept. */
		if (slot->number != 0 && operations->last - slot->number < OPERATIONS_KEPT) {
			save_slot(operations, slot, out);
		}
	}
}

static bool is_kept_type(uint8_t type)
{
	return type == REPLY_CHARGED || type == REPLY_UNCHARGED || type == REPLY_LEASED ||
	       type == REPLY_LEASE_RETURNED || type == REPLY_ERROR;
}

/* The message behind a record; NULL with len 0: there is none. False: it can't be. */
static int load_bytes(struct cursor_in *in, uint64_t len, struct operations_bytes **ret_bytes)
{
	const uint8_t *at;

	*ret_bytes = NULL;
	if (len == 0) {
		return 0;
	}
	at = len <= OPERATIONS_MAX_BYTES ? cursor_get_bytes(in, (size_t)len) : NULL;
	if (at == NULL) {
		return -EINVAL;
	}
	*ret_bytes = malloc(sizeof(**ret_bytes) + (size_t)len);
	if (*ret_bytes == NULL) {
		return -ENOMEM;
	}
	(*ret_bytes)->len = (uint32_t)len;
	memcpy((*ret_bytes)->at, at, (size_t)len);
	return 0;
}

static int load_slot(struct cursor_in *in, uint64_t last, struct operations_slot *ret_slot)
{
	uint64_t ago = cursor_get_varint(in);
	uint8_t state = cursor_get_u8(in), type = cursor_get_u8(in);
	uint64_t omitted = cursor_get_varint(in), lease = cursor_get_varint(in);
	uint64_t ttl_ms = cursor_get_varint(in), units = cursor_get_varint(in);
	uint64_t len = cursor_get_varint(in);
	bool answered = (state & SAVED_ANSWERED) != 0;

	if (!cursor_in_ok(in) || ago >= OPERATIONS_KEPT || ago >= last || omitted > UINT32_MAX ||
	    lease > UINT32_MAX || ttl_ms > UINT32_MAX || (answered && !is_kept_type(type)) ||
	    (!answered && len > 0)) {
		return -EINVAL;
	}
	*ret_slot = (struct operations_slot){
		.number = last - ago,
		.state = answered ? OPERATION_ANSWERED : OPERATION_AGAIN,
		.type = type,
		.granted = (state & SAVED_GRANTED) != 0,
		.omitted = (uint32_t)omitted,
		.lease = (uint32_t)lease,
		.ttl_ms = (uint32_t)ttl_ms,
		.units = (int64_t)units,
	};
	return load_bytes(in, len, &ret_slot->bytes);
}

int operations_load(struct operations *operations, uint64_t last, const uint8_t *bytes, size_t len)
{
	struct cursor_in in;
	int r = 0;

	operations->last = last;
	cursor_in_init(&in, bytes, len);
	while (r == 0 && cursor_in_left(&in) > 0) {
		struct operations_slot slot;

		r = load_slot(&in, last, &slot);
		if (r == 0) {
			r = operations_put(operations, &slot);
		}
	}
	return r;
}
