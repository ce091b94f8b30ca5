/*
 * quick.[ch] against protobuf-c, which is what takes a message that has an unknown field at its end. Whatever quick
 * takes must mean the same there. The fuzzers do this too, with what they find.
 */
#include "proto/message.h"
#include "proto/quick.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/proto/fixture.h"
#include "tests/unit/proto/samples.h"

#define MAX_MESSAGE 1024u

/* With field 100: 0 behind it, exactly as large, so that a sanitizer sees a read beyond it. */
static struct request decode_slowly(struct fixture *fixture, const uint8_t *bytes, size_t len)
{
	uint8_t *longer = malloc(len + 3);
	assert_non_null(longer);
	if (len > 0) {
		memcpy(longer, bytes, len);
	}
	memcpy(longer + len, (const uint8_t[]){ 0xa0, 0x06, 0 }, 3);
	struct request request;
	assert_int_equal(quick_decode_charge(&fixture->encoded, longer, len + 3, &request),
			 QUICK_E_OTHER);
	request = decode_request(fixture, longer, len + 3);
	free(longer);
	return request;
}

/* True if quick took it. */
static bool check(struct fixture *fixture, const uint8_t *bytes, size_t len)
{
	struct request quick = { .type = 99 };
	uint8_t *copy = malloc(len > 0 ? len : 1);
	assert_non_null(copy);
	if (len > 0) {
		memcpy(copy, bytes, len);
	}
	arena_reset(&fixture->encoded);
	int r = quick_decode_charge(&fixture->encoded, copy, len, &quick);
	free(copy); /* it is not referred to */
	if (r == QUICK_E_OTHER) {
		assert_int_equal(quick.type, 99);
		return false;
	}
	assert_int_equal(r, QUICK_OK);
	struct request slow = decode_slowly(fixture, bytes, len);
	assert_requests_equal(&quick, &slow);
	return true;
}

static void test_what_this_version_sends_is_taken(void **state)
{
	struct fixture *fixture = *state;
	for (size_t i = 0; i < n_sample_requests; i++) {
		size_t len;
		uint8_t bytes[MAX_MESSAGE];
		const uint8_t *message = encode_request(fixture, &sample_requests[i], &len);
		assert_true(len <= sizeof(bytes));
		memcpy(bytes, message, len);
		assert_int_equal(check(fixture, bytes, len),
				 sample_requests[i].type == REQUEST_CHARGE &&
					 !sample_requests[i].known.present);
	}
}

static void test_what_is_not_ordinary_is_left_alone(void **state)
{
	static const struct {
		const char *what;
		uint8_t bytes[20];
		size_t len;
		bool taken;
	} cases[] = {
		{ "empty", { 0 }, 0, false },
		{ "an id alone", { 8, 1 }, 2, false },
		{ "empty charge", { 0xa2, 1, 0 }, 3, true },
		{ "id, empty charge", { 8, 1, 0xa2, 1, 0 }, 5, true },
		{ "two ids", { 8, 1, 8, 2, 0xa2, 1, 0 }, 7, false },
		{ "id last", { 0xa2, 1, 0, 8, 1 }, 5, false },
		{ "two charges", { 0xa2, 1, 2, 8, 1, 0xa2, 1, 0 }, 8, false },
		{ "another body behind", { 0xa2, 1, 0, 0x5a, 0 }, 5, false },
		{ "cut", { 0xa2, 1, 2, 8 }, 4, false },
		{ "number twice", { 0xa2, 1, 4, 8, 1, 8, 2 }, 7, true },
		{ "number without value", { 0xa2, 1, 1, 8 }, 4, false },
		{ "unknown field", { 0xa2, 1, 2, 0x30, 1 }, 5, false },
		{ "number as bytes", { 0xa2, 1, 2, 0x0a, 0 }, 5, false },
		{ "dry_run 2", { 0xa2, 1, 2, 0x18, 2 }, 5, false },
		{ "wait_ms at its largest",
		  { 0xa2, 1, 6, 0x28, 0xff, 0xff, 0xff, 0xff, 0x0f },
		  9,
		  true },
		{ "wait_ms beyond", { 0xa2, 1, 6, 0x28, 0xff, 0xff, 0xff, 0xff, 0x1f }, 9, false },
		{ "number at its largest",
		  { 0xa2, 1, 11, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1 },
		  14,
		  true },
		{ "number beyond",
		  { 0xa2, 1, 11, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2 },
		  14,
		  false },
		{ "item longer than the charge", { 0xa2, 1, 2, 0x12, 1 }, 5, false },
		{ "path longer than the item", { 0xa2, 1, 5, 0x12, 2, 0x0a, 1, 0 }, 8, false },
		{ "item with an unknown field", { 0xa2, 1, 4, 0x12, 2, 0x18, 1 }, 7, false },
		{ "path and amount twice, in between a number",
		  { 0xa2, 1, 16, 0x12, 12, 0x0a, 1, 'a', 0x10, 2, 0x0a, 1, 'b', 0x10, 1, 0x10, 3, 8,
		    7 },
		  19,
		  true },
		{ "padded number", { 0xa2, 1, 3, 8, 0x81, 0 }, 6, false },
		{ "padded tag", { 0xa2, 0x81, 0, 0 }, 4, false },
		{ "padded length", { 0xa2, 1, 0x80, 0 }, 4, false },
		{ "half a tag", { 0xa2 }, 1, false },
		{ "a tag alone", { 0xa2, 1 }, 2, false },
		{ "an id alone", { 8, 1 }, 2, false },
		{ "an id and half a tag", { 8, 1, 0xa2 }, 3, false },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].what);
		assert_int_equal(check(*state, cases[i].bytes, cases[i].len), cases[i].taken);
	}
}

/* Damaged in two places at a time: most is not taken, but much is. */
static void test_damaged_charges_mean_the_same(void **state)
{
	struct fixture *fixture = *state;
	static const struct charge_item items[] = {
		{ .path = { .at = "jobs/a", .len = 6 }, .amount = 1 },
		{ .path = { .at = "memory", .len = 6 }, .amount = MESSAGE_MAX_AMOUNT },
	};
	struct request charge = { .id = 300,
				  .type = REQUEST_CHARGE,
				  .charge = { .number = 200,
					      .n_items = 2,
					      .items = items,
					      .detached = true,
					      .wait_ms = 1000 } };
	struct test_random random;
	test_random_init(&random, 0);
	uint8_t good[MAX_MESSAGE], bytes[MAX_MESSAGE];
	size_t len, taken = 0;
	const uint8_t *message = encode_request(fixture, &charge, &len);
	memcpy(good, message, len);
	for (int i = 0; i < 50000; i++) {
		memcpy(bytes, good, len);
		for (int k = 0; k < 2; k++) {
			bytes[test_random_below(&random, len)] ^=
				(uint8_t)(1u << test_random_below(&random, 8));
		}
		taken += check(fixture, bytes, len);
	}
	print_message("%zu of 50000 taken\n", taken);
	assert_in_range(taken, 1000, 49999);
}

/* ---- answers ---- */

/* protobuf-c reads it as it was meant; and writes it, with an empty binding of four bytes, at the same length. */
static void check_answer(struct fixture *fixture, struct reply reply)
{
	static const struct binding binding = { .path = { .at = "" } };
	size_t len, quick_len;
	const uint8_t *quick = encode_reply(fixture, &reply, &quick_len);
	struct reply decoded = decode_reply(fixture, quick, quick_len);
	assert_replies_equal(&decoded, &reply);

	reply.charged.n_bindings = 1;
	reply.charged.bindings = &binding;
	(void)encode_reply(fixture, &reply, &len);
	assert_int_equal(len, quick_len + 4);
}

static void test_answers_of_every_length(void **state)
{
	static const uint64_t numbers[] = { 0, 1, 127, 128, 16384, UINT32_MAX, UINT64_MAX };
	for (size_t i = 0; i < 7; i++) {
		for (size_t k = 0; k < 7; k++) {
			for (unsigned int flags = 0; flags < 8; flags++) {
				check_answer(*state,
					     (struct reply){
						     .id = numbers[i],
						     .type = REPLY_CHARGED,
						     .charged = { .number = numbers[k],
								  .granted = flags & 1,
								  .duplicate = flags & 2,
								  .omitted = flags & 4 ? UINT32_MAX
										       : 0 } });
			}
		}
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_what_this_version_sends_is_taken),
		TEST(test_what_is_not_ordinary_is_left_alone),
		TEST(test_damaged_charges_mean_the_same),
		TEST(test_answers_of_every_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
