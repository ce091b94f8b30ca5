#pragma once
/*
 * span: reading and writing the parts of a message by hand, for quick-add and quick-get. Only the shortest form of a number is
 * taken. Private to this room.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is left of a message, or of a part of one. */
struct span {
	const uint8_t *at, *end;
};

/* False if it is cut, padded, or above max. */
static inline bool span_varint(struct span *span, uint64_t max, uint64_t *ret_value)
{
	const uint8_t *at = span->at;
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64 && at < span->end; shift += 7) {
		uint8_t byte = *at++;

		if ((shift == 63 && byte > 1) || (shift > 0 && byte == 0)) {
			return false;
		}
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			span->at = at;
			*ret_value = value;
			return value <= max;
		}
	}
	return false;
}

/* A part that begins with its length. */
static inline bool span_inner(struct span *span, struct span *ret_inner)
{
	uint64_t len;

	if (!span_varint(span, (size_t)(span->end - span->at), &len) ||
	    len > (size_t)(span->end - span->at)) {
		return false;
	}
	*ret_inner = (struct span){ .at = span->at, .end = span->at + len };
	span->at += len;
	return true;
}

/* The body of a message that has an id or none, then a part with that tag, and nothing else. */
static inline bool span_only(struct span message, uint64_t id_tag, uint64_t tag, uint64_t *ret_id,
			     struct span *ret_body)
{
	uint64_t id = 0, is;

	if (!span_varint(&message, UINT32_MAX, &is)) {
		return false;
	}
	if (is == id_tag &&
	    !(span_varint(&message, UINT64_MAX, &id) && span_varint(&message, UINT32_MAX, &is))) {
		return false;
	}
	*ret_id = id;
	return is == tag && span_inner(&message, ret_body) && message.at == message.end;
}

/* Write a field whose tag is one byte; one that is 0 is left out, as proto3 wants it. Returns where it ends, at most 11 bytes on. */
static inline uint8_t *span_put(uint8_t *at, uint8_t tag, uint64_t value)
{
	if (value == 0) {
		return at;
	}
	*at++ = tag;
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}
