/*
 * Files that are not as they were written: refused with a text and left as they are, or read as what they were; never as something else.
 */
#include "daemon/store/store.h"

#include "tests/support/test.h"
#include "tests/unit/store/dump.h"
#include "tests/unit/store/file-bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u
#define STEPS 40u

struct fixture {
	char *dir;
	char *path;
	struct file_bytes good; /* the file */
	char *text;		/* what it says */
	struct test_random random;
	unsigned refused, read; /* files so far */
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct sample sample;
	char why[STORE_MAX_WHY];
	int error;

	assert_non_null(fixture);
	assert_int_equal(test_dir_setup(&(*state)), 0);
	fixture->dir = *state;
	assert_true(asprintf(&fixture->path, "%s/state.db", fixture->dir) >= 0);
	test_random_init(&fixture->random, 1);
	sample_open(&sample, fixture->path);
	for (unsigned step = 0; step < STEPS; step++) {
		sample_step(&sample, step);
		sample_commit(&sample);
	}
	sample_close(&sample);
	fixture->good = file_bytes_read(fixture->path, "");
	fixture->text = dump_file(fixture->path, &error, why);
	assert_non_null(fixture->text);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	void *dir = fixture->dir;

	print_message("%u refused, %u read as they were\n", fixture->refused, fixture->read);
	free(fixture->text);
	free(fixture->good.at);
	free(fixture->path);
	free(fixture);
	return test_dir_teardown(&dir);
}

static struct file_bytes copy_of(const struct fixture *fixture)
{
	struct file_bytes bytes = { .at = malloc(fixture->good.len), .len = fixture->good.len };

	assert_non_null(bytes.at);
	memcpy(bytes.at, fixture->good.at, bytes.len);
	return bytes;
}

/* The file with these bytes is refused, and stays; or it says what the good one says. */
static void try(struct fixture *fixture, struct file_bytes bytes, const char *what, size_t at)
{
	char why[STORE_MAX_WHY];
	int error;
	char *text;

	file_bytes_write(fixture->path, "", bytes);
	file_bytes_remove(fixture->path, "-wal");
	text = dump_file(fixture->path, &error, why);
	if (text != NULL) {
		if (strcmp(text, fixture->text) != 0) {
			fail_msg("%s at %zu: read as something else:\n%s", what, at, text);
		}
		fixture->read++;
	} else {
		struct file_bytes after = file_bytes_read(fixture->path, "");

		if (error != STORE_E_DAMAGED && error != STORE_E_NEWER) {
			fail_msg("%s at %zu: error %d: %s", what, at, error, why);
		}
		assert_true(strlen(why) > strlen(fixture->path));
		assert_int_equal(after.len, bytes.len);
		assert_memory_equal(after.at, bytes.at, bytes.len);
		free(after.at);
		after = file_bytes_read(fixture->path, "-wal");
		assert_int_equal(after.len, 0);
		free(after.at);
		fixture->refused++;
	}
	free(text);
}

static void flip(struct fixture *fixture, size_t at, unsigned bit)
{
	struct file_bytes bytes = copy_of(fixture);

	bytes.at[at] = (uint8_t)(bytes.at[at] ^ 1u << bit);
	try(fixture, bytes, "flipped bit", at * 8 + bit);
	free(bytes.at);
}

static void test_each_bit_of_the_header(void **state)
{
	struct fixture *fixture = *state;

	for (size_t at = 0; at < 112; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			flip(fixture, at, bit);
		}
	}
}

/* What it takes to write the file and to read it, bytes 18 and 19, together: SQLite reads some that it would not write. */
static void test_formats_of_the_header(void **state)
{
	static const uint8_t formats[] = { 0, 1, 2, 3, 0x40, 0xff };
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(formats) * sizeof(formats); i++) {
		struct file_bytes bytes = copy_of(fixture);

		bytes.at[18] = formats[i / sizeof(formats)];
		bytes.at[19] = formats[i % sizeof(formats)];
		try(fixture, bytes, "format", i);
		free(bytes.at);
	}
}

/* Where pages begin is what says how they are to be read. */
static void test_a_bit_of_each_byte_where_pages_begin(void **state)
{
	struct fixture *fixture = *state;

	for (size_t page = PAGE; page < fixture->good.len; page += PAGE) {
		for (size_t at = 0; at < 64; at++) {
			flip(fixture, page + at, (unsigned)test_random_below(&fixture->random, 8));
		}
	}
}

static void test_bits_everywhere(void **state)
{
	struct fixture *fixture = *state;
	size_t step = fixture->good.len / 4000 + 1;

	for (size_t at = 0; at < fixture->good.len;
	     at += 1 + test_random_below(&fixture->random, step * 2)) {
		flip(fixture, at, (unsigned)test_random_below(&fixture->random, 8));
	}
}

/* Every byte of every page that is not zero, once in a while with all bits: those are the rows. */
static void test_bytes_of_rows(void **state)
{
	struct fixture *fixture = *state;

	for (size_t at = 0; at < fixture->good.len;
	     at += 1 + test_random_below(&fixture->random, 40)) {
		if (fixture->good.at[at] != 0) {
			struct file_bytes bytes = copy_of(fixture);

			bytes.at[at] = (uint8_t)test_random_next(&fixture->random);
			try(fixture, bytes, "another byte", at);
			free(bytes.at);
		}
	}
}

static void test_truncated(void **state)
{
	struct fixture *fixture = *state;
	struct file_bytes bytes = fixture->good;

	for (size_t len = 0; len < fixture->good.len;
	     len += len < 200 ? 1 : 1 + test_random_below(&fixture->random, 300)) {
		bytes.len = len;
		try(fixture, bytes, "truncated", len);
	}
	for (size_t len = PAGE; len < fixture->good.len; len += PAGE) {
		bytes.len = len;
		try(fixture, bytes, "truncated to whole pages", len);
	}
}

static void test_lost_and_doubled_pages(void **state)
{
	struct fixture *fixture = *state;
	size_t pages = fixture->good.len / PAGE;

	for (size_t page = 0; page < pages; page++) {
		for (size_t from = 0; from <= pages; from++) {
			struct file_bytes bytes = copy_of(fixture);

			if (from == pages) {
				memset(bytes.at + page * PAGE, 0, PAGE);
			} else {
				memcpy(bytes.at + page * PAGE, fixture->good.at + from * PAGE,
				       PAGE);
			}
			try(fixture, bytes, "another page", page * 1000 + from);
			free(bytes.at);
		}
	}
}

static void test_page_as_it_was_before(void **state)
{
	struct fixture *fixture = *state;
	struct file_bytes now;
	struct sample sample;
	char why[STORE_MAX_WHY];
	int error;

	/* One file again, a commit further; then each of its pages as it is in this one. */
	file_bytes_remove(fixture->path, "");
	sample_open(&sample, fixture->path);
	for (unsigned step = 0; step < STEPS + 1; step++) {
		sample_step(&sample, step);
		sample_commit(&sample);
	}
	sample_close(&sample);
	now = file_bytes_read(fixture->path, "");
	free(fixture->text);
	fixture->text = dump_file(fixture->path, &error, why);
	assert_non_null(fixture->text);
	for (size_t page = 0; page < fixture->good.len && page < now.len; page += PAGE) {
		struct file_bytes bytes = { .at = malloc(now.len), .len = now.len };

		assert_non_null(bytes.at);
		memcpy(bytes.at, now.at, now.len);
		memcpy(bytes.at + page, fixture->good.at + page, PAGE);
		try(fixture, bytes, "an older page", page / PAGE);
		free(bytes.at);
	}
	free(now.at);
}

static void test_other_files(void **state)
{
	static const char *const texts[] = { "", "x", "SQLite format 3",
					     "[daemon]\nlisten = unix:/x\n" };
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct file_bytes bytes = { .at = (uint8_t *)(uintptr_t)texts[i],
					    .len = strlen(texts[i]) };

		try(fixture, bytes, texts[i], i);
	}
	assert_int_equal(fixture->read, 0);
}

/* ---- files with a log, as a daemon that was killed leaves them ---- */

#define LOGGED 5u

struct killed {
	struct file_bytes file, log;
	char *texts[LOGGED + 1]; /* after so many commits */
	size_t last;		 /* where the last commit begins in the log */
};

static void kill_one(struct fixture *fixture, struct killed *killed)
{
	struct sample sample;
	char why[STORE_MAX_WHY];

	*killed = (struct killed){ .last = 0 };
	file_bytes_remove(fixture->path, "");
	sample_open(&sample, fixture->path);
	killed->file = file_bytes_read(fixture->path, "");
	for (unsigned i = 0; i <= LOGGED; i++) {
		int error;
		struct file_bytes log = file_bytes_read(fixture->path, "-wal");
		char *other;

		assert_true(asprintf(&other, "%s-%u", fixture->path, i) >= 0);
		file_bytes_write(other, "", killed->file);
		file_bytes_write(other, "-wal", log);
		killed->texts[i] = dump_file(other, &error, why);
		assert_non_null(killed->texts[i]);
		free(other);
		killed->last = i == LOGGED ? killed->last : log.len;
		free(killed->log.at);
		killed->log = log;
		sample_step(&sample, i);
		sample_commit(&sample);
	}
	sample_close(&sample);
}

static void forget(struct killed *killed)
{
	for (unsigned i = 0; i <= LOGGED; i++) {
		free(killed->texts[i]);
	}
	free(killed->file.at);
	free(killed->log.at);
}

/* What is read is as after one of the last commits, from `from` on. */
static void try_log(struct fixture *fixture, const struct killed *killed, struct file_bytes file,
		    struct file_bytes log, unsigned from, const char *what, size_t at)
{
	char why[STORE_MAX_WHY];
	int error;
	char *text;
	bool known = false;

	file_bytes_write(fixture->path, "", file);
	file_bytes_write(fixture->path, "-wal", log);
	file_bytes_remove(fixture->path, "-shm");
	text = dump_file(fixture->path, &error, why);
	if (text == NULL) {
		struct file_bytes after = file_bytes_read(fixture->path, "-wal");

		if (error != STORE_E_DAMAGED && error != STORE_E_NEWER) {
			fail_msg("%s at %zu: error %d: %s", what, at, error, why);
		}
		assert_int_equal(after.len, log.len);
		assert_memory_equal(after.at, log.at, log.len);
		free(after.at);
		after = file_bytes_read(fixture->path, "");
		assert_int_equal(after.len, file.len);
		assert_memory_equal(after.at, file.at, file.len);
		free(after.at);
		fixture->refused++;
		return;
	}
	for (unsigned i = from; i <= LOGGED; i++) {
		known = known || strcmp(text, killed->texts[i]) == 0;
	}
	if (!known) {
		fail_msg("%s at %zu: read as something else:\n%s", what, at, text);
	}
	fixture->read++;
	free(text);
}

static void test_log_with_flipped_bits(void **state)
{
	struct fixture *fixture = *state;
	struct killed killed;
	size_t step;

	kill_one(fixture, &killed);
	step = killed.log.len / 1000 + 1;
	for (size_t at = 0; at < killed.log.len;
	     at += at < 300 ? 1 : 1 + test_random_below(&fixture->random, step * 2)) {
		uint8_t flipped = (uint8_t)(1u << test_random_below(&fixture->random, 8));

		unsigned from = at < killed.last ? LOGGED : LOGGED - 1;

		/* Where the frame that ends the last commit but one says so (24 bytes before its page), both look like one. */
		if (at >= killed.last - PAGE - 24 && at < killed.last - PAGE) {
			from = LOGGED - 2;
		}
		killed.log.at[at] ^= flipped;
		try_log(fixture, &killed, killed.file, killed.log, from, "flipped bit", at);
		killed.log.at[at] ^= flipped;
	}
	forget(&killed);
}

static void test_log_cut_off(void **state)
{
	struct fixture *fixture = *state;
	struct killed killed;
	struct file_bytes log;

	kill_one(fixture, &killed);
	log = killed.log;
	for (size_t len = 0; len < killed.log.len;
	     len += 1 + test_random_below(&fixture->random, 1000)) {
		log.len = len;
		try_log(fixture, &killed, killed.file, log, 0, "cut off", len);
	}
	assert_int_equal(fixture->refused, 0);
	forget(&killed);
}

static void test_flipped_bits_below_a_log(void **state)
{
	struct fixture *fixture = *state;
	struct killed killed;
	size_t step;

	kill_one(fixture, &killed);
	step = killed.file.len / 500 + 1;
	for (size_t at = 0; at < killed.file.len;
	     at += at < 112 ? 1 : 1 + test_random_below(&fixture->random, step * 2)) {
		uint8_t flipped = (uint8_t)(1u << test_random_below(&fixture->random, 8));

		killed.file.at[at] ^= flipped;
		try_log(fixture, &killed, killed.file, killed.log, LOGGED, "flipped bit", at);
		killed.file.at[at] ^= flipped;
	}
	forget(&killed);
}

static void test_log_without_its_file(void **state)
{
	struct fixture *fixture = *state;
	struct killed killed;
	char why[STORE_MAX_WHY];
	int error;

	kill_one(fixture, &killed);
	file_bytes_remove(fixture->path, "");
	file_bytes_write(fixture->path, "-wal", killed.log);
	assert_null(dump_file(fixture->path, &error, why));
	assert_int_equal(error, STORE_E_DAMAGED);
	forget(&killed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_bit_of_the_header),
		TEST(test_formats_of_the_header),
		TEST(test_a_bit_of_each_byte_where_pages_begin),
		TEST(test_bits_everywhere),
		TEST(test_bytes_of_rows),
		TEST(test_truncated),
		TEST(test_lost_and_doubled_pages),
		TEST(test_page_as_it_was_before),
		TEST(test_other_files),
		TEST(test_log_with_flipped_bits),
		TEST(test_log_cut_off),
		TEST(test_flipped_bits_below_a_log),
		TEST(test_log_without_its_file),
	};

	/* Thousands of files, none of which needs to reach a disk. */
	if (access("/dev/shm", W_OK) == 0) {
		(void)setenv("TMPDIR", "/dev/shm", /* overwrite= */ 0);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
