#include "proto/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "tests/support/test.h"
#include "tests/unit/proto/fixture.h"
#include "tests/unit/proto/samples.h"

#define MAX_ITEMS 65536u /* in one request, unless the daemon is configured otherwise */

/* ---- what goes out comes in again ---- */

static void test_requests_round_trip(void **state)
{
	struct fixture *fixture = *state;
	for (size_t i = 0; i < n_sample_requests; i++) {
		size_t len;
		const uint8_t *bytes = encode_request(fixture, &sample_requests[i], &len);
		struct request request = decode_request(fixture, bytes, len);
		assert_requests_equal(&request, &sample_requests[i]);
	}
}

static void test_replies_round_trip(void **state)
{
	struct fixture *fixture = *state;
	for (size_t i = 0; i < n_sample_replies; i++) {
		size_t len;
		struct reply reply;
		const uint8_t *bytes = encode_reply(fixture, &sample_replies[i], &len);
		arena_reset(&fixture->decoded);
		assert_int_equal(reply_decode(&fixture->decoded, bytes, len, &reply), 0);
		assert_replies_equal(&reply, &sample_replies[i]);
	}
}

static void test_there_is_a_sample_of_every_type(void **state)
{
	(void)state;
	unsigned int requests = 0, replies = 0;
	for (size_t i = 0; i < n_sample_requests; i++) {
		requests |= 1u << sample_requests[i].type;
	}
	for (size_t i = 0; i < n_sample_replies; i++) {
		replies |= 1u << sample_replies[i].type;
	}
	assert_int_equal(requests, (1u << (REQUEST_QUOTA_EXPLAIN + 1)) - 1);
	assert_int_equal(replies, (1u << (REPLY_QUOTA_EXPLAINED + 1)) - 1);
}

/* Where a request is decoded by hand, what an earlier one said of its answer must not stay behind. */
static void test_known_is_of_one_request(void **state)
{
	struct fixture *fixture = *state;
	struct request request = { .known = { .present = true, .done = true, .granted = 7 } };
	/* charge {}, add {}, get {} */
	static const uint8_t quick[][4] = { { 0xa2, 0x01, 0 }, { 0x22, 0 }, { 0x2a, 0 } };
	for (size_t i = 0; i < 3; i++) {
		request.known = (struct known){ .present = true, .done = true, .granted = 7 };
		assert_int_equal(
			request_decode(&fixture->decoded, quick[i], i == 0 ? 3 : 2, &request), 0);
		assert_false(request.known.present);
		assert_false(request.known.done);
		assert_int_equal(request.known.granted, 0);
	}
	/* charge {}, known {}: behind the body, and before it */
	assert_int_equal(request_decode(&fixture->decoded,
					BYTES(0xa2, 0x01, 0, 0xf2, 0x01, 2, 0x10, 8), &request),
			 0);
	assert_int_equal(request.type, REQUEST_CHARGE);
	assert_true(request.known.present);
	assert_false(request.known.done);
	assert_int_equal(request.known.granted, 4);
	assert_int_equal(request_decode(&fixture->decoded, BYTES(0xf2, 0x01, 0, 0xa2, 0x01, 0),
					&request),
			 0);
	assert_int_equal(request.type, REQUEST_CHARGE);
	assert_true(request.known.present);
}

static void test_an_unknown_type_is_not_encoded(void **state)
{
	struct fixture *fixture = *state;
	const uint8_t *bytes = NULL;
	size_t len = 0;
	struct request request = { .type = REQUEST_QUOTA_EXPLAIN + 1 };
	struct reply reply = { .type = REPLY_QUOTA_EXPLAINED + 1 };
	assert_int_equal(request_encode(&fixture->encoded, &request, &bytes, &len), -EINVAL);
	assert_int_equal(reply_encode(&fixture->encoded, &reply, &bytes, &len), -EINVAL);
	assert_null(bytes);
}

/* ---- what a peer may send ---- */

static void test_an_empty_message_has_no_body(void **state)
{
	struct request request = decode_request(*state, NULL, 0);
	assert_int_equal(request.id, 0);
	assert_int_equal(request.type, REQUEST_NONE);
}

static void test_unknown_bodies_keep_the_id(void **state)
{
	struct fixture *fixture = *state;
	/* id 5; field 18, two bytes long; field 19 */
	struct request request =
		decode_request(fixture, BYTES(0x08, 5, 0x92, 1, 2, 0x08, 1, 0x9a, 1, 0));
	assert_int_equal(request.id, 5);
	assert_int_equal(request.type, REQUEST_NONE);

	struct reply reply;
	assert_int_equal(
		reply_decode(&fixture->decoded, BYTES(0x08, 6, 0x9a, 1, 2, 0x08, 1), &reply), 0);
	assert_int_equal(reply.id, 6);
	assert_int_equal(reply.type, REPLY_NONE);
}

static void test_unknown_fields_are_skipped(void **state)
{
	/* id 5; fields 100 (varint, fixed64, bytes, fixed32); ping { field 1: 7, field 2: "x" } */
	struct request request =
		decode_request(*state, BYTES(0xa0, 0x06, 0x96, 0x01, 0x08, 5, 0xa1, 0x06, 1, 2, 3,
					     4, 5, 6, 7, 8, 0xa2, 0x06, 1, 0, 0xa5, 0x06, 1, 2, 3,
					     4, 0x5a, 5, 0x08, 7, 0x12, 1, 'x'));
	assert_int_equal(request.id, 5);
	assert_int_equal(request.type, REQUEST_PING);
}

static void test_lists_need_not_be_packed(void **state)
{
	/* add { batch 9, handles 1, 300, [2, 3], deltas -1, [1] } */
	struct request request =
		decode_request(*state, BYTES(0x22, 16, 0x08, 9, 0x10, 1, 0x10, 0xac, 0x02, 0x12, 2,
					     2, 3, 0x18, 1, 0x1a, 1, 2));
	static const uint32_t handles[] = { 1, 300, 2, 3 };
	static const int64_t deltas[] = { -1, 1 };
	struct request expected = {
		.type = REQUEST_ADD,
		.add = { .batch = 9,
			 .n_handles = 4,
			 .n_deltas = 2,
			 .handles = handles,
			 .deltas = deltas },
	};
	assert_requests_equal(&request, &expected);
}

static void test_unknown_numbers_of_enums_are_kept(void **state)
{
	/* get { consistency: 3 }, get { consistency: -1 } */
	struct request request = decode_request(*state, BYTES(0x2a, 2, 0x10, 3));
	assert_int_equal(request.get.consistency, 3);
	assert_false(consistency_known(request.get.consistency));
	request = decode_request(*state, BYTES(0x2a, 11, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					       0xff, 0xff, 0xff, 0x01));
	assert_false(consistency_known(request.get.consistency));
	assert_true(consistency_known(CONSISTENCY_FRESH));
	assert_true(consistency_known(CONSISTENCY_EXACT));

	/* metric_set { metric { kind: 2 } } */
	request = decode_request(*state, BYTES(0x4a, 4, 0x0a, 2, 0x10, 2));
	assert_int_equal(request.type, REQUEST_METRIC_SET);
	assert_false(kind_known(request.metric_set.kind));
	assert_true(kind_known(KIND_GAUGE));
}

static void test_absent_parts_are_empty(void **state)
{
	struct fixture *fixture = *state;
	struct request request =
		decode_request(fixture, BYTES(0x4a, 0)); /* metric_set without a metric */
	assert_int_equal(request.type, REQUEST_METRIC_SET);
	assert_non_null(request.metric_set.name.at);
	assert_int_equal(request.metric_set.name.len, 0);

	struct reply reply;
	/* page { entries [{}] }: neither a value nor a view */
	assert_int_equal(reply_decode(&fixture->decoded, BYTES(0x3a, 2, 0x0a, 0), &reply), 0);
	assert_int_equal(reply.page.n_entries, 1);
	assert_non_null(reply.page.entries[0].value.text.at);
	assert_false(reply.page.view.present);
	/* welcome {}: no limits */
	assert_int_equal(reply_decode(&fixture->decoded, BYTES(0x1a, 0), &reply), 0);
	assert_int_equal(reply.welcome.limits.max_frame, 0);
	/* status { items [{ name "x" }] }: neither a number nor a text */
	assert_int_equal(
		reply_decode(&fixture->decoded, BYTES(0x4a, 5, 0x0a, 3, 0x0a, 1, 'x'), &reply), 0);
	assert_false(reply.status.items[0].is_text);
	assert_int_equal(reply.status.items[0].number, 0);
}

static void test_the_last_of_a_repeated_field_counts(void **state)
{
	struct request request = decode_request(*state, BYTES(0x08, 1, 0x08, 2, 0x3a, 0, 0x5a, 0));
	assert_int_equal(request.id, 2);
	assert_int_equal(request.type, REQUEST_PING);
}

static void test_embedded_nuls_keep_their_length(void **state)
{
	struct request request = decode_request(*state, BYTES(0x52, 5, 0x0a, 3, 'a', 0, 'b'));
	assert_int_equal(request.type, REQUEST_METRIC_GET);
	assert_int_equal(request.metric_get.len, 3);
	assert_memory_equal(request.metric_get.at, "a\0b", 3);
}

static void test_what_is_no_message_is_refused(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t bytes[12];
		size_t len;
	} bad[] = {
		{ { 0x00 }, 1 }, /* field number 0 */
		{ { 0x00, 0x00 }, 2 },
		{ { 0x08 }, 1 },       /* id without its value */
		{ { 0x08, 0x80 }, 2 }, /* ... unfinished */
		{ { 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01 },
		  12 },				   /* ... of 11 bytes */
		{ { 0x0a, 1, 0 }, 3 },		   /* id as bytes */
		{ { 0x22, 2, 0x08 }, 3 },	   /* add longer than what is there */
		{ { 0x22, 1, 0x08 }, 3 },	   /* batch without its value */
		{ { 0x22, 3, 0x12, 1, 0x80 }, 5 }, /* handles that end inside a number */
		{ { 0x0b }, 1 },		   /* a group */
		{ { 0x0f, 0 }, 2 },		   /* wire type 7 */
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct request request = { .type = 99 };
		assert_int_equal(request_decode(&fixture->decoded, bad[i].bytes, bad[i].len,
						&request),
				 -EBADMSG);
		assert_int_equal(request.type, 99); /* untouched */
	}
}

/* Exactly as large as the message, so that a sanitizer sees a read beyond it. */
static void decode_copy(struct fixture *fixture, bool is_request, const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len + 1);
	assert_non_null(copy);
	uint8_t *at = copy + 1; /* unaligned as in a stream; the end is the end of the allocation */
	memcpy(at, bytes, len);
	arena_reset(&fixture->decoded);
	struct request request;
	struct reply reply;
	int r = is_request ? request_decode(&fixture->decoded, at, len, &request)
			   : reply_decode(&fixture->decoded, at, len, &reply);
	assert_true(r == 0 || r == -EBADMSG);
	free(copy);
}

static void damage(struct fixture *fixture, bool is_request, const uint8_t *message, size_t len)
{
	uint8_t bytes[1024];
	assert_true(len <= sizeof(bytes));
	memcpy(bytes, message, len);
	for (size_t cut = 0; cut < len; cut++) {
		decode_copy(fixture, is_request, bytes, cut);
	}
	for (size_t bit = 0; bit < len * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		decode_copy(fixture, is_request, bytes, len);
		bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
}

static void test_cut_and_flipped_messages_are_survived(void **state)
{
	struct fixture *fixture = *state;
	size_t len;
	for (size_t i = 0; i < n_sample_requests; i++) {
		const uint8_t *bytes = encode_request(fixture, &sample_requests[i], &len);
		damage(fixture, true, bytes, len);
	}
	for (size_t i = 0; i < n_sample_replies; i++) {
		const uint8_t *bytes = encode_reply(fixture, &sample_replies[i], &len);
		damage(fixture, false, bytes, len);
	}
}

static void test_noise_is_survived(void **state)
{
	struct fixture *fixture = *state;
	struct test_random random;
	test_random_init(&random, 0);
	for (int i = 0; i < 20000; i++) {
		uint8_t bytes[64];
		size_t len = test_random_below(&random, sizeof(bytes));
		for (size_t k = 0; k < len; k++) {
			/* mostly small numbers: tags and lengths that mean something */
			bytes[k] = (uint8_t)test_random_below(
				&random, test_random_below(&random, 3) ? 0x60 : 0x100);
		}
		decode_copy(fixture, i & 1, bytes, len);
	}
}

/* ---- limits ---- */

static void test_the_largest_message_and_one_byte_more(void **state)
{
	struct fixture *fixture = *state;
	static char path[MESSAGE_MAX_FRAME];
	/* request 0, intern { paths [path] }: four bytes of tag and length each */
	struct text text = { .at = path, .len = MESSAGE_MAX_FRAME - 8 };
	struct request request = { .type = REQUEST_INTERN,
				   .intern = { .n_paths = 1, .paths = &text } };
	size_t len;
	const uint8_t *bytes = encode_request(fixture, &request, &len);
	assert_int_equal(len, MESSAGE_MAX_FRAME);
	struct request decoded = decode_request(fixture, bytes, len);
	assert_requests_equal(&decoded, &request);

	text.len++;
	const uint8_t *untouched = NULL;
	assert_int_equal(request_encode(&fixture->encoded, &request, &untouched, &len), -EMSGSIZE);
	assert_null(untouched);
}

static void test_arenas_that_are_too_small(void **state)
{
	struct fixture *fixture = *state;
	for (size_t i = 0; i < n_sample_requests; i++) {
		size_t len, out_len;
		const uint8_t *bytes = encode_request(fixture, &sample_requests[i], &len), *out;
		struct request request, before;
		decode_request(fixture, bytes, len);
		size_t needed = fixture->decoded.used;
		memset(&before, 99, sizeof(before));
		memset(&request, 99, sizeof(request));
		for (size_t limit = 0; limit < needed; limit += 16) {
			struct arena small = ARENA_INIT(limit);
			assert_int_equal(request_decode(&small, bytes, len, &request), -ENOMEM);
			assert_memory_equal(&request, &before, sizeof(request));
			arena_deinit(&small);
		}
		struct arena fitting = ARENA_INIT(needed);
		assert_int_equal(request_decode(&fitting, bytes, len, &request), 0);
		arena_deinit(&fitting);
		struct arena none = ARENA_INIT(0);
		assert_int_equal(request_encode(&none, &sample_requests[i], &out, &out_len),
				 -ENOMEM);
		arena_deinit(&none);
	}
	for (size_t i = 0; i < n_sample_replies; i++) {
		size_t len, out_len;
		const uint8_t *bytes = encode_reply(fixture, &sample_replies[i], &len), *out;
		struct reply reply, before;
		arena_reset(&fixture->decoded);
		assert_int_equal(reply_decode(&fixture->decoded, bytes, len, &reply), 0);
		size_t needed = fixture->decoded.used;
		memset(&before, 99, sizeof(before));
		memset(&reply, 99, sizeof(reply));
		for (size_t limit = 0; limit < needed; limit += 16) {
			struct arena small = ARENA_INIT(limit);
			assert_int_equal(reply_decode(&small, bytes, len, &reply), -ENOMEM);
			assert_memory_equal(&reply, &before, sizeof(reply));
			arena_deinit(&small);
		}
		struct arena none = ARENA_INIT(0);
		assert_int_equal(reply_encode(&none, &sample_replies[i], &out, &out_len), -ENOMEM);
		arena_deinit(&none);
	}
}

/* A message of MESSAGE_MAX_FRAME bytes: `head`, and `unit` again and again. Freed by the caller. */
static uint8_t *make_flood(const uint8_t *head, size_t head_len, const uint8_t *unit,
			   size_t unit_len, size_t *ret_len)
{
	uint8_t *bytes = malloc(MESSAGE_MAX_FRAME);
	assert_non_null(bytes);
	memcpy(bytes, head, head_len);
	size_t len = head_len;
	while (len + unit_len <= MESSAGE_MAX_FRAME) {
		memcpy(bytes + len, unit, unit_len);
		len += unit_len;
	}
	*ret_len = len;
	return bytes;
}

/*
 * What costs most in memory for its size. Each either fits MESSAGE_ARENA_LIMIT or is refused by it; the arena ends up
 * no larger than it says, and works on.
 */
static void test_floods_stay_under_the_limit(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		const char *what;
		uint8_t head[8], unit[4];
		size_t head_len, unit_len;
	} floods[] = {
		{ "unknown fields", { 0 }, { 0x78, 0 }, 0, 2 },
		{ "ids", { 0 }, { 0x08, 1 }, 0, 2 },
		{ "bodies", { 0 }, { 0x12, 0 }, 0, 2 },
		{ "bodies of two kinds", { 0 }, { 0x5a, 0, 0x12, 0 }, 0, 4 },
		/* a body of 0x0ffffc bytes */
		{ "empty paths", { 0x1a, 0xfc, 0xff, 0x3f }, { 0x12, 0 }, 4, 2 },
		{ "handles not packed", { 0x22, 0xfc, 0xff, 0x3f }, { 0x10, 0 }, 4, 2 },
		{ "handles packed alone", { 0x22, 0xfc, 0xff, 0x3f }, { 0x12, 2, 0, 0 }, 4, 4 },
		{ "metrics merged", { 0x4a, 0xfc, 0xff, 0x3f }, { 0x0a, 0 }, 4, 2 },
		{ "empty errors", { 0x22, 0xfc, 0xff, 0x3f }, { 0x0a, 0 }, 4, 2 },
		{ "empty entries", { 0x3a, 0xfc, 0xff, 0x3f }, { 0x0a, 0 }, 4, 2 },
		{ "entries with an empty value",
		  { 0x3a, 0xfc, 0xff, 0x3f },
		  { 0x0a, 2, 0x1a, 0 },
		  4,
		  4 },
		{ "empty status items", { 0x4a, 0xfc, 0xff, 0x3f }, { 0x0a, 0 }, 4, 2 },
		{ "empty metrics", { 0x82, 0x01, 0xfb, 0xff, 0x3f }, { 0x0a, 0 }, 5, 2 },
		{ "empty items to import", { 0x82, 0x01, 0xfb, 0xff, 0x3f }, { 0x0a, 0 }, 5, 2 },
		{ "empty errors of an import", { 0x92, 0x01, 0xfb, 0xff, 0x3f }, { 0x0a, 0 }, 5, 2 },
		/* fields 16 and above: a byte more of tag, and the body is 0x0ffffb bytes */
		{ "empty items", { 0xa2, 0x01, 0xfb, 0xff, 0x3f }, { 0x12, 0 }, 5, 2 },
		{ "empty bindings", { 0xa2, 0x01, 0xfb, 0xff, 0x3f }, { 0x22, 0 }, 5, 2 },
		{ "rules merged, and notes", { 0xca, 0x01, 0xfb, 0xff, 0x3f }, { 0x0a, 0 }, 5, 2 },
		{ "empty rules", { 0xda, 0x01, 0xfb, 0xff, 0x3f }, { 0x0a, 0 }, 5, 2 },
		{ "empty levels", { 0xe2, 0x01, 0xfb, 0xff, 0x3f }, { 0x0a, 0 }, 5, 2 },
		{ "empty siblings", { 0xe2, 0x01, 0xfb, 0xff, 0x3f }, { 0x12, 0 }, 5, 2 },
		{ "empty leases", { 0xe2, 0x01, 0xfb, 0xff, 0x3f }, { 0x22, 0 }, 5, 2 },
	};
	for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
		size_t len;
		uint8_t *bytes = make_flood(floods[i].head, floods[i].head_len, floods[i].unit,
					    floods[i].unit_len, &len);
		struct request request;
		struct reply reply;
		for (int k = 0; k < 2; k++) {
			arena_reset(&fixture->decoded);
			int r = k == 0 ? request_decode(&fixture->decoded, bytes, len, &request)
				       : reply_decode(&fixture->decoded, bytes, len, &reply);
			print_message("%s as a %s: %d, %zu KiB\n", floods[i].what,
				      k == 0 ? "request" : "reply", r, fixture->decoded.used >> 10);
			assert_true(r == 0 || r == -ENOMEM || r == -EBADMSG);
			assert_true(fixture->decoded.used <= MESSAGE_ARENA_LIMIT);
		}
		free(bytes);
		request = decode_request(fixture, BYTES(0x5a, 0));
		assert_int_equal(request.type, REQUEST_PING);
	}
}

static void test_lists_of_the_largest_size_fit_unpacked(void **state)
{
	struct fixture *fixture = *state;
	/* add with so many unpacked handles and deltas: 4 bytes an entry */
	size_t body = (size_t)MAX_ITEMS * 4, len = 0;
	uint8_t *bytes = malloc(body + 4);
	assert_non_null(bytes);
	bytes[len++] = 0x22;
	len += frame_prefix(body, bytes + len);
	for (size_t i = 0; i < MAX_ITEMS; i++) {
		memcpy(bytes + len, (const uint8_t[]){ 0x10, 1, 0x18, 2 }, 4);
		len += 4;
	}
	struct request request = decode_request(fixture, bytes, len);
	assert_int_equal(request.add.n_handles, MAX_ITEMS);
	assert_int_equal(request.add.n_deltas, MAX_ITEMS);
	assert_int_equal(request.add.deltas[MAX_ITEMS - 1], 1);
	free(bytes);
}

/* What the daemon can have to say about so many items fits a frame if only some of it has a text. */
static void test_an_error_for_every_item_fits_a_frame(void **state)
{
	struct fixture *fixture = *state;
	static struct item_error errors[MAX_ITEMS];
	static char text[100];
	for (uint32_t i = 0; i < MAX_ITEMS; i++) {
		errors[i] = (struct item_error){
			.index = i,
			.code = CODE_UNAVAILABLE,
			.text = { .at = text, .len = i < 1024 ? sizeof(text) : 0 },
		};
	}
	struct reply reply = {
		.id = UINT64_MAX,
		.type = REPLY_APPLIED,
		.applied = { .batch = UINT64_MAX,
			     .duplicate = true,
			     .n_errors = MAX_ITEMS,
			     .errors = errors },
	};
	size_t len;
	const uint8_t *bytes = encode_reply(fixture, &reply, &len);
	struct reply decoded;
	assert_int_equal(reply_decode(&fixture->decoded, bytes, len, &decoded), 0);
	assert_replies_equal(&decoded, &reply);
}

/* ---- memory ---- */

static void test_a_warm_arena_decodes_adds_without_malloc(void **state)
{
	struct fixture *fixture = *state;
	static uint32_t handles[3000];
	static int64_t deltas[3000];
	for (size_t i = 0; i < 3000; i++) {
		handles[i] = (uint32_t)i;
		deltas[i] = (int64_t)i - 1000;
	}
	struct request add = {
		.type = REQUEST_ADD,
		.add = { .batch = 1,
			 .n_handles = 3000,
			 .n_deltas = 3000,
			 .handles = handles,
			 .deltas = deltas },
	};
	assert_decodes_without_malloc(fixture, &add);
	/* and no more memory than the two lists, the messages around them and alignment */
	assert_true(fixture->decoded.used < sizeof(handles) + sizeof(deltas) + 256);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_requests_round_trip),
		TEST(test_replies_round_trip),
		TEST(test_there_is_a_sample_of_every_type),
		TEST(test_known_is_of_one_request),
		TEST(test_an_unknown_type_is_not_encoded),
		TEST(test_an_empty_message_has_no_body),
		TEST(test_unknown_bodies_keep_the_id),
		TEST(test_unknown_fields_are_skipped),
		TEST(test_lists_need_not_be_packed),
		TEST(test_unknown_numbers_of_enums_are_kept),
		TEST(test_absent_parts_are_empty),
		TEST(test_the_last_of_a_repeated_field_counts),
		TEST(test_embedded_nuls_keep_their_length),
		TEST(test_what_is_no_message_is_refused),
		TEST(test_cut_and_flipped_messages_are_survived),
		TEST(test_noise_is_survived),
		TEST(test_the_largest_message_and_one_byte_more),
		TEST(test_arenas_that_are_too_small),
		TEST(test_floods_stay_under_the_limit),
		TEST(test_lists_of_the_largest_size_fit_unpacked),
		TEST(test_an_error_for_every_item_fits_a_frame),
		TEST(test_a_warm_arena_decodes_adds_without_malloc),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
