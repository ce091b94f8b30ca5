#pragma once
/*
 * sheet: what a scraper gets, written piece by piece: Prometheus's text format 0.0.4, or OpenMetrics 1.0.0.
 *
 * For each family sheet_family once, then for each of its series sheet_labels, its labels and sheet_sample. Names are the caller's to keep
 * unique and valid, samples its to keep together; texts are escaped here. Nothing is kept but what does not fill a piece yet, so a
 * page of any length takes sizeof(struct sheet).
 *
 * Sources: "Exposition formats", prometheus.io; "OpenMetrics", openmetrics.io, version 1.0.0.
 *
 * Thread safety: none needed, a page belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHEET_PIECE 32768u
#define SHEET_MAX_LABELS 4096u /* bytes of a series' labels, escaped; what is beyond is left out */

enum sheet_format {
	SHEET_TEXT,
	SHEET_OPENMETRICS,
};

enum sheet_type {
	SHEET_COUNTER,
	SHEET_GAUGE,
};

struct sheet_family {
	const char *name; /* without _total; the unit at its end, if it has one */
	size_t name_len;
	enum sheet_type type;
	const char *help; /* any text */
	const char *unit; /* "": none */
};

/* Takes up to SHEET_PIECE bytes, which are the page's again afterwards. */
typedef void (*sheet_sink)(void *ctx, const char *bytes, size_t len);

struct sheet {
	enum sheet_format format;
	sheet_sink sink;
	void *ctx;
	size_t len, labels_len;
	bool in_label;
	char labels[SHEET_MAX_LABELS];
	char bytes[SHEET_PIECE];
};

void sheet_init(struct sheet *sheet, enum sheet_format format, sheet_sink sink, void *ctx);

/* The lines before the samples. */
void sheet_family(struct sheet *sheet, const struct sheet_family *family);

/* A series without labels yet. */
void sheet_labels(struct sheet *sheet);
/* One label; `value` is any text. */
void sheet_label(struct sheet *sheet, const char *name, const char *value, size_t value_len);
/* The same in parts: begin, any number of texts, end. */
void sheet_label_begin(struct sheet *sheet, const char *name, size_t name_len);
void sheet_label_text(struct sheet *sheet, const char *text, size_t len);
void sheet_label_end(struct sheet *sheet);

/* With the labels there are now. */
void sheet_sample(struct sheet *sheet, const struct sheet_family *family, int64_t value);
void sheet_sample_real(struct sheet *sheet, const struct sheet_family *family, double value);
/* When the series of the sample before began: OpenMetrics has a place for that, text has not. */
void sheet_created(struct sheet *sheet, const struct sheet_family *family, int64_t ns);

/* All that is left goes to the sink. */
void sheet_end(struct sheet *sheet);
