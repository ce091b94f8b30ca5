#pragma once
/*
 * frame: finding messages in a stream of bytes. A frame is a varint length (protobuf's delimited format) and that many bytes.
 *
 * Thread safety: none needed, no state.
 */
#include <stddef.h>
#include <stdint.h>

#define FRAME_MAX_PREFIX 3u /* bytes of a length up to MESSAGE_MAX_FRAME, minimal encoding not required up to this */

enum frame_error {
	FRAME_OK = 0,
	FRAME_E_SHORT, /* more bytes are needed */
	FRAME_E_LONG,  /* the length is above the limit, or is not a varint of at most FRAME_MAX_PREFIX bytes */
};

/*
 * The frame at the start of `bytes`. FRAME_OK: *ret_message/_len is the message inside, *ret_used what the whole frame takes.
 * FRAME_E_SHORT: *ret_used is how many bytes are needed in all as far as can be told (at least len + 1).
 */
enum frame_error frame_find(const uint8_t *bytes, size_t len, size_t max_message, const uint8_t **ret_message,
			    size_t *ret_message_len, size_t *ret_used);

/* Write the prefix for a message of `len` bytes to out[FRAME_MAX_PREFIX]; returns how many bytes. */
size_t frame_prefix(size_t len, uint8_t *out);
