/*
 * A daemon with a state file, killed at any moment and started anew on it: everything that libration reported as done has happened once.
 */
#include "tests/integration/ration/world.h"
#include "tests/support/proxy.h"
#include "tests/support/test.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	N_KILLS = 12,
	N_COUNTERS = 100
};

static struct test_daemon *start(const char *config)
{
	struct test_daemon *daemon = test_daemon_prepare(config);

	daemon->keeps = true;
	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
	return daemon;
}

static void start_again(struct test_daemon *daemon)
{
	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
}

static void kill_it(struct test_daemon *daemon)
{
	test_daemon_signal(daemon, SIGKILL);
	(void)test_daemon_wait(daemon);
}

/* ---- those who count meanwhile ---- */

struct busy {
	pthread_t thread;
	struct ration *client;
	_Atomic(bool) stop;
	_Atomic(uint64_t) turns; /* so that others can see it go on */
	int64_t sum;		 /* what must have been counted */
	int64_t held;
};

static void turn(struct busy *busy)
{
	(void)atomic_fetch_add_explicit(&busy->turns, 1, memory_order_relaxed);
}

static bool goes_on(struct busy *busy)
{
	return !atomic_load_explicit(&busy->stop, memory_order_relaxed);
}

static void *add(void *arg)
{
	struct busy *busy = arg;
	struct ration_counter *counters[N_COUNTERS];

	for (int i = 0; i < N_COUNTERS; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "added/%d/%d", i % 10, i);
		counters[i] = ration_counter(busy->client, path);
	}
	while (goes_on(busy)) {
		for (int i = 0; i < N_COUNTERS; i++) {
			ration_add(counters[i], i);
			busy->sum += i;
		}
		turn(busy);
		(void)usleep(200);
	}
	return NULL;
}

/* Whatever comes of a charge while the daemon is away: it was granted, and counts, or it was not, and does not. */
static void *charge_counters(void *arg)
{
	struct busy *busy = arg;

	while (goes_on(busy)) {
		const struct ration_charge_item items[] = { { "charged/a", 3 },
							    { "charged/b/c", 2 } };
		int r = ration_charge(busy->client, items, 2, NULL, 30000, NULL);

		assert_true(r == 0 || r == -ENOTCONN || r == RATION_RESOURCE_EXHAUSTED);
		busy->sum += r == 0 ? 5 : 0;
		turn(busy);
	}
	return NULL;
}

static void *hold_and_give_back(void *arg)
{
	struct busy *busy = arg;

	while (goes_on(busy)) {
		const struct ration_charge_item item = { "held/a", 2 };
		int r = ration_charge(busy->client, &item, 1, NULL, 30000, NULL);

		assert_true(r == 0 || r == -ENOTCONN);
		busy->held += r == 0 ? 2 : 0;
		if (busy->held >= 10) {
			do {
				r = ration_uncharge(busy->client, "held/a", 9, false, 30000);
				assert_true(r == 0 || r == -ENOTCONN);
			} while (r != 0);
			busy->held -= 9;
		}
		turn(busy);
	}
	return NULL;
}

static void *spend(void *arg)
{
	struct busy *busy = arg;
	struct ration_lease *lease = ration_lease_open(busy->client, "leased/a", 1000, 60000, NULL);

	assert_non_null(lease);
	while (goes_on(busy)) {
		for (int i = 0; i < 50; i++) {
			busy->sum += ration_try(lease, 1, RATION_CLOSED) ? 1 : 0;
		}
		turn(busy);
		(void)usleep(100);
	}
	assert_int_equal(ration_lease_close(lease, 30000, NULL), 0);
	return NULL;
}

enum {
	ADD,
	CHARGE,
	HOLD,
	SPEND,
	N_BUSY
};

static void begin(struct busy *all, struct ration *client)
{
	static void *(*const work[])(void *) = { add, charge_counters, hold_and_give_back, spend };

	for (int i = 0; i < N_BUSY; i++) {
		all[i].client = client;
		assert_int_equal(pthread_create(&all[i].thread, NULL, work[i], &all[i]), 0);
	}
}

/* Each goes round a few times. */
static void let_go_on(struct busy *all, uint64_t rounds)
{
	for (int i = 0; i < N_BUSY; i++) {
		uint64_t from = atomic_load_explicit(&all[i].turns, memory_order_relaxed);

		for (int waited = 0;
		     atomic_load_explicit(&all[i].turns, memory_order_relaxed) < from + rounds;
		     waited++) {
			assert_in_range(waited, 0, 300000);
			(void)usleep(100);
		}
	}
}

static void end(struct busy *all)
{
	for (int i = 0; i < N_BUSY; i++) {
		atomic_store_explicit(&all[i].stop, true, memory_order_relaxed);
	}
	for (int i = 0; i < N_BUSY; i++) {
		(void)pthread_join(all[i].thread, NULL);
	}
}

static void assert_all_counted(const struct test_daemon *daemon, const struct busy *all)
{
	(void)fprintf(stderr,
		      "added %" PRId64 ", charged %" PRId64 ", held %" PRId64 ", spent %" PRId64
		      "\n",
		      all[ADD].sum, all[CHARGE].sum, all[HOLD].held, all[SPEND].sum);
	assert_int_equal(world_total(daemon->url, "added"), all[ADD].sum);
	assert_int_equal(world_total(daemon->url, "charged"), all[CHARGE].sum);
	assert_int_equal(world_total(daemon->url, "held"), all[HOLD].held);
	assert_int_equal(world_total(daemon->url, "leased"), all[SPEND].sum);
}

static const char config[] = "[metric charged]\n[metric leased]\n[metric held]\nkind = gauge\n";

/* ---- kills ---- */

static void test_killed_at_random_moments(void **state)
{
	struct test_daemon *daemon = start(config);
	struct ration *client = world_open(daemon->url, 2);
	struct busy all[N_BUSY] = { 0 };
	struct test_random random;

	(void)state;
	test_random_init(&random, 0);
	begin(all, client);
	for (int i = 0; i < N_KILLS; i++) {
		let_go_on(all, 3);
		(void)usleep((useconds_t)test_random_below(&random, 250000));
		kill_it(daemon);
		(void)usleep((useconds_t)test_random_below(&random, 50000));
		start_again(daemon);
	}
	let_go_on(all, 3);
	end(all);
	assert_int_equal(ration_flush(client, 30000), 0);
	assert_all_counted(daemon, all);
	/* And what is durable is there without the client. */
	assert_int_equal(ration_flush_durable(client, 30000), 0);
	kill_it(daemon);
	start_again(daemon);
	assert_all_counted(daemon, all);
	/* It has to be connected to say that its session is over. */
	assert_int_equal(ration_flush_durable(client, 30000), 0);
	world_close(client);
	assert_int_equal(world_total(daemon->url, "held"), 0);
	test_daemon_stop(daemon);
}

/* Killed again right after the start, while clients tell it what it lacks; and connections break in between. */
static void test_killed_while_it_is_told(void **state)
{
	struct test_daemon *daemon = start(config);
	struct proxy *proxy = proxy_start(daemon->dir, daemon->socket);
	struct ration *client = world_open(proxy->url, 2);
	struct busy all[N_BUSY] = { 0 };
	struct test_random random;

	(void)state;
	test_random_init(&random, 0);
	begin(all, client);
	for (int i = 0; i < N_KILLS; i++) {
		let_go_on(all, 2);
		for (int k = 0; k < 3; k++) {
			kill_it(daemon);
			start_again(daemon);
			(void)usleep((useconds_t)test_random_below(&random, 60000));
			proxy_set_down(proxy, true);
			(void)usleep((useconds_t)test_random_below(&random, 5000));
			proxy_set_down(proxy, false);
			(void)usleep((useconds_t)test_random_below(&random, 60000));
		}
	}
	let_go_on(all, 3);
	end(all);
	assert_int_equal(ration_flush(client, 30000), 0);
	assert_all_counted(daemon, all);
	world_close(client);
	proxy_stop(proxy);
	test_daemon_stop(daemon);
}

/* ---- other ends ---- */

static void test_stopped_and_started(void **state)
{
	struct test_daemon *daemon = start(config);
	struct ration *client = world_open(daemon->url, 2);
	struct busy all[N_BUSY] = { 0 };

	(void)state;
	begin(all, client);
	for (int i = 0; i < 5; i++) {
		let_go_on(all, 3);
		test_daemon_signal(daemon, SIGTERM);
		assert_int_equal(test_daemon_wait(daemon), 0);
		start_again(daemon);
	}
	let_go_on(all, 3);
	end(all);
	assert_int_equal(ration_flush(client, 30000), 0);
	assert_all_counted(daemon, all);
	world_close(client);
	test_daemon_stop(daemon);
}

/* For longer than libration waits for an answer; then it is killed, too. */
static void test_held_up_for_longer_than_the_timeouts(void **state)
{
	struct test_daemon *daemon = start(config);
	struct ration *client = world_open(daemon->url, 2);
	struct busy all[N_BUSY] = { 0 };

	(void)state;
	begin(all, client);
	let_go_on(all, 3);
	test_daemon_signal(daemon, SIGSTOP);
	(void)usleep(12000000);
	test_daemon_signal(daemon, SIGCONT);
	let_go_on(all, 3);
	test_daemon_signal(daemon, SIGSTOP);
	(void)usleep(1000000);
	kill_it(daemon);
	start_again(daemon);
	let_go_on(all, 3);
	end(all);
	assert_int_equal(ration_flush(client, 30000), 0);
	assert_all_counted(daemon, all);
	world_close(client);
	test_daemon_stop(daemon);
}

/* ---- without a client ---- */

static void test_what_is_durable_needs_no_client(void **state)
{
	struct test_daemon *daemon = start(NULL);

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct ration *client = world_open(daemon->url, 2);

		ration_add(ration_counter(client, "durable/a"), 7);
		assert_int_equal(ration_flush_durable(client, 30000), 0);
		world_close(client);
		kill_it(daemon);
		start_again(daemon);
		assert_int_equal(world_total(daemon->url, "durable"), 7 * (i + 1));
	}
	test_daemon_stop(daemon);
}

static void test_a_daemon_without_a_file_says_so(void **state)
{
	struct test_daemon *daemon = test_daemon_start(NULL);
	struct ration *client = world_open(daemon->url, 2);

	(void)state;
	ration_add(ration_counter(client, "kept/a"), 7);
	assert_int_equal(ration_flush_durable(client, 30000), RATION_FAILED_PRECONDITION);
	assert_string_not_equal(ration_error(), "");
	assert_int_equal(world_total(daemon->url, "kept"), 7);
	world_close(client);
	test_daemon_stop(daemon);
}

/* ---- usage beyond max ---- */

/* What is stated: a grant that was not durable is granted again, though the room is another's by then; and nothing more until it fell. */
static void test_a_grant_stays_a_grant(void **state)
{
	struct test_daemon *daemon = start("[metric held]\nkind = gauge\n[quota held]\nmax = 10\n");
	struct ration *client = world_open(daemon->url, 2);
	const struct ration_charge_item items[] = { { "held/x", 10 } }, one = { "held/y", 1 };

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_int_equal(ration_charge(client, items, 1, NULL, 30000, NULL), 0);
		kill_it(daemon);
		start_again(daemon);
		/* Back with its charge, or never gone. */
		assert_int_equal(ration_flush(client, 30000), 0);
		while (ration_charge(client, &one, 1, NULL, 30000, NULL) == -ENOTCONN) {
			(void)usleep(1000);
		}
		assert_int_equal(world_total(daemon->url, "held"), 10);
		assert_int_equal(ration_uncharge(client, "held/x", 10, false, 30000), 0);
		assert_int_equal(world_total(daemon->url, "held"), 0);
	}
	world_close(client);
	test_daemon_stop(daemon);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed_at_random_moments),
		cmocka_unit_test(test_killed_while_it_is_told),
		cmocka_unit_test(test_stopped_and_started),
		cmocka_unit_test(test_held_up_for_longer_than_the_timeouts),
		cmocka_unit_test(test_what_is_durable_needs_no_client),
		cmocka_unit_test(test_a_daemon_without_a_file_says_so),
		cmocka_unit_test(test_a_grant_stays_a_grant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
