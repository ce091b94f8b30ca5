#pragma once
/*
 * stream: a connected socket with its two buffers: frames in, bytes out. Nothing here waits unless it is told to, and a peer
 * that has gone away raises no signal.
 *
 * Memory: the input grows to one frame at most, the output to what its user lets stand in it (stream_pending).
 *
 * Thread safety: a stream belongs to one thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stream_buffer {
	uint8_t *bytes;
	size_t at, end, size; /* bytes[at..end) are in use */
};

struct stream {
	int fd; /* the stream's own; -1: closed */
	struct stream_buffer in, out;
};

#define STREAM_INIT      \
	{                \
		.fd = -1 \
	}

/* Take over a socket, with empty buffers. */
void stream_open(struct stream *stream, int fd);
/* Close it (no shutdown: after fork the other process goes on using it) and free the buffers. */
void stream_close(struct stream *stream);

/*
 * Read what is there, at most some 256 KiB at a time. 0 if anything came, -EAGAIN if nothing is there, -ECONNRESET when the peer
 * has closed, another negative errno. `wait`: if nothing is there, for as long as the socket's SO_RCVTIMEO says.
 */
int stream_fill(struct stream *stream, bool wait);

/*
 * The next whole message read, valid until the next stream_fill. 0; -EAGAIN: none yet; -EBADMSG: no frame of this protocol.
 */
int stream_next(struct stream *stream, const uint8_t **ret_message, size_t *ret_len);

/* Append to the output. 0 or -ENOMEM. */
int stream_put(struct stream *stream, const uint8_t *bytes, size_t len);
/* Write what the socket takes. 0, also if some is left; or a negative errno. */
int stream_flush(struct stream *stream);

static inline size_t stream_pending(const struct stream *stream)
{
	return stream->out.end - stream->out.at;
}
