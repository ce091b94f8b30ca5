#pragma once
/*
 * limits: what is set for one node of a plane.
 *
 * Thread safety: pure functions.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/quota/window.h"

#define QUOTA_NONE INT64_MAX /* no max, no high */

/* Whatever is set or charged: amounts that can be written down stay clear of the ends of int64. */
#define QUOTA_MAX_LIMIT (INT64_C(1) << 62)

struct quota_limits {
	int64_t max; /* 0 .. QUOTA_MAX_LIMIT, or QUOTA_NONE: charges that would pass it are refused. 0 refuses all */
	int64_t high; /* 0 .. QUOTA_MAX_LIMIT, or QUOTA_NONE: charges that pass it are granted, and told so */
	int64_t low; /* 0 .. QUOTA_MAX_LIMIT: protected as far as possible; 0: not */
	int64_t min; /* 0 .. QUOTA_MAX_LIMIT: protected; 0: not. low and min: planes without a window only */
	bool shadow; /* max decides and counts its refusals, but refuses nothing */

	/* WINDOW_RATE instead of all but shadow: `rate` per `per_ns` and at most `burst` at once. 0 in the other planes. */
	int64_t rate;	/* 1 ..; at most RATE_MAX_PER_SECOND (lib/quota/rate.h) */
	int64_t per_ns; /* 1 .. WINDOW_MAX_NS */
	int64_t burst;	/* 1 .. rate_max_burst */
};

/* Nothing is limited: to start from in any plane. */
#define QUOTA_LIMITS_INIT                             \
	{                                             \
		.max = QUOTA_NONE, .high = QUOTA_NONE \
	}

#define QUOTA_LIMITS_TEXT 160u

/*
 * NULL if these limits make sense in a plane with this window (which is checked first); else what is wrong, with the number that is
 * wrong and what would be right, to stand after a colon. The text is in text[QUOTA_LIMITS_TEXT] and returned. What is legal but not wise
 * (a child's max above its parent's) is for the caller, who sees the tree, to tell.
 */
const char *quota_limits_check(const struct window *window, const struct quota_limits *limits,
			       char *text);

/* Are they the same in every field? */
bool quota_limits_equal(const struct quota_limits *a, const struct quota_limits *b);
