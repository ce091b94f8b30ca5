/*
 * The daemon is away for three seconds while threads add as fast as they can: nothing waits, nothing is lost, and memory does not grow.
 */
#include "tests/integration/ration/world.h"
#include "tests/support/proxy.h"
#include "tests/support/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	N_THREADS = 2,
	N_COUNTERS = 200
};

struct adder {
	struct ration_counter **counters;
	_Atomic(bool) *stop;
	int64_t sum;
	int64_t longest_ms; /* between two hundred adds */
};

struct moment {
	int64_t wall_ms, cpu_ms, sleeps;
};

static struct moment moment_now(void)
{
	struct rusage is;

	assert_int_equal(getrusage(RUSAGE_THREAD, &is), 0);
	return (struct moment){ .wall_ms = test_now_ms(),
				.cpu_ms = (is.ru_utime.tv_sec + is.ru_stime.tv_sec) * 1000 +
					  (is.ru_utime.tv_usec + is.ru_stime.tv_usec) / 1000,
				.sleeps = is.ru_nvcsw };
}

/* How long this thread has slept or computed; not how long others had its processor, if it did not sleep at all. */
static int64_t took_ms(struct moment before, struct moment now)
{
	return now.sleeps != before.sleeps ? now.wall_ms - before.wall_ms
					   : now.cpu_ms - before.cpu_ms;
}

static void *add_at_full_speed(void *arg)
{
	struct adder *adder = arg;
	struct moment before = moment_now();

	while (!atomic_load_explicit(adder->stop, memory_order_relaxed)) {
		struct moment now;

		for (int i = 0; i < N_COUNTERS; i++) {
			ration_add(adder->counters[i], 3);
		}
		adder->sum += 3 * N_COUNTERS;
		now = moment_now();
		if (took_ms(before, now) > adder->longest_ms) {
			adder->longest_ms = took_ms(before, now);
		}
		before = now;
	}
	return NULL;
}

/* Run `away` for three seconds, in the middle of adds, and look at what was kept. */
static void run_with(struct test_daemon *daemon, struct proxy *proxy,
		     void (*set_away)(struct test_daemon *, struct proxy *, bool))
{
	struct ration *client = world_open(proxy->url, 5);
	struct ration_counter *counters[N_COUNTERS];
	struct adder adders[N_THREADS];
	pthread_t threads[N_THREADS];
	_Atomic(bool) stop = false;
	int64_t rss, growth, sum = 0;

	for (int i = 0; i < N_COUNTERS; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "away/%d", i);
		counters[i] = ration_counter(client, path);
	}
	for (int t = 0; t < N_THREADS; t++) {
		adders[t] = (struct adder){ .counters = counters, .stop = &stop };
		assert_int_equal(pthread_create(&threads[t], NULL, add_at_full_speed, &adders[t]),
				 0);
	}
	(void)usleep(300000);
	set_away(daemon, proxy, true);
	(void)usleep(200000);
	rss = world_rss();
	(void)usleep(2800000);
	growth = world_rss() - rss;
	set_away(daemon, proxy, false);
	(void)usleep(300000);
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	for (int t = 0; t < N_THREADS; t++) {
		assert_int_equal(pthread_join(threads[t], NULL), 0);
		sum += adders[t].sum;
	}
	for (int t = 0; t < N_THREADS; t++) {
		assert_in_range(adders[t].longest_ms, 0, 1000);
	}
	assert_int_equal(ration_flush(client, 30000), 0);
	assert_int_equal(world_total(daemon->url, "away"), sum);
	(void)fprintf(stderr, "%lld added, memory grew by %lld bytes while the daemon was away\n",
		      (long long)sum, (long long)growth);
	/* max_unacknowledged, and something for the allocator. */
	assert_true(growth < (8 << 20));
	world_close(client);
}

static void set_down(struct test_daemon *daemon, struct proxy *proxy, bool away)
{
	(void)daemon;
	proxy_set_down(proxy, away);
}

static void set_stopped(struct test_daemon *daemon, struct proxy *proxy, bool away)
{
	(void)proxy;
	test_daemon_signal(daemon, away ? SIGSTOP : SIGCONT);
}

static void test_unreachable(void **state)
{
	struct test_daemon *daemon = test_daemon_start(NULL);
	struct proxy *proxy = proxy_start(daemon->dir, daemon->socket);

	(void)state;
	run_with(daemon, proxy, set_down);
	proxy_stop(proxy);
	test_daemon_stop(daemon);
}

/* Connected, but the daemon does not get to run. */
static void test_stopped(void **state)
{
	struct test_daemon *daemon = test_daemon_start(NULL);
	struct proxy *proxy = proxy_start(daemon->dir, daemon->socket);

	(void)state;
	run_with(daemon, proxy, set_stopped);
	proxy_stop(proxy);
	test_daemon_stop(daemon);
}

/*
 * Killed and started anew. It keeps no file, so it counts from zero: all that was not acknowledged by the one before, and nothing else.
 */
static void test_started_anew(void **state)
{
	struct test_daemon *daemon = test_daemon_start(NULL);
	struct ration *client = world_open(daemon->url, 2);
	struct ration_counter *a = ration_counter(client, "anew/a");
	struct ration_counter *b = ration_counter(client, "anew/b");

	(void)state;
	for (int i = 0; i < 5; i++) {
		ration_add(a, 100);
		assert_int_equal(ration_flush(client, 30000), 0);
		assert_int_equal(world_total(daemon->url, "anew"), i == 0 ? 100 : 7 + 100);
		test_daemon_signal(daemon, SIGKILL);
		(void)test_daemon_wait(daemon);
		ration_add(a, 3);
		ration_add(b, 4);
		(void)usleep(20000);
		test_daemon_spawn(daemon, NULL);
		test_daemon_await(daemon, "READY=1");
		assert_int_equal(ration_flush(client, 30000), 0);
		assert_int_equal(world_total(daemon->url, "anew"), 7);
	}
	world_close(client);
	test_daemon_stop(daemon);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unreachable),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_started_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
