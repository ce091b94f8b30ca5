#include "daemon/directory.h"

#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static void make_id(uint8_t *id, uint32_t number)
{
	memset(id, 0, MESSAGE_SESSION_BYTES);
	memcpy(id, &number, sizeof(number));
}

/* A new one goes to the worker with the fewest, and stays there. */
static void test_owner(void **state)
{
	struct directory directory;
	struct session *session = NULL, *again = NULL;
	uint8_t id[MESSAGE_SESSION_BYTES];
	unsigned owner = 99;

	(void)state;
	assert_int_equal(directory_init(&directory, 3, 42), 0);
	directory_set_limits(&directory, 100, 100);
	make_id(id, 1);
	assert_int_equal(directory_claim(&directory, id, 1, false, &session, &owner),
			 0); /* among equals: where it is */
	assert_int_equal(session->owner, 1);
	assert_int_equal(directory_claim(&directory, id, 1, false, &again, &owner), 0);
	assert_ptr_equal(again, session);
	assert_int_equal(directory_claim(&directory, id, 2, true, &again, &owner),
			 DIRECTORY_E_ELSEWHERE);
	assert_int_equal(owner, 1);
	make_id(id, 2);
	assert_int_equal(directory_claim(&directory, id, 1, false, &again, &owner),
			 DIRECTORY_E_ELSEWHERE);
	assert_int_equal(owner, 0);
	/* It is made where it settles, not where it was sent from. */
	assert_int_equal(directory_sessions(&directory), 1);
	assert_int_equal(directory_claim(&directory, id, 0, true, &again, &owner), 0);
	make_id(id, 3);
	assert_int_equal(directory_claim(&directory, id, 1, true, &again, &owner),
			 0); /* sent here: though it is not the least loaded */
	assert_int_equal(again->owner, 1);
	directory_end(&directory, session);
	assert_int_equal(directory_sessions(&directory), 2);
	directory_deinit(&directory);
}

/* One that has ended keeps its place for one of the same id, and counts no more. */
static void test_parked(void **state)
{
	struct directory directory;
	struct session *session = NULL, *again = NULL;
	uint8_t id[MESSAGE_SESSION_BYTES], other[MESSAGE_SESSION_BYTES];
	unsigned owner = 99;

	(void)state;
	assert_int_equal(directory_init(&directory, 3, 42), 0);
	directory_set_limits(&directory, 1, 100);
	make_id(id, 1);
	make_id(other, 2);
	assert_int_equal(directory_claim(&directory, id, 2, true, &session, &owner), 0);
	assert_int_equal(session_reserve(session, &directory, 10, 100), 0);
	session->last_batch = 5;
	session->resumable = true;
	directory_park(&directory, session);
	assert_int_equal(directory_sessions(&directory), 0);
	assert_int_equal(directory_handles(&directory), 0);
	assert_int_equal(directory_claim(&directory, id, 1, true, &again, &owner),
			 DIRECTORY_E_ELSEWHERE);
	assert_int_equal(owner, 2);
	assert_int_equal(directory_claim(&directory, id, 2, true, &again, &owner), 0);
	assert_ptr_equal(again, session);
	assert_false(session->parked);
	assert_false(session->resumable);
	assert_int_equal(session->last_batch, 0);
	assert_int_equal(directory_sessions(&directory), 1);
	/* It is not begun anew past the limit. */
	directory_park(&directory, session);
	assert_int_equal(directory_claim(&directory, other, 0, true, &again, &owner), 0);
	assert_int_equal(directory_claim(&directory, id, 2, true, &again, &owner),
			 DIRECTORY_E_FULL);
	directory_end(&directory, session);
	assert_int_equal(directory_sessions(&directory), 1);
	assert_null(directory_find(&directory, id));
	/* What is restored is, whatever the limit. */
	assert_int_equal(directory_restore(&directory, id, &session), 0);
	assert_ptr_equal(directory_find(&directory, id), session);
	assert_int_equal(directory_sessions(&directory), 2);
	directory_deinit(&directory);
}

static void test_limit(void **state)
{
	struct directory directory;
	struct session *sessions[3];
	uint8_t id[MESSAGE_SESSION_BYTES];
	unsigned owner;

	(void)state;
	assert_int_equal(directory_init(&directory, 1, 42), 0);
	directory_set_limits(&directory, 2, 100);
	for (uint32_t i = 0; i < 3; i++) {
		make_id(id, i);
		assert_int_equal(directory_claim(&directory, id, 0, false, &sessions[i], &owner),
				 i < 2 ? 0 : DIRECTORY_E_FULL);
	}
	make_id(id, 0);
	assert_int_equal(directory_claim(&directory, id, 0, false, &sessions[2], &owner),
			 0); /* known */
	directory_end(&directory, sessions[0]);
	make_id(id, 2);
	assert_int_equal(directory_claim(&directory, id, 0, false, &sessions[2], &owner), 0);
	assert_true(directory_take_handles(&directory, 100));
	assert_false(directory_take_handles(&directory, 1));
	assert_false(directory_take_handles(&directory, UINT64_MAX));
	directory_give_handles(&directory, 40);
	assert_true(directory_take_handles(&directory, 40));
	/* A limit below what there is keeps what there is. */
	directory_set_limits(&directory, 1, 10);
	assert_false(directory_take_handles(&directory, 1));
	assert_int_equal(directory_sessions(&directory), 2);
	directory_deinit(&directory);
}

/* More sessions than buckets: all are found, and ended in any order. */
static void test_many(void **state)
{
	enum {
		N = 20000
	};
	struct directory directory;
	struct session **sessions = calloc(N, sizeof(*sessions)), *found;
	uint8_t id[MESSAGE_SESSION_BYTES];
	unsigned owner;

	(void)state;
	assert_int_equal(directory_init(&directory, 1, 7), 0);
	directory_set_limits(&directory, N, 0);
	for (uint32_t i = 0; i < N; i++) {
		make_id(id, i);
		assert_int_equal(directory_claim(&directory, id, 0, false, &sessions[i], &owner),
				 0);
	}
	assert_true(directory.n_buckets >= N / 2);
	for (uint32_t i = 0; i < N; i++) {
		make_id(id, i);
		assert_int_equal(directory_claim(&directory, id, 0, false, &found, &owner), 0);
		assert_ptr_equal(found, sessions[i]);
	}
	for (uint32_t i = 0; i < N; i += 2) {
		directory_end(&directory, sessions[i]);
	}
	for (uint32_t i = 1; i < N; i += 2) {
		make_id(id, i);
		assert_int_equal(directory_claim(&directory, id, 0, false, &found, &owner), 0);
		assert_ptr_equal(found, sessions[i]);
	}
	assert_int_equal(directory_sessions(&directory), N / 2);
	free(sessions);
	directory_deinit(&directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_parked),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
