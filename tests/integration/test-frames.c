/*
 * Frames as they should not be: cut anywhere, of every size around the limits, garbage, of a newer version.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire.h"

#include "proto/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int setup(void **state)
{
	*state = test_daemon_start("workers = 2\n");
	return 0;
}

static int teardown(void **state)
{
	test_daemon_stop(*state);
	return 0;
}

/* Hello, Intern, Add, exact Get as one stream; what answers it is checked by check_conversation. */
static uint8_t *conversation(struct wire *wire, uint8_t session, const char *path, size_t *ret_len)
{
	const uint32_t handles[] = { 0, 0, 0 };
	const int64_t deltas[] = { 1, 300, 70000 };
	struct text text = text_of(path);
	const struct request requests[] = {
		wire_hello_request(session, 0, 1),
		{ .id = 2, .type = REQUEST_INTERN, .intern = { .n_paths = 1, .paths = &text } },
		wire_add_request(1, handles, deltas, 3),
		{ .id = 4,
		  .type = REQUEST_GET,
		  .get = { .n_paths = 1, .paths = &text, .consistency = CONSISTENCY_EXACT } },
	};
	uint8_t *all = malloc(4096);
	size_t len = 0;

	assert_non_null(all);
	for (size_t i = 0; i < 4; i++) {
		size_t one_len;
		uint8_t *one = wire_encode(wire, &requests[i], &one_len);

		memcpy(all + len, one, one_len);
		len += one_len;
		free(one);
	}
	*ret_len = len;
	return all;
}

static void check_conversation(struct wire *wire, int64_t total)
{
	static const enum reply_type types[] = { REPLY_WELCOME, REPLY_INTERNED, REPLY_APPLIED,
						 REPLY_VALUES };
	struct reply reply = { 0 };

	for (size_t i = 0; i < 4; i++) {
		assert_true(wire_receive(wire, &reply));
		assert_int_equal(reply.type, types[i]);
	}
	assert_int_equal(reply.values.values[0].total, total);
}

/* A stream means the same wherever it is cut in two. */
static void test_split_at_every_byte(void **state)
{
	struct test_daemon *daemon = *state;
	int64_t total = 0;
	size_t len = 1;

	for (size_t cut = 0; cut < len; cut++) {
		struct wire *wire = wire_open(daemon->socket);
		uint8_t *bytes = conversation(wire, 1, "split/here", &len);

		assert_true(wire_send_bytes(wire, bytes, cut));
		/* Give it the time to read the first part alone, most of the times. */
		(void)usleep(500);
		assert_true(wire_send_bytes(wire, bytes + cut, len - cut));
		total += 70301;
		check_conversation(wire, total);
		free(bytes);
		(void)wire_free(wire);
	}
}

static void test_byte_by_byte(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	size_t len;
	uint8_t *bytes = conversation(wire, 2, "split/single", &len);

	for (size_t i = 0; i < len; i++) {
		assert_true(wire_send_bytes(wire, bytes + i, 1));
		(void)usleep(200);
	}
	check_conversation(wire, 70301);
	free(bytes);
	(void)wire_free(wire);
}

/* A ping of exactly this many bytes: padded with an unknown field (number 2047, length-delimited), which is skipped. */
static uint8_t *padded_ping(size_t message_len, size_t *ret_len)
{
	static const uint8_t ping[] = { 0x08, 0x07, 0x5a, 0x00 }; /* id 7, ping {} */
	uint8_t *frame = calloc(1, message_len + FRAME_MAX_PREFIX);
	size_t at, filler;

	assert_non_null(frame);
	at = frame_prefix(message_len, frame);
	memcpy(frame + at, ping, sizeof(ping));
	at += sizeof(ping);
	filler = message_len - sizeof(ping);
	if (filler > 0) {
		/* tag of 2 bytes, length as a padded varint of 3 */
		assert_true(filler >= 5);
		filler -= 5;
		frame[at++] = 0xfa;
		frame[at++] = 0x7f;
		frame[at++] = (uint8_t)(0x80 | (filler & 0x7f));
		frame[at++] = (uint8_t)(0x80 | ((filler >> 7) & 0x7f));
		frame[at++] = (uint8_t)(filler >> 14);
		memset(frame + at, 'x', filler);
		at += filler;
	}
	*ret_len = at;
	return frame;
}

static void check_size(struct test_daemon *daemon, size_t message_len, bool good)
{
	struct wire *wire = wire_open(daemon->socket);
	size_t len;
	uint8_t *bytes = padded_ping(message_len, &len);
	struct reply reply = { 0 };

	(void)wire_hello(wire, 0, 0, 0, NULL);
	(void)wire_send_bytes(wire, bytes, len);
	if (good) {
		assert_true(wire_receive(wire, &reply));
		assert_int_equal(reply.type, REPLY_PONG);
		assert_int_equal(reply.id, 7);
	} else {
		wire_expect_goodbye(wire, CODE_INVALID_ARGUMENT);
	}
	free(bytes);
	(void)wire_free(wire);
}

static void test_sizes_around_limits(void **state)
{
	static const size_t good[] = { 4,
				       9,
				       126,
				       127,
				       128,
				       129,
				       16382,
				       16383,
				       16384,
				       16385,
				       262143,
				       262144,
				       262145,
				       524288,
				       MESSAGE_MAX_FRAME - 1,
				       MESSAGE_MAX_FRAME };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		check_size(*state, good[i], true);
	}
	check_size(*state, MESSAGE_MAX_FRAME + 1, false);
	check_size(*state, FRAME_MAX_LENGTH, false);
}

/* Frames of many sizes, all in one stream: ends of frames meet ends of reads in every way. */
static void test_many_sizes_in_one_stream(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	struct test_random random;
	struct reply reply = { 0 };

	test_random_init(&random, 1);
	(void)wire_hello(wire, 0, 0, 0, NULL);
	for (unsigned i = 0; i < 300; i++) {
		size_t len;
		uint8_t *bytes = padded_ping(
			9 + test_random_below(&random, i % 20 == 0 ? 900000 : 5000), &len);

		assert_true(wire_send_bytes(wire, bytes, len));
		free(bytes);
	}
	for (unsigned i = 0; i < 300; i++) {
		assert_true(wire_receive(wire, &reply));
		assert_int_equal(reply.type, REPLY_PONG);
	}
	(void)wire_free(wire);
}

static void expect_fault(struct test_daemon *daemon, bool hello, const void *bytes, size_t len,
			 enum code code)
{
	struct wire *wire = wire_open(daemon->socket);

	if (hello) {
		(void)wire_hello(wire, 0, 0, 0, NULL);
	}
	(void)wire_send_bytes(wire, bytes, len);
	if (code == CODE_FAILED_PRECONDITION) {
		wire_expect_error(wire, code, "Hello"); /* a request, and so answered */
	}
	wire_expect_goodbye(wire, code);
	(void)wire_free(wire);
}

static void test_garbage(void **state)
{
	struct test_daemon *daemon = *state;
	struct test_random random;

	expect_fault(
		daemon, false,
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n0123456789012345678901234567890123456789012345678901234567890123456789",
		97, CODE_INVALID_ARGUMENT);
	expect_fault(daemon, true, "\xff\xff\xff\xff\x01", 5,
		     CODE_INVALID_ARGUMENT);				  /* four bytes of length */
	expect_fault(daemon, true, "\x01\xff", 2, CODE_INVALID_ARGUMENT); /* no message */
	expect_fault(daemon, true, "\x01\x08", 2,
		     CODE_INVALID_ARGUMENT); /* a field without its value */
	expect_fault(daemon, false, "\x02\x08\x05", 3, CODE_FAILED_PRECONDITION); /* no Hello */
	test_random_init(&random, 2);
	for (unsigned i = 0; i < 200; i++) {
		struct wire *wire = wire_open(daemon->socket);
		uint8_t noise[512];
		struct reply reply;

		for (size_t k = 0; k < sizeof(noise); k++) {
			noise[k] = (uint8_t)test_random_next(&random);
		}
		(void)wire_hello(wire, 0, 0, 0, NULL);
		(void)wire_send_bytes(wire, noise, sizeof(noise));
		wire_shutdown(wire);
		/* Whatever it says, it ends, and the daemon lives. */
		while (wire_receive(wire, &reply)) {
			assert_true(reply.type == REPLY_ERROR || reply.type == REPLY_GOODBYE);
		}
		(void)wire_free(wire);
	}
}

/* A frame that the client never ends, and then closes: nothing of it was done. */
static void test_truncated(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	const uint32_t handle = 0;
	const int64_t delta = 5;
	const struct request request = wire_add_request(2, &handle, &delta, 1);
	size_t len;
	uint8_t *bytes;

	(void)wire_hello(wire, 3, 60000, 1, NULL);
	wire_intern(wire, 0, "truncated");
	assert_false(wire_add(wire, 1, 0, 1));
	bytes = wire_encode(wire, &request, &len);
	assert_true(wire_send_bytes(wire, bytes, len - 1));
	(void)wire_free(wire);
	free(bytes);

	wire = wire_open(daemon->socket);
	assert_int_equal(wire_hello(wire, 3, 0, 2, NULL), 1);
	assert_int_equal(wire_total(wire, "truncated", CONSISTENCY_EXACT), 1);
	(void)wire_free(wire);
}

static void test_newer_version(void **state)
{
	/* id 5, an unknown body (field 200, a message), as a newer client may send it */
	static const uint8_t newer[] = { 0x07, 0x08, 0x05, 0xc2, 0x0c, 0x02, 0x08, 0x01 };
	/* Hello of version 9 with an unknown field 100 */
	static const uint8_t hello[] = { 0x0b, 0x08, 0x01, 0x12, 0x07, 0x08,
					 0x09, 0xa2, 0x06, 0x02, 'h',  'i' };
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	const struct request ping = { .type = REQUEST_PING };
	struct reply reply = { 0 };

	assert_true(wire_send_bytes(wire, hello, sizeof(hello)));
	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.type, REPLY_WELCOME);
	assert_int_equal(reply.welcome.version, 1);
	assert_true(wire_send_bytes(wire, newer, sizeof(newer)));
	wire_expect_error(wire, CODE_UNIMPLEMENTED, "does not know");
	assert_true(wire_send_bytes(wire, "\x00",
				    1)); /* a message in which everything has its default */
	wire_expect_error(wire, CODE_UNIMPLEMENTED, "does not know");
	assert_int_equal(wire_call(wire, &ping).type, REPLY_PONG);
	(void)wire_free(wire);
}

static void test_bad_hellos(void **state)
{
	struct test_daemon *daemon = *state;
	char agent[200];
	struct request requests[5];

	memset(agent, 'a', sizeof(agent));
	for (size_t i = 0; i < 5; i++) {
		requests[i] = wire_hello_request(9, 0, 1);
	}
	requests[0].hello.version = 0;
	requests[1].hello.session.len = 15;
	requests[2].hello.next_batch = 0;
	requests[3].hello.agent = (struct text){ .at = agent, .len = MESSAGE_MAX_AGENT + 1 };
	for (size_t i = 0; i < 4; i++) {
		struct wire *wire = wire_open(daemon->socket);

		(void)wire_send(wire, &requests[i]);
		wire_expect_error(wire, CODE_INVALID_ARGUMENT, "");
		wire_expect_goodbye(wire, CODE_INVALID_ARGUMENT);
		(void)wire_free(wire);
	}
	requests[4].hello.agent = (struct text){ .at = agent, .len = MESSAGE_MAX_AGENT };
	{
		struct wire *wire = wire_open(daemon->socket);

		assert_int_equal(wire_call(wire, &requests[4]).type, REPLY_WELCOME);
		(void)wire_send(wire, &requests[4]);
		wire_expect_error(wire, CODE_FAILED_PRECONDITION, "before");
		(void)wire_free(wire);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split_at_every_byte),
		cmocka_unit_test(test_byte_by_byte),
		cmocka_unit_test(test_sizes_around_limits),
		cmocka_unit_test(test_many_sizes_in_one_stream),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_newer_version),
		cmocka_unit_test(test_bad_hellos),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
