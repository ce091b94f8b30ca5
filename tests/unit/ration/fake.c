#include "tests/unit/ration/fake.h"

#include "proto/frame.h"
#include "tests/support/test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

const struct limits FAKE_LIMITS = {
	.max_frame = MESSAGE_MAX_FRAME,
	.max_handles = 1000000,
	.max_items = 65536,
	.max_walks = 4,
	.max_lifetime_ms = 86400000,
	.max_output = 4194304,
	.idle_frame_ms = 10000,
	.max_charge_items = MESSAGE_MAX_CHARGE_ITEMS,
	.max_operations_kept = MESSAGE_MAX_OPERATIONS_KEPT,
	.max_leases = MESSAGE_MAX_LEASES,
	.max_wait_ms = MESSAGE_MAX_WAIT_MS,
	.max_waits = MESSAGE_MAX_WAITS,
};

void fake_listen(struct fake *fake, const char *dir)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int n;

	n = snprintf(fake->path, sizeof(fake->path), "%s/fake.sock", dir);
	assert_true(n > 0 && (size_t)n < sizeof(fake->path));
	(void)snprintf(fake->url, sizeof(fake->url), "unix:%s", fake->path);
	memcpy(address.sun_path, fake->path, (size_t)n + 1);
	(void)unlink(fake->path);
	fake->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fake->listener >= 0);
	assert_int_equal(bind(fake->listener, (const struct sockaddr *)&address, sizeof(address)),
			 0);
	assert_int_equal(listen(fake->listener, 16), 0);
}

void fake_close(struct fake *fake)
{
	assert_int_equal(close(fake->listener), 0);
	(void)unlink(fake->path);
}

static bool is_ready(int fd, int ms)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };

	return poll(&one, 1, ms) == 1;
}

bool fake_is_called(struct fake *fake, int ms)
{
	return is_ready(fake->listener, ms);
}

void fake_accept(struct fake *fake, struct fake_peer *peer)
{
	assert_true(is_ready(fake->listener, FAKE_WAIT_MS));
	*peer = (struct fake_peer){
		.arena = ARENA_INIT(MESSAGE_ARENA_LIMIT),
		.out = ARENA_INIT(MESSAGE_ARENA_LIMIT),
	};
	peer->fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(peer->fd >= 0);
}

void fake_hang_up(struct fake_peer *peer)
{
	assert_int_equal(close(peer->fd), 0);
	free(peer->bytes);
	arena_deinit(&peer->arena);
	arena_deinit(&peer->out);
}

/* False at the end of the stream. */
static bool read_more(struct fake_peer *peer)
{
	ssize_t got;

	if (peer->end == peer->size) {
		peer->size = peer->size == 0 ? 65536 : peer->size * 2;
		peer->bytes = realloc(peer->bytes, peer->size);
		assert_non_null(peer->bytes);
	}
	assert_true(is_ready(peer->fd, FAKE_WAIT_MS));
	got = recv(peer->fd, peer->bytes + peer->end, peer->size - peer->end, 0);
	if (got <= 0) {
		return false;
	}
	peer->end += (size_t)got;
	return true;
}

void fake_take(struct fake_peer *peer, enum request_type type, struct request *ret_request)
{
	const uint8_t *message;
	size_t len, used;

	while (frame_find(peer->bytes + peer->at, peer->end - peer->at, MESSAGE_MAX_FRAME, &message,
			  &len, &used) != FRAME_OK) {
		assert_true(read_more(peer));
	}
	arena_reset(&peer->arena);
	assert_int_equal(request_decode(&peer->arena, message, len, ret_request), 0);
	if (type != FAKE_ANY) {
		assert_int_equal(ret_request->type, type);
	}
	peer->at += used;
}

bool fake_is_silent(struct fake_peer *peer, int ms)
{
	return peer->at == peer->end && !is_ready(peer->fd, ms);
}

void fake_expect_silence(struct fake_peer *peer, int ms)
{
	assert_true(fake_is_silent(peer, ms));
}

void fake_expect_end(struct fake_peer *peer)
{
	while (read_more(peer)) {
		peer->at = peer->end;
	}
}

void fake_send_bytes(struct fake_peer *peer, const void *bytes, size_t len)
{
	assert_int_equal(send(peer->fd, bytes, len, MSG_NOSIGNAL), len);
}

void fake_send(struct fake_peer *peer, const struct reply *reply)
{
	const uint8_t *bytes;
	size_t len;

	arena_reset(&peer->out);
	assert_int_equal(reply_encode(&peer->out, reply, &bytes, &len), 0);
	fake_send_bytes(peer, bytes, len);
}

void fake_welcome(struct fake_peer *peer, bool resumed, uint64_t last_batch,
		  const struct limits *limits, struct hello *ret_hello)
{
	struct request request;
	struct reply reply = {
		.type = REPLY_WELCOME,
		.welcome = {
			.version = MESSAGE_VERSION,
			.daemon = text_of("fake/1"),
			.resumed = resumed,
			.last_batch = last_batch,
			.limits = *limits,
			.incarnation = text_of(peer->incarnation != NULL ? peer->incarnation
									 : "0123456789abcdef"),
			.keeps = peer->keeps,
			.restored = peer->restored,
			.durable_batch = peer->durable_batch,
			.durable_operation = peer->durable_operation,
		},
	};

	fake_take(peer, REQUEST_HELLO, &request);
	reply.id = request.id;
	reply.welcome.last_operation = peer->last_operation;
	if (!resumed && !peer->restored && request.hello.next_operation > 0) {
		reply.welcome.last_operation = request.hello.next_operation - 1;
	}
	if (ret_hello != NULL) {
		*ret_hello = request.hello;
	}
	fake_send(peer, &reply);
}

void fake_accept_anew(struct fake *fake, struct fake_peer *peer, bool keeps, uint64_t last_batch,
		      const struct limits *limits, struct hello *ret_hello)
{
	char forgotten[MESSAGE_SESSION_BYTES];
	struct hello hello;

	fake_accept(fake, peer);
	peer->keeps = keeps;
	fake_welcome(peer, /* resumed= */ false, last_batch, limits, &hello);
	assert_int_equal(hello.session.len, sizeof(forgotten));
	memcpy(forgotten, hello.session.at, sizeof(forgotten));
	fake_expect_end(peer);
	fake_hang_up(peer);
	fake_accept(fake, peer);
	peer->keeps = keeps;
	fake_welcome(peer, /* resumed= */ false, last_batch, limits, &hello);
	assert_memory_not_equal(hello.session.at, forgotten, sizeof(forgotten));
	if (ret_hello != NULL) {
		*ret_hello = hello;
	}
}

void fake_interned(struct fake_peer *peer, uint64_t id)
{
	const struct reply reply = { .id = id, .type = REPLY_INTERNED };

	fake_send(peer, &reply);
}

void fake_applied(struct fake_peer *peer, const struct request *add)
{
	const struct reply reply = { .id = add->id,
				     .type = REPLY_APPLIED,
				     .applied = { .batch = add->add.batch } };

	fake_send(peer, &reply);
}

void fake_item_error(struct fake_peer *peer, uint64_t id, uint64_t batch, uint32_t index,
		     enum code code, const char *text)
{
	const struct item_error error = { .index = index, .code = code, .text = text_of(text) };
	const struct reply reply = {
		.id = id,
		.type = REPLY_APPLIED,
		.applied = { .batch = batch, .n_errors = 1, .errors = &error },
	};

	fake_send(peer, &reply);
}

void fake_error(struct fake_peer *peer, uint64_t id, enum code code, const char *text)
{
	const struct reply reply = { .id = id,
				     .type = REPLY_ERROR,
				     .error = { .code = code, .text = text_of(text) } };

	fake_send(peer, &reply);
}

void fake_durable(struct fake_peer *peer, uint64_t batch, uint64_t operation)
{
	const struct reply reply = { .type = REPLY_DURABLE,
				     .durable = { .batch = batch, .operation = operation } };

	fake_send(peer, &reply);
}

uint64_t fake_take_flush(struct fake_peer *peer)
{
	struct request request;

	fake_take(peer, REQUEST_FLUSH, &request);
	assert_true(request.flush.durable);
	return request.id;
}

void fake_flushed(struct fake_peer *peer, uint64_t id)
{
	const struct reply reply = { .id = id,
				     .type = REPLY_FLUSHED,
				     .flushed = { .durable = true } };

	fake_send(peer, &reply);
}

void fake_goodbye(struct fake_peer *peer, enum code code, const char *text)
{
	const struct reply reply = { .type = REPLY_GOODBYE,
				     .goodbye = { .code = code, .text = text_of(text) } };

	fake_send(peer, &reply);
}
