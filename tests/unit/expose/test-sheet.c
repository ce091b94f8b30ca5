/* sheet: lines as both formats have them, whatever the texts. */
#include <inttypes.h>
#include <stdio.h>

#include "tests/unit/expose/sink.h"

static struct sheet sheet;

static const struct sheet_family counter = { .name = "requests",
					     .name_len = 8,
					     .type = SHEET_COUNTER,
					     .help = "All \"of\" them\\.\n2",
					     .unit = "" };
static const struct sheet_family gauge = {
	.name = "held_bytes", .name_len = 10, .type = SHEET_GAUGE, .help = "Held.", .unit = "bytes"
};

static void write_page(struct sink *sink, enum sheet_format format)
{
	sheet_init(&sheet, format, sink_take, sink);
	sheet_family(&sheet, &counter);
	sheet_labels(&sheet);
	sheet_sample(&sheet, &counter, 0);
	sheet_created(&sheet, &counter, INT64_C(1700000000000000042));
	sheet_labels(&sheet);
	sheet_label(&sheet, "a", "x\"y\\z\nw", 7);
	sheet_label(&sheet, "b", "", 0);
	sheet_sample(&sheet, &counter, INT64_MAX);
	sheet_created(&sheet, &counter, 5);
	sheet_family(&sheet, &gauge);
	sheet_labels(&sheet);
	sheet_sample(&sheet, &gauge, INT64_MIN);
	sheet_sample_real(&sheet, &gauge, 0.1);
	sheet_created(&sheet, &gauge, 5);
	sheet_end(&sheet);
}

static void test_text(void **state)
{
	struct sink sink = { 0 };

	(void)state;
	write_page(&sink, SHEET_TEXT);
	assert_string_equal(sink.text,
			    "# HELP requests_total All \"of\" them\\\\.\\n2\n"
			    "# TYPE requests_total counter\n"
			    "requests_total 0\n"
			    "requests_total{a=\"x\\\"y\\\\z\\nw\",b=\"\"} 9223372036854775807\n"
			    "# HELP held_bytes Held.\n"
			    "# TYPE held_bytes gauge\n"
			    "held_bytes -9223372036854775808\n"
			    "held_bytes 0.10000000000000001\n");
	sink_clear(&sink);
}

static void test_openmetrics(void **state)
{
	struct sink sink = { 0 };

	(void)state;
	write_page(&sink, SHEET_OPENMETRICS);
	assert_string_equal(sink.text,
			    "# HELP requests All \\\"of\\\" them\\\\.\\n2\n"
			    "# TYPE requests counter\n"
			    "requests_total 0\n"
			    "requests_created 1700000000.000000042\n"
			    "requests_total{a=\"x\\\"y\\\\z\\nw\",b=\"\"} 9223372036854775807\n"
			    "requests_created{a=\"x\\\"y\\\\z\\nw\",b=\"\"} 0.000000005\n"
			    "# HELP held_bytes Held.\n"
			    "# TYPE held_bytes gauge\n"
			    "# UNIT held_bytes bytes\n"
			    "held_bytes -9223372036854775808\n"
			    "held_bytes 0.10000000000000001\n"
			    "# EOF\n");
	sink_clear(&sink);
}

/* Whatever does not fit a piece goes on in the next. */
static void test_pieces(void **state)
{
	struct sink sink = { 0 };
	char line[64];
	size_t at = 0;

	(void)state;
	sheet_init(&sheet, SHEET_TEXT, sink_take, &sink);
	sheet_labels(&sheet);
	for (int64_t i = 0; i < 10000; i++) {
		sheet_sample(&sheet, &counter, i);
	}
	sheet_end(&sheet);
	assert_int_equal(sink.largest, SHEET_PIECE);
	for (int i = 0; i < 10000; i++) {
		(void)snprintf(line, sizeof(line), "requests_total %d\n", i);
		assert_memory_equal(sink.text + at, line, strlen(line));
		at += strlen(line);
	}
	assert_int_equal(at, sink.len);
	sink_clear(&sink);
}

/* More labels than there is room for are cut short, and the line is good still. */
static void test_long_labels(void **state)
{
	static char value[SHEET_MAX_LABELS];

	(void)state;
	memset(value, '"', sizeof(value));
	for (size_t len = SHEET_MAX_LABELS / 2 - 20; len < SHEET_MAX_LABELS / 2 + 4; len++) {
		struct sink sink = { 0 };

		sheet_init(&sheet, SHEET_TEXT, sink_take, &sink);
		sheet_labels(&sheet);
		sheet_label(&sheet, "a", value, len);
		sheet_label(&sheet, "b", "c", 1);
		sheet_sample(&sheet, &counter, 1);
		sheet_end(&sheet);
		assert_true(sink.len < SHEET_MAX_LABELS + 32);
		assert_memory_equal(sink.text + sink.len - 5, "\"} 1\n", 5);
		sink_clear(&sink);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_openmetrics),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_long_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
