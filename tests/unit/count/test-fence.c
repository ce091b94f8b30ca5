#include "tests/support/test.h"

#include "lib/count/fence.h"

#include <linux/membarrier.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int mode(void)
{
	return atomic_load_explicit(&fence_mode, memory_order_relaxed);
}

static bool have_membarrier(void)
{
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return commands >= 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
}

static void test_full_until_set_up(void **state)
{
	(void)state;
	assert_int_equal(mode(), FENCE_FULL);
	fence_light();
	fence_heavy();
	assert_int_equal(mode(), FENCE_FULL);
}

static void test_setup(void **state)
{
	(void)state;
	fence_setup();
	assert_int_equal(mode(), have_membarrier() ? FENCE_ASYMMETRIC : FENCE_FULL);
	fence_setup();
	fence_light();
	fence_heavy();
	/* The call did not fail, or the mode would have gone back. */
	assert_int_equal(mode(), have_membarrier() ? FENCE_ASYMMETRIC : FENCE_FULL);
}

static void test_forced(void **state)
{
	static const enum fence_mode modes[] = { FENCE_FULL, FENCE_BROKEN, FENCE_ASYMMETRIC };

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		fence_force(modes[i]);
		fence_light();
		fence_heavy();
		if (modes[i] != FENCE_ASYMMETRIC) {
			assert_int_equal(mode(), modes[i]);
		}
	}
}

static void test_in_a_forked_child(void **state)
{
	int status = -1;

	(void)state;
	fence_setup();
	int before = mode();
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		fence_heavy();
		_exit(mode() == before ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_until_set_up),
		cmocka_unit_test(test_setup),
		cmocka_unit_test(test_forced),
		cmocka_unit_test(test_in_a_forked_child),
	};

	return cmocka_run_group_tests_name("count/fence", tests, NULL, NULL);
}
