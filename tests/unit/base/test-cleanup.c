/* cleanup.h: what a scope holds is given back exactly once, and not at all after a hand-over. */
#include "lib/base/cleanup.h"
#include "tests/support/test.h"

#include <fcntl.h>

struct thing {
	int *freed;
};

static struct thing *thing_free(struct thing *thing)
{
	if (thing != NULL) {
		(*thing->freed)++;
	}
	return NULL;
}
DEFINE_CLEANUP(struct thing *, thing_free);

static void test_object(void **state)
{
	int freed = 0;
	struct thing thing = { .freed = &freed };

	(void)state;
	{
		_cleanup_(thing_freep) struct thing *owner = &thing;

		assert_ptr_equal(owner->freed, &freed);
	}
	assert_int_equal(freed, 1);
	{
		_cleanup_(thing_freep) struct thing *owner = &thing;

		owner = NULL;
		assert_null(owner);
	}
	assert_int_equal(freed, 1);
}

static void test_memory(void **state)
{
	_cleanup_free_ char *none = NULL;
	_cleanup_free_ char *some = malloc(16);

	(void)state;
	assert_null(none);
	assert_non_null(some);
}

static void test_descriptor(void **state)
{
	_cleanup_close_ int none = -1;
	int seen = -1;

	(void)state;
	assert_int_equal(none, -1);
	{
		_cleanup_close_ int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		assert_true(fd >= 0);
		seen = fd;
		errno = ENOENT;
	}
	assert_int_equal(errno, ENOENT);
	assert_int_equal(fcntl(seen, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_object),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
