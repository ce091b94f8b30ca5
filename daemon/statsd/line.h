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

#include <stdbool.h>
#include <stddef.h>

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

/*
 * NAME:DIGITS|c, perhaps with one |@RATE and one |#TAGS in this order, up to a newline or `end`. True: *at is behind it, and name and tags
 * are any bytes but those that end them. False: nothing was moved.
 */
bool statsd_line_quick(const char **at, const char *end, struct statsd_line *ret_line);
