#pragma once
/*
 * statsd_reference: the grammar of docs/statsd.md once more, slowly and plainly: a line is cut up at each separator first, then every
 * rule is looked at for itself, in the order of the reasons. Numbers are divided digit by digit.
 */
#include "daemon/statsd/reason.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reference {
	enum statsd_reason reason;
	/* What follows holds for STATSD_OK. */
	size_t name_len;
	unsigned n_unknown;
	__int128 amount; /* in 2^-64, rounded up */
	bool rounded;	 /* a number has more digits than are kept: the amount may be off by some */
	char tags[16384]; /* all, with commas between, as they came */
	size_t tags_len;
};

/* `line` is trimmed and not empty. */
void reference_read(const char *line, size_t len, struct reference *ret);
