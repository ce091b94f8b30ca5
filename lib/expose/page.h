#pragma once
/*
 * page: what a scraper gets, written piece by piece: Prometheus's text format 0.0.4, or OpenMetrics 1.0.0.
 *
 * For each family page_family once, then for each of its series page_labels, its labels and page_sample. Names are the caller's to keep
 * unique and valid, samples its to keep together; texts are escaped here. Nothing is kept but what does not fill a piece yet, so a
 * page of any length takes sizeof(struct page).
 *
 * Sources: "Exposition formats", prometheus.io; "OpenMetrics", openmetrics.io, version 1.0.0.
 *
 * Thread safety: none needed, a page belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_PIECE 32768u
#define PAGE_MAX_LABELS 4096u /* bytes of a series' labels, escaped; what is beyond is left out */

enum page_format {
	PAGE_TEXT,
	PAGE_OPENMETRICS,
};

enum page_type {
	PAGE_COUNTER,
	PAGE_GAUGE,
};

struct page_family {
	const char *name; /* without _total; the unit at its end, if it has one */
	size_t name_len;
	enum page_type type;
	const char *help; /* any text */
	const char *unit; /* "": none */
};

/* Takes up to PAGE_PIECE bytes, which are the page's again afterwards. */
typedef void (*page_sink)(void *ctx, const char *bytes, size_t len);

struct page {
	enum page_format format;
	page_sink sink;
	void *ctx;
	size_t len, labels_len;
	bool in_label;
	char labels[PAGE_MAX_LABELS];
	char bytes[PAGE_PIECE];
};

void page_init(struct page *page, enum page_format format, page_sink sink, void *ctx);

/* The lines before the samples. */
void page_family(struct page *page, const struct page_family *family);

/* A series without labels yet. */
void page_labels(struct page *page);
/* One label; `value` is any text. */
void page_label(struct page *page, const char *name, const char *value, size_t value_len);
/* The same in parts: begin, any number of texts, end. */
void page_label_begin(struct page *page, const char *name, size_t name_len);
void page_label_text(struct page *page, const char *text, size_t len);
void page_label_end(struct page *page);

/* With the labels there are now. */
void page_sample(struct page *page, const struct page_family *family, int64_t value);
void page_sample_real(struct page *page, const struct page_family *family, double value);
/* When the series of the sample before began: OpenMetrics has a place for that, text has not. */
void page_created(struct page *page, const struct page_family *family, int64_t ns);

/* All that is left goes to the sink. */
void page_end(struct page *page);
