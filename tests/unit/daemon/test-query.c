/* query: parameters of a URL. */
#include "daemon/http/query.h"
#include "tests/support/test.h"

#include <string.h>

static struct query query;

static void expect(const char *name, const char *value)
{
	assert_int_equal(query_next(&query), QUERY_OK);
	assert_string_equal(query.name, name);
	assert_string_equal(query.value, value);
	assert_int_equal(query.name_len, strlen(name));
	assert_int_equal(query.value_len, strlen(value));
	assert_true(query_is(&query, name));
	assert_false(query_is(&query, "other"));
}

static void expect_end(void)
{
	assert_int_equal(query_next(&query), QUERY_E_END);
	assert_int_equal(query_next(&query), QUERY_E_END);
}

static void test_good(void **state)
{
	(void)state;
	query_init(&query, NULL);
	expect_end();
	query_init(&query, "");
	expect_end();
	query_init(&query, "a=b");
	expect("a", "b");
	expect_end();
	query_init(&query, "&&a=1&&b=&c&=d&path=a%2Fb+c=d&x=%E4%bD%a0%2b&&");
	expect("a", "1");
	expect("b", "");
	expect("c", "");
	expect("", "d");
	expect("path", "a/b c=d");
	expect("x", "\xe4\xbd\xa0+");
	expect_end();
}

static void test_any_byte(void **state)
{
	(void)state;
	query_init(&query, "a=x%00y%FF");
	assert_int_equal(query_next(&query), QUERY_OK);
	assert_int_equal(query.value_len, 4);
	assert_memory_equal(query.value, "x\0y\xff", 5);
}

static void test_bad_escapes(void **state)
{
	static const char *const bad[] = { "a=%", "a=%4",   "a=%4g",	"a=%g4",
					   "%=a", "a=%%41", "a=b%4&c=1" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		query_init(&query, bad[i]);
		assert_int_equal(query_next(&query), QUERY_E_ESCAPE);
	}
}

static void test_lengths(void **state)
{
	char text[QUERY_MAX_NAME + QUERY_MAX_VALUE + 8];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[QUERY_MAX_NAME] = '=';
	text[QUERY_MAX_NAME + 1 + QUERY_MAX_VALUE] = '\0';
	query_init(&query, text);
	assert_int_equal(query_next(&query), QUERY_OK);
	assert_int_equal(query.name_len, QUERY_MAX_NAME);
	assert_int_equal(query.value_len, QUERY_MAX_VALUE);
	text[QUERY_MAX_NAME + 1 + QUERY_MAX_VALUE] = 'x';
	text[QUERY_MAX_NAME + 2 + QUERY_MAX_VALUE] = '\0';
	query_init(&query, text);
	assert_int_equal(query_next(&query), QUERY_E_LONG);
	text[QUERY_MAX_NAME] = 'x';
	text[QUERY_MAX_NAME + 1] = '=';
	query_init(&query, text);
	assert_int_equal(query_next(&query), QUERY_E_LONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_any_byte),
		cmocka_unit_test(test_bad_escapes),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
