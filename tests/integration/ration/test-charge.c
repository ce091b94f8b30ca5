/*
 * Charges against the real daemon: over a thousand cuts, with callers that give up, holders that are killed, a daemon that is stopped.
 */
#include "tests/integration/ration/world.h"
#include "tests/support/proxy.h"
#include "tests/support/test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 30000

static int setup(void **state)
{
	*state = test_daemon_start("[metric jobs]\nkind = gauge\n");
	return 0;
}

static int teardown(void **state)
{
	test_daemon_stop(*state);
	return 0;
}

static void set_max(struct ration *client, const char *path, int64_t max)
{
	struct ration_limits limits = RATION_LIMITS_INIT;

	limits.has_max = true;
	limits.max = max;
	assert_int_equal(ration_quota_set(client, path, &limits, PATIENCE_MS, NULL, NULL), 0);
}

static int charge(struct ration *client, const char *path, int64_t n, uint32_t wait_ms,
		  int timeout_ms)
{
	const struct ration_charge_item item = { path, n };
	struct ration_charge_options options = RATION_CHARGE_OPTIONS_INIT;

	options.wait_ms = wait_ms;
	return ration_charge(client, &item, 1, &options, timeout_ms, NULL);
}

static void expect_total(struct ration *client, const char *path, int64_t total)
{
	struct ration_value value = { .total = -1 };

	for (int i = 0; i < 1000 && value.total != total; i++) {
		assert_int_equal(
			ration_get(client, &path, 1, RATION_EXACT, PATIENCE_MS, &value, NULL), 0);
		(void)usleep(10000);
	}
	assert_int_equal(value.total, total);
}

/* ---- a thousand cuts ---- */

enum {
	N_CLIENTS = 12,
	N_CUTS = 1000,
	MAX_JOBS = 40
};

struct charger {
	const struct proxy *proxy;
	struct ration *client;
	uint64_t stream;
	int timeout_ms;
	char job[32], request[32];
	int64_t held, counted;
	int64_t n_granted, n_refused, n_given_up;
	int fault;
};

static bool go_on(const struct charger *charger)
{
	return atomic_load_explicit(&charger->proxy->n_cuts, memory_order_relaxed) < N_CUTS;
}

/* One charge, of a gauge and a counter together. */
static void charge_once(struct charger *charger, int64_t n)
{
	const struct ration_charge_item items[] = { { charger->job, n }, { charger->request, n } };
	int r = ration_charge(charger->client, items, 2, NULL, charger->timeout_ms, NULL);

	if (r == 0) {
		charger->held += n;
		charger->counted += n;
		charger->n_granted++;
	} else if (r == RATION_RESOURCE_EXHAUSTED) {
		charger->n_refused++;
	} else if (r == -ETIMEDOUT || r == -ENOTCONN) {
		charger->n_given_up++;
	} else {
		charger->fault = r;
	}
}

static void uncharge_once(struct charger *charger, int64_t n)
{
	int r = ration_uncharge(charger->client, charger->job, n, false, charger->timeout_ms);

	/* At the end of its time it is done nevertheless, when the daemon is heard again. */
	if (r == 0 || r == -ETIMEDOUT) {
		charger->held -= n;
	} else if (r != -ENOTCONN) {
		charger->fault = r;
	}
}

static void *charge_over_cuts(void *arg)
{
	struct charger *charger = arg;
	struct test_random random;

	test_random_init(&random, charger->stream);
	while (go_on(charger) && charger->fault == 0) {
		int64_t n = 1 + (int64_t)test_random_below(&random, 6);

		if (charger->held >= n && test_random_below(&random, 2) == 0) {
			uncharge_once(charger, n);
		} else {
			charge_once(charger, n);
		}
	}
	return NULL;
}

static void begin_charging(struct charger *charger, pthread_t *ret_thread)
{
	charger->client = world_open(charger->proxy->url, 20);
	(void)snprintf(charger->job, sizeof(charger->job), "jobs/%u", (unsigned)charger->stream);
	(void)snprintf(charger->request, sizeof(charger->request), "requests/%u",
		       (unsigned)charger->stream);
	assert_int_equal(pthread_create(ret_thread, NULL, charge_over_cuts, charger), 0);
}

static void charge_all(struct test_daemon *daemon, struct charger chargers[N_CLIENTS],
		       int timeout_ms)
{
	struct proxy *proxy = proxy_start(daemon->dir, daemon->socket);
	struct ration *watcher = world_open(daemon->url, 20);
	pthread_t threads[N_CLIENTS];

	set_max(watcher, "jobs", MAX_JOBS);
	/* Declares it by a limit, so that it can be charged. */
	set_max(watcher, "requests", INT64_C(1) << 60);
	proxy_cut_after(proxy, 1, 2000, N_CUTS);
	for (int i = 0; i < N_CLIENTS; i++) {
		chargers[i] = (struct charger){ .proxy = proxy,
						.stream = (uint64_t)i + 1,
						.timeout_ms = timeout_ms };
		begin_charging(&chargers[i], &threads[i]);
	}
	for (int i = 0; i < N_CLIENTS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(chargers[i].fault, 0);
	}
	for (int i = 0; i < N_CLIENTS; i++) {
		expect_total(watcher, chargers[i].job, chargers[i].held);
		if (chargers[i].n_given_up == 0) {
			expect_total(watcher, chargers[i].request, chargers[i].counted);
		}
	}
	/* Closing gives back the rest. */
	for (int i = 0; i < N_CLIENTS; i++) {
		world_close(chargers[i].client);
	}
	expect_total(watcher, "jobs", 0);
	world_close(watcher);
	proxy_stop(proxy);
}

static void test_a_thousand_cuts(void **state)
{
	static struct charger chargers[N_CLIENTS];
	int64_t granted = 0, refused = 0;

	charge_all(*state, chargers, PATIENCE_MS);
	for (int i = 0; i < N_CLIENTS; i++) {
		assert_int_equal(chargers[i].n_given_up, 0);
		granted += chargers[i].n_granted;
		refused += chargers[i].n_refused;
	}
	assert_true(granted > 0);
	assert_true(refused > 0);
	(void)fprintf(stderr, "%lld granted, %lld refused\n", (long long)granted,
		      (long long)refused);
}

/* What is granted to somebody who has given up is given back. */
static void test_a_thousand_cuts_without_patience(void **state)
{
	static struct charger chargers[N_CLIENTS];
	int64_t given_up = 0;

	charge_all(*state, chargers, 1);
	for (int i = 0; i < N_CLIENTS; i++) {
		given_up += chargers[i].n_given_up;
	}
	(void)fprintf(stderr, "%lld given up\n", (long long)given_up);
}

/* ---- holders that end ---- */

#if CHILDREN_MAY_HAVE_THREADS

static struct ration *open_with_lifetime(const char *url, uint32_t lifetime_ms)
{
	struct ration_options options = RATION_OPTIONS_INIT;

	options.session_lifetime_ms = lifetime_ms;
	return ration_open(url, &options);
}

/* A process that holds all there is, and says so. */
static pid_t hold_all(const struct test_daemon *daemon, uint32_t lifetime_ms)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct ration *client = open_with_lifetime(daemon->url, lifetime_ms);

		if (client == NULL || charge(client, "jobs/a", 5, 0, PATIENCE_MS) != 0 ||
		    write(ready[1], "x", 1) != 1) {
			_exit(1);
		}
		for (;;) {
			(void)pause();
		}
	}
	assert_int_equal(close(ready[1]), 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(close(ready[0]), 0);
	return pid;
}

static void kill_and_expect(const struct test_daemon *daemon, uint32_t lifetime_ms,
			    int64_t at_least_ms, int64_t at_most_ms)
{
	struct ration *client = world_open(daemon->url, 20);
	pid_t pid;
	int64_t begun;

	set_max(client, "jobs", 5);
	pid = hold_all(daemon, lifetime_ms);
	assert_int_equal(charge(client, "jobs/b", 1, 0, PATIENCE_MS), RATION_RESOURCE_EXHAUSTED);
	begun = test_now_ms();
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(charge(client, "jobs/b", 5, PATIENCE_MS, PATIENCE_MS), 0);
	assert_in_range(test_now_ms() - begun, at_least_ms, at_most_ms);
	world_close(client);
}

static void test_killed_holders_give_back(void **state)
{
	kill_and_expect(*state, 0, 0, 5000);
	kill_and_expect(*state, 700, 650, 8000);
}

static void test_a_child_holds_nothing(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 20);
	int status = -1;
	pid_t pid;

	assert_int_equal(charge(client, "jobs/a", 5, 0, PATIENCE_MS), 0);
	pid = fork();
	if (pid == 0) {
		int r = ration_uncharge(client, "jobs/a", 1, false, PATIENCE_MS);

		if (r != RATION_FAILED_PRECONDITION ||
		    charge(client, "jobs/a", 2, 0, PATIENCE_MS) != 0 ||
		    ration_close(client, PATIENCE_MS, NULL) != 0) {
			_exit(1);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	expect_total(client, "jobs/a", 5);
	assert_int_equal(ration_uncharge(client, "jobs/a", 5, false, PATIENCE_MS), 0);
	world_close(client);
}

#endif

/* ---- a daemon that stops ---- */

static void stop(struct test_daemon *daemon)
{
	test_daemon_signal(daemon, SIGSTOP);
	assert_int_equal(waitpid(daemon->pid, NULL, WUNTRACED), daemon->pid);
}

static void test_a_stopped_daemon(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 20);

	assert_int_equal(charge(client, "jobs/a", 3, 0, PATIENCE_MS), 0);
	stop(daemon);
	assert_int_equal(charge(client, "jobs/a", 4, 0, 200), -ETIMEDOUT);
	assert_int_equal(ration_uncharge(client, "jobs/a", 1, false, 200), -ETIMEDOUT);
	test_daemon_signal(daemon, SIGCONT);
	/* The charge is undone, the uncharge done. */
	assert_int_equal(charge(client, "jobs/b", 1, 0, PATIENCE_MS), 0);
	expect_total(client, "jobs/a", 2);
	world_close(client);
}

static void test_waiting_for_room(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 20), *other = world_open(daemon->url, 20);
	int64_t begun;

	set_max(client, "jobs", 5);
	assert_int_equal(charge(client, "jobs/a", 5, 0, PATIENCE_MS), 0);
	begun = test_now_ms();
	assert_int_equal(charge(other, "jobs/a", 1, 300, PATIENCE_MS), RATION_RESOURCE_EXHAUSTED);
	assert_in_range(test_now_ms() - begun, 290, 5000);
	/* Never: more than there may be. */
	begun = test_now_ms();
	assert_int_equal(charge(other, "jobs/a", 6, 10000, PATIENCE_MS), RATION_RESOURCE_EXHAUSTED);
	assert_in_range(test_now_ms() - begun, 0, 5000);
	world_close(client);
	assert_int_equal(charge(other, "jobs/a", 5, PATIENCE_MS, PATIENCE_MS), 0);
	world_close(other);
}

static void test_detached_charges_stay(void **state)
{
	struct test_daemon *daemon = *state;
	const struct ration_charge_item item = { "jobs/a", 3 };
	struct ration_charge_options options = RATION_CHARGE_OPTIONS_INIT;
	struct ration *client = world_open(daemon->url, 20);

	options.detached = true;
	assert_int_equal(ration_charge(client, &item, 1, &options, PATIENCE_MS, NULL), 0);
	assert_int_equal(ration_uncharge(client, "jobs/a", 3, false, PATIENCE_MS),
			 RATION_FAILED_PRECONDITION);
	world_close(client);
	client = world_open(daemon->url, 20);
	expect_total(client, "jobs/a", 3);
	assert_int_equal(ration_uncharge(client, "jobs/a", 4, true, PATIENCE_MS),
			 RATION_FAILED_PRECONDITION);
	assert_int_equal(ration_uncharge(client, "jobs/a", 3, true, PATIENCE_MS), 0);
	expect_total(client, "jobs/a", 0);
	world_close(client);
}

static void test_errors(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 20);

	assert_int_equal(charge(client, "nobody/knows/it", 1, 0, PATIENCE_MS), RATION_NOT_FOUND);
	assert_int_equal(charge(client, "jobs//a", 1, 0, PATIENCE_MS), RATION_INVALID_ARGUMENT);
	assert_int_equal(ration_uncharge(client, "jobs/a", 1, false, PATIENCE_MS) > 0, 1);
	/* And numbers go on. */
	assert_int_equal(charge(client, "jobs/a", 1, 0, PATIENCE_MS), 0);
	world_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_a_thousand_cuts),
		TEST(test_a_thousand_cuts_without_patience),
#if CHILDREN_MAY_HAVE_THREADS
		TEST(test_killed_holders_give_back),
		TEST(test_a_child_holds_nothing),
#endif
		TEST(test_a_stopped_daemon),
		TEST(test_waiting_for_room),
		TEST(test_detached_charges_stay),
		TEST(test_errors),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
