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

struct statsd_line {
	const char *name;
	const char *tags;	   /* as they came, between the first # and the next field */
	size_t name_len, tags_len; /* 0: no tags */
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

/* What may follow the type for the quick reader: [|@RATE] [|#TAGS], up to a newline or `end`. */
bool statsd_line_quick_fields(const char **at, const char *end, struct statsd_line *line);

/*
 * NAME:DIGITS|c, perhaps with one |@RATE and one |#TAGS in this order, up to a newline or `end`. True: *at is behind it, and name and tags
 * are any bytes but those that end them. False: nothing was moved.
 */
static inline bool statsd_line_quick(const char **at, const char *end, struct statsd_line *ret_line)
{
	const char *name = *at, *most = end - name > (ptrdiff_t)STATSD_MAX_NAME + 1
						? name + STATSD_MAX_NAME + 1
						: end;
	const char *value = scan_for(name, most, ':', '\n') + 1, *type = value;
	int64_t whole = 0;

	if (value > most || value[-1] != ':') {
		return false;
	}
	while (type < end && type - value < 18 && (unsigned char)(*type - '0') < 10) {
		whole = whole * 10 + (*type++ - '0');
	}
	if (type == value || end - type < 2 || type[0] != '|' || type[1] != 'c') {
		return false;
	}
	ret_line->name = name;
	ret_line->name_len = (size_t)(value - 1 - name);
	ret_line->tags = name;
	ret_line->tags_len = 0;
	ret_line->amount = (struct statsd_amount){ whole, 0 };
	ret_line->n_unknown = 0;
	type += 2;
	if (type < end && *type != '\n' && !statsd_line_quick_fields(&type, end, ret_line)) {
		return false;
	}
	*at = type < end ? type + 1 : end;
	return true;
}
