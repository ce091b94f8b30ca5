/*
 * What a daemon has kept is there after a restart, whether it was stopped or killed; and what is told of it meanwhile.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire-quota.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char config[] =
	"workers = 3\n[metric held]\nkind = gauge\n[metric room]\nkind = gauge\n"
	"[quota held/*]\nmax = 100\n[quota count/*]\nmax = 100\n[quota day/*]\nmax = 100\ncalendar = day\n"
	"[quota room]\nmax = 1\n";

static struct test_daemon *start(void)
{
	struct test_daemon *daemon = test_daemon_prepare(config);

	daemon->keeps = true;
	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
	return daemon;
}

static int setup(void **state)
{
	*state = start();
	return 0;
}

static int teardown(void **state)
{
	test_daemon_stop(*state);
	return 0;
}

static struct wire *greet(struct test_daemon *daemon, uint32_t session, struct reply *ret_welcome)
{
	struct wire *wire = wire_open(daemon->socket);
	struct reply welcome = wire_greet(wire, session, 60000, 1);

	if (ret_welcome != NULL) {
		*ret_welcome = welcome;
	}
	return wire;
}

static void charge_detached(struct wire *wire, uint64_t number, const char *path, int64_t amount)
{
	const struct charge_item item = { .path = text_of(path), .amount = amount };
	struct request request = wire_charge_request(number, &item, 1);
	struct reply reply;

	request.charge.detached = true;
	reply = wire_call(wire, &request);
	assert_int_equal(reply.type, REPLY_CHARGED);
	assert_true(reply.charged.granted);
}

static void uncharge_detached(struct wire *wire, uint64_t number, const char *path, int64_t amount)
{
	const struct request request = {
		.type = REQUEST_UNCHARGE,
		.uncharge = { .number = number,
			      .path = text_of(path),
			      .amount = amount,
			      .detached = true },
	};

	assert_int_equal(wire_call(wire, &request).type, REPLY_UNCHARGED);
}

/* Everything there is, of one session and of others; then `number`, and all of it is there again. */
static void check_restart(struct test_daemon *daemon, int number)
{
	struct wire *wire = greet(daemon, 7, NULL), *other = greet(daemon, 8, NULL);
	struct reply welcome;

	wire_intern(wire, 1, "adds/a");
	assert_false(wire_add(wire, 1, 1, 5));
	assert_false(wire_add(wire, 2, 1, 6));
	wire_quota_max(wire, "set/at/run/time", 3);
	wire_gauge(wire, "level");
	assert_true(wire_charge(wire, 1, "held/x", 40, NULL));
	assert_true(wire_charge(wire, 2, "count/x", 41, NULL));
	assert_true(wire_charge(wire, 3, "day/x", 42, NULL));
	assert_false(wire_charge(wire, 4, "day/x", 99, NULL));
	assert_int_equal(wire_lease(wire, 5, 9, "held/leased", 30, 60000), 30);
	assert_int_equal(wire_lease_renew(wire, 6, 9, 10, 0), 0);
	charge_detached(wire, 7, "held/free", 20);
	uncharge_detached(other, 1, "held/free", 5);
	wire_flush_durable(wire);
	if (number == SIGTERM) {
		/* What comes last is not waited for. */
		assert_false(wire_add(wire, 3, 1, 7));
	} else {
		wire_await_durable(wire, 2, 7);
		assert_false(wire_add(wire, 3, 1, 7));
		wire_await_durable(wire, 3, 7);
	}
	test_daemon_restart(daemon, number);
	(void)wire_free(wire);
	(void)wire_free(other);

	wire = greet(daemon, 7, &welcome);
	assert_false(welcome.welcome.resumed);
	assert_true(welcome.welcome.keeps);
	assert_true(welcome.welcome.restored);
	assert_int_equal(welcome.welcome.last_batch, 3);
	assert_int_equal(welcome.welcome.last_operation, 7);
	assert_int_equal(welcome.welcome.durable_batch, 3);
	assert_int_equal(welcome.welcome.durable_operation, 7);
	assert_int_equal(wire_total(wire, "adds/a", CONSISTENCY_EXACT), 18);
	assert_int_equal(wire_total(wire, "held/x", CONSISTENCY_EXACT), 40);
	assert_int_equal(wire_total(wire, "held", CONSISTENCY_EXACT), 40 + 10 + 15);
	assert_int_equal(wire_usage(wire, "held/leased"), 30);
	assert_int_equal(wire_total(wire, "held/leased", CONSISTENCY_EXACT), 10);
	wire_intern(wire, 1, "adds/a");
	assert_true(wire_add(wire, 3, 1, 7));
	assert_false(wire_add(wire, 4, 1, 1));
	/* Answers are as they were, and have no second effect. */
	assert_true(wire_charge(wire, 1, "held/x", 40, &welcome));
	assert_true(welcome.charged.duplicate);
	assert_false(wire_charge(wire, 4, "day/x", 99, &welcome));
	assert_true(welcome.charged.duplicate);
	assert_true(welcome.charged.n_bindings > 0);
	/* Limits go on from where they were. */
	assert_false(wire_charge(wire, 8, "held/x", 61, NULL));
	assert_true(wire_charge(wire, 9, "held/x", 60, NULL));
	assert_false(wire_charge(wire, 10, "count/x", 60, NULL));
	assert_false(wire_charge(wire, 11, "day/x", 59, NULL));
	assert_true(wire_charge(wire, 12, "day/x", 58, NULL));
	assert_false(wire_charge(wire, 13, "set/at/run/time", 4, NULL));
	/* What is held, leased and detached can be given back. */
	assert_false(wire_uncharge(wire, 14, "held/x", 100));
	assert_int_equal(wire_lease_return(wire, 15, 9, 1), 19);
	assert_false(wire_uncharge(wire, 16, "held/leased", 11));
	uncharge_detached(wire, 17, "held/free", 15);
	assert_int_equal(wire_total(wire, "held", CONSISTENCY_EXACT), 0);
	(void)wire_free(wire);
}

static void test_stopped(void **state)
{
	check_restart(*state, SIGTERM);
}

static void test_killed(void **state)
{
	check_restart(*state, SIGKILL);
}

/* By then the configuration says something else: what is counted and held stays what it is, and everything goes on. */
static void check_other_config(struct test_daemon *daemon, const char *other, int64_t usage)
{
	struct wire *wire = greet(daemon, 1, NULL), *second = greet(daemon, 2, NULL);
	struct reply welcome;

	assert_true(wire_charge(wire, 1, "held/x", 40, NULL));
	assert_true(wire_charge(wire, 2, "day/x", 42, NULL));
	assert_true(wire_charge(second, 1, "room", 1, NULL));
	assert_int_equal(wire_lease(wire, 3, 9, "held/leased", 30, 60000), 30);
	assert_int_equal(wire_lease(second, 2, 9, "count/leased", 30, 60000), 30);
	wire_flush_durable(wire);
	(void)wire_free(wire);
	(void)wire_free(second);
	test_daemon_configure(daemon, other);
	test_daemon_restart(daemon, SIGKILL);
	test_daemon_restart(daemon, SIGTERM);

	wire = greet(daemon, 1, &welcome);
	assert_int_equal(welcome.welcome.last_operation, 3);
	assert_int_equal(wire_total(wire, "held/x", CONSISTENCY_EXACT), 40);
	assert_int_equal(wire_usage(wire, "held/leased"), usage);
	assert_false(wire_uncharge(wire, 4, "held/x", 30));
	assert_int_equal(wire_lease_return(wire, 5, 9, 0), 30);
	wire_flush_durable(wire);
	assert_int_equal(wire_total(wire, "held", CONSISTENCY_EXACT), 10);
	second = greet(daemon, 2, &welcome);
	assert_int_equal(welcome.welcome.last_operation, 2);
	assert_false(wire_uncharge(second, 3, "room", 1));
	assert_int_equal(wire_lease_return(second, 4, 9, 30), 0);
	assert_int_equal(wire_total(second, "count", CONSISTENCY_EXACT), 30);
	(void)wire_free(wire);
	(void)wire_free(second);
}

static void test_other_kinds(void **state)
{
	check_other_config(*state,
			   "workers = 1\nmax_sessions = 1\nmax_leases = 1\nmax_leases_total = 1\n"
			   "max_held_paths = 1\n[metric held]\nkind = counter\n"
			   "[quota held/*]\nmax = 20\n",
			   30);
}

static void test_no_config(void **state)
{
	check_other_config(
		*state,
		"workers = 5\n[quota held/*]\nmax = 200\n[quota day/*]\nmax = 9\ncalendar = week\n",
		30);
}

/* Counters that limits name are there, with a state file as without. */
static void test_named(void **state)
{
	struct test_daemon *daemon =
		test_daemon_prepare("[metric named]\nkind = counter\n[quota named/one]\nmax = 5\n");
	struct wire *wire;

	(void)state;
	daemon->keeps = true;
	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
	for (unsigned i = 0; i < 2; i++) {
		wire = greet(daemon, 1, NULL);
		assert_int_equal(wire_total(wire, "named/one", CONSISTENCY_EXACT), 0);
		wire_quota_max(wire, "named/two", 6);
		assert_int_equal(wire_total(wire, "named/two", CONSISTENCY_EXACT), 0);
		wire_flush_durable(wire);
		(void)wire_free(wire);
		test_daemon_restart(daemon, SIGKILL);
	}
	test_daemon_stop(daemon);
}

/* Near the ends of int64, where what comes first must not be more than fits together with what comes later. */
static void test_large(void **state)
{
	static const int64_t large = 8000000000000000000;
	struct test_daemon *daemon = *state;
	struct wire *wire = greet(daemon, 1, NULL);

	wire_gauge(wire, "level");
	wire_intern(wire, 1, "level/a");
	wire_intern(wire, 2, "level/b");
	wire_intern(wire, 3, "level/c");
	wire_intern(wire, 4, "adds/a");
	assert_false(wire_add(wire, 1, 3, -large));
	assert_false(wire_add(wire, 2, 1, large));
	assert_false(wire_add(wire, 3, 2, large));
	assert_false(wire_add(wire, 4, 4, INT64_MAX));
	wire_flush_durable(wire);
	(void)wire_free(wire);
	test_daemon_restart(daemon, SIGKILL);
	wire = greet(daemon, 1, NULL);
	assert_int_equal(wire_total(wire, "level", CONSISTENCY_EXACT), large);
	assert_int_equal(wire_total(wire, "level/c", CONSISTENCY_EXACT), -large);
	assert_int_equal(wire_total(wire, "adds", CONSISTENCY_EXACT), INT64_MAX);
	wire_intern(wire, 1, "level/a");
	assert_false(wire_add(wire, 5, 1, -large));
	assert_int_equal(wire_total(wire, "level", CONSISTENCY_EXACT), 0);
	(void)wire_free(wire);
}

/* Twice with nothing between: what was restored is kept without having changed. */
static void test_twice(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = greet(daemon, 1, NULL);

	assert_true(wire_charge(wire, 1, "held/x", 40, NULL));
	wire_flush_durable(wire);
	(void)wire_free(wire);
	test_daemon_restart(daemon, SIGKILL);
	test_daemon_restart(daemon, SIGTERM);
	test_daemon_restart(daemon, SIGKILL);
	wire = greet(daemon, 1, NULL);
	assert_int_equal(wire_total(wire, "held/x", CONSISTENCY_EXACT), 40);
	assert_false(wire_uncharge(wire, 2, "held/x", 40));
	assert_int_equal(wire_total(wire, "held/x", CONSISTENCY_EXACT), 0);
	(void)wire_free(wire);
}

/* Who gave back what another had charged, both of it lost, is back first: it counts, and the charge after it too. */
static void test_known_uncharge(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = greet(daemon, 2, NULL);
	const struct charge_item item = { .path = text_of("held/k"), .amount = 30 };
	struct request charge = wire_charge_request(1, &item, 1);
	struct request uncharge = {
		.type = REQUEST_UNCHARGE,
		.uncharge = { .number = 1,
			      .path = text_of("held/k"),
			      .amount = 20,
			      .detached = true },
		.known = { .present = true, .done = true },
	};

	assert_int_equal(wire_call(wire, &uncharge).type, REPLY_UNCHARGED);
	/* Not there at all is another thing, for who was not told before that it was. */
	uncharge.known.present = false;
	uncharge.uncharge.number = 2;
	wire_fails(wire, &uncharge, CODE_FAILED_PRECONDITION, "detached", 2);
	wire_flush_durable(wire);
	(void)wire_free(wire);
	test_daemon_restart(daemon, SIGKILL);

	wire = greet(daemon, 1, NULL);
	assert_int_equal(wire_total(wire, "held/k", CONSISTENCY_EXACT), -20);
	charge.charge.detached = true;
	charge.known = (struct known){ .present = true, .done = true };
	assert_int_equal(wire_call(wire, &charge).type, REPLY_CHARGED);
	assert_int_equal(wire_total(wire, "held/k", CONSISTENCY_EXACT), 10);
	assert_int_equal(wire_usage(wire, "held/k"), 10);
	uncharge_detached(wire, 2, "held/k", 10);
	uncharge.uncharge.number = 3;
	uncharge.uncharge.amount = 1;
	wire_fails(wire, &uncharge, CODE_FAILED_PRECONDITION, "detached", 3);
	wire_flush_durable(wire);
	(void)wire_free(wire);
	test_daemon_restart(daemon, SIGKILL);
	wire = greet(daemon, 1, NULL);
	assert_int_equal(wire_total(wire, "held/k", CONSISTENCY_EXACT), 0);
	(void)wire_free(wire);
}

/* An operation that the file does not have, and an earlier daemon had answered. */
static void test_known(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = greet(daemon, 1, NULL);
	const struct charge_item items[] = { { .path = text_of("count/k"), .amount = 70 },
					     { .path = text_of("held/k"), .amount = 30 } };
	struct request request = wire_charge_request(1, items, 2);
	struct reply reply;

	assert_true(wire_charge(wire, 1, "count/k", 50, NULL));
	/* 120 of 100: it had been granted, so it is. */
	request.charge.number = 2;
	request.known = (struct known){ .present = true, .done = true };
	reply = wire_call(wire, &request);
	assert_int_equal(reply.type, REPLY_CHARGED);
	assert_true(reply.charged.granted);
	assert_false(reply.charged.duplicate);
	assert_int_equal(wire_usage(wire, "count/k"), 120);
	assert_int_equal(wire_usage(wire, "held/k"), 30);
	/* Sent again it is a repeat. */
	reply = wire_call(wire, &request);
	assert_true(reply.charged.duplicate);
	assert_int_equal(wire_usage(wire, "count/k"), 120);
	/* It had been refused, though by now it would fit. */
	request.charge.number = 3;
	request.charge.items = &items[1];
	request.charge.n_items = 1;
	request.known.done = false;
	reply = wire_call(wire, &request);
	assert_int_equal(reply.type, REPLY_CHARGED);
	assert_false(reply.charged.granted);
	assert_int_equal(wire_usage(wire, "held/k"), 30);
	/* A lease: as many units as it was, though there are not so many. */
	request = (struct request){
		.type = REQUEST_LEASE,
		.lease = { .number = 4,
			   .lease = 1,
			   .path = text_of("held/k"),
			   .want = 99,
			   .ttl_ms = 60000 },
		.known = { .present = true, .done = true, .granted = 90 },
	};
	reply = wire_call(wire, &request);
	assert_int_equal(reply.type, REPLY_LEASED);
	assert_int_equal(reply.leased.granted, 90);
	assert_int_equal(wire_usage(wire, "held/k"), 120);
	request = (struct request){
		.type = REQUEST_LEASE_RENEW,
		.lease_renew = { .number = 5, .lease = 1, .spent = 80, .want = 100 },
		.known = { .present = true, .done = true, .granted = 50 },
	};
	reply = wire_call(wire, &request);
	assert_int_equal(reply.leased.granted, 50);
	assert_int_equal(wire_usage(wire, "held/k"), 170);
	request = (struct request){
		.type = REQUEST_LEASE_RETURN,
		.lease_return = { .number = 6, .lease = 1, .spent = 0 },
		.known = { .present = true, .done = false },
	};
	wire_fails(wire, &request, CODE_FAILED_PRECONDITION, "an earlier daemon", 6);
	assert_int_equal(wire_lease_return(wire, 7, 1, 0), 60);
	assert_int_equal(wire_usage(wire, "held/k"), 110);
	(void)wire_free(wire);
}

static void expect_leased(struct wire *wire, uint64_t number, uint32_t lease, const char *path,
			  int64_t units)
{
	const struct request request = {
		.type = REQUEST_LEASE,
		.lease = { .number = number,
			   .lease = lease,
			   .path = text_of(path),
			   .want = units,
			   .ttl_ms = 60000 },
		.known = { .present = true, .done = true, .granted = units },
	};
	struct reply reply = wire_call(wire, &request);

	assert_int_equal(reply.type, REPLY_LEASED);
	assert_int_equal(reply.leased.granted, units);
}

/* Others, or another configuration, have taken the places of leases and of what is held since: what was leased once is spent, and so it is leased again. */
static void test_known_leases_beyond(void **state)
{
	struct test_daemon *daemon = test_daemon_start(
		"workers = 2\nmax_leases = 1\nmax_leases_total = 1\nmax_held_paths = 1\n"
		"[metric held]\nkind = gauge\n");
	struct wire *wire = greet(daemon, 1, NULL), *other = greet(daemon, 2, NULL);
	const char *const paths[] = { "held/a", "held/b" };

	(void)state;
	assert_int_equal(wire_lease(other, 1, 1, "held/a", 5, 60000), 5);
	for (unsigned i = 0; i < 2; i++) {
		const struct request renewal = {
			.type = REQUEST_LEASE_RENEW,
			.lease_renew = { .number = 2 * i + 2, .lease = i + 1, .spent = 3 },
			.known = { .present = true, .done = true },
		};

		expect_leased(wire, 2 * i + 1, i + 1, paths[i], 20);
		assert_int_equal(wire_call(wire, &renewal).type, REPLY_LEASED);
	}
	assert_int_equal(wire_total(wire, "held", CONSISTENCY_EXACT), 6);
	assert_int_equal(wire_lease_return(wire, 5, 1, 0), 17);
	assert_int_equal(wire_lease_return(wire, 6, 2, 0), 17);
	assert_false(wire_uncharge(wire, 7, "held/b", 3));
	(void)wire_free(wire);
	(void)wire_free(other);
	test_daemon_stop(daemon);
}

/* What was given back is given back again, though an add that came before it is not there again yet. */
static void test_known_uncharge_before_adds(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = greet(daemon, 1, NULL), *other = greet(daemon, 2, NULL);
	const struct request uncharge = {
		.type = REQUEST_UNCHARGE,
		.uncharge = { .number = 2, .path = text_of("held/k"), .amount = 20 },
		.known = { .present = true, .done = true },
	};

	assert_true(wire_charge(wire, 1, "held/k", 20, NULL));
	wire_intern(other, 1, "held/k");
	assert_false(wire_add(other, 1, 1, -5));
	assert_int_equal(wire_total(wire, "held/k", CONSISTENCY_EXACT), 15);
	assert_int_equal(wire_call(wire, &uncharge).type, REPLY_UNCHARGED);
	assert_int_equal(wire_total(wire, "held/k", CONSISTENCY_EXACT), -5);
	assert_false(wire_add(other, 2, 1, 5));
	assert_int_equal(wire_total(wire, "held/k", CONSISTENCY_EXACT), 0);
	assert_int_equal(wire_usage(wire, "held/k"), 0);
	(void)wire_free(wire);
	(void)wire_free(other);
}

/* What waits for room is not durable before it has been answered, though its number is used up. */
static void test_waiting(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *holder = greet(daemon, 1, NULL), *wire = greet(daemon, 2, NULL);
	struct reply reply, welcome;

	assert_true(wire_charge(holder, 1, "room", 1, NULL));
	assert_true(wire_charge(wire, 1, "held/y", 1, NULL));
	(void)wire_send_charge(wire, 2, "room", 1, 60000);
	assert_true(wire_charge(wire, 3, "held/y", 1, NULL));
	wire_await_durable(wire, 0, 1);
	wire_flush_durable(wire);
	assert_int_equal(wire->durable.operation, 1);
	assert_false(wire_uncharge(holder, 2, "room", 1));
	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.charged.number, 2);
	assert_true(reply.charged.granted);
	wire_await_durable(wire, 0, 3);
	/* One that waits when the daemon is killed is to be sent again. */
	(void)wire_send_charge(holder, 3, "room", 1, 60000);
	wire_flush_durable(holder);
	test_daemon_restart(daemon, SIGKILL);
	(void)wire_free(wire);
	(void)wire_free(holder);
	holder = greet(daemon, 1, &welcome);
	assert_int_equal(welcome.welcome.last_operation, 3);
	assert_int_equal(welcome.welcome.durable_operation, 2);
	(void)wire_send_charge(holder, 3, "room", 1, 60000);
	wire = greet(daemon, 2, NULL);
	assert_false(wire_uncharge(wire, 4, "room", 1));
	assert_true(wire_receive(holder, &reply));
	assert_true(reply.charged.granted);
	(void)wire_free(wire);
	(void)wire_free(holder);
}

#define MANY_PATHS 3000u

static void await_total(struct wire *wire, const char *path, int64_t total)
{
	int64_t until = test_now_ms() + TEST_DAEMON_PATIENCE_MS;

	while (wire_total(wire, path, CONSISTENCY_EXACT) != total) {
		assert_true(test_now_ms() < until);
		(void)usleep(2000);
	}
}

/* A session that ends is forgotten, with all that it holds; one of the same id begins anew. Also if the daemon is killed meanwhile. */
static void check_end(struct test_daemon *daemon, bool wait)
{
	const struct request end = { .type = REQUEST_END };
	struct wire *wire = greet(daemon, 3, NULL), *watch = greet(daemon, 4, NULL);
	struct reply welcome;

	for (unsigned i = 0; i < MANY_PATHS; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "level/%u", i);
		assert_true(wire_charge(wire, i + 1, path, 1, NULL));
	}
	wire_flush_durable(wire);
	assert_int_equal(wire_call(wire, &end).type, REPLY_ENDED);
	(void)wire_free(wire);
	if (wait) {
		await_total(watch, "level", 0);
		wire_flush_durable(watch);
	}
	wire = greet(daemon, 3, &welcome);
	assert_int_equal(welcome.welcome.last_operation, 0);
	assert_true(wire_charge(wire, 1, "level/0", 5, NULL));
	wire_flush_durable(wire);
	test_daemon_restart(daemon, SIGKILL);
	(void)wire_free(wire);
	(void)wire_free(watch);
	wire = greet(daemon, 3, &welcome);
	assert_int_equal(welcome.welcome.last_operation, 1);
	await_total(wire, "level", 5);
	assert_false(wire_uncharge(wire, 2, "level/0", 5));
	assert_int_equal(wire_call(wire, &end).type, REPLY_ENDED);
	(void)wire_free(wire);
}

static void test_end(void **state)
{
	struct wire *wire = greet(*state, 1, NULL);

	wire_gauge(wire, "level");
	(void)wire_free(wire);
	check_end(*state, /* wait= */ true);
	check_end(*state, /* wait= */ false);
}

/* Nothing is written while nothing is new. */
static void test_idle(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = greet(daemon, 1, NULL);
	int64_t before;

	wire_flush_durable(wire);
	before = wire_status(wire, "checkpoints");
	(void)usleep(700000);
	/* That of the flush may have been told of before it was counted. */
	assert_true(wire_status(wire, "checkpoints") <= before + 1);
	assert_int_equal(wire_status(wire, "checkpoint_age_ms"), 0);
	(void)wire_free(wire);
}

static void test_ephemeral(void **state)
{
	const struct request request = { .type = REQUEST_FLUSH, .flush = { .durable = true } };
	struct test_daemon *daemon = test_daemon_start(NULL);
	struct reply welcome;
	struct wire *wire = greet(daemon, 1, &welcome);

	(void)state;
	assert_false(welcome.welcome.keeps);
	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_FAILED_PRECONDITION, "no state file");
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stopped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_twice, setup, teardown),
		cmocka_unit_test(test_named),
		cmocka_unit_test_setup_teardown(test_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_config, setup, teardown),
		cmocka_unit_test_setup_teardown(test_known, setup, teardown),
		cmocka_unit_test(test_known_leases_beyond),
		cmocka_unit_test_setup_teardown(test_known_uncharge_before_adds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_known_uncharge, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waiting, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle, setup, teardown),
		cmocka_unit_test(test_ephemeral),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
