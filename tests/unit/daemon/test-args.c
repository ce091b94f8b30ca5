#include "daemon/args.h"

#include "tests/support/test.h"

#include <errno.h>

static int parse(struct args *args, const char *a, const char *b, const char *c, const char *d)
{
	const char *argv[] = { "rationd", a, b, c, d, NULL };
	int argc = 1;

	while (argc < 5 && argv[argc] != NULL) {
		argc++;
	}
	return args_parse(argc, (char **)(uintptr_t)argv, args);
}

static void test_forms(void **state)
{
	struct args args;

	(void)state;
	assert_int_equal(parse(&args, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(args.action, ARGS_RUN);
	assert_null(args.config);
	assert_int_equal(parse(&args, "--config", "/x", "--check-config", NULL), 0);
	assert_string_equal(args.config, "/x");
	assert_int_equal(args.action, ARGS_CHECK_CONFIG);
	assert_int_equal(parse(&args, "--config=/y", "--print-config", NULL, NULL), 0);
	assert_string_equal(args.config, "/y");
	assert_int_equal(parse(&args, "--listen=unix:/a", "--listen", "tcp:*:1", "--workers=3"), 0);
	assert_int_equal(args.n_flags, 3);
	assert_string_equal(args.flags[0].name, "listen");
	assert_string_equal(args.flags[0].value, "unix:/a");
	assert_string_equal(args.flags[1].value, "tcp:*:1");
	assert_string_equal(args.flags[2].name, "workers");
	assert_string_equal(args.flags[2].value, "3");
	assert_false(args.recover);
	assert_int_equal(parse(&args, "--state", "/s", "--recover", NULL), 0);
	assert_int_equal(args.action, ARGS_RUN);
	assert_int_equal(args.n_flags, 1);
	assert_string_equal(args.flags[0].value, "/s");
	assert_true(args.recover);
	assert_int_equal(parse(&args, "--check-config", "--ephemeral", NULL, NULL), 0);
	assert_int_equal(args.n_flags, 1);
	assert_string_equal(args.flags[0].name, "state");
	assert_string_equal(args.flags[0].value, "none");
	assert_int_equal(parse(&args, "--version", NULL, NULL, NULL), 0);
	assert_int_equal(args.action, ARGS_VERSION);
	assert_int_equal(parse(&args, "--help", NULL, NULL, NULL), 0);
	assert_int_equal(args.action, ARGS_HELP);
}

static void test_wrong(void **state)
{
	struct args args;

	(void)state;
	assert_int_equal(parse(&args, "--configs", "/x", NULL, NULL), -EINVAL);
	assert_int_equal(parse(&args, "--config", NULL, NULL, NULL), -EINVAL);
	assert_int_equal(parse(&args, "--config=a", "--config=b", NULL, NULL), -EINVAL);
	assert_int_equal(parse(&args, "--config", "a", "--config", "b"), -EINVAL);
	assert_int_equal(parse(&args, "--workers", NULL, NULL, NULL), -EINVAL);
	assert_int_equal(parse(&args, "--max_items", "3", NULL, NULL),
			 -EINVAL); /* a key, but not a flag */
	assert_int_equal(parse(&args, "file", NULL, NULL, NULL), -EINVAL);
	assert_int_equal(parse(&args, "-h", NULL, NULL, NULL), -EINVAL);
	assert_int_equal(parse(&args, "--ephemeral=yes", NULL, NULL, NULL), -EINVAL);
	assert_int_equal(parse(&args, "--recover=yes", NULL, NULL, NULL), -EINVAL);
	assert_int_equal(parse(&args, "--help=x", NULL, NULL, NULL), -EINVAL);
	assert_int_equal(parse(&args, "--help", "--version", NULL, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
