#include "daemon/output.h"

#include <errno.h>
#include <event2/buffer.h>
#include <string.h>
#include <sys/socket.h>

size_t output_pending(const struct output *output)
{
	return output->pending != NULL ? evbuffer_get_length(output->pending) : 0;
}

void output_deinit(struct output *output)
{
	if (output->pending != NULL) {
		evbuffer_free(output->pending);
		output->pending = NULL;
	}
}

static int add_pending(struct output *output, const uint8_t *bytes, size_t len)
{
	if (len == 0) {
		return 0;
	}
	if (output->pending == NULL) {
		output->pending = evbuffer_new();
	}
	if (output->pending == NULL || evbuffer_add(output->pending, bytes, len) != 0) {
		return -ENOMEM;
	}
	return 0;
}

/* 1: the socket took all; 0: it would block. */
static int write_pending(struct output *output, int fd, size_t *written)
{
	while (output->pending != NULL) {
		int n = evbuffer_write(output->pending, fd);

		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return errno == EAGAIN ? 0 : -errno;
		}
		*written += (size_t)n;
		if (evbuffer_get_length(output->pending) == 0) {
			output_deinit(output);
		}
	}
	return 1;
}

static int write_stage(struct output *output, struct output_stage *stage, int fd, size_t *written)
{
	size_t len = stage->len, sent = 0;

	stage->len = 0;
	while (sent < len) {
		ssize_t n = send(fd, stage->bytes + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return errno == EAGAIN
				       ? add_pending(output, stage->bytes + sent, len - sent)
				       : -errno;
		}
		*written += (size_t)n;
		sent += (size_t)n;
	}
	return 0;
}

int output_flush(struct output *output, struct output_stage *stage, int fd, size_t *written)
{
	int r = write_pending(output, fd, written);

	if (stage == NULL || stage->len == 0 || r < 0) {
		return r < 0 ? r : 0;
	}
	if (r == 0) {
		size_t len = stage->len;

		stage->len = 0;
		return add_pending(output, stage->bytes, len);
	}
	return write_stage(output, stage, fd, written);
}

int output_add(struct output *output, struct output_stage *stage, int fd, const uint8_t *bytes,
	       size_t len, size_t *written)
{
	int r;

	if (stage == NULL || output->pending != NULL) {
		return add_pending(output, bytes, len);
	}
	if (len > OUTPUT_STAGE - stage->len) {
		r = output_flush(output, stage, fd, written);
		if (r < 0) {
			return r;
		}
	}
	if (output->pending != NULL || len > OUTPUT_STAGE) {
		return add_pending(output, bytes, len);
	}
	memcpy(stage->bytes + stage->len, bytes, len);
	stage->len += len;
	return 0;
}
