#include "daemon/output.h"

#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
	int fds[2];
	struct output output;
	struct output_stage stage;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	*state = fixture;
	fixture->stage.bytes = malloc(OUTPUT_STAGE);
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fixture->fds);
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	output_deinit(&fixture->output);
	(void)close(fixture->fds[0]);
	(void)close(fixture->fds[1]);
	free(fixture->stage.bytes);
	free(fixture);
	return 0;
}

/* A stream of numbers, so that order can be checked. */
static void put(struct fixture *fixture, uint32_t from, uint32_t n, bool staged, size_t *written)
{
	for (uint32_t i = from; i < from + n; i++) {
		assert_int_equal(output_add(&fixture->output, staged ? &fixture->stage : NULL,
					    fixture->fds[0], (const uint8_t *)&i, sizeof(i),
					    written),
				 0);
	}
}

static uint32_t get(struct fixture *fixture, uint32_t expected)
{
	static uint8_t bytes[1 << 20];
	static size_t kept;
	ssize_t n;
	size_t off = 0;

	if (expected == 0) {
		kept = 0;
	}
	n = recv(fixture->fds[1], bytes + kept, sizeof(bytes) - kept, 0);
	kept += n > 0 ? (size_t)n : 0;
	for (; off + 4 <= kept; off += 4) {
		uint32_t value;

		memcpy(&value, bytes + off, 4);
		assert_int_equal(value, expected++);
	}
	memmove(bytes, bytes + off, kept - off);
	kept -= off;
	return expected;
}

static void test_one_write_at_the_end(void **state)
{
	struct fixture *fixture = *state;
	size_t written = 0;

	put(fixture, 0, 1000, true, &written);
	assert_int_equal(written, 0);
	assert_int_equal(output_flush(&fixture->output, &fixture->stage, fixture->fds[0], &written),
			 0);
	assert_int_equal(written, 4000);
	assert_int_equal(output_pending(&fixture->output), 0);
	assert_null(fixture->output.pending);
	assert_int_equal(get(fixture, 0), 1000);
}

/* More than the socket takes waits, in order, whether it came through the stage or not. */
static void test_order_when_the_socket_is_full(void **state)
{
	struct fixture *fixture = *state;
	size_t written = 0;
	uint32_t expected = 0;

	put(fixture, 0, 300000, true, &written);
	assert_int_equal(output_flush(&fixture->output, &fixture->stage, fixture->fds[0], &written),
			 0);
	assert_true(output_pending(&fixture->output) > 0);
	assert_int_equal(written + output_pending(&fixture->output), 1200000);
	put(fixture, 300000, 100, false, &written);
	put(fixture, 300100, 100, true, &written);
	while (expected < 300200) {
		expected = get(fixture, expected);
		assert_int_equal(output_flush(&fixture->output, &fixture->stage, fixture->fds[0],
					      &written),
				 0);
	}
	assert_int_equal(written, 300200 * 4);
	assert_int_equal(output_pending(&fixture->output), 0);
}

static void test_one_larger_than_the_stage(void **state)
{
	struct fixture *fixture = *state;
	uint8_t *large = malloc(OUTPUT_STAGE + 1);
	size_t written = 0;

	memset(large, 0, OUTPUT_STAGE + 1);
	assert_int_equal(output_add(&fixture->output, &fixture->stage, fixture->fds[0], large, 10,
				    &written),
			 0);
	assert_int_equal(output_add(&fixture->output, &fixture->stage, fixture->fds[0], large,
				    OUTPUT_STAGE + 1, &written),
			 0);
	assert_int_equal(written, 10);
	assert_int_equal(output_pending(&fixture->output), OUTPUT_STAGE + 1);
	free(large);
}

static void test_lost_connection(void **state)
{
	struct fixture *fixture = *state;
	size_t written = 0;

	(void)close(fixture->fds[1]);
	fixture->fds[1] = dup(fixture->fds[0]);
	put(fixture, 0, 1, true, &written);
	assert_true(output_flush(&fixture->output, &fixture->stage, fixture->fds[0], &written) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_write_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order_when_the_socket_is_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_larger_than_the_stage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_connection, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
