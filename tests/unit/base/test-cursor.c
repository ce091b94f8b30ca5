/* cursor: what fits is exact, what does not fit fails once and for all, and nothing outside the bounds is touched. */
#include "lib/base/cursor.h"
#include "tests/support/test.h"

#include <string.h>

static void test_read(void **state)
{
	static const uint8_t bytes[] = { 7, 'a', 'b', 'c', 0xac, 0x02 };
	struct cursor_in in;

	(void)state;
	cursor_in_init(&in, bytes, sizeof(bytes));
	assert_int_equal(cursor_get_u8(&in), 7);
	assert_memory_equal(cursor_get_bytes(&in, 3), "abc", 3);
	assert_int_equal(cursor_in_left(&in), 2);
	assert_int_equal(cursor_get_varint(&in), 300);
	assert_int_equal(cursor_in_left(&in), 0);
	assert_true(cursor_in_ok(&in));
	/* Nothing of nothing is there; one more byte is not. */
	assert_non_null(cursor_get_bytes(&in, 0));
	assert_true(cursor_in_ok(&in));
	assert_int_equal(cursor_get_u8(&in), 0);
	assert_false(cursor_in_ok(&in));
}

static void test_read_error_sticks(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3 };
	struct cursor_in in;

	(void)state;
	cursor_in_init(&in, bytes, sizeof(bytes));
	assert_null(cursor_get_bytes(&in, sizeof(bytes) + 1));
	assert_int_equal(cursor_in_left(&in), 0);
	assert_int_equal(cursor_get_u8(&in), 0);
	assert_int_equal(cursor_get_varint(&in), 0);
	assert_null(cursor_get_bytes(&in, 0));
	assert_null(cursor_get_bytes(&in, SIZE_MAX));
	assert_false(cursor_in_ok(&in));
}

static void test_no_bytes(void **state)
{
	struct cursor_in in;
	struct cursor_out out;

	(void)state;
	cursor_in_init(&in, NULL, 0);
	assert_int_equal(cursor_in_left(&in), 0);
	assert_int_equal(cursor_get_u8(&in), 0);
	assert_false(cursor_in_ok(&in));

	cursor_out_init(&out, NULL, 0);
	cursor_put_bytes(&out, NULL, 0);
	assert_true(cursor_out_ok(&out));
	cursor_put_u8(&out, 1);
	assert_false(cursor_out_ok(&out));
	assert_int_equal(cursor_out_len(&out), 0);
}

static void check_varint(uint64_t value, size_t expected_len)
{
	uint8_t bytes[CURSOR_MAX_VARINT];
	struct cursor_out out;
	struct cursor_in in;

	cursor_out_init(&out, bytes, sizeof(bytes));
	cursor_put_varint(&out, value);
	assert_true(cursor_out_ok(&out));
	assert_int_equal(cursor_out_len(&out), expected_len);

	cursor_in_init(&in, bytes, expected_len);
	assert_true(cursor_get_varint(&in) == value);
	assert_true(cursor_in_ok(&in));
	assert_int_equal(cursor_in_left(&in), 0);

	/* One byte short: neither written nor read. */
	cursor_out_init(&out, bytes, expected_len - 1);
	cursor_put_varint(&out, value);
	assert_false(cursor_out_ok(&out));
	assert_int_equal(cursor_out_len(&out), 0);
	cursor_in_init(&in, bytes, expected_len - 1);
	assert_int_equal(cursor_get_varint(&in), 0);
	assert_false(cursor_in_ok(&in));
}

static void test_varint(void **state)
{
	(void)state;
	check_varint(0, 1);
	for (unsigned bits = 7; bits <= 63; bits += 7) {
		uint64_t edge = UINT64_C(1) << bits;

		check_varint(edge - 1, bits / 7);
		check_varint(edge, bits / 7 + 1);
	}
	check_varint(UINT64_MAX, CURSOR_MAX_VARINT);
}

static void test_varint_random(void **state)
{
	struct test_random random;

	(void)state;
	test_random_init(&random, 0);
	for (int i = 0; i < 10000; i++) {
		uint64_t value = test_random_next(&random) >> test_random_below(&random, 64);
		size_t len = 1;

		for (uint64_t rest = value >> 7; rest != 0; rest >>= 7) {
			len++;
		}
		check_varint(value, len);
	}
}

static void test_varint_bad(void **state)
{
	uint8_t bytes[CURSOR_MAX_VARINT + 1];
	struct cursor_in in;

	(void)state;
	/* 2^64: the tenth byte holds more than its one bit. */
	memset(bytes, 0x80, sizeof(bytes));
	bytes[9] = 2;
	cursor_in_init(&in, bytes, sizeof(bytes));
	assert_int_equal(cursor_get_varint(&in), 0);
	assert_false(cursor_in_ok(&in));
	/* Eleven bytes. */
	bytes[9] = 0x80;
	bytes[10] = 0;
	cursor_in_init(&in, bytes, sizeof(bytes));
	assert_int_equal(cursor_get_varint(&in), 0);
	assert_false(cursor_in_ok(&in));
	/* Ten bytes that say 0 are accepted. */
	bytes[9] = 0;
	cursor_in_init(&in, bytes, CURSOR_MAX_VARINT);
	assert_int_equal(cursor_get_varint(&in), 0);
	assert_true(cursor_in_ok(&in));
}

static void test_write(void **state)
{
	uint8_t bytes[6];
	struct cursor_out out;

	(void)state;
	memset(bytes, 0xee, sizeof(bytes));
	cursor_out_init(&out, bytes, 5);
	cursor_put_u8(&out, 1);
	cursor_put_bytes(&out, "abc", 3);
	assert_true(cursor_out_ok(&out));
	/* Two bytes where one is left: all or nothing. */
	cursor_put_varint(&out, 300);
	assert_false(cursor_out_ok(&out));
	assert_int_equal(cursor_out_len(&out), 4);
	/* This one would fit, but the error sticks. */
	cursor_put_u8(&out, 2);
	assert_int_equal(cursor_out_len(&out), 4);
	assert_memory_equal(bytes,
			    "\x01"
			    "abc\xee\xee",
			    6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),	      cmocka_unit_test(test_read_error_sticks),
		cmocka_unit_test(test_no_bytes),      cmocka_unit_test(test_varint),
		cmocka_unit_test(test_varint_random), cmocka_unit_test(test_varint_bad),
		cmocka_unit_test(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
