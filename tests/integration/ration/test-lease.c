/*
 * Leases against the real daemon: whatever happens to clients and daemon, no more is spent than a limit allows, and totals get what was spent.
 */
#include "tests/integration/ration/world.h"
#include "tests/support/test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
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

static void sleep_ms(int ms)
{
	(void)usleep((useconds_t)ms * 1000);
}

static void set_max(struct ration *client, const char *path, int64_t max)
{
	struct ration_limits limits = RATION_LIMITS_INIT;

	limits.has_max = true;
	limits.max = max;
	assert_int_equal(ration_quota_set(client, path, &limits, PATIENCE_MS, NULL, NULL), 0);
}

static int charge(struct ration *client, const char *path, int64_t n, uint32_t wait_ms)
{
	const struct ration_charge_item item = { path, n };
	struct ration_charge_options options = RATION_CHARGE_OPTIONS_INIT;

	options.wait_ms = wait_ms;
	return ration_charge(client, &item, 1, &options, PATIENCE_MS, NULL);
}

static struct ration_lease *open_lease(struct ration *client, const char *path, int64_t want)
{
	struct ration_lease *lease = ration_lease_open(client, path, want, 1000, NULL);

	assert_non_null(lease);
	return lease;
}

static struct ration_lease_info info_of(struct ration_lease *lease)
{
	struct ration_lease_info info = RATION_LEASE_INFO_INIT;

	ration_lease_get(lease, &info);
	return info;
}

/* What clients have in advance at `path` and below. */
static int64_t leased_units(struct ration *client, const char *path)
{
	struct ration_explanation *explanation = NULL;
	int64_t units = 0;
	int r = ration_quota_explain(client, path, PATIENCE_MS, &explanation);

	if (r == RATION_NOT_FOUND) {
		return 0;
	}
	assert_int_equal(r, 0);
	for (size_t i = 0; i < explanation->n_leases; i++) {
		units += explanation->leases[i].units;
	}
	ration_explanation_free(explanation);
	return units;
}

/* ---- many who spend from one limit ---- */

enum {
	N_CLIENTS = 3,
	N_THREADS = 2, /* of each */
	MAX = 100000
};

struct spender {
	pthread_t thread;
	struct ration_lease *lease;
	int64_t taken;
};

static void *spend(void *arg)
{
	struct spender *spender = arg;
	int dry = 0;

	/* Until nothing has come for a while. */
	while (dry < 300) {
		if (ration_try(spender->lease, 1, RATION_CLOSED)) {
			spender->taken++;
			dry = 0;
		} else {
			dry++;
			sleep_ms(10);
		}
	}
	return NULL;
}

static void test_all_is_spent_and_no_more(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *watcher = world_open(daemon->url, 20), *clients[N_CLIENTS];
	struct spender spenders[N_CLIENTS][N_THREADS];
	int64_t taken = 0, unspent = 0;

	set_max(watcher, "requests", MAX);
	for (int i = 0; i < N_CLIENTS; i++) {
		char path[32];
		struct ration_lease *lease;

		(void)snprintf(path, sizeof(path), "requests/%d", i);
		clients[i] = world_open(daemon->url, 20);
		lease = open_lease(clients[i], path, 1000);
		for (int j = 0; j < N_THREADS; j++) {
			spenders[i][j] = (struct spender){ .lease = lease };
			assert_int_equal(pthread_create(&spenders[i][j].thread, NULL, spend,
							&spenders[i][j]),
					 0);
		}
	}
	for (int i = 0; i < N_CLIENTS; i++) {
		int64_t left = 0;

		for (int j = 0; j < N_THREADS; j++) {
			(void)pthread_join(spenders[i][j].thread, NULL);
			taken += spenders[i][j].taken;
		}
		assert_int_equal(ration_lease_close(spenders[i][0].lease, PATIENCE_MS, &left), 0);
		unspent += left;
		world_close(clients[i]);
	}
	assert_int_equal(taken + unspent, MAX);
	assert_int_equal(unspent, 0);
	assert_int_equal(world_total(daemon->url, "requests"), taken);
	assert_int_equal(charge(watcher, "requests/0", 1, 0), RATION_RESOURCE_EXHAUSTED);
	world_close(watcher);
}

/* ---- a gauge, by clients that live, die, and are slow ---- */

static void test_units_go_round(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 20);
	struct ration_lease *lease;
	int64_t unspent = 0;

	set_max(client, "jobs", 100);
	lease = open_lease(client, "jobs/a", 40);
	assert_int_equal(ration_lease_wait(lease, PATIENCE_MS), 0);
	/* Alive: renewed over and over, with units taken and given back. */
	for (int i = 0; i < 250; i++) {
		assert_true(ration_try(lease, 10, RATION_CLOSED));
		sleep_ms(10);
		ration_give(lease, 10);
	}
	assert_true(info_of(lease).expires_in_ms > 0);
	assert_int_equal(info_of(lease).spent, 0);
	assert_true(ration_try(lease, 15, RATION_CLOSED));
	assert_int_equal(ration_lease_close(lease, PATIENCE_MS, &unspent), 0);
	/* Those are held now, and the rest is there for others. */
	assert_int_equal(world_total(daemon->url, "jobs"), 15);
	assert_int_equal(charge(client, "jobs/b", 86, 0), RATION_RESOURCE_EXHAUSTED);
	assert_int_equal(charge(client, "jobs/b", 85, 0), 0);
	assert_int_equal(ration_uncharge(client, "jobs/a", 15, false, PATIENCE_MS), 0);
	assert_int_equal(charge(client, "jobs/b", 15, 0), 0);
	world_close(client);
	assert_int_equal(world_total(daemon->url, "jobs"), 0);
}

#if CHILDREN_MAY_HAVE_THREADS

/* What a child does: shared with it. */
struct watched {
	_Atomic(int64_t) taken;
	_Atomic(bool) ready, try_now, tried;
};

static void live(const struct test_daemon *daemon, struct watched *watched)
{
	struct ration_options options = RATION_OPTIONS_INIT;
	struct ration_lease *lease;
	struct ration *client;

	options.session_lifetime_ms = 1000;
	client = ration_open(daemon->url, &options);
	lease = ration_lease_open(client, "jobs/a", 60, 1000, NULL);
	if (lease == NULL || ration_lease_wait(lease, PATIENCE_MS) != 0) {
		_exit(1);
	}
	/* Till it has all that it wants; near a limit it comes in parts. */
	for (int i = 0; i < 10; i++) {
		if (ration_try(lease, 1, RATION_CLOSED)) {
			(void)atomic_fetch_add_explicit(&watched->taken, 1, memory_order_relaxed);
		}
		sleep_ms(5);
	}
	atomic_store_explicit(&watched->ready, true, memory_order_release);
	while (!atomic_load_explicit(&watched->try_now, memory_order_acquire)) {
	}
	while (ration_try(lease, 1, RATION_CLOSED)) {
		(void)atomic_fetch_add_explicit(&watched->taken, 1, memory_order_relaxed);
	}
	atomic_store_explicit(&watched->tried, true, memory_order_release);
	for (;;) {
		(void)pause();
	}
}

static pid_t start_child(const struct test_daemon *daemon, struct watched *watched)
{
	pid_t pid = fork();

	if (pid == 0) {
		live(daemon, watched);
	}
	while (!atomic_load_explicit(&watched->ready, memory_order_acquire)) {
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		sleep_ms(5);
	}
	return pid;
}

static struct watched *watched_new(void)
{
	struct watched *watched = mmap(NULL, sizeof(*watched), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(watched != MAP_FAILED);
	return watched;
}

static void test_a_client_that_dies(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 20);
	struct watched *watched = watched_new();
	pid_t pid;

	set_max(client, "jobs", 100);
	pid = start_child(daemon, watched);
	assert_int_equal(charge(client, "jobs/b", 100, 0), RATION_RESOURCE_EXHAUSTED);
	assert_true(leased_units(client, "jobs/a") > 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* Spent or not, all goes back with its session. */
	assert_int_equal(charge(client, "jobs/b", 100, PATIENCE_MS), 0);
	assert_int_equal(leased_units(client, "jobs/a"), 0);
	(void)munmap(watched, sizeof(*watched));
	world_close(client);
}

/* Stopped for longer than its lease: what it may have spent stays charged, and it goes on as if nothing were. */
static void test_a_client_that_is_slow(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 20);
	struct watched *watched = watched_new();
	int64_t taken, room;
	pid_t pid;

	set_max(client, "jobs", 100);
	pid = start_child(daemon, watched);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	sleep_ms(2500);
	for (room = 100; room > 0 && charge(client, "jobs/b", room, 0) != 0;) {
		room--;
	}
	assert_in_range(room, 1, 90);
	atomic_store_explicit(&watched->try_now, true, memory_order_release);
	assert_int_equal(kill(pid, SIGCONT), 0);
	while (!atomic_load_explicit(&watched->tried, memory_order_acquire)) {
		sleep_ms(5);
	}
	taken = atomic_load_explicit(&watched->taken, memory_order_relaxed);
	assert_true(taken >= 10);
	assert_true(taken + room <= 100);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)munmap(watched, sizeof(*watched));
	world_close(client);
}

#endif

/* ---- the daemon ---- */

static void stop(struct test_daemon *daemon)
{
	test_daemon_signal(daemon, SIGSTOP);
	assert_int_equal(waitpid(daemon->pid, NULL, WUNTRACED), daemon->pid);
}

static void test_a_stopped_daemon(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 20);
	struct ration_lease *lease;
	int64_t taken = 0, unspent = 0;

	set_max(client, "requests", 100);
	lease = open_lease(client, "requests/a", 40);
	assert_int_equal(ration_lease_wait(lease, PATIENCE_MS), 0);
	while (info_of(lease).left < 40) {
		sleep_ms(5);
	}
	stop(daemon);
	assert_true(ration_try(lease, 5, RATION_CLOSED));
	sleep_ms(1500);
	assert_false(ration_try(lease, 1, RATION_CLOSED));
	assert_true(ration_try(lease, 7, RATION_OPEN));
	assert_true(ration_try(lease, 10, RATION_LAST_LEASE));
	test_daemon_signal(daemon, SIGCONT);
	assert_int_equal(ration_lease_wait(lease, PATIENCE_MS), 0);
	for (int dry = 0; dry < 200; dry++) {
		while (ration_try(lease, 1, RATION_CLOSED)) {
			taken++;
			dry = 0;
		}
		sleep_ms(10);
	}
	/* What was granted openly counts as usage too. */
	assert_in_range(taken, 100 - 15 - 7, 100 - 15);
	assert_int_equal(ration_lease_close(lease, PATIENCE_MS, &unspent), 0);
	world_close(client);
	assert_int_equal(world_total(daemon->url, "requests"), taken + 15 + 7);
}

static void test_another_daemon(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 20);
	struct ration_lease *lease;

	assert_int_equal(charge(client, "jobs/held", 5, 0), 0);
	set_max(client, "jobs", 100);
	lease = open_lease(client, "jobs/a", 40);
	assert_int_equal(ration_lease_wait(lease, PATIENCE_MS), 0);
	assert_true(ration_try(lease, 5, RATION_CLOSED));
	test_daemon_signal(daemon, SIGKILL);
	(void)test_daemon_wait(daemon);
	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
	/* What was held is gone with it; a lease is taken anew. */
	while (leased_units(client, "jobs") == 0) {
		sleep_ms(5);
	}
	assert_int_equal(ration_uncharge(client, "jobs/held", 5, false, PATIENCE_MS) > 0, 1);
	assert_int_equal(ration_lease_wait(lease, PATIENCE_MS), 0);
	assert_int_equal(info_of(lease).spent, 5);
	ration_give(lease, 5);
	assert_int_equal(info_of(lease).spent, 0);
	assert_int_equal(ration_lease_close(lease, PATIENCE_MS, NULL), 0);
	world_close(client);
}

static void test_a_child_has_no_leases(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 20);
	struct ration_lease *lease = open_lease(client, "jobs/a", 40);
	int status = -1;
	pid_t pid;

	assert_int_equal(ration_lease_wait(lease, PATIENCE_MS), 0);
	pid = fork();
	if (pid == 0) {
		bool bad = ration_try(lease, 1, RATION_CLOSED) ||
			   ration_try(lease, 1, RATION_OPEN) ||
			   ration_try(lease, 1, RATION_LAST_LEASE);

		_exit(bad || ration_lease_close(lease, 0, NULL) != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(ration_try(lease, 1, RATION_CLOSED));
	assert_int_equal(ration_lease_close(lease, PATIENCE_MS, NULL), 0);
	assert_int_equal(world_total(daemon->url, "jobs"), 1);
	world_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_all_is_spent_and_no_more),
		TEST(test_units_go_round),
#if CHILDREN_MAY_HAVE_THREADS
		TEST(test_a_client_that_dies),
		TEST(test_a_client_that_is_slow),
#endif
		TEST(test_a_stopped_daemon),
		TEST(test_another_daemon),
		TEST(test_a_child_has_no_leases),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
