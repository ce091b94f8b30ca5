/*
 * The power fails at each moment of some commits, of tidying the log, of an end in order and a start after it: what is found then is what the file said before or after the
 * commit that was under way, and never less than what a commit promised.
 */
#include "daemon/store/state.h"

#include "tests/support/test.h"
#include "tests/unit/store/disk.h"
#include "tests/unit/store/dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMITS 14u
#define TRIES 6u

static char *texts[COMMITS + 2]; /* after so many commits */

/* What the file says after each of the commits, found without a disk that fails. */
static void know_the_texts(const char *path)
{
	struct sample sample;

	for (unsigned n = 0; n <= COMMITS; n++) {
		char why[STORE_MAX_WHY];
		int error;

		(void)unlink(path);
		sample_open(&sample, path);
		for (unsigned step = 0; step < n; step++) {
			sample_step(&sample, step);
			sample_commit(&sample);
		}
		sample_close(&sample);
		texts[n] = dump_file(path, &error, why);
		assert_non_null(texts[n]);
	}
}

/* All that is ever done to a file, from the first commit on. */
static void record(const char *path)
{
	struct sample sample;
	char why[STORE_MAX_WHY];

	sample_open(&sample, path);
	disk_record(path);
	for (unsigned step = 0; step < COMMITS; step++) {
		sample_step(&sample, step);
		sample_commit(&sample);
		disk_mark(step + 1);
		sample.store->tidy_at = 40;
		assert_int_equal(store_tidy(sample.store, why), 0);
	}
	sample_close(&sample);
}

static void check(const char *path, size_t len, enum disk_loss loss, struct test_random *random)
{
	unsigned promised = disk_after(len, loss, random, path);
	char why[STORE_MAX_WHY];
	int error;
	char *text = dump_file(path, &error, why);

	if (text == NULL) {
		fail_msg("after %zu calls, loss %d: %d: %s", len, (int)loss, error, why);
	}
	/* The one that is under way may be there or not. */
	if (strcmp(text, texts[promised]) != 0 &&
	    (promised == COMMITS || strcmp(text, texts[promised + 1]) != 0)) {
		fail_msg("after %zu calls, loss %d: %u commits were promised:\n%s", len, (int)loss,
			 promised, text);
	}
	free(text);
}

static void test_power(void **state)
{
	char *path = test_dir_file(state, "state.db");
	char *found = test_dir_file(state, "found.db");
	struct test_random random;
	size_t n;

	test_random_init(&random, 1);
	know_the_texts(path);
	(void)unlink(path);
	disk_install();
	record(path);
	n = disk_record_end();
	print_message("%zu calls\n", n);
	assert_true(n > COMMITS * 4);
	for (size_t len = 0; len <= n; len++) {
		check(found, len, DISK_LOSES_NOTHING, &random);
		check(found, len, DISK_LOSES_ALL, &random);
		for (unsigned i = 0; i < TRIES; i++) {
			check(found, len, DISK_LOSES_SOME, &random);
		}
	}
	for (unsigned i = 0; i <= COMMITS; i++) {
		free(texts[i]);
	}
	free(found);
	free(path);
}

/*
 * Commits that fail again and again, each writing less than the one before, and then one that does not: of what was not waited for some of each may be on the disk.
 */
static void record_attempts(const char *path)
{
	static const size_t lens[] = { 60000, 40000, 20000, 0 };
	char why[STORE_MAX_WHY];
	struct sample sample;

	sample_open(&sample, path);
	disk_record(path);
	for (unsigned step = 0; step < 3; step++) {
		sample_step(&sample, step);
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			sample_session(&sample, lens[i]);
			if (lens[i] > 0) {
				/* That of the frames: after that of what is cut off, and of the header. */
				disk_fail(DISK_SYNC, 1u + (i > 0) + (step == 0),
					  /* lasting= */ true);
				assert_int_equal(store_commit(sample.store, why), STORE_E_IO);
				(void)disk_heal();
			}
		}
		sample_commit(&sample);
	}
	sample_close(&sample);
}

static void test_attempts(void **state)
{
	char *path = test_dir_file(state, "state.db");
	char *found = test_dir_file(state, "found.db");
	struct test_random random;
	char why[STORE_MAX_WHY];
	int error;
	size_t n;

	test_random_init(&random, 2);
	disk_install();
	record_attempts(path);
	n = disk_record_end();
	for (size_t len = 0; len <= n; len++) {
		for (unsigned i = 0; i < TRIES; i++) {
			char *text;

			(void)disk_after(len, i == 0 ? DISK_LOSES_ALL : DISK_LOSES_SOME, &random,
					 found);
			text = dump_file(found, &error, why);
			if (text == NULL) {
				fail_msg("after %zu of %zu calls: %d: %s", len, n, error, why);
			}
			free(text);
		}
	}
	free(found);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_power, test_dir_setup, test_dir_teardown),
		cmocka_unit_test_setup_teardown(test_attempts, test_dir_setup, test_dir_teardown),
	};

	if (access("/dev/shm", W_OK) == 0) {
		(void)setenv("TMPDIR", "/dev/shm", /* overwrite= */ 0);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
