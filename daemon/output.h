#pragma once
/*
 * output: replies on their way to a client.
 *
 * Replies of one round are collected in the worker's staging buffer and go out in one write; what the socket does not take waits
 * here. An idle connection has no memory for output.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evbuffer;

/* One per worker, lent to the connection whose round it is. */
#define OUTPUT_STAGE ((size_t)256 << 10)

struct output_stage {
	uint8_t *bytes; /* OUTPUT_STAGE of them */
	size_t len;
};

struct output {
	struct evbuffer *pending; /* NULL while empty */
};

/* How much waits for the socket, the stage not counted. */
size_t output_pending(const struct output *output);

/*
 * Add to what is to be sent, in order; `stage` is NULL outside the connection's own round. A full stage is written to `fd`.
 * *written grows by what the socket took. 0, or the negative errno of a lost connection.
 */
int output_add(struct output *output, struct output_stage *stage, int fd, const uint8_t *bytes,
	       size_t len, size_t *written);

/* Write as much as the socket takes, stage last. */
int output_flush(struct output *output, struct output_stage *stage, int fd, size_t *written);

void output_deinit(struct output *output);
