#include "proto/frame.h"

#include <stdlib.h>
#include <string.h>

#include "proto/message.h"
#include "tests/support/test.h"

#define BYTES(...) ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })

static void assert_ok(const uint8_t *bytes, size_t len, size_t max, size_t offset,
		      size_t message_len)
{
	const uint8_t *message = NULL;
	size_t got = SIZE_MAX, used = SIZE_MAX;
	assert_int_equal(frame_find(bytes, len, max, &message, &got, &used), FRAME_OK);
	assert_ptr_equal(message, bytes + offset);
	assert_int_equal(got, message_len);
	assert_int_equal(used, offset + message_len);
}

static void assert_short(const uint8_t *bytes, size_t len, size_t max, size_t needed)
{
	const uint8_t *message = NULL;
	size_t got = SIZE_MAX, used = SIZE_MAX;
	assert_int_equal(frame_find(bytes, len, max, &message, &got, &used), FRAME_E_SHORT);
	assert_null(message);
	assert_int_equal(used, needed);
	assert_true(used > len);
}

static void assert_long(const uint8_t *bytes, size_t len, size_t max)
{
	const uint8_t *message = NULL;
	size_t got = SIZE_MAX, used = SIZE_MAX;
	assert_int_equal(frame_find(bytes, len, max, &message, &got, &used), FRAME_E_LONG);
	assert_null(message);
	assert_int_equal(used, SIZE_MAX);
}

static void test_small_frames(void **state)
{
	(void)state;
	assert_short(NULL, 0, 100, 1);
	assert_ok(BYTES(0), 100, 1, 0); /* empty */
	assert_ok(BYTES(0, 9, 9), 0, 1, 0);
	assert_short(BYTES(1), 100, 2);
	assert_ok(BYTES(1, 9), 100, 1, 1);
	assert_ok(BYTES(1, 9, 8), 100, 1, 1);
	assert_short(BYTES(3, 9), 100, 4);
}

static void test_prefixes_of_every_length(void **state)
{
	(void)state;
	assert_short(BYTES(0x80), 1000, 2);
	assert_short(BYTES(0x80, 0x80), 1000, 3);
	assert_short(BYTES(0x80, 0x01), 1000, 2 + 128);
	/* padded: longer than it needs to be, but not longer than allowed */
	assert_ok(BYTES(0x80, 0x00), 1000, 2, 0);
	assert_ok(BYTES(0x80, 0x80, 0x00), 1000, 3, 0);
	assert_ok(BYTES(0x81, 0x80, 0x00, 9), 1000, 3, 1);
	/* four bytes are too many, whatever they say, and three tell so */
	assert_long(BYTES(0x80, 0x80, 0x80), 1000);
	assert_long(BYTES(0x81, 0x80, 0x80, 0x00), 1000);
	assert_long(BYTES(0xff, 0xff, 0xff), FRAME_MAX_LENGTH);
}

static void test_the_limit(void **state)
{
	(void)state;
	assert_ok(BYTES(3, 1, 2, 3), 3, 1, 3);
	assert_long(BYTES(4), 3); /* told by the prefix, before the message is there */
	assert_long(BYTES(1), 0);
	assert_ok(BYTES(0), 0, 1, 0);
	assert_short(BYTES(0xff, 0xff, 0x7f), FRAME_MAX_LENGTH, 3 + FRAME_MAX_LENGTH);
	assert_long(BYTES(0xff, 0xff, 0x7f), FRAME_MAX_LENGTH - 1);
}

static void test_the_largest_frame(void **state)
{
	(void)state;
	size_t size = FRAME_MAX_PREFIX + MESSAGE_MAX_FRAME;
	uint8_t *bytes = calloc(1, size);
	assert_non_null(bytes);
	assert_int_equal(frame_prefix(MESSAGE_MAX_FRAME, bytes), 3);
	assert_ok(bytes, size, MESSAGE_MAX_FRAME, 3, MESSAGE_MAX_FRAME);
	assert_short(bytes, size - 1, MESSAGE_MAX_FRAME, size);
	assert_short(bytes, 3, MESSAGE_MAX_FRAME, size);
	assert_int_equal(frame_prefix(MESSAGE_MAX_FRAME + 1, bytes), 3);
	assert_long(bytes, size, MESSAGE_MAX_FRAME);
	assert_long(bytes, 3, MESSAGE_MAX_FRAME);
	free(bytes);
}

static void test_prefix_and_find_agree(void **state)
{
	(void)state;
	for (size_t len = 0; len <= FRAME_MAX_LENGTH; len += len < 70000 ? 1 : 4099) {
		uint8_t out[FRAME_MAX_PREFIX];
		size_t n = frame_prefix(len, out);
		assert_int_equal(n, len < 128 ? 1 : len < 16384 ? 2 : 3);
		if (len > 0) {
			assert_short(out, n, FRAME_MAX_LENGTH, n + len);
		}
		for (size_t have = 0; have < n; have++) {
			assert_short(out, have, FRAME_MAX_LENGTH, have + 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_frames),
		cmocka_unit_test(test_prefixes_of_every_length),
		cmocka_unit_test(test_the_limit),
		cmocka_unit_test(test_the_largest_frame),
		cmocka_unit_test(test_prefix_and_find_agree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
