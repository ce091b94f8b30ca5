/*
 * make-corpus FOLDER: writes the first inputs of fuzz-frame, fuzz-request and fuzz-reply, made of the unit tests'
 * samples, into FOLDER/frame, /request and /reply, which must be there. Run it after the protocol changed.
 */
#include "proto/frame.h"
#include "proto/message.h"
#include "tests/unit/proto/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(const char *folder, const char *kind, size_t number, const uint8_t *bytes,
		size_t len)
{
	char path[4096];
	(void)snprintf(path, sizeof(path), "%s/%s/sample-%02zu", folder, kind, number);
	FILE *file = fopen(path, "wb");
	if (!file || fwrite(bytes, 1, len, file) != len || fclose(file) != 0) {
		perror(path);
		exit(EXIT_FAILURE);
	}
}

/* Appends a frame to a stream, and writes the message in it as a file. */
static void put_frame(const char *folder, const char *kind, size_t number, const uint8_t *frame,
		      size_t len, uint8_t *stream, size_t *stream_len)
{
	const uint8_t *message;
	size_t message_len, used;
	if (frame_find(frame, len, MESSAGE_MAX_FRAME, &message, &message_len, &used) != FRAME_OK) {
		abort();
	}
	put(folder, kind, number, message, message_len);
	memcpy(stream + *stream_len, frame, len);
	*stream_len += len;
}

int main(int argc, char **argv)
{
	static uint8_t stream[1 << 16];
	size_t stream_len = 0, len, before;
	struct arena arena = ARENA_INIT(1 << 20);
	const uint8_t *frame;
	if (argc != 2) {
		(void)fprintf(stderr, "usage: make-corpus FOLDER\n");
		return EXIT_FAILURE;
	}

	for (size_t i = 0; i < n_sample_requests; i++) {
		if (request_encode(&arena, &sample_requests[i], &frame, &len) < 0) {
			abort();
		}
		before = stream_len;
		put_frame(argv[1], "request", i, frame, len, stream, &stream_len);
		if (i % 4 == 3) { /* a frame that is not whole, ... */
			put(argv[1], "frame", i, stream + before, stream_len - before - 1);
		}
	}
	put(argv[1], "frame", n_sample_requests, stream, stream_len); /* ... and all */
	put(argv[1], "frame", n_sample_requests + 1,
	    (const uint8_t *)"\0\200\0\201\200\0\10\377\377\377", 10);

	for (size_t i = 0; i < n_sample_replies; i++) {
		if (reply_encode(&arena, &sample_replies[i], &frame, &len) < 0) {
			abort();
		}
		stream_len = 0;
		put_frame(argv[1], "reply", i, frame, len, stream, &stream_len);
	}
	arena_deinit(&arena);
	return EXIT_SUCCESS;
}
