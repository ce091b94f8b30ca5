#include "tests/support/test.h"

#include "clients/cli/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The line as it would come from the stream: with a byte after it. */
static enum line_error parse(const char *text, size_t len, struct line *ret_line)
{
	static char buffer[LINES_MAX_BYTES + 2];

	assert_true(len < sizeof(buffer));
	memcpy(buffer, text, len);
	buffer[len] = '\n';
	return line_parse(buffer, len, ret_line);
}

static void good_lines(void **state)
{
	static const struct {
		const char *text;
		const char *path;
		int64_t n;
	} cases[] = {
		{ "requests/acme 5", "requests/acme", 5 },
		{ "requests/acme", "requests/acme", 1 },
		{ "  requests/acme \t 5  ", "requests/acme", 5 },
		{ "requests/acme\t-5\r", "requests/acme", -5 },
		{ "requests/acme\r", "requests/acme", 1 },
		{ "a path/with  blanks 4k", "a path/with  blanks", 4000 },
		{ "a 1 2", "a 1", 2 },
		{ "5", "5", 1 },
		{ "5 5", "5", 5 },
		{ "a# 1", "a#", 1 },
		{ "a 9223372036854775807", "a", INT64_MAX },
		{ "a -9223372036854775808", "a", INT64_MIN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct line line;

		assert_int_equal(parse(cases[i].text, strlen(cases[i].text), &line), LINE_OK);
		assert_string_equal(line.path, cases[i].path);
		assert_true(line.n == cases[i].n);
	}
}

static void nothing_to_add(void **state)
{
	static const char *const texts[] = { "", " ", "\t \t", "\r", "#", "# a 5", "   #x" };
	struct line line;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(parse(texts[i], strlen(texts[i]), &line), LINE_E_NOTHING);
	}
}

static void bad_lines(void **state)
{
	struct line line;
	char longest[LINES_MAX_BYTES + 1];

	(void)state;
	assert_int_equal(parse("a b", 3, &line), LINE_E_NUMBER);
	assert_string_equal(line.number, "b");
	assert_int_equal(line.amount_error, AMOUNT_E_SYNTAX);
	assert_int_equal(parse("a 1.5", 5, &line), LINE_E_NUMBER);
	assert_int_equal(line.amount_error, AMOUNT_E_FRACTION);
	assert_int_equal(parse("a 9223372036854775808", 21, &line), LINE_E_NUMBER);
	assert_int_equal(line.amount_error, AMOUNT_E_RANGE);
	assert_int_equal(parse("a\0b 5", 5, &line), LINE_E_NUL);
	memset(longest, 'a', sizeof(longest));
	assert_int_equal(parse(longest, LINES_MAX_BYTES, &line), LINE_OK);
	assert_int_equal(parse(longest, LINES_MAX_BYTES + 1, &line), LINE_E_LONG);
}

/* A stream that gives `step` bytes at a time, then ends or fails. */
struct stream {
	const char *bytes;
	size_t len;
	size_t step;
	int error;
};

static ssize_t stream_read(void *ctx, void *buffer, size_t size)
{
	struct stream *stream = ctx;
	size_t n = stream->step < stream->len ? stream->step : stream->len;

	n = n < size ? n : size;
	if (n == 0 && stream->error != 0) {
		errno = stream->error;
		return -1;
	}
	memcpy(buffer, stream->bytes, n);
	stream->bytes += n;
	stream->len -= n;
	return (ssize_t)n;
}

static void assert_next(struct lines *lines, const char *expected)
{
	char *text = NULL;
	size_t len = 0;

	assert_int_equal(lines_next(lines, &text, &len), 1);
	assert_int_equal(len, strlen(expected));
	assert_memory_equal(text, expected, len);
	/* line_parse may do so. */
	text[len] = '\0';
}

static void lines_of_a_stream(void **state)
{
	static struct lines lines;
	char *text = NULL;
	size_t len = 0;

	(void)state;
	for (size_t step = 1; step < 20; step++) {
		struct stream stream = { "one\n\ntwo 2\nlast", 15, step, 0 };

		lines_init(&lines, stream_read, &stream);
		assert_next(&lines, "one");
		assert_next(&lines, "");
		assert_next(&lines, "two 2");
		assert_int_equal(lines.number, 3);
		assert_next(&lines, "last");
		assert_int_equal(lines_next(&lines, &text, &len), 0);
		assert_int_equal(lines_next(&lines, &text, &len), 0);
		assert_int_equal(lines.number, 4);
	}
}

static void a_byte_order_mark(void **state)
{
	static struct lines lines;

	(void)state;
	for (size_t step = 1; step < 20; step++) {
		struct stream stream = { "\xef\xbb\xbfOne\n\xef\xbb\xbfTwo\n", 14, step, 0 };

		lines_init(&lines, stream_read, &stream);
		assert_next(&lines, "One");
		assert_next(&lines,
			    "\xef\xbb\xbfTwo"); /* in the middle it is text like any other */
	}
}

/* The longest line, one byte more, and very much more, each followed by another one. */
static void long_lines(void **state)
{
	static struct lines lines;
	static const size_t lengths[] = { LINES_MAX_BYTES, LINES_MAX_BYTES + 1,
					  3 * sizeof(lines.buffer), sizeof(lines.buffer) - 1 };
	static const size_t steps[] = { 1, 7, 4096, 1 << 20 };

	(void)state;
	for (size_t i = 0; i < 16; i++) {
		size_t length = lengths[i / 4];
		char *bytes = malloc(length + 5);
		struct stream stream = { bytes, length + 5, steps[i % 4], 0 };
		char *text = NULL;
		size_t len = 0;

		memset(bytes, 'x', length);
		memcpy(bytes + length, "\nnext", 5);
		lines_init(&lines, stream_read, &stream);
		assert_int_equal(lines_next(&lines, &text, &len), 1);
		assert_int_equal(len, length <= LINES_MAX_BYTES ? length : LINES_MAX_BYTES + 1);
		assert_next(&lines, "next");
		assert_int_equal(lines.number, 2);
		assert_int_equal(lines_next(&lines, &text, &len), 0);
		free(bytes);
	}
}

static void a_stream_that_fails(void **state)
{
	static struct lines lines;
	struct stream stream = { "one\ntw", 6, 6, EIO };
	char *text = NULL;
	size_t len = 0;

	(void)state;
	lines_init(&lines, stream_read, &stream);
	assert_next(&lines, "one");
	/* Half a line is none: nobody knows what its end was to be. */
	assert_int_equal(lines_next(&lines, &text, &len), -EIO);
	assert_int_equal(lines.number, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_lines),	       cmocka_unit_test(nothing_to_add),
		cmocka_unit_test(bad_lines),	       cmocka_unit_test(lines_of_a_stream),
		cmocka_unit_test(a_byte_order_mark),   cmocka_unit_test(long_lines),
		cmocka_unit_test(a_stream_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
