/*
 * A process that keeps a state file is killed between any two things that it does to it, from the making of the file on: what is found is what was promised, or that and the
 * commit that was under way.
 */
#include "daemon/store/state.h"

#include "tests/support/test.h"
#include "tests/unit/store/dump.h"
#include "tests/unit/store/file-bytes.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMITS 4u

static char *texts[COMMITS + 1];

static void remove_all(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-new" };

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		file_bytes_remove(path, suffixes[i]);
	}
}

/* Says by a byte in the pipe what is promised. */
static void keep(const char *path, int promises, unsigned commits)
{
	struct sample sample;
	char why[STORE_MAX_WHY];

	sample_open(&sample, path);
	for (unsigned step = 0; step < commits; step++) {
		sample_step(&sample, step);
		sample_commit(&sample);
		assert_int_equal(write(promises, "x", 1), 1);
		sample.store->tidy_at = 0;
		assert_int_equal(store_tidy(sample.store, why), 0);
	}
	sample_close(&sample);
}

/* Killed at the n-th step; false: it came to its end before. */
static bool run(const char *path, unsigned n, unsigned *ret_promised)
{
	char number[16];
	int promises[2], status;
	char byte;
	pid_t pid;

	remove_all(path);
	(void)snprintf(number, sizeof(number), "%u", n);
	assert_int_equal(pipe(promises), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)setenv("RATION_KILL_AT_STEP", number, 1);
		keep(path, promises[1], COMMITS);
		_exit(0);
	}
	(void)close(promises[1]);
	*ret_promised = 0;
	while (read(promises[0], &byte, 1) == 1) {
		++*ret_promised;
	}
	(void)close(promises[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

static void know_the_texts(const char *path)
{
	for (unsigned n = 0; n <= COMMITS; n++) {
		int pipes[2], error;
		char why[STORE_MAX_WHY];

		remove_all(path);
		assert_int_equal(pipe(pipes), 0);
		keep(path, pipes[1], n);
		(void)close(pipes[0]);
		(void)close(pipes[1]);
		texts[n] = dump_file(path, &error, why);
		assert_non_null(texts[n]);
	}
}

static void test_killed_at_each_step(void **state)
{
	char *path;
	unsigned n = 1, promised;

	assert_true(asprintf(&path, "%s/state.db", (char *)*state) >= 0);
	know_the_texts(path);
	while (run(path, n, &promised)) {
		char why[STORE_MAX_WHY];
		int error;
		char *text = dump_file(path, &error, why);

		if (text == NULL) {
			fail_msg("killed at step %u: %s", n, why);
		}
		if (strcmp(text, texts[promised]) != 0 &&
		    (promised == COMMITS || strcmp(text, texts[promised + 1]) != 0)) {
			fail_msg("killed at step %u, %u commits promised:\n%s", n, promised, text);
		}
		free(text);
		n++;
	}
	assert_int_equal(promised, COMMITS);
	print_message("%u steps\n", n - 1);
	assert_true(n > COMMITS * 10);
	for (unsigned i = 0; i <= COMMITS; i++) {
		free(texts[i]);
	}
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_killed_at_each_step, test_dir_setup,
						test_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
