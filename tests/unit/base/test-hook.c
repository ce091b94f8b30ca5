/* hook, in the hooked variant: it does yield, not always, and by the seed; without one never. */
#include "lib/base/hook.h"
#include "tests/support/test.h"

#include <pthread.h>
#include <sched.h>

#ifndef RATION_HOOKS
#error "this test is for the hooked variant"
#endif

#define CALLS 64

static _Thread_local unsigned yields;

/* Stands in front of libc's. */
int sched_yield(void)
{
	yields++;
	return 0;
}

static void *pattern(void *ctx)
{
	uint64_t *ret_pattern = ctx;

	*ret_pattern = 0;
	for (unsigned i = 0; i < CALLS; i++) {
		unsigned before = yields;

		RATION_HOOK();
		*ret_pattern |= (uint64_t)(yields - before) << i;
	}
	return NULL;
}

static uint64_t pattern_of_new_thread(void)
{
	pthread_t thread;
	uint64_t result;

	assert_int_equal(pthread_create(&thread, NULL, pattern, &result), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return result;
}

/* A whole program of hooked rooms, with nobody who seeds, goes as fast as it can. */
static void test_not_seeded(void **state)
{
	(void)state;
	assert_int_equal(pattern_of_new_thread(), 0);
}

static void test_rate(void **state)
{
	unsigned before = yields;

	(void)state;
	ration_hook_seed(1);
	for (int i = 0; i < 80000; i++) {
		RATION_HOOK();
	}
	assert_in_range(yields - before, 8000, 12000);
}

static void test_same_seed(void **state)
{
	uint64_t first, second, other;

	(void)state;
	ration_hook_seed(7);
	first = pattern_of_new_thread();
	second = pattern_of_new_thread();
	assert_true(first != second);

	ration_hook_seed(8000);
	other = pattern_of_new_thread();
	assert_true(other != first);

	ration_hook_seed(7);
	assert_true(pattern_of_new_thread() == first);
	assert_true(pattern_of_new_thread() == second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_seeded),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_same_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
