/*
 * Starting, reloading, stopping: signals, sockets of ours and of systemd, what the service manager is told.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* The number behind `label` in the log's last line that has it. */
static int64_t number_in_log(const struct test_daemon *daemon, const char *label)
{
	char *log = test_daemon_log(daemon), *at = NULL;
	int64_t value;

	for (char *next = strstr(log, label); next != NULL; next = strstr(next + 1, label)) {
		at = next;
	}
	if (at == NULL) {
		fail_msg("no '%s' in the log: %s", label, log);
	}
	value = strtoll(at + strlen(label), NULL, 10);
	free(log);
	return value;
}

/* ---- SIGTERM ---- */

#define LOADERS 4

struct loader {
	struct test_daemon *daemon;
	pthread_t thread;
	uint8_t session;
	int64_t sent, acknowledged; /* growth */
	bool told;		    /* the Goodbye came */
};

/* Adds as fast as it can, several batches under way, until the daemon is gone. */
static void *load(void *arg)
{
	struct loader *loader = arg;
	struct wire *wire = wire_open(loader->daemon->socket);
	uint32_t handles[100] = { 0 };
	int64_t deltas[100];
	uint64_t batch = 0, answered = 0;
	bool open = true;

	for (unsigned i = 0; i < 100; i++) {
		deltas[i] = i;
	}
	(void)wire_hello(wire, loader->session, 1000, 1, NULL);
	wire_intern(wire, 0, "stop/under/load");
	while (open) {
		struct request request = wire_add_request(++batch, handles, deltas, 100);
		struct reply reply = { 0 };

		(void)wire_send(wire, &request);
		loader->sent += 4950;
		while (open && (batch - answered > 8 || wire_poll(wire, 0))) {
			open = wire_receive(wire, &reply) && reply.type == REPLY_APPLIED;
			if (open) {
				assert_int_equal(reply.applied.batch, ++answered);
				loader->acknowledged += 4950;
			}
		}
		loader->told =
			reply.type == REPLY_GOODBYE && reply.goodbye.code == CODE_UNAVAILABLE;
	}
	(void)wire_free(wire);
	return NULL;
}

/* Everything acknowledged is in the last total, and nothing that was not sent. */
static void test_sigterm_under_load(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 5; round++) {
		struct test_daemon *daemon = test_daemon_start("workers = 2\nstop_timeout = 10s\n");
		struct loader loaders[LOADERS];
		int64_t sent = 0, acknowledged = 0, total;

		for (unsigned i = 0; i < LOADERS; i++) {
			loaders[i] =
				(struct loader){ .daemon = daemon, .session = (uint8_t)(i + 1) };
			assert_int_equal(
				pthread_create(&loaders[i].thread, NULL, load, &loaders[i]), 0);
		}
		(void)usleep(100000 + 10000 * round);
		test_daemon_signal(daemon, SIGTERM);
		for (unsigned i = 0; i < LOADERS; i++) {
			assert_int_equal(pthread_join(loaders[i].thread, NULL), 0);
			assert_true(loaders[i].told);
			sent += loaders[i].sent;
			acknowledged += loaders[i].acknowledged;
		}
		assert_int_equal(test_daemon_wait(daemon), 0);
		total = number_in_log(daemon, "sum of all totals ");
		assert_true(acknowledged > 0);
		/* The daemon says Goodbye as the last thing, so what was answered is what was counted. */
		assert_int_equal(total, acknowledged);
		assert_true(total <= sent);
		test_daemon_clean(daemon);
	}
}

/* What is in the socket when the stop comes is answered, up to the last whole frame. */
static void test_sigterm_drains(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 1\n");
	struct wire *wire = wire_open(daemon->socket);
	const uint32_t handle = 0;
	const int64_t delta = 2;
	struct text path = text_of("drain/a");
	const struct request get = {
		.id = 999,
		.type = REQUEST_GET,
		.get = { .n_paths = 1, .paths = &path, .consistency = CONSISTENCY_EXACT }
	};
	struct reply reply = { 0 };
	enum {
		N = 5000
	};
	uint8_t *all = malloc(N * 32 + 64);
	size_t len = 0;

	(void)state;
	assert_non_null(all);
	(void)wire_hello(wire, 1, 0, 1, NULL);
	wire_intern(wire, 0, "drain/a");
	for (uint64_t batch = 1; batch <= N + 1; batch++) {
		const struct request add = wire_add_request(batch, &handle, &delta, 1);
		size_t one_len;
		uint8_t *one = wire_encode(wire, batch <= N ? &add : &get, &one_len);

		memcpy(all + len, one, one_len);
		len += one_len;
		free(one);
	}
	memcpy(all + len, "\x05\x08", 2); /* and half a frame */
	/* Stopped, so that all of it waits in the socket; then it gets both at once. */
	test_daemon_signal(daemon, SIGSTOP);
	assert_true(wire_send_bytes(wire, all, len + 2));
	free(all);
	test_daemon_signal(daemon, SIGTERM);
	test_daemon_signal(daemon, SIGCONT);
	for (uint64_t batch = 1; batch <= N; batch++) {
		assert_true(wire_receive(wire, &reply));
		assert_int_equal(reply.type, REPLY_APPLIED);
	}
	assert_true(wire_receive(wire, &reply));
	assert_int_equal(reply.id, 999);
	assert_int_equal(reply.values.values[0].total, 2 * N);
	wire_expect_goodbye(wire, CODE_UNAVAILABLE);
	(void)wire_free(wire);
	assert_int_equal(test_daemon_wait(daemon), 0);
	assert_int_equal(number_in_log(daemon, "sum of all totals "), 2 * N);
	test_daemon_clean(daemon);
}

/* Each total is of 64 bits, and all of them together are more. */
static void test_the_sum_of_all(void **state)
{
	static const int64_t deltas[] = { INT64_MAX, INT64_MIN };
	static const char *const sums[] = { "sum of all totals 27670116110564327421\n",
					    "sum of all totals -27670116110564327424\n" };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct test_daemon *daemon = test_daemon_start(
			"[metric a]\nkind = gauge\n[metric b]\nkind = gauge\n[metric c]\nkind = gauge\n");
		struct wire *wire = wire_open(daemon->socket);
		char *log;

		(void)wire_hello(wire, 1, 0, 1, NULL);
		wire_intern(wire, 0, "a");
		wire_intern(wire, 1, "b/x");
		wire_intern(wire, 2, "c");
		for (uint32_t handle = 0; handle < 3; handle++) {
			assert_false(wire_add(wire, handle + 1, handle, deltas[i]));
		}
		(void)wire_free(wire);
		test_daemon_signal(daemon, SIGTERM);
		assert_int_equal(test_daemon_wait(daemon), 0);
		log = test_daemon_log(daemon);
		assert_non_null(strstr(log, sums[i]));
		free(log);
		test_daemon_clean(daemon);
	}
}

/* A walk that was asked for before the stop is whole, if the client reads it within stop_timeout. */
static void test_sigterm_during_walk(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 1\nstop_timeout = 20s\n");
	struct wire *wire = wire_open(daemon->socket);
	const struct request walk = {
		.id = 5,
		.type = REQUEST_WALK,
		.walk = { .root = text_of(""), .depth = MESSAGE_DEPTH_ALL, .cursor = text_of("") }
	};
	struct reply reply = { 0 };
	size_t n = 0;
	enum {
		N = 20000
	};

	(void)state;
	(void)wire_hello(wire, 1, 0, 1, NULL);
	for (uint32_t i = 0; i < N; i += 1000) {
		static char names[1000][120];
		struct text paths[1000];
		const struct request intern = {
			.type = REQUEST_INTERN,
			.intern = { .first_handle = i, .n_paths = 1000, .paths = paths }
		};

		for (uint32_t k = 0; k < 1000; k++) {
			(void)snprintf(names[k], sizeof(names[k]), "walk/%0100u", i + k);
			paths[k] = text_of(names[k]);
		}
		assert_int_equal(wire_call(wire, &intern).interned.n_errors, 0);
	}
	test_daemon_signal(daemon, SIGSTOP);
	(void)wire_send(wire, &walk);
	test_daemon_signal(daemon, SIGTERM);
	test_daemon_signal(daemon, SIGCONT);
	do {
		assert_true(wire_receive(wire, &reply));
		assert_int_equal(reply.type, REPLY_PAGE);
		n += reply.page.n_entries;
	} while (!reply.page.last);
	assert_int_equal(n, N + 1);
	wire_expect_goodbye(wire, CODE_UNAVAILABLE);
	(void)wire_free(wire);
	assert_int_equal(test_daemon_wait(daemon), 0);
	test_daemon_clean(daemon);
}

/* Clients that do not read, or never end, do not keep it from stopping. */
static void test_stop_timeout(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 2\nstop_timeout = 300ms\n");
	struct wire *deaf = wire_open(daemon->socket), *idle = wire_open(daemon->socket),
		    *new = wire_open(daemon->socket);
	const struct request request = { .id = 1, .type = REQUEST_STATUS };
	size_t len;
	uint8_t *bytes;
	int64_t began;

	(void)state;
	(void)wire_hello(idle, 0, 0, 0, NULL);
	(void)wire_hello(deaf, 0, 0, 0, NULL);
	bytes = wire_encode(deaf, &request, &len);
	for (unsigned refused = 0; refused < 20;) {
		if (send(deaf->fd, bytes, len, MSG_DONTWAIT) < 0) {
			refused++;
			(void)usleep(2000);
		}
	}
	free(bytes);
	began = test_now_ms();
	test_daemon_signal(daemon, SIGINT);
	wire_expect_goodbye(idle, CODE_UNAVAILABLE);
	wire_expect_goodbye(new, CODE_UNAVAILABLE);
	assert_int_equal(test_daemon_wait(daemon), 0);
	assert_in_range(test_now_ms() - began, 200, 15000);
	(void)wire_free(deaf);
	(void)wire_free(idle);
	(void)wire_free(new);
	test_daemon_clean(daemon);
}

/* ---- the service manager ---- */

static void test_notifications(void **state)
{
	struct test_daemon *daemon = test_daemon_prepare("workers = 1\n");
	char *text;
	int64_t before, usec;

	(void)state;
	test_daemon_spawn(daemon, NULL);
	text = test_daemon_notification(daemon);
	assert_non_null(strstr(text, "READY=1\nSTATUS=Serving"));
	free(text);
	before = test_now_ms();
	test_daemon_signal(daemon, SIGHUP);
	text = test_daemon_notification(daemon);
	assert_int_equal(strncmp(text, "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
	usec = strtoll(text + 27, NULL, 10);
	assert_in_range(usec / 1000, before, test_now_ms());
	free(text);
	text = test_daemon_notification(daemon);
	assert_non_null(strstr(text, "READY=1"));
	free(text);
	test_daemon_signal(daemon, SIGTERM);
	text = test_daemon_notification(daemon);
	assert_non_null(strstr(text, "STOPPING=1"));
	free(text);
	assert_int_equal(test_daemon_wait(daemon), 0);
	test_daemon_clean(daemon);
}

/* ---- reload ---- */

static void reload(struct test_daemon *daemon, const char *config)
{
	test_daemon_configure(daemon, config);
	test_daemon_signal(daemon, SIGHUP);
	test_daemon_await(daemon, "RELOADING=1");
	test_daemon_await(daemon, "READY=1");
}

static struct limits limits_now(struct test_daemon *daemon)
{
	struct wire *wire = wire_open(daemon->socket);
	const struct request hello = wire_hello_request(0, 0, 1);
	struct reply reply = wire_call(wire, &hello);
	struct limits limits = reply.welcome.limits;

	(void)wire_free(wire);
	return limits;
}

static void test_reload(void **state)
{
	struct test_daemon *daemon =
		test_daemon_start("workers = 1\nmax_items = 100\n[metric a]\nmax_counters = 5\n");
	struct wire *wire = wire_open(daemon->socket);
	struct request get = { .type = REQUEST_METRIC_GET, .metric_get = text_of("a") };
	struct reply reply;

	(void)state;
	(void)wire_hello(wire, 1, 0, 1, NULL);
	assert_int_equal(limits_now(daemon).max_items, 100);
	assert_int_equal(wire_call(wire, &get).metric.max_counters, 5);

	/* All of it changes, also for connections that are there. */
	reload(daemon,
	       "workers = 1\nmax_items = 7\n[metric a]\nmax_counters = 6\n[metric b]\nkind = gauge\n");
	assert_int_equal(limits_now(daemon).max_items, 7);
	assert_int_equal(wire_call(wire, &get).metric.max_counters, 6);
	get.metric_get = text_of("b");
	assert_int_equal(wire_call(wire, &get).metric.kind, KIND_GAUGE);
	test_daemon_await_log(daemon, "the configuration was reloaded");

	/* One error, and nothing changes; all errors are told. */
	reload(daemon,
	       "workers = 1\nmax_items = 8\nmax_walks = many\nno_such = 1\n[metric a]\nmax_counters = 9\n");
	assert_int_equal(limits_now(daemon).max_items, 7);
	get.metric_get = text_of("a");
	assert_int_equal(wire_call(wire, &get).metric.max_counters, 6);
	test_daemon_await_log(daemon, "conf:5: max_walks = many: is not a whole number");
	test_daemon_await_log(daemon, "conf:6: unknown key 'no_such'");
	test_daemon_await_log(daemon, "was not reloaded");

	/* A kind can't change under counters: again nothing changes. */
	wire_intern(wire, 0, "a/x");
	reload(daemon,
	       "workers = 1\nmax_items = 9\n[metric 0]\nmax_counters = 3\n[metric a]\nkind = gauge\n");
	assert_int_equal(limits_now(daemon).max_items, 7);
	assert_int_equal(wire_call(wire, &get).metric.max_counters, 6);
	test_daemon_await_log(daemon, "kind can't change");

	/* What can't change is told. */
	reload(daemon, "workers = 2\nbatch = 77\nmax_items = 10\n[metric b]\nkind = gauge\n");
	assert_int_equal(limits_now(daemon).max_items, 10);
	assert_int_equal(wire_status(wire, "workers"), 1);
	test_daemon_await_log(
		daemon, "workers has changed in the configuration, which takes effect at restart");
	test_daemon_await_log(daemon, "batch has changed");
	test_daemon_await_log(
		daemon,
		"[metric a] is no longer in the configuration, which takes effect at restart");
	assert_int_equal(wire_status(wire, "reloads"), 2);
	assert_int_equal(wire_status(wire, "reloads_failed"), 2);

	/* What a client declared stays where the files say nothing new. */
	{
		const struct request set = { .type = REQUEST_METRIC_SET,
					     .metric_set = { .name = text_of("b"),
							     .kind = KIND_GAUGE,
							     .max_counters = 4 } };

		assert_int_equal(wire_call(wire, &set).type, REPLY_METRIC);
	}
	reload(daemon, "workers = 1\nmax_items = 11\n[metric b]\nkind = gauge\n");
	get.metric_get = text_of("b");
	reply = wire_call(wire, &get);
	assert_int_equal(reply.metric.max_counters, 4);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* A file that is gone is an error like any other. */
static void test_reload_without_file(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 1\nmax_items = 100\n");

	(void)state;
	assert_int_equal(unlink(daemon->config_path), 0);
	test_daemon_signal(daemon, SIGHUP);
	test_daemon_await(daemon, "READY=1");
	assert_int_equal(limits_now(daemon).max_items, 100);
	test_daemon_await_log(daemon, "can't be read: No such file");
	test_daemon_stop(daemon);
}

/* ---- configuration at the start ---- */

static int exit_status(struct test_daemon *daemon)
{
	int status = test_daemon_wait(daemon);

	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_bad_configuration(void **state)
{
	static const char *const check[] = { "--check-config", NULL };
	struct test_daemon *daemon = test_daemon_prepare("workers = 0\n[metric ]\n");
	char *text;

	(void)state;
	test_daemon_spawn(daemon, NULL);
	text = test_daemon_notification(daemon);
	assert_non_null(strstr(text, "ERRNO="));
	free(text);
	assert_int_equal(exit_status(daemon), 78);
	test_daemon_await_log(daemon,
			      "conf:3: workers = 0: is out of range; allowed is 1 to 64, or auto");
	test_daemon_await_log(daemon, "conf:4: ");
	test_daemon_await_log(daemon, "the configuration has 2 errors");
	test_daemon_spawn(daemon, check);
	assert_int_equal(exit_status(daemon), 78);
	test_daemon_configure(daemon, "workers = 1\n");
	test_daemon_spawn(daemon, check);
	assert_int_equal(exit_status(daemon), 0);
	test_daemon_clean(daemon);
}

static void test_wrong_usage(void **state)
{
	static const char *const wrong[][3] = {
		{ "--workrs", "1" }, { "--workers" }, { "x" }, { "--version=1" }, { "--config", "y" }
	};

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct test_daemon *daemon = test_daemon_prepare(NULL);

		test_daemon_spawn(daemon, wrong[i]);
		assert_int_equal(exit_status(daemon), 64);
		test_daemon_await_log(daemon, "see rationd --help");
		test_daemon_clean(daemon);
	}
}

/* ---- sockets ---- */

static void test_stale_socket_is_replaced(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 1\n");

	(void)state;
	test_daemon_signal(daemon, SIGKILL);
	assert_true(WIFSIGNALED(test_daemon_wait(daemon)));
	assert_int_equal(access(daemon->socket, F_OK), 0);
	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
	test_daemon_await_log(daemon, "replacing a socket on which nobody listens");
	assert_true(limits_now(daemon).max_items > 0);
	test_daemon_signal(daemon, SIGTERM);
	assert_int_equal(test_daemon_wait(daemon), 0);
	/* It cleans up behind itself. */
	assert_int_equal(access(daemon->socket, F_OK), -1);
	test_daemon_clean(daemon);
}

static void test_live_socket_is_not(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 1\n");
	pid_t first = daemon->pid;
	char lock[128];

	(void)state;
	test_daemon_spawn(daemon, NULL);
	assert_int_equal(exit_status(daemon), 1);
	test_daemon_await_log(daemon, "another rationd is listening there");
	/* Even without the lock file: somebody answers. */
	(void)snprintf(lock, sizeof(lock), "%s.lock", daemon->socket);
	assert_int_equal(unlink(lock), 0);
	test_daemon_spawn(daemon, NULL);
	assert_int_equal(exit_status(daemon), 1);
	test_daemon_await_log(daemon, "another program is listening there");
	daemon->pid = first;
	assert_true(limits_now(daemon).max_items > 0);
	test_daemon_stop(daemon);
}

static void test_file_is_not_removed(void **state)
{
	struct test_daemon *daemon = test_daemon_prepare("workers = 1\n");
	FILE *file = fopen(daemon->socket, "we");

	(void)state;
	assert_non_null(file);
	(void)fputs("precious", file);
	(void)fclose(file);
	test_daemon_spawn(daemon, NULL);
	assert_int_equal(exit_status(daemon), 1);
	test_daemon_await_log(daemon, "a file that is not a socket");
	assert_int_equal(access(daemon->socket, F_OK), 0);
	test_daemon_clean(daemon);
}

static void test_no_folder(void **state)
{
	static const char *const more[] = { "--listen", "unix:/nowhere/at/all", NULL };
	struct test_daemon *daemon = test_daemon_prepare(NULL);

	(void)state;
	test_daemon_spawn(daemon, more);
	assert_int_equal(exit_status(daemon), 1);
	test_daemon_await_log(daemon, "unix:/nowhere/at/all: there is no such folder");
	test_daemon_clean(daemon);
}

/* A daemon that was replaced at its path does not remove the socket of the one after it. */
static void test_socket_of_another_is_not_removed(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 1\n");
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", daemon->socket);
	assert_int_equal(unlink(daemon->socket), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	test_daemon_signal(daemon, SIGTERM);
	assert_int_equal(test_daemon_wait(daemon), 0);
	assert_int_equal(access(daemon->socket, F_OK), 0);
	(void)close(fd);
	test_daemon_clean(daemon);
}

static void test_socket_mode(void **state)
{
	struct test_daemon *daemon = test_daemon_start("socket_mode = 0640\n");
	struct stat stat;

	(void)state;
	assert_int_equal(lstat(daemon->socket, &stat), 0);
	assert_int_equal(stat.st_mode & 0777, 0640);
	test_daemon_stop(daemon);
}

static void test_tcp(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 2\nlisten = tcp:127.0.0.1:0\n");
	unsigned port = (unsigned)number_in_log(daemon, "listening on tcp:127.0.0.1:");
	struct wire *wire = wire_open_tcp(AF_INET, port);

	(void)state;
	(void)wire_hello(wire, 1, 0, 1, NULL);
	wire_intern(wire, 0, "tcp/a");
	assert_false(wire_add(wire, 1, 0, 3));
	assert_int_equal(wire_total(wire, "tcp", CONSISTENCY_EXACT), 3);
	(void)wire_send_bytes(wire, "\xff\xff\xff\xff", 4);
	wire_expect_goodbye(wire, CODE_INVALID_ARGUMENT);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* A port that nobody has at ::1; 0: the machine has no IPv6. */
static unsigned ipv6_port(void)
{
	struct sockaddr_in6 probe = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	socklen_t len = sizeof(probe);
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has_ipv6 = fd >= 0 && bind(fd, (struct sockaddr *)&probe, sizeof(probe)) == 0 &&
			getsockname(fd, (struct sockaddr *)&probe, &len) == 0;

	(void)close(fd);
	return has_ipv6 ? ntohs(probe.sin6_port) : 0;
}

/* One address for both families, where the machine has both. */
static void test_tcp_dual_stack(void **state)
{
	struct test_daemon *daemon;
	struct wire *wire;
	bool has_ipv6 = ipv6_port() != 0;
	unsigned port;

	(void)state;
	daemon = test_daemon_start("workers = 1\nlisten = tcp:*:0\n");
	port = (unsigned)number_in_log(daemon, has_ipv6 ? "listening on tcp:*:"
							: "listening on tcp:0.0.0.0:");
	wire = wire_open_tcp(AF_INET, port);
	(void)wire_hello(wire, 0, 0, 0, NULL);
	(void)wire_free(wire);
	if (has_ipv6) {
		wire = wire_open_tcp(AF_INET6, port);
		(void)wire_hello(wire, 0, 0, 0, NULL);
		(void)wire_free(wire);
	}
	test_daemon_stop(daemon);
}

/* An address of each family: an IPv6 one is that and no more, so they can share a port. */
static void test_tcp_of_both_families(void **state)
{
	struct test_daemon *daemon;
	struct wire *wire;
	char config[128];
	unsigned port = ipv6_port();

	(void)state;
	if (port == 0) {
		skip();
	}
	(void)snprintf(config, sizeof(config),
		       "workers = 1\nlisten = tcp:[::]:%u\nlisten = tcp:0.0.0.0:%u\n", port, port);
	daemon = test_daemon_start(config);
	assert_int_equal(number_in_log(daemon, "listening on tcp:[::]:"), port);
	wire = wire_open_tcp(AF_INET, port);
	(void)wire_hello(wire, 0, 0, 0, NULL);
	(void)wire_free(wire);
	wire = wire_open_tcp(AF_INET6, port);
	(void)wire_hello(wire, 0, 0, 0, NULL);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

static void test_port_in_use(void **state)
{
	struct test_daemon *first = test_daemon_start("workers = 1\nlisten = tcp:127.0.0.1:0\n"),
			   *second;
	char config[64];

	(void)state;
	(void)snprintf(config, sizeof(config), "listen = tcp:127.0.0.1:%u\n",
		       (unsigned)number_in_log(first, "listening on tcp:127.0.0.1:"));
	second = test_daemon_prepare(config);
	test_daemon_spawn(second, NULL);
	assert_int_equal(exit_status(second), 1);
	test_daemon_await_log(second, "Address already in use");
	/* It leaves nothing behind. */
	assert_int_equal(access(second->socket, F_OK), -1);
	test_daemon_clean(second);
	test_daemon_stop(first);
}

/* ---- sockets that systemd passes ---- */

static int listen_on(const char *path, int type)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0);

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	if (type == SOCK_STREAM) {
		assert_int_equal(listen(fd, 10), 0);
	}
	return fd;
}

/* As systemd does it: from fd 3 on, and LISTEN_PID is the daemon's own. */
static void spawn_activated(struct test_daemon *daemon, const int *fds, int n, const char *names)
{
	daemon->pid = fork();
	assert_true(daemon->pid >= 0);
	if (daemon->pid == 0) {
		char number[16], notify[128];
		const char *program = getenv("RATIOND");
		int log = open(daemon->log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);

		(void)dup2(log, 2);
		for (int i = 0; i < n; i++) {
			(void)dup2(fds[i], 100 + i);
		}
		for (int i = 0; i < n; i++) {
			(void)dup2(100 + i, 3 + i);
			(void)close(100 + i);
		}
		for (int fd = 3 + n; fd < 64; fd++) {
			(void)close(fd);
		}
		(void)snprintf(notify, sizeof(notify), "%s/notify", daemon->dir);
		(void)setenv("NOTIFY_SOCKET", notify, 1);
		(void)snprintf(number, sizeof(number), "%d", n);
		(void)setenv("LISTEN_FDS", number, 1);
		(void)snprintf(number, sizeof(number), "%d", (int)getpid());
		(void)setenv("LISTEN_PID", number, 1);
		(void)setenv("LISTEN_FDNAMES", names, 1);
		(void)execl(program != NULL ? program : RATIOND_PROGRAM, "rationd", "--config",
			    daemon->config_path, "--ephemeral", (char *)NULL);
		_exit(127);
	}
}

static void write_plain_config(struct test_daemon *daemon, const char *text)
{
	FILE *file = fopen(daemon->config_path, "we");

	assert_non_null(file);
	(void)fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void test_activation(void **state)
{
	struct test_daemon *daemon = test_daemon_prepare(NULL);
	char second[96];
	int fds[2];

	(void)state;
	(void)snprintf(second, sizeof(second), "%.63s/second", daemon->dir);
	fds[0] = listen_on(daemon->socket, SOCK_STREAM);
	fds[1] = listen_on(second, SOCK_STREAM);
	write_plain_config(daemon, "[daemon]\nworkers = 1\n");
	spawn_activated(daemon, fds, 2, "rationd:rationd-other");
	test_daemon_await(daemon, "READY=1");
	assert_true(limits_now(daemon).max_items > 0);
	test_daemon_await_log(daemon, "passed as rationd\n");
	test_daemon_await_log(daemon, "passed as rationd-other\n");
	(void)snprintf(daemon->socket, sizeof(daemon->socket), "%s", second);
	assert_true(limits_now(daemon).max_items > 0);
	test_daemon_signal(daemon, SIGTERM);
	assert_int_equal(test_daemon_wait(daemon), 0);
	/* They are systemd's: their files stay. */
	assert_int_equal(access(second, F_OK), 0);
	(void)close(fds[0]);
	(void)close(fds[1]);
	test_daemon_clean(daemon);
}

static void test_activation_with_wrong_socket(void **state)
{
	struct test_daemon *daemon = test_daemon_prepare(NULL);
	int fd;

	(void)state;
	fd = listen_on(daemon->socket, SOCK_DGRAM);
	write_plain_config(daemon, "");
	spawn_activated(daemon, &fd, 1, "rationd-odd");
	assert_int_equal(exit_status(daemon), 1);
	test_daemon_await_log(daemon,
			      "(rationd-odd) that was passed is not a listening stream socket");
	(void)close(fd);
	test_daemon_clean(daemon);
}

/* Which protocol is meant is not to be guessed. */
static void test_activation_with_unknown_name(void **state)
{
	struct test_daemon *daemon = test_daemon_prepare(NULL);
	int fd;

	(void)state;
	fd = listen_on(daemon->socket, SOCK_STREAM);
	write_plain_config(daemon, "");
	spawn_activated(daemon, &fd, 1, "web");
	assert_int_equal(exit_status(daemon), 1);
	test_daemon_await_log(daemon, "let it be rationd, or rationd-web");
	(void)close(fd);
	test_daemon_clean(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sigterm_under_load),
		cmocka_unit_test(test_sigterm_drains),
		cmocka_unit_test(test_sigterm_during_walk),
		cmocka_unit_test(test_stop_timeout),
		cmocka_unit_test(test_notifications),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_reload_without_file),
		cmocka_unit_test(test_bad_configuration),
		cmocka_unit_test(test_wrong_usage),
		cmocka_unit_test(test_stale_socket_is_replaced),
		cmocka_unit_test(test_live_socket_is_not),
		cmocka_unit_test(test_file_is_not_removed),
		cmocka_unit_test(test_no_folder),
		cmocka_unit_test(test_socket_of_another_is_not_removed),
		cmocka_unit_test(test_socket_mode),
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_the_sum_of_all),
		cmocka_unit_test(test_tcp_dual_stack),
		cmocka_unit_test(test_tcp_of_both_families),
		cmocka_unit_test(test_port_in_use),
		cmocka_unit_test(test_activation),
		cmocka_unit_test(test_activation_with_wrong_socket),
		cmocka_unit_test(test_activation_with_unknown_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
