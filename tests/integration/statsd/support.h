#pragma once
/*
 * What tests of StatsD share: a daemon that listens for it everywhere, and sockets to send to it.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire.h"

#include <stddef.h>
#include <stdint.h>

enum way {
	WAY_UDP,
	WAY_UNIX,
	WAY_TCP,
	N_WAYS,
};

struct statsd_test {
	struct test_daemon *daemon;
	struct wire *wire;
	unsigned udp_port, udp6_port, tcp_port;
	char unix_path[108];
};

/* `workers`; `config`: more lines of [daemon], and sections behind them; NULL: none. */
struct statsd_test statsd_start(unsigned workers, const char *config);
void statsd_finish(struct statsd_test *test);

/* A connected socket. */
int statsd_connect(const struct statsd_test *test, enum way way);
/* To ::1; -1: there is no IPv6 here. */
int statsd_connect6(const struct statsd_test *test);
/* All of it, in one datagram where it is one. */
void statsd_send(int fd, const void *bytes, size_t len);
void statsd_send_text(int fd, const char *text);

/* Wait until a number of the status is as large as this. */
void statsd_await(const struct statsd_test *test, const char *name, int64_t at_least);
int64_t statsd_rejected(const struct statsd_test *test, const char *reason);
/* 0 if there is no such path. */
int64_t statsd_total(const struct statsd_test *test, const char *path);
/* Wait until all that was sent through this socket has been dealt with. */
void statsd_settle(const struct statsd_test *test, int fd);
