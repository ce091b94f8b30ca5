#include "daemon/store/store.h"

#include "tests/support/test.h"
#include "tests/unit/store/dump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void assert_dump(const char *path, const char *expected)
{
	char *text = dump_of(path);

	assert_string_equal(text, expected);
	free(text);
}

static void test_file_is_made_whole(void **state)
{
	char *path = test_dir_file(state, "state.db");
	char *wal = test_dir_file(state, "state.db-wal");
	char *other = test_dir_file(state, "state.db-new");

	assert_dump(path, "");
	assert_int_equal(access(path, R_OK), 0);
	/* A daemon that ends in order leaves the file alone. */
	assert_int_equal(access(wal, F_OK), -1);
	assert_int_equal(access(other, F_OK), -1);
	assert_dump(path, "");
	free(other);
	free(wal);
	free(path);
}

static void assert_line(const char *text, const char *line)
{
	if (strstr(text, line) == NULL) {
		fail_msg("no \"%s\" in:\n%s", line, text);
	}
}

static void assert_no_line(const char *text, const char *line)
{
	if (strstr(text, line) != NULL) {
		fail_msg("a \"%s\" in:\n%s", line, text);
	}
}

static void test_round_trip(void **state)
{
	char *path = test_dir_file(state, "state.db");
	struct sample sample;
	char *text;

	sample_open(&sample, path);
	sample_step(&sample, 0);
	assert_true(store_is_dirty(sample.store));
	sample_commit(&sample);
	assert_false(store_is_dirty(sample.store));
	sample_close(&sample);
	text = dump_of(path);
	assert_line(text, "counter requests 1 0 1700000000000000000\n");
	assert_line(text, "counter slots/team-11 12 0 1700000000000000011\n");
	assert_line(text, "held 00000000000000000000000000000000 slots/team-9 1\n");
	assert_line(text, "held 09080700000000000000000000000000 slots/team-5 4\n");
	assert_line(text, "metric requests 0 0 0 1\n");
	assert_line(text, "rule slots/team-3 0 0 0 100 9223372036854775807 0 0 0 0 0 0\n");
	assert_line(text,
		    "session 01020300000000000000000000000000 0 0 0 60000000000 [6f6e65] 3000[0000");
	assert_line(text, "session 09080700000000000000000000000000 0 0 0 0 [] 0[] []\n");
	assert_line(text, "usage requests/team-2 1 0 60000000000 28333333 17\n");
	assert_no_line(text, "usage requests 2");
	free(text);
	free(path);
}

/* Steps in one commit or each in its own: the file says the same. */
static void test_steps_add_up(void **state)
{
	char *each = test_dir_file(state, "each.db");
	char *once = test_dir_file(state, "once.db");
	struct sample a, b;
	char *text;

	sample_open(&a, each);
	sample_open(&b, once);
	for (unsigned step = 0; step < 40; step++) {
		sample_step(&a, step);
		sample_commit(&a);
		sample_step(&b, step);
	}
	sample_commit(&b);
	sample_close(&a);
	sample_close(&b);
	text = dump_of(each);
	assert_dump(once, text);
	assert_line(text, "held 01020300000000000000000000000000 slots/team-3 40\n");
	assert_line(text, "held 00000000000000000000000000000000 slots/team-9 1\n");
	assert_line(text, "metric slots 1 9 0 0\n");
	free(text);
	free(once);
	free(each);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_file_is_made_whole, test_dir_setup,
						test_dir_teardown),
		cmocka_unit_test_setup_teardown(test_round_trip, test_dir_setup, test_dir_teardown),
		cmocka_unit_test_setup_teardown(test_steps_add_up, test_dir_setup,
						test_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
