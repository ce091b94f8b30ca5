#include "lib/expose/sheet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_TEXT 32u

void sheet_init(struct sheet *sheet, enum sheet_format format, sheet_sink sink, void *ctx)
{
	sheet->format = format;
	sheet->sink = sink;
	sheet->ctx = ctx;
	sheet->len = sheet->labels_len = 0;
	sheet->in_label = false;
}

static void flush(struct sheet *sheet)
{
	if (sheet->len > 0) {
		sheet->sink(sheet->ctx, sheet->bytes, sheet->len);
		sheet->len = 0;
	}
}

static void put(struct sheet *sheet, const char *bytes, size_t len)
{
	while (len > SHEET_PIECE - sheet->len) {
		size_t part = SHEET_PIECE - sheet->len;

		memcpy(sheet->bytes + sheet->len, bytes, part);
		sheet->len += part;
		bytes += part;
		len -= part;
		flush(sheet);
	}
	memcpy(sheet->bytes + sheet->len, bytes, len);
	sheet->len += len;
}

static void put_text(struct sheet *sheet, const char *text)
{
	put(sheet, text, strlen(text));
}

/* ---- families ---- */

/* OpenMetrics escapes quotes here too; in the text format a backslash before one would stay. */
static void put_help(struct sheet *sheet, const char *text)
{
	const char *special = sheet->format == SHEET_OPENMETRICS ? "\\\n\"" : "\\\n";

	for (;;) {
		size_t len = strcspn(text, special);

		put(sheet, text, len);
		text += len;
		if (*text == '\0') {
			return;
		}
		put(sheet, "\\", 1);
		put(sheet, *text == '\n' ? "n" : text, 1);
		text++;
	}
}

/* The text format knows no families: there a counter has the name of its samples. */
static void put_name(struct sheet *sheet, const struct sheet_family *family)
{
	put(sheet, family->name, family->name_len);
	if (family->type == SHEET_COUNTER && sheet->format == SHEET_TEXT) {
		put_text(sheet, "_total");
	}
}

void sheet_family(struct sheet *sheet, const struct sheet_family *family)
{
	put_text(sheet, "# HELP ");
	put_name(sheet, family);
	put(sheet, " ", 1);
	put_help(sheet, family->help);
	put_text(sheet, "\n# TYPE ");
	put_name(sheet, family);
	put_text(sheet, family->type == SHEET_COUNTER ? " counter\n" : " gauge\n");
	if (sheet->format == SHEET_OPENMETRICS && family->unit[0] != '\0') {
		put_text(sheet, "# UNIT ");
		put_name(sheet, family);
		put(sheet, " ", 1);
		put_text(sheet, family->unit);
		put(sheet, "\n", 1);
	}
}

/* ---- labels ---- */

void sheet_labels(struct sheet *sheet)
{
	sheet->labels_len = 0;
}

static size_t room(const struct sheet *sheet)
{
	/* A quote at the end always fits. */
	return sheet->labels_len < SHEET_MAX_LABELS - 1 ? SHEET_MAX_LABELS - 1 - sheet->labels_len
							: 0;
}

static void add(struct sheet *sheet, const char *bytes, size_t len)
{
	memcpy(sheet->labels + sheet->labels_len, bytes, len);
	sheet->labels_len += len;
}

void sheet_label_begin(struct sheet *sheet, const char *name, size_t name_len)
{
	sheet->in_label = room(sheet) >= name_len + 3;
	if (sheet->in_label) {
		add(sheet, sheet->labels_len == 0 ? "{" : ",", 1);
		add(sheet, name, name_len);
		add(sheet, "=\"", 2);
	}
}

static bool is_special(char c)
{
	return c == '"' || c == '\\' || c == '\n';
}

void sheet_label_text(struct sheet *sheet, const char *text, size_t len)
{
	const char *end = text + len;

	while (sheet->in_label && text < end) {
		const char *start = text;

		while (text < end && !is_special(*text)) {
			text++;
		}
		if ((size_t)(text - start) + 2 > room(sheet)) {
			return;
		}
		add(sheet, start, (size_t)(text - start));
		if (text < end) {
			add(sheet, "\\", 1);
			add(sheet, *text == '\n' ? "n" : text, 1);
			text++;
		}
	}
}

void sheet_label_end(struct sheet *sheet)
{
	if (sheet->in_label) {
		add(sheet, "\"", 1);
		sheet->in_label = false;
	}
}

void sheet_label(struct sheet *sheet, const char *name, const char *value, size_t value_len)
{
	sheet_label_begin(sheet, name, strlen(name));
	sheet_label_text(sheet, value, value_len);
	sheet_label_end(sheet);
}

/* ---- samples ---- */

static void put_series(struct sheet *sheet, const struct sheet_family *family, const char *suffix)
{
	put(sheet, family->name, family->name_len);
	put_text(sheet, suffix);
	if (sheet->labels_len > 0) {
		put(sheet, sheet->labels, sheet->labels_len);
		put(sheet, "}", 1);
	}
	put(sheet, " ", 1);
}

static const char *suffix_of(const struct sheet_family *family)
{
	return family->type == SHEET_COUNTER ? "_total" : "";
}

/* Backwards from the end of text[NUMBER_TEXT]; where it begins. */
static char *format(uint64_t value, char *text)
{
	char *at = text + NUMBER_TEXT;

	do {
		*--at = (char)('0' + (int)(value % 10));
		value /= 10;
	} while (value > 0);
	return at;
}

static void put_number(struct sheet *sheet, int64_t value)
{
	char text[NUMBER_TEXT];
	char *at = format(value < 0 ? -(uint64_t)value : (uint64_t)value, text);

	if (value < 0) {
		*--at = '-';
	}
	put(sheet, at, (size_t)(text + NUMBER_TEXT - at));
}

void sheet_sample(struct sheet *sheet, const struct sheet_family *family, int64_t value)
{
	put_series(sheet, family, suffix_of(family));
	put_number(sheet, value);
	put(sheet, "\n", 1);
}

void sheet_sample_real(struct sheet *sheet, const struct sheet_family *family, double value)
{
	char text[NUMBER_TEXT];

	(void)snprintf(text, sizeof(text), "%.17g", value);
	put_series(sheet, family, suffix_of(family));
	put_text(sheet, text);
	put(sheet, "\n", 1);
}

void sheet_created(struct sheet *sheet, const struct sheet_family *family, int64_t ns)
{
	char text[NUMBER_TEXT];

	if (sheet->format != SHEET_OPENMETRICS || family->type != SHEET_COUNTER || ns < 0) {
		return;
	}
	put_series(sheet, family, "_created");
	put_number(sheet, ns / 1000000000);
	/* As many digits as there are: the first of the ten is the point's place. */
	(void)memcpy(format((uint64_t)(ns % 1000000000) + 1000000000, text), ".", 1);
	put(sheet, text + NUMBER_TEXT - 10, 10);
	put(sheet, "\n", 1);
}

void sheet_end(struct sheet *sheet)
{
	if (sheet->format == SHEET_OPENMETRICS) {
		put_text(sheet, "# EOF\n");
	}
	flush(sheet);
}
