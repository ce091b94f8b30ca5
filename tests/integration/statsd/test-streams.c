#include "tests/integration/statsd/support.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* True: the other end has closed. */
static bool is_closed(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	char byte;

	assert_int_equal(poll(&poll_fd, 1, TEST_DAEMON_PATIENCE_MS), 1);
	return recv(fd, &byte, 1, 0) <= 0;
}

/* Closing is a reset, and what was not read is lost. */
static void close_badly(int fd)
{
	const struct linger linger = { .l_onoff = 1 };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	(void)close(fd);
}

static void test_cut_anywhere(void **state)
{
	static const char text[] =
		"first.name:1|c|#a:b\nsecond:20|c|@0.5\r\n\nthird.one:3:4|c|#x|c:d\nbad\n";
	struct statsd_test test = statsd_start(1, NULL);
	int fd = statsd_connect(&test, WAY_TCP), on = 1;
	size_t len = sizeof(text) - 1;

	(void)state;
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
	for (size_t cut = 0; cut <= len; cut++) {
		int64_t bytes = wire_status(test.wire, "statsd_bytes");

		statsd_send(fd, text, cut);
		statsd_await(&test, "statsd_bytes", bytes + (int64_t)cut);
		statsd_send(fd, text + cut, len - cut);
	}
	for (size_t i = 0; i < len; i++) {
		statsd_send(fd, text + i, 1);
	}
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "first/name/a=b"), len + 2);
	assert_int_equal(statsd_total(&test, "second"), 40 * (len + 2));
	assert_int_equal(statsd_total(&test, "third/one/x="), 7 * (len + 2));
	assert_int_equal(statsd_rejected(&test, "no_type"), len + 2);
	(void)close(fd);
	statsd_finish(&test);
}

/* The second part when the first one has been read. */
static void send_in_two(const struct statsd_test *test, int fd, const char *first, size_t len,
			const char *second)
{
	int64_t before = wire_status(test->wire, "statsd_bytes");

	statsd_send(fd, first, len);
	statsd_await(test, "statsd_bytes", before + (int64_t)len);
	statsd_send_text(fd, second);
	statsd_settle(test, fd);
}

static void test_long_lines(void **state)
{
	struct statsd_test test = statsd_start(1, NULL);
	int fd = statsd_connect(&test, WAY_TCP);
	char *line = malloc(1 << 20), blanks[9000];

	(void)state;
	assert_non_null(line);
	memset(line, 'x', 1 << 20);
	memcpy(line, "a:1|c|", 6);
	line[8192] = '\n';
	statsd_send(fd, line, 8193); /* as long as may be */
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "a"), 1);
	line[8192] = 'x';
	line[8193] = '\n';
	statsd_send(fd, line, 8194);
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "a"), 1);
	assert_int_equal(statsd_rejected(&test, "line_too_long"), 1);
	/* What is trimmed does not count, wherever the line is cut. */
	memset(blanks, ' ', sizeof(blanks));
	line[8192] = '\r';
	line[8193] = '\n';
	statsd_send(fd, line, 8194);
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "a"), 2);
	send_in_two(&test, fd, line, 8193, "\n");
	assert_int_equal(statsd_total(&test, "a"), 3);
	send_in_two(&test, fd, blanks, sizeof(blanks), "a:1|c\n");
	assert_int_equal(statsd_total(&test, "a"), 4);
	send_in_two(&test, fd, blanks, sizeof(blanks), "\n");
	line[8192] = ' ';
	line[8193] = ' ';
	send_in_two(&test, fd, line, 8194, " \r \n");
	assert_int_equal(statsd_total(&test, "a"), 5);
	assert_int_equal(statsd_rejected(&test, "line_too_long"), 1);
	send_in_two(&test, fd, line, 8194, "x\n");
	assert_int_equal(statsd_total(&test, "a"), 5);
	assert_int_equal(statsd_rejected(&test, "line_too_long"), 2);
	line[8192] = line[8193] = 'x';
	/* Many reads long, and one line. */
	line[8193] = 'x';
	statsd_send(fd, line, 1 << 20);
	statsd_send_text(fd, "\nb:2|c\n");
	statsd_settle(&test, fd);
	assert_int_equal(statsd_total(&test, "b"), 2);
	assert_int_equal(statsd_rejected(&test, "line_too_long"), 3);
	free(line);
	(void)close(fd);
	statsd_finish(&test);
}

static void test_ends(void **state)
{
	struct statsd_test test = statsd_start(1, NULL);
	int fd = statsd_connect(&test, WAY_TCP);

	(void)state;
	/* In good order: the last line needs no newline. */
	statsd_send_text(fd, "x:1|c\nlast:5|c");
	(void)close(fd);
	statsd_await(&test, "statsd_lines", 2);
	assert_int_equal(statsd_total(&test, "last"), 5);
	/* Not in good order: nobody knows what it was to be. */
	fd = statsd_connect(&test, WAY_TCP);
	statsd_send_text(fd, "x:1|c\nlast:5|c");
	statsd_await(&test, "statsd_lines", 3);
	close_badly(fd);
	statsd_await(&test, "statsd_rejected_truncated", 1);
	assert_int_equal(statsd_total(&test, "last"), 5);
	assert_int_equal(wire_status(test.wire, "statsd_connections"), 0);
	statsd_finish(&test);
}

static void test_idle(void **state)
{
	struct statsd_test test = statsd_start(1, "statsd_idle_timeout = 50ms\n");
	int fd = statsd_connect(&test, WAY_TCP);

	(void)state;
	statsd_send_text(fd, "x:1|c\nhalf:1|");
	assert_true(is_closed(fd));
	assert_int_equal(statsd_total(&test, "x"), 1);
	statsd_await(&test, "statsd_connections_idle", 1);
	assert_int_equal(statsd_rejected(&test, "truncated"), 1);
	(void)close(fd);
	statsd_finish(&test);
}

static void test_cap(void **state)
{
	struct statsd_test test = statsd_start(2, "max_statsd_connections = 3\n");
	int fds[3], fd;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		fds[i] = statsd_connect(&test, WAY_TCP);
		statsd_settle(&test, fds[i]);
	}
	fd = statsd_connect(&test, WAY_TCP);
	assert_true(is_closed(fd));
	(void)close(fd);
	statsd_await(&test, "statsd_connections_refused", 1);
	test_daemon_await_log(test.daemon, "max_statsd_connections");
	/* The others are served, and so is one more when there is room again. */
	for (unsigned i = 0; i < 3; i++) {
		statsd_settle(&test, fds[i]);
	}
	(void)close(fds[0]);
	for (int64_t until = test_now_ns(); wire_status(test.wire, "statsd_connections") > 2;) {
		assert_true(test_goes_on(until, /* enough= */ false));
	}
	fd = statsd_connect(&test, WAY_TCP);
	statsd_settle(&test, fd);
	(void)close(fd);
	(void)close(fds[1]);
	(void)close(fds[2]);
	statsd_finish(&test);
}

/* Several at once, some in the middle of a line: none sees another's bytes. */
static void test_many(void **state)
{
	struct statsd_test test = statsd_start(2, NULL);
	int fds[100];

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		fds[i] = statsd_connect(&test, WAY_TCP);
	}
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 100; i++) {
			char text[64];

			(void)snprintf(text, sizeof(text), "%u|c\nmany.%u:", round, i % 10);
			statsd_send_text(fds[i], round == 0 ? strchr(text, '\n') + 1 : text);
		}
	}
	for (unsigned i = 0; i < 100; i++) {
		statsd_send_text(fds[i], "20|c\n");
		statsd_settle(&test, fds[i]);
		(void)close(fds[i]);
	}
	for (unsigned i = 0; i < 10; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "many/%u", i);
		assert_int_equal(statsd_total(&test, path), 10 * 210);
	}
	statsd_finish(&test);
}

/* What the daemon was sent before it was asked to stop is counted. */
static void test_stop(void **state)
{
	struct statsd_test test = statsd_start(1, NULL);
	int fd = statsd_connect(&test, WAY_TCP);
	char *log;

	(void)state;
	statsd_settle(&test, fd);
	test.wire = wire_free(test.wire);
	test_daemon_signal(test.daemon, SIGSTOP);
	for (unsigned i = 0; i < 1000; i++) {
		statsd_send_text(fd, "before.the.stop:1|c\n");
	}
	test_daemon_signal(test.daemon, SIGTERM);
	test_daemon_signal(test.daemon, SIGCONT);
	assert_int_equal(test_daemon_wait(test.daemon), 0);
	log = test_daemon_log(test.daemon);
	assert_non_null(strstr(log, "sum of all totals 1001\n"));
	free(log);
	(void)close(fd);
	test_daemon_clean(test.daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_anywhere), cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_ends),	     cmocka_unit_test(test_idle),
		cmocka_unit_test(test_cap),	     cmocka_unit_test(test_many),
		cmocka_unit_test(test_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
