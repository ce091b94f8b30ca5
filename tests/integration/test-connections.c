/*
 * Many clients, slow clients, silent clients, dead clients: none of them is another one's trouble.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 2000

static void allow_many_files(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max < 8192 ? limit.rlim_max : 8192;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* All of them count, the total is exact, and while they are idle they cost little. */
static void test_many_connections(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 2\n");
	static struct wire *wires[MANY];
	int64_t before, after;

	(void)state;
	allow_many_files();
	before = test_daemon_rss(daemon);
	for (unsigned i = 0; i < MANY; i++) {
		struct request hello = wire_hello_request(0, 60000, 1);
		char session[16] = "many";

		memcpy(session + 4, &i, sizeof(i));
		hello.hello.session = (struct text){ .at = session, .len = sizeof(session) };
		wires[i] = wire_open(daemon->socket);
		assert_int_equal(wire_call(wires[i], &hello).type, REPLY_WELCOME);
	}
	for (unsigned i = 0; i < MANY; i++) {
		wire_intern(wires[i], 0, i % 2 == 0 ? "many/even" : "many/odd");
		assert_false(wire_add(wires[i], 1, 0, i));
	}
	after = test_daemon_rss(daemon);
	assert_int_equal(wire_total(wires[7], "many", CONSISTENCY_EXACT),
			 (int64_t)MANY * (MANY - 1) / 2);
	assert_int_equal(wire_status(wires[7], "connections"), MANY);
	assert_int_equal(wire_status(wires[7], "sessions"), MANY);
	(void)fprintf(stderr, "%d connections with a session: %lld bytes each\n", MANY,
		      (long long)(after - before) / MANY);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true((after - before) / MANY < 4096);
#endif
	for (unsigned i = 0; i < MANY; i++) {
		(void)wire_free(wires[i]);
	}
	test_daemon_stop(daemon);
}

static void test_connection_cap(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 2\nmax_connections = 3\n");
	struct wire *wires[3], *extra;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		wires[i] = wire_open(daemon->socket);
		(void)wire_hello(wires[i], 0, 0, 0, NULL);
	}
	for (unsigned i = 0; i < 20; i++) {
		extra = wire_open(daemon->socket);
		wire_expect_goodbye(extra, CODE_RESOURCE_EXHAUSTED);
		(void)wire_free(extra);
	}
	assert_int_equal(wire_status(wires[0], "connections_refused"), 20);
	/* Lines that peers provoke are limited. */
	test_daemon_await_log(daemon, "max_connections");
	/* One leaves, one may come. */
	(void)wire_free(wires[2]);
	while (wire_status(wires[0], "connections") > 2) {
		(void)usleep(1000);
	}
	wires[2] = wire_open(daemon->socket);
	(void)wire_hello(wires[2], 0, 0, 0, NULL);
	for (unsigned i = 0; i < 3; i++) {
		(void)wire_free(wires[i]);
	}
	test_daemon_signal(daemon, SIGTERM);
	assert_int_equal(test_daemon_wait(daemon), 0);
	test_daemon_await_log(daemon, "suppressed 10 more lines");
	test_daemon_clean(daemon);
}

/* Without file descriptors it refuses, does not spin, and goes on once there are some. */
static void test_no_file_descriptors(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 1\n");
	const struct rlimit few = { .rlim_cur = 24, .rlim_max = 24 };
	struct wire *wires[40];
	struct reply reply;
	unsigned refused = 0, i;
	int64_t cpu;

	(void)state;
	assert_int_equal(prlimit(daemon->pid, RLIMIT_NOFILE, &few, NULL), 0);
	for (i = 0; i < 40; i++) {
		const struct request hello = wire_hello_request(0, 0, 1);

		wires[i] = wire_open(daemon->socket);
		(void)wire_send(wires[i], &hello);
		if (!wire_receive(wires[i], &reply)) {
			refused++;
		}
	}
	assert_in_range(refused, 10, 39);
	cpu = test_daemon_cpu_ns(daemon);
	(void)usleep(300000);
	assert_true(test_daemon_cpu_ns(daemon) - cpu < 100000000);
	for (i = 0; i < 40; i++) {
		(void)wire_free(wires[i]);
	}
	/* It has some again: a new client is served, after a few tries at most. */
	for (i = 0;; i++) {
		struct wire *wire = wire_open(daemon->socket);
		const struct request hello = wire_hello_request(0, 0, 1);
		bool served;

		(void)wire_send(wire, &hello);
		served = wire_receive(wire, &reply);
		(void)wire_free(wire);
		if (served) {
			break;
		}
		assert_true(i < 100);
		(void)usleep(10000);
	}
	test_daemon_stop(daemon);
}

/* A soft limit that is too low for max_connections is raised; a hard one is told. */
static void test_file_limits(void **state)
{
	struct rlimit before, few, now;
	struct test_daemon *daemon;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ .rlim_cur = 100, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	daemon = test_daemon_start("workers = 1\nmax_connections = 200\n");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(prlimit(daemon->pid, RLIMIT_NOFILE, NULL, &now), 0);
	assert_true(now.rlim_cur > 200);
	few.rlim_cur = few.rlim_max = now.rlim_cur;
	assert_int_equal(prlimit(daemon->pid, RLIMIT_NOFILE, &few, NULL), 0);
	test_daemon_configure(daemon, "workers = 1\nmax_connections = 100000\n");
	test_daemon_signal(daemon, SIGHUP);
	test_daemon_await_log(daemon, "max_connections is 100000 and");
	test_daemon_stop(daemon);
}

/* Sends requests with long answers until the socket takes no more, and reads nothing. */
static struct wire *open_deaf(struct test_daemon *daemon)
{
	struct wire *wire = wire_open(daemon->socket);
	const struct request request = { .id = 1, .type = REQUEST_STATUS };
	size_t len;
	uint8_t *bytes;
	unsigned refused = 0;

	(void)wire_hello(wire, 0, 0, 0, NULL);
	bytes = wire_encode(wire, &request, &len);
	while (refused < 20) {
		if (send(wire->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)len) {
			refused++;
			(void)usleep(5000);
		}
	}
	free(bytes);
	return wire;
}

/* It is not read from any more, others do not feel it, and in the end it is dropped; what is kept for it stays bounded. */
static void test_reader_that_never_reads(void **state)
{
	struct test_daemon *daemon =
		test_daemon_start("workers = 1\nmax_output = 3Mi\nwrite_timeout = 3s\n");
	struct wire *other = wire_open(daemon->socket), *deaf;
	int64_t rss, longest = 0, until;
	uint64_t batch = 1;

	(void)state;
	(void)wire_hello(other, 1, 0, 1, NULL);
	wire_intern(other, 0, "deaf/other");
	assert_false(wire_add(other, batch++, 0, 1));
	rss = test_daemon_rss(daemon);
	deaf = open_deaf(daemon);
	assert_true(wire_status(other, "pauses") >= 1);
	assert_int_equal(wire_status(other, "connections"), 2);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(test_daemon_rss(daemon) - rss < 6 << 20);
#else
	(void)rss;
#endif
	until = test_now_ms() + 20000;
	while (wire_status(other, "connections") == 2) {
		int64_t began = test_now_ms(), took;

		assert_false(wire_add(other, batch++, 0, 1));
		took = test_now_ms() - began;
		longest = took > longest ? took : longest;
		assert_true(test_now_ms() < until);
		(void)usleep(1000);
	}
	assert_true(longest < 2000);
	assert_int_equal(wire_status(other, "faults_timeout"), 1);
	assert_int_equal(wire_total(other, "deaf", CONSISTENCY_EXACT), (int64_t)batch - 1);
	test_daemon_await_log(daemon, "does not read what waits for it");
	(void)wire_free(deaf);
	(void)wire_free(other);
	test_daemon_stop(daemon);
}

/* A client that reads late gets everything: a pause loses nothing. */
static void test_reader_that_reads_late(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 1\nmax_output = 3Mi\n");
	struct wire *wire = wire_open(daemon->socket), *other = wire_open(daemon->socket);
	enum {
		N = 4000
	};
	pid_t writer;
	int status;

	(void)state;
	(void)wire_hello(wire, 0, 0, 0, NULL);
	(void)wire_hello(other, 0, 0, 0, NULL);
	writer = fork();
	assert_true(writer >= 0);
	if (writer == 0) {
		for (unsigned i = 1; i <= N; i++) {
			const struct request request = { .id = i,
							 .type = i % 2 == 0 ? REQUEST_STATUS
									    : REQUEST_PING };

			(void)wire_send(wire, &request);
		}
		_exit(0);
	}
	while (wire_status(other, "pauses") == 0) {
		(void)usleep(2000);
	}
	for (unsigned i = 1; i <= N; i++) {
		struct reply reply = { 0 };

		assert_true(wire_receive(wire, &reply));
		assert_int_equal(reply.id, i);
		assert_int_equal(reply.type, i % 2 == 0 ? REPLY_STATUS : REPLY_PONG);
	}
	assert_int_equal(waitpid(writer, &status, 0), writer);
	(void)wire_free(wire);
	(void)wire_free(other);
	test_daemon_stop(daemon);
}

static void test_half_open_frame(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 1\nidle_frame = 300ms\n");
	struct wire *half = wire_open(daemon->socket), *idle = wire_open(daemon->socket),
		    *slow = wire_open(daemon->socket);
	const struct request ping = { .type = REQUEST_PING };
	int64_t began = test_now_ms();

	(void)state;
	(void)wire_hello(idle, 0, 0, 0, NULL);
	(void)wire_hello(slow, 0, 0, 0, NULL);
	(void)wire_hello(half, 0, 0, 0, NULL);
	began = test_now_ms();
	assert_true(wire_send_bytes(half, "\x80\x80\x40 and so on", 9));
	/* Bytes now and then do not help: it is the whole frame that counts. */
	while (!wire_poll(half, 50)) {
		(void)wire_send_bytes(half, "x", 1);
		assert_true(test_now_ms() - began < 20000);
	}
	wire_expect_goodbye(half, CODE_DEADLINE_EXCEEDED);
	assert_true(test_now_ms() - began >= 290);
	/* Between frames one may be idle for ever. */
	assert_int_equal(wire_call(idle, &ping).type, REPLY_PONG);
	assert_int_equal(wire_call(slow, &ping).type, REPLY_PONG);
	test_daemon_await_log(daemon, "did not become whole in time");
	(void)wire_free(half);
	(void)wire_free(idle);
	(void)wire_free(slow);
	test_daemon_stop(daemon);
}

static void test_slow_hello(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 1\nhello_timeout = 200ms\n");
	struct wire *silent = wire_open(daemon->socket), *trickle = wire_open(daemon->socket),
		    *good = wire_open(daemon->socket);
	const struct request ping = { .type = REQUEST_PING };

	(void)state;
	(void)wire_hello(good, 0, 0, 0, NULL);
	assert_true(wire_send_bytes(trickle, "\x30", 1));
	wire_expect_goodbye(silent, CODE_DEADLINE_EXCEEDED);
	wire_expect_goodbye(trickle, CODE_DEADLINE_EXCEEDED);
	assert_int_equal(wire_call(good, &ping).type, REPLY_PONG);
	(void)wire_free(silent);
	(void)wire_free(trickle);
	(void)wire_free(good);
	test_daemon_stop(daemon);
}

/* A client that counts until it is killed. It tells through a pipe how far it was acknowledged. */
static void count_until_killed(struct test_daemon *daemon, uint8_t session, int tell)
{
	struct wire *wire = wire_open(daemon->socket);

	(void)wire_hello(wire, session, 0, 1, NULL);
	wire_intern(wire, 0, "killed");
	for (uint64_t batch = 1;; batch++) {
		(void)wire_add(wire, batch, 0, 1);
		(void)!write(tell, "", 1);
	}
}

static void test_clients_killed(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 2\n");
	struct wire *wire = wire_open(daemon->socket);
	int64_t acknowledged = 0, total;
	enum {
		N = 20
	};

	(void)state;
	(void)wire_hello(wire, 0, 0, 0, NULL);
	for (unsigned i = 0; i < N; i++) {
		char bytes[65536];
		int pipe_fd[2];
		ssize_t n;
		pid_t pid;

		assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			count_until_killed(daemon, (uint8_t)(i + 1), pipe_fd[1]);
		}
		(void)close(pipe_fd[1]);
		assert_int_equal(read(pipe_fd[0], bytes, 1), 1);
		(void)usleep(2000 * i);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		acknowledged++;
		while ((n = read(pipe_fd[0], bytes, sizeof(bytes))) > 0) {
			acknowledged += n;
		}
		(void)close(pipe_fd[0]);
	}
	while (wire_status(wire, "connections") > 1) {
		(void)usleep(1000);
	}
	total = wire_total(wire, "killed", CONSISTENCY_EXACT);
	/* One each may have been counted whose acknowledgement was not taken down. */
	assert_in_range(total, acknowledged, acknowledged + N);
	assert_int_equal(wire_status(wire, "sessions"), 0);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* A client may shut down its direction and read to the end. */
static void test_half_close(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 2\n");
	struct wire *wire = wire_open(daemon->socket);
	const struct request hello = wire_hello_request(4, 1000, 1),
			     status = { .type = REQUEST_STATUS };
	struct reply reply = { 0 };

	(void)state;
	(void)wire_send(wire, &hello);
	for (unsigned i = 0; i < 100; i++) {
		(void)wire_send(wire, &status);
	}
	wire_shutdown(wire);
	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.type, REPLY_WELCOME);
	for (unsigned i = 0; i < 100; i++) {
		assert_true(wire_receive(wire, &reply));
		assert_int_equal(reply.type, REPLY_STATUS);
	}
	wire_expect_closed(wire);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_connections),
		cmocka_unit_test(test_connection_cap),
		cmocka_unit_test(test_no_file_descriptors),
		cmocka_unit_test(test_file_limits),
		cmocka_unit_test(test_reader_that_never_reads),
		cmocka_unit_test(test_reader_that_reads_late),
		cmocka_unit_test(test_half_open_frame),
		cmocka_unit_test(test_slow_hello),
		cmocka_unit_test(test_clients_killed),
		cmocka_unit_test(test_half_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
