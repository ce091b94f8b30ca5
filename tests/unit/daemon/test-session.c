#include "daemon/session.h"

#include "daemon/directory.h"
#include "tests/support/test.h"

#include <stdlib.h>

static void test_numbers(void **state)
{
	struct session session = { 0 };

	(void)state;
	session_greet(&session, 5, 100);
	assert_int_equal(session.last_batch, 4);
	assert_int_equal(session_check_batch(&session, 0), SESSION_E_DUPLICATE);
	assert_int_equal(session_check_batch(&session, 4), SESSION_E_DUPLICATE);
	assert_int_equal(session_check_batch(&session, 5), SESSION_OK);
	assert_int_equal(session_check_batch(&session, 6), SESSION_E_GAP);
	assert_int_equal(session_check_batch(&session, UINT64_MAX), SESSION_E_GAP);
	session.last_batch = 5;
	/* Known: it never goes back, but may be told that more counts as applied. */
	session_greet(&session, 1, 200);
	assert_int_equal(session.last_batch, 5);
	assert_int_equal(session.lifetime_ns, 200);
	session_greet(&session, 6, 200);
	assert_int_equal(session.last_batch, 5);
	session_greet(&session, 7, 200);
	assert_int_equal(session.last_batch, 6);
	session_greet(&session, UINT64_MAX, 200);
	assert_int_equal(session_check_batch(&session, UINT64_MAX), SESSION_OK);
	session.last_batch = UINT64_MAX;
	assert_int_equal(session_check_batch(&session, UINT64_MAX), SESSION_E_DUPLICATE);
}

static void test_handles(void **state)
{
	struct directory directory;
	struct session session = { 0 };
	struct engine_ref ref = { .id = 7, .life = 3 };

	(void)state;
	assert_int_equal(directory_init(&directory, 1, 1), 0);
	directory_set_limits(&directory, 10, 150);
	assert_false(session_look_up(&session, 0, &ref));
	assert_int_equal(session_reserve(&session, &directory, 100, 99), SESSION_E_HANDLE);
	assert_int_equal(session_reserve(&session, &directory, 10, 100), 0);
	/* Reserved ones stand for nothing until they are bound. */
	assert_false(session_look_up(&session, 9, &ref));
	session_bind(&session, 9, (struct engine_ref){ .id = 7, .life = 3 });
	assert_true(session_look_up(&session, 9, &ref));
	assert_int_equal(ref.id, 7);
	assert_int_equal(session_reserve(&session, &directory, 100, 100), 0);
	assert_int_equal(session.n_refs, 100);
	assert_true(session_look_up(&session, 9, &ref));
	assert_false(session_look_up(&session, 99, &ref));
	assert_false(session_look_up(&session, 100, &ref));
	assert_false(session_look_up(&session, UINT32_MAX, &ref));
	/* 100 of 150 are taken. */
	assert_int_equal(session_reserve(&session, &directory, 151, 1000), SESSION_E_FULL);
	assert_int_equal(directory_handles(&directory), 100);
	assert_true(session_look_up(&session, 9, &ref));
	free(session.refs);
	directory_deinit(&directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_handles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
