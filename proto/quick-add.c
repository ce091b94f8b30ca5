#include "proto/quick-add.h"

#include <errno.h>
#include <string.h>

#include "proto/span.h"

/* Tags as they are on the wire: a field's number and its wire type. */
enum {
	VARINT = 0,
	LEN = 2,
	ID = 1 << 3 | VARINT,
	ADD = 4 << 3 | LEN,
	BATCH = 1 << 3 | VARINT,
	HANDLES = 2 << 3 | LEN,
	DELTAS = 3 << 3 | LEN,

	APPLIED = 5 << 3 | LEN,
	APPLIED_BATCH = 1 << 3 | VARINT,
	APPLIED_DUPLICATE = 2 << 3 | VARINT,
};

#define CONTINUED UINT64_C(0x8080808080808080) /* in each of eight bytes: a varint goes on */

/* How many varints end in it. */
static size_t count_varints(struct span span)
{
	size_t n = 0;

	for (; span.end - span.at >= 8; span.at += 8) {
		uint64_t bytes;

		memcpy(&bytes, span.at, sizeof(bytes));
		/* The sum of eight bytes that are 0 or 1 is the uppermost byte of this product. */
		n += ((~bytes & CONTINUED) >> 7) * UINT64_C(0x0101010101010101) >> 56;
	}
	for (; span.at < span.end; span.at++) {
		n += *span.at < 0x80;
	}
	return n;
}

/* Into handles[], which has room for all that end in the span. Nearly all are of one to three bytes. */
static bool read_handles(struct span span, uint32_t *handles)
{
	const uint8_t *at = span.at, *end = span.end;

	while (at < end) {
		if (at[0] < 0x80) {
			*handles++ = *at++;
		} else if (end - at > 1 && (uint8_t)(at[1] - 1) < 0x7f) {
			*handles++ = (at[0] & 0x7fu) | (uint32_t)at[1] << 7;
			at += 2;
		} else if (end - at > 2 && at[1] >= 0x80 && (uint8_t)(at[2] - 1) < 0x7f) {
			*handles++ = (at[0] & 0x7fu) | (at[1] & 0x7fu) << 7 | (uint32_t)at[2] << 14;
			at += 3;
		} else {
			struct span rest = { .at = at, .end = end };
			uint64_t value;

			if (!span_varint(&rest, UINT32_MAX, &value)) {
				return false;
			}
			*handles++ = (uint32_t)value;
			at = rest.at;
		}
	}
	return true;
}

static int64_t unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1 ^ -(value & 1));
}

/* Eight of one byte each, if that is what comes next. */
static inline bool read_eight(struct span span, int64_t *deltas)
{
	uint64_t bytes;

	if (span.end - span.at < 8) {
		return false;
	}
	memcpy(&bytes, span.at, sizeof(bytes));
	if ((bytes & CONTINUED) != 0) {
		return false;
	}
	for (int i = 0; i < 8; i++) {
		deltas[i] = unzigzag(span.at[i]);
	}
	return true;
}

/* Into deltas[], likewise. Mostly they are small. */
static bool read_deltas(struct span span, int64_t *deltas)
{
	while (span.at < span.end) {
		uint64_t value;

		if (read_eight(span, deltas)) {
			deltas += 8;
			span.at += 8;
		} else if (span_varint(&span, UINT64_MAX, &value)) {
			*deltas++ = unzigzag(value);
		} else {
			return false;
		}
	}
	return true;
}

/* The fields of the body, each at most once; the lists as they are. */
static bool find_fields(struct span body, uint64_t *ret_batch, struct span *ret_handles,
			struct span *ret_deltas)
{
	unsigned int seen = 0;

	*ret_batch = 0;
	*ret_handles = *ret_deltas = (struct span){ 0 };
	while (body.at < body.end) {
		uint64_t tag;
		bool good;

		if (!span_varint(&body, DELTAS, &tag) || (seen & 1u << tag) != 0) {
			return false;
		}
		seen |= 1u << tag;
		switch (tag) {
		case BATCH:
			good = span_varint(&body, UINT64_MAX, ret_batch);
			break;
		case HANDLES:
			good = span_inner(&body, ret_handles);
			break;
		case DELTAS:
			good = span_inner(&body, ret_deltas);
			break;
		default:
			good = false;
		}
		if (!good) {
			return false;
		}
	}
	return true;
}

int quick_decode_add(struct arena *arena, const uint8_t *bytes, size_t len,
		     struct request *ret_request)
{
	struct span body, handles, deltas;
	uint64_t id, batch;

	if (!span_only((struct span){ .at = bytes, .end = bytes + len }, ID, ADD, &id, &body) ||
	    !find_fields(body, &batch, &handles, &deltas)) {
		return QUICK_E_OTHER;
	}

	size_t n_handles = count_varints(handles), n_deltas = count_varints(deltas);
	int64_t *delta_list =
		arena_alloc(arena, n_deltas * sizeof(*delta_list) + n_handles * sizeof(uint32_t));
	if (!delta_list) {
		return -ENOMEM;
	}
	uint32_t *handle_list = (uint32_t *)(delta_list + n_deltas);
	if (!read_handles(handles, handle_list) || !read_deltas(deltas, delta_list)) {
		return QUICK_E_OTHER;
	}
	ret_request->id = id;
	ret_request->type = REQUEST_ADD;
	ret_request->add = (struct add){
		.batch = batch,
		.n_handles = n_handles,
		.n_deltas = n_deltas,
		.handles = handle_list,
		.deltas = delta_list,
	};
	return QUICK_OK;
}

int quick_encode_applied(struct arena *arena, const struct reply *reply, const uint8_t **ret_bytes,
			 size_t *ret_len)
{
	/* Both lengths are below 0x80, a byte each. */
	enum {
		MAX_FRAME = 1 + 11 + 2 + 11 + 2
	};
	if (reply->type != REPLY_APPLIED || reply->applied.n_errors > 0) {
		return QUICK_E_OTHER;
	}
	uint8_t *out = arena_alloc(arena, MAX_FRAME);
	if (!out) {
		return -ENOMEM;
	}
	uint8_t *at = span_put(out + 1, ID, reply->id);
	*at++ = APPLIED;
	uint8_t *body = ++at;
	at = span_put(at, APPLIED_BATCH, reply->applied.batch);
	at = span_put(at, APPLIED_DUPLICATE, reply->applied.duplicate);
	body[-1] = (uint8_t)(at - body);
	out[0] = (uint8_t)(at - out - 1);
	*ret_bytes = out;
	*ret_len = (size_t)(at - out);
	return QUICK_OK;
}
