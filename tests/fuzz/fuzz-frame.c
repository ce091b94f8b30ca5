/*
 * fuzz-frame: a stream of bytes as a client may send it: frames are found one after the other and decoded as requests.
 *
 * Holds frame_find to its promises: what it finds is inside the input; with one byte less of a frame it asks for
 * more, and never for more than the frame has.
 */
#include "proto/frame.h"
#include "proto/message.h"

#include <errno.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good) {
		abort();
	}
}

static void check_cut(const uint8_t *bytes, size_t frame, size_t max)
{
	size_t have = 0;
	while (have < frame) {
		const uint8_t *message;
		size_t len, needed = 0;
		check(frame_find(bytes, have, max, &message, &len, &needed) == FRAME_E_SHORT);
		check(needed > have && needed <= frame);
		have = needed - 1 > have ? needed - 1 : needed;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arena arena = ARENA_INIT(MESSAGE_ARENA_LIMIT);
	const size_t max = 300; /* small, so that inputs reach it */
	while (true) {
		const uint8_t *message;
		size_t len, used;
		if (frame_find(data, size, max, &message, &len, &used) != FRAME_OK) {
			return 0;
		}
		check(used <= size && len <= max && message + len == data + used);
		check_cut(data, used, max);

		struct request request;
		arena_reset(&arena);
		int r = request_decode(&arena, message, len, &request);
		check(r == 0 || r == -EBADMSG);
		data += used;
		size -= used;
	}
}
