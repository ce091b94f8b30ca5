/*
 * fuzz-request: one message as the daemon may get it. What can be decoded is encoded and decoded again, and must then
 * encode to the same bytes. With an unknown field behind it (which sends a Charge the long way round, see
 * proto/quick.h) it means the same.
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

static void check_longer(struct arena *arena, const uint8_t *data, size_t size,
			 const uint8_t *expected, size_t expected_len)
{
	static const uint8_t unknown[] = { 0xa0, 0x06, 0 }; /* field 100: 0 */
	struct request request;
	const uint8_t *bytes;
	size_t len;

	arena_reset(arena);
	uint8_t *longer = malloc(size + sizeof(unknown));
	check(longer != NULL);
	if (size > 0) {
		memcpy(longer, data, size);
	}
	memcpy(longer + size, unknown, sizeof(unknown));
	int r = request_decode(arena, longer, size + sizeof(unknown), &request);
	free(longer);
	check(r == 0 || r == -ENOMEM);
	if (r == 0 && request_encode(arena, &request, &bytes, &len) == 0) {
		check(len == expected_len && memcmp(bytes, expected, len) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arena first = ARENA_INIT(MESSAGE_ARENA_LIMIT),
			    second = ARENA_INIT(MESSAGE_ARENA_LIMIT);
	struct request request;
	const uint8_t *bytes, *message, *again;
	size_t len, message_len, again_len, used;

	arena_reset(&first);
	arena_reset(&second);
	int r = request_decode(&first, data, size, &request);
	check(r == 0 || r == -EBADMSG || r == -ENOMEM);
	if (r < 0) {
		return 0;
	}
	r = request_encode(&first, &request, &bytes, &len);
	check(r == 0 || r == -EMSGSIZE || r == -ENOMEM);
	if (r < 0) {
		return 0;
	}

	check(frame_find(bytes, len, MESSAGE_MAX_FRAME, &message, &message_len, &used) == FRAME_OK &&
	      used == len);
	check(request_decode(&second, message, message_len, &request) == 0);
	check(request_encode(&second, &request, &again, &again_len) == 0);
	check(again_len == len && memcmp(again, bytes, len) == 0);
	check_longer(&second, data, size, bytes, len);
	return 0;
}
