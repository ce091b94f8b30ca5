/*
 * Leases: units charged ahead; reports, renewals, what comes back, and what does not.
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
		"workers = 3\nmax_leases = 3\nmax_leases_total = 5\nmax_held_paths = 2\n[metric held]\nkind = gauge\n"
		"[quota held/*]\nmax = 100\n[quota count/*]\nmax = 100\n");
	return 0;
}

static int teardown(void **state)
{
	test_daemon_stop(*state);
	return 0;
}

static struct wire *open_session(void **state, uint32_t session, uint32_t lifetime_ms)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket);

	(void)wire_greet(wire, session, lifetime_ms, 1);
	return wire;
}

static void await_usage(struct wire *wire, const char *path, int64_t usage)
{
	int64_t until = test_now_ms() + PATIENCE_MS;

	while (wire_usage(wire, path) != usage) {
		assert_true(test_now_ms() < until);
		(void)usleep(2000);
	}
}

static void test_life_of_a_gauge(void **state)
{
	struct wire *wire = open_session(state, 1, 0), *watch = open_session(state, 2, 0);

	assert_int_equal(wire_lease(wire, 1, 7, "held/life", 40, 60000), 40);
	/* Charged before they are spent, but not counted. */
	assert_int_equal(wire_usage(watch, "held/life"), 40);
	assert_int_equal(wire_total(watch, "held/life", CONSISTENCY_EXACT), 0);
	assert_false(wire_charge(watch, 1, "held/life", 61, NULL));
	/* 15 spent, and 40 wanted again. */
	assert_int_equal(wire_lease_renew(wire, 2, 7, 15, 40), 15);
	assert_int_equal(wire_usage(watch, "held/life"), 55);
	assert_int_equal(wire_total(watch, "held/life", CONSISTENCY_EXACT), 15);
	/* A repeat has no second effect. */
	assert_int_equal(wire_lease_renew(wire, 2, 7, 15, 40), 15);
	assert_int_equal(wire_usage(watch, "held/life"), 55);
	/* Spent units are held like charged ones. */
	assert_false(wire_uncharge(wire, 3, "held/life", 10));
	assert_int_equal(wire_usage(watch, "held/life"), 45);
	/* 0 wanted: as they are. Fewer wanted than there are: as they are. */
	assert_int_equal(wire_lease_renew(wire, 4, 7, 1, 0), 0);
	assert_int_equal(wire_lease_renew(wire, 5, 7, 0, 5), 0);
	assert_int_equal(wire_usage(watch, "held/life"), 45);
	assert_int_equal(wire_lease_return(wire, 6, 7, 9), 30);
	assert_int_equal(wire_lease_return(wire, 6, 7, 9), 30);
	assert_int_equal(wire_usage(watch, "held/life"), 15);
	assert_int_equal(wire_total(watch, "held/life", CONSISTENCY_EXACT), 15);
	/* Its number is free again. */
	assert_int_equal(wire_lease(wire, 7, 7, "held/life", 1, 1000), 1);
	(void)wire_free(wire);
	await_usage(watch, "held/life", 0);
	assert_int_equal(wire_total(watch, "held/life", CONSISTENCY_EXACT), 0);
	(void)wire_free(watch);
}

static void test_of_a_counter(void **state)
{
	struct wire *wire = open_session(state, 3, 0), *watch = open_session(state, 4, 0);

	assert_int_equal(wire_lease(wire, 1, 1, "count/life", 30, 60000), 30);
	assert_int_equal(wire_lease_renew(wire, 2, 1, 10, 0), 0);
	assert_int_equal(wire_total(watch, "count/life", CONSISTENCY_EXACT), 10);
	assert_int_equal(wire_lease_return(wire, 3, 1, 5), 0);
	assert_int_equal(wire_total(watch, "count/life", CONSISTENCY_EXACT), 15);
	/* What was not spent stays usage. */
	assert_int_equal(wire_usage(watch, "count/life"), 30);
	assert_int_equal(wire_lease(wire, 4, 1, "count/life", 10, 60000), 10);
	(void)wire_free(wire);
	(void)usleep(50000);
	assert_int_equal(wire_usage(watch, "count/life"), 40);
	(void)wire_free(watch);
}

/* Near a limit at most half of what is left, down to one; then none, and why. */
static void test_shrinking(void **state)
{
	struct wire *wire = open_session(state, 5, 0);
	struct request take = { .type = REQUEST_LEASE };
	const struct request request = {
		.type = REQUEST_LEASE,
		.lease = { .number = 10,
			   .lease = 2,
			   .path = text_of("held/shrink"),
			   .want = 1,
			   .ttl_ms = 5 },
	};
	struct reply reply;

	take.lease.number = take.lease.lease = 1;
	take.lease.path = text_of("held/shrink");
	take.lease.want = 100;
	take.lease.ttl_ms = 60000;
	reply = wire_call(wire, &take);
	assert_int_equal(reply.type, REPLY_LEASED);
	assert_int_equal(reply.leased.granted, 50);
	/* Why it is less. */
	assert_int_equal(reply.leased.n_bindings, 1);
	assert_int_equal(reply.leased.bindings[0].kind, BINDING_MAX);
	assert_int_equal(reply.leased.bindings[0].left, 50);
	assert_int_equal(wire_lease_renew(wire, 2, 1, 0, 1000), 25);
	assert_int_equal(wire_lease_renew(wire, 3, 1, 0, 1000), 12);
	assert_int_equal(wire_lease_renew(wire, 4, 1, 0, 1000), 6);
	assert_int_equal(wire_lease_renew(wire, 5, 1, 0, 1000), 3);
	assert_int_equal(wire_lease_renew(wire, 6, 1, 0, 1000), 2);
	assert_int_equal(wire_lease_renew(wire, 7, 1, 0, 1000), 1);
	assert_int_equal(wire_lease_renew(wire, 8, 1, 0, 1000), 1);
	/* Nothing is left: it goes on with what it has. */
	assert_int_equal(wire_lease_renew(wire, 9, 1, 1, 1000), 0);
	reply = wire_call(wire, &request);
	assert_int_equal(reply.type, REPLY_LEASED);
	assert_int_equal(reply.leased.granted, 0);
	assert_int_equal(reply.leased.ttl_ms, 1000);
	assert_int_equal(reply.leased.n_bindings, 1);
	assert_int_equal(reply.leased.bindings[0].kind, BINDING_MAX);
	assert_true(wire_text_is(reply.leased.bindings[0].path, "held/shrink"));
	/* A lease that got none was not made. */
	assert_int_equal(wire_status(wire, "leases"), 1);
	assert_int_equal(wire_lease_return(wire, 11, 1, 0), 99);
	(void)wire_free(wire);
}

static void expect_expired(struct wire *wire, const char *path, bool expired)
{
	const struct request request = { .type = REQUEST_QUOTA_EXPLAIN,
					 .quota_explain = text_of(path) };
	struct reply reply = wire_call(wire, &request);

	assert_int_equal(reply.type, REPLY_QUOTA_EXPLAINED);
	assert_int_equal(reply.quota_explained.n_leases, 1);
	assert_int_equal(reply.quota_explained.leases[0].expires_in_ms == 0, expired);
}

/* Its client lives but is late; the units may have been spent, so they stay charged until it says. */
static void test_expiry_alive(void **state)
{
	struct wire *wire = open_session(state, 6, 60000), *watch = open_session(state, 7, 0);
	int64_t expired = wire_status(watch, "leases_expired");
	int64_t until = test_now_ms() + PATIENCE_MS;

	assert_int_equal(wire_lease(wire, 1, 1, "held/late", 10, 1000), 10);
	expect_expired(watch, "held/late", false);
	expect_expired(watch, "held", false);
	while (wire_status(watch, "leases_expired") == expired) {
		assert_true(test_now_ms() < until);
		(void)usleep(10000);
	}
	expect_expired(watch, "held/late", true);
	assert_int_equal(wire_usage(watch, "held/late"), 10);
	/* A late report is taken, and the lease goes on. */
	assert_int_equal(wire_lease_renew(wire, 2, 1, 4, 10), 4);
	expect_expired(watch, "held/late", false);
	assert_int_equal(wire_usage(watch, "held/late"), 14);
	assert_int_equal(wire_total(watch, "held/late", CONSISTENCY_EXACT), 4);
	while (wire_status(watch, "leases_expired") == expired + 1) {
		assert_true(test_now_ms() < until);
		(void)usleep(10000);
	}
	/* Late again, and the last one. */
	assert_int_equal(wire_lease_return(wire, 3, 1, 10), 0);
	assert_int_equal(wire_usage(watch, "held/late"), 14);
	assert_false(wire_uncharge(wire, 4, "held/late", 14));
	assert_int_equal(wire_usage(watch, "held/late"), 0);
	(void)wire_free(wire);
	(void)wire_free(watch);
}

/* Its client is dead: with the session all of it comes back. A slow one reconnects within its lifetime and goes on. */
static void test_expiry_dead_and_slow(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *watch = open_session(state, 8, 0), *slow;
	int pipes[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct wire *wire = wire_open(daemon->socket);

		(void)wire_greet(wire, 9, 700, 1);
		byte = (char)wire_lease(wire, 1, 1, "held/dead", 10, 1000);
		byte = (char)(byte + wire_lease_renew(wire, 2, 1, 3, 0));
		(void)!write(pipes[1], &byte, 1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	assert_int_equal(byte, 10);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)close(pipes[0]);
	(void)close(pipes[1]);
	assert_int_equal(wire_usage(watch, "held/dead"), 10);
	await_usage(watch, "held/dead", 0);
	assert_int_equal(wire_total(watch, "held/dead", CONSISTENCY_EXACT), 0);

	slow = open_session(state, 10, 60000);
	assert_int_equal(wire_lease(slow, 1, 1, "held/slow", 10, 1000), 10);
	(void)wire_free(slow);
	(void)usleep(1200000);
	assert_int_equal(wire_usage(watch, "held/slow"), 10);
	slow = wire_open(daemon->socket);
	assert_true(wire_greet(slow, 10, 0, 2).welcome.resumed);
	assert_int_equal(wire_lease_renew(slow, 2, 1, 10, 10), 10);
	assert_int_equal(wire_usage(watch, "held/slow"), 20);
	(void)wire_free(slow);
	await_usage(watch, "held/slow", 0);
	(void)wire_free(watch);
}

static void test_errors(void **state)
{
	struct wire *wire = open_session(state, 11, 0), *other = open_session(state, 12, 0);
	struct request take = {
		.type = REQUEST_LEASE,
		.lease = { .lease = 1, .path = text_of("held/bad"), .want = 5, .ttl_ms = 60000 }
	};
	struct request renew = { .type = REQUEST_LEASE_RENEW, .lease_renew = { .lease = 1 } };
	struct request give = { .type = REQUEST_LEASE_RETURN, .lease_return = { .lease = 1 } };
	uint64_t number = 0;

#define TAKE_FAILS(path_, want_, code_, text_)                     \
	do {                                                       \
		take.lease.number = ++number;                      \
		take.lease.path = text_of(path_);                  \
		take.lease.want = (want_);                         \
		wire_fails(wire, &take, (code_), (text_), number); \
	} while (0)
#define RENEW_FAILS(spent_, want_, code_, text_)                    \
	do {                                                        \
		renew.lease_renew.number = ++number;                \
		renew.lease_renew.spent = (spent_);                 \
		renew.lease_renew.want = (want_);                   \
		wire_fails(wire, &renew, (code_), (text_), number); \
	} while (0)
#define GIVE_FAILS(spent_, code_, text_)                           \
	do {                                                       \
		give.lease_return.number = ++number;               \
		give.lease_return.spent = (spent_);                \
		wire_fails(wire, &give, (code_), (text_), number); \
	} while (0)

	TAKE_FAILS("held//x", 1, CODE_INVALID_ARGUMENT, "a segment is empty");
	TAKE_FAILS("held/bad", 0, CODE_INVALID_ARGUMENT, "want 0 is out of range");
	TAKE_FAILS("held/bad", -1, CODE_INVALID_ARGUMENT, "out of range");
	TAKE_FAILS("held/bad", INT64_MAX, CODE_INVALID_ARGUMENT, "out of range");
	TAKE_FAILS("hled/bad", 1, CODE_NOT_FOUND, "no metric hled");
	RENEW_FAILS(0, 0, CODE_NOT_FOUND, "no lease 1");
	GIVE_FAILS(0, CODE_NOT_FOUND, "no lease 1");
	assert_int_equal(wire_lease(wire, ++number, 1, "held/bad", 5, 60000), 5);
	TAKE_FAILS("held/bad", 5, CODE_ALREADY_EXISTS, "a lease 1 already");
	RENEW_FAILS(-1, 0, CODE_INVALID_ARGUMENT, "spent -1 is negative");
	RENEW_FAILS(6, 0, CODE_FAILED_PRECONDITION, "had 5 unspent");
	RENEW_FAILS(0, -1, CODE_INVALID_ARGUMENT, "want -1 is out of range");
	GIVE_FAILS(6, CODE_FAILED_PRECONDITION, "had 5 unspent");
	GIVE_FAILS(INT64_MIN, CODE_INVALID_ARGUMENT, "is negative");
	assert_int_equal(wire_usage(wire, "held/bad"), 5);
	/* Three of a session, five of all. */
	assert_int_equal(wire_lease(wire, ++number, 2, "held/bad", 5, 60000), 5);
	assert_int_equal(wire_lease(wire, ++number, UINT32_MAX, "held/bad", 5, 60000), 5);
	take.lease.lease = 4;
	TAKE_FAILS("held/bad", 5, CODE_RESOURCE_EXHAUSTED, "max_leases");
	assert_int_equal(wire_lease(other, 1, 1, "held/bad", 5, 60000), 5);
	assert_int_equal(wire_lease(other, 2, 2, "held/bad", 5, 60000), 5);
	take.lease.lease = 3;
	take.lease.number = 3;
	wire_fails(other, &take, CODE_RESOURCE_EXHAUSTED, "the daemon has as many leases", 3);
	/* Reports are not taken beyond what a session can hold. */
	assert_int_equal(wire_lease_return(wire, ++number, UINT32_MAX, 0), 5);
	assert_int_equal(wire_lease_return(wire, ++number, 2, 0), 5);
	assert_true(wire_charge(wire, ++number, "held/x", 1, NULL));
	assert_true(wire_charge(wire, ++number, "held/y", 1, NULL));
	RENEW_FAILS(5, 0, CODE_RESOURCE_EXHAUSTED, "max_held_paths");
	assert_int_equal(wire_usage(wire, "held/bad"), 15);
	assert_false(wire_uncharge(wire, ++number, "held/x", 1));
	assert_int_equal(wire_lease_renew(wire, ++number, 1, 5, 0), 0);
	(void)wire_free(wire);
	(void)wire_free(other);
}

/* Who leases, and how much of it is there: for anyone to see. */
static void test_explained(void **state)
{
	struct wire *wire = open_session(state, 13, 0);
	const struct request request = { .type = REQUEST_QUOTA_EXPLAIN,
					 .quota_explain = text_of("held/shown") };
	struct reply reply;

	assert_int_equal(wire_lease(wire, 1, 1, "held/shown/a", 5, 60000), 5);
	assert_int_equal(wire_lease(wire, 2, 2, "held/shown/b", 6, 60000), 6);
	assert_int_equal(wire_lease(wire, 3, 3, "held/shown-not", 7, 60000), 7);
	assert_int_equal(wire_lease_renew(wire, 4, 2, 2, 0), 0);
	reply = wire_call(wire, &request);
	assert_int_equal(reply.type, REPLY_QUOTA_EXPLAINED);
	assert_int_equal(reply.quota_explained.n_leases, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct explained_lease *lease = &reply.quota_explained.leases[i];

		assert_true(wire_text_is(lease->agent, "test"));
		assert_int_equal(lease->units, wire_text_is(lease->path, "held/shown/a") ? 5 : 4);
		assert_in_range(lease->expires_in_ms, 30000, 60000);
	}
	(void)wire_free(wire);
}

/* The daemon ends while sessions without a connection have leases, hold something and have answers to tell. */
static void test_left_at_the_end(void **state)
{
	struct wire *wire = open_session(state, 14, 600000);

	assert_int_equal(wire_lease(wire, 1, 1, "held/left", 5, 60000), 5);
	assert_int_equal(wire_lease(wire, 2, 2, "held/left", 5, 60000), 5);
	assert_true(wire_charge(wire, 3, "held/left", 5, NULL));
	assert_false(wire_charge(wire, 4, "held/left", 90, NULL));
	(void)wire_free(wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life_of_a_gauge),
		cmocka_unit_test(test_of_a_counter),
		cmocka_unit_test(test_shrinking),
		cmocka_unit_test(test_expiry_alive),
		cmocka_unit_test(test_expiry_dead_and_slow),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_explained),
		cmocka_unit_test(test_left_at_the_end),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
