#include "tests/support/test.h"

#include "clients/cli/text.h"

#include <stdlib.h>
#include <string.h>

static void assert_safe(const char *bytes, const char *expected)
{
	char *safe = text_safe_string(bytes);

	assert_string_equal(safe, expected);
	free(safe);
}

static void ordinary_text_stays(void **state)
{
	(void)state;
	assert_safe("", "");
	assert_safe("requests/acme web", "requests/acme web");
	assert_safe("größe/日本語/🙂", "größe/日本語/🙂");
	assert_safe("back\\slash \"quoted\"", "back\\slash \"quoted\"");
}

static void what_steers_a_terminal_is_escaped(void **state)
{
	(void)state;
	assert_safe("a\033[2Jb\n\x7f", "a\\x1b[2Jb\\x0a\\x7f");
	assert_safe("c1 \xc2\x9b", "c1 \\xc2\\x9b");
	assert_safe("bidi \xe2\x80\xae", "bidi \\xe2\\x80\\xae");
	assert_safe("\xe2\x80\xa8line", "\\xe2\\x80\\xa8line");
}

static void what_is_not_utf8_is_escaped(void **state)
{
	(void)state;
	assert_safe("\xff", "\\xff");
	assert_safe("\xc0\xaf", "\\xc0\\xaf");
	assert_safe("\xed\xa0\x80", "\\xed\\xa0\\x80");
	assert_safe("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	assert_safe("cut \xe2\x82", "cut \\xe2\\x82");
	assert_safe("\xe2(", "\\xe2(");
	assert_safe("\xc3\xc3\xa4", "\\xc3ä");
}

static void long_text_is_cut(void **state)
{
	char *safe = text_safe("abcdef", 6, 6);

	(void)state;
	assert_string_equal(safe, "abcdef");
	free(safe);
	safe = text_safe("abcdefg", 7, 6);
	assert_string_equal(safe, "abcdef...");
	free(safe);
	/* Not within a letter. */
	safe = text_safe("abcdeä", 7, 6);
	assert_string_equal(safe, "abcde...");
	free(safe);
}

static void nearest(void **state)
{
	static const char *const words[] = { "add",    "get",	  "tree", "flush", "status",
					     "metric", "version", "help", NULL };

	(void)state;
	assert_string_equal(text_nearest("stauts", words), "status");
	assert_string_equal(text_nearest("treee", words), "tree");
	assert_string_equal(text_nearest("flsh", words), "flush");
	assert_string_equal(text_nearest("metrics", words), "metric");
	assert_string_equal(text_nearest("ver", words), "version");
	assert_string_equal(text_nearest("ad", words), "add");
	assert_null(text_nearest("list", words));
	assert_null(text_nearest("x", words));
	assert_null(text_nearest("", words));
	assert_null(text_nearest("a word that is far too long to be any of them", words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_text_stays),
		cmocka_unit_test(what_steers_a_terminal_is_escaped),
		cmocka_unit_test(what_is_not_utf8_is_escaped),
		cmocka_unit_test(long_text_is_cut),
		cmocka_unit_test(nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
