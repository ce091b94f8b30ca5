/*
 * fuzz-reply: one message as a client may get it. What can be decoded is encoded and decoded again, and must then
 * encode to the same bytes.
 */
#include "proto/frame.h"
#include "proto/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arena first = ARENA_INIT(MESSAGE_ARENA_LIMIT),
			    second = ARENA_INIT(MESSAGE_ARENA_LIMIT);
	struct reply reply;
	const uint8_t *bytes, *message, *again;
	size_t len, message_len, again_len, used;

	arena_reset(&first);
	arena_reset(&second);
	int r = reply_decode(&first, data, size, &reply);
	check(r == 0 || r == -EBADMSG || r == -ENOMEM);
	if (r < 0) {
		return 0;
	}
	r = reply_encode(&first, &reply, &bytes, &len);
	check(r == 0 || r == -EMSGSIZE || r == -ENOMEM);
	if (r < 0) {
		return 0;
	}

	check(frame_find(bytes, len, MESSAGE_MAX_FRAME, &message, &message_len, &used) == FRAME_OK &&
	      used == len);
	check(reply_decode(&second, message, message_len, &reply) == 0);
	check(reply_encode(&second, &reply, &again, &again_len) == 0);
	check(again_len == len && memcmp(again, bytes, len) == 0);
	return 0;
}
