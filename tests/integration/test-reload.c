/*
 * Reload, asked for over the protocol: the answer comes when it is done, and says whether the configuration was good.
 */
#include "tests/support/daemon.h"
#include "tests/support/hold.h"
#include "tests/support/test.h"
#include "tests/support/wire.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct request ask = { .id = 77, .type = REQUEST_RELOAD };

static struct wire *open_plain(struct test_daemon *daemon)
{
	struct wire *wire = wire_open(daemon->socket);

	(void)wire_hello(wire, 0, 0, 0, NULL);
	return wire;
}

static void assert_text_has(struct text text, const char *part)
{
	char *copy = strndup(text.at, text.len);

	if (strstr(copy, part) == NULL) {
		fail_msg("'%s' is not in '%s'", part, copy);
	}
	free(copy);
}

static uint32_t max_items(struct test_daemon *daemon)
{
	struct wire *wire = wire_open(daemon->socket);
	const struct request hello = wire_hello_request(0, 0, 1);
	uint32_t n = wire_call(wire, &hello).welcome.limits.max_items;

	(void)wire_free(wire);
	return n;
}

static void test_good(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 2\nmax_items = 10\n");
	struct wire *wire = open_plain(daemon);
	struct reply reply;

	(void)state;
	test_daemon_configure(daemon, "workers = 2\nmax_items = 11\n");
	reply = wire_call(wire, &ask);
	assert_int_equal(reply.type, REPLY_RELOADED);
	assert_int_equal(reply.id, 77);
	assert_true(reply.reloaded.good);
	assert_int_equal(reply.reloaded.n_errors, 0);
	assert_int_equal(reply.reloaded.n_notes, 0);
	/* By now: a connection that comes after the answer has the new limits. */
	assert_int_equal(max_items(daemon), 11);
	test_daemon_await(daemon, "RELOADING=1");
	test_daemon_await(daemon, "READY=1");

	/* What takes effect at restart is no error, but told. */
	test_daemon_configure(daemon, "workers = 3\nmax_items = 12\n");
	reply = wire_call(wire, &ask);
	assert_true(reply.reloaded.good);
	assert_int_equal(reply.reloaded.n_notes, 1);
	assert_text_has(reply.reloaded.notes[0], "workers has changed");
	assert_int_equal(max_items(daemon), 12);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

static void test_bad(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 1\nmax_items = 10\n");
	struct wire *wire = open_plain(daemon);
	struct reply reply;

	(void)state;
	test_daemon_configure(daemon,
			      "workers = 1\nmax_items = 11\nmax_walks = x\xff\nnonsense = 1\n");
	reply = wire_call(wire, &ask);
	assert_int_equal(reply.type, REPLY_RELOADED);
	assert_false(reply.reloaded.good);
	assert_int_equal(reply.reloaded.n_errors, 2);
	assert_text_has(reply.reloaded.errors[0], "conf:5: max_walks = x?");
	assert_text_has(reply.reloaded.errors[1], "conf:6: unknown key 'nonsense'");
	assert_int_equal(max_items(daemon), 10);
	test_daemon_await_log(daemon, "was not reloaded");

	/* Good again. */
	test_daemon_configure(daemon, "workers = 1\nmax_items = 13\n");
	assert_true(wire_call(wire, &ask).reloaded.good);
	assert_int_equal(max_items(daemon), 13);

	/* What can only be found out by doing it. */
	(void)wire_free(wire);
	wire = wire_open(daemon->socket);
	(void)wire_hello(wire, 1, 0, 1, NULL);
	wire_intern(wire, 0, "a/b");
	test_daemon_configure(daemon, "workers = 1\n[metric a]\nkind = gauge\n");
	reply = wire_call(wire, &ask);
	assert_false(reply.reloaded.good);
	assert_int_equal(reply.reloaded.n_errors, 1);
	assert_text_has(reply.reloaded.errors[0], "kind can't change");

	/* No file at all. */
	assert_int_equal(unlink(daemon->config_path), 0);
	reply = wire_call(wire, &ask);
	assert_false(reply.reloaded.good);
	assert_true(reply.reloaded.n_errors >= 1);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* More errors than there is room for: as many as there is, and how many more there are. */
static void test_many_errors(void **state)
{
	enum {
		N = 2000
	};
	struct test_daemon *daemon = test_daemon_start("workers = 1\n");
	struct wire *wire = open_plain(daemon);
	char *config = calloc(N, 32);
	size_t len = 0;
	struct reply reply;

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		len += (size_t)snprintf(config + len, (size_t)N * 32 - len, "nonsense-%u = 1\n", i);
	}
	test_daemon_configure(daemon, config);
	free(config);
	reply = wire_call(wire, &ask);
	assert_false(reply.reloaded.good);
	assert_in_range(reply.reloaded.n_errors, 10, N - 1);
	assert_int_equal(reply.reloaded.n_errors + reply.reloaded.omitted, N);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* While the main thread is away: one at a time on a connection, one for all who wait, and nobody need stay for the answer. */
static void test_waiting(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 2\n");
	struct wire *wires[5];
	const struct request ping = { .id = 5, .type = REQUEST_PING };
	struct reply reply;
	pid_t main_thread = hold_thread(daemon->pid, "rationd");

	(void)state;
	if (main_thread == -EPERM) {
		test_daemon_stop(daemon);
		return;
	}
	assert_true(main_thread > 0);
	hold_release(main_thread);
	for (unsigned i = 0; i < 5; i++) {
		wires[i] = open_plain(daemon);
	}
	main_thread = hold_thread(daemon->pid, "rationd");
	assert_true(main_thread > 0);
	for (unsigned i = 0; i < 5; i++) {
		(void)wire_send(wires[i], &ask);
		assert_int_equal(wire_call(wires[i], &ping).type, REPLY_PONG);
	}
	reply = wire_call(wires[0], &ask);
	assert_int_equal(reply.type, REPLY_ERROR);
	assert_int_equal(reply.error.code, CODE_FAILED_PRECONDITION);
	wires[4] = wire_free(wires[4]);
	(void)usleep(100000);
	hold_release(main_thread);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(wire_receive(wires[i], &reply));
		assert_int_equal(reply.type, REPLY_RELOADED);
		assert_int_equal(reply.id, 77);
		assert_true(reply.reloaded.good);
	}
	assert_int_equal(wire_call(wires[0], &ask).type, REPLY_RELOADED);
	for (unsigned i = 0; i < 4; i++) {
		(void)wire_free(wires[i]);
	}
	test_daemon_stop(daemon);
}

/* Nobody is left waiting when the daemon stops. */
static void test_stop_meanwhile(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 2\n");
	struct wire *wires[8];

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		wires[i] = open_plain(daemon);
	}
	test_daemon_signal(daemon, SIGSTOP);
	for (unsigned i = 0; i < 8; i++) {
		(void)wire_send(wires[i], &ask);
	}
	test_daemon_signal(daemon, SIGTERM);
	test_daemon_signal(daemon, SIGCONT);
	for (unsigned i = 0; i < 8; i++) {
		struct reply reply = { 0 };

		while (wire_receive(wires[i], &reply)) {
			assert_true(reply.type == REPLY_RELOADED || reply.type == REPLY_GOODBYE);
		}
		assert_int_equal(reply.type, REPLY_GOODBYE);
		(void)wire_free(wires[i]);
	}
	assert_int_equal(test_daemon_wait(daemon), 0);
	test_daemon_clean(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	       cmocka_unit_test(test_bad),
		cmocka_unit_test(test_many_errors),    cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_stop_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
