/*
 * Units of a counter's lease that ended before they were spent: they stay used, but keep nothing; the counter can expire.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire-quota.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* What is replayed after a kill is what no checkpoint had. */
static const char config[] =
	"workers = 3\ncheckpoint_interval = 10m\n[metric brief]\nexpire_after = 1s\n"
	"[metric few]\nexpire_after = 1s\nmax_counters = 3\noverflow = yes\n"
	"[quota brief/p]\nmax = 1000\n";

static int setup(void **state)
{
	struct test_daemon *daemon = test_daemon_prepare(config);

	daemon->keeps = true;
	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
	*state = daemon;
	return 0;
}

static int teardown(void **state)
{
	test_daemon_stop(*state);
	return 0;
}

static struct wire *greet(struct test_daemon *daemon, uint32_t session, uint32_t lifetime_ms,
			  uint64_t next)
{
	struct wire *wire = wire_open(daemon->socket);

	(void)wire_greet(wire, session, lifetime_ms, next);
	return wire;
}

static void end(struct wire *wire)
{
	const struct request request = { .type = REQUEST_END };

	assert_int_equal(wire_call(wire, &request).type, REPLY_ENDED);
	(void)wire_free(wire);
}

static void await_status(struct wire *wire, const char *name, int64_t value)
{
	int64_t until = test_now_ms() + TEST_DAEMON_PATIENCE_MS;

	while (wire_status(wire, name) < value) {
		assert_true(test_now_ms() < until);
		(void)usleep(10000);
	}
}

static void expect_leases(struct wire *wire, const char *path, size_t n)
{
	const struct request request = { .type = REQUEST_QUOTA_EXPLAIN,
					 .quota_explain = text_of(path) };
	struct reply reply = wire_call(wire, &request);

	assert_int_equal(reply.type, REPLY_QUOTA_EXPLAINED);
	assert_int_equal(reply.quota_explained.n_leases, n);
}

/* By a return, by the end of the session, by that of its lifetime; and a lease whose time is over is none that has ended. */
static void test_ways_to_end(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *watch = greet(daemon, 1, 0, 1), *slow = greet(daemon, 2, 60000, 1);
	struct wire *wire = greet(daemon, 3, 60000, 1), *other = greet(daemon, 4, 10, 1);

	assert_int_equal(wire_lease(slow, 1, 1, "brief/p/slow", 10, 1000), 10);
	assert_int_equal(wire_lease(wire, 1, 1, "brief/p/returned", 10, 60000), 10);
	assert_int_equal(wire_lease(wire, 2, 2, "brief/p/ended", 10, 60000), 10);
	assert_int_equal(wire_lease(other, 1, 1, "brief/p/left", 10, 60000), 10);
	assert_int_equal(wire_lease_return(wire, 3, 1, 4), 0);
	assert_int_equal(wire_lease_renew(wire, 4, 2, 3, 0), 0);
	end(wire);
	(void)wire_free(other);
	await_status(watch, "leases_expired", 1);
	await_status(watch, "counters_expired", 3);
	assert_false(wire_exists(watch, "brief/p/returned"));
	assert_false(wire_exists(watch, "brief/p/ended"));
	assert_false(wire_exists(watch, "brief/p/left"));
	assert_int_equal(wire_total(watch, "brief/p", CONSISTENCY_EXACT), 7);
	assert_int_equal(wire_usage(watch, "brief/p"), 40);
	expect_leases(watch, "brief/p", 1);

	/* What may have been spent keeps its counter until it is told. */
	assert_int_equal(wire_total(watch, "brief/p/slow", CONSISTENCY_EXACT), 0);
	assert_int_equal(wire_lease_return(slow, 2, 1, 5), 0);
	await_status(watch, "counters_expired", 4);
	assert_int_equal(wire_total(watch, "brief/p", CONSISTENCY_EXACT), 12);
	assert_int_equal(wire_usage(watch, "brief/p"), 40);
	/* A limit that comes now begins with what was charged for good. */
	wire_quota_max(watch, "brief", 50);
	assert_int_equal(wire_usage(watch, "brief"), 40);
	assert_false(wire_charge(watch, 1, "brief/p/x", 11, NULL));
	assert_true(wire_charge(watch, 2, "brief/p/x", 10, NULL));
	(void)wire_free(slow);
	(void)wire_free(watch);
}

/* More short-lived names than there is room for at once: each gets its counter, if those before it have expired. */
static void test_room(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *watch = greet(daemon, 1, 0, 1);
	static const char *const paths[] = { "few/1", "few/2", "few/3", "few/4", "few/5" };

	for (size_t i = 0; i < 5; i++) {
		struct wire *wire = greet(daemon, 2, 0, 1);

		assert_int_equal(wire_lease(wire, 1, 1, paths[i], 10, 60000), 10);
		assert_true(wire_exists(watch, paths[i]));
		end(wire);
		await_status(watch, "counters_expired", (int64_t)i + 1);
	}
	assert_false(wire_exists(watch, "few/__other__"));
	(void)wire_free(watch);
}

/* What had ended before is forfeited still; what goes on is somebody's. */
static void check_restart(struct test_daemon *daemon, int number)
{
	struct wire *wire = greet(daemon, 1, 60000, 1), *watch;

	assert_int_equal(wire_lease(wire, 1, 1, "brief/p/a", 30, 60000), 30);
	assert_int_equal(wire_lease(wire, 2, 2, "brief/p/b", 20, 60000), 20);
	assert_int_equal(wire_lease(wire, 3, 3, "brief/p/b", 20, 60000), 20);
	assert_int_equal(wire_lease(wire, 4, 4, "few/a", 5, 60000), 5);
	assert_int_equal(wire_lease(wire, 5, 5, "few/b", 5, 60000), 5);
	/* One more than its metric may have. */
	assert_int_equal(wire_lease(wire, 6, 6, "few/c", 5, 60000), 5);
	assert_int_equal(wire_lease_return(wire, 7, 1, 10), 0);
	assert_int_equal(wire_lease_return(wire, 8, 2, 1), 0);
	wire_flush_durable(wire);
	(void)wire_free(wire);
	test_daemon_restart(daemon, number);

	watch = greet(daemon, 2, 0, 1);
	await_status(watch, "counters_expired", 1);
	assert_false(wire_exists(watch, "brief/p/a"));
	assert_true(wire_exists(watch, "brief/p/b"));
	assert_true(wire_exists(watch, "few/__other__"));
	assert_int_equal(wire_total(watch, "brief/p", CONSISTENCY_EXACT), 11);
	assert_int_equal(wire_usage(watch, "brief/p"), 70);
	wire_quota_max(watch, "few", 100);
	assert_int_equal(wire_usage(watch, "few"), 15);
	wire = greet(daemon, 1, 60000, 9);
	assert_int_equal(wire_lease_return(wire, 9, 6, 2), 0);
	assert_int_equal(wire_total(wire, "few/__other__", CONSISTENCY_EXACT), 2);
	assert_int_equal(wire_lease_renew(wire, 10, 3, 5, 20), 5);
	wire_flush_durable(wire);
	end(wire);
	await_status(watch, "counters_expired", 5);
	(void)wire_free(watch);
	test_daemon_restart(daemon, number);

	watch = greet(daemon, 2, 0, 1);
	assert_int_equal(wire_total(watch, "brief/p", CONSISTENCY_EXACT), 16);
	assert_int_equal(wire_usage(watch, "brief/p"), 75);
	assert_int_equal(wire_total(watch, "few", CONSISTENCY_EXACT), 2);
	assert_int_equal(wire_usage(watch, "few"), 15);
	(void)wire_free(watch);
}

static void test_stopped(void **state)
{
	check_restart(*state, SIGTERM);
}

static void test_killed(void **state)
{
	check_restart(*state, SIGKILL);
}

/* The daemon that is killed knew of the end, and its file does not; a lease whose grant it did not have either comes and ends again. */
static void test_replayed(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = greet(daemon, 1, 60000, 1);
	struct request lease = {
		.type = REQUEST_LEASE,
		.lease = { .number = 3,
			   .lease = 2,
			   .path = text_of("brief/p/b"),
			   .want = 20,
			   .ttl_ms = 60000 },
	};

	assert_int_equal(wire_lease(wire, 1, 1, "brief/p/a", 30, 60000), 30);
	wire_flush_durable(wire);
	assert_int_equal(wire_lease_return(wire, 2, 1, 10), 0);
	assert_int_equal(wire_call(wire, &lease).leased.granted, 20);
	assert_int_equal(wire_lease_return(wire, 4, 2, 1), 0);
	(void)wire_free(wire);
	test_daemon_restart(daemon, SIGKILL);

	wire = greet(daemon, 1, 60000, 2);
	assert_int_equal(wire_usage(wire, "brief/p"), 30);
	expect_leases(wire, "brief/p", 1);
	assert_int_equal(wire_lease_return(wire, 2, 1, 10), 0);
	lease.known = (struct known){ .present = true, .done = true, .granted = 20 };
	assert_int_equal(wire_call(wire, &lease).leased.granted, 20);
	assert_int_equal(wire_lease_return(wire, 4, 2, 1), 0);
	await_status(wire, "counters_expired", 2);
	assert_int_equal(wire_total(wire, "brief/p", CONSISTENCY_EXACT), 11);
	assert_int_equal(wire_usage(wire, "brief/p"), 50);
	(void)wire_free(wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ways_to_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replayed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
