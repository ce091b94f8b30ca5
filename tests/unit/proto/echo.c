/*
 * echo: reads frames from standard input, requests ("echo requests") or replies ("echo replies"), decodes each, and writes it to standard
 * output as this project encodes it. For cross-check.py, which holds it against another implementation of protobuf.
 */
#include "proto/frame.h"
#include "proto/message.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what)
{
	(void)fprintf(stderr, "echo: %s\n", what);
	return EXIT_FAILURE;
}

static int recode(struct arena *arena, bool requests, const uint8_t *message, size_t len,
		  const uint8_t **ret_bytes, size_t *ret_len)
{
	if (requests) {
		struct request request;
		int r = request_decode(arena, message, len, &request);
		return r < 0 ? r : request_encode(arena, &request, ret_bytes, ret_len);
	}
	struct reply reply;
	int r = reply_decode(arena, message, len, &reply);
	return r < 0 ? r : reply_encode(arena, &reply, ret_bytes, ret_len);
}

int main(int argc, char **argv)
{
	static uint8_t input[4 << 20];
	size_t len = fread(input, 1, sizeof(input), stdin), at = 0;
	struct arena arena = ARENA_INIT(MESSAGE_ARENA_LIMIT);
	bool requests = argc == 2 && strcmp(argv[1], "requests") == 0;
	if (!requests && !(argc == 2 && strcmp(argv[1], "replies") == 0)) {
		return fail("usage: echo requests|replies");
	}
	while (at < len) {
		const uint8_t *message, *bytes;
		size_t message_len, used, out_len;
		if (frame_find(input + at, len - at, MESSAGE_MAX_FRAME, &message, &message_len,
			       &used) != FRAME_OK) {
			return fail("no frame");
		}
		if (recode(&arena, requests, message, message_len, &bytes, &out_len) < 0) {
			return fail("no message");
		}
		if (fwrite(bytes, 1, out_len, stdout) != out_len) {
			return fail("can't write");
		}
		at += used;
		arena_reset(&arena);
	}
	arena_deinit(&arena);
	return EXIT_SUCCESS;
}
