#include "daemon/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void input_compact(struct input *input)
{
	if (input->off > 0) {
		memmove(input->bytes, input->bytes + input->off, input_left(input));
		input->len -= input->off;
		input->off = 0;
	}
}

static int input_grow(struct input *input, size_t size)
{
	uint8_t *grown;

	if (size <= input->size) {
		return 0;
	}
	grown = realloc(input->bytes, size);
	if (grown == NULL) {
		return -ENOMEM;
	}
	input->bytes = grown;
	input->size = size;
	return 0;
}

int input_append(struct input *input, const uint8_t *bytes, size_t len)
{
	int r;

	if (len == 0) {
		return 0;
	}
	input_compact(input);
	r = input_grow(input, input->len + len);
	if (r == 0) {
		memcpy(input->bytes + input->len, bytes, len);
		input->len += len;
	}
	return r;
}

int input_want(struct input *input, size_t total)
{
	input_compact(input);
	input->wanted = total;
	return input_grow(input, total);
}

void input_consume(struct input *input, size_t len)
{
	input->off += len;
	input->wanted = 0;
	if (input->off == input->len) {
		input_deinit(input);
	}
}

void input_deinit(struct input *input)
{
	free(input->bytes);
	*input = (struct input)INPUT_INIT;
}
