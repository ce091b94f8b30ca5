/*
 * Get, Walk, Flush, Status, metrics: what was counted, and how it is asked for.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAVES 5000u /* below walk/, in groups of 50 */

static int setup(void **state)
{
	*state = test_daemon_start(
		"workers = 2\nflush_interval = 1h\nbatch = 1000\nmax_walks = 3\n");
	return 0;
}

static int teardown(void **state)
{
	test_daemon_stop(*state);
	return 0;
}

static void test_consistencies(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	struct text paths[] = { text_of("cons"), text_of("cons/none"), text_of("cons//x"),
				text_of("cons/a") };
	struct request request = {
		.type = REQUEST_GET,
		.get = { .n_paths = 4, .paths = paths, .consistency = CONSISTENCY_EXACT }
	};
	struct reply reply;

	(void)wire_hello(wire, 1, 0, 1, NULL);
	wire_intern(wire, 0, "cons/a");
	assert_false(wire_add(wire, 1, 0, 5));
	/* Nothing folds it before the batch, which is 1000 here, or a flush. */
	assert_int_equal(wire_total(wire, "cons", CONSISTENCY_CACHED), 0);
	reply = wire_call(wire, &request);
	assert_int_equal(reply.values.n_values, 4);
	assert_int_equal(reply.values.view.error_bound, 0);
	assert_int_equal(reply.values.values[0].total, 5);
	assert_int_equal(reply.values.values[0].own, 0);
	assert_false(reply.values.values[0].leaf);
	assert_int_equal(reply.values.values[1].code, CODE_NOT_FOUND);
	assert_true(reply.values.values[1].text.len > 0);
	assert_int_equal(reply.values.values[2].code, CODE_INVALID_ARGUMENT);
	assert_int_equal(reply.values.values[3].own, 5);
	assert_true(reply.values.values[3].leaf);
	assert_false(wire_add(wire, 2, 0, 1));
	assert_int_equal(wire_call(wire, &(struct request){ .type = REQUEST_FLUSH }).type,
			 REPLY_FLUSHED);
	assert_int_equal(wire_total(wire, "cons", CONSISTENCY_CACHED), 6);
	request.get.consistency = CONSISTENCY_FRESH;
	reply = wire_call(wire, &request);
	assert_int_equal(reply.values.values[0].total, 6);
	assert_true(reply.values.view.present);
	request.get.consistency = (enum consistency)7;
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_INVALID_ARGUMENT, "consistency 7");
	request.get = (struct get){ .n_paths = 0 };
	reply = wire_call(wire, &request);
	assert_int_equal(reply.values.n_values, 0);
	assert_true(reply.values.view.present);
	(void)wire_free(wire);
}

/* 65,536 values may be more than a frame holds: it says so, and the connection goes on. */
static void test_answer_that_does_not_fit(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	struct text *paths = calloc(65536, sizeof(*paths));
	struct request request = { .type = REQUEST_GET,
				   .get = { .n_paths = 65536, .paths = paths } };

	(void)wire_hello(wire, 2, 0, 1, NULL);
	wire_intern(wire, 0, "fit/a");
	assert_false(wire_add(wire, 1, 0, INT64_MAX));
	for (unsigned i = 0; i < 65536; i++) {
		paths[i] = text_of("fit/a");
	}
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_RESOURCE_EXHAUSTED, "ask for less");
	request.get.n_paths = 30000;
	assert_int_equal(wire_call(wire, &request).values.n_values, 30000);
	/* None of them there: their texts alone would not fit, so only the first ones have one. */
	for (unsigned i = 0; i < 65536; i++) {
		paths[i] = text_of("fit/x");
	}
	request.get.n_paths = 65536;
	assert_int_equal(wire_call(wire, &request).values.n_values, 65536);
	free(paths);
	(void)wire_free(wire);
}

/* Every entry of the longest batch refused: the answer fits a frame, and only the first ones have a text. */
static void test_errors_that_fit(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	uint32_t *handles = calloc(65536, sizeof(*handles));
	int64_t *deltas = calloc(65536, sizeof(*deltas));
	struct text *paths = calloc(65536, sizeof(*paths));
	const struct request add = wire_add_request(1, handles, deltas, 65536);
	const struct request intern = { .type = REQUEST_INTERN,
					.intern = { .n_paths = 65536, .paths = paths } };
	struct reply reply;

	for (unsigned i = 0; i < 65536; i++) {
		paths[i] = text_of("//");
	}
	(void)wire_hello(wire, 7, 0, 1, NULL);
	reply = wire_call(wire, &add);
	assert_int_equal(reply.type, REPLY_APPLIED);
	assert_int_equal(reply.applied.n_errors, 65536);
	assert_true(reply.applied.errors[0].text.len > 0);
	assert_int_equal(reply.applied.errors[65535].index, 65535);
	assert_int_equal(reply.applied.errors[65535].code, CODE_NOT_FOUND);
	assert_int_equal(reply.applied.errors[65535].text.len, 0);
	reply = wire_call(wire, &intern);
	assert_int_equal(reply.type, REPLY_INTERNED);
	assert_int_equal(reply.interned.n_errors, 65536);
	free(handles);
	free(deltas);
	free(paths);
	(void)wire_free(wire);
}

static void make_tree(struct wire *wire)
{
	static char names[LEAVES][40];
	static struct text paths[LEAVES];
	static uint32_t handles[LEAVES];
	static int64_t deltas[LEAVES];
	const struct request intern = { .type = REQUEST_INTERN,
					.intern = { .n_paths = LEAVES, .paths = paths } };
	const struct request add = wire_add_request(1, handles, deltas, LEAVES);

	for (uint32_t i = 0; i < LEAVES; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "walk/group-%03u/leaf-%05u", i / 50, i);
		paths[i] = text_of(names[i]);
		handles[i] = i;
		deltas[i] = i + 1;
	}
	(void)wire_hello(wire, 3, 0, 1, NULL);
	assert_int_equal(wire_call(wire, &intern).interned.n_errors, 0);
	assert_int_equal(wire_call(wire, &add).applied.n_errors, 0);
}

struct walked {
	size_t n, pages;
	int64_t sum; /* of own */
	bool last;
	size_t cursor_len;
	char cursor[1024];
	uint8_t seen[LEAVES];
};

static void take_page(struct walked *walked, const struct reply *reply)
{
	assert_int_equal(reply->type, REPLY_PAGE);
	assert_int_equal(reply->page.view.present, walked->pages == 0);
	walked->pages++;
	walked->n += reply->page.n_entries;
	for (size_t i = 0; i < reply->page.n_entries; i++) {
		const struct entry *entry = &reply->page.entries[i];
		const char *leaf = memmem(entry->path.at, entry->path.len, "leaf-", 5);

		walked->sum += entry->value.own;
		if (leaf != NULL) {
			char digits[6] = "";
			unsigned long number;

			memcpy(digits, leaf + 5, 5);
			number = strtoul(digits, NULL, 10);
			assert_true(number < LEAVES);
			assert_int_equal(walked->seen[number], 0);
			walked->seen[number] = 1;
			assert_int_equal(entry->value.own, number + 1);
			assert_int_equal(entry->depth, 3);
		}
	}
	walked->last = reply->page.last;
	if (reply->page.last) {
		assert_true(reply->page.cursor.len <= sizeof(walked->cursor));
		walked->cursor_len = reply->page.cursor.len;
		memcpy(walked->cursor, reply->page.cursor.at, reply->page.cursor.len);
	}
}

static const struct request walk_all = {
	.type = REQUEST_WALK,
	.walk = { .root = { .at = "walk", .len = 4 },
		  .depth = MESSAGE_DEPTH_ALL,
		  .consistency = CONSISTENCY_EXACT,
		  .cursor = { .at = "" } },
};

static void test_walk(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	struct walked *walked = calloc(1, sizeof(*walked));
	struct request request = walk_all;
	struct reply reply = { 0 };

	make_tree(wire);
	request.id = 77;
	(void)wire_send(wire, &request);
	do {
		assert_true(wire_receive(wire, &reply));
		assert_int_equal(reply.id, 77);
		take_page(walked, &reply);
	} while (!walked->last);
	assert_int_equal(walked->n, LEAVES + LEAVES / 50 + 1);
	assert_int_equal(walked->sum, (int64_t)LEAVES * (LEAVES + 1) / 2);
	assert_true(walked->pages > 3);
	assert_int_equal(walked->cursor_len, 0);
	/* Depth and root. */
	request.walk.depth = 0;
	reply = wire_call(wire, &request);
	assert_int_equal(reply.page.n_entries, 1);
	assert_true(reply.page.last);
	assert_int_equal(reply.page.entries[0].value.total, (int64_t)LEAVES * (LEAVES + 1) / 2);
	request.walk.root = text_of("");
	request.walk.depth = 1;
	reply = wire_call(wire, &request);
	assert_true(reply.page.n_entries >= 1);
	for (size_t i = 0; i < reply.page.n_entries; i++) {
		assert_int_equal(reply.page.entries[i].depth, 1);
	}
	free(walked);
	(void)wire_free(wire);
}

/* In pieces by `limit` and `cursor`, each on another connection. */
static void test_walk_by_cursor(void **state)
{
	struct test_daemon *daemon = *state;
	struct walked *walked = calloc(1, sizeof(*walked));
	struct request request = walk_all;
	unsigned pieces = 0;

	request.walk.limit = 700;
	do {
		struct wire *wire = wire_open(daemon->socket);
		size_t before = walked->n;
		struct reply reply = { 0 };

		(void)wire_hello(wire, 0, 0, 0, NULL);
		request.walk.cursor =
			(struct text){ .at = walked->cursor, .len = walked->cursor_len };
		(void)wire_send(wire, &request);
		walked->pages = 0;
		do {
			assert_true(wire_receive(wire, &reply));
			take_page(walked, &reply);
		} while (!walked->last);
		assert_true(walked->n - before <= 700);
		pieces++;
		(void)wire_free(wire);
	} while (walked->cursor_len > 0);
	assert_int_equal(walked->n, LEAVES + LEAVES / 50 + 1);
	assert_in_range(pieces, 8, 9);
	free(walked);
}

static void test_walk_errors(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	struct request request = walk_all;
	char cursor[2000];

	memset(cursor, 'c', sizeof(cursor));
	(void)wire_hello(wire, 0, 0, 0, NULL);
	request.walk.root = text_of("walk/none");
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_NOT_FOUND, "no such counter");
	request.walk.root = text_of("walk//x");
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_INVALID_ARGUMENT, "empty");
	request = walk_all;
	request.walk.cursor = (struct text){ .at = cursor, .len = 100 };
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_INVALID_ARGUMENT, "cursor");
	request.walk.cursor.len = sizeof(cursor);
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_INVALID_ARGUMENT, "cursor");
	request = walk_all;
	request.walk.consistency = (enum consistency)3;
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_INVALID_ARGUMENT, "consistency 3");
	(void)wire_free(wire);
}

/*
 * More walks than are allowed, requests between them: each walk is whole and in order, the one too many is refused, and a later
 * request need not wait for the end of the walks.
 */
static void test_walks_interleave(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	struct walked *walks = calloc(4, sizeof(*walks));
	struct request request = walk_all;
	struct request ping = { .id = 50, .type = REQUEST_PING };
	unsigned open = 3, refused = 0;
	bool pong_first = false;
	size_t len = 0;
	uint8_t *all = malloc(4096);

	assert_non_null(all);
	(void)wire_hello(wire, 0, 0, 0, NULL);
	for (uint64_t id = 100; id <= 104; id++) {
		struct request *next = id < 104 ? &request : &ping;
		size_t one_len;
		uint8_t *one;

		request.id = id;
		one = wire_encode(wire, next, &one_len);
		memcpy(all + len, one, one_len);
		len += one_len;
		free(one);
	}
	assert_true(wire_send_bytes(wire, all, len));
	free(all);
	while (open > 0) {
		struct reply reply = { 0 };

		assert_true(wire_receive(wire, &reply));
		if (reply.type == REPLY_PONG) {
			pong_first = open == 3;
			continue;
		}
		if (reply.type == REPLY_ERROR) {
			assert_int_equal(reply.error.code, CODE_RESOURCE_EXHAUSTED);
			assert_int_equal(reply.id, 103);
			refused++;
			continue;
		}
		assert_in_range(reply.id, 100, 102);
		take_page(&walks[reply.id - 100], &reply);
		open -= walks[reply.id - 100].last;
	}
	assert_int_equal(refused, 1);
	assert_true(pong_first);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(walks[i].n, LEAVES + LEAVES / 50 + 1);
	}
	/* All are over: there is room for another. */
	request.walk.depth = 0;
	assert_int_equal(wire_call(wire, &request).type, REPLY_PAGE);
	free(walks);
	(void)wire_free(wire);
}

/* A walk that nobody reads waits, holds no others up, and ends with its connection. */
static void test_walk_not_read(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *deaf = wire_open(daemon->socket), *other = wire_open(daemon->socket);
	const struct request ping = { .type = REQUEST_PING };

	(void)wire_hello(deaf, 0, 0, 0, NULL);
	(void)wire_hello(other, 0, 0, 0, NULL);
	for (unsigned i = 0; i < 3; i++) {
		(void)wire_send(deaf, &walk_all);
	}
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(wire_call(other, &ping).type, REPLY_PONG);
	}
	(void)wire_free(deaf);
	assert_int_equal(wire_call(other, &ping).type, REPLY_PONG);
	(void)wire_free(other);
}

static void test_metrics(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	struct request set = {
		.type = REQUEST_METRIC_SET,
		.metric_set = { .name = text_of("met"),
				.kind = KIND_GAUGE,
				.max_counters = 10,
				.overflow = true,
				.expire_after_ms = 5000 },
	};
	struct request get = { .type = REQUEST_METRIC_GET, .metric_get = text_of("met") };
	struct reply reply;

	(void)wire_hello(wire, 5, 0, 1, NULL);
	(void)wire_send(wire, &get);
	wire_expect_error(wire, CODE_NOT_FOUND, "no such metric");
	reply = wire_call(wire, &set);
	assert_int_equal(reply.type, REPLY_METRIC);
	reply = wire_call(wire, &get);
	assert_int_equal(reply.type, REPLY_METRIC);
	assert_true(wire_text_is(reply.metric.name, "met"));
	assert_int_equal(reply.metric.kind, KIND_GAUGE);
	assert_int_equal(reply.metric.max_counters, 10);
	assert_true(reply.metric.overflow);
	assert_int_equal(reply.metric.expire_after_ms, 5000);
	wire_intern(wire, 0, "met/a");
	assert_false(wire_add(wire, 1, 0, -3));
	set.metric_set.kind = KIND_COUNTER;
	(void)wire_send(wire, &set);
	wire_expect_error(wire, CODE_FAILED_PRECONDITION, "kind");
	set.metric_set.kind = (enum kind)9;
	(void)wire_send(wire, &set);
	wire_expect_error(wire, CODE_INVALID_ARGUMENT, "kind 9");
	set.metric_set.kind = KIND_GAUGE;
	set.metric_set.expire_after_ms = UINT64_MAX;
	(void)wire_send(wire, &set);
	wire_expect_error(wire, CODE_INVALID_ARGUMENT, "expire_after");
	set.metric_set.expire_after_ms = 0;
	set.metric_set.name = text_of("a/b");
	(void)wire_send(wire, &set);
	wire_expect_error(wire, CODE_INVALID_ARGUMENT, "one segment");
	get.metric_get = text_of("");
	(void)wire_send(wire, &get);
	wire_expect_error(wire, CODE_INVALID_ARGUMENT, "one segment");
	(void)wire_free(wire);
}

static void test_status(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	struct reply reply;
	int64_t applied;

	(void)wire_hello(wire, 6, 0, 1, NULL);
	wire_intern(wire, 0, "status/a");
	applied = wire_status(wire, "batches_applied");
	assert_false(wire_add(wire, 1, 0, 1));
	assert_true(wire_add(wire, 1, 0, 1));
	assert_int_equal(wire_status(wire, "batches_applied"), applied + 1);
	assert_true(wire_status(wire, "batches_duplicate") >= 1);
	assert_true(wire_status(wire, "memory_bytes") > 1000000);
	assert_int_equal(wire_status(wire, "workers"), 2);
	reply = wire_call(wire, &(struct request){ .type = REQUEST_STATUS });
	for (size_t i = 0; i < reply.status.n_items; i++) {
		assert_true(reply.status.items[i].help.len > 5);
		assert_int_equal(reply.status.items[i].help.at[reply.status.items[i].help.len - 1],
				 '.');
	}
	(void)wire_free(wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_consistencies),
		cmocka_unit_test(test_answer_that_does_not_fit),
		cmocka_unit_test(test_errors_that_fit),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_walk_by_cursor),
		cmocka_unit_test(test_walk_errors),
		cmocka_unit_test(test_walks_interleave),
		cmocka_unit_test(test_walk_not_read),
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_status),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
