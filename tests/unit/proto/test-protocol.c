/*
 * test-protocol: the conversation at the end of PROTOCOL.md is what the code says and understands. The bytes are read
 * from the page, its blocks marked "hex client" and "hex daemon"; what they mean is below.
 */
#include "proto/frame.h"
#include "proto/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/proto/samples.h"

#ifndef PROTOCOL_MD
#define PROTOCOL_MD "proto/PROTOCOL.md"
#endif

#define TEXT(string)                                      \
	{                                                 \
		.at = (string), .len = sizeof(string) - 1 \
	}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- what is said ---- */

struct step {
	bool client;
	union {
		struct request request;
		struct reply reply;
	};
};

static const struct text interned[] = { TEXT("requests/acme/web"), TEXT("requests/acme/") };
static const uint32_t handles[] = { 0, 1, 0 };
static const int64_t deltas[] = { 3, 5, 300 }, one[] = { 1 };
static const struct item_error no_path[] = {
	{ .index = 1, .code = CODE_INVALID_ARGUMENT, .text = TEXT("an empty segment") },
};
static const struct item_error no_counter[] = {
	{ .index = 1, .code = CODE_NOT_FOUND, .text = TEXT("no counter behind this handle") },
};
static const struct text asked[] = { TEXT("requests"), TEXT("requests/none") };
static const struct value values[] = {
	{ .total = 303, .text = TEXT("") },
	{ .code = CODE_NOT_FOUND, .text = TEXT("no such counter") },
};
static const struct entry entries[] = {
	{ .path = TEXT("requests/acme"), .depth = 2, .value = { .total = 303, .text = TEXT("") } },
	{ .path = TEXT("requests/acme/web"),
	  .depth = 3,
	  .value = { .leaf = true, .own = 303, .total = 303, .text = TEXT("") } },
};

static const struct charge_item hundred[] = { { .path = TEXT("requests/acme/web"), .amount = 100 } };
static const struct charge_item both[] = {
	{ .path = TEXT("requests/acme/web"), .amount = 600 },
	{ .path = TEXT("jobs/acme"), .amount = 1 },
};
static const struct charge_item misspelt[] = { { .path = TEXT("reqests/acme"), .amount = 1 } };
static const struct binding minute[] = {
	{ .kind = BINDING_MAX,
	  .path = TEXT("requests/acme"),
	  .window = { .kind = RULE_WINDOW_PER, .duration_ms = 60000 },
	  .limit = 1000,
	  .usage = 403,
	  .left = 597,
	  .retry_after_ms = 20000 },
};

#define CLIENT(...)                                        \
	{                                                  \
		.client = true, .request = { __VA_ARGS__ } \
	}
#define DAEMON(...)                                       \
	{                                                 \
		.client = false, .reply = { __VA_ARGS__ } \
	}
#define LIMITS                                                                              \
	{                                                                                   \
		.max_frame = MESSAGE_MAX_FRAME, .max_handles = 1000000, .max_items = 65536, \
		.max_walks = 4, .max_lifetime_ms = 86400000, .max_output = 4 << 20,         \
		.idle_frame_ms = 10000, .max_charge_items = MESSAGE_MAX_CHARGE_ITEMS,       \
		.max_operations_kept = MESSAGE_MAX_OPERATIONS_KEPT,                         \
		.max_leases = MESSAGE_MAX_LEASES, .max_wait_ms = MESSAGE_MAX_WAIT_MS,       \
		.max_waits = MESSAGE_MAX_WAITS                                              \
	}
#define BATCH_1                                                                                 \
	{                                                                                       \
		.batch = 1, .n_handles = 3, .n_deltas = 3, .handles = handles, .deltas = deltas \
	}

static const struct step steps[] = {
	CLIENT(.id = 1, .type = REQUEST_HELLO,
	       .hello = { .version = 1,
			  .session = TEXT("\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17"),
			  .lifetime_ms = 60000,
			  .next_batch = 1,
			  .agent = TEXT("example/1"),
			  .next_operation = 1 }),
	DAEMON(.id = 1, .type = REPLY_WELCOME,
	       .welcome = { .version = 1,
			    .daemon = TEXT("rationd/0.1.0"),
			    .limits = LIMITS,
			    .incarnation = TEXT(
				    "\240\241\242\243\244\245\246\247\250\251\252\253\254\255\256\257"),
			    .keeps = true }),
	CLIENT(.id = 2, .type = REQUEST_INTERN,
	       .intern = { .n_paths = COUNT(interned), .paths = interned }),
	CLIENT(.id = 3, .type = REQUEST_ADD, .add = BATCH_1),
	DAEMON(.id = 2, .type = REPLY_INTERNED, .interned = { .n_errors = 1, .errors = no_path }),
	DAEMON(.id = 3, .type = REPLY_APPLIED,
	       .applied = { .batch = 1, .n_errors = 1, .errors = no_counter }),
	CLIENT(.id = 4, .type = REQUEST_ADD, .add = BATCH_1),
	DAEMON(.id = 4, .type = REPLY_APPLIED, .applied = { .batch = 1, .duplicate = true }),
	DAEMON(.id = 0, .type = REPLY_DURABLE, .durable = { .batch = 1 }),
	CLIENT(.id = 5, .type = REQUEST_ADD,
	       .add = { .batch = 3,
			.n_handles = 1,
			.n_deltas = 1,
			.handles = handles,
			.deltas = one }),
	DAEMON(.id = 5, .type = REPLY_ERROR,
	       .error = { .code = CODE_FAILED_PRECONDITION,
			  .text = TEXT("batch 3 came where batch 2 was expected") }),
	CLIENT(.id = 6, .type = REQUEST_GET,
	       .get = { .n_paths = COUNT(asked), .paths = asked, .consistency = CONSISTENCY_EXACT }),
	DAEMON(.id = 6, .type = REPLY_VALUES,
	       .values = { .n_values = COUNT(values),
			   .values = values,
			   .view = { .present = true } }),
	CLIENT(.id = 7, .type = REQUEST_WALK,
	       .walk = { .root = TEXT("requests/acme"),
			 .depth = MESSAGE_DEPTH_ALL,
			 .cursor = TEXT("") }),
	DAEMON(.id = 7, .type = REPLY_PAGE,
	       .page = { .n_entries = COUNT(entries),
			 .entries = entries,
			 .last = true,
			 .cursor = TEXT(""),
			 .view = { .present = true, .error_bound = 128, .age_ms = 12 } }),
	CLIENT(.id = 8, .type = REQUEST_PING),
	DAEMON(.id = 8, .type = REPLY_PONG),
	CLIENT(.id = 9, .type = REQUEST_CHARGE,
	       .charge = { .number = 1, .n_items = 1, .items = hundred }),
	DAEMON(.id = 9, .type = REPLY_CHARGED, .charged = { .number = 1, .granted = true }),
	CLIENT(.id = 10, .type = REQUEST_CHARGE,
	       .charge = { .number = 2, .n_items = COUNT(both), .items = both }),
	DAEMON(.id = 10, .type = REPLY_CHARGED,
	       .charged = { .number = 2, .n_bindings = 1, .bindings = minute }),
	CLIENT(.id = 11, .type = REQUEST_CHARGE,
	       .charge = { .number = 3, .n_items = 1, .items = misspelt }),
	DAEMON(.id = 11, .type = REPLY_ERROR,
	       .error = { .code = CODE_NOT_FOUND,
			  .text = TEXT("there is no metric reqests"),
			  .operation = 3 }),
	CLIENT(.id = 12, .type = REQUEST_FLUSH, .flush = { .durable = true }),
	DAEMON(.id = 0, .type = REPLY_DURABLE, .durable = { .batch = 1, .operation = 3 }),
	DAEMON(.id = 12, .type = REPLY_FLUSHED, .flushed = { .durable = true }),
	CLIENT(.id = 13, .type = REQUEST_CHARGE,
	       .charge = { .number = 4, .n_items = 1, .items = hundred }),
	DAEMON(.id = 13, .type = REPLY_CHARGED, .charged = { .number = 4, .granted = true }),
	CLIENT(.id = 1, .type = REQUEST_HELLO,
	       .hello = { .version = 1,
			  .session = TEXT("\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17"),
			  .lifetime_ms = 60000,
			  .next_batch = 2,
			  .agent = TEXT("example/1"),
			  .next_operation = 4,
			  .incarnation = TEXT(
				  "\240\241\242\243\244\245\246\247\250\251\252\253\254\255\256\257") }),
	DAEMON(.id = 1, .type = REPLY_WELCOME,
	       .welcome = { .version = 1,
			    .daemon = TEXT("rationd/0.1.0"),
			    .last_batch = 1,
			    .limits = LIMITS,
			    .incarnation = TEXT(
				    "\260\261\262\263\264\265\266\267\270\271\272\273\274\275\276\277"),
			    .last_operation = 3,
			    .keeps = true,
			    .restored = true,
			    .durable_batch = 1,
			    .durable_operation = 3 }),
	CLIENT(.id = 2, .type = REQUEST_CHARGE, .known = { .present = true, .done = true },
	       .charge = { .number = 4, .n_items = 1, .items = hundred }),
	DAEMON(.id = 2, .type = REPLY_CHARGED, .charged = { .number = 4, .granted = true }),
	DAEMON(.id = 0, .type = REPLY_GOODBYE,
	       .goodbye = { .code = CODE_UNAVAILABLE, .text = TEXT("shutting down") }),
};

/* ---- what the page has ---- */

struct block {
	bool client;
	size_t len;
	uint8_t bytes[256];
};

static void read_line(struct block *block, const char *line)
{
	char *end;
	while (true) {
		unsigned long byte = strtoul(line, &end, 16);
		if (end == line) {
			return;
		}
		assert_true(byte <= 0xff && block->len < sizeof(block->bytes));
		block->bytes[block->len++] = (uint8_t)byte;
		line = end;
	}
}

/* Returns how many. */
static size_t read_page(struct block *blocks, size_t max)
{
	FILE *file = fopen(PROTOCOL_MD, "r");
	char line[4096];
	size_t n = 0;
	bool inside = false;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		bool client = strcmp(line, "```hex client\n") == 0;
		if (client || strcmp(line, "```hex daemon\n") == 0) {
			assert_true(n < max);
			blocks[n++] = (struct block){ .client = client };
			inside = true;
		} else if (line[0] == '`') {
			inside = false;
		} else if (inside) {
			read_line(&blocks[n - 1], line);
		}
	}
	assert_int_equal(fclose(file), 0);
	return n;
}

/* ---- the two together ---- */

static void check_block(const struct step *step, const struct block *block)
{
	struct arena arena = ARENA_INIT(MESSAGE_ARENA_LIMIT);
	const uint8_t *bytes = NULL, *message = NULL;
	size_t len = 0, message_len = 0, used = 0;
	assert_int_equal(step->client, block->client);

	int r = step->client ? request_encode(&arena, &step->request, &bytes, &len)
			     : reply_encode(&arena, &step->reply, &bytes, &len);
	assert_int_equal(r, 0);
	assert_int_equal(len, block->len);
	assert_memory_equal(bytes, block->bytes, len);

	assert_int_equal(frame_find(block->bytes, block->len, MESSAGE_MAX_FRAME, &message,
				    &message_len, &used),
			 FRAME_OK);
	assert_int_equal(used, block->len);
	if (step->client) {
		struct request request;
		assert_int_equal(request_decode(&arena, message, message_len, &request), 0);
		assert_requests_equal(&request, &step->request);
	} else {
		struct reply reply;
		assert_int_equal(reply_decode(&arena, message, message_len, &reply), 0);
		assert_replies_equal(&reply, &step->reply);
	}
	arena_deinit(&arena);
}

static void test_the_page_is_right(void **state)
{
	(void)state;
	static struct block blocks[COUNT(steps) + 1];
	size_t n = read_page(blocks, COUNT(blocks));
	assert_int_equal(n, COUNT(steps));
	for (size_t i = 0; i < n; i++) {
		print_message("step %zu\n", i);
		check_block(&steps[i], &blocks[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_the_page_is_right) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
