/*
 * Charges that wait for room: first come first served, nobody overtaken, nobody forgotten.
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
#define LONG_MS 60000u

static int setup(void **state)
{
	*state = test_daemon_start(
		"workers = 3\nmax_waiting = 200\n[metric held]\nkind = gauge\n[quota held/*]\nmax = 10\n"
		"[quota held/tree/**]\nmax = 4\n[quota count/*]\nmax = 10\nper = 1s\n[quota rated/*]\nrate = 10/1s\nburst = 10\n"
		"[quota ever/*]\nmax = 10\n");
	return 0;
}

static int teardown(void **state)
{
	test_daemon_stop(*state);
	return 0;
}

static struct wire *open_session(void **state, uint32_t session)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);

	(void)wire_greet(wire, session, 0, 1);
	return wire;
}

static void await_waiting(struct wire *wire, int64_t n)
{
	int64_t until = test_now_ms() + PATIENCE_MS;

	while (wire_status(wire, "charges_waiting") != n) {
		assert_true(test_now_ms() < until);
		(void)usleep(1000);
	}
}

static void expect_granted(struct wire *wire, uint64_t number, bool granted)
{
	struct reply reply = { 0 };

	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.type, REPLY_CHARGED);
	assert_int_equal(reply.charged.number, number);
	assert_int_equal(reply.charged.granted, granted);
}

static void expect_nothing(struct wire *wire)
{
	assert_false(wire_poll(wire, 30));
}

/* Several clients, on several workers, in the order in which they came. */
static void test_order(void **state)
{
	struct wire *holder = open_session(state, 1), *wires[6];

	assert_true(wire_charge(holder, 1, "held/order", 10, NULL));
	for (uint32_t i = 0; i < 6; i++) {
		wires[i] = open_session(state, 100 + i);
		(void)wire_send_charge(wires[i], 1, "held/order", 4, LONG_MS);
		await_waiting(holder, i + 1);
	}
	assert_false(wire_uncharge(holder, 2, "held/order", 3));
	expect_nothing(wires[0]);
	for (uint32_t i = 0; i < 6; i++) {
		/* Room for exactly one more; the first in line gets it, and nobody else. */
		if (i < 2) {
			assert_false(wire_uncharge(holder, 3 + i, "held/order", i == 0 ? 1 : 4));
		} else {
			assert_false(wire_uncharge(wires[i - 2], 2, "held/order", 4));
		}
		expect_granted(wires[i], 1, true);
		if (i < 5) {
			expect_nothing(wires[i + 1]);
			await_waiting(holder, 5 - (int64_t)i);
		}
	}
	for (uint32_t i = 0; i < 6; i++) {
		(void)wire_free(wires[i]);
	}
	(void)wire_free(holder);
}

/* A large one that came first is not starved by small ones behind it, though they would fit. */
static void test_no_overtaking(void **state)
{
	struct wire *holder = open_session(state, 2), *large = open_session(state, 110),
		    *small = open_session(state, 111), *rude = open_session(state, 112);

	assert_true(wire_charge(holder, 1, "held/large", 5, NULL));
	(void)wire_send_charge(large, 1, "held/large", 8, LONG_MS);
	await_waiting(holder, 1);
	(void)wire_send_charge(small, 1, "held/large/below", 1, LONG_MS);
	await_waiting(holder, 2);
	expect_nothing(small);
	/* One that does not wait does not queue either. */
	assert_true(wire_charge(rude, 1, "held/large", 1, NULL));
	/* Somewhere else there is nobody to wait for. */
	assert_true(wire_charge(small, 2, "held/elsewhere", 1, NULL));
	assert_false(wire_uncharge(holder, 2, "held/large", 5));
	expect_granted(large, 1, true);
	expect_granted(small, 1, true);
	(void)wire_free(holder);
	(void)wire_free(large);
	(void)wire_free(small);
	(void)wire_free(rude);
}

/* One that can't go on must not hold up others that wait for something else below the same metric. */
static void test_independent_nodes(void **state)
{
	struct wire *holder = open_session(state, 3), *a = open_session(state, 120),
		    *b = open_session(state, 121);

	assert_true(wire_charge(holder, 1, "held/first", 10, NULL));
	assert_true(wire_charge(holder, 2, "held/second", 10, NULL));
	(void)wire_send_charge(a, 1, "held/first", 1, LONG_MS);
	await_waiting(holder, 1);
	(void)wire_send_charge(b, 1, "held/second", 1, LONG_MS);
	await_waiting(holder, 2);
	assert_false(wire_uncharge(holder, 3, "held/second", 1));
	expect_granted(b, 1, true);
	expect_nothing(a);
	assert_false(wire_uncharge(holder, 4, "held/first", 1));
	expect_granted(a, 1, true);
	(void)wire_free(holder);
	(void)wire_free(a);
	(void)wire_free(b);
}

/* Several limits on the way, and several items: it stands wherever it was refused. */
static void test_several_limits(void **state)
{
	struct wire *holder = open_session(state, 4), *a = open_session(state, 130),
		    *b = open_session(state, 131);
	struct charge_item items[] = { { .path = text_of("held/tree/x"), .amount = 4 },
				       { .path = text_of("held/many"), .amount = 2 } };
	struct request request = wire_charge_request(1, items, 2);

	assert_true(wire_charge(holder, 1, "held/tree/x", 4, NULL));
	assert_true(wire_charge(holder, 2, "held/many", 9, NULL));
	request.charge.wait_ms = LONG_MS;
	(void)wire_send(a, &request);
	await_waiting(holder, 1);
	(void)wire_send_charge(b, 1, "held/many", 1, LONG_MS);
	await_waiting(holder, 2);
	expect_nothing(b);
	assert_false(wire_uncharge(holder, 3, "held/many", 9));
	expect_nothing(a);
	/* It does not hold up any more where there is room now. */
	expect_granted(b, 1, true);
	assert_false(wire_uncharge(holder, 4, "held/tree/x", 4));
	expect_granted(a, 1, true);
	assert_int_equal(wire_total(holder, "held/many", CONSISTENCY_EXACT), 3);
	(void)wire_free(holder);
	(void)wire_free(a);
	(void)wire_free(b);
}

static void test_time_over(void **state)
{
	struct wire *holder = open_session(state, 5), *a = open_session(state, 140);
	int64_t began;
	struct reply reply;

	assert_true(wire_charge(holder, 1, "held/over", 10, NULL));
	began = test_now_ms();
	(void)wire_send_charge(a, 1, "held/over", 1, 300);
	/* Others go on meanwhile, operations too, and overtake its answer. */
	assert_true(wire_charge(a, 2, "held/meanwhile", 1, NULL));
	(void)wire_total(a, "held", CONSISTENCY_EXACT);
	assert_true(wire_receive(a, &reply));
	assert_int_equal(reply.type, REPLY_CHARGED);
	assert_int_equal(reply.charged.number, 1);
	assert_false(reply.charged.granted);
	assert_int_equal(reply.charged.n_bindings, 1);
	assert_true(wire_text_is(reply.charged.bindings[0].path, "held/over"));
	assert_in_range(test_now_ms() - began, 295, 10000);
	assert_int_equal(wire_status(holder, "charges_waiting"), 0);
	/* It is answered for good. */
	assert_false(wire_uncharge(holder, 2, "held/over", 10));
	assert_false(wire_charge(a, 1, "held/over", 1, &reply));
	assert_true(reply.charged.duplicate);
	(void)wire_free(holder);
	(void)wire_free(a);
}

/* What can never fit is refused at once, and what is wrong is told at once, whether others wait or not. */
static void test_never(void **state)
{
	struct wire *holder = open_session(state, 6), *a = open_session(state, 150);
	const struct charge_item bad = { .path = text_of("hled/x"), .amount = 1 };
	struct request request = wire_charge_request(0, &bad, 1);

	request.charge.wait_ms = LONG_MS;
	for (uint64_t i = 0; i < 2; i++) {
		(void)wire_send_charge(a, 1 + 4 * i, "held/never", 11, LONG_MS);
		expect_granted(a, 1 + 4 * i, false);
		request.charge.number = 2 + 4 * i;
		wire_fails(a, &request, CODE_NOT_FOUND, "hled", 2 + 4 * i);
		(void)wire_send_charge(a, 3 + 4 * i, "ever/x", i == 0 ? 10 : 1, LONG_MS);
		expect_granted(a, 3 + 4 * i, i == 0);
		(void)wire_send_charge(a, 4 + 4 * i, "held/fits", 5, LONG_MS);
		expect_granted(a, 4 + 4 * i, true);
		if (i == 0) {
			assert_true(wire_charge(holder, 1, "held/never", 10, NULL));
			(void)wire_send_charge(holder, 2, "held/never", 1, LONG_MS);
			await_waiting(a, 1);
		}
	}
	(void)wire_free(holder);
	(void)wire_free(a);
}

/* A window ends, a bucket drains: nobody gives anything back. */
static void test_windows_and_rates(void **state)
{
	struct wire *a = open_session(state, 160);
	int64_t began;

	assert_true(wire_charge(a, 1, "rated/a", 10, NULL));
	began = test_now_ms();
	(void)wire_send_charge(a, 2, "rated/a", 3, LONG_MS);
	(void)wire_send_charge(a, 3, "rated/a", 2, LONG_MS);
	expect_granted(a, 2, true);
	assert_in_range(test_now_ms() - began, 280, 5000);
	expect_granted(a, 3, true);
	assert_in_range(test_now_ms() - began, 480, 5000);
	/* The window may end between two charges; at most twice as much fits then. */
	for (uint64_t number = 4; number < 7; number++) {
		(void)wire_send_charge(a, number, "count/a", 10, LONG_MS);
		expect_granted(a, number, true);
	}
	assert_in_range(test_now_ms() - began, 1000, 10000);
	(void)wire_free(a);
}

/* Whatever else makes room: a session's end, a lease's return, a limit raised or removed, an add of less than 0. */
static void test_what_makes_room(void **state)
{
	struct wire *watch = open_session(state, 7), *holder = open_session(state, 170),
		    *a = open_session(state, 171);

	assert_true(wire_charge(holder, 1, "held/room", 10, NULL));
	(void)wire_send_charge(a, 1, "held/room", 10, LONG_MS);
	await_waiting(watch, 1);
	(void)wire_free(holder);
	expect_granted(a, 1, true);

	assert_int_equal(wire_lease(watch, 1, 1, "held/leased", 10, 60000), 5);
	assert_true(wire_charge(watch, 2, "held/leased", 5, NULL));
	(void)wire_send_charge(a, 2, "held/leased", 5, LONG_MS);
	await_waiting(watch, 1);
	assert_int_equal(wire_lease_return(watch, 3, 1, 0), 5);
	expect_granted(a, 2, true);

	(void)wire_send_charge(a, 3, "held/leased", 2, LONG_MS);
	await_waiting(watch, 1);
	wire_quota_max(watch, "held/leased", 11);
	expect_nothing(a);
	wire_quota_max(watch, "held/leased", 12);
	expect_granted(a, 3, true);
	wire_quota_max(watch, "held/leased", 3);
	(void)wire_send_charge(a, 4, "held/leased", 1, LONG_MS);
	await_waiting(watch, 1);
	wire_quota_max(watch, "held/leased", 20);
	expect_granted(a, 4, true);
	wire_quota_max(watch, "held/leased", -1);

	wire_intern(watch, 0, "held/adds");
	assert_false(wire_add(watch, 1, 0, 10));
	(void)wire_send_charge(a, 5, "held/adds", 4, LONG_MS);
	await_waiting(watch, 1);
	assert_false(wire_add(watch, 2, 0, -4));
	expect_granted(a, 5, true);
	(void)wire_free(watch);
	(void)wire_free(a);
}

/* A waiter whose connection ends is dropped; what it asked for is carried out when it asks again, behind those who came meanwhile. */
static void test_reconnect(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *holder = open_session(state, 8), *a = wire_open(daemon->socket),
		    *b = open_session(state, 180);
	struct reply reply;

	assert_true(wire_charge(holder, 1, "held/again", 10, NULL));
	(void)wire_greet(a, 181, 60000, 1);
	(void)wire_send_charge(a, 1, "held/again", 6, LONG_MS);
	await_waiting(holder, 1);
	{
		const struct charge_item item = { .path = text_of("held/again"), .amount = 6 };
		struct request request = wire_charge_request(1, &item, 1);

		wire_fails(a, &request, CODE_FAILED_PRECONDITION, "waiting for room", 0);
	}
	(void)wire_free(a);
	await_waiting(holder, 0);
	(void)wire_send_charge(b, 1, "held/again", 5, LONG_MS);
	await_waiting(holder, 1);
	a = wire_open(daemon->socket);
	reply = wire_greet(a, 181, 60000, 1);
	assert_true(reply.welcome.resumed);
	assert_int_equal(reply.welcome.last_operation, 1);
	(void)wire_send_charge(a, 1, "held/again", 6, LONG_MS);
	await_waiting(holder, 2);
	assert_false(wire_uncharge(holder, 2, "held/again", 6));
	expect_granted(b, 1, true);
	expect_nothing(a);
	/* Taken over while it waits. */
	{
		struct wire *newer = wire_open(daemon->socket);

		(void)wire_greet(newer, 181, 0, 1);
		wire_expect_goodbye(a, CODE_ABORTED);
		await_waiting(holder, 0);
		(void)wire_send_charge(newer, 1, "held/again", 6, LONG_MS);
		await_waiting(holder, 1);
		(void)wire_free(b);
		expect_granted(newer, 1, true);
		(void)wire_free(a);
		(void)wire_free(newer);
	}
	(void)wire_free(holder);
}

static void test_killed_while_waiting(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *holder = open_session(state, 9), *b = open_session(state, 190);
	pid_t pid;

	assert_true(wire_charge(holder, 1, "held/killed", 10, NULL));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct wire *a = wire_open(daemon->socket);

		(void)wire_greet(a, 191, 0, 1);
		(void)wire_send_charge(a, 1, "held/killed", 10, LONG_MS);
		(void)pause();
		_exit(0);
	}
	await_waiting(holder, 1);
	(void)wire_send_charge(b, 1, "held/killed", 10, LONG_MS);
	await_waiting(holder, 2);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	await_waiting(holder, 1);
	assert_false(wire_uncharge(holder, 2, "held/killed", 10));
	expect_granted(b, 1, true);
	(void)wire_free(holder);
	(void)wire_free(b);
}

/* A client that says that nothing follows still gets the answer it waits for. */
static void test_half_closed(void **state)
{
	struct wire *holder = open_session(state, 11), *a = open_session(state, 210);

	assert_true(wire_charge(holder, 1, "held/half", 10, NULL));
	(void)wire_send_charge(a, 1, "held/half", 10, LONG_MS);
	wire_shutdown(a);
	await_waiting(holder, 1);
	(void)usleep(20000);
	assert_false(wire_uncharge(holder, 2, "held/half", 10));
	expect_granted(a, 1, true);
	wire_expect_closed(a);
	(void)wire_free(a);
	(void)wire_free(holder);
}

static void test_limits(void **state)
{
	struct wire *holder = open_session(state, 12), *wires[4];
	struct reply reply;
	unsigned refused = 0;

	assert_true(wire_charge(holder, 1, "held/full", 10, NULL));
	for (uint32_t i = 0; i < 4; i++) {
		wires[i] = open_session(state, 220 + i);
		for (uint64_t number = 1; number <= 65; number++) {
			(void)wire_send_charge(wires[i], number, "held/full", 1, LONG_MS);
		}
	}
	/* 64 of each, and 200 in all. */
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(wire_receive(wires[i], &reply));
		assert_int_equal(reply.type, REPLY_ERROR);
		assert_int_equal(reply.error.code, CODE_RESOURCE_EXHAUSTED);
		refused++;
	}
	await_waiting(holder, 200);
	(void)wire_free(holder);
	for (uint32_t i = 0; i < 4; i++) {
		(void)wire_free(wires[i]);
	}
	holder = open_session(state, 12);
	await_waiting(holder, 0);
	assert_true(refused == 3);
	(void)wire_free(holder);
}

/* The daemon stops while charges wait: they are told that it does. */
static void test_stop(void **state)
{
	struct test_daemon *daemon = test_daemon_start(
		"workers = 2\n[metric held]\nkind = gauge\n[quota held]\nmax = 1\n");
	struct wire *a = wire_open(daemon->socket), *b = wire_open(daemon->socket);

	(void)state;
	(void)wire_greet(a, 1, 60000, 1);
	(void)wire_greet(b, 2, 60000, 1);
	assert_true(wire_charge(a, 1, "held/a", 1, NULL));
	(void)wire_send_charge(b, 1, "held/b", 1, LONG_MS);
	await_waiting(a, 1);
	test_daemon_stop(daemon);
	wire_expect_goodbye(b, CODE_UNAVAILABLE);
	(void)wire_free(a);
	(void)wire_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_no_overtaking),
		cmocka_unit_test(test_independent_nodes),
		cmocka_unit_test(test_several_limits),
		cmocka_unit_test(test_time_over),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_windows_and_rates),
		cmocka_unit_test(test_what_makes_room),
		cmocka_unit_test(test_reconnect),
		cmocka_unit_test(test_killed_while_waiting),
		cmocka_unit_test(test_half_closed),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_stop),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
