/*
 * Sessions: numbers, repeats, gaps, lifetimes, take-overs, and which worker they belong to.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire-quota.h"
#include "tests/support/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int setup(void **state)
{
	*state = test_daemon_start(
		"workers = 3\nmax_handles = 1000\nmax_handles_total = 2500\nmax_items = 100\n"
		"max_session_lifetime = 2s\n[metric held]\nkind = gauge\n[metric few]\nmax_counters = 3\n");
	return 0;
}

static int teardown(void **state)
{
	test_daemon_stop(*state);
	return 0;
}

static void test_numbers(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	const uint32_t handle = 0;
	const int64_t delta = 7;
	struct request request;
	bool resumed;

	assert_int_equal(wire_hello(wire, 1, 1000, 5, &resumed), 4);
	assert_false(resumed);
	wire_intern(wire, 0, "numbers/a");
	assert_false(wire_add(wire, 5, 0, 7));
	assert_true(wire_add(wire, 5, 0, 7));
	assert_true(wire_add(wire, 1, 0, 7));
	request = wire_add_request(7, &handle, &delta, 1);
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_FAILED_PRECONDITION, "batch 6 was expected");
	assert_false(wire_add(wire, 6, 0, 7));
	assert_false(wire_add(wire, 7, 0, 7));
	assert_int_equal(wire_total(wire, "numbers", CONSISTENCY_EXACT), 21);
	(void)wire_free(wire);
}

static void test_resume_after_disconnect(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire;
	bool resumed;

	for (uint64_t batch = 1; batch <= 50; batch++) {
		/* Each time on whatever worker accepts; the session's own must get it. */
		wire = wire_open(daemon->socket);
		assert_int_equal(wire_hello(wire, 2, 60000, batch, &resumed), batch - 1);
		assert_int_equal(resumed, batch > 1);
		if (batch == 1) {
			wire_intern(wire, 9, "resume/a");
		}
		assert_false(wire_add(wire, batch, 9, 2));
		(void)wire_free(wire);
	}
	wire = wire_open(daemon->socket);
	/* What is below next_batch counts as applied; a known session never goes back. */
	assert_int_equal(wire_hello(wire, 2, 60000, 60, &resumed), 59);
	(void)wire_free(wire);
	wire = wire_open(daemon->socket);
	assert_int_equal(wire_hello(wire, 2, 0, 1, &resumed), 59);
	assert_true(resumed);
	assert_int_equal(wire_total(wire, "resume/a", CONSISTENCY_EXACT), 100);
	(void)wire_free(wire);
}

/* The session was forgotten, and the Welcome that says so may be lost: it is said again until something follows it. */
static void test_welcome_lost(void **state)
{
	struct test_daemon *daemon = *state;
	struct request hello = wire_hello_request(5, 60000, 4);
	char incarnation[MESSAGE_SESSION_BYTES];
	struct wire *wire = wire_open(daemon->socket);
	struct reply reply = wire_call(wire, &hello);

	assert_false(reply.welcome.resumed);
	assert_int_equal(reply.welcome.incarnation.len, sizeof(incarnation));
	memcpy(incarnation, reply.welcome.incarnation.at, sizeof(incarnation));
	(void)wire_free(wire);
	/* It was never welcomed before: it knows that it is new. */
	wire = wire_open(daemon->socket);
	assert_true(wire_call(wire, &hello).welcome.resumed);
	(void)wire_send(wire, &(struct request){ .type = REQUEST_END });
	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.type, REPLY_ENDED);
	(void)wire_free(wire);
	hello.hello.incarnation = (struct text){ .at = incarnation, .len = sizeof(incarnation) };
	for (unsigned i = 0; i < 3; i++) {
		wire = wire_open(daemon->socket);
		reply = wire_call(wire, &hello);
		assert_false(reply.welcome.resumed);
		assert_int_equal(reply.welcome.last_batch, 3);
		if (i < 2) {
			(void)wire_free(wire);
		}
	}
	wire_intern(wire, 0, "lost/a");
	(void)wire_free(wire);
	wire = wire_open(daemon->socket);
	hello.hello.lifetime_ms = 0;
	assert_true(wire_call(wire, &hello).welcome.resumed);
	assert_false(wire_add(wire, 4, 0, 1));
	(void)wire_free(wire);
}

static void await_sessions(struct wire *wire, int64_t n)
{
	int64_t until = test_now_ms() + 20000;

	while (wire_status(wire, "sessions") != n) {
		assert_true(test_now_ms() < until);
		(void)usleep(5000);
	}
}

static void test_lifetime(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *watch = wire_open(daemon->socket), *wire = wire_open(daemon->socket);
	int64_t before, began;
	bool resumed;

	(void)wire_hello(watch, 0, 0, 0, NULL);
	before = 0;
	await_sessions(watch, before);
	(void)wire_hello(wire, 3, 400, 1, NULL);
	assert_int_equal(wire_status(watch, "sessions"), before + 1);
	began = test_now_ms();
	(void)wire_free(wire);
	await_sessions(watch, before);
	assert_true(test_now_ms() - began >= 390);
	wire = wire_open(daemon->socket);
	assert_int_equal(wire_hello(wire, 3, 0, 8, &resumed), 7);
	assert_false(resumed);
	(void)wire_free(wire);
	await_sessions(watch, before);
	/* More than allowed is taken as what is allowed: 2 s here. */
	wire = wire_open(daemon->socket);
	(void)wire_hello(wire, 3, 4000000000u, 1, NULL);
	began = test_now_ms();
	(void)wire_free(wire);
	await_sessions(watch, before);
	assert_in_range(test_now_ms() - began, 1900, 15000);
	(void)wire_free(watch);
}

static void test_take_over(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *older = wire_open(daemon->socket), *newer;
	bool resumed;

	(void)wire_hello(older, 4, 1000, 1, NULL);
	wire_intern(older, 0, "taken/a");
	assert_false(wire_add(older, 1, 0, 1));
	for (uint64_t i = 2; i < 10; i++) {
		newer = wire_open(daemon->socket);
		assert_int_equal(wire_hello(newer, 4, 1000, i, &resumed), i - 1);
		assert_true(resumed);
		wire_expect_goodbye(older, CODE_ABORTED);
		assert_false(wire_add(newer, i, 0, 1));
		(void)wire_free(older);
		older = newer;
	}
	assert_int_equal(wire_total(older, "taken", CONSISTENCY_EXACT), 9);
	assert_true(wire_status(older, "sessions_taken_over") >= 8);
	(void)wire_free(older);
}

static void test_item_errors(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	const struct text paths[] = { text_of("items/a"), text_of("items//b"), text_of("held/c"),
				      text_of("few/1"),	  text_of("few/2"),    text_of("few/3"),
				      text_of("\xff") };
	const struct request intern = {
		.type = REQUEST_INTERN,
		.intern = { .first_handle = 10, .n_paths = 7, .paths = paths }
	};
	const uint32_t handles[] = { 10, 11, 12, 12, 10, 99, 5000000, 13 };
	const int64_t deltas[] = { 100, 1, 50, -20, -5, 1, 1, INT64_MAX };
	struct request add = wire_add_request(1, handles, deltas, 8);
	struct reply reply;

	(void)wire_hello(wire, 5, 0, 1, NULL);
	reply = wire_call(wire, &intern);
	assert_int_equal(reply.type, REPLY_INTERNED);
	assert_int_equal(reply.interned.n_errors, 3);
	assert_int_equal(reply.interned.errors[0].index, 1);
	assert_int_equal(reply.interned.errors[0].code, CODE_INVALID_ARGUMENT);
	assert_true(wire_text_has(reply.interned.errors[0].text, "empty"));
	assert_int_equal(reply.interned.errors[1].index, 5);
	assert_int_equal(reply.interned.errors[1].code, CODE_RESOURCE_EXHAUSTED);
	assert_int_equal(reply.interned.errors[2].index, 6);
	assert_int_equal(reply.interned.errors[2].code, CODE_INVALID_ARGUMENT);

	for (unsigned i = 0; i < 2; i++) {
		reply = wire_call(wire, &add);
		assert_int_equal(reply.type, REPLY_APPLIED);
		assert_int_equal(reply.applied.duplicate, i == 1);
	}
	assert_int_equal(wire_total(wire, "items", CONSISTENCY_EXACT), 100);
	assert_int_equal(wire_total(wire, "held", CONSISTENCY_EXACT), 30);
	assert_int_equal(wire_total(wire, "few", CONSISTENCY_EXACT), INT64_MAX);

	add.add.batch = 2;
	reply = wire_call(wire, &add);
	assert_int_equal(reply.applied.n_errors, 5);
	static const uint32_t indices[] = { 1, 4, 5, 6, 7 };
	static const enum code codes[] = { CODE_NOT_FOUND, CODE_INVALID_ARGUMENT, CODE_NOT_FOUND,
					   CODE_NOT_FOUND, CODE_OUT_OF_RANGE };

	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(reply.applied.errors[i].index, indices[i]);
		assert_int_equal(reply.applied.errors[i].code, codes[i]);
		assert_true(reply.applied.errors[i].text.len > 0);
	}
	assert_int_equal(wire_total(wire, "items", CONSISTENCY_EXACT), 200);
	assert_int_equal(wire_total(wire, "held", CONSISTENCY_EXACT), 60);
	/* A path refused later takes its number with it. */
	{
		const struct text bad = text_of("no//path");
		const struct request again = {
			.type = REQUEST_INTERN,
			.intern = { .first_handle = 10, .n_paths = 1, .paths = &bad }
		};

		assert_int_equal(wire_call(wire, &again).interned.n_errors, 1);
		add = wire_add_request(3, handles, deltas, 1);
		reply = wire_call(wire, &add);
		assert_int_equal(reply.applied.n_errors, 1);
		assert_int_equal(reply.applied.errors[0].code, CODE_NOT_FOUND);
	}
	(void)wire_free(wire);
}

static void test_end(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket), *watch = wire_open(daemon->socket);
	const struct request end = { .type = REQUEST_END };
	struct charge_item item = { .path = text_of("held/end"), .amount = 1000 };
	struct request charge = wire_charge_request(1, &item, 1), request;
	const uint32_t handle = 0;
	const int64_t delta = 1;
	int64_t held;
	bool resumed;

	(void)wire_hello(watch, 0, 0, 0, NULL);
	await_sessions(watch, 0);
	(void)wire_hello(wire, 9, 60000, 1, NULL);
	wire_intern(wire, 0, "end/a");
	assert_false(wire_add(wire, 1, 0, 7));
	held = wire_total(watch, "held", CONSISTENCY_EXACT);
	assert_true(wire_call(wire, &charge).charged.granted);
	assert_int_equal(wire_lease(wire, 2, 1, "held/end", 50, 60000), 50);
	assert_int_equal(wire_total(watch, "held", CONSISTENCY_EXACT), held + 1000);
	assert_int_equal(wire_call(wire, &end).type, REPLY_ENDED);
	assert_int_equal(wire_status(watch, "sessions"), 0);
	assert_int_equal(wire_status(watch, "held_paths"), 0);
	assert_int_equal(wire_status(watch, "leases"), 0);
	assert_int_equal(wire_status(watch, "handles"), 0);
	assert_int_equal(wire_total(watch, "held", CONSISTENCY_EXACT), held);
	/* What was counted stays so, and the connection goes on with no session. */
	assert_int_equal(wire_total(wire, "end", CONSISTENCY_EXACT), 7);
	request = wire_add_request(2, &handle, &delta, 1);
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_FAILED_PRECONDITION, "no session");
	(void)wire_send(wire, &end);
	wire_expect_error(wire, CODE_FAILED_PRECONDITION, "no session");
	(void)wire_send(watch, &end);
	wire_expect_error(watch, CODE_FAILED_PRECONDITION, "no session");
	(void)wire_free(wire);
	wire = wire_open(daemon->socket);
	assert_int_equal(wire_hello(wire, 9, 0, 1, &resumed), 0);
	assert_false(resumed);
	/* Whoever waits for room is answered first. */
	wire_quota_max(wire, "held/end", 1000);
	assert_true(wire_call(wire, &charge).charged.granted);
	(void)wire_send_charge(wire, 2, "held/end", 1, 60000);
	(void)wire_send(wire, &end);
	wire_expect_error(wire, CODE_FAILED_PRECONDITION, "wait for room");
	(void)wire_free(wire);
	await_sessions(watch, 0);
	wire_quota_max(watch, "held/end", -1);
	(void)wire_free(watch);
}

/* The request as a whole is refused, and its number is not used up. */
static void test_whole_refusals(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	uint32_t handles[101] = { 0 };
	int64_t deltas[101];
	struct text paths[101];
	struct request request;

	for (unsigned i = 0; i < 101; i++) {
		deltas[i] = 1;
		paths[i] = text_of("whole/a");
	}
	(void)wire_hello(wire, 6, 0, 1, NULL);
	wire_intern(wire, 0, "whole/a");
	request = wire_add_request(1, handles, deltas, 101);
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_INVALID_ARGUMENT, "at most 100");
	request = wire_add_request(1, handles, deltas, 3);
	request.add.n_deltas = 2;
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_INVALID_ARGUMENT, "3 handles and 2 deltas");
	request = wire_add_request(1, handles, deltas, 100);
	assert_int_equal(wire_call(wire, &request).type, REPLY_APPLIED);
	request = wire_add_request(2, handles, deltas, 0);
	assert_int_equal(wire_call(wire, &request).type, REPLY_APPLIED);
	assert_int_equal(wire_total(wire, "whole", CONSISTENCY_EXACT), 100);

	request = (struct request){ .type = REQUEST_INTERN,
				    .intern = { .n_paths = 101, .paths = paths } };
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_INVALID_ARGUMENT, "at most 100");
	request.intern = (struct intern){ .first_handle = 999, .n_paths = 1, .paths = paths };
	assert_int_equal(wire_call(wire, &request).type, REPLY_INTERNED);
	request.intern.n_paths = 2;
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_OUT_OF_RANGE, "below 1000");
	request.intern.first_handle = UINT32_MAX;
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_OUT_OF_RANGE, "below 1000");
	request =
		(struct request){ .type = REQUEST_GET, .get = { .n_paths = 101, .paths = paths } };
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_INVALID_ARGUMENT, "at most 100");
	(void)wire_free(wire);
}

/* 2,500 handles for all: two sessions with 1,000 each, and then there is room for 500 more. */
static void test_handles_of_all_sessions(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wires[3];
	struct text path = text_of("handles/a");
	struct request request = { .type = REQUEST_INTERN,
				   .intern = { .first_handle = 999, .n_paths = 1, .paths = &path } };
	int64_t until = test_now_ms() + 20000;

	for (unsigned i = 0; i < 3; i++) {
		wires[i] = wire_open(daemon->socket);
		(void)wire_hello(wires[i], (uint8_t)(20 + i), 0, 1, NULL);
	}
	/* Sessions of tests before may still hold some. */
	while (wire_status(wires[0], "handles") > 0 && test_now_ms() < until) {
		(void)usleep(10000);
	}
	assert_int_equal(wire_call(wires[0], &request).type, REPLY_INTERNED);
	assert_int_equal(wire_call(wires[1], &request).type, REPLY_INTERNED);
	(void)wire_send(wires[2], &request);
	wire_expect_error(wires[2], CODE_RESOURCE_EXHAUSTED, "max_handles_total");
	request.intern.first_handle = 499;
	assert_int_equal(wire_call(wires[2], &request).type, REPLY_INTERNED);
	/* One session ends; its room is another's. */
	wires[0] = wire_free(wires[0]);
	request.intern.first_handle = 999;
	for (;;) {
		struct reply reply = wire_call(wires[2], &request);

		if (reply.type == REPLY_INTERNED) {
			break;
		}
		assert_true(test_now_ms() < until);
		(void)usleep(1000);
	}
	(void)wire_free(wires[1]);
	(void)wire_free(wires[2]);
}

static void test_no_session(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	struct text path = text_of("none");
	const uint32_t handle = 0;
	const int64_t delta = 1;
	const struct request intern = { .type = REQUEST_INTERN,
					.intern = { .n_paths = 1, .paths = &path } };
	const struct request add = wire_add_request(1, &handle, &delta, 1);

	(void)wire_hello(wire, 0, 0, 0, NULL);
	(void)wire_send(wire, &intern);
	wire_expect_error(wire, CODE_FAILED_PRECONDITION, "no session");
	(void)wire_send(wire, &add);
	wire_expect_error(wire, CODE_FAILED_PRECONDITION, "no session");
	(void)wire_free(wire);
}

static void test_session_cap(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 2\nmax_sessions = 2\n");
	struct wire *wires[2], *extra;
	struct request hello;
	int64_t until = test_now_ms() + 20000;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		wires[i] = wire_open(daemon->socket);
		(void)wire_hello(wires[i], (uint8_t)(i + 1), 0, 1, NULL);
	}
	extra = wire_open(daemon->socket);
	hello = wire_hello_request(33, 0, 1);
	(void)wire_send(extra, &hello);
	wire_expect_error(extra, CODE_RESOURCE_EXHAUSTED, "max_sessions");
	wire_expect_goodbye(extra, CODE_RESOURCE_EXHAUSTED);
	(void)wire_free(extra);
	/* Without a session there is room, and a session that is known is no new one. */
	extra = wire_open(daemon->socket);
	(void)wire_hello(extra, 0, 0, 0, NULL);
	(void)wire_free(extra);
	extra = wire_open(daemon->socket);
	(void)wire_hello(extra, 1, 0, 1, NULL);
	(void)wire_free(extra);
	while (wire_status(wires[1], "sessions") == 2) {
		assert_true(test_now_ms() < until);
		(void)usleep(1000);
	}
	extra = wire_open(daemon->socket);
	(void)wire_hello(extra, 33, 0, 1, NULL);
	(void)wire_free(extra);
	(void)wire_free(wires[0]);
	(void)wire_free(wires[1]);
	test_daemon_stop(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_resume_after_disconnect),
		cmocka_unit_test(test_welcome_lost),
		cmocka_unit_test(test_lifetime),
		cmocka_unit_test(test_take_over),
		cmocka_unit_test(test_item_errors),
		cmocka_unit_test(test_whole_refusals),
		cmocka_unit_test(test_no_session),
		cmocka_unit_test(test_handles_of_all_sessions),
		cmocka_unit_test(test_session_cap),
		cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
