#pragma once
/*
 * cursor: bounded reading and writing of bytes with a sticky error.
 *
 * After the first step that does not fit, every read gives zero and every write does nothing, so a caller runs through a whole
 * record and asks cursor_in_ok() or cursor_out_ok() once at the end. What was read before must not be used without that question.
 *
 * Neither cursor owns its bytes. Thread safety: none needed, a cursor belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CURSOR_MAX_VARINT 10u /* bytes of the longest varint */

struct cursor_in {
	const uint8_t *at, *end;
	bool failed;
};

struct cursor_out {
	uint8_t *start, *at, *end;
	bool failed;
};

/* ---- reading ---- */

void cursor_in_init(struct cursor_in *in, const void *bytes, size_t len);
bool cursor_in_ok(const struct cursor_in *in);
/* How many bytes are left; 0 after a failure. */
size_t cursor_in_left(const struct cursor_in *in);

uint8_t cursor_get_u8(struct cursor_in *in);
/* The next `len` bytes, where they lie; NULL after a failure. */
const uint8_t *cursor_get_bytes(struct cursor_in *in, size_t len);
/*
 * A number in protobuf's base 128 encoding: 7 bits a byte, the lowest first, the top bit set in all but the last. Fails on one that
 * does not end within the input or CURSOR_MAX_VARINT bytes, or is above UINT64_MAX. Padding with zero groups is accepted, as
 * protobuf does.
 */
uint64_t cursor_get_varint(struct cursor_in *in);

/* ---- writing ---- */

void cursor_out_init(struct cursor_out *out, void *bytes, size_t size);
bool cursor_out_ok(const struct cursor_out *out);
/* How many bytes were written by the steps that fitted. */
size_t cursor_out_len(const struct cursor_out *out);

void cursor_put_u8(struct cursor_out *out, uint8_t value);
/* All of them or none. */
void cursor_put_bytes(struct cursor_out *out, const void *bytes, size_t len);
/* In as few bytes as hold it: 1 .. CURSOR_MAX_VARINT. */
void cursor_put_varint(struct cursor_out *out, uint64_t value);
