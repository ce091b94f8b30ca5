#include "daemon/statsd/line.h"

#include "daemon/statsd/path.h"
#include "daemon/statsd/scan.h"
#include "tests/support/statsd-table.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char scratch[STATSD_MAX_LINE + SCAN_SLACK];

/* `text` must have the slack. */
static enum statsd_reason read_line(const char *text, size_t len, struct statsd_line *ret_line)
{
	memset(ret_line, 0, sizeof(*ret_line));
	return statsd_line_parse(text, len, scratch, ret_line);
}

/* ---- the table ---- */

static void check_accepted(const struct table_outcome *expected, const struct statsd_line *line,
			   const char *row)
{
	char path[PATH_MAX_BYTES], expected_path[1200];
	double value = strtod(expected->value, NULL),
	       amount = (double)line->amount.whole + (double)line->amount.fraction / 0x1p64;
	unsigned n_dropped;
	size_t len = 0;

	if (line->key.name_len != strlen(expected->name) ||
	    memcmp(line->key.name, expected->name, line->key.name_len) != 0 ||
	    line->n_unknown != expected->n_ignored ||
	    fabs(amount - value) > fabs(value) * 1e-15 + 1e-18) {
		fail_msg("%s: \"%.*s\" %.17g, %u fields", row, (int)line->key.name_len,
			 line->key.name, amount, line->n_unknown);
	}
	table_path(expected, expected_path, sizeof(expected_path));
	assert_int_equal(statsd_path(line->key.name, line->key.name_len, line->key.tags,
				     line->key.tags_len, NULL, path, &len, &n_dropped),
			 STATSD_OK);
	if (strlen(expected->name) <= PATH_MAX_SEGMENT &&
	    (len != strlen(expected_path) || memcmp(path, expected_path, len) != 0)) {
		fail_msg("%s: %.*s instead of %s", row, (int)len, path, expected_path);
	}
}

static void check_row(void *ctx, const struct table_row *row)
{
	char bytes[sizeof(row->bytes) + SCAN_SLACK] = { 0 };
	const char *at = bytes, *end = bytes + row->len;
	size_t n = 0;

	(void)ctx;
	memcpy(bytes, row->bytes, row->len);
	while (at < end) {
		const char *line = at, *newline = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((newline != NULL ? newline : end) - at);
		struct statsd_line parsed;
		enum statsd_reason reason;

		at = newline != NULL ? newline + 1 : end;
		statsd_line_trim(&line, &len);
		if (len == 0) {
			continue;
		}
		assert_true(n < row->n);
		reason = read_line(line, len, &parsed);
		if (row->outcomes[n].accepted != (reason == STATSD_OK) ||
		    (reason != STATSD_OK &&
		     strcmp(statsd_reason_name(reason), row->outcomes[n].reason) != 0)) {
			fail_msg("%s: %s", row->text, statsd_reason_name(reason));
		}
		if (reason == STATSD_OK) {
			check_accepted(&row->outcomes[n], &parsed, row->text);
		}
		n++;
	}
	assert_int_equal(n, row->n);
}

static void test_table(void **state)
{
	(void)state;
	assert_in_range(table_each(check_row, NULL), 250, 1000);
}

/* ---- edges ---- */

static void test_lengths(void **state)
{
	static char line[STATSD_MAX_LINE + 1 + SCAN_SLACK];
	struct statsd_line parsed;

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, "a:1|c|#", 7);
	assert_int_equal(read_line(line, STATSD_MAX_LINE, &parsed), STATSD_OK);
	assert_int_equal(parsed.key.tags_len, STATSD_MAX_LINE - 7);
	assert_int_equal(read_line(line, STATSD_MAX_LINE + 1, &parsed), STATSD_line_too_long);
	/* Neither does the quick reader take one that is too long, nor one whose length is in its rate. */
	assert_non_null(statsd_line_quick(line, line + STATSD_MAX_LINE, &parsed));
	assert_null(statsd_line_quick(line, line + STATSD_MAX_LINE + 1, &parsed));
	memset(line, '0', sizeof(line));
	memcpy(line, "a:1|c|@0.5", 10);
	assert_non_null(statsd_line_quick(line, line + STATSD_MAX_LINE, &parsed));
	assert_null(statsd_line_quick(line, line + STATSD_MAX_LINE + 1, &parsed));
	memset(line, 'x', sizeof(line));
	memcpy(line, "a:1|c|#", 7);
	/* Two fields of tags that fill the line fit the scratch. */
	memcpy(line + 4000, "|#", 2);
	assert_int_equal(read_line(line, STATSD_MAX_LINE, &parsed), STATSD_OK);
	assert_ptr_equal(parsed.key.tags, scratch);
	assert_int_equal(parsed.key.tags_len, STATSD_MAX_LINE - 8);
	assert_int_equal(scratch[4000 - 7], ',');
	memset(line, 'x', sizeof(line));
	memcpy(line + STATSD_MAX_NAME, ":1|c", 4);
	assert_int_equal(read_line(line, STATSD_MAX_NAME + 4, &parsed), STATSD_OK);
	memcpy(line + STATSD_MAX_NAME, "x:1|c", 5);
	assert_int_equal(read_line(line, STATSD_MAX_NAME + 5, &parsed), STATSD_name_too_long);
}

static void test_first_fault_is_told(void **state)
{
	static const struct {
		const char *line;
		enum statsd_reason reason;
	} rows[] = {
		{ "a\x01\xff", STATSD_control_char },
		{ "a\xff", STATSD_bad_utf8 },
		{ "a\xc2\x85", STATSD_control_char },
		{ "_e{1,1}:a|b", STATSD_unsupported_event },
		{ "a b:x|g", STATSD_name_charset },
		{ "a..b:x|g", STATSD_empty_path_segment },
		{ "/a:1|c", STATSD_empty_path_segment },
		{ "a:x|g|@9", STATSD_unsupported_type },
		{ "a:x|g:1", STATSD_unsupported_type },
		{ "a:x|q|@9", STATSD_bad_type },
		{ "a:x|c|@1:2", STATSD_legacy_multisample },
		{ "a:x|c|@9|@9", STATSD_bad_value },
		{ "a:|c|@9|@9", STATSD_empty_value },
		{ "a:1e99|c|@9|@9", STATSD_bad_rate },
		{ "a:1e99|c|@1|@1", STATSD_dup_rate },
		{ "a:1e99:x|c", STATSD_bad_value },
		{ "a:9223372036854775807:1|c", STATSD_out_of_range },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char line[64 + SCAN_SLACK] = { 0 };
		struct statsd_line parsed;

		memcpy(line, rows[i].line, strlen(rows[i].line));
		assert_int_equal(read_line(line, strlen(line), &parsed), rows[i].reason);
	}
}

/* ---- the quick reader ---- */

static void test_quick(void **state)
{
	static const struct {
		const char *text;
		long moved; /* -1: not taken */
		size_t name_len, tags_len;
		int64_t whole;
	} rows[] = {
		{ "a.b:1|c", 7, 3, 0, 1 },
		{ "a.b:12|c\nc:1|c", 9, 3, 0, 12 },
		{ "a:1|c|@0.5\n", 11, 1, 0, 2 },
		{ "a:1|c|#x:y,z\nb", 13, 1, 5, 1 },
		{ "a:3|c|@.1|#x", 12, 1, 1, 30 },
		{ "a:123456789012345678|c", 22, 1, 0, 123456789012345678 },
		{ "a:1234567890123456789|c", -1, 0, 0, 0 },
		{ "a:1|c\r\n", -1, 0, 0, 0 },
		{ "a:-1|c", -1, 0, 0, 0 },
		{ "a:1:2|c", -1, 0, 0, 0 },
		{ "a:1|cc", -1, 0, 0, 0 },
		{ "a:1|c|#x|@0.5", -1, 0, 0, 0 },
		{ "a:1|c|@2", -1, 0, 0, 0 },
		{ "a:1|c|@+1", -1, 0, 0, 0 },
		{ "a:1|c|@", -1, 0, 0, 0 },
		{ "a:1|c|#", -1, 0, 0, 0 },
		{ "a\nb:1|c", 7, 3, 0, 1 },
		{ "a:1|", -1, 0, 0, 0 },
		{ "a:1", -1, 0, 0, 0 },
		{ "a:", -1, 0, 0, 0 },
		{ "a", -1, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* What lies behind the end must not count. */
		char line[96 + SCAN_SLACK];
		const char *next;
		struct statsd_line quick;

		memset(line, '1', sizeof(line));
		memcpy(line, rows[i].text, strlen(rows[i].text));
		next = statsd_line_quick(line, line + strlen(rows[i].text), &quick);
		assert_int_equal(next != NULL, rows[i].moved >= 0);
		if (next != NULL) {
			assert_int_equal(next - line, rows[i].moved);
			assert_int_equal(quick.key.name_len, rows[i].name_len);
			assert_int_equal(quick.key.tags_len, rows[i].tags_len);
			assert_int_equal(quick.amount.whole, rows[i].whole);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_first_fault_is_told),
		cmocka_unit_test(test_quick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
