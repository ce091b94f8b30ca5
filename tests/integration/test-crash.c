/*
 * The daemon is killed at random moments under load, and started again on the same file: in the end everything has happened exactly once. Of each round's
 * clients one is killed with it.
 *
 * RATION_CRASHES says how often; RATION_SEED what is random.
 */
#include "clients/c/include/ration.h"
#include "tests/integration/crash-client.h"
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire-quota.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CRASHES 300u
#define CLIENTS 2u
#define MAX_MOMENT_US 60000u /* between the start and the end of a daemon */
#define PATIENCE_MS 60000

static unsigned n_crashes(void)
{
	const char *given = getenv("RATION_CRASHES");

	return given != NULL ? (unsigned)strtoul(given, NULL, 10) : CRASHES;
}

/* ---- clients that live on ---- */

struct adder {
	struct ration *client;
	pthread_t thread;
	_Atomic(bool) stop;
	uint64_t seed;
	int64_t sum[CRASH_PATHS];
};

static void *add_on(void *arg)
{
	struct adder *adder = arg;
	struct ration_counter *counters[CRASH_PATHS];
	struct test_random random;

	test_random_init(&random, adder->seed);
	for (unsigned i = 0; i < CRASH_PATHS; i++) {
		char path[16];

		(void)snprintf(path, sizeof(path), "lib/%u", i);
		counters[i] = ration_counter(adder->client, path);
	}
	while (!atomic_load_explicit(&adder->stop, memory_order_relaxed)) {
		for (unsigned n = 0; n < 100; n++) {
			unsigned i = (unsigned)test_random_below(&random, CRASH_PATHS);
			int64_t amount = 1 + (int64_t)test_random_below(&random, 100);

			ration_add(counters[i], amount);
			adder->sum[i] += amount;
		}
		(void)usleep(200);
	}
	return NULL;
}

static void start_adder(struct adder *adder, const char *url, uint64_t seed)
{
	struct ration_options options = RATION_OPTIONS_INIT;

	options.send_interval_ms = 2;
	*adder = (struct adder){ .client = ration_open(url, &options), .seed = seed };
	assert_non_null(adder->client);
	assert_int_equal(pthread_create(&adder->thread, NULL, add_on, adder), 0);
}

static void stop_adder(struct adder *adder)
{
	atomic_store_explicit(&adder->stop, true, memory_order_relaxed);
	(void)pthread_join(adder->thread, NULL);
	assert_int_equal(ration_flush_durable(adder->client, PATIENCE_MS), 0);
	assert_int_equal(ration_close(adder->client, PATIENCE_MS, NULL), 0);
}

/* ---- clients that die ---- */

static pid_t start_victim(struct crash_client *client)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		crash_client_run(client);
		_exit(0);
	}
	return pid;
}

static void kill_victim(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- the world ---- */

struct world {
	struct test_daemon *daemon;
	struct crash_sums *sums, *victims; /* of those that live on, of those that don't */
	struct crash_client clients[CLIENTS];
	struct adder adders[CLIENTS];
};

static struct crash_sums *share(void)
{
	void *memory = mmap(NULL, sizeof(struct crash_sums), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

/* `more`: lines of [daemon]. */
static void begin(struct world *world, const char *more)
{
	char config[1024];

	(void)snprintf(config, sizeof(config),
		       "workers = 2\n%s[metric held]\nkind = gauge\n[quota held/*]\nmax = 300\n"
		       "[quota spent]\nmax = 4T\nper = 31d\n",
		       more);
	*world = (struct world){ .daemon = test_daemon_prepare(config),
				 .sums = share(),
				 .victims = share() };
	world->daemon->keeps = true;
	test_daemon_spawn(world->daemon, NULL);
	test_daemon_await(world->daemon, "READY=1");
	for (unsigned i = 0; i < CLIENTS; i++) {
		world->clients[i] = (struct crash_client){ .socket = world->daemon->socket,
							   .session = 100 + i,
							   .seed = 1 + i,
							   .sums = world->sums };
		crash_client_start(&world->clients[i]);
		start_adder(&world->adders[i], world->daemon->url, 10 + i);
	}
}

/* Room that is left of "spent" in this window is as much as the totals say. */
static void check_window(struct wire *wire, int64_t used)
{
	const int64_t max = INT64_C(4000000000000);

	assert_false(wire_charge(wire, 1, "spent/rest", max - used + 1, NULL));
	assert_true(wire_charge(wire, 2, "spent/rest", max - used, NULL));
}

static void check_victims(struct wire *wire, const struct world *world, unsigned i)
{
	char path[32];
	int64_t total, mine = world->sums->added[i];

	(void)snprintf(path, sizeof(path), "adds/%u", i);
	total = wire_total(wire, path, CONSISTENCY_EXACT);
	/* What a client that was killed has sent may have been counted; what it was told is durable has been. */
	assert_in_range(total, mine + world->victims->durable[i], mine + world->victims->added[i]);
}

static void check_all(const struct world *world)
{
	struct wire *wire = wire_open(world->daemon->socket);
	int64_t spent = 0;

	(void)wire_greet(wire, 999, 0, 1);
	for (unsigned i = 0; i < CRASH_PATHS; i++) {
		int64_t lib = 0;
		char path[32];

		for (unsigned k = 0; k < CLIENTS; k++) {
			lib += world->adders[k].sum[i];
		}
		(void)snprintf(path, sizeof(path), "lib/%u", i);
		assert_int_equal(wire_total(wire, path, CONSISTENCY_EXACT), lib);
		check_victims(wire, world, i);
		(void)snprintf(path, sizeof(path), "spent/%u", i);
		assert_int_equal(wire_total(wire, path, CONSISTENCY_EXACT),
				 world->sums->charged[i]);
		spent += world->sums->charged[i];
		(void)snprintf(path, sizeof(path), "held/%u", i);
		assert_int_equal(wire_total(wire, path, CONSISTENCY_EXACT), world->sums->held[i]);
		assert_int_equal(wire_usage(wire, path), world->sums->held[i]);
	}
	check_window(wire, spent);
	(void)printf("spent %lld, refused %lld times, held %lld on held/0\n", (long long)spent,
		     (long long)world->sums->refused, (long long)world->sums->held[0]);
	(void)wire_free(wire);
}

static void end(struct world *world)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		atomic_store_explicit(&world->clients[i].stop, true, memory_order_relaxed);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		crash_client_join(&world->clients[i]);
		stop_adder(&world->adders[i]);
	}
	check_all(world);
	/* And so it stays. */
	test_daemon_restart(world->daemon, SIGKILL);
	test_daemon_stop(world->daemon);
	(void)munmap(world->sums, sizeof(*world->sums));
	(void)munmap(world->victims, sizeof(*world->victims));
}

/* ---- */

static void test_killed(void **state)
{
	struct test_random random;
	struct world world;

	(void)state;
	test_random_init(&random, 0);
	begin(&world, "checkpoint_interval = 10ms\n");
	for (unsigned n = n_crashes(); n > 0; n--) {
		/* It adds to paths that the others add to, and does not come back. */
		struct crash_client victim = { .socket = world.daemon->socket,
					       .session = 1000 + n,
					       .seed = 1000 + n,
					       .sums = world.victims,
					       .adds_only = true };
		pid_t pid = start_victim(&victim);

		(void)usleep((useconds_t)test_random_below(&random, MAX_MOMENT_US));
		kill_victim(pid);
		test_daemon_restart(world.daemon, SIGKILL);
	}
	end(&world);
}

#define STEPS 100u

/*
 * At every step of a start and of a checkpoint in turn: the program kills itself at the nth that it comes to. The file has what the steps before left, so
 * that later rounds begin with whatever that was.
 */
static void test_killed_at_steps(void **state)
{
	struct world world;
	char number[16];

	(void)state;
	begin(&world, "checkpoint_interval = 10ms\n");
	(void)setenv("RATIOND", RATIOND_HOOKED, 1);
	for (unsigned n = 1; n <= STEPS; n++) {
		int status;

		(void)snprintf(number, sizeof(number), "%u", n);
		(void)setenv("RATION_KILL_AT_STEP", number, 1);
		if (n == 1) {
			test_daemon_signal(world.daemon, SIGKILL);
			(void)test_daemon_wait(world.daemon);
		}
		test_daemon_drop_notifications(world.daemon);
		test_daemon_spawn(world.daemon, NULL);
		status = test_daemon_wait(world.daemon);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGKILL);
	}
	(void)unsetenv("RATION_KILL_AT_STEP");
	(void)unsetenv("RATIOND");
	test_daemon_spawn(world.daemon, NULL);
	end(&world);
}

/* Longer than any client waits for it, and then it goes on. */
static void test_stopped_for_long(void **state)
{
	struct world world;

	(void)state;
	begin(&world, "");
	for (unsigned n = 0; n < 3; n++) {
		(void)usleep(300000);
		test_daemon_signal(world.daemon, SIGSTOP);
		(void)usleep(2500000);
		test_daemon_signal(world.daemon, SIGCONT);
	}
	test_daemon_restart(world.daemon, SIGTERM);
	(void)usleep(300000);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_killed_at_steps),
		cmocka_unit_test(test_stopped_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
