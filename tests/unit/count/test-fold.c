#include "tests/support/test.h"

#include "lib/count/fold.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

static void test_odd_while_under_way(void **state)
{
	struct fold_line line = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(atomic_load_explicit(&line.seq, memory_order_relaxed), 2 * i);
		fold_wait(&line);
		fold_begin(&line);
		assert_int_equal(atomic_load_explicit(&line.seq, memory_order_relaxed), 2 * i + 1);
		fold_end(&line);
	}
}

struct waiting {
	struct fold_line line;
	_Atomic(bool) done;
	uint64_t total; /* plain: fold_end <-> fold_wait must order it */
	uint64_t seen;
};

static void *wait_for_it(void *arg)
{
	struct waiting *waiting = arg;

	fold_wait(&waiting->line);
	waiting->seen = waiting->total;
	atomic_store_explicit(&waiting->done, true, memory_order_release);
	return NULL;
}

static void test_waits_for_the_fold_under_way(void **state)
{
	struct waiting waiting = { 0 };
	struct timespec pause = { .tv_nsec = 30000000 };
	pthread_t thread;

	(void)state;
	fold_begin(&waiting.line);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &waiting), 0);
	(void)nanosleep(&pause, NULL);
	assert_false(atomic_load_explicit(&waiting.done, memory_order_acquire));
	waiting.total = 42;
	fold_end(&waiting.line);
	/* The next fold is none of its business. */
	fold_begin(&waiting.line);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(waiting.seen, 42);
	fold_end(&waiting.line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_odd_while_under_way),
		cmocka_unit_test(test_waits_for_the_fold_under_way),
	};

	return cmocka_run_group_tests_name("count/fold", tests, NULL, NULL);
}
