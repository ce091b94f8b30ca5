/* hook, in a normal build: nothing is left of it, not even a symbol to link. */
#include "lib/base/hook.h"
#include "tests/support/test.h"

static void test_nothing(void **state)
{
	(void)state;
	RATION_HOOK();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
