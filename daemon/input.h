#pragma once
/*
 * input: bytes of a connection that were read and not yet used up, kept only while there are any.
 *
 * Mostly that is the beginning of one frame. While a connection is paused, or on its way to another worker, it can be many.
 */
#include <stddef.h>
#include <stdint.h>

struct input {
	uint8_t *bytes;
	size_t off, len, size; /* used up; held, used up ones included; allocated */
	size_t wanted; /* off .. wanted would be a whole frame, as far as is known; 0: unknown */
};

#define INPUT_INIT \
	{          \
		0  \
	}

static inline size_t input_left(const struct input *input)
{
	return input->len - input->off;
}

/* How many bytes the frame begun still wants, all of which there is room for; 0 if none was begun. */
static inline size_t input_room(const struct input *input)
{
	return input->wanted > input->len ? input->wanted - input->len : 0;
}

/* Append; -ENOMEM. */
int input_append(struct input *input, const uint8_t *bytes, size_t len);

/* The frame at the front takes `total` bytes: move it to the front of the memory and make room for it. -ENOMEM. */
int input_want(struct input *input, size_t total);

/* `len` bytes at the front are used up. Frees the memory with the last one. */
void input_consume(struct input *input, size_t len);

void input_deinit(struct input *input);
