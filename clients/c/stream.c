#include "clients/c/stream.h"

#include "proto/frame.h"
#include "proto/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STREAM_READ (64u * 1024)
#define STREAM_MAX_FILL (256u * 1024)

/* Room for `len` more bytes at the end: moves what is in use to the front, or doubles the buffer. */
static int make_room(struct stream_buffer *buffer, size_t len)
{
	size_t used = buffer->end - buffer->at;
	size_t size = buffer->size == 0 ? 4096 : buffer->size;
	uint8_t *bytes;

	if (buffer->size - buffer->end >= len) {
		return 0;
	}
	if (used > 0) {
		memmove(buffer->bytes, buffer->bytes + buffer->at, used);
	}
	buffer->at = 0;
	buffer->end = used;
	while (size - used < len) {
		size *= 2;
	}
	if (size > buffer->size) {
		bytes = realloc(buffer->bytes, size);
		if (bytes == NULL) {
			return -ENOMEM;
		}
		buffer->bytes = bytes;
		buffer->size = size;
	}
	return 0;
}

void stream_open(struct stream *stream, int fd)
{
	*stream = (struct stream){ .fd = fd };
}

void stream_close(struct stream *stream)
{
	if (stream->fd >= 0) {
		(void)close(stream->fd);
	}
	free(stream->in.bytes);
	free(stream->out.bytes);
	*stream = (struct stream)STREAM_INIT;
}

int stream_fill(struct stream *stream, bool wait)
{
	struct stream_buffer *in = &stream->in;
	size_t total = 0;

	while (total < STREAM_MAX_FILL) {
		ssize_t got;

		if (make_room(in, STREAM_READ) < 0) {
			return -ENOMEM;
		}
		got = recv(stream->fd, in->bytes + in->end, in->size - in->end,
			   wait && total == 0 ? 0 : MSG_DONTWAIT);
		if (got == 0) {
			return total > 0 ? 0 : -ECONNRESET;
		}
		if (got < 0) {
			if (errno == EINTR) {
				continue;
			}
			if (total > 0) {
				return 0;
			}
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
		}
		in->end += (size_t)got;
		total += (size_t)got;
		if (in->end < in->size) {
			break;
		}
	}
	return 0;
}

int stream_next(struct stream *stream, const uint8_t **ret_message, size_t *ret_len)
{
	struct stream_buffer *in = &stream->in;
	size_t used;

	/* Before the first bytes have come there is no buffer either. */
	if (in->at == in->end) {
		return -EAGAIN;
	}
	switch (frame_find(in->bytes + in->at, in->end - in->at, MESSAGE_MAX_FRAME, ret_message,
			   ret_len, &used)) {
	case FRAME_OK:
		in->at += used;
		return 0;
	case FRAME_E_SHORT:
		return -EAGAIN;
	default:
		return -EBADMSG;
	}
}

int stream_put(struct stream *stream, const uint8_t *bytes, size_t len)
{
	struct stream_buffer *out = &stream->out;

	if (make_room(out, len) < 0) {
		return -ENOMEM;
	}
	memcpy(out->bytes + out->end, bytes, len);
	out->end += len;
	return 0;
}

int stream_flush(struct stream *stream)
{
	struct stream_buffer *out = &stream->out;

	while (out->at < out->end) {
		ssize_t sent = send(stream->fd, out->bytes + out->at, out->end - out->at,
				    MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0) {
			if (errno == EINTR) {
				continue;
			}
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
		}
		out->at += (size_t)sent;
	}
	out->at = out->end = 0;
	return 0;
}
