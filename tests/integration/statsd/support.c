#include "tests/integration/statsd/support.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* The port that the daemon says it listens on. */
static unsigned port_of(const struct test_daemon *daemon, const char *scheme_and_host)
{
	char *log = test_daemon_log(daemon), *at = strstr(log, scheme_and_host);
	unsigned port = at != NULL ? (unsigned)strtoul(at + strlen(scheme_and_host), NULL, 10) : 0;

	free(log);
	return port;
}

static bool has_ipv6(void)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool has = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;

	(void)close(fd);
	return has;
}

struct statsd_test statsd_start(unsigned workers, const char *config)
{
	struct statsd_test test = { .daemon = test_daemon_prepare(NULL) };
	char text[2048];

	(void)snprintf(test.unix_path, sizeof(test.unix_path), "%s/statsd", test.daemon->dir);
	(void)snprintf(
		text, sizeof(text),
		"workers = %u\nlisten = statsd+udp:127.0.0.1:0\nlisten = statsd+tcp:127.0.0.1:0\n"
		"listen = statsd+unix:%s\n%s%s",
		workers, test.unix_path, has_ipv6() ? "listen = statsd+udp:[::1]:0\n" : "",
		config != NULL ? config : "");
	test_daemon_configure(test.daemon, text);
	test_daemon_spawn(test.daemon, NULL);
	test_daemon_await(test.daemon, "READY=1");
	test.wire = wire_open(test.daemon->socket);
	(void)wire_hello(test.wire, 0, 0, 0, NULL);
	test.udp_port = port_of(test.daemon, "statsd+udp:127.0.0.1:");
	test.udp6_port = port_of(test.daemon, "statsd+udp:[::1]:");
	test.tcp_port = port_of(test.daemon, "statsd+tcp:127.0.0.1:");
	return test;
}

void statsd_finish(struct statsd_test *test)
{
	test->wire = wire_free(test->wire);
	test_daemon_stop(test->daemon);
}

static int connect_inet(int type, unsigned port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0 && port > 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

int statsd_connect6(const struct statsd_test *test)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
				   .sin6_port = htons((uint16_t)test->udp6_port),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd;

	if (test->udp6_port == 0) {
		return -1;
	}
	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

int statsd_connect(const struct statsd_test *test, enum way way)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd;

	if (way == WAY_UDP) {
		return connect_inet(SOCK_DGRAM, test->udp_port);
	}
	if (way == WAY_TCP) {
		return connect_inet(SOCK_STREAM, test->tcp_port);
	}
	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", test->unix_path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

void statsd_send(int fd, const void *bytes, size_t len)
{
	assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
}

void statsd_send_text(int fd, const char *text)
{
	statsd_send(fd, text, strlen(text));
}

void statsd_await(const struct statsd_test *test, const char *name, int64_t at_least)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int64_t until = test_now_ns();

	while (wire_status(test->wire, name) < at_least) {
		if (!test_goes_on(until, /* enough= */ false)) {
			fail_msg("%s is %" PRIi64 ", not %" PRIi64, name,
				 wire_status(test->wire, name), at_least);
		}
		(void)nanosleep(&pause, NULL);
	}
}

int64_t statsd_rejected(const struct statsd_test *test, const char *reason)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "statsd_rejected_%s", reason);
	return wire_status(test->wire, name);
}

int64_t statsd_total(const struct statsd_test *test, const char *path)
{
	struct text text = text_of(path);
	const struct request request = {
		.type = REQUEST_GET,
		.get = { .n_paths = 1, .paths = &text, .consistency = CONSISTENCY_EXACT },
	};
	struct reply reply = wire_call(test->wire, &request);

	assert_int_equal(reply.type, REPLY_VALUES);
	return reply.values.values[0].code == CODE_OK ? reply.values.values[0].total : 0;
}

/* A socket is read in order, so the last line comes last. */
void statsd_settle(const struct statsd_test *test, int fd)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int64_t until = test_now_ns();
	char line[64], path[64];
	static unsigned n;

	(void)snprintf(line, sizeof(line), "settled.%u:1|c\n", ++n);
	(void)snprintf(path, sizeof(path), "settled/%u", n);
	statsd_send_text(fd, line);
	while (statsd_total(test, path) == 0) {
		assert_true(test_goes_on(until, /* enough= */ false));
		(void)nanosleep(&pause, NULL);
	}
}
