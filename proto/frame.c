#include "proto/frame.h"

#include <stdbool.h>

enum frame_error frame_find(const uint8_t *bytes, size_t len, size_t max_message,
			    const uint8_t **ret_message, size_t *ret_message_len, size_t *ret_used)
{
	size_t message_len = 0, prefix = 0;
	bool more = true;
	while (more && prefix < FRAME_MAX_PREFIX) {
		if (prefix == len) {
			*ret_used = len + 1;
			return FRAME_E_SHORT;
		}
		message_len |= (size_t)(bytes[prefix] & 0x7f) << (7 * prefix);
		more = bytes[prefix] & 0x80;
		prefix++;
	}
	if (more || message_len > max_message) {
		return FRAME_E_LONG;
	}

	if (message_len > len - prefix) {
		*ret_used = prefix + message_len;
		return FRAME_E_SHORT;
	}
	*ret_message = bytes + prefix;
	*ret_message_len = message_len;
	*ret_used = prefix + message_len;
	return FRAME_OK;
}

size_t frame_prefix(size_t len, uint8_t *out)
{
	size_t n = 0;
	while (len >= 0x80) {
		out[n++] = (uint8_t)(len | 0x80);
		len >>= 7;
	}
	out[n++] = (uint8_t)len;
	return n;
}
