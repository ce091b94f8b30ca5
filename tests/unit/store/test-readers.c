/*
 * Others read the file while it is written to: the sqlite3 tool, through the views that docs/state-file.md promises, and one that takes long.
 */
#include "daemon/store/state.h"

#include "tests/support/test.h"
#include "tests/unit/store/dump.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the tool prints. */
static void ask(const char *path, const char *sql, char answer[4096])
{
	char *command;
	FILE *tool;
	size_t len;

	assert_true(asprintf(&command, "sqlite3 -readonly '%s' \"%s\"", path, sql) >= 0);
	tool = popen(command, "r");
	assert_non_null(tool);
	len = fread(answer, 1, 4095, tool);
	answer[len] = '\0';
	assert_int_equal(pclose(tool), 0);
	free(command);
}

static void assert_answer(const char *path, const char *sql, const char *expected)
{
	char answer[4096];

	ask(path, sql, answer);
	assert_string_equal(answer, expected);
}

static void test_views_with_the_tool(void **state)
{
	char *path = test_dir_file(state, "state.db");
	struct sample sample;

	if (system("command -v sqlite3 >/dev/null") != 0) {
		print_message("SKIPPED: there is no sqlite3 here\n");
		free(path);
		skip();
	}
	sample_open(&sample, path);
	sample_step(&sample, 0);
	sample_commit(&sample);
	assert_answer(
		path,
		"SELECT * FROM totals WHERE path IN ('requests', 'requests/team-4', 'slots') ORDER BY path",
		"requests|1|36\nrequests/team-4|5|5\nslots|8|40\n");
	/* What comes later is seen by those who look later; the daemon has the file open all the time. */
	sample_step(&sample, 1);
	sample_commit(&sample);
	assert_answer(
		path,
		"SELECT * FROM totals WHERE path IN ('requests', 'requests/team-4', 'slots') ORDER BY path",
		"requests|4|144\nrequests/team-4|20|20\nslots|33|163\n");
	assert_answer(path, "SELECT path, own, ahead FROM counters WHERE path = 'slots/team-3'",
		      "slots/team-3|17|1\n");
	assert_answer(path, "SELECT born FROM counters WHERE path = 'slots'",
		      "2023-11-14 22:13:20\n");
	assert_answer(path, "SELECT * FROM limits ORDER BY pattern",
		      "requests/*|per 60.0s|1000|900|0|0|||0\nslots/team-3|none|101||0|0|||0\n");
	assert_answer(
		path,
		"SELECT id, agent, last_batch, last_operation, lifetime_s, over FROM sessions ORDER BY id",
		"01020300000000000000000000000000|one|1|2|60.0|0\n"
		"09080700000000000000000000000000||0|0|0.0|1\n");
	assert_answer(path, "SELECT * FROM holds ORDER BY session, path",
		      "01020300000000000000000000000000|slots/team-3|2\n"
		      "09080700000000000000000000000000|slots/team-5|4\n"
		      "detached|slots/team-9|2\n");
	assert_answer(path, "SELECT path, window, count FROM used ORDER BY path",
		      "requests|calendar month|1\nrequests/team-2|per 60.0s|17\n");
	sample_close(&sample);
	/* And when it has ended. */
	assert_answer(path, "SELECT count(*) FROM totals", "162\n");
	free(path);
}

/* All that an int64 can be comes out of the blocks as it went in. */
static void test_numbers_of_all_sizes(void **state)
{
	static const int64_t numbers[] = { 0,
					   1,
					   -1,
					   255,
					   256,
					   -256,
					   INT64_MAX,
					   INT64_MIN,
					   0x0123456789abcdef,
					   -0x0123456789abcdef };
	struct engine_growth growth[8];
	struct cut cut = { .growth = growth, .n_growth = 8 };
	char *path = test_dir_file(state, "state.db");
	struct sample sample;
	sqlite3 *db;
	sqlite3_stmt *statement;

	sample_open(&sample, path);
	for (size_t from = 0; from + 8 <= sizeof(numbers) / sizeof(numbers[0]); from += 2) {
		for (size_t i = 0; i < 8; i++) {
			growth[i] = (struct engine_growth){ .id = (uint32_t)(1000 + i),
							    .added = (uint64_t)numbers[from + i] };
		}
		assert_int_equal(store_merge(sample.store, &cut, NULL, NULL), 0);
		sample_commit(&sample);
		assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
		assert_int_equal(
			sqlite3_prepare_v2(
				db,
				"SELECT own FROM counters WHERE path = 'requests/one-of-those-that-nobody-asks-for-' || ?",
				-1, &statement, NULL),
			SQLITE_OK);
		for (int i = 0; i < 8; i++) {
			assert_int_equal(sqlite3_bind_int(statement, 1, i), SQLITE_OK);
			assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
			assert_int_equal(sqlite3_column_int64(statement, 0),
					 numbers[from + (size_t)i]);
			assert_int_equal(sqlite3_reset(statement), SQLITE_OK);
		}
		assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
		assert_int_equal(sqlite3_close(db), SQLITE_OK);
	}
	sample_close(&sample);
	free(path);
}

static int64_t total(sqlite3 *db)
{
	sqlite3_stmt *statement;
	int64_t answer;

	assert_int_equal(sqlite3_prepare_v2(db, "SELECT total FROM totals WHERE path = 'requests'",
					    -1, &statement, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	answer = sqlite3_column_int64(statement, 0);
	assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
	return answer;
}

static void commit_and_tidy(struct sample *sample, unsigned step)
{
	char why[STORE_MAX_WHY];

	sample_step(sample, step);
	sample_commit(sample);
	sample->store->tidy_at = 20;
	assert_int_equal(store_tidy(sample->store, why), 0);
}

/* It sees what there was when it began, and nobody waits for it; when it is gone, the log begins anew. */
static void test_reader_that_takes_long(void **state)
{
	char *path = test_dir_file(state, "state.db");
	struct sample sample;
	sqlite3 *reader;

	sample_open(&sample, path);
	for (unsigned step = 0; step < 5; step++) {
		commit_and_tidy(&sample, step);
	}
	assert_int_equal(sqlite3_open_v2(path, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(reader, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(total(reader), 36 * 25);
	for (unsigned step = 5; step < 60; step++) {
		commit_and_tidy(&sample, step);
	}
	assert_int_equal(total(reader), 36 * 25);
	assert_true(sample.store->log_pages > 55 * 5);
	assert_int_equal(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(total(reader), 36 * 3600);
	for (unsigned step = 60; step < 63; step++) {
		commit_and_tidy(&sample, step);
	}
	assert_true(sample.store->log_pages < 60);
	assert_int_equal(sqlite3_close(reader), SQLITE_OK);
	sample_close(&sample);
	free(path);
}

/* One who has the file open does not keep the daemon from starting, also after it was killed. */
static void test_start_with_a_reader(void **state)
{
	char *path = test_dir_file(state, "state.db");
	struct sample sample;
	sqlite3 *reader;
	char why[STORE_MAX_WHY];
	int error;
	char *text;

	sample_open(&sample, path);
	sample_step(&sample, 0);
	sample_commit(&sample);
	assert_int_equal(sqlite3_open_v2(path, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(total(reader), 36);
	assert_int_equal(sqlite3_exec(reader, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(total(reader), 36);
	sample_close(&sample);
	text = dump_file(path, &error, why);
	if (text == NULL) {
		fail_msg("%s", why);
	}
	assert_non_null(strstr(text, "counter requests 1 0"));
	free(text);
	assert_int_equal(sqlite3_close(reader), SQLITE_OK);
	free(path);
}

/* https://sqlite.org/src/file/src/os_unix.c: whoever has the index of the log open has this byte of it locked. */
#define INDEX_IN_USE_AT 128

/* Does a process see that others have the index open? */
static bool seems_in_use(const char *path)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		struct flock lock = { .l_type = F_WRLCK,
				      .l_whence = SEEK_SET,
				      .l_start = INDEX_IN_USE_AT,
				      .l_len = 1 };
		int fd = open(path, O_RDWR | O_CLOEXEC);

		_exit(fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 ? 2 : lock.l_type == F_UNLCK);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 0;
}

/*
 * A reader who finds the index of the log unlocked takes it for one that a crash left: it cuts it off, and the daemon, which has it mapped, dies
 * of that. The locks of a process go when it closes any descriptor of the file.
 */
static void test_readers_see_that_it_is_in_use(void **state)
{
	char *path = test_dir_file(state, "state.db");
	char *log_index = test_dir_file(state, "state.db-shm");
	struct sample sample;

	sample_open(&sample, path);
	for (unsigned step = 0; step < 3; step++) {
		commit_and_tidy(&sample, step);
		assert_true(seems_in_use(log_index));
	}
	sample_reopen(&sample, path);
	commit_and_tidy(&sample, 3);
	assert_true(seems_in_use(log_index));
	sample_close(&sample);
	free(log_index);
	free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, test_dir_setup, test_dir_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_views_with_the_tool),		  TEST(test_numbers_of_all_sizes),
		TEST(test_reader_that_takes_long),	  TEST(test_start_with_a_reader),
		TEST(test_readers_see_that_it_is_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
