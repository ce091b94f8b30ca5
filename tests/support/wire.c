#include "tests/support/wire.h"

#include "proto/frame.h"
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct wire *wire_new(int fd)
{
	struct wire *wire = calloc(1, sizeof(*wire));

	assert_non_null(wire);
	*wire = (struct wire){
		.fd = fd,
		.next_id = 1,
		.in = ARENA_INIT((size_t)256 << 20),
		.out = ARENA_INIT((size_t)256 << 20),
	};
	return wire;
}

struct wire *wire_open(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return wire_new(fd);
}

struct wire *wire_open_tcp(int family, unsigned port)
{
	struct sockaddr_in to4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 to6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)port),
				    .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r;

	assert_true(fd >= 0);
	to4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r = family == AF_INET ? connect(fd, (struct sockaddr *)&to4, sizeof(to4))
			      : connect(fd, (struct sockaddr *)&to6, sizeof(to6));
	assert_int_equal(r, 0);
	return wire_new(fd);
}

struct wire *wire_free(struct wire *wire)
{
	if (wire != NULL) {
		(void)close(wire->fd);
		free(wire->bytes);
		arena_deinit(&wire->in);
		arena_deinit(&wire->out);
		free(wire);
	}
	return NULL;
}

bool wire_send_bytes(struct wire *wire, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len > 0) {
		ssize_t n = send(wire->fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return false;
		}
		at += n;
		len -= (size_t)n;
	}
	return true;
}

uint8_t *wire_encode(struct wire *wire, const struct request *request, size_t *ret_len)
{
	const uint8_t *bytes;
	uint8_t *copy;

	arena_reset(&wire->out);
	assert_int_equal(request_encode(&wire->out, request, &bytes, ret_len), 0);
	copy = malloc(*ret_len);
	assert_non_null(copy);
	memcpy(copy, bytes, *ret_len);
	return copy;
}

uint64_t wire_send(struct wire *wire, const struct request *request)
{
	struct request numbered = *request;
	uint8_t *bytes;
	size_t len;

	if (numbered.id == 0) {
		numbered.id = wire->next_id++;
	}
	bytes = wire_encode(wire, &numbered, &len);
	(void)wire_send_bytes(wire, bytes, len);
	free(bytes);
	return numbered.id;
}

void wire_shutdown(struct wire *wire)
{
	(void)shutdown(wire->fd, SHUT_WR);
}

bool wire_poll(struct wire *wire, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = wire->fd, .events = POLLIN };

	return wire->len > wire->used || poll(&poll_fd, 1, timeout_ms) > 0;
}

/* More bytes; false at the end. */
static bool fill(struct wire *wire)
{
	ssize_t n;

	if (!wire_poll(wire, WIRE_PATIENCE_MS)) {
		fail_msg("nothing came from the daemon");
	}
	if (wire->size - wire->len < 65536) {
		wire->size = wire->size * 2 + 131072;
		wire->bytes = realloc(wire->bytes, wire->size);
		assert_non_null(wire->bytes);
	}
	do {
		n = recv(wire->fd, wire->bytes + wire->len, wire->size - wire->len, 0);
	} while (n < 0 && errno == EINTR);
	if (n <= 0) {
		return false;
	}
	wire->len += (size_t)n;
	return true;
}

static bool receive(struct wire *wire, struct reply *ret_reply)
{
	const uint8_t *message;
	size_t message_len, used;

	if (wire->used > 0) {
		memmove(wire->bytes, wire->bytes + wire->used, wire->len - wire->used);
		wire->len -= wire->used;
		wire->used = 0;
	}
	for (;;) {
		enum frame_error r = wire->len > 0
					     ? frame_find(wire->bytes, wire->len, MESSAGE_MAX_FRAME,
							  &message, &message_len, &used)
					     : FRAME_E_SHORT;

		assert_int_not_equal(r, FRAME_E_LONG);
		if (r == FRAME_OK) {
			break;
		}
		if (wire->len > 0) {
			struct pollfd poll_fd = { .fd = wire->fd, .events = POLLIN };

			if (poll(&poll_fd, 1, WIRE_PATIENCE_MS) <= 0) {
				fail_msg("half a frame came from the daemon");
			}
		}
		if (!fill(wire)) {
			/* It never closes in the middle of a frame. */
			assert_true(wire->len == 0 || wire->mortal);
			return false;
		}
	}
	arena_reset(&wire->in);
	assert_int_equal(reply_decode(&wire->in, message, message_len, ret_reply), 0);
	wire->used = used;
	return true;
}

static bool note_durable(struct wire *wire, const struct reply *reply)
{
	if (reply->type != REPLY_DURABLE) {
		return false;
	}
	assert_int_equal(reply->id, 0);
	assert_true(reply->durable.batch >= wire->durable.batch);
	assert_true(reply->durable.operation >= wire->durable.operation);
	wire->durable = reply->durable;
	return true;
}

bool wire_receive(struct wire *wire, struct reply *ret_reply)
{
	do {
		if (!receive(wire, ret_reply)) {
			return false;
		}
	} while (note_durable(wire, ret_reply));
	return true;
}

void wire_await_durable(struct wire *wire, uint64_t batch, uint64_t operation)
{
	while (wire->durable.batch < batch || wire->durable.operation < operation) {
		struct reply reply = { 0 };

		assert_true(receive(wire, &reply));
		assert_true(note_durable(wire, &reply));
	}
}

void wire_flush_durable(struct wire *wire)
{
	const struct request request = { .type = REQUEST_FLUSH, .flush = { .durable = true } };
	struct reply reply = wire_call(wire, &request);

	assert_int_equal(reply.type, REPLY_FLUSHED);
	assert_true(reply.flushed.durable);
}

struct reply wire_call(struct wire *wire, const struct request *request)
{
	uint64_t id = wire_send(wire, request);
	struct reply reply = { 0 };

	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.id, id);
	return reply;
}

bool wire_text_is(struct text text, const char *string)
{
	return text.len == strlen(string) && memcmp(text.at, string, text.len) == 0;
}

bool wire_text_has(struct text text, const char *part)
{
	return memmem(text.at, text.len, part, strlen(part)) != NULL;
}

struct request wire_hello_request(uint8_t session, uint32_t lifetime_ms, uint64_t next_batch)
{
	static _Thread_local char bytes[MESSAGE_SESSION_BYTES];

	memset(bytes, session, sizeof(bytes));
	return (struct request){
		.type = REQUEST_HELLO,
		.hello = {
			.version = MESSAGE_VERSION,
			.session = { .at = bytes, .len = session != 0 ? sizeof(bytes) : 0 },
			.lifetime_ms = lifetime_ms,
			.next_batch = next_batch,
			.agent = text_of("test"),
		},
	};
}

struct request wire_add_request(uint64_t batch, const uint32_t *handles, const int64_t *deltas,
				size_t n)
{
	return (struct request){
		.type = REQUEST_ADD,
		.add = { .batch = batch,
			 .n_handles = n,
			 .n_deltas = n,
			 .handles = handles,
			 .deltas = deltas },
	};
}

uint64_t wire_hello(struct wire *wire, uint8_t session, uint32_t lifetime_ms, uint64_t next_batch,
		    bool *ret_resumed)
{
	struct request request = wire_hello_request(session, lifetime_ms, next_batch);
	struct reply reply = wire_call(wire, &request);

	assert_int_equal(reply.type, REPLY_WELCOME);
	assert_int_equal(reply.welcome.version, 1);
	assert_int_equal(reply.welcome.incarnation.len, 16);
	if (ret_resumed != NULL) {
		*ret_resumed = reply.welcome.resumed;
	}
	return reply.welcome.last_batch;
}

void wire_intern(struct wire *wire, uint32_t handle, const char *path)
{
	struct text text = text_of(path);
	const struct request request = {
		.type = REQUEST_INTERN,
		.intern = { .first_handle = handle, .n_paths = 1, .paths = &text }
	};
	struct reply reply = wire_call(wire, &request);

	assert_int_equal(reply.type, REPLY_INTERNED);
	assert_int_equal(reply.interned.n_errors, 0);
}

bool wire_add(struct wire *wire, uint64_t batch, uint32_t handle, int64_t delta)
{
	const struct request request = wire_add_request(batch, &handle, &delta, 1);
	struct reply reply = wire_call(wire, &request);

	assert_int_equal(reply.type, REPLY_APPLIED);
	assert_int_equal(reply.applied.batch, batch);
	assert_int_equal(reply.applied.n_errors, 0);
	return reply.applied.duplicate;
}

bool wire_exists(struct wire *wire, const char *path)
{
	struct text text = text_of(path);
	const struct request request = { .type = REQUEST_GET,
					 .get = { .n_paths = 1, .paths = &text } };
	struct reply reply = wire_call(wire, &request);

	assert_int_equal(reply.type, REPLY_VALUES);
	return reply.values.values[0].code == CODE_OK;
}

int64_t wire_total(struct wire *wire, const char *path, enum consistency consistency)
{
	struct text text = text_of(path);
	const struct request request = {
		.type = REQUEST_GET,
		.get = { .n_paths = 1, .paths = &text, .consistency = consistency }
	};
	struct reply reply = wire_call(wire, &request);

	assert_int_equal(reply.type, REPLY_VALUES);
	assert_int_equal(reply.values.n_values, 1);
	assert_int_equal(reply.values.values[0].code, CODE_OK);
	assert_true(reply.values.view.present);
	return reply.values.values[0].total;
}

int64_t wire_status(struct wire *wire, const char *name)
{
	const struct request request = { .type = REQUEST_STATUS };
	struct reply reply = wire_call(wire, &request);

	assert_int_equal(reply.type, REPLY_STATUS);
	for (size_t i = 0; i < reply.status.n_items; i++) {
		if (wire_text_is(reply.status.items[i].name, name)) {
			assert_false(reply.status.items[i].is_text);
			return reply.status.items[i].number;
		}
	}
	fail_msg("no item %s", name);
	return 0;
}

void wire_expect_closed(struct wire *wire)
{
	struct reply reply;

	if (wire_receive(wire, &reply)) {
		fail_msg("a reply of type %d came in place of the end", (int)reply.type);
	}
}

void wire_expect_goodbye(struct wire *wire, enum code code)
{
	struct reply reply = { 0 };

	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.type, REPLY_GOODBYE);
	assert_int_equal(reply.id, 0);
	assert_int_equal(reply.goodbye.code, code);
	assert_true(reply.goodbye.text.len > 0);
	wire_expect_closed(wire);
}

void wire_expect_error(struct wire *wire, enum code code, const char *text)
{
	struct reply reply = { 0 };

	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.type, REPLY_ERROR);
	assert_int_equal(reply.error.code, code);
	assert_true(wire_text_has(reply.error.text, text));
}
