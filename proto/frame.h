#pragma once
/*
 * frame: finding messages in a stream of bytes. A frame is a varint length (protobuf's delimited format) and that
 * many bytes.
 *
 * Thread safety: none needed, no state.
 */
#include <stddef.h>
#include <stdint.h>

#define FRAME_MAX_PREFIX \
	3u /* bytes of a length; padded ones (81 80 00 for 1) are taken up to this */
#define FRAME_MAX_LENGTH \
	((1u << (7 * FRAME_MAX_PREFIX)) - 1) /* the largest length a prefix can say */

enum frame_error {
	FRAME_OK = 0,
	FRAME_E_SHORT, /* more bytes are needed */
	FRAME_E_LONG, /* the length is above the limit, or is not a varint of at most FRAME_MAX_PREFIX bytes */
};

/*
 * The frame at the start of `bytes`. max_message: what a message may have, at most FRAME_MAX_LENGTH.
 * FRAME_OK: *ret_message and *ret_message_len are the message inside (it may be empty), *ret_used what the whole
 * frame takes.
 * FRAME_E_SHORT: *ret_used is how many bytes are needed in all, as far as can be told (at least len + 1).
 * FRAME_E_LONG: nothing is set; where the next frame begins can't be told any more.
 */
enum frame_error frame_find(const uint8_t *bytes, size_t len, size_t max_message,
			    const uint8_t **ret_message, size_t *ret_message_len, size_t *ret_used);

/* Write the prefix for a message of `len` <= FRAME_MAX_LENGTH bytes to out[FRAME_MAX_PREFIX]; returns its length. */
size_t frame_prefix(size_t len, uint8_t *out);
