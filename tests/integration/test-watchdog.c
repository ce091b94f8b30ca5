/*
 * The watchdog: what the service manager hears while all threads turn, and while one hangs.
 */
#include "tests/support/daemon.h"
#include "tests/support/hold.h"
#include "tests/support/test.h"
#include "tests/support/wire.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INTERVAL_MS 400
#define PATIENCE_MS 60000

static struct test_daemon *start(void)
{
	struct test_daemon *daemon;

	(void)setenv("WATCHDOG_USEC", "400000", 1);
	daemon = test_daemon_start("workers = 2\nlisten = http:127.0.0.1:0\n");
	(void)unsetenv("WATCHDOG_USEC");
	return daemon;
}

/* Does it say that it lives, within so many milliseconds? */
static bool pings(struct test_daemon *daemon, int64_t ms)
{
	struct pollfd poll_fd = { .fd = daemon->notify_fd, .events = POLLIN };
	bool does = false;

	if (poll(&poll_fd, 1, (int)ms) > 0) {
		char *text = test_daemon_notification(daemon);

		does = strcmp(text, "WATCHDOG=1") == 0;
		free(text);
	}
	return does;
}

/* How many times it says so in so many milliseconds, from now on: what it said before is not counted. */
static unsigned count_pings(struct test_daemon *daemon, int64_t ms)
{
	int64_t until;
	unsigned n = 0;

	while (pings(daemon, 0)) {
	}
	until = test_now_ms() + ms;
	for (int64_t left = ms; left > 0; left = until - test_now_ms()) {
		n += pings(daemon, left);
	}
	return n;
}

static void test_pings(void **state)
{
	struct test_daemon *daemon = start();
	unsigned n = 0;

	(void)state;
	/* Four in an interval; fewer for a while where the machine has other things to do too. */
	for (int64_t until = test_now_ms() + PATIENCE_MS; n < 12 && test_now_ms() < until;) {
		int64_t begin = test_now_ms();

		n = count_pings(daemon, 4L * INTERVAL_MS);
		assert_in_range(n, 0, 2 + (test_now_ms() - begin) / (INTERVAL_MS / 4));
	}
	assert_in_range(n, 12, UINT_MAX);
	test_daemon_stop(daemon);
}

static void test_no_pings_unasked(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 2\n");

	(void)state;
	assert_int_equal(count_pings(daemon, 500), 0);
	test_daemon_stop(daemon);
}

static bool hold(struct test_daemon *daemon, const char *name, pid_t *ret_thread)
{
	*ret_thread = hold_thread(daemon->pid, name);
	if (*ret_thread == -EPERM) {
		return false;
	}
	assert_true(*ret_thread > 0);
	return true;
}

static void test_hanging_thread(void **state)
{
	static const char *const names[] = { "worker-0", "worker-1", "http", "rationd" };
	struct test_daemon *daemon = start();
	pid_t thread;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!hold(daemon, names[i], &thread)) {
			break;
		}
		/* At most the one that was due when it still turned. */
		assert_in_range(count_pings(daemon, INTERVAL_MS), 0, 1);
		assert_int_equal(count_pings(daemon, INTERVAL_MS), 0);
		if (strcmp(names[i], "worker-1") == 0) {
			test_daemon_await_log(daemon, "worker-1 has not gone round for ");
		} else if (strcmp(names[i], "http") == 0) {
			test_daemon_await_log(daemon, "http has not gone round for ");
		}
		hold_release(thread);
		assert_true(pings(daemon, PATIENCE_MS) && pings(daemon, PATIENCE_MS));
	}
	test_daemon_stop(daemon);
}

/* Others are served while one thread hangs, and its clients once it goes on. */
static void test_others_are_served(void **state)
{
	struct test_daemon *daemon = start();
	const struct request ping = { .id = 7, .type = REQUEST_PING };
	struct wire *wires[2];
	struct reply reply;
	unsigned answered = 0;
	pid_t thread;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		wires[i] = wire_open(daemon->socket);
		(void)wire_hello(wires[i], (uint8_t)(i + 1), 0, 1, NULL);
	}
	if (hold(daemon, "worker-0", &thread)) {
		for (unsigned i = 0; i < 2; i++) {
			(void)wire_send(wires[i], &ping);
		}
		(void)usleep(300000);
		for (unsigned i = 0; i < 2; i++) {
			answered += wire_poll(wires[i], 0);
		}
		assert_int_equal(answered, 1);
		hold_release(thread);
		for (unsigned i = 0; i < 2; i++) {
			assert_true(wire_receive(wires[i], &reply));
			assert_int_equal(reply.type, REPLY_PONG);
		}
	}
	for (unsigned i = 0; i < 2; i++) {
		(void)wire_free(wires[i]);
	}
	test_daemon_stop(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pings),
		cmocka_unit_test(test_no_pings_unasked),
		cmocka_unit_test(test_hanging_thread),
		cmocka_unit_test(test_others_are_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
