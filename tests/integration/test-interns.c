/*
 * Long Interns: they are done some at a time, in order, and nobody waits for those of others.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	N_PATHS = 40000,
	PATH_BYTES = 32
};

static int setup(void **state)
{
	*state = test_daemon_start("workers = 1\n[metric few]\nmax_counters = 100\n");
	return 0;
}

static int teardown(void **state)
{
	test_daemon_stop(*state);
	return 0;
}

struct paths {
	struct text texts[N_PATHS];
	char bytes[N_PATHS][PATH_BYTES];
};

/* `format` has one number. */
static struct paths *paths_new(const char *format)
{
	struct paths *paths = malloc(sizeof(*paths));

	assert_non_null(paths);
	for (int i = 0; i < N_PATHS; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		int len = snprintf(paths->bytes[i], PATH_BYTES, format, i);
#pragma GCC diagnostic pop

		assert_in_range(len, 1, PATH_BYTES - 1);
		paths->texts[i] = (struct text){ .at = paths->bytes[i], .len = (size_t)len };
	}
	return paths;
}

static uint64_t send_paths(struct wire *wire, const struct paths *paths, size_t n)
{
	const struct request request = {
		.type = REQUEST_INTERN,
		.intern = { .n_paths = n, .paths = paths->texts },
	};

	return wire_send(wire, &request);
}

static void test_nobody_waits_for_anothers(void **state)
{
	struct test_daemon *daemon = *state;
	struct wire *wire = wire_open(daemon->socket), *other = wire_open(daemon->socket);
	struct paths *paths = paths_new("deep/%d/a/b/c/d/e/f/g");
	const uint32_t handle = N_PATHS - 1;
	const int64_t delta = 5;
	struct request add = wire_add_request(1, &handle, &delta, 1);
	int64_t began, took, worst = 0;
	struct reply reply;
	unsigned n_gets = 0;
	uint64_t id;

	(void)wire_hello(wire, 1, 0, 1, NULL);
	(void)wire_hello(other, 0, 0, 0, NULL);
	id = send_paths(wire, paths, N_PATHS);
	(void)wire_send(wire, &add);
	while (!wire_poll(wire, 0)) {
		began = test_now_ms();
		(void)wire_status(other, "sessions");
		took = test_now_ms() - began;
		worst = took > worst ? took : worst;
		n_gets++;
	}
	print_message("%u answers meanwhile, the slowest after %lld ms\n", n_gets,
		      (long long)worst);
	assert_in_range(n_gets, 20, UINT32_MAX);
	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.type, REPLY_INTERNED);
	assert_int_equal(reply.id, id);
	assert_int_equal(reply.interned.n_errors, 0);
	/* What was sent behind it finds its handles. */
	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.type, REPLY_APPLIED);
	assert_int_equal(reply.applied.n_errors, 0);
	assert_int_equal(wire_total(other, "deep/39999", CONSISTENCY_EXACT), 5);
	assert_int_equal(wire_total(other, "deep", CONSISTENCY_EXACT), 5);
	free(paths);
	(void)wire_free(other);
	(void)wire_free(wire);
}

/* Each of its own many, some of which are refused, and pipelined short ones; one of them goes away amid. */
static void test_several_at_once(void **state)
{
	enum {
		N = 4
	};
	struct test_daemon *daemon = *state;
	struct paths *paths = paths_new("several/%d"), *few = paths_new("few/%d");
	struct wire *wires[N], *gone = wire_open(daemon->socket),
			       *taken = wire_open(daemon->socket), *taker;
	struct reply reply;

	for (int i = 0; i < N_PATHS; i += 1000) {
		paths->texts[i] = text_of("not//a/path");
	}
	(void)wire_hello(gone, 99, 0, 1, NULL);
	(void)wire_hello(taken, 98, 0, 1, NULL);
	for (unsigned i = 0; i < N; i++) {
		wires[i] = wire_open(daemon->socket);
		(void)wire_hello(wires[i], (uint8_t)(i + 1), 0, 1, NULL);
	}
	(void)send_paths(gone, paths, N_PATHS);
	(void)send_paths(gone, paths, N_PATHS);
	(void)send_paths(taken, paths, N_PATHS);
	for (unsigned i = 0; i < N; i++) {
		(void)send_paths(wires[i], paths, N_PATHS);
		for (unsigned k = 0; k < 20; k++) {
			(void)send_paths(wires[i], paths, 100);
		}
		(void)send_paths(wires[i], few, 2000);
	}
	(void)wire_free(gone);
	taker = wire_open(daemon->socket);
	(void)wire_hello(taker, 98, 0, 1, NULL);
	wire_intern(taker, 0, "several/taken");
	assert_false(wire_add(taker, 1, 0, 1));
	(void)wire_free(taker);
	(void)wire_free(taken);
	for (unsigned i = 0; i < N; i++) {
		assert_true(wire_receive(wires[i], &reply));
		assert_int_equal(reply.type, REPLY_INTERNED);
		assert_int_equal(reply.interned.n_errors, N_PATHS / 1000);
		for (unsigned k = 0; k < reply.interned.n_errors; k++) {
			assert_int_equal(reply.interned.errors[k].index, k * 1000);
			assert_int_equal(reply.interned.errors[k].code, CODE_INVALID_ARGUMENT);
			assert_true(wire_text_has(reply.interned.errors[k].text, "empty"));
		}
		for (unsigned k = 0; k < 20; k++) {
			assert_true(wire_receive(wires[i], &reply));
			assert_int_equal(reply.type, REPLY_INTERNED);
			assert_int_equal(reply.interned.n_errors, 1);
		}
		/* 100, the metric itself among them. */
		assert_true(wire_receive(wires[i], &reply));
		assert_int_equal(reply.type, REPLY_INTERNED);
		assert_int_equal(reply.interned.n_errors, 2000 - 99);
		assert_int_equal(reply.interned.errors[0].index, 99);
		assert_int_equal(reply.interned.errors[2000 - 100].index, 1999);
		assert_false(wire_add(wires[i], 1, 0, 1));
		(void)wire_free(wires[i]);
	}
	free(few);
	free(paths);
}

/* What the socket held when the stop came is done. */
static void test_stop_amid(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 1\n");
	struct wire *wire = wire_open(daemon->socket);
	struct paths *paths = paths_new("stop/%d/a/b/c/d/e/f/g");
	const uint32_t handle = N_PATHS - 1;
	const int64_t delta = 5;
	struct request add = wire_add_request(1, &handle, &delta, 1);
	struct reply reply;

	(void)state;
	(void)wire_hello(wire, 1, 60000, 1, NULL);
	(void)send_paths(wire, paths, N_PATHS);
	(void)wire_send(wire, &add);
	test_daemon_signal(daemon, SIGTERM);
	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.type, REPLY_INTERNED);
	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.type, REPLY_APPLIED);
	assert_int_equal(reply.applied.n_errors, 0);
	wire_expect_goodbye(wire, CODE_UNAVAILABLE);
	assert_int_equal(test_daemon_wait(daemon), 0);
	test_daemon_clean(daemon);
	free(paths);
	(void)wire_free(wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nobody_waits_for_anothers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_several_at_once, setup, teardown),
		cmocka_unit_test(test_stop_amid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
