/*
 * Disks that are full, read-only or broken: a commit that can't be says so and loses nothing, of what was there and of what was to come; and the next one that can be writes all of it.
 */
#include "daemon/store/state.h"

#include "tests/support/test.h"
#include "tests/unit/store/disk.h"
#include "tests/unit/store/dump.h"
#include "tests/unit/store/file-bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define BEFORE 3u /* steps in the file before the fault */

/* What a file says after so many steps. */
static char *text_after(const char *path, unsigned steps)
{
	struct sample sample;
	char *text;

	file_bytes_remove(path, "");
	sample_open(&sample, path);
	for (unsigned step = 0; step < steps; step++) {
		sample_step(&sample, step);
	}
	sample_commit(&sample);
	sample_close(&sample);
	text = dump_of(path);
	file_bytes_remove(path, "");
	return text;
}

/* The file as it would be found if the daemon were killed now. */
static char *text_if_killed(const char *path, const char *copy)
{
	static const char *const suffixes[] = { "", "-wal" };

	for (size_t i = 0; i < 2; i++) {
		struct file_bytes bytes = file_bytes_read(path, suffixes[i]);

		file_bytes_write(copy, suffixes[i], bytes);
		free(bytes.at);
	}
	return dump_of(copy);
}

struct texts {
	char *before, *half, *after; /* BEFORE steps, one more, and another */
};

/* One commit at whose `at`-th call the disk fails; false: it did not come to that. */
static bool fail_one(void **state, const struct texts *texts, enum disk_fault fault, unsigned at,
		     bool lasting)
{
	char *path = test_dir_file(state, "state.db");
	char *copy = test_dir_file(state, "copy.db");
	char why[STORE_MAX_WHY] = "";
	struct sample sample;
	char *text;
	int r;
	bool failed;

	file_bytes_remove(path, "");
	sample_open(&sample, path);
	for (unsigned step = 0; step < BEFORE; step++) {
		sample_step(&sample, step);
		sample_commit(&sample);
	}
	sample_step(&sample, BEFORE);
	disk_fail(fault, at, lasting);
	r = store_commit(sample.store, why);
	if (r == 0) {
		sample.store->tidy_at = 0;
		(void)store_tidy(sample.store, why);
	} else {
		assert_int_equal(r, STORE_E_IO);
		assert_true(strlen(why) > strlen(path));
		assert_true(store_is_dirty(sample.store));
		if (lasting) {
			assert_int_equal(store_commit(sample.store, why), STORE_E_IO);
		}
	}
	failed = disk_heal();

	/* Found now: as before, or with the commit; with it if it was promised. */
	text = text_if_killed(path, copy);
	if (strcmp(text, texts->half) != 0 && (r == 0 || strcmp(text, texts->before) != 0)) {
		fail_msg("fault %d, call %u: commit returned %d:\n%s", (int)fault, at, r, text);
	}
	free(text);

	/* Counting goes on, and then the fault goes. */
	sample_step(&sample, BEFORE + 1);
	sample_commit(&sample);
	assert_false(store_is_dirty(sample.store));
	sample_close(&sample);
	text = dump_of(path);
	assert_string_equal(text, texts->after);
	free(text);
	free(copy);
	free(path);
	return failed;
}

static void know(void **state, struct texts *texts)
{
	char *path = test_dir_file(state, "known.db");

	texts->before = text_after(path, BEFORE);
	texts->half = text_after(path, BEFORE + 1);
	texts->after = text_after(path, BEFORE + 2);
	free(path);
}

static void forget(struct texts *texts)
{
	free(texts->before);
	free(texts->half);
	free(texts->after);
}

static void fail_each(void **state, enum disk_fault fault)
{
	struct texts texts;
	unsigned at = 1;

	disk_install();
	know(state, &texts);
	while (fail_one(state, &texts, fault, at, /* lasting= */ false)) {
		assert_true(fail_one(state, &texts, fault, at, /* lasting= */ true));
		at++;
	}
	print_message("%u calls that failed\n", at - 1);
	assert_true(at > 1);
	forget(&texts);
}

static void test_full(void **state)
{
	fail_each(state, DISK_FULL);
}

static void test_writes(void **state)
{
	fail_each(state, DISK_WRITE);
}

static void test_syncs(void **state)
{
	fail_each(state, DISK_SYNC);
}

static void test_read_only(void **state)
{
	fail_each(state, DISK_READ_ONLY);
}

/* Many commits fail, one after another, and what they were to write piles up. */
static void test_for_a_long_time(void **state)
{
	char *path = test_dir_file(state, "state.db");
	char *expected = text_after(path, 60);
	char why[STORE_MAX_WHY];
	struct sample sample;
	struct store_stats stats;
	char *text;

	disk_install();
	sample_open(&sample, path);
	disk_fail(DISK_FULL, 1, /* lasting= */ true);
	for (unsigned step = 0; step < 60; step++) {
		sample_step(&sample, step);
		assert_int_equal(store_commit(sample.store, why), STORE_E_IO);
	}
	assert_true(disk_heal());
	sample_commit(&sample);
	store_stats(sample.store, &stats);
	assert_int_equal(stats.failures, 60);
	assert_int_equal(stats.commits, 1);
	sample_close(&sample);
	text = dump_of(path);
	assert_string_equal(text, expected);
	free(text);
	free(expected);
	free(path);
}

/* The log can't be moved into the file, and then it can: nothing else depends on it. */
static void test_tidying(void **state)
{
	char *path = test_dir_file(state, "state.db");
	char *expected = text_after(path, 3);
	char why[STORE_MAX_WHY] = "";
	struct sample sample;
	char *text;

	disk_install();
	sample_open(&sample, path);
	for (unsigned step = 0; step < 3; step++) {
		sample_step(&sample, step);
		sample_commit(&sample);
		assert_false(store_is_untidy(sample.store));
		sample.store->tidy_at = 0;
		assert_true(store_is_untidy(sample.store));
		if (step < 2) {
			disk_fail(step == 0 ? DISK_WRITE : DISK_SYNC, 1, /* lasting= */ true);
		}
		assert_int_equal(store_tidy(sample.store, why), step < 2 ? STORE_E_IO : 0);
		assert_false(store_is_untidy(sample.store));
		assert_true(disk_heal() || step == 2);
	}
	assert_non_null(strstr(why, "tidied"));
	sample_close(&sample);
	text = dump_of(path);
	assert_string_equal(text, expected);
	free(text);
	free(expected);
	free(path);
}

static void check_if_killed(const char *path, const char *copy, const char *expected)
{
	char *text = text_if_killed(path, copy);

	assert_string_equal(text, expected);
	free(text);
}

/*
 * Attempts that came to nothing, each shorter than the one before, leave in the log what they have written, ends of commits
 * and all; so does one at the beginning of a turn of the log. A commit that is shorter still must not be found before all that and be taken for damaged.
 */
static void check_attempts(void **state, bool new_turn)
{
	static const size_t lens[] = { 120000, 90000, 60000, 30000 };
	char *path = test_dir_file(state, "state.db");
	char *copy = test_dir_file(state, "copy.db");
	char *expected = text_after(path, 3);
	char why[STORE_MAX_WHY];
	struct sample sample;

	disk_install();
	sample_open(&sample, path);
	sample_step(&sample, 0);
	sample_commit(&sample);
	sample_step(&sample, 1);
	sample_commit(&sample);
	if (new_turn) {
		sample.store->tidy_at = 0;
		assert_int_equal(store_tidy(sample.store, why), 0);
	}
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		sample_session(&sample, lens[i]);
		/* In a new turn the header is waited for first. */
		disk_fail(DISK_SYNC, new_turn ? 2 : 1, /* lasting= */ false);
		assert_int_equal(store_commit(sample.store, why), STORE_E_IO);
		assert_true(disk_heal());
		free(text_if_killed(path, copy));
	}
	sample_session(&sample, 0);
	sample_step(&sample, 2);
	sample_commit(&sample);
	check_if_killed(path, copy, expected);
	/* And after the next one, by which the rest of the attempts was not overwritten. */
	sample_session(&sample, 0);
	sample_commit(&sample);
	check_if_killed(path, copy, expected);
	sample_close(&sample);
	free(expected);
	free(copy);
	free(path);
}

static void test_attempts(void **state)
{
	check_attempts(state, /* new_turn= */ false);
}

static void test_attempts_in_a_new_turn(void **state)
{
	check_attempts(state, /* new_turn= */ true);
}

/* ---- real disks ---- */

/* A small file system of its own; false: not permitted here. */
static bool mount_small(const char *dir)
{
	if (mount("none", dir, "tmpfs", 0, "size=512k") < 0) {
		print_message("SKIPPED: no file system can be mounted here (are we root?)\n");
		return false;
	}
	return true;
}

/* Whatever is free. */
static void fill(const char *path)
{
	static const char zeros[4096];
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	(void)setvbuf(file, NULL, _IONBF, 0);
	while (fwrite(zeros, 1, sizeof(zeros), file) == sizeof(zeros)) {
	}
	(void)fclose(file);
}

static void test_really_full(void **state)
{
	char *dir = *state;
	char *path = test_dir_file(state, "state.db");
	char *ballast = test_dir_file(state, "ballast");
	char why[STORE_MAX_WHY] = "";
	struct sample sample;
	char *expected, *text;

	if (!mount_small(dir)) {
		goto out;
	}
	expected = text_after(path, 6);
	sample_open(&sample, path);
	sample_step(&sample, 0);
	sample_commit(&sample);
	fill(ballast);
	for (unsigned step = 1; step < 5; step++) {
		sample_step(&sample, step);
		assert_int_equal(store_commit(sample.store, why), STORE_E_IO);
		assert_non_null(strstr(why, "full"));
	}
	assert_int_equal(unlink(ballast), 0);
	sample_step(&sample, 5);
	sample_commit(&sample);
	sample_close(&sample);
	text = dump_of(path);
	assert_string_equal(text, expected);
	free(text);
	free(expected);
	assert_int_equal(umount2(dir, MNT_DETACH), 0);
out:
	free(ballast);
	free(path);
}

static void test_really_read_only(void **state)
{
	char *dir = *state;
	char *path = test_dir_file(state, "state.db");
	char *new_path = test_dir_file(state, "new.db");
	char why[STORE_MAX_WHY] = "";
	struct sample sample;
	struct store *store = NULL;

	if (!mount_small(dir)) {
		goto out;
	}
	sample_open(&sample, path);
	sample_step(&sample, 0);
	sample_commit(&sample);
	sample_close(&sample);
	assert_int_equal(mount("none", dir, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=512k"), 0);
	assert_int_equal(store_open(path, &store, why), STORE_E_IO);
	assert_non_null(strstr(why, "Read-only"));
	assert_int_equal(store_open(new_path, &store, why), STORE_E_IO);
	assert_non_null(strstr(why, "Read-only"));
	assert_int_equal(umount2(dir, MNT_DETACH), 0);
out:
	free(new_path);
	free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, test_dir_setup, test_dir_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First those on the disk that there is. */
		TEST(test_really_full),
		TEST(test_really_read_only),
		TEST(test_full),
		TEST(test_writes),
		TEST(test_syncs),
		TEST(test_read_only),
		TEST(test_for_a_long_time),
		TEST(test_tidying),
		TEST(test_attempts),
		TEST(test_attempts_in_a_new_turn),
	};

	if (access("/dev/shm", W_OK) == 0) {
		(void)setenv("TMPDIR", "/dev/shm", /* overwrite= */ 0);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
