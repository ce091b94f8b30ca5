/*
 * Connections that are cut at random places a thousand times: the total is exact, nothing lost and nothing twice.
 */
#include "tests/integration/ration/world.h"
#include "tests/support/proxy.h"
#include "tests/support/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Several clients, so that the pauses before reconnecting overlap. */
enum {
	N_CLIENTS = 12,
	N_COUNTERS = 40,
	N_CUTS = 1000
};

struct adder {
	const struct proxy *proxy;
	uint64_t stream;
	int64_t sum;
};

static bool go_on(const struct adder *adder)
{
	return atomic_load_explicit(&adder->proxy->n_cuts, memory_order_relaxed) < N_CUTS;
}

/* Its client must end with everything delivered, which it may only be when the cuts are over. */
static void *add_over_cuts(void *arg)
{
	struct adder *adder = arg;
	struct ration *client = world_open(adder->proxy->url, 1);
	struct ration_counter *counters[N_COUNTERS];
	struct test_random random;

	test_random_init(&random, adder->stream);
	for (unsigned i = 0; i < N_COUNTERS; i++) {
		char path[40];

		/* Some of their own, some that all share. */
		(void)snprintf(path, sizeof(path), "cut/%u/%u",
			       i % 2 == 0 ? 0 : (unsigned)adder->stream, i);
		counters[i] = ration_counter(client, path);
	}
	while (go_on(adder)) {
		const struct timespec pause = { .tv_nsec = 100000 };

		for (int i = 0; i < 50; i++) {
			int64_t n = 1 + (int64_t)test_random_below(&random, 100);

			ration_add(counters[test_random_below(&random, N_COUNTERS)], n);
			adder->sum += n;
		}
		(void)nanosleep(&pause, NULL);
	}
	world_close(client);
	return NULL;
}

static void test_a_thousand_cuts(void **state)
{
	struct test_daemon *daemon = test_daemon_start(NULL);
	struct proxy *proxy = proxy_start(daemon->dir, daemon->socket);
	static struct adder adders[N_CLIENTS];
	pthread_t threads[N_CLIENTS];
	int64_t sum = 0;

	(void)state;
	proxy_cut_after(proxy, 1, 12000, N_CUTS);
	for (int i = 0; i < N_CLIENTS; i++) {
		adders[i] = (struct adder){ .proxy = proxy, .stream = (uint64_t)i + 1 };
		assert_int_equal(pthread_create(&threads[i], NULL, add_over_cuts, &adders[i]), 0);
	}
	for (int i = 0; i < N_CLIENTS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		sum += adders[i].sum;
	}
	assert_int_equal(atomic_load_explicit(&proxy->n_cuts, memory_order_relaxed), N_CUTS);
	assert_int_equal(world_total(daemon->url, "cut"), sum);
	proxy_stop(proxy);
	test_daemon_stop(daemon);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_thousand_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
