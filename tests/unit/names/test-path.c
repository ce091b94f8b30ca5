/*
 * path: each rule of the grammar at its boundary, with the offset it reports; the helpers; the texts.
 */
#include "lib/names/path.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/test.h"

#define ELEMENTS(array) (sizeof(array) / sizeof(*(array)))

struct example {
	const char *path;
	enum path_error error;
	size_t offset;
};

static void expect(const char *path, size_t len, enum path_error error, size_t offset)
{
	size_t where = 9999;
	enum path_error got = path_check(path, len, &where);

	if (got != error || where != (error ? offset : 9999)) {
		fail_msg("'%.*s': %d at %zu, expected %d at %zu", (int)len, path, (int)got, where,
			 (int)error, offset);
	}
	assert_int_equal(path_check(path, len, NULL), error);
}

static void test_table(void **state)
{
	static const struct example examples[] = {
		{ "a", PATH_OK, 0 },
		{ "requests/acme/web", PATH_OK, 0 },
		{ "with blanks/in the middle", PATH_OK, 0 },
		{ "...", PATH_OK, 0 },
		{ "***/.a/a./*a/a*/..a/*./.*", PATH_OK, 0 },
		{ "__other__/%2F/\\/\"'`$~", PATH_OK, 0 },
		{ "", PATH_E_EMPTY, 0 },

		{ "/", PATH_E_EMPTY_SEGMENT, 0 },
		{ "/a", PATH_E_EMPTY_SEGMENT, 0 },
		{ "a/", PATH_E_EMPTY_SEGMENT, 2 },
		{ "a//b", PATH_E_EMPTY_SEGMENT, 2 },
		{ "a/b//", PATH_E_EMPTY_SEGMENT, 4 },

		{ ".", PATH_E_RESERVED, 0 },
		{ "a/..", PATH_E_RESERVED, 2 },
		{ "a/*/b", PATH_E_RESERVED, 2 },
		{ "**/b", PATH_E_RESERVED, 0 },

		{ " ", PATH_E_BLANKS, 0 },
		{ " a", PATH_E_BLANKS, 0 },
		{ "a ", PATH_E_BLANKS, 1 },
		{ "a/b  /c", PATH_E_BLANKS, 4 },
		{ "a/ b /c", PATH_E_BLANKS, 2 },
		{ "a/ ./c", PATH_E_BLANKS, 2 },
		{ "\xc2\xa0x", PATH_E_BLANKS, 0 },     /* U+00A0 */
		{ "x\xc2\xa0", PATH_E_BLANKS, 1 },     /* U+00A0 */
		{ "x\xe1\x9a\x80", PATH_E_BLANKS, 1 }, /* U+1680 */
		{ "x\xe2\x80\x80", PATH_E_BLANKS, 1 }, /* U+2000 */
		{ "x\xe2\x80\x8a", PATH_E_BLANKS, 1 }, /* U+200A */
		{ "x\xe2\x80\x8b", PATH_OK, 0 },       /* U+200B, no White_Space */
		{ "\xe2\x80\xa8x", PATH_E_BLANKS, 0 }, /* U+2028 */
		{ "\xe2\x80\xa9x", PATH_E_BLANKS, 0 }, /* U+2029 */
		{ "x\xe2\x80\xaf", PATH_E_BLANKS, 1 }, /* U+202F */
		{ "x\xe2\x81\x9f", PATH_E_BLANKS, 1 }, /* U+205F */
		{ "x\xe3\x80\x80", PATH_E_BLANKS, 1 }, /* U+3000 */
		{ "x\xe3\x80\x80x", PATH_OK, 0 },

		{ "a\tb", PATH_E_CONTROL, 1 },
		{ "\n", PATH_E_CONTROL, 0 },
		{ "a/b\x1f", PATH_E_CONTROL, 3 },
		{ "a\x7f", PATH_E_CONTROL, 1 },
		{ "a\xc2\x80", PATH_E_CONTROL, 1 }, /* U+0080 */
		{ "a\xc2\x9f", PATH_E_CONTROL, 1 }, /* U+009F */
		{ "a\xc2\xa1", PATH_OK, 0 },

		{ "\xc3\xa9\xe4\xb8\xad/\xf0\x9f\x98\x80", PATH_OK, 0 },
		{ "a\x80", PATH_E_UTF8, 1 },		 /* continuation without a lead */
		{ "a\xc0\xaf", PATH_E_UTF8, 1 },	 /* overlong '/' */
		{ "a\xc1\xbf", PATH_E_UTF8, 1 },	 /* overlong U+007F */
		{ "a\xe0\x80\xaf", PATH_E_UTF8, 1 },	 /* overlong '/' */
		{ "a\xe0\x9f\xbf", PATH_E_UTF8, 1 },	 /* overlong U+07FF */
		{ "a\xe0\xa0\x80", PATH_OK, 0 },	 /* U+0800 */
		{ "a\xed\x9f\xbf", PATH_OK, 0 },	 /* U+D7FF */
		{ "a\xed\xa0\x80", PATH_E_UTF8, 1 },	 /* U+D800 */
		{ "a\xed\xbf\xbf", PATH_E_UTF8, 1 },	 /* U+DFFF */
		{ "a\xee\x80\x80", PATH_OK, 0 },	 /* U+E000 */
		{ "a\xef\xbf\xbf", PATH_OK, 0 },	 /* U+FFFF */
		{ "a\xf0\x8f\xbf\xbf", PATH_E_UTF8, 1 }, /* overlong U+FFFF */
		{ "a\xf0\x90\x80\x80", PATH_OK, 0 },	 /* U+10000 */
		{ "a\xf4\x8f\xbf\xbf", PATH_OK, 0 },	 /* U+10FFFF */
		{ "a\xf4\x90\x80\x80", PATH_E_UTF8, 1 }, /* U+110000 */
		{ "a\xf8\x88\x80\x80\x80", PATH_E_UTF8, 1 },
		{ "a\xff", PATH_E_UTF8, 1 },
		{ "a\xc3", PATH_E_UTF8, 1 }, /* cut short by the end */
		{ "a\xe4\xb8", PATH_E_UTF8, 1 },
		{ "a\xf0\x9f\x98", PATH_E_UTF8, 1 },
		{ "a\xe4\xb8/b", PATH_E_UTF8, 1 }, /* cut short by a slash */
		{ "a\xc3x", PATH_E_UTF8, 1 },

		/* The first fault counts. */
		{ "a//\x80", PATH_E_EMPTY_SEGMENT, 2 },
		{ "\x80//", PATH_E_UTF8, 0 },
		{ " \t", PATH_E_CONTROL, 1 },
		{ " /..", PATH_E_BLANKS, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(examples); i++) {
		expect(examples[i].path, strlen(examples[i].path), examples[i].error,
		       examples[i].offset);
	}
	expect("a\0b", 3, PATH_E_CONTROL, 1);
}

static void test_lengths(void **state)
{
	char path[PATH_MAX_BYTES + 2];

	(void)state;
	memset(path, 'x', sizeof(path));
	expect(path, 128, PATH_OK, 0);
	expect(path, 129, PATH_E_SEGMENT_TOO_LONG, 128);
	path[128] = '/';
	expect(path, 128 + 1 + 128, PATH_OK, 0);
	expect(path, 128 + 1 + 129, PATH_E_SEGMENT_TOO_LONG, 128 + 1 + 128);
	path[257] = '/';
	path[386] = '/';
	expect(path, 512, PATH_OK, 0);
	expect(path, 513, PATH_E_TOO_LONG, 512);
	/* The whole is measured first. */
	path[0] = '\t';
	expect(path, 513, PATH_E_TOO_LONG, 512);
	expect(path, 512, PATH_E_CONTROL, 0);

	/* Bytes count, not characters: 64 of two bytes fit, 65 don't. */
	for (size_t i = 0; i < 130; i += 2) {
		memcpy(path + i, "\xc3\xa9", 2);
	}
	expect(path, 128, PATH_OK, 0);
	expect(path, 130, PATH_E_SEGMENT_TOO_LONG, 128);
}

static void test_depth(void **state)
{
	static const char path[] = "1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g/h";

	(void)state;
	expect(path, 31, PATH_OK, 0);
	expect(path, 33, PATH_E_TOO_DEEP, 32);
	expect(path, 32, PATH_E_TOO_DEEP,
	       32); /* the empty 17th segment: depth is looked at first */
	assert_int_equal(path_depth(path, 31), 16);
	assert_int_equal(path_depth(path, 1), 1);
	assert_int_equal(path_depth(path, 0), 0);
}

static void test_every_lead_byte(void **state)
{
	(void)state;
	for (unsigned lead = 0x80; lead < 0x100; lead++) {
		char path[2] = { 'a', (char)lead };

		expect(path, 2, PATH_E_UTF8, 1);
	}
}

static void test_segment(void **state)
{
	size_t where = 9999;
	char segment[129];

	(void)state;
	memset(segment, 'x', sizeof(segment));
	assert_int_equal(path_check_segment(segment, 128, &where), PATH_OK);
	assert_int_equal(where, 9999);
	assert_int_equal(path_check_segment(segment, 129, &where), PATH_E_SEGMENT_TOO_LONG);
	assert_int_equal(where, 128);
	assert_int_equal(path_check_segment("a/b", 3, &where), PATH_E_TOO_DEEP);
	assert_int_equal(where, 1);
	assert_int_equal(path_check_segment(NULL, 0, &where), PATH_E_EMPTY);
	assert_int_equal(where, 0);
	assert_int_equal(path_check_segment("**", 2, NULL), PATH_E_RESERVED);
}

static void test_parent_and_segments(void **state)
{
	static const char path[] = "one/two/three";
	static const char *const segments[] = { "one", "two", "three" };
	static const size_t prefixes[] = { 3, 7, 13 };
	const char *segment;
	size_t len, at = 0, n = 0;

	(void)state;
	assert_int_equal(path_parent(path, 13), 7);
	assert_int_equal(path_parent(path, 7), 3);
	assert_int_equal(path_parent(path, 3), 0);
	assert_int_equal(path_parent(path, 0), 0);
	while (path_segment(path, 13, &at, &segment, &len)) {
		assert_true(n < 3);
		assert_int_equal(len, strlen(segments[n]));
		assert_memory_equal(segment, segments[n], len);
		assert_int_equal(at, prefixes[n]);
		n++;
	}
	assert_int_equal(n, 3);
	at = 0;
	assert_false(path_segment("", 0, &at, &segment, &len));
}

static void test_child(void **state)
{
	char buffer[PATH_MAX_BYTES] = "?";
	char parent[PATH_MAX_BYTES];
	size_t len = 9999;

	(void)state;
	assert_int_equal(path_child(buffer, "a/b", 3, "__other__", 9, &len), PATH_OK);
	assert_int_equal(len, 13);
	assert_memory_equal(buffer, "a/b/__other__", 13);
	assert_int_equal(path_child(buffer, "", 0, "a", 1, &len), PATH_OK);
	assert_int_equal(len, 1);
	/* In place. */
	memcpy(buffer, "x/y", 3);
	assert_int_equal(path_child(buffer, buffer, 3, "z", 1, &len), PATH_OK);
	assert_memory_equal(buffer, "x/y/z", 5);

	memset(parent, 'x', sizeof(parent));
	len = 9999;
	assert_int_equal(path_child(buffer, parent, 503, "__other__", 9, &len), PATH_E_TOO_LONG);
	assert_int_equal(len, 9999);
	assert_int_equal(path_child(buffer, parent, 502, "__other__", 9, &len), PATH_OK);
	assert_int_equal(len, 512);
	assert_int_equal(path_child(buffer, "1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g", 31, "h", 1, &len),
			 PATH_E_TOO_DEEP);
	assert_int_equal(path_child(buffer, "1/2/3/4/5/6/7/8/9/a/b/c/d/e/f", 29, "g", 1, &len),
			 PATH_OK);
}

static void test_texts(void **state)
{
	(void)state;
	for (int i = PATH_OK; i <= PATH_E_RESERVED; i++) {
		const char *text = path_error_text((enum path_error)i);

		assert_non_null(text);
		assert_string_not_equal(text, path_error_text((enum path_error)99));
		for (int j = PATH_OK; j < i; j++) {
			assert_string_not_equal(text, path_error_text((enum path_error)j));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),	cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_depth),	cmocka_unit_test(test_every_lead_byte),
		cmocka_unit_test(test_segment), cmocka_unit_test(test_parent_and_segments),
		cmocka_unit_test(test_child),	cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
