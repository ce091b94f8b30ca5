#include "lib/expose/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_TEXT 32u

void page_init(struct page *page, enum page_format format, page_sink sink, void *ctx)
{
	page->format = format;
	page->sink = sink;
	page->ctx = ctx;
	page->len = page->labels_len = 0;
	page->in_label = false;
}

static void flush(struct page *page)
{
	if (page->len > 0) {
		page->sink(page->ctx, page->bytes, page->len);
		page->len = 0;
	}
}

static void put(struct page *page, const char *bytes, size_t len)
{
	while (len > PAGE_PIECE - page->len) {
		size_t part = PAGE_PIECE - page->len;

		memcpy(page->bytes + page->len, bytes, part);
		page->len += part;
		bytes += part;
		len -= part;
		flush(page);
	}
	memcpy(page->bytes + page->len, bytes, len);
	page->len += len;
}

static void put_text(struct page *page, const char *text)
{
	put(page, text, strlen(text));
}

/* ---- families ---- */

/* OpenMetrics escapes quotes here too; in the text format a backslash before one would stay. */
static void put_help(struct page *page, const char *text)
{
	const char *special = page->format == PAGE_OPENMETRICS ? "\\\n\"" : "\\\n";

	for (;;) {
		size_t len = strcspn(text, special);

		put(page, text, len);
		text += len;
		if (*text == '\0') {
			return;
		}
		put(page, "\\", 1);
		put(page, *text == '\n' ? "n" : text, 1);
		text++;
	}
}

/* The text format knows no families: there a counter has the name of its samples. */
static void put_name(struct page *page, const struct page_family *family)
{
	put(page, family->name, family->name_len);
	if (family->type == PAGE_COUNTER && page->format == PAGE_TEXT) {
		put_text(page, "_total");
	}
}

void page_family(struct page *page, const struct page_family *family)
{
	put_text(page, "# HELP ");
	put_name(page, family);
	put(page, " ", 1);
	put_help(page, family->help);
	put_text(page, "\n# TYPE ");
	put_name(page, family);
	put_text(page, family->type == PAGE_COUNTER ? " counter\n" : " gauge\n");
	if (page->format == PAGE_OPENMETRICS && family->unit[0] != '\0') {
		put_text(page, "# UNIT ");
		put_name(page, family);
		put(page, " ", 1);
		put_text(page, family->unit);
		put(page, "\n", 1);
	}
}

/* ---- labels ---- */

void page_labels(struct page *page)
{
	page->labels_len = 0;
}

static size_t room(const struct page *page)
{
	/* A quote at the end always fits. */
	return page->labels_len < PAGE_MAX_LABELS - 1 ? PAGE_MAX_LABELS - 1 - page->labels_len : 0;
}

static void add(struct page *page, const char *bytes, size_t len)
{
	memcpy(page->labels + page->labels_len, bytes, len);
	page->labels_len += len;
}

void page_label_begin(struct page *page, const char *name, size_t name_len)
{
	page->in_label = room(page) >= name_len + 3;
	if (page->in_label) {
		add(page, page->labels_len == 0 ? "{" : ",", 1);
		add(page, name, name_len);
		add(page, "=\"", 2);
	}
}

static bool is_special(char c)
{
	return c == '"' || c == '\\' || c == '\n';
}

void page_label_text(struct page *page, const char *text, size_t len)
{
	const char *end = text + len;

	while (page->in_label && text < end) {
		const char *start = text;

		while (text < end && !is_special(*text)) {
			text++;
		}
		if ((size_t)(text - start) + 2 > room(page)) {
			return;
		}
		add(page, start, (size_t)(text - start));
		if (text < end) {
			add(page, "\\", 1);
			add(page, *text == '\n' ? "n" : text, 1);
			text++;
		}
	}
}

void page_label_end(struct page *page)
{
	if (page->in_label) {
		add(page, "\"", 1);
		page->in_label = false;
	}
}

void page_label(struct page *page, const char *name, const char *value, size_t value_len)
{
	page_label_begin(page, name, strlen(name));
	page_label_text(page, value, value_len);
	page_label_end(page);
}

/* ---- samples ---- */

static void put_series(struct page *page, const struct page_family *family, const char *suffix)
{
	put(page, family->name, family->name_len);
	put_text(page, suffix);
	if (page->labels_len > 0) {
		put(page, page->labels, page->labels_len);
		put(page, "}", 1);
	}
	put(page, " ", 1);
}

static const char *suffix_of(const struct page_family *family)
{
	return family->type == PAGE_COUNTER ? "_total" : "";
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

static void put_number(struct page *page, int64_t value)
{
	char text[NUMBER_TEXT];
	char *at = format(value < 0 ? -(uint64_t)value : (uint64_t)value, text);

	if (value < 0) {
		*--at = '-';
	}
	put(page, at, (size_t)(text + NUMBER_TEXT - at));
}

void page_sample(struct page *page, const struct page_family *family, int64_t value)
{
	put_series(page, family, suffix_of(family));
	put_number(page, value);
	put(page, "\n", 1);
}

void page_sample_real(struct page *page, const struct page_family *family, double value)
{
	char text[NUMBER_TEXT];

	(void)snprintf(text, sizeof(text), "%.17g", value);
	put_series(page, family, suffix_of(family));
	put_text(page, text);
	put(page, "\n", 1);
}

void page_created(struct page *page, const struct page_family *family, int64_t ns)
{
	char text[NUMBER_TEXT];

	if (page->format != PAGE_OPENMETRICS || family->type != PAGE_COUNTER || ns < 0) {
		return;
	}
	put_series(page, family, "_created");
	put_number(page, ns / 1000000000);
	/* As many digits as there are: the first of the ten is the point's place. */
	(void)memcpy(format((uint64_t)(ns % 1000000000) + 1000000000, text), ".", 1);
	put(page, text + NUMBER_TEXT - 10, 10);
	put(page, "\n", 1);
}

void page_end(struct page *page)
{
	if (page->format == PAGE_OPENMETRICS) {
		put_text(page, "# EOF\n");
	}
	flush(page);
}
