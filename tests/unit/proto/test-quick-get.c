/*
 * quick-get.[ch], and the answers in quick-add.[ch], against protobuf-c: it takes a message that has an unknown field at its end, and all
 * replies. Whatever quick takes must mean the same there.
 */
#include "proto/message.h"
#include "proto/quick-add.h"
#include "proto/quick-get.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/proto/fixture.h"
#include "tests/unit/proto/samples.h"

#define MAX_MESSAGE 512u

/* True if quick took it. */
static bool check(struct fixture *fixture, const uint8_t *bytes, size_t len)
{
	struct request quick = { .type = 99 }, slow, no;
	uint8_t *copy = malloc(
		len > 0 ? len
			: 1); /* exactly as large, so that a sanitizer sees a read beyond it */
	uint8_t longer[MAX_MESSAGE + 3];
	int r;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	memcpy(longer, bytes, len);
	memcpy(longer + len, (const uint8_t[]){ 0xa0, 0x06, 0 }, 3); /* field 100: 0 */
	arena_reset(&fixture->encoded);
	r = quick_decode_get(&fixture->encoded, copy, len, &quick);
	free(copy); /* it is not referred to */
	if (r == QUICK_E_OTHER) {
		assert_int_equal(quick.type, 99);
		return false;
	}
	assert_int_equal(r, QUICK_OK);
	assert_int_equal(quick_decode_get(&fixture->encoded, longer, len + 3, &no), QUICK_E_OTHER);
	slow = decode_request(fixture, longer, len + 3);
	assert_requests_equal(&quick, &slow);
	return true;
}

static void test_ordinary_and_other(void **state)
{
	static const struct {
		const char *what;
		uint8_t bytes[24];
		size_t len;
		bool taken;
	} cases[] = {
		{ "empty", { 0 }, 0, false },
		{ "an id alone", { 8, 1 }, 2, false },
		{ "empty get", { 0x2a, 0 }, 2, true },
		{ "id, empty get", { 8, 1, 0x2a, 0 }, 4, true },
		{ "two ids", { 8, 1, 8, 2, 0x2a, 0 }, 6, false },
		{ "id last", { 0x2a, 0, 8, 1 }, 4, false },
		{ "two gets", { 0x2a, 0, 0x2a, 0 }, 4, false },
		{ "cut", { 0x2a, 2, 0x0a }, 3, false },
		{ "a path", { 0x2a, 3, 0x0a, 1, 'a' }, 5, true },
		{ "an empty path", { 0x2a, 2, 0x0a, 0 }, 4, true },
		{ "two paths, in between consistency",
		  { 0x2a, 8, 0x0a, 1, 'a', 0x10, 2, 0x0a, 1, 0 },
		  10,
		  true },
		{ "a path longer than the get", { 0x2a, 3, 0x0a, 2, 'a' }, 5, false },
		{ "consistency twice", { 0x2a, 4, 0x10, 1, 0x10, 2 }, 6, false },
		{ "an unknown consistency", { 0x2a, 3, 0x10, 0xe7, 7 }, 5, true },
		{ "a negative consistency",
		  { 0x2a, 11, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1 },
		  13,
		  false },
		{ "an unknown field", { 0x2a, 2, 0x18, 1 }, 4, false },
		{ "a path as a number", { 0x2a, 2, 0x08, 1 }, 4, false },
		{ "a padded length", { 0x2a, 0x80, 0 }, 3, false },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].what);
		assert_int_equal(check(*state, cases[i].bytes, cases[i].len), cases[i].taken);
	}
}

static void test_damaged_gets_mean_the_same(void **state)
{
	static const struct text paths[] = { { .at = "requests/acme/web", .len = 17 },
					     { .at = "bytes", .len = 5 },
					     { .at = "", .len = 0 } };
	const struct request get = {
		.id = 300,
		.type = REQUEST_GET,
		.get = { .n_paths = 3, .paths = paths, .consistency = CONSISTENCY_EXACT }
	};
	struct test_random random;
	uint8_t good[MAX_MESSAGE], bytes[MAX_MESSAGE];
	size_t len, taken = 0;
	const uint8_t *message = encode_request(*state, &get, &len);

	test_random_init(&random, 0);
	memcpy(good, message, len);
	assert_true(check(*state, good, len));
	for (int i = 0; i < 50000; i++) {
		memcpy(bytes, good, len);
		for (int k = 0; k < 2; k++) {
			bytes[test_random_below(&random, len)] ^=
				(uint8_t)(1u << test_random_below(&random, 8));
		}
		taken += check(*state, bytes, len);
	}
	assert_true(taken > 1000);
}

typedef int (*encode_fn)(struct arena *arena, const struct reply *reply, const uint8_t **ret_bytes,
			 size_t *ret_len);

static void assert_taken_back(struct fixture *fixture, encode_fn encode, const struct reply *reply)
{
	const uint8_t *bytes = NULL;
	struct reply back;
	size_t len = 0;

	arena_reset(&fixture->encoded);
	assert_int_equal(encode(&fixture->encoded, reply, &bytes, &len), QUICK_OK);
	assert_int_equal(bytes[0], len - 1);
	back = decode_reply(fixture, bytes + 1, len - 1);
	assert_replies_equal(reply, &back);
}

static int64_t any(struct test_random *random)
{
	return (int64_t)(test_random_below(random, UINT64_MAX) << test_random_below(random, 64));
}

static void test_answers_are_taken_back(void **state)
{
	struct test_random random;

	test_random_init(&random, 0);
	for (int i = 0; i < 20000; i++) {
		struct value values[QUICK_MAX_VALUES];
		struct reply reply = {
			.id = (uint64_t)any(&random),
			.type = REPLY_VALUES,
			.values = { .n_values = test_random_below(&random, QUICK_MAX_VALUES + 1),
				    .values = values }
		};
		const struct reply applied = { .id = reply.id,
					       .type = REPLY_APPLIED,
					       .applied = { .batch = (uint64_t)any(&random),
							    .duplicate = i % 2 == 0 } };

		for (size_t j = 0; j < QUICK_MAX_VALUES; j++) {
			values[j] =
				(struct value){ .code = (uint32_t)test_random_below(&random, 17),
						.kind = i % 3 == 0 ? KIND_GAUGE : KIND_COUNTER,
						.leaf = i % 2 == 0,
						.own = any(&random),
						.total = i % 7 == 0 ? INT64_MIN : any(&random),
						.text = text_of("") };
		}
		if (i % 5 != 0) {
			reply.values.view = (struct view){ .present = true,
							   .error_bound = (uint64_t)any(&random),
							   .age_ms = (uint64_t)any(&random) };
		}
		assert_taken_back(*state, quick_encode_values, &reply);
		assert_taken_back(*state, quick_encode_applied, &applied);
	}
}

static void test_other_answers_are_left_alone(void **state)
{
	struct fixture *fixture = *state;
	static const struct value four[4] = { { .text = { .at = "" } } };
	static const struct value told = { .code = CODE_NOT_FOUND,
					   .text = { .at = "no", .len = 2 } };
	static const struct value far = { .code = 0x80, .text = { .at = "" } };
	static const struct item_error error = { .text = { .at = "" } };
	const struct reply values[] = {
		{ .type = REPLY_VALUES, .values = { .n_values = 4, .values = four } },
		{ .type = REPLY_VALUES, .values = { .n_values = 1, .values = &told } },
		{ .type = REPLY_VALUES, .values = { .n_values = 1, .values = &far } },
		{ .type = REPLY_PONG },
	};
	const struct reply applied = { .type = REPLY_APPLIED,
				       .applied = { .n_errors = 1, .errors = &error } };
	const uint8_t *bytes;
	size_t len;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		assert_int_equal(quick_encode_values(&fixture->encoded, &values[i], &bytes, &len),
				 QUICK_E_OTHER);
	}
	assert_int_equal(quick_encode_applied(&fixture->encoded, &applied, &bytes, &len),
			 QUICK_E_OTHER);
	assert_int_equal(quick_encode_applied(&fixture->encoded, &values[3], &bytes, &len),
			 QUICK_E_OTHER);
}

/* Fields in order, and those that are 0 left out: as any implementation of protobuf writes them. */
static void test_bytes(void **state)
{
	static const uint8_t expected[] = { 16,	  8, 1,	   0x32, 12,   0x0a, 6,	   0x18, 1,
					    0x20, 6, 0x28, 6,	 0x12, 2,    0x08, 5 };
	static const struct value value = {
		.leaf = true, .own = 3, .total = 3, .text = { .at = "" }
	};
	const struct reply reply = {
		.id = 1,
		.type = REPLY_VALUES,
		.values = { .n_values = 1,
			    .values = &value,
			    .view = { .present = true, .error_bound = 5 } },
	};
	struct fixture *fixture = *state;
	const uint8_t *bytes = NULL;
	size_t len = 0;

	assert_int_equal(quick_encode_values(&fixture->encoded, &reply, &bytes, &len), QUICK_OK);
	assert_int_equal(len, sizeof(expected));
	assert_memory_equal(bytes, expected, len);
}

static void test_no_memory(void **state)
{
	static const uint8_t bytes[] = { 0x2a, 3, 0x0a, 1, 'a' };
	const struct reply values = { .type = REPLY_VALUES }, applied = { .type = REPLY_APPLIED };
	struct arena arena = ARENA_INIT(8);
	struct request request = { .type = 99 };
	const uint8_t *out;
	size_t len;

	(void)state;
	assert_int_equal(quick_decode_get(&arena, bytes, sizeof(bytes), &request), -ENOMEM);
	assert_int_equal(request.type, 99);
	assert_int_equal(quick_encode_values(&arena, &values, &out, &len), -ENOMEM);
	assert_int_equal(quick_encode_applied(&arena, &applied, &out, &len), -ENOMEM);
	arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ordinary_and_other, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_gets_mean_the_same, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_answers_are_taken_back, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_other_answers_are_left_alone, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_bytes, fixture_setup, fixture_teardown),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
