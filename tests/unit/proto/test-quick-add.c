/*
 * quick-add.[ch] against protobuf-c, which is what takes a message that has an unknown field at its end. Whatever quick takes must
 * mean the same there.
 */
#include "proto/message.h"
#include "proto/quick-add.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/proto/fixture.h"
#include "tests/unit/proto/samples.h"

#define MAX_MESSAGE 4096u
#define MAX_ENTRIES 200u

/* With field 100: 0 behind it. */
static struct request decode_slowly(struct fixture *fixture, const uint8_t *bytes, size_t len)
{
	uint8_t longer[MAX_MESSAGE + 3];
	struct request request;

	memcpy(longer, bytes, len);
	memcpy(longer + len, (const uint8_t[]){ 0xa0, 0x06, 0 }, 3);
	assert_int_equal(quick_decode_add(&fixture->encoded, longer, len + 3, &request),
			 QUICK_E_OTHER);
	return decode_request(fixture, longer, len + 3);
}

/* True if quick took it. */
static bool check(struct fixture *fixture, const uint8_t *bytes, size_t len)
{
	struct request quick = { .type = 99 }, slow;
	uint8_t *copy = malloc(
		len > 0 ? len
			: 1); /* exactly as large, so that a sanitizer sees a read beyond it */
	int r;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	arena_reset(&fixture->encoded);
	r = quick_decode_add(&fixture->encoded, copy, len, &quick);
	free(copy); /* it is not referred to */
	if (r == QUICK_E_OTHER) {
		assert_int_equal(quick.type, 99);
		return false;
	}
	assert_int_equal(r, QUICK_OK);
	slow = decode_slowly(fixture, bytes, len);
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
		{ "empty add", { 0x22, 0 }, 2, true },
		{ "id, empty add", { 8, 1, 0x22, 0 }, 4, true },
		{ "two ids", { 8, 1, 8, 2, 0x22, 0 }, 6, false },
		{ "id last", { 0x22, 0, 8, 1 }, 4, false },
		{ "two adds", { 0x22, 2, 8, 1, 0x22, 0 }, 6, false },
		{ "another body behind", { 0x22, 0, 0x5a, 0 }, 4, false },
		{ "cut", { 0x22, 2, 8 }, 3, false },
		{ "id of ten bytes",
		  { 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0x22, 0 },
		  13,
		  true },
		{ "id beyond 64 bits",
		  { 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0x22, 0 },
		  13,
		  false },
		{ "one entry", { 0x22, 8, 8, 1, 0x12, 1, 5, 0x1a, 1, 2 }, 10, true },
		{ "deltas first", { 0x22, 8, 0x1a, 1, 2, 0x12, 1, 5, 8, 1 }, 10, true },
		{ "lists of other lengths", { 0x22, 9, 8, 1, 0x12, 2, 5, 6, 0x1a, 1, 2 }, 11, true },
		{ "empty lists", { 0x22, 6, 8, 1, 0x12, 0, 0x1a, 0 }, 8, true },
		{ "batch twice", { 0x22, 4, 8, 1, 8, 2 }, 6, false },
		{ "handles twice", { 0x22, 6, 0x12, 1, 5, 0x12, 1, 6 }, 8, false },
		{ "handles not packed", { 0x22, 2, 0x10, 5 }, 4, false },
		{ "an unknown field", { 0x22, 2, 0x20, 5 }, 4, false },
		{ "a list longer than the body", { 0x22, 3, 0x12, 2, 5 }, 5, false },
		{ "a handle cut", { 0x22, 3, 0x12, 1, 0x85 }, 5, false },
		{ "a handle padded", { 0x22, 4, 0x12, 2, 0x85, 0 }, 6, false },
		{ "the largest handle", { 0x22, 7, 0x12, 5, 0xff, 0xff, 0xff, 0xff, 0x0f }, 9, true },
		{ "a handle beyond 32 bits",
		  { 0x22, 7, 0x12, 5, 0xff, 0xff, 0xff, 0xff, 0x1f },
		  9,
		  false },
		{ "a delta cut", { 0x22, 3, 0x1a, 1, 0x85 }, 5, false },
		{ "the lowest delta",
		  { 0x22, 12, 0x1a, 10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1 },
		  14,
		  true },
		{ "a delta beyond 64 bits",
		  { 0x22, 12, 0x1a, 10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 3 },
		  14,
		  false },
		{ "eight deltas and one",
		  { 0x22, 11, 0x1a, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8 },
		  13,
		  true },
		{ "a padded length", { 0x22, 0x80, 0 }, 3, false },
		{ "a padded tag", { 0xa2, 0, 0 }, 3, false },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].what);
		assert_int_equal(check(*state, cases[i].bytes, cases[i].len), cases[i].taken);
	}
}

/* Of every size of varint, in every mixture. */
static size_t random_add(struct fixture *fixture, struct test_random *random, uint8_t *bytes)
{
	static uint32_t handles[MAX_ENTRIES];
	static int64_t deltas[MAX_ENTRIES];
	struct request request = {
		.id = test_random_below(random, 1000),
		.type = REQUEST_ADD,
		.add = { .batch = test_random_below(random, 100000),
			 .n_handles = test_random_below(random, MAX_ENTRIES),
			 .n_deltas = test_random_below(random, MAX_ENTRIES),
			 .handles = handles,
			 .deltas = deltas },
	};
	uint64_t bits = test_random_below(random, 64);
	const uint8_t *message;
	size_t len;

	for (size_t i = 0; i < MAX_ENTRIES; i++) {
		handles[i] = (uint32_t)test_random_below(
			random, UINT64_C(1) << test_random_below(random, 33));
		deltas[i] = (int64_t)test_random_below(
				    random, UINT64_C(1) << test_random_below(random, bits + 1)) -
			    (int64_t)(i % 2);
	}
	message = encode_request(fixture, &request, &len);
	assert_true(len <= MAX_MESSAGE);
	memcpy(bytes, message, len);
	return len;
}

static void test_what_this_version_sends_is_taken(void **state)
{
	struct test_random random;
	uint8_t bytes[MAX_MESSAGE];

	test_random_init(&random, 0);
	for (int i = 0; i < 2000; i++) {
		size_t len = random_add(*state, &random, bytes);

		assert_true(check(*state, bytes, len));
	}
}

static void test_damaged_adds_mean_the_same(void **state)
{
	struct test_random random;
	uint8_t bytes[MAX_MESSAGE];
	size_t taken = 0;

	test_random_init(&random, 0);
	for (int i = 0; i < 20000; i++) {
		size_t len = random_add(*state, &random, bytes);

		for (int k = 0; k < 2; k++) {
			bytes[test_random_below(&random, len)] ^=
				(uint8_t)(1u << test_random_below(&random, 8));
		}
		taken += check(*state, bytes, len);
	}
	assert_true(taken > 100);
}

static void test_no_memory(void **state)
{
	static const uint8_t bytes[] = { 0x22, 8, 8, 1, 0x12, 1, 5, 0x1a, 1, 2 };
	struct arena arena = ARENA_INIT(8);
	struct request request = { .type = 99 };

	(void)state;
	assert_int_equal(quick_decode_add(&arena, bytes, sizeof(bytes), &request), -ENOMEM);
	assert_int_equal(request.type, 99);
	arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ordinary_and_other, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_what_this_version_sends_is_taken,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_adds_mean_the_same, fixture_setup,
						fixture_teardown),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
