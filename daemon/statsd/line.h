#pragma once
/*
 * line: the grammar of StatsD and DogStatsD counters; docs/statsd.md has it.
 *
 *	line    = name ":" value *( ":" value ) "|c" *( "|" field )
 *	field   = "@" rate / "#" tag *( "," tag ) / anything else, which is ignored
 *
 * There are two readers. statsd_line_quick takes the few shapes that nearly all lines have and does not look at what name and tags
 * consist of; whoever has met the same name and tags before knows. statsd_line_parse takes all lines, checks everything and says what is
 * wrong. Where both accept a line they agree.
 *
 * Pure functions, any thread. Lines need SCAN_SLACK readable bytes behind them (scan.h).
 */
#include "daemon/statsd/amount.h"
#include "daemon/statsd/reason.h"
#include "daemon/statsd/scan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATSD_MAX_LINE 8192u
#define STATSD_MAX_NAME 255u

/* What tells counters apart. */
struct statsd_key {
	const char *name, *tags;   /* tags as they came, between the first # and the next field */
	size_t name_len, tags_len; /* 0: no tags */
};

struct statsd_line {
	struct statsd_key key;
	struct statsd_amount amount;
	unsigned n_unknown; /* fields that were ignored */
};

/* Leaves out blanks, tabs and carriage returns at both ends. */
void statsd_line_trim(const char **line, size_t *len);

/*
 * A line that is trimmed and not empty. If it has several fields of tags, they are joined in `scratch`, of STATSD_MAX_LINE + SCAN_SLACK
 * bytes, to which *ret_line then points.
 */
enum statsd_reason statsd_line_parse(const char *line, size_t len, char *scratch,
				     struct statsd_line *ret_line);

/* What may follow the type for the quick reader: [|@RATE] [|#TAGS], up to a newline or `end`. Returns that, or NULL. */
const char *statsd_line_quick_fields(const char *at, const char *end, struct statsd_line *line);

/* The first colon, if a name may end there; else NULL. */
static inline const char *statsd_line_colon(const char *at, const char *end)
{
	uint64_t hits = scan_hits(at, ':');
	const char *colon = at + (hits != 0 ? (unsigned)__builtin_ctzll(hits) : SCAN_BLOCK);

	if (__builtin_expect(hits == 0, 0) && colon < end) {
		colon = scan_for(colon, end - at > STATSD_MAX_NAME ? at + STATSD_MAX_NAME + 1 : end,
				 ':', ':');
	}
	return colon < end && colon - at <= STATSD_MAX_NAME ? colon : NULL;
}

/*
 * NAME:DIGITS|c, perhaps with one |@RATE and one |#TAGS in this order, up to a newline or `end`. Returns what is behind it; name and tags
 * are any bytes but those that end them, and the name may even have newlines: a line without a colon is taken for the beginning of the
 * next one. NULL: another shape, and *ret_line is anything.
 */
static inline const char *statsd_line_quick(const char *at, const char *end,
					    struct statsd_line *ret_line)
{
	const char *colon = statsd_line_colon(at, end), *next;
	uint64_t whole = 0;
	unsigned n = 1;

	if (colon == NULL) {
		return NULL;
	}
	/* Perhaps beyond the end, which is told below. The next line's address does not wait for what the digits are. */
	for (; n <= 18 && (unsigned char)(colon[n] - '0') < 10; n++) {
		whole = whole * 10 + (uint64_t)(colon[n] - '0');
	}
	if (n == 1 || colon[n] != '|' || colon[n + 1] != 'c') {
		return NULL;
	}
	next = colon + n + 2;
	ret_line->key = (struct statsd_key){ .name = at, .name_len = (size_t)(colon - at) };
	ret_line->amount = (struct statsd_amount){ .whole = (int64_t)whole };
	ret_line->n_unknown = 0;
	if (__builtin_expect(next < end && *next != '\n', 0)) {
		next = statsd_line_quick_fields(next, end, ret_line);
		return next == NULL || next == end ? next : next + 1;
	}
	return next < end ? next + 1 : next == end ? next : NULL;
}
