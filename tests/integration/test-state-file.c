/*
 * The state file itself: whose it is, what becomes of one that is damaged, and of a disk that fails.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire-quota.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
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

/* ---- a disk that fails: a small file system of our own, where we may make one ---- */

struct disk {
	struct test_daemon *daemon;
	char dir[80], ballast[128];
	bool mounted;
};

/* False: we may not. */
static bool make_disk(struct disk *disk)
{
	*disk = (struct disk){ .daemon = prepare() };
	(void)snprintf(disk->dir, sizeof(disk->dir), "%s/disk", disk->daemon->dir);
	(void)snprintf(disk->ballast, sizeof(disk->ballast), "%s/ballast", disk->dir);
	(void)snprintf(disk->daemon->state_path, sizeof(disk->daemon->state_path), "%s/state.db",
		       disk->dir);
	assert_int_equal(mkdir(disk->dir, 0700), 0);
	if (mount("rationd-test", disk->dir, "tmpfs", 0, "size=4m") != 0) {
		(void)fprintf(stderr, "SKIPPED: no file system can be mounted here: %s\n",
			      strerror(errno));
		test_daemon_clean(disk->daemon);
		return false;
	}
	test_daemon_spawn(disk->daemon, NULL);
	test_daemon_await(disk->daemon, "READY=1");
	return true;
}

static void free_disk(struct disk *disk)
{
	test_daemon_signal(disk->daemon, SIGTERM);
	expect_exit(disk->daemon, 0);
	assert_int_equal(umount(disk->dir), 0);
	test_daemon_clean(disk->daemon);
}

/* All that there is room for. */
static void fill_up(const struct disk *disk)
{
	int fd = open(disk->ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	static const char zeros[65536];

	assert_true(fd >= 0);
	for (size_t size = sizeof(zeros); size > 0; size /= 2) {
		while (write(fd, zeros, size) > 0) {
			/* more */
		}
	}
	(void)close(fd);
}

/* Many new counters, so that the file has to grow. */
static void add_many(struct wire *wire, uint64_t batch)
{
	for (uint32_t i = 0; i < 500; i++) {
		char path[128];

		(void)snprintf(path, sizeof(path), "many/%0100u/%u", (unsigned)batch, i);
		wire_intern(wire, i, path);
	}
	for (uint32_t i = 0; i < 500; i++) {
		assert_false(wire_add(wire, batch + i, i, 1));
	}
}

static void expect_not_durable(struct wire *wire, const char *why)
{
	const struct request request = { .type = REQUEST_FLUSH, .flush = { .durable = true } };

	(void)wire_send(wire, &request);
	wire_expect_error(wire, CODE_UNAVAILABLE, why);
}

/*
 * Counting goes on, nothing becomes durable, everybody is told; and when the disk is good again all becomes durable by itself. What was durable stays so,
 * and so does what came meanwhile.
 */
static void check_fault(struct disk *disk, struct wire *wire, const char *why)
{
	struct test_daemon *daemon = disk->daemon;
	uint64_t durable = wire->durable.batch;

	expect_not_durable(wire, why);
	test_daemon_await_log(daemon, "nothing more becomes durable");
	test_daemon_await_log(daemon, why);
	assert_true(wire_status(wire, "checkpoints_failed") > 0);
	assert_true(wire_status(wire, "checkpoint_age_ms") > 0);
	assert_int_equal(wire->durable.batch, durable);
	assert_int_equal(wire_total(wire, "many", CONSISTENCY_EXACT), 1000);
	for (;;) {
		char *text = test_daemon_notification(daemon);
		bool told = strstr(text, "Nothing becomes durable") != NULL;

		free(text);
		if (told) {
			break;
		}
	}
}

static void check_recovery(struct disk *disk, struct wire *wire)
{
	struct test_daemon *daemon = disk->daemon;

	wire_await_durable(wire, 1000, 0);
	test_daemon_await_log(daemon, "the state file is written again");
	wire_flush_durable(wire);
	(void)wire_free(wire);
	test_daemon_restart(daemon, SIGKILL);
	wire = wire_open(daemon->socket);
	(void)wire_greet(wire, 1, 60000, 1);
	assert_int_equal(wire_total(wire, "many", CONSISTENCY_EXACT), 1000);
	(void)wire_free(wire);
}

static struct wire *begin_fault(struct disk *disk)
{
	struct wire *wire = wire_open(disk->daemon->socket);

	(void)wire_greet(wire, 1, 60000, 1);
	add_many(wire, 1);
	wire_await_durable(wire, 500, 0);
	return wire;
}

static void test_disk_full(void **state)
{
	struct disk disk;
	struct wire *wire;

	(void)state;
	if (!make_disk(&disk)) {
		skip();
	}
	wire = begin_fault(&disk);
	fill_up(&disk);
	add_many(wire, 501);
	check_fault(&disk, wire, "full");
	assert_int_equal(unlink(disk.ballast), 0);
	check_recovery(&disk, wire);
	free_disk(&disk);
}

/* It is full when the daemon ends: that says so, and what was durable is there the next time. */
static void test_disk_full_at_the_end(void **state)
{
	struct disk disk;
	struct wire *wire;

	(void)state;
	if (!make_disk(&disk)) {
		skip();
	}
	wire = begin_fault(&disk);
	fill_up(&disk);
	add_many(wire, 501);
	expect_not_durable(wire, "full");
	test_daemon_signal(disk.daemon, SIGTERM);
	expect_exit(disk.daemon, 1);
	(void)wire_free(wire);
	assert_int_equal(unlink(disk.ballast), 0);
	test_daemon_drop_notifications(disk.daemon);
	test_daemon_spawn(disk.daemon, NULL);
	test_daemon_await(disk.daemon, "READY=1");
	wire = wire_open(disk.daemon->socket);
	(void)wire_greet(wire, 1, 60000, 1);
	assert_int_equal(wire_total(wire, "many", CONSISTENCY_EXACT), 500);
	(void)wire_free(wire);
	free_disk(&disk);
}

#ifdef BAD_DISK

static void set_fault(const char *path, int number)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	(void)fprintf(file, "%d", number);
	assert_int_equal(fclose(file), 0);
}

static void check_bad_disk(int number, const char *why)
{
	struct disk disk = { .daemon = prepare() };
	struct wire *wire;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/fault", disk.daemon->dir);
	(void)setenv("RATION_BAD_DISK", path, 1);
	(void)setenv("LD_PRELOAD", BAD_DISK, 1);
	test_daemon_spawn(disk.daemon, NULL);
	test_daemon_await(disk.daemon, "READY=1");
	wire = begin_fault(&disk);
	set_fault(path, number);
	add_many(wire, 501);
	check_fault(&disk, wire, why);
	assert_int_equal(unlink(path), 0);
	check_recovery(&disk, wire);
	(void)unsetenv("LD_PRELOAD");
	test_daemon_stop(disk.daemon);
}

static void test_io_error(void **state)
{
	(void)state;
	check_bad_disk(EIO, "I/O error");
}

static void test_read_only(void **state)
{
	(void)state;
	check_bad_disk(EROFS, "I/O error");
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_daemons),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_recover_of_a_good_one),
		cmocka_unit_test(test_no_such_folder),
		cmocka_unit_test(test_disk_full),
		cmocka_unit_test(test_disk_full_at_the_end),
#ifdef BAD_DISK
		cmocka_unit_test(test_io_error),
		cmocka_unit_test(test_read_only),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
