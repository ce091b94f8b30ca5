/*
 * What a rule's pattern is about.
 */
#include "tests/support/test.h"

#include "clients/cli/pattern.h"

static void paths_match_themselves(void **state)
{
	(void)state;
	assert_true(pattern_matches("a", "a"));
	assert_true(pattern_matches("a/b", "a/b"));
	assert_false(pattern_matches("a", "a/b"));
	assert_false(pattern_matches("a/b", "a"));
	assert_false(pattern_matches("a/b", "a/bb"));
	assert_false(pattern_matches("a/bb", "a/b"));
	assert_false(pattern_matches("a", ""));
}

static void a_star_is_one_segment(void **state)
{
	(void)state;
	assert_true(pattern_matches("a/*", "a/b"));
	assert_false(pattern_matches("a/*", "a"));
	assert_false(pattern_matches("a/*", "a/b/c"));
	assert_true(pattern_matches("a/*/c", "a/b/c"));
	assert_false(pattern_matches("a/*/c", "a/b/d"));
	assert_true(pattern_matches("a/*/*", "a/b/c"));
	/* No part of a segment. */
	assert_false(pattern_matches("a/b*", "a/bc"));
}

static void two_stars_are_one_or_more(void **state)
{
	(void)state;
	assert_false(pattern_matches("a/**", "a"));
	assert_true(pattern_matches("a/**", "a/b"));
	assert_true(pattern_matches("a/**", "a/b/c/d"));
	assert_true(pattern_matches("a/*/**", "a/b/c"));
	assert_false(pattern_matches("a/*/**", "a/b"));
	assert_false(pattern_matches("b/**", "a/b"));
}

static void templates(void **state)
{
	(void)state;
	assert_true(pattern_is_template("a/*"));
	assert_true(pattern_is_template("a/**"));
	assert_true(pattern_is_template("a/*/b"));
	assert_false(pattern_is_template("a"));
	assert_false(pattern_is_template("a/b*/***"));
	assert_false(pattern_is_template(""));
}

static void within(void **state)
{
	(void)state;
	assert_true(pattern_is_within("a/b", "a"));
	assert_true(pattern_is_within("a", "a"));
	assert_true(pattern_is_within("a/*", "a"));
	assert_false(pattern_is_within("ab", "a"));
	assert_false(pattern_is_within("a", "a/b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_match_themselves),
		cmocka_unit_test(a_star_is_one_segment),
		cmocka_unit_test(two_stars_are_one_or_more),
		cmocka_unit_test(templates),
		cmocka_unit_test(within),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
