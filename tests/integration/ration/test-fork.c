/*
 * fork: what is added in a process is counted once, whichever process it is.
 */
#include "tests/integration/ration/world.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int setup(void **state)
{
	*state = test_daemon_start(NULL);
	return 0;
}

static int teardown(void **state)
{
	test_daemon_stop(*state);
	return 0;
}

/* cmocka's assertions are for the parent: a child ends with a status. */
static void expect_success(pid_t child)
{
	int status;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static size_t count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	size_t n = 0;

	while (dir != NULL && readdir(dir) != NULL) {
		n++;
	}
	if (dir != NULL) {
		(void)closedir(dir);
	}
	return n - 2;
}

static void test_parent_and_child_are_exact(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client =
		world_open(daemon->url, 1000); /* so that little is sent at the fork */
	struct ration_counter *counter = ration_counter(client, "fork/a");
	pid_t child;

	ration_add(counter, 5);
	ration_add(counter, INT64_C(1) << 33); /* in what is unsent, not in a slot */
	child = fork();
	if (child == 0) {
		struct ration_counter *another = ration_counter(client, "fork/child");

		if (ration_flush(client, 10000) != 0 || count_threads() != 1) {
			_exit(1); /* nothing was added: no thread is needed */
		}
		ration_add(counter, 70);
		ration_inc(another);
		if (count_threads() != 2) {
			_exit(2);
		}
		_exit(ration_close(client, 10000, NULL) == 0 ? 0 : 3);
	}
	ration_add(counter, 1);
	expect_success(child);
	assert_int_equal(ration_flush(client, 10000), 0);
	assert_int_equal(world_total(daemon->url, "fork/a"), 76 + (INT64_C(1) << 33));
	assert_int_equal(world_total(daemon->url, "fork/child"), 1);
	world_close(client);
}

/* A batch was sent and its answer is not read yet: it is the parent's, and the child does not send it again. */
static void test_batches_stay_with_the_parent(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 1);
	struct ration_counter *counter = ration_counter(client, "fork/a");
	int64_t sum = 0;

	for (int i = 0; i < 50; i++) {
		pid_t child;

		for (int j = 0; j < 2000; j++) {
			ration_inc(counter);
		}
		sum += 2000;
		child = fork();
		if (child == 0) {
			ration_add(counter, 3);
			_exit(ration_close(client, 10000, NULL) == 0 ? 0 : 1);
		}
		ration_add(counter, 4);
		sum += 3 + 4;
		expect_success(child);
	}
	assert_int_equal(ration_flush(client, 10000), 0);
	assert_int_equal(world_total(daemon->url, "fork"), sum);
	world_close(client);
}

struct adder {
	struct ration_counter **counters;
	_Atomic(bool) *stop;
	int64_t sum;
};

static void *add_without_end(void *arg)
{
	struct adder *adder = arg;

	for (unsigned i = 0; !atomic_load_explicit(adder->stop, memory_order_relaxed); i++) {
		ration_add(adder->counters[i % 10], 2);
		if (i % 1000 == 0) {
			ration_add(adder->counters[i % 10],
				   (INT64_C(1) << 32) + 1); /* the way that locks */
			adder->sum += (INT64_C(1) << 32) + 1;
		}
		adder->sum += 2;
	}
	return NULL;
}

static void test_fork_while_threads_add(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 1);
	struct ration_counter *counters[10];
	_Atomic(bool) stop = false;
	struct adder adders[2];
	pthread_t threads[2];
	int64_t sum = 0;

	for (int i = 0; i < 10; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "fork/%d", i);
		counters[i] = ration_counter(client, path);
	}
	for (int t = 0; t < 2; t++) {
		adders[t] = (struct adder){ .counters = counters, .stop = &stop };
		assert_int_equal(pthread_create(&threads[t], NULL, add_without_end, &adders[t]), 0);
	}
	for (int i = 0; i < 40; i++) {
		pid_t child = fork();

		if (child == 0) {
			for (int j = 0; j < 1000; j++) {
				ration_inc(counters[j % 10]);
			}
			_exit(ration_close(client, 20000, NULL) == 0 ? 0 : 1);
		}
		expect_success(child);
		sum += 1000;
	}
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	for (int t = 0; t < 2; t++) {
		assert_int_equal(pthread_join(threads[t], NULL), 0);
		sum += adders[t].sum;
	}
	assert_int_equal(ration_flush(client, 10000), 0);
	assert_int_equal(world_total(daemon->url, "fork"), sum);
	world_close(client);
}

/* A child of a child; each with a session of its own. */
static void test_grandchild(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 1);
	struct ration_counter *counter = ration_counter(client, "fork/a");
	pid_t child;

	ration_add(counter, 1);
	assert_int_equal(ration_flush(client, 10000), 0);
	child = fork();
	if (child == 0) {
		pid_t grandchild;
		int status = -1;

		ration_add(counter, 10);
		grandchild = fork();
		if (grandchild == 0) {
			ration_add(counter, 100);
			_exit(ration_close(client, 10000, NULL) == 0 ? 0 : 1);
		}
		(void)waitpid(grandchild, &status, 0);
		_exit(status == 0 && ration_close(client, 10000, NULL) == 0 ? 0 : 1);
	}
	expect_success(child);
	assert_int_equal(world_total(daemon->url, "fork"), 111);
	world_close(client);
}

/* The connection of the synchronous functions is not shared either, whoever is using it at the fork. */
static void test_both_read(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 1);
	const char *path = "fork/a";
	struct ration_value value;
	pid_t child;

	ration_add(ration_counter(client, path), 8);
	assert_int_equal(ration_flush(client, 10000), 0);
	assert_int_equal(ration_get(client, &path, 1, RATION_EXACT, 10000, &value, NULL), 0);
	child = fork();
	for (int i = 0; i < 500; i++) {
		int r = ration_get(client, &path, 1, RATION_EXACT, 10000, &value, NULL);

		if (child == 0 && (r != 0 || value.total != 8)) {
			_exit(1);
		}
		assert_int_equal(r, 0);
		assert_int_equal(value.total, 8);
	}
	if (child == 0) {
		_exit(ration_close(client, 0, NULL) == 0 ? 0 : 2);
	}
	expect_success(child);
	world_close(client);
}

/* A child that only execs takes nothing with it: no thread, no descriptor. */
static void test_exec(void **state)
{
	struct test_daemon *daemon = *state;
	struct ration *client = world_open(daemon->url, 1);
	struct ration_counter *counter = ration_counter(client, "fork/a");
	pid_t child;

	ration_add(counter, 3);
	assert_int_equal(ration_flush(client, 10000), 0);
	child = fork();
	if (child == 0) {
		/* ls itself opens the folder: 0, 1, 2 and 3 are there, and no socket or eventfd. */
		(void)execl("/bin/sh", "sh", "-c",
			    "! ls -l /proc/self/fd | grep -E 'socket|eventfd'", (char *)NULL);
		_exit(127);
	}
	expect_success(child);
	ration_inc(counter);
	assert_int_equal(ration_flush(client, 10000), 0);
	assert_int_equal(world_total(daemon->url, "fork"), 4);
	world_close(client);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest children_add[] = {
		T(test_parent_and_child_are_exact),
		T(test_batches_stay_with_the_parent),
		T(test_fork_while_threads_add),
		T(test_grandchild),
	};
	static const struct CMUnitTest children_do_not_add[] = {
		T(test_both_read),
		T(test_exec),
	};
	int n_failed = 0;

	if (CHILDREN_MAY_HAVE_THREADS) {
		n_failed += cmocka_run_group_tests(children_add, NULL, NULL);
	}
	return n_failed + cmocka_run_group_tests(children_do_not_add, NULL, NULL);
}
