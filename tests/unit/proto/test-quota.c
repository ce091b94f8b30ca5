/* What quota.h promises beyond round trips, which are in test-message.c. */
#include "proto/message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/proto/fixture.h"
#include "tests/unit/proto/samples.h"

/* ---- what a peer may send ---- */

static void test_absent_parts_are_empty(void **state)
{
	struct fixture *fixture = *state;
	/* quota_set {}, without a rule */
	struct request request = decode_request(fixture, BYTES(0xca, 0x01, 0));
	static const struct rule empty = { .pattern = { .at = "" }, .source = { .at = "" } };
	struct request expected = { .type = REQUEST_QUOTA_SET, .quota_set = empty };
	assert_requests_equal(&request, &expected);
	assert_non_null(request.quota_set.pattern.at);
	assert_non_null(request.quota_set.source.at);
	/* quota_set { rule {} }, without a window and limits */
	request = decode_request(fixture, BYTES(0xca, 0x01, 2, 0x0a, 0));
	assert_requests_equal(&request, &expected);
	/* quota_remove {} */
	request = decode_request(fixture, BYTES(0xd2, 0x01, 0));
	assert_int_equal(request.type, REQUEST_QUOTA_REMOVE);
	assert_int_equal(request.quota_remove.window.kind, RULE_WINDOW_NONE);
	/* charge { items [{}] } */
	request = decode_request(fixture, BYTES(0xa2, 0x01, 2, 0x12, 0));
	assert_int_equal(request.type, REQUEST_CHARGE);
	assert_int_equal(request.charge.n_items, 1);
	assert_non_null(request.charge.items[0].path.at);
	assert_int_equal(request.charge.items[0].amount, 0);
	/* charged { bindings [{}] } */
	struct reply reply = decode_reply(fixture, BYTES(0xa2, 0x01, 2, 0x22, 0));
	assert_int_equal(reply.charged.n_bindings, 1);
	assert_non_null(reply.charged.bindings[0].path.at);
	/* quota_explained { levels [{}] } */
	reply = decode_reply(fixture, BYTES(0xe2, 0x01, 2, 0x0a, 0));
	assert_int_equal(reply.quota_explained.n_levels, 1);
	assert_false(reply.quota_explained.levels[0].limits.has_max);
}

/* A max of 0 refuses everything; no max refuses nothing. */
static void test_zero_is_not_absent(void **state)
{
	/* quota_set { rule { limits { max: 0 } } }, { high: -1 } */
	struct request request =
		decode_request(*state, BYTES(0xca, 0x01, 6, 0x0a, 4, 0x1a, 2, 8, 0));
	assert_true(request.quota_set.limits.has_max);
	assert_int_equal(request.quota_set.limits.max, 0);
	assert_false(request.quota_set.limits.has_high);
	request = decode_request(*state, BYTES(0xca, 0x01, 6, 0x0a, 4, 0x1a, 2, 0x10, 1));
	assert_false(request.quota_set.limits.has_max);
	assert_int_equal(request.quota_set.limits.max, 0);
	assert_true(request.quota_set.limits.has_high);
	assert_int_equal(request.quota_set.limits.high, -1);
}

static void test_unknown_numbers_of_enums_are_kept(void **state)
{
	/* quota_remove { window { kind: 4 } }, { unit: 3 } */
	struct request request = decode_request(*state, BYTES(0xd2, 0x01, 4, 0x12, 2, 8, 4));
	assert_int_equal(request.quota_remove.window.kind, 4);
	assert_false(rule_window_known(&request.quota_remove.window));
	request = decode_request(*state, BYTES(0xd2, 0x01, 4, 0x12, 2, 0x18, 3));
	assert_int_equal(request.quota_remove.window.unit, 3);
	assert_false(rule_window_known(&request.quota_remove.window));
	request = decode_request(*state, BYTES(0xd2, 0x01, 6, 0x12, 4, 8, 3, 0x18, 2));
	assert_true(rule_window_known(&request.quota_remove.window));

	assert_true(rule_layer_known(RULE_RUN_TIME));
	assert_false(rule_layer_known((enum rule_layer)2));
	assert_false(rule_layer_known((enum rule_layer) - 1));
	assert_true(binding_kind_known(BINDING_SHADOW));
	assert_false(binding_kind_known((enum binding_kind)4));
	assert_false(binding_kind_known((enum binding_kind) - 1));
}

static void test_unknown_fields_are_skipped(void **state)
{
	/* charge { number 7, field 15: "x", items [{ field 9: 1, path "a", amount 3 }] }, field 100 */
	struct request request =
		decode_request(*state, BYTES(0xa2, 0x01, 14, 0x08, 7, 0x7a, 1, 'x', 0x12, 7, 0x48,
					     1, 0x0a, 1, 'a', 0x10, 6, 0xa0, 0x06, 1));
	static const struct charge_item item = { .path = { .at = "a", .len = 1 }, .amount = 3 };
	struct request expected = { .type = REQUEST_CHARGE,
				    .charge = { .number = 7, .n_items = 1, .items = &item } };
	assert_requests_equal(&request, &expected);
}

/* ---- charges of every size ---- */

#define MAX_PATH 512u

static struct charge_item *make_items(size_t n, size_t path_len)
{
	static char path[MAX_PATH];
	struct charge_item *items = calloc(n, sizeof(*items));
	assert_non_null(items);
	memset(path, 'p', sizeof(path));
	for (size_t i = 0; i < n; i++) {
		items[i] = (struct charge_item){ .path = { .at = path, .len = path_len },
						 .amount = MESSAGE_MAX_AMOUNT - (int64_t)i };
	}
	return items;
}

/* As many items as are allowed, and one more, which the receiver has to see in order to refuse it. */
static void test_charges_at_the_limit_and_beyond(void **state)
{
	struct fixture *fixture = *state;
	const size_t counts[] = { 0, 1, 2, MESSAGE_MAX_CHARGE_ITEMS, MESSAGE_MAX_CHARGE_ITEMS + 1 };
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct charge_item *items = make_items(counts[i], 60);
		struct request charge = {
			.id = UINT64_MAX,
			.type = REQUEST_CHARGE,
			.charge = { .number = UINT64_MAX, .n_items = counts[i], .items = items }
		};
		size_t len;
		const uint8_t *bytes = encode_request(fixture, &charge, &len);
		struct request request = decode_request(fixture, bytes, len);
		assert_requests_equal(&request, &charge);
		print_message("%zu items: %zu bytes, %zu KiB to decode\n", counts[i], len,
			      fixture->decoded.used >> 10);
		free(items);
	}
}

/* The longest paths that so many items can have in a frame. */
static void test_the_largest_charge(void **state)
{
	struct fixture *fixture = *state;
	struct charge_item *items = make_items(MESSAGE_MAX_CHARGE_ITEMS, 90);
	struct request charge = { .type = REQUEST_CHARGE,
				  .charge = { .n_items = MESSAGE_MAX_CHARGE_ITEMS,
					      .items = items } };
	size_t len;
	const uint8_t *bytes = encode_request(fixture, &charge, &len);
	assert_in_range(len, MESSAGE_MAX_FRAME - MESSAGE_MAX_CHARGE_ITEMS, MESSAGE_MAX_FRAME);
	struct request request = decode_request(fixture, bytes, len);
	assert_requests_equal(&request, &charge);
	free(items);
}

static void check_warm(struct fixture *fixture, size_t n, size_t path_len)
{
	struct charge_item *items = make_items(n, path_len);
	struct request charge = { .type = REQUEST_CHARGE,
				  .charge = { .number = 1, .n_items = n, .items = items } };
	assert_decodes_without_malloc(fixture, &charge);
	free(items);
}

static void test_a_warm_arena_decodes_charges_without_malloc(void **state)
{
	check_warm(*state, 1, 20);
	check_warm(*state, 100, 30);
	check_warm(*state, MESSAGE_MAX_CHARGE_ITEMS, 30);
	check_warm(*state, MESSAGE_MAX_CHARGE_ITEMS, 90);
	check_warm(*state, 1, 20);
}

/* ---- answers: as much as quota.h lets them say fits a frame ---- */

static struct text longest(char c)
{
	static char texts[256][MAX_PATH];
	memset(texts[(unsigned char)c], c, MAX_PATH);
	return (struct text){ .at = texts[(unsigned char)c], .len = MAX_PATH };
}

static const struct rule_window widest_window = { .kind = (enum rule_window_kind) - 1,
						  .unit = (enum rule_window_unit) - 1,
						  .duration_ms = UINT64_MAX };
static const struct rule_limits widest_limits = { .has_max = true,
						  .max = INT64_MIN,
						  .has_high = true,
						  .high = INT64_MIN,
						  .low = INT64_MIN,
						  .min = INT64_MIN,
						  .shadow = true,
						  .rate = INT64_MIN,
						  .per_ms = UINT64_MAX,
						  .burst = INT64_MIN };

static size_t round_trip(struct fixture *fixture, const struct reply *reply)
{
	size_t len;
	const uint8_t *bytes = encode_reply(fixture, reply, &len);
	struct reply decoded = decode_reply(fixture, bytes, len);
	assert_replies_equal(&decoded, reply);
	return len;
}

static void test_all_bindings_fit_a_frame(void **state)
{
	static struct binding bindings[MESSAGE_MAX_BINDINGS];
	for (size_t i = 0; i < MESSAGE_MAX_BINDINGS; i++) {
		bindings[i] = (struct binding){ .kind = (enum binding_kind) - 1,
						.path = longest('b'),
						.window = widest_window,
						.limit = INT64_MIN,
						.usage = INT64_MIN,
						.left = INT64_MIN,
						.retry_after_ms = INT64_MIN };
	}
	struct reply reply = { .type = REPLY_CHARGED,
			       .charged = { .n_bindings = MESSAGE_MAX_BINDINGS,
					    .bindings = bindings } };
	/* and 1,024 of these are kept for a session */
	assert_in_range(round_trip(*state, &reply), 0, 64 << 10);
}

#define MAX_LEVELS (16u * 8u) /* segments of a path, windows of a metric */

static void test_the_longest_explanation_fits_a_frame(void **state)
{
	static struct explained_level levels[MAX_LEVELS];
	static struct explained_sibling siblings[MESSAGE_MAX_EXPLAINED];
	static struct explained_lease leases[MESSAGE_MAX_EXPLAINED];
	for (size_t i = 0; i < MAX_LEVELS; i++) {
		levels[i] = (struct explained_level){ .path = longest('a'),
						      .window = widest_window,
						      .limits = widest_limits,
						      .layer = (enum rule_layer) - 1,
						      .pattern = longest('b'),
						      .source = longest('c'),
						      .usage = INT64_MIN,
						      .peak = INT64_MIN,
						      .left = INT64_MIN,
						      .refusals = UINT64_MAX,
						      .forced = INT64_MIN,
						      .effective_min = INT64_MIN,
						      .effective_low = INT64_MIN,
						      .binds = true,
						      .over_high = true,
						      .over_max = true,
						      .ends_in_ms = UINT64_MAX };
	}
	for (size_t i = 0; i < MESSAGE_MAX_EXPLAINED; i++) {
		siblings[i] = (struct explained_sibling){ .path = longest('a'),
							  .usage = INT64_MIN,
							  .effective_min = INT64_MIN,
							  .effective_low = INT64_MIN };
		leases[i] = (struct explained_lease){ .path = longest('a'),
						      .agent = { .at = longest('b').at,
								 .len = MESSAGE_MAX_AGENT },
						      .units = INT64_MIN,
						      .expires_in_ms = UINT64_MAX };
	}
	struct reply reply = { .type = REPLY_QUOTA_EXPLAINED,
			       .quota_explained = { .n_levels = MAX_LEVELS,
						    .levels = levels,
						    .n_siblings = MESSAGE_MAX_EXPLAINED,
						    .siblings = siblings,
						    .siblings_omitted = UINT32_MAX,
						    .n_leases = MESSAGE_MAX_EXPLAINED,
						    .leases = leases,
						    .leases_omitted = UINT32_MAX } };
	print_message("%zu bytes\n", round_trip(*state, &reply));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_absent_parts_are_empty),
		TEST(test_zero_is_not_absent),
		TEST(test_unknown_numbers_of_enums_are_kept),
		TEST(test_unknown_fields_are_skipped),
		TEST(test_charges_at_the_limit_and_beyond),
		TEST(test_the_largest_charge),
		TEST(test_a_warm_arena_decodes_charges_without_malloc),
		TEST(test_all_bindings_fit_a_frame),
		TEST(test_the_longest_explanation_fits_a_frame),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
