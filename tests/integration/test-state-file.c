/*
 * The state file itself: whose it is, what becomes of one that is damaged, and of a disk that fails.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire-quota.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct test_daemon *prepare(void)
{
	struct test_daemon *daemon = test_daemon_prepare("workers = 2\n");

	daemon->keeps = true;
	return daemon;
}

static void expect_exit(struct test_daemon *daemon, int code)
{
	int status = test_daemon_wait(daemon);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), code);
}

/* With a little in it. */
static void fill(struct test_daemon *daemon)
{
	struct wire *wire;

	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
	wire = wire_open(daemon->socket);
	(void)wire_greet(wire, 1, 60000, 1);
	wire_intern(wire, 1, "a/b");
	assert_false(wire_add(wire, 1, 1, 5));
	(void)wire_free(wire);
	test_daemon_signal(daemon, SIGTERM);
	expect_exit(daemon, 0);
}

static void test_two_daemons(void **state)
{
	struct test_daemon *daemon = prepare(), *second = prepare();

	(void)state;
	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
	memcpy(second->state_path, daemon->state_path, sizeof(second->state_path));
	test_daemon_spawn(second, NULL);
	expect_exit(second, 1);
	test_daemon_await_log(second, "another");
	test_daemon_clean(second);
	test_daemon_stop(daemon);
}

/* In the middle of the page of a table. */
static void damage(const char *path)
{
	uint8_t bytes[16];
	struct stat stat_buf;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &stat_buf), 0);
	for (off_t at = 4096; at < stat_buf.st_size; at += 64) {
		assert_int_equal(pread(fd, bytes, sizeof(bytes), at), sizeof(bytes));
		for (size_t i = 0; i < sizeof(bytes); i++) {
			bytes[i] ^= 0x40;
		}
		assert_int_equal(pwrite(fd, bytes, sizeof(bytes), at), sizeof(bytes));
	}
	(void)close(fd);
}

static void test_damaged(void **state)
{
	static const char *const recover[] = { "--recover", NULL };
	struct test_daemon *daemon = prepare();
	struct wire *wire;

	(void)state;
	fill(daemon);
	damage(daemon->state_path);
	test_daemon_spawn(daemon, NULL);
	expect_exit(daemon, 65);
	test_daemon_await_log(daemon, "damaged");
	test_daemon_await_log(daemon, "start with --recover");
	/* It was left alone: the second time is as the first. */
	test_daemon_spawn(daemon, NULL);
	expect_exit(daemon, 65);
	test_daemon_spawn(daemon, recover);
	test_daemon_await(daemon, "READY=1");
	test_daemon_await_log(daemon, "it was moved to");
	wire = wire_open(daemon->socket);
	(void)wire_greet(wire, 1, 60000, 1);
	wire_intern(wire, 1, "a/b");
	assert_false(wire_add(wire, 1, 1, 7));
	wire_flush_durable(wire);
	(void)wire_free(wire);
	test_daemon_restart(daemon, SIGKILL);
	wire = wire_open(daemon->socket);
	(void)wire_greet(wire, 1, 60000, 1);
	assert_int_equal(wire_total(wire, "a", CONSISTENCY_EXACT), 7);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* A good file stays as it is with --recover too. */
static void test_recover_of_a_good_one(void **state)
{
	static const char *const recover[] = { "--recover", NULL };
	struct test_daemon *daemon = prepare();
	struct wire *wire;

	(void)state;
	fill(daemon);
	test_daemon_spawn(daemon, recover);
	test_daemon_await(daemon, "READY=1");
	wire = wire_open(daemon->socket);
	(void)wire_greet(wire, 1, 60000, 1);
	assert_int_equal(wire_total(wire, "a", CONSISTENCY_EXACT), 5);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

static void test_no_such_folder(void **state)
{
	struct test_daemon *daemon = prepare();

	(void)state;
	(void)snprintf(daemon->state_path, sizeof(daemon->state_path), "%s/none/state.db",
		       daemon->dir);
	test_daemon_spawn(daemon, NULL);
	expect_exit(daemon, 1);
	test_daemon_await_log(daemon, "none/state.db");
	test_daemon_await_log(daemon, "none with --ephemeral");
	test_daemon_clean(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_daemons),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_recover_of_a_good_one),
		cmocka_unit_test(test_no_such_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
