#include "clients/c/call.h"

#include "clients/c/client.h"
#include "clients/c/clock.h"
#include "clients/c/error.h"
#include "clients/c/include/ration.h"
#include "clients/c/stream.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define CALL_ARENA MESSAGE_ARENA_LIMIT
#define CALL_INCARNATION 16u
#define CALL_RETRY_MS 2
#define AGENT "libration/" RATION_VERSION

struct call {
	const struct dial_address *address;
	pthread_mutex_t lock; /* of `busy` */
	pthread_cond_t turn;
	bool busy; /* somebody has the turn: all that follows is theirs */

	struct stream stream;
	struct arena arena;
	int64_t receive_timeout; /* what the socket's SO_RCVTIMEO is, in ms; 0: none */
	uint64_t next_id;
	struct limits limits;
	uint8_t incarnation[CALL_INCARNATION];
};

int call_new(const struct dial_address *address, struct call **ret_call)
{
	struct call *call = calloc(1, sizeof(*call));

	if (call == NULL) {
		return -ENOMEM;
	}
	call->address = address;
	call->stream = (struct stream)STREAM_INIT;
	call->arena = (struct arena)ARENA_INIT(CALL_ARENA);
	call->next_id = 1;
	(void)pthread_mutex_init(&call->lock, NULL);
	(void)client_cond_init(&call->turn);
	*ret_call = call;
	return 0;
}

struct call *call_free(struct call *call)
{
	if (call != NULL) {
		stream_close(&call->stream);
		arena_deinit(&call->arena);
		(void)pthread_cond_destroy(&call->turn);
		(void)pthread_mutex_destroy(&call->lock);
		free(call);
	}
	return NULL;
}

/* ---- turns ---- */

static int begin_turn(struct call *call, int64_t deadline)
{
	struct timespec until = clock_timespec(deadline);
	int r = 0;

	(void)pthread_mutex_lock(&call->lock);
	while (call->busy && r == 0) {
		r = deadline == CLOCK_NEVER
			    ? pthread_cond_wait(&call->turn, &call->lock)
			    : pthread_cond_timedwait(&call->turn, &call->lock, &until);
	}
	if (!call->busy) {
		call->busy = true;
		r = 0;
	}
	(void)pthread_mutex_unlock(&call->lock);
	return -r;
}

static void end_turn(struct call *call)
{
	(void)pthread_mutex_lock(&call->lock);
	call->busy = false;
	(void)pthread_cond_signal(&call->turn);
	(void)pthread_mutex_unlock(&call->lock);
}

void call_lock(struct call *call)
{
	(void)pthread_mutex_lock(&call->lock);
}

void call_unlock(struct call *call)
{
	(void)pthread_mutex_unlock(&call->lock);
}

void call_forget(struct call *call)
{
	if (call->busy) {
		/* Another thread of the parent was amid these; in what state, nobody here can say. They stay where they are. */
		call->stream = (struct stream)STREAM_INIT;
		call->arena = (struct arena)ARENA_INIT(CALL_ARENA);
		call->busy = false;
	}
	stream_close(&call->stream);
	(void)client_cond_init(&call->turn);
}

/* ---- the connection ---- */

static int wait_for(int fd, short events, int64_t deadline)
{
	struct pollfd one = { .fd = fd, .events = events };
	int r;

	do {
		r = poll(&one, 1, clock_poll_timeout(deadline));
	} while (r < 0 && errno == EINTR);
	if (r < 0) {
		return -errno;
	}
	return r == 0 ? -ETIMEDOUT : 0;
}

static int connect_next(struct dial *dial, int64_t deadline, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	int r;

	r = dial_next(dial, &fd);
	if (r == 0) {
		r = wait_for(fd, POLLOUT, deadline);
	}
	if (r == 0) {
		r = dial_check(fd);
	}
	if (r == 0) {
		*ret_fd = fd;
		fd = -1;
	}
	return r;
}

/* Each address of the name in turn. */
static int connect_listed(struct dial *dial, int64_t deadline, int *ret_fd)
{
	int r;

	do {
		r = connect_next(dial, deadline, ret_fd);
	} while (r < 0 && r != -ETIMEDOUT && dial->next != NULL);
	return r;
}

/* A name that leads nowhere has left its own text. */
static int no_daemon(const struct dial_address *address, int r)
{
	char why[256];

	(void)snprintf(why, sizeof(why), "%s",
		       *ration_error() == '\0' ? strerror(-r) : ration_error());
	return error_set(-ENOTCONN, "no daemon at %s: %s", address->url, why);
}

static int connect_any(const struct dial_address *address, int64_t deadline, int *ret_fd)
{
	struct dial dial;
	int r;

	r = dial_begin(&dial, address);
	if (r == 0) {
		r = connect_listed(&dial, deadline, ret_fd);
		/* A unix socket whose queue is full says so at once; that passes. */
		while (r == -EAGAIN && address->is_unix && clock_now() < deadline) {
			(void)poll(NULL, 0, CALL_RETRY_MS);
			dial.tried = false;
			r = connect_listed(&dial, deadline, ret_fd);
		}
	}
	dial_end(&dial);
	if (r == -ETIMEDOUT || r == -EAGAIN) {
		return error_set(-ETIMEDOUT, "no connection to the daemon at %s in time",
				 address->url);
	}
	return r < 0 ? no_daemon(address, r) : 0;
}

/* Reads wait in the kernel, which saves a poll for each reply. The socket's timeout is set only if it would be off by a quarter. */
static int set_receive_timeout(struct call *call, int64_t deadline)
{
	int64_t left = deadline == CLOCK_NEVER ? 0 : deadline - clock_now();
	struct timeval value;

	if (deadline != CLOCK_NEVER && left <= 0) {
		left = 1;
	}
	if (left == call->receive_timeout ||
	    (left > 0 && left < call->receive_timeout && left > call->receive_timeout / 4 * 3)) {
		return 0;
	}
	value = (struct timeval){ .tv_sec = left / 1000, .tv_usec = left % 1000 * 1000 };
	if (setsockopt(call->stream.fd, SOL_SOCKET, SO_RCVTIMEO, &value, sizeof(value)) < 0) {
		return -errno;
	}
	call->receive_timeout = left;
	return 0;
}

static int write_all(struct call *call, int64_t deadline)
{
	int r;

	while ((r = stream_flush(&call->stream)) == 0 && stream_pending(&call->stream) > 0) {
		r = wait_for(call->stream.fd, POLLOUT, deadline);
		if (r < 0) {
			break;
		}
	}
	return r;
}

/* The next reply, in the arena and the stream's buffer. */
static int read_reply(struct call *call, int64_t deadline, struct reply *ret_reply,
		      const uint8_t **ret_message, size_t *ret_len)
{
	int r;

	while ((r = stream_next(&call->stream, ret_message, ret_len)) == -EAGAIN) {
		r = set_receive_timeout(call, deadline);
		if (r == 0) {
			r = stream_fill(&call->stream, /* wait= */ true);
		}
		if (r == -EAGAIN && clock_now() >= deadline) {
			return -ETIMEDOUT;
		}
		if (r < 0 && r != -EAGAIN) {
			return r;
		}
	}
	if (r < 0) {
		return r;
	}
	arena_reset(&call->arena);
	return reply_decode(&call->arena, *ret_message, *ret_len, ret_reply);
}

static int write_request(struct call *call, struct request *request, int64_t deadline)
{
	const uint8_t *bytes;
	size_t len;
	int r;

	request->id = call->next_id++;
	arena_reset(&call->arena);
	r = request_encode(&call->arena, request, &bytes, &len);
	if (r == 0) {
		r = stream_put(&call->stream, bytes, len);
	}
	return r < 0 ? r : write_all(call, deadline);
}

/* ---- asking ---- */

static int daemon_error(const struct error_body *error)
{
	if (error->code == CODE_OK || error->code > INT32_MAX) {
		return error_set(-EBADMSG, "the daemon sent an error without a code");
	}
	return error_set((int)error->code, "%.*s", (int)error->text.len, error->text.at);
}

/* Of no session. */
static const struct hello HELLO = {
	.version = MESSAGE_VERSION,
	.session = { .at = "" },
	.next_batch = 1,
	.agent = { .at = AGENT, .len = sizeof(AGENT) - 1 },
};

static int greet(struct call *call, const struct hello *hello, int64_t deadline)
{
	struct request request = { .type = REQUEST_HELLO, .hello = *hello };
	struct reply reply = { .type = REPLY_NONE };
	const uint8_t *message;
	size_t len;
	int r;

	r = write_request(call, &request, deadline);
	if (r == 0) {
		r = read_reply(call, deadline, &reply, &message, &len);
	}
	if (r < 0) {
		return r;
	}
	if (reply.type == REPLY_ERROR || reply.type == REPLY_GOODBYE) {
		return daemon_error(&reply.error);
	}
	if (reply.type != REPLY_WELCOME || reply.welcome.version != MESSAGE_VERSION) {
		return error_set(-EPROTO, "the daemon does not speak version %u of the protocol",
				 MESSAGE_VERSION);
	}
	call->limits = reply.welcome.limits;
	memset(call->incarnation, 0, sizeof(call->incarnation));
	if (reply.welcome.incarnation.len == CALL_INCARNATION) {
		memcpy(call->incarnation, reply.welcome.incarnation.at, CALL_INCARNATION);
	}
	return 0;
}

static int reconnect(struct call *call, const struct hello *hello, int64_t deadline)
{
	int fd = -1, r;

	error_clear();
	r = connect_any(call->address, deadline, &fd);
	if (r < 0) {
		return r;
	}
	stream_open(&call->stream, fd);
	call->receive_timeout = 0;
	if (fcntl(fd, F_SETFL, 0) < 0) {
		r = -errno;
	} else {
		r = greet(call, hello, deadline);
	}
	if (r != 0) {
		stream_close(&call->stream);
	}
	return r;
}

static int take_replies(struct call *call, uint64_t id, int64_t deadline,
			const struct call_sink *sink)
{
	for (;;) {
		const uint8_t *message;
		struct reply reply;
		size_t len;
		int r;

		r = read_reply(call, deadline, &reply, &message, &len);
		if (r < 0) {
			return r;
		}
		if (reply.type == REPLY_GOODBYE) {
			return -ECONNRESET;
		}
		if (reply.id != id || reply.type == REPLY_NONE) {
			continue;
		}
		if (reply.type == REPLY_ERROR) {
			return daemon_error(&reply.error);
		}
		r = sink->take(sink->ctx, &reply, message, len);
		if (r != CALL_MORE) {
			return r;
		}
	}
}

/* Once, with the turn. */
static int ask_once(struct call *call, struct request *request, int64_t deadline,
		    const struct call_sink *sink)
{
	int r = 0;

	if (call->stream.fd < 0) {
		r = reconnect(call, &HELLO, deadline);
	}
	if (r != 0 || request == NULL) {
		return r;
	}
	if (sink->begin != NULL) {
		sink->begin(sink->ctx);
	}
	r = write_request(call, request, deadline);
	if (r == 0) {
		r = take_replies(call, request->id, deadline, sink);
	}
	if (r < 0 && r != -EMSGSIZE) {
		/* A late or half-read reply must not meet the next question. */
		stream_close(&call->stream);
	}
	return r;
}

static bool is_broken(int r)
{
	return r == -ECONNRESET || r == -EPIPE;
}

/* The error text for what has none yet. */
static int explain(int r)
{
	if (is_broken(r)) {
		return error_set(-ENOTCONN, "the daemon ended the connection");
	}
	if (r == -ETIMEDOUT) {
		return error_set(r, "the daemon did not answer in time");
	}
	if (r == -EBADMSG) {
		return error_set(r, "the daemon sent a malformed reply");
	}
	if (r == -EMSGSIZE) {
		return error_set(r, "the request does not fit a message of the protocol");
	}
	if (r < 0 && *ration_error() == '\0') {
		return error_set(r, "%s", strerror(-r));
	}
	return r;
}

/* With the turn. */
static int ask(struct call *call, struct request *request, int64_t deadline,
	       const struct call_sink *sink)
{
	int r;

	r = ask_once(call, request, deadline, sink);
	if (is_broken(r)) {
		r = ask_once(call, request, deadline, sink);
	}
	return explain(r);
}

int call_ask(struct call *call, struct request *request, int64_t deadline,
	     const struct call_sink *sink)
{
	int r;

	error_clear();
	r = begin_turn(call, deadline);
	if (r < 0) {
		return explain(r);
	}
	r = ask(call, request, deadline, sink);
	end_turn(call);
	return r;
}

int call_connect(struct call *call, int64_t deadline, struct limits *ret_limits,
		 uint8_t *ret_incarnation)
{
	int r;

	error_clear();
	r = begin_turn(call, deadline);
	if (r < 0) {
		return explain(r);
	}
	r = ask(call, NULL, deadline, NULL);
	if (r == 0) {
		*ret_limits = call->limits;
		memcpy(ret_incarnation, call->incarnation, CALL_INCARNATION);
	}
	end_turn(call);
	return r;
}

int call_hello(struct call *call, const struct hello *hello, int64_t deadline)
{
	int r;

	error_clear();
	r = begin_turn(call, deadline);
	if (r < 0) {
		return explain(r);
	}
	stream_close(&call->stream);
	r = reconnect(call, hello, deadline);
	stream_close(&call->stream);
	end_turn(call);
	return explain(r);
}
