#include "tests/integration/statsd/support.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MANY 300u /* more than one call receives, and a turn's worth of senders */

static void test_one_to_many_at_a_time(void **state)
{
	struct statsd_test test = statsd_start(1, NULL);
	int fd = statsd_connect(&test, WAY_UDP);
	int64_t expected = 0;

	(void)state;
	for (unsigned n = 1; n <= MANY; n += n < 70 ? 1 : 23) {
		struct mmsghdr messages[MANY] = { 0 };
		struct iovec parts[MANY];
		char lines[MANY][32];

		for (unsigned i = 0; i < n; i++) {
			parts[i] = (struct iovec){
				.iov_base = lines[i],
				.iov_len = (size_t)snprintf(lines[i], sizeof(lines[i]),
							    "some.name:%u|c\nother:1|c", i),
			};
			messages[i].msg_hdr.msg_iov = &parts[i];
			messages[i].msg_hdr.msg_iovlen = 1;
			expected += i;
		}
		assert_int_equal(sendmmsg(fd, messages, n, 0), n);
		statsd_settle(&test, fd);
		assert_int_equal(statsd_total(&test, "some/name"), expected);
	}
	assert_int_equal(wire_status(test.wire, "statsd_dropped"), 0);
	(void)close(fd);
	statsd_finish(&test);
}

/* Whatever it is, it is counted as something, and nobody minds. */
static void test_random_bytes(void **state)
{
	struct statsd_test test = statsd_start(1, NULL);
	struct test_random random;
	uint8_t bytes[1400];
	char *log;
	size_t lines_logged = 0;

	(void)state;
	test_random_init(&random, 0);
	for (enum way way = WAY_UDP; way <= WAY_UNIX; way++) {
		int fd = statsd_connect(&test, way);

		for (unsigned i = 0; i < 10000; i++) {
			static const char likely[] = "a.b:1|c@#,\n\r 0.5e-x";
			size_t len = test_random_below(&random, i % 10 == 0 ? sizeof(bytes) : 40);

			for (size_t k = 0; k < len; k++) {
				bytes[k] = i % 2 == 0 ? (uint8_t)test_random_next(&random)
						      : (uint8_t)likely[test_random_below(
								&random, sizeof(likely) - 1)];
			}
			statsd_send(fd, bytes, len);
			if (i % 100 == 99) {
				statsd_settle(&test, fd);
			}
		}
		statsd_send_text(fd, "good:1|c");
		statsd_settle(&test, fd);
		assert_int_equal(statsd_total(&test, "good"), way + 1);
		(void)close(fd);
	}
	assert_true(statsd_rejected(&test, "no_type") > 1000);
	/* An example of each reason, and not of each line. */
	log = test_daemon_log(test.daemon);
	for (const char *at = log; (at = strchr(at, '\n')) != NULL; at++) {
		lines_logged++;
	}
	assert_in_range(lines_logged, 5, 200);
	free(log);
	statsd_finish(&test);
}

static char *fill(size_t len, unsigned *ret_n)
{
	char *bytes = malloc(len + 32);
	size_t at = 0;

	assert_non_null(bytes);
	for (*ret_n = 0; at + 16 <= len; ++*ret_n) {
		at += (size_t)snprintf(bytes + at, 32, "long.one:%u|c\n", 1 + *ret_n % 2);
	}
	memset(bytes + at, ' ', len - at);
	return bytes;
}

static int64_t sum_of(unsigned n)
{
	return n + n / 2;
}

static void test_longest(void **state)
{
	struct statsd_test test = statsd_start(1, NULL);
	int fd = statsd_connect(&test, WAY_UDP);
	int64_t before;
	unsigned n;
	char *bytes = fill(65507, &n);

	(void)state;
	statsd_send(fd, bytes, 65507);
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "long/one"), sum_of(n));
	assert_int_equal(wire_status(test.wire, "statsd_datagrams_truncated"), 0);
	free(bytes);
	(void)close(fd);
	/* A unix socket takes more, and that is not too much yet. */
	before = statsd_total(&test, "long/one");
	fd = statsd_connect(&test, WAY_UNIX);
	bytes = fill(65535, &n);
	statsd_send(fd, bytes, 65535);
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "long/one"), before + sum_of(n));
	assert_int_equal(wire_status(test.wire, "statsd_datagrams_truncated"), 0);
	free(bytes);
	(void)close(fd);
	statsd_finish(&test);
}

/* It loses the line that was cut, and no other. */
static void test_truncated(void **state)
{
	struct statsd_test test = statsd_start(1, NULL);
	int fd = statsd_connect(&test, WAY_UNIX);
	char *bytes = malloc(70000);

	(void)state;
	assert_non_null(bytes);
	memset(bytes, 'x', 70000);
	memcpy(bytes, "whole:1|c\n", 10);
	memcpy(bytes + 60000, "\nwhole:1|c\nlost:1|c|#", 21);
	memcpy(bytes + 69000, "\nlost:1|c\n", 10);
	statsd_send(fd, bytes, 70000);
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "whole"), 2);
	assert_int_equal(statsd_total(&test, "lost"), 0);
	assert_int_equal(wire_status(test.wire, "statsd_datagrams_truncated"), 1);
	assert_int_equal(statsd_rejected(&test, "truncated"), 1);
	assert_int_equal(statsd_rejected(&test, "line_too_long"), 1);
	free(bytes);
	(void)close(fd);
	statsd_finish(&test);
}

static void test_line_too_long(void **state)
{
	struct statsd_test test = statsd_start(1, NULL);
	int fd = statsd_connect(&test, WAY_UDP);
	char bytes[8400];

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	memcpy(bytes, " a:1|c|", 7);
	statsd_send(fd, bytes, 8193); /* one of them is a blank */
	statsd_send(fd, bytes, 8194);
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "a"), 1);
	assert_int_equal(statsd_rejected(&test, "line_too_long"), 1);
	(void)close(fd);
	statsd_finish(&test);
}

static void test_ipv6(void **state)
{
	struct statsd_test test = statsd_start(2, NULL);
	int fd = statsd_connect6(&test);

	(void)state;
	if (fd < 0) {
		statsd_finish(&test);
		skip();
	}
	statsd_send_text(fd, "six:6|c");
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "six"), 6);
	(void)close(fd);
	statsd_finish(&test);
}

/* Each has a socket of its own; the kernel chooses by the sender. */
static void test_workers(void **state)
{
	struct statsd_test test = statsd_start(4, NULL);
	int fds[64];

	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		fds[i] = statsd_connect(&test, WAY_UDP);
		for (unsigned k = 0; k < 10; k++) {
			statsd_send_text(fds[i], "spread:1|c\nspread:1|c");
		}
	}
	for (unsigned i = 0; i < 64; i++) {
		statsd_settle(&test, fds[i]);
		(void)close(fds[i]);
	}
	assert_int_equal(statsd_total(&test, "spread"), 64 * 20);
	assert_int_equal(wire_status(test.wire, "statsd_lines"), 64 * 21);
	statsd_finish(&test);
}

/* A second daemon does not share the port. */
static void test_port_is_taken(void **state)
{
	struct statsd_test test = statsd_start(2, NULL);
	struct test_daemon *other = test_daemon_prepare(NULL);
	char config[128];

	(void)state;
	(void)snprintf(config, sizeof(config), "listen = statsd+udp:127.0.0.1:%u\nworkers = 2\n",
		       test.udp_port);
	test_daemon_configure(other, config);
	test_daemon_spawn(other, NULL);
	assert_int_not_equal(test_daemon_wait(other), 0);
	test_daemon_await_log(other, "can't listen: Address already in use");
	test_daemon_clean(other);
	statsd_finish(&test);
}

/* A sender that fills the queue of a unix socket, which is short, waits; what it has sent is counted, that of before the stop too. */
static void test_full_queue_and_stop(void **state)
{
	struct statsd_test test = statsd_start(1, NULL);
	int fd = statsd_connect(&test, WAY_UNIX), late = 0;
	char *log, sum[64];

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		statsd_send_text(fd, "queued:1|c");
	}
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "queued"), 20000);
	/* The daemon does not read now. */
	test.wire = wire_free(test.wire);
	test_daemon_signal(test.daemon, SIGSTOP);
	while (send(fd, "late:1|c", 8, MSG_DONTWAIT) == 8) {
		late++;
	}
	assert_true(late > 0);
	test_daemon_signal(test.daemon, SIGTERM);
	test_daemon_signal(test.daemon, SIGCONT);
	assert_int_equal(test_daemon_wait(test.daemon), 0);
	log = test_daemon_log(test.daemon);
	(void)snprintf(sum, sizeof(sum), "sum of all totals %d\n", 20000 + 1 + late);
	assert_non_null(strstr(log, sum));
	free(log);
	(void)close(fd);
	test_daemon_clean(test.daemon);
}

/* What is not taken is said once, to each sender. */
static void test_unsupported_is_said_once(void **state)
{
	struct statsd_test test = statsd_start(1, NULL);
	int udp = statsd_connect(&test, WAY_UDP), path = statsd_connect(&test, WAY_UNIX);
	unsigned n = 0;
	char *log;

	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		statsd_send_text(udp, "load:1|g\nt:3|ms\n");
		statsd_send_text(path, "load:1|g");
	}
	/* Each connection has another port, and is the same sender. */
	for (unsigned i = 0; i < 50; i++) {
		int tcp = statsd_connect(&test, WAY_TCP);

		statsd_send_text(tcp, "load:1|g\n");
		(void)close(tcp);
	}
	statsd_settle(&test, udp);
	statsd_settle(&test, path);
	statsd_await(&test, "statsd_rejected_unsupported_type", 200);
	assert_int_equal(statsd_rejected(&test, "unsupported_type"), 200);
	log = test_daemon_log(test.daemon);
	for (const char *at = log;
	     (at = strstr(at, "unsupported_type: only counters are taken")) != NULL; at++) {
		n++;
	}
	assert_int_equal(n, 3);
	assert_non_null(strstr(log, "statsd udp 127.0.0.1: "));
	assert_non_null(strstr(log, "statsd tcp 127.0.0.1: "));
	assert_non_null(strstr(log, "such as \"load:1|g\""));
	free(log);
	(void)close(udp);
	(void)close(path);
	statsd_finish(&test);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_to_many_at_a_time),
		cmocka_unit_test(test_random_bytes),
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_line_too_long),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_workers),
		cmocka_unit_test(test_port_is_taken),
		cmocka_unit_test(test_full_queue_and_stop),
		cmocka_unit_test(test_unsupported_is_said_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
