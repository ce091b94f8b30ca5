/*
 * Charges and what they hold: granted and refused at the edge, all or nothing, numbers and repeats, sessions that end.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire-quota.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 20000

static int setup(void **state)
{
	*state = test_daemon_start(
		"workers = 3\nmax_held_paths = 20\nmax_detached_paths = 3\n"
		"[metric held]\nkind = gauge\n[metric few]\nkind = gauge\nmax_counters = 3\noverflow = yes\n"
		"[metric full]\nmax_counters = 2\n"
		"[quota held/limited]\nmax = 100\n[quota count/limited]\nmax = 100\nhigh = 50\n"
		"[quota count/limited]\nmax = 1000\nper = 31d\n[quota count/rated]\nrate = 10/10s\nburst = 20\n"
		"[quota count/shadowed]\nmax = 5\nshadow = yes\n[quota few/**]\nmax = 10\n[quota held/tenth/*]\nmax = 10\n");
	return 0;
}

static int teardown(void **state)
{
	test_daemon_stop(*state);
	return 0;
}

/* Each test has sessions of its own. */
static struct wire *open_session(void **state, uint32_t session, uint32_t lifetime_ms)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);

	(void)wire_greet(wire, session, lifetime_ms, 1);
	return wire;
}

static void await_total(struct wire *wire, const char *path, int64_t total)
{
	int64_t until = test_now_ms() + PATIENCE_MS;

	while (wire_total(wire, path, CONSISTENCY_EXACT) != total) {
		if (test_now_ms() > until) {
			assert_int_equal(wire_total(wire, path, CONSISTENCY_EXACT), total);
		}
		(void)usleep(2000);
	}
}

static void test_edge(void **state)
{
	struct wire *wire = open_session(state, 1, 0);
	struct reply reply;

	assert_true(wire_charge(wire, 1, "count/limited/a", 60, &reply));
	/* Above its high, and told so. */
	assert_int_equal(reply.charged.n_bindings, 1);
	assert_int_equal(reply.charged.bindings[0].kind, BINDING_HIGH);
	assert_int_equal(reply.charged.bindings[0].limit, 50);
	assert_int_equal(reply.charged.bindings[0].usage, 60);
	assert_true(wire_text_is(reply.charged.bindings[0].path, "count/limited"));
	assert_false(wire_charge(wire, 2, "count/limited/b", 41, &reply));
	assert_int_equal(reply.charged.n_bindings, 1);
	assert_int_equal(reply.charged.bindings[0].kind, BINDING_MAX);
	assert_int_equal(reply.charged.bindings[0].limit, 100);
	assert_int_equal(reply.charged.bindings[0].usage, 60);
	assert_int_equal(reply.charged.bindings[0].left, 40);
	assert_int_equal(reply.charged.bindings[0].retry_after_ms, MESSAGE_RETRY_NEVER);
	assert_int_equal(reply.charged.bindings[0].window.kind, RULE_WINDOW_NONE);
	/* Exactly reaching it is granted; then nothing more fits. */
	assert_true(wire_charge(wire, 3, "count/limited/b", 40, NULL));
	assert_false(wire_charge(wire, 4, "count/limited/b", 1, NULL));
	assert_int_equal(wire_total(wire, "count/limited", CONSISTENCY_EXACT), 100);
	assert_int_equal(wire_total(wire, "count/limited/b", CONSISTENCY_EXACT), 40);
	/* In a counter it stays when the session has ended. */
	(void)wire_free(wire);
	wire = open_session(state, 2, 0);
	assert_int_equal(wire_total(wire, "count/limited", CONSISTENCY_EXACT), 100);
	(void)wire_free(wire);
}

static void test_rate_and_shadow(void **state)
{
	struct wire *wire = open_session(state, 3, 0);
	struct reply reply;

	assert_true(wire_charge(wire, 1, "count/rated", 20, NULL));
	assert_false(wire_charge(wire, 2, "count/rated", 5, &reply));
	assert_int_equal(reply.charged.bindings[0].kind, BINDING_RATE);
	assert_int_equal(reply.charged.bindings[0].limit, 20);
	assert_in_range(reply.charged.bindings[0].retry_after_ms, 1, 5000);
	assert_false(wire_charge(wire, 3, "count/rated", 21, &reply));
	assert_int_equal(reply.charged.bindings[0].retry_after_ms, MESSAGE_RETRY_NEVER);
	assert_true(wire_charge(wire, 4, "count/shadowed", 6, &reply));
	assert_int_equal(reply.charged.n_bindings, 1);
	assert_int_equal(reply.charged.bindings[0].kind, BINDING_SHADOW);
	(void)wire_free(wire);
}

/* Adds are usage, without a flush by anybody. */
static void test_adds_are_usage(void **state)
{
	struct wire *wire = open_session(state, 4, 0);

	wire_quota_max(wire, "added", 50);
	wire_intern(wire, 0, "added/a/b");
	assert_false(wire_add(wire, 1, 0, 30));
	assert_false(wire_charge(wire, 1, "added/c", 21, NULL));
	assert_true(wire_charge(wire, 2, "added/c", 20, NULL));
	assert_false(wire_add(wire, 2, 0, 30));
	assert_false(wire_charge(wire, 3, "added/d", 1, NULL));
	assert_int_equal(wire_usage(wire, "added"), 80);
	(void)wire_free(wire);
}

static void test_all_or_nothing(void **state)
{
	struct wire *wire = open_session(state, 5, 0);
	struct charge_item items[] = {
		{ .path = text_of("held/tenth/a"), .amount = 10 },
		{ .path = text_of("held/tenth/b"), .amount = 10 },
		{ .path = text_of("held/tenth/c"), .amount = 11 },
		{ .path = text_of("plain/d"), .amount = 5 },
	};
	struct request request = wire_charge_request(1, items, 4);
	struct reply reply = wire_call(wire, &request);

	(void)state;
	/* The metric `plain` is nobody's: an error, with the item. */
	assert_int_equal(reply.type, REPLY_ERROR);
	assert_int_equal(reply.error.code, CODE_NOT_FOUND);
	assert_true(wire_text_has(reply.error.text, "plain"));
	request = wire_charge_request(2, items, 3);
	reply = wire_call(wire, &request);
	assert_int_equal(reply.type, REPLY_CHARGED);
	assert_false(reply.charged.granted);
	assert_int_equal(reply.charged.n_bindings, 1);
	assert_true(wire_text_is(reply.charged.bindings[0].path, "held/tenth/c"));
	assert_int_equal(wire_total(wire, "held", CONSISTENCY_EXACT), 0);
	items[2].amount = 10;
	request = wire_charge_request(3, items, 3);
	assert_true(wire_call(wire, &request).charged.granted);
	assert_int_equal(wire_total(wire, "held/tenth", CONSISTENCY_EXACT), 30);
	assert_false(wire_uncharge(wire, 4, "held/tenth/a", 10));
	assert_false(wire_uncharge(wire, 5, "held/tenth/b", 3));
	assert_int_equal(wire_total(wire, "held/tenth", CONSISTENCY_EXACT), 17);
	assert_int_equal(wire_usage(wire, "held/tenth/b"), 7);
	(void)wire_free(wire);
	wire = open_session(state, 5, 0);
	await_total(wire, "held/tenth", 0);
	(void)wire_free(wire);
}

static void test_numbers(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = open_session(state, 6, 60000);
	const struct charge_item item = { .path = text_of("held/numbers"), .amount = 1 };
	struct request request = wire_charge_request(0, &item, 1);
	struct reply reply;

	wire_fails(wire, &request, CODE_INVALID_ARGUMENT, "begin at 1", 0);
	request.charge.number = 2;
	wire_fails(wire, &request, CODE_FAILED_PRECONDITION, "operation 1 was expected", 0);
	assert_true(wire_charge(wire, 1, "held/numbers", 1, &reply));
	assert_false(reply.charged.duplicate);
	assert_true(wire_charge(wire, 1, "held/numbers", 1, &reply));
	assert_true(reply.charged.duplicate);
	/* It goes by the number alone. */
	assert_true(wire_charge(wire, 1, "held/other", 7, &reply));
	assert_true(reply.charged.duplicate);
	/* An error uses its number up, and is told again. */
	request = wire_charge_request(2, &item, 0);
	for (unsigned i = 0; i < 3; i++) {
		reply = wire_call(wire, &request);
		assert_int_equal(reply.type, REPLY_ERROR);
		assert_int_equal(reply.error.operation, 2);
		assert_int_equal(reply.error.duplicate, i > 0);
		assert_true(wire_text_has(reply.error.text, "0 items"));
	}
	assert_true(wire_charge(wire, 3, "held/numbers", 1, NULL));
	/* So does a refusal, with its bindings. */
	for (unsigned i = 0; i < 2; i++) {
		assert_false(wire_charge(wire, 4, "held/limited", 101, &reply));
		assert_int_equal(reply.charged.duplicate, i > 0);
		assert_int_equal(reply.charged.n_bindings, 1);
		assert_true(wire_text_is(reply.charged.bindings[0].path, "held/limited"));
	}
	/* After a reconnect too. */
	(void)wire_free(wire);
	wire = wire_open(daemon->socket);
	reply = wire_greet(wire, 6, 60000, 3);
	assert_true(reply.welcome.resumed);
	assert_int_equal(reply.welcome.last_operation, 4);
	assert_true(wire_charge(wire, 3, "held/numbers", 1, &reply));
	assert_true(reply.charged.duplicate);
	assert_false(wire_uncharge(wire, 5, "held/numbers", 1));
	assert_true(wire_uncharge(wire, 5, "held/numbers", 1));
	assert_int_equal(wire_total(wire, "held/numbers", CONSISTENCY_EXACT), 1);
	/* The newest 1,024 answers are kept. */
	for (uint64_t number = 6; number <= 4 + 1024; number++) {
		(void)wire_send_charge(wire, number, "count/numbers", 1, 0);
	}
	for (uint64_t number = 6; number <= 4 + 1024; number++) {
		assert_true(wire_receive(wire, &reply));
		assert_int_equal(reply.type, REPLY_CHARGED);
		assert_int_equal(reply.charged.number, number);
	}
	request = wire_charge_request(4, &item, 1);
	wire_fails(wire, &request, CODE_FAILED_PRECONDITION, "not kept", 0);
	request.charge.number = 5;
	assert_int_equal(wire_call(wire, &request).type, REPLY_UNCHARGED);
	/* A known session never goes back, and may be told that more is used up. */
	(void)wire_free(wire);
	wire = wire_open(daemon->socket);
	assert_int_equal(wire_greet(wire, 6, 0, 5000).welcome.last_operation, 4999);
	request.charge.number = 1028;
	wire_fails(wire, &request, CODE_FAILED_PRECONDITION, "not kept", 0);
	assert_true(wire_charge(wire, 5000, "count/numbers", 1, NULL));
	(void)wire_free(wire);
}

static void test_no_session(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);
	const struct charge_item item = { .path = text_of("held/limited"), .amount = 100 };
	struct request request = wire_charge_request(1, &item, 1);
	struct reply reply;

	(void)wire_hello(wire, 0, 0, 0, NULL);
	wire_fails(wire, &request, CODE_FAILED_PRECONDITION, "no session", 0);
	/* A dry run needs none, and changes nothing. */
	request.charge.dry_run = true;
	for (unsigned i = 0; i < 2; i++) {
		reply = wire_call(wire, &request);
		assert_int_equal(reply.type, REPLY_CHARGED);
		assert_true(reply.charged.granted);
	}
	assert_int_equal(wire_usage(wire, "held/limited"), 0);
	request.charge.n_items = 0;
	wire_fails(wire, &request, CODE_INVALID_ARGUMENT, "0 items", 0);
	(void)wire_free(wire);
}

/* What the issue lists: each a clear error, and nothing changed. */
static void test_bad_input(void **state)
{
	static const struct {
		const char *path;
		int64_t amount;
		enum code code;
		const char *text;
	} bad[] = {
		{ "held/bad", 0, CODE_INVALID_ARGUMENT, "amount 0 is out of range" },
		{ "held/bad", -1, CODE_INVALID_ARGUMENT, "amount -1 is out of range" },
		{ "held/bad", INT64_MIN, CODE_INVALID_ARGUMENT, "out of range" },
		{ "held/bad", (INT64_C(1) << 62) + 1, CODE_INVALID_ARGUMENT, "out of range" },
		{ "reqests/bad", 1, CODE_NOT_FOUND, "there is no metric reqests" },
		{ "held//bad", 1, CODE_INVALID_ARGUMENT, "a segment is empty" },
		{ "", 1, CODE_INVALID_ARGUMENT, "is no path" },
		{ "\xff\xfe", 1, CODE_INVALID_ARGUMENT, "is no path" },
		{ "full/a/b", 1, CODE_RESOURCE_EXHAUSTED, "max_counters" },
	};
	struct wire *wire = open_session(state, 7, 0);
	struct charge_item *items = calloc(10001, sizeof(*items));
	uint64_t number = 1;
	struct request request;
	struct reply reply;

	assert_non_null(items);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		/* Behind a good item, which must not be charged. */
		items[0] = (struct charge_item){ .path = text_of("held/good"), .amount = 1 };
		items[1] = (struct charge_item){ .path = text_of(bad[i].path),
						 .amount = bad[i].amount };
		request = wire_charge_request(number, items, 2);
		wire_fails(wire, &request, bad[i].code, bad[i].text, number);
		number++;
		request.charge.dry_run = true;
		if (bad[i].code != CODE_RESOURCE_EXHAUSTED) {
			wire_fails(wire, &request, bad[i].code, bad[i].text, 0);
		}
	}
	items[0].amount = items[1].amount = INT64_C(1) << 62;
	items[1].path = text_of("held/other");
	request = wire_charge_request(number, items, 2);
	wire_fails(wire, &request, CODE_INVALID_ARGUMENT, "too large together", number);
	number++;
	for (unsigned i = 0; i < 10001; i++) {
		items[i] = (struct charge_item){ .path = text_of("count/many"), .amount = 1 };
	}
	request = wire_charge_request(number, items, 10001);
	wire_fails(wire, &request, CODE_INVALID_ARGUMENT, "10001 items", number);
	number++;
	assert_int_equal(wire_total(wire, "held", CONSISTENCY_EXACT), 0);
	request = wire_charge_request(number, items, 10000);
	reply = wire_call(wire, &request);
	assert_int_equal(reply.type, REPLY_CHARGED);
	assert_true(reply.charged.granted);
	number++;
	assert_int_equal(wire_total(wire, "count/many", CONSISTENCY_EXACT), 10000);
	free(items);
	(void)wire_free(wire);
}

static void test_bad_uncharges(void **state)
{
	static const struct {
		const char *path;
		int64_t amount;
		enum code code;
		const char *text;
	} bad[] = {
		{ "held/limited", 0, CODE_INVALID_ARGUMENT, "amount 0 is out of range" },
		{ "held/limited", -5, CODE_INVALID_ARGUMENT, "out of range" },
		{ "held/limited", INT64_MAX, CODE_INVALID_ARGUMENT, "out of range" },
		{ "held/limited", 11, CODE_FAILED_PRECONDITION,
		  "the session holds on this path: 10" },
		{ "held", 1, CODE_FAILED_PRECONDITION, "the session holds on this path: 0" },
		{ "held/nothing", 1, CODE_NOT_FOUND, "no counter held/nothing" },
		{ "nowhere", 1, CODE_NOT_FOUND, "no counter nowhere" },
		{ "count/uncharged", 1, CODE_FAILED_PRECONDITION, "only grows" },
		{ "held//x", 1, CODE_INVALID_ARGUMENT, "a segment is empty" },
	};
	struct wire *wire = open_session(state, 8, 0), *other = open_session(state, 9, 0);
	struct request request = { .type = REQUEST_UNCHARGE };
	uint64_t number = 3;

	assert_true(wire_charge(wire, 1, "held/limited", 10, NULL));
	assert_true(wire_charge(wire, 2, "count/uncharged", 10, NULL));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++, number++) {
		request.uncharge = (struct uncharge){ .number = number,
						      .path = text_of(bad[i].path),
						      .amount = bad[i].amount };
		wire_fails(wire, &request, bad[i].code, bad[i].text, number);
	}
	/* What another session holds is not mine to give back. */
	request.uncharge =
		(struct uncharge){ .number = 1, .path = text_of("held/limited"), .amount = 1 };
	wire_fails(other, &request, CODE_FAILED_PRECONDITION, "holds on this path: 0", 1);
	assert_int_equal(wire_usage(wire, "held/limited"), 10);
	assert_int_equal(wire_total(wire, "held/limited", CONSISTENCY_EXACT), 10);
	(void)wire_free(wire);
	await_total(other, "held/limited", 0);
	(void)wire_free(other);
}

static void test_session_end_gives_back(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *watch = open_session(state, 10, 0), *wire;
	struct reply reply;
	int64_t began;

	/* With its connection. */
	wire = open_session(state, 11, 0);
	assert_true(wire_charge(wire, 1, "held/limited", 100, NULL));
	assert_false(wire_charge(watch, 1, "held/limited", 1, NULL));
	(void)wire_free(wire);
	await_total(watch, "held/limited", 0);
	/* After its lifetime. */
	wire = open_session(state, 11, 500);
	assert_true(wire_charge(wire, 1, "held/limited", 100, NULL));
	began = test_now_ms();
	(void)wire_free(wire);
	await_total(watch, "held/limited", 0);
	assert_true(test_now_ms() - began >= 490);
	/* It comes back in time, and still holds. */
	wire = open_session(state, 12, 5000);
	assert_true(wire_charge(wire, 1, "held/limited", 60, NULL));
	(void)wire_free(wire);
	wire = wire_open(daemon->socket);
	reply = wire_greet(wire, 12, 5000, 2);
	assert_true(reply.welcome.resumed);
	assert_int_equal(reply.welcome.last_operation, 1);
	assert_false(wire_uncharge(wire, 2, "held/limited", 20));
	assert_int_equal(wire_total(watch, "held/limited", CONSISTENCY_EXACT), 40);
	/* Taken over, too. */
	{
		struct wire *newer = wire_open(daemon->socket);

		assert_true(wire_greet(newer, 12, 0, 3).welcome.resumed);
		wire_expect_goodbye(wire, CODE_ABORTED);
		assert_int_equal(wire_total(watch, "held/limited", CONSISTENCY_EXACT), 40);
		assert_false(wire_uncharge(newer, 3, "held/limited", 40));
		assert_true(wire_charge(newer, 4, "held/limited", 3, NULL));
		(void)wire_free(wire);
		(void)wire_free(newer);
	}
	await_total(watch, "held/limited", 0);
	(void)wire_free(watch);
}

static void test_killed_while_holding(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *watch = open_session(state, 13, 0);

	for (unsigned i = 0; i < 5; i++) {
		int pipes[2];
		char byte;
		pid_t pid;

		assert_int_equal(pipe(pipes), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			struct wire *wire = wire_open(daemon->socket);

			(void)wire_greet(wire, 14, 0, 1);
			byte = (char)wire_charge(wire, 1, "held/limited", 70, NULL);
			(void)!write(pipes[1], &byte, 1);
			(void)pause();
			_exit(0);
		}
		assert_int_equal(read(pipes[0], &byte, 1), 1);
		assert_int_equal(byte, 1);
		assert_int_equal(wire_total(watch, "held/limited", CONSISTENCY_EXACT), 70);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		await_total(watch, "held/limited", 0);
		(void)close(pipes[0]);
		(void)close(pipes[1]);
	}
	(void)wire_free(watch);
}

static void test_detached(void **state)
{
	struct wire *wire = open_session(state, 15, 0), *other = open_session(state, 16, 0);
	struct charge_item item = { .path = text_of("held/detached/a"), .amount = 7 };
	struct request request = wire_charge_request(1, &item, 1);
	struct request uncharge = {
		.type = REQUEST_UNCHARGE,
		.uncharge = { .number = 2, .path = text_of("held/detached/a"), .amount = 5 }
	};

	request.charge.detached = true;
	assert_true(wire_call(wire, &request).charged.granted);
	/* The session does not hold it. */
	wire_fails(wire, &uncharge, CODE_FAILED_PRECONDITION, "the session holds on this path: 0",
		   2);
	(void)wire_free(wire);
	(void)usleep(50000);
	assert_int_equal(wire_total(other, "held/detached", CONSISTENCY_EXACT), 7);
	uncharge.uncharge.detached = true;
	uncharge.uncharge.number = 1;
	assert_int_equal(wire_call(other, &uncharge).type, REPLY_UNCHARGED);
	uncharge.uncharge.number = 2;
	wire_fails(other, &uncharge, CODE_FAILED_PRECONDITION,
		   "detached charges hold on this path: 2", 2);
	/* So many paths, and no more. */
	for (uint64_t i = 3; i <= 5; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "held/detached/%u", (unsigned)i);
		item.path = text_of(path);
		request.charge.number = i;
		if (i < 5) {
			assert_true(wire_call(other, &request).charged.granted);
		} else {
			wire_fails(other, &request, CODE_RESOURCE_EXHAUSTED, "max_detached_paths",
				   5);
		}
	}
	assert_int_equal(wire_total(other, "held/detached", CONSISTENCY_EXACT), 16);
	assert_int_equal(wire_status(other, "detached_paths"), 3);
	(void)wire_free(other);
}

static void test_held_paths_limit(void **state)
{
	struct wire *wire = open_session(state, 17, 0), *watch = open_session(state, 18, 0);
	struct charge_item items[21];
	char names[21][32];
	struct request request;
	int64_t before = wire_status(watch, "held_paths");

	for (unsigned i = 0; i < 21; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "held/paths/%u", i);
		items[i] = (struct charge_item){ .path = text_of(names[i]), .amount = 2 };
	}
	request = wire_charge_request(1, items, 21);
	wire_fails(wire, &request, CODE_RESOURCE_EXHAUSTED, "max_held_paths", 1);
	assert_int_equal(wire_total(wire, "held", CONSISTENCY_EXACT), 16); /* detached */
	request = wire_charge_request(2, items, 20);
	assert_true(wire_call(wire, &request).charged.granted);
	assert_int_equal(wire_status(watch, "held_paths"), before + 20);
	/* More on the same paths is no more paths. */
	request.charge.number = 3;
	assert_true(wire_call(wire, &request).charged.granted);
	request = wire_charge_request(4, &items[20], 1);
	wire_fails(wire, &request, CODE_RESOURCE_EXHAUSTED, "max_held_paths", 4);
	/* Counters are not held. */
	assert_true(wire_charge(wire, 5, "count/paths", 1, NULL));
	assert_false(wire_uncharge(wire, 6, "held/paths/3", 4));
	assert_true(wire_charge(wire, 7, "held/paths/20", 1, NULL));
	(void)wire_free(wire);
	await_total(watch, "held/paths", 0);
	assert_int_equal(wire_status(watch, "held_paths"), before);
	(void)wire_free(watch);
}

/* Where there is no room for its counter a charge counts under __other__, and is given back from there. */
static void test_overflow(void **state)
{
	struct wire *wire = open_session(state, 19, 0), *watch = open_session(state, 20, 0);

	assert_true(wire_charge(wire, 1, "few/a", 1, NULL));
	assert_true(wire_charge(wire, 2, "few/b", 1, NULL));
	assert_true(wire_charge(wire, 3, "few/c", 4, NULL));
	assert_true(wire_charge(wire, 4, "few/d/e", 3, NULL));
	assert_int_equal(wire_total(wire, "few/__other__", CONSISTENCY_EXACT), 7);
	assert_false(wire_charge(wire, 5, "few/f", 4, NULL));
	assert_false(wire_uncharge(wire, 6, "few/c", 2));
	assert_int_equal(wire_total(wire, "few/__other__", CONSISTENCY_EXACT), 5);
	assert_int_equal(wire_lease(wire, 7, 1, "few/g", 2, 1000), 2);
	assert_int_equal(wire_lease_renew(wire, 8, 1, 1, 0), 0);
	assert_int_equal(wire_total(wire, "few/__other__", CONSISTENCY_EXACT), 6);
	assert_int_equal(wire_usage(wire, "few/__other__"), 7);
	(void)wire_free(wire);
	await_total(watch, "few", 0);
	assert_int_equal(wire_usage(watch, "few/__other__"), 0);
	(void)wire_free(watch);
}

/* A gauge that adds have brought below what is held: there is less to give back, and it does no harm. */
static void test_taken_off_by_adds(void **state)
{
	struct wire *wire = open_session(state, 21, 0), *watch = open_session(state, 22, 0);
	const struct request uncharge = {
		.type = REQUEST_UNCHARGE,
		.uncharge = { .number = 2, .path = text_of("held/limited"), .amount = 10 }
	};

	assert_true(wire_charge(wire, 1, "held/limited", 10, NULL));
	wire_intern(watch, 0, "held/limited");
	assert_false(wire_add(watch, 1, 0, -8));
	wire_fails(wire, &uncharge, CODE_FAILED_PRECONDITION, "adds have taken it off", 2);
	assert_false(wire_uncharge(wire, 3, "held/limited", 2));
	assert_int_equal(wire_usage(watch, "held/limited"), 0);
	assert_false(wire_add(watch, 2, 0, 8));
	(void)wire_free(wire);
	await_total(watch, "held/limited", 0);
	(void)wire_free(watch);
}

/* Answers that are long are kept within bounds: the oldest lose their bindings, and say how many they had. */
static void test_long_answers(void **state)
{
	struct wire *wire = open_session(state, 23, 0);
	char path[500];
	struct reply reply;

	(void)memset(path, 'x', sizeof(path));
	(void)memcpy(path, "deep", 4);
	for (unsigned i = 4; i < 490; i += 40) {
		path[i] = '/';
	}
	path[490] = '\0';
	wire_quota_max(wire, path, 5);
	for (uint64_t number = 1; number <= 300; number++) {
		assert_false(wire_charge(wire, number, path, 6, NULL));
	}
	assert_false(wire_charge(wire, 300, path, 6, &reply));
	assert_true(reply.charged.duplicate);
	assert_int_equal(reply.charged.n_bindings, 1);
	assert_int_equal(reply.charged.omitted, 0);
	assert_false(wire_charge(wire, 1, path, 6, &reply));
	assert_true(reply.charged.duplicate);
	assert_int_equal(reply.charged.n_bindings, 0);
	assert_int_equal(reply.charged.omitted, 1);
	(void)wire_free(wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edge),
		cmocka_unit_test(test_rate_and_shadow),
		cmocka_unit_test(test_adds_are_usage),
		cmocka_unit_test(test_all_or_nothing),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_no_session),
		cmocka_unit_test(test_bad_input),
		cmocka_unit_test(test_bad_uncharges),
		cmocka_unit_test(test_session_end_gives_back),
		cmocka_unit_test(test_killed_while_holding),
		cmocka_unit_test(test_detached),
		cmocka_unit_test(test_held_paths_limit),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_taken_off_by_adds),
		cmocka_unit_test(test_long_answers),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
