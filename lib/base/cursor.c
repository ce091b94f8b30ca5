#include "lib/base/cursor.h"

#include <string.h>

/* ---- reading ---- */

void cursor_in_init(struct cursor_in *in, const void *bytes, size_t len)
{
	in->at = bytes;
	in->end = len > 0 ? in->at + len : in->at;
	in->failed = false;
}

bool cursor_in_ok(const struct cursor_in *in)
{
	return !in->failed;
}

size_t cursor_in_left(const struct cursor_in *in)
{
	return in->failed ? 0 : (size_t)(in->end - in->at);
}

const uint8_t *cursor_get_bytes(struct cursor_in *in, size_t len)
{
	const uint8_t *bytes = in->at;

	if (len > cursor_in_left(in) || in->failed) {
		in->failed = true;
		return NULL;
	}
	if (len > 0) {
		in->at += len;
	}
	return bytes;
}

uint8_t cursor_get_u8(struct cursor_in *in)
{
	const uint8_t *byte = cursor_get_bytes(in, 1);

	return byte != NULL ? *byte : 0;
}

uint64_t cursor_get_varint(struct cursor_in *in)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 7 * CURSOR_MAX_VARINT; shift += 7) {
		uint8_t byte = cursor_get_u8(in);
		uint64_t group = byte & 0x7fu;

		/* The tenth group has room for one bit only. */
		if (shift == 63 && group > 1) {
			break;
		}
		value |= group << shift;
		if ((byte & 0x80u) == 0) {
			return in->failed ? 0 : value;
		}
	}
	in->failed = true;
	return 0;
}

/* ---- writing ---- */

void cursor_out_init(struct cursor_out *out, void *bytes, size_t size)
{
	out->start = bytes;
	out->at = out->start;
	out->end = size > 0 ? out->start + size : out->start;
	out->failed = false;
}

bool cursor_out_ok(const struct cursor_out *out)
{
	return !out->failed;
}

size_t cursor_out_len(const struct cursor_out *out)
{
	return (size_t)(out->at - out->start);
}

void cursor_put_bytes(struct cursor_out *out, const void *bytes, size_t len)
{
	if (out->failed || len > (size_t)(out->end - out->at)) {
		out->failed = true;
		return;
	}
	if (len > 0) {
		memcpy(out->at, bytes, len);
		out->at += len;
	}
}

void cursor_put_u8(struct cursor_out *out, uint8_t value)
{
	cursor_put_bytes(out, &value, 1);
}

void cursor_put_varint(struct cursor_out *out, uint64_t value)
{
	uint8_t bytes[CURSOR_MAX_VARINT];
	size_t len = 0;

	while (value >= 0x80u) {
		bytes[len++] = (uint8_t)(value | 0x80u);
		value >>= 7;
	}
	bytes[len++] = (uint8_t)value;
	cursor_put_bytes(out, bytes, len);
}
