#include "daemon/input.h"

#include "tests/support/test.h"

#include <string.h>

static const uint8_t letters[] = "abcdefghijklmnopqrstuvwxyz";

static void test_append_and_consume(void **state)
{
	struct input input = INPUT_INIT;

	(void)state;
	assert_int_equal(input_left(&input), 0);
	assert_int_equal(input_append(&input, letters, 10), 0);
	input_consume(&input, 4);
	assert_int_equal(input_left(&input), 6);
	assert_int_equal(input_append(&input, letters, 2), 0);
	assert_int_equal(input_left(&input), 8);
	assert_memory_equal(input.bytes + input.off, "efghijab", 8);
	input_consume(&input, 8);
	/* Nothing left, nothing kept. */
	assert_null(input.bytes);
	assert_int_equal(input.size, 0);
}

static void test_want(void **state)
{
	struct input input = INPUT_INIT;

	(void)state;
	assert_int_equal(input_append(&input, letters, 10), 0);
	input_consume(&input, 7);
	assert_int_equal(input_room(&input), 0);
	assert_int_equal(input_want(&input, 20), 0);
	assert_int_equal(input_left(&input), 3);
	assert_int_equal(input_room(&input), 17);
	/* The room may be read into as it is. */
	memset(input.bytes + input.len, 'x', 17);
	input.len += 17;
	assert_int_equal(input_room(&input), 0);
	assert_memory_equal(input.bytes, "hijxxxxxxxxxxxxxxxxx", 20);
	input_consume(&input, 20);
	assert_int_equal(input_room(&input), 0);
	input_deinit(&input);
	input_deinit(&input);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_append_and_consume),
		cmocka_unit_test(test_want),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
