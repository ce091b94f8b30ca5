/*
 * Many threads, many counters, one daemon: every total is exact.
 */
#include "tests/integration/ration/world.h"
#include "tests/support/test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum {
	N_THREADS = 8,
	N_COUNTERS = 100
};

static int setup(void **state)
{
	*state = test_daemon_start(NULL);
	return 0;
}

static int teardown(void **state)
{
	test_daemon_stop(*state);
	return 0;
}

struct adder {
	struct ration *client;
	struct ration_counter **counters;
	uint64_t stream;
	int64_t sums[N_COUNTERS];
};

static void *add_at_random(void *arg)
{
	struct adder *adder = arg;
	struct test_random random;

	test_random_init(&random, adder->stream);
	for (int i = 0; i < 200000; i++) {
		uint64_t which = test_random_below(&random, N_COUNTERS);
		int64_t n = (int64_t)test_random_below(&random, 1000);

		ration_add(adder->counters[which], n);
		adder->sums[which] += n;
		if (i % 50000 == 0) {
			assert_int_equal(ration_flush(adder->client, 30000), 0);
		}
	}
	return NULL;
}

static void test_threads_and_counters(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 5);
	struct ration_counter *counters[N_COUNTERS];
	struct ration_value values[N_COUNTERS];
	char names[N_COUNTERS][32];
	const char *paths[N_COUNTERS];
	static struct adder adders[N_THREADS];
	pthread_t threads[N_THREADS];
	int64_t total = 0;

	(void)test_seed();
	for (int i = 0; i < N_COUNTERS; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "exact/%d/%d", i % 7, i);
		paths[i] = names[i];
		counters[i] = ration_counter(client, names[i]);
	}
	for (int t = 0; t < N_THREADS; t++) {
		adders[t] = (struct adder){ .client = client,
					    .counters = counters,
					    .stream = (uint64_t)t };
		assert_int_equal(pthread_create(&threads[t], NULL, add_at_random, &adders[t]), 0);
	}
	for (int t = 0; t < N_THREADS; t++) {
		assert_int_equal(pthread_join(threads[t], NULL), 0);
	}
	assert_int_equal(ration_flush(client, 30000), 0);
	assert_int_equal(ration_get(client, paths, N_COUNTERS, RATION_EXACT, 30000, values, NULL),
			 0);
	for (int i = 0; i < N_COUNTERS; i++) {
		int64_t sum = 0;

		for (int t = 0; t < N_THREADS; t++) {
			sum += adders[t].sums[i];
		}
		assert_int_equal(values[i].code, 0);
		assert_int_equal(values[i].own, sum);
		assert_int_equal(values[i].total, sum);
		total += sum;
	}
	assert_int_equal(world_total(daemon->url, "exact"), total);
	world_close(client);
}

/* ---- over TCP, by number and by name ---- */

/* The port that the daemon says in its log that it got. */
static unsigned tcp_port(const struct test_daemon *daemon)
{
	char *log = test_daemon_log(daemon), *at;
	unsigned port;

	at = strstr(log, "listening on tcp:");
	assert_non_null(at);
	at = strpbrk(at + strlen("listening on tcp:"), "\n");
	assert_non_null(at);
	*at = '\0';
	port = (unsigned)strtoul(strrchr(log, ':') + 1, NULL, 10);
	free(log);
	return port;
}

static void test_tcp(void **state)
{
	static const char *const hosts[] = { "127.0.0.1", "localhost" };
	struct test_daemon *daemon = test_daemon_start("listen = tcp:127.0.0.1:0\n");
	unsigned port = tcp_port(daemon);

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ration *client;
		char url[64];

		(void)snprintf(url, sizeof(url), "tcp:%s:%u", hosts[i], port);
		client = world_open(url, 5);
		ration_add(ration_counter(client, "tcp/a"), 5);
		assert_int_equal(ration_flush(client, 30000), 0);
		assert_int_equal(world_total(url, "tcp"), 5 * (i + 1));
		world_close(client);
	}
	test_daemon_stop(daemon);
}

/* ---- in a signal handler ---- */

static struct ration_counter *signal_counter;
static _Atomic(int64_t) n_signals;

static void add_in_handler(int number)
{
	int before = errno;

	(void)number;
	ration_inc(signal_counter);
	ration_add(signal_counter, 2);
	(void)atomic_fetch_add_explicit(&n_signals, 1, memory_order_relaxed);
	errno = before;
}

/* The handler interrupts adds to the same counter at every point of them. */
static void test_signal_handler(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 2);
	struct sigaction action = { .sa_handler = add_in_handler, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };
	int64_t n = 0, signals;

	signal_counter = ration_counter(client, "signals/a");
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	while (n < 50000000 && atomic_load_explicit(&n_signals, memory_order_relaxed) < 3000) {
		for (int i = 0; i < 1000; i++) {
			ration_inc(signal_counter);
		}
		n += 1000;
	}
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	signals = atomic_load_explicit(&n_signals, memory_order_relaxed);
	assert_true(signals > 100);
	assert_int_equal(ration_flush(client, 30000), 0);
	assert_int_equal(world_total(daemon->url, "signals"), n + 3 * signals);
	world_close(client);
}

/* ---- walking while it grows ---- */

static bool see(void *ctx, const struct ration_entry *entry)
{
	int64_t *sum = ctx;

	*sum += entry->value.own;
	return true;
}

/* More counters than a page has, each seen once. */
static void test_walk_of_many(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 5);
	int64_t sum = 0;

	for (int i = 0; i < 10000; i++) {
		char path[40];

		(void)snprintf(path, sizeof(path), "walk/%d/%d", i % 100, i);
		ration_add(ration_counter(client, path), i);
	}
	assert_int_equal(ration_flush(client, 30000), 0);
	assert_int_equal(
		ration_walk(client, "walk", UINT32_MAX, RATION_EXACT, 30000, see, &sum, NULL), 0);
	assert_int_equal(sum, 10000LL * 9999 / 2);
	world_close(client);
}

struct asking {
	struct ration *client;
	size_t n;
};

static bool see_and_ask(void *ctx, const struct ration_entry *entry)
{
	struct asking *asking = ctx;
	struct ration_value value;

	assert_int_equal(
		ration_get(asking->client, &entry->path, 1, RATION_CACHED, 30000, &value, NULL), 0);
	asking->n++;
	return true;
}

static void test_visitor_may_ask(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 5);
	struct asking asking = { .client = client };

	ration_inc(ration_counter(client, "ask/a"));
	ration_inc(ration_counter(client, "ask/b"));
	assert_int_equal(ration_flush(client, 30000), 0);
	assert_int_equal(
		ration_walk(client, "ask", 1, RATION_EXACT, 30000, see_and_ask, &asking, NULL), 0);
	assert_int_equal(asking.n, 3);
	world_close(client);
}

static void find_sessions(void *ctx, const struct ration_status_item *item)
{
	if (strcmp(item->name, "sessions") == 0) {
		*(int64_t *)ctx = item->number;
	}
}

/* Programs that come, count and go: the daemon does not keep a session for each. */
static void test_short_lives_leave_nothing(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client;
	int64_t sessions = -1;

	for (int i = 0; i < 200; i++) {
		client = world_open(daemon->url, 1000);
		ration_inc(ration_counter(client, "lives/short"));
		world_close(client);
	}
	assert_int_equal(world_total(daemon->url, "lives/short"), 200);
	client = ration_open(daemon->url, NULL);
	assert_non_null(client);
	assert_int_equal(ration_status(client, 30000, find_sessions, &sessions), 0);
	/* This client's own, if it is there already, and the one before it, which was not connected long enough to say so. */
	assert_in_range(sessions, 0, 2);
	assert_int_equal(ration_close(client, 0, NULL), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_threads_and_counters, setup, teardown),
		cmocka_unit_test(test_tcp),
		cmocka_unit_test_setup_teardown(test_signal_handler, setup, teardown),
		cmocka_unit_test_setup_teardown(test_walk_of_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_visitor_may_ask, setup, teardown),
		cmocka_unit_test_setup_teardown(test_short_lives_leave_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
