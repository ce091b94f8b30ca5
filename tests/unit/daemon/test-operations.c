#include "daemon/operations.h"

#include "lib/base/cursor.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct reply charged(uint64_t number, bool granted, const struct binding *bindings, size_t n)
{
	return (struct reply){
		.type = REPLY_CHARGED,
		.charged = { .number = number,
			     .granted = granted,
			     .n_bindings = n,
			     .bindings = bindings },
	};
}

static void take(struct operations *operations, uint64_t number)
{
	assert_int_equal(operations_look_up(operations, number), OPERATION_NEW);
	assert_int_equal(operations_take(operations, number), 0);
}

static void test_numbers(void **state)
{
	struct operations operations = { 0 };
	struct arena arena = ARENA_INIT(1 << 20);
	struct reply reply;

	(void)state;
	assert_int_equal(operations_look_up(&operations, 1), OPERATION_NEW);
	assert_int_equal(operations_look_up(&operations, 2), OPERATION_GAP);
	assert_int_equal(operations_look_up(&operations, UINT64_MAX), OPERATION_GAP);
	operations_greet(&operations, 0);
	assert_int_equal(operations.last, 0);
	operations_greet(&operations, 5);
	assert_int_equal(operations_look_up(&operations, 4), OPERATION_FORGOTTEN);
	take(&operations, 5);
	/* Not answered yet: whatever becomes of it, it may be carried out again. */
	assert_int_equal(operations_look_up(&operations, 5), OPERATION_AGAIN);
	reply = charged(5, true, NULL, 0);
	operations_keep(&operations, &reply, &arena);
	assert_int_equal(operations_look_up(&operations, 5), OPERATION_ANSWERED);
	operations_tell(&operations, 5, 77, &arena, &reply);
	assert_int_equal(reply.id, 77);
	assert_int_equal(reply.type, REPLY_CHARGED);
	assert_true(reply.charged.granted);
	assert_true(reply.charged.duplicate);
	/* Never back. */
	operations_greet(&operations, 3);
	assert_int_equal(operations.last, 5);
	take(&operations, 6);
	operations_wait(&operations, 6);
	assert_int_equal(operations_look_up(&operations, 6), OPERATION_WAITING);
	operations_drop(&operations, 6);
	assert_int_equal(operations_look_up(&operations, 6), OPERATION_AGAIN);
	assert_int_equal(operations_take(&operations, 6), 0);
	assert_int_equal(operations.last, 6);
	operations_greet(&operations, UINT64_MAX);
	assert_int_equal(operations_look_up(&operations, 6), OPERATION_FORGOTTEN);
	take(&operations, UINT64_MAX);
	assert_int_equal(operations_look_up(&operations, 0), OPERATION_FORGOTTEN);
	operations_deinit(&operations);
	arena_deinit(&arena);
}

/* The newest 1,024, and none more. */
static void test_window(void **state)
{
	struct operations operations = { 0 };
	struct arena arena = ARENA_INIT(1 << 20);

	(void)state;
	for (uint64_t number = 1; number <= 5000; number++) {
		struct reply reply = charged(number, number % 3 == 0, NULL, 0);

		take(&operations, number);
		operations_keep(&operations, &reply, &arena);
		if (number > OPERATIONS_KEPT) {
			assert_int_equal(operations_look_up(&operations, number - OPERATIONS_KEPT),
					 OPERATION_FORGOTTEN);
		}
		if (number >= OPERATIONS_KEPT) {
			uint64_t oldest = number - OPERATIONS_KEPT + 1;

			assert_int_equal(operations_look_up(&operations, oldest),
					 OPERATION_ANSWERED);
			operations_tell(&operations, oldest, 0, &arena, &reply);
			assert_int_equal(reply.charged.number, oldest);
			assert_int_equal(reply.charged.granted, oldest % 3 == 0);
		}
	}
	assert_int_equal(operations.size, OPERATIONS_KEPT);
	assert_int_equal(operations.n_bytes, 0);
	/* One that waited for so long that its answer is not kept any more. */
	{
		struct reply reply = charged(5, true, NULL, 0);

		operations_wait(&operations, 5);
		operations_drop(&operations, 5);
		operations_keep(&operations, &reply, &arena);
		assert_int_equal(operations_look_up(&operations, 5), OPERATION_FORGOTTEN);
	}
	operations_deinit(&operations);
	arena_deinit(&arena);
}

/* Few operations take little memory, also where the client skips numbers. */
static void test_skipped_numbers(void **state)
{
	struct operations operations = { 0 };
	struct arena arena = ARENA_INIT(1 << 20);
	uint64_t number = 1;

	(void)state;
	for (unsigned i = 0; i < 200; i++, number += 37) {
		struct reply reply = charged(number, true, NULL, 0);

		operations_greet(&operations, number);
		take(&operations, number);
		operations_keep(&operations, &reply, &arena);
		assert_int_equal(operations_look_up(&operations, number), OPERATION_ANSWERED);
	}
	for (uint64_t i = 1; i <= operations.last; i++) {
		enum operation is = operations_look_up(&operations, i);

		assert_true(is == OPERATION_FORGOTTEN ||
			    (is == OPERATION_ANSWERED && (i - 1) % 37 == 0));
	}
	operations_deinit(&operations);
	arena_deinit(&arena);
}

static void test_every_type(void **state)
{
	const struct binding binding = { .path = text_of("a/b"),
					 .limit = 5,
					 .usage = 4,
					 .left = 1,
					 .retry_after_ms = MESSAGE_RETRY_NEVER };
	const struct reply replies[] = {
		charged(1, false, &binding, 1),
		{ .type = REPLY_UNCHARGED, .uncharged = { .number = 2 } },
		{ .type = REPLY_LEASED,
		  .leased = { .number = 3,
			      .lease = UINT32_MAX,
			      .ttl_ms = 3600000,
			      .granted = INT64_C(1) << 62,
			      .omitted = 3 } },
		{ .type = REPLY_LEASE_RETURNED,
		  .lease_returned = { .number = 4, .lease = 9, .returned = 1234567890123 } },
		{ .type = REPLY_ERROR,
		  .error = { .code = CODE_NOT_FOUND, .text = text_of("not here"), .operation = 5 } },
	};
	struct operations operations = { 0 };
	struct arena arena = ARENA_INIT(1 << 20);
	struct reply reply;

	(void)state;
	for (uint64_t i = 1; i <= 5; i++) {
		take(&operations, i);
		operations_keep(&operations, &replies[i - 1], &arena);
	}
	operations_tell(&operations, 1, 0, &arena, &reply);
	assert_false(reply.charged.granted);
	assert_int_equal(reply.charged.n_bindings, 1);
	assert_int_equal(reply.charged.bindings[0].path.len, 3);
	assert_int_equal(reply.charged.bindings[0].retry_after_ms, MESSAGE_RETRY_NEVER);
	operations_tell(&operations, 2, 0, &arena, &reply);
	assert_int_equal(reply.type, REPLY_UNCHARGED);
	assert_int_equal(reply.uncharged.number, 2);
	assert_true(reply.uncharged.duplicate);
	operations_tell(&operations, 3, 0, &arena, &reply);
	assert_int_equal(reply.leased.lease, UINT32_MAX);
	assert_int_equal(reply.leased.ttl_ms, 3600000);
	assert_int_equal(reply.leased.granted, INT64_C(1) << 62);
	assert_int_equal(reply.leased.omitted, 3);
	assert_true(reply.leased.duplicate);
	operations_tell(&operations, 4, 0, &arena, &reply);
	assert_int_equal(reply.lease_returned.lease, 9);
	assert_int_equal(reply.lease_returned.returned, 1234567890123);
	assert_true(reply.lease_returned.duplicate);
	operations_tell(&operations, 5, 0, &arena, &reply);
	assert_int_equal(reply.error.code, CODE_NOT_FOUND);
	assert_int_equal(reply.error.operation, 5);
	assert_true(reply.error.duplicate);
	assert_int_equal(reply.error.text.len, 8);
	operations_deinit(&operations);
	arena_deinit(&arena);
}

/* The bytes of one session stay within the limit; what the oldest lose is counted. */
static void test_bytes(void **state)
{
	struct binding bindings[MESSAGE_MAX_BINDINGS];
	struct operations operations = { 0 };
	struct arena arena = ARENA_INIT(4 << 20);
	char path[500];
	struct reply reply;
	uint64_t n_whole = 0;

	(void)state;
	memset(path, 'p', sizeof(path));
	for (unsigned i = 0; i < MESSAGE_MAX_BINDINGS; i++) {
		bindings[i] = (struct binding){ .path = { .at = path, .len = sizeof(path) } };
	}
	for (uint64_t number = 1; number <= 100; number++) {
		arena_reset(&arena);
		take(&operations, number);
		if (number % 10 == 0) {
			reply = (struct reply){ .type = REPLY_ERROR,
						.error = { .code = 5,
							   .text = { path, sizeof(path) },
							   .operation = number } };
		} else {
			reply = charged(number, false, bindings, 1 + number % 64);
		}
		operations_keep(&operations, &reply, &arena);
		assert_true(operations.n_bytes <= OPERATIONS_MAX_BYTES);
	}
	for (uint64_t number = 1; number <= 100; number++) {
		arena_reset(&arena);
		assert_int_equal(operations_look_up(&operations, number), OPERATION_ANSWERED);
		operations_tell(&operations, number, 0, &arena, &reply);
		if (number % 10 == 0) {
			assert_int_equal(reply.error.code, 5);
			assert_true(reply.error.text.len > 0);
			continue;
		}
		assert_int_equal(reply.charged.n_bindings + reply.charged.omitted, 1 + number % 64);
		n_whole += reply.charged.omitted == 0;
	}
	assert_in_range(n_whole, 2, 20);
	operations_deinit(&operations);
	assert_int_equal(operations.n_bytes, 0);
	arena_deinit(&arena);
}

/* What was saved tells the same; what waited is to be carried out; and no other bytes are taken for it. */
static void test_saved(void **state)
{
	const struct binding binding = { .path = text_of("a/b"), .limit = 5, .usage = 4 };
	const struct reply error = {
		.type = REPLY_ERROR,
		.error = { .code = CODE_NOT_FOUND, .text = text_of("not here"), .operation = 1003 }
	};
	struct operations operations = { 0 }, loaded = { 0 };
	struct arena arena = ARENA_INIT(1 << 20);
	struct cursor_out out;
	struct reply reply;
	uint8_t *bytes;
	size_t len;

	(void)state;
	operations_greet(&operations, 1000);
	for (uint64_t i = 1000; i < 1005; i++) {
		take(&operations, i);
	}
	reply = charged(1000, false, &binding, 1);
	operations_keep(&operations, &reply, &arena);
	reply = charged(1001, true, NULL, 0);
	operations_keep(&operations, &reply, &arena);
	operations_wait(&operations, 1002);
	operations_keep(&operations, &error, &arena);
	assert_int_equal(operations_settled(&operations), 1001);
	bytes = malloc(operations_save_bound(&operations));
	cursor_out_init(&out, bytes, operations_save_bound(&operations));
	operations_save(&operations, &out);
	assert_true(cursor_out_ok(&out));
	len = cursor_out_len(&out);

	assert_int_equal(operations_load(&loaded, 1004, bytes, len), 0);
	assert_int_equal(loaded.last, 1004);
	assert_int_equal(operations_settled(&loaded), 1001);
	assert_int_equal(operations_look_up(&loaded, 999), OPERATION_FORGOTTEN);
	assert_int_equal(operations_look_up(&loaded, 1002), OPERATION_AGAIN);
	assert_int_equal(operations_look_up(&loaded, 1004), OPERATION_AGAIN);
	assert_int_equal(operations_look_up(&loaded, 1005), OPERATION_NEW);
	operations_tell(&loaded, 1000, 1, &arena, &reply);
	assert_false(reply.charged.granted);
	assert_int_equal(reply.charged.n_bindings, 1);
	operations_tell(&loaded, 1001, 1, &arena, &reply);
	assert_true(reply.charged.granted);
	operations_tell(&loaded, 1003, 1, &arena, &reply);
	assert_int_equal(reply.error.code, CODE_NOT_FOUND);
	assert_int_equal(reply.error.text.len, 8);
	operations_deinit(&loaded);
	for (size_t cut = 1; cut < len; cut++) {
		/* Cut short: what is whole is taken, or nothing. */
		int r = operations_load(&loaded, 1004, bytes, cut);

		assert_true(r == 0 || r == -EINVAL);
		operations_deinit(&loaded);
	}
	assert_int_equal(operations_load(&loaded, 3, bytes, len), -EINVAL);
	operations_deinit(&loaded);
	bytes[2] = 200; /* no type */
	assert_int_equal(operations_load(&loaded, 1004, bytes, len), -EINVAL);
	operations_deinit(&loaded);
	free(bytes);
	operations_deinit(&operations);
	arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),		cmocka_unit_test(test_window),
		cmocka_unit_test(test_skipped_numbers), cmocka_unit_test(test_every_type),
		cmocka_unit_test(test_bytes),		cmocka_unit_test(test_saved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
