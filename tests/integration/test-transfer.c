/*
 * MetricList, ImportCounters and Reset, against the real program.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	N_LONG = 40000,
	PATH_BYTES = 32
};

static const char config[] =
	"workers = 2\n[metric few]\nmax_counters = 3\n[metric jobs]\nkind = gauge\n"
	"[quota few]\nmax = 1000\n";

static int setup(void **state)
{
	*state = test_daemon_start(config);
	return 0;
}

static int teardown(void **state)
{
	test_daemon_stop(*state);
	return 0;
}

static struct wire *begin(struct test_daemon *daemon, uint8_t session)
{
	struct wire *wire = wire_open(daemon->socket);

	(void)wire_hello(wire, session, 0, 1, NULL);
	return wire;
}

static struct reply import(struct wire *wire, const struct import_item *items, size_t n)
{
	const struct request request = { .type = REQUEST_IMPORT,
					 .import = { .n_items = n, .items = items } };

	return wire_call(wire, &request);
}

static struct reply reset(struct wire *wire, const char *path)
{
	const struct request request = { .type = REQUEST_RESET, .reset = text_of(path) };

	return wire_call(wire, &request);
}

static void assert_total(struct wire *wire, const char *path, int64_t expected)
{
	assert_int_equal(wire_total(wire, path, CONSISTENCY_EXACT), expected);
}

/* ---- metrics ---- */

static void test_metrics_are_listed_by_name(void **state)
{
	struct wire *wire = begin(*state, 1);
	const struct request list = { .type = REQUEST_METRIC_LIST };
	struct reply reply;

	wire_intern(wire, 0, "zebras/a");
	wire_intern(wire, 1, "apes");
	wire_intern(wire, 2, "jobs/x");
	reply = wire_call(wire, &list);
	assert_int_equal(reply.type, REPLY_METRICS);
	assert_int_equal(reply.metrics.n_metrics, 4);
	assert_true(wire_text_is(reply.metrics.metrics[0].name, "apes"));
	assert_true(wire_text_is(reply.metrics.metrics[1].name, "few"));
	assert_int_equal(reply.metrics.metrics[1].max_counters, 3);
	assert_true(wire_text_is(reply.metrics.metrics[2].name, "jobs"));
	assert_int_equal(reply.metrics.metrics[2].kind, KIND_GAUGE);
	assert_true(wire_text_is(reply.metrics.metrics[3].name, "zebras"));
	assert_int_equal(reply.metrics.metrics[3].kind, KIND_COUNTER);
	(void)wire_free(wire);
}

/* ---- importing ---- */

static void test_own_values_are_set(void **state)
{
	struct wire *wire = begin(*state, 1);
	static const struct import_item items[] = {
		{ .path = { .at = "requests/acme/web", .len = 17 }, .own = 40 },
		{ .path = { .at = "requests", .len = 8 }, .own = 2 },
		{ .path = { .at = "jobs/a", .len = 6 }, .own = -7 },
		{ .path = { .at = "requests/acme/web", .len = 17 }, .own = 41 },
		{ .path = { .at = "few/a", .len = 5 }, .own = 600 },
	};
	struct reply reply;

	wire_intern(wire, 0, "requests/acme/web");
	(void)wire_add(wire, 1, 0, 5);
	reply = import(wire, items, 5);
	assert_int_equal(reply.type, REPLY_IMPORTED);
	assert_int_equal(reply.imported.n_errors, 0);
	assert_total(wire, "requests/acme/web", 41);
	assert_total(wire, "requests/acme", 41);
	assert_total(wire, "requests", 43);
	assert_total(wire, "jobs", -7);
	(void)wire_add(wire, 2, 0, 5);
	assert_total(wire, "requests", 48);

	/* Limits without a window have it too. */
	const struct charge_item item = { .path = text_of("few/a"), .amount = 401 };
	struct request charge = { .type = REQUEST_CHARGE,
				  .charge = { .number = 1, .n_items = 1, .items = &item } };
	assert_false(wire_call(wire, &charge).charged.granted);
	reply = reset(wire, "few");
	assert_int_equal(reply.type, REPLY_RESET);
	assert_int_equal(reply.reset.counters, 2);
	charge.charge.number = 2;
	assert_true(wire_call(wire, &charge).charged.granted);
	(void)wire_free(wire);
}

static void test_what_can_not_be_set_is_told(void **state)
{
	struct wire *wire = begin(*state, 1);
	static const struct import_item items[] = {
		{ .path = { .at = "a//b", .len = 4 }, .own = 1 },
		{ .path = { .at = "", .len = 0 }, .own = 1 },
		{ .path = { .at = "requests/a", .len = 10 }, .own = -1 },
		{ .path = { .at = "requests/b", .len = 10 }, .own = 1 },
		{ .path = { .at = "few/a", .len = 5 }, .own = 1 },
		{ .path = { .at = "few/b", .len = 5 }, .own = 1 },
		{ .path = { .at = "few/c", .len = 5 }, .own = 1 },
		{ .path = { .at = "big/a", .len = 5 }, .own = INT64_MAX },
		{ .path = { .at = "big/b", .len = 5 }, .own = 1 },
	};
	static const struct {
		uint32_t index, code;
	} expected[] = {
		{ 0, CODE_INVALID_ARGUMENT }, { 1, CODE_INVALID_ARGUMENT },
		{ 2, CODE_INVALID_ARGUMENT }, { 6, CODE_RESOURCE_EXHAUSTED },
		{ 8, CODE_OUT_OF_RANGE },
	};
	struct reply reply = import(wire, items, 9);

	assert_int_equal(reply.type, REPLY_IMPORTED);
	assert_int_equal(reply.imported.n_errors, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(reply.imported.errors[i].index, expected[i].index);
		assert_int_equal(reply.imported.errors[i].code, expected[i].code);
		assert_true(reply.imported.errors[i].text.len > 0);
	}
	assert_total(wire, "requests", 1);
	assert_total(wire, "few", 2);
	assert_total(wire, "big", INT64_MAX);
	(void)wire_free(wire);
}

/* ---- resetting ---- */

static void test_what_can_not_be_reset_is_told(void **state)
{
	struct wire *wire = begin(*state, 1);

	assert_int_equal(reset(wire, "").error.code, CODE_INVALID_ARGUMENT);
	assert_int_equal(reset(wire, "a//b").error.code, CODE_INVALID_ARGUMENT);
	assert_int_equal(reset(wire, "nothing/here").error.code, CODE_NOT_FOUND);
	(void)wire_free(wire);
}

static void test_siblings_stay(void **state)
{
	struct wire *wire = begin(*state, 1);

	wire_intern(wire, 0, "requests/acme/web");
	wire_intern(wire, 1, "requests/acme");
	wire_intern(wire, 2, "requests/other");
	(void)wire_add(wire, 1, 0, 5);
	(void)wire_add(wire, 2, 1, 70);
	(void)wire_add(wire, 3, 2, 800);
	assert_int_equal(reset(wire, "requests/acme").reset.counters, 2);
	assert_total(wire, "requests", 800);
	assert_total(wire, "requests/acme", 0);
	assert_total(wire, "requests/acme/web", 0);
	/* Handles are good. */
	(void)wire_add(wire, 4, 0, 6);
	assert_total(wire, "requests", 806);
	assert_int_equal(reset(wire, "requests/acme/web").reset.counters, 1);
	assert_total(wire, "requests", 800);
	(void)wire_free(wire);
}

/* ---- large ones ---- */

struct items {
	struct import_item items[N_LONG];
	char bytes[N_LONG][PATH_BYTES];
};

static struct items *items_new(int64_t own)
{
	struct items *items = malloc(sizeof(*items));

	assert_non_null(items);
	for (int i = 0; i < N_LONG; i++) {
		int len = snprintf(items->bytes[i], PATH_BYTES, "long/%d/%d", i % 100, i);

		assert_in_range(len, 1, PATH_BYTES - 1);
		items->items[i] =
			(struct import_item){ .path = { .at = items->bytes[i], .len = (size_t)len },
					      .own = own };
	}
	return items;
}

/* Adds to a counter of the large subtree, all the time. */
struct adder {
	pthread_t thread;
	struct wire *wire;
	_Atomic(uint64_t) n;
	_Atomic(bool) stop;
};

static void *adds(void *arg)
{
	struct adder *adder = arg;

	while (!atomic_load_explicit(&adder->stop, memory_order_relaxed)) {
		uint64_t n = atomic_fetch_add_explicit(&adder->n, 1, memory_order_relaxed) + 1;

		(void)wire_add(adder->wire, n, 0, 1);
	}
	return NULL;
}

/* In the middle of both there are others' adds, at another counter: none is lost; and requests behind on the same connection wait. */
static void test_large_ones_are_done_in_parts(void **state)
{
	struct wire *wire = begin(*state, 1);
	struct adder adder = { .wire = begin(*state, 2) };
	struct items *items = items_new(3);
	const struct request imports = { .type = REQUEST_IMPORT,
					 .import = { .n_items = N_LONG, .items = items->items } };
	const struct request resets = { .type = REQUEST_RESET, .reset = text_of("long") };
	const struct text path = text_of("long");
	const struct request get = { .type = REQUEST_GET, .get = { .n_paths = 1, .paths = &path } };
	struct reply reply;
	uint64_t first, second, third, before, n;

	wire_intern(adder.wire, 0, "others/x");
	assert_int_equal(pthread_create(&adder.thread, NULL, adds, &adder), 0);
	first = wire_send(wire, &imports);
	second = wire_send(wire, &get);
	before = atomic_load_explicit(&adder.n, memory_order_relaxed);
	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.id, first);
	assert_int_equal(reply.type, REPLY_IMPORTED);
	assert_int_equal(reply.imported.n_errors, 0);
	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.id, second);
	assert_int_equal(reply.values.values[0].total, 3 * N_LONG);

	first = wire_send(wire, &imports);
	second = wire_send(wire, &resets);
	third = wire_send(wire, &get);
	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.id, first);
	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.id, second);
	assert_int_equal(reply.type, REPLY_RESET);
	assert_int_equal(reply.reset.counters, N_LONG + 101);
	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.id, third);
	assert_int_equal(reply.values.values[0].total, 0);

	atomic_store_explicit(&adder.stop, true, memory_order_relaxed);
	(void)pthread_join(adder.thread, NULL);
	n = atomic_load_explicit(&adder.n, memory_order_relaxed);
	print_message("%" PRIu64 " adds of another client meanwhile\n", n - before);
	assert_total(wire, "others", (int64_t)n);
	(void)wire_free(adder.wire);
	(void)wire_free(wire);
	free(items);
}

/* A client that goes away in the middle, and one that takes its session over. */
static void test_a_large_one_whose_client_goes(void **state)
{
	struct items *items = items_new(3);
	const struct request imports = { .type = REQUEST_IMPORT,
					 .import = { .n_items = N_LONG, .items = items->items } };
	const struct request resets = { .type = REQUEST_RESET, .reset = text_of("long") };
	struct wire *wire;

	for (int i = 0; i < 6; i++) {
		wire = begin(*state, 3);
		(void)wire_send(wire, &imports);
		(void)wire_send(wire, &resets);
		if (i % 2 == 0) {
			(void)wire_free(begin(*state, 3));
		}
		(void)wire_free(wire);
	}
	wire = begin(*state, 3);
	assert_int_equal(wire_call(wire, &imports).type, REPLY_IMPORTED);
	assert_int_equal(wire_call(wire, &resets).type, REPLY_RESET);
	assert_total(wire, "long", 0);
	(void)wire_free(wire);
	free(items);
}

/* Adds at the very counters that are set: what is added after the last order is there, and nothing is negative. */
static void test_adds_at_the_same_time(void **state)
{
	struct wire *wire = begin(*state, 1);
	struct adder adder = { .wire = begin(*state, 2) };
	static const struct import_item item = { .path = { .at = "same/x", .len = 6 },
						 .own = 1000 };
	int64_t total, set = 0;
	uint64_t n;

	wire_intern(adder.wire, 0, "same/x");
	assert_int_equal(pthread_create(&adder.thread, NULL, adds, &adder), 0);
	for (int i = 0; i < 200; i++) {
		set = i % 2 == 0 ? 1000 : 0;
		if (i % 2 == 0) {
			assert_int_equal(import(wire, &item, 1).imported.n_errors, 0);
		} else {
			assert_int_equal(reset(wire, "same").type, REPLY_RESET);
		}
		total = wire_total(wire, "same", CONSISTENCY_EXACT);
		assert_true(total >= set);
	}
	atomic_store_explicit(&adder.stop, true, memory_order_relaxed);
	(void)pthread_join(adder.thread, NULL);
	total = wire_total(wire, "same", CONSISTENCY_EXACT);
	n = atomic_load_explicit(&adder.n, memory_order_relaxed);
	for (int i = 0; i < 10; i++) {
		(void)wire_add(adder.wire, ++n, 0, 1);
	}
	assert_total(wire, "same", total + 10);
	assert_total(wire, "same/x", total + 10);
	(void)wire_free(adder.wire);
	(void)wire_free(wire);
}

/* It is in the state file soon, though no session has done anything; and is there after a kill. */
static void test_what_is_set_is_kept(void **state)
{
	struct test_daemon *daemon = test_daemon_prepare(config);
	static const struct import_item items[] = {
		{ .path = { .at = "requests/a", .len = 10 }, .own = 40 },
		{ .path = { .at = "requests/b", .len = 10 }, .own = 2 },
		{ .path = { .at = "jobs/a", .len = 6 }, .own = -7 },
	};
	const struct request flush = { .type = REQUEST_FLUSH, .flush = { .durable = true } };
	struct wire *wire;
	int64_t before, until = test_now_ms() + TEST_DAEMON_PATIENCE_MS;

	(void)state;
	daemon->keeps = true;
	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
	wire = begin(daemon, 0);
	before = wire_status(wire, "checkpoints");
	assert_int_equal(import(wire, items, 3).imported.n_errors, 0);
	while (wire_status(wire, "checkpoints") == before) {
		assert_true(test_now_ms() < until);
		(void)usleep(5000);
	}
	assert_int_equal(reset(wire, "requests/b").type, REPLY_RESET);
	assert_true(wire_call(wire, &flush).flushed.durable);
	(void)wire_free(wire);
	test_daemon_signal(daemon, SIGKILL);
	(void)test_daemon_wait(daemon);
	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
	wire = begin(daemon, 0);
	assert_total(wire, "requests", 40);
	assert_total(wire, "requests/b", 0);
	assert_total(wire, "jobs", -7);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_metrics_are_listed_by_name),
		TEST(test_own_values_are_set),
		TEST(test_what_can_not_be_set_is_told),
		TEST(test_what_can_not_be_reset_is_told),
		TEST(test_siblings_stay),
		TEST(test_large_ones_are_done_in_parts),
		TEST(test_a_large_one_whose_client_goes),
		TEST(test_adds_at_the_same_time),
		cmocka_unit_test(test_what_is_set_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
