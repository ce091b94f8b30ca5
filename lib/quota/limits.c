#include "lib/quota/limits.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib/quota/rate.h"

#define NS_PER_S INT64_C(1000000000)

static const char *say(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static const char *say(char *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, QUOTA_LIMITS_TEXT, format, args);
	va_end(args);
	return text;
}

/* 0 .. QUOTA_MAX_LIMIT, or QUOTA_NONE where that may be. */
static const char *check_amount(const char *name, int64_t value, bool may_be_none, char *text)
{
	if (value < 0) {
		return say(text, "%s is %" PRId64 ", which is below 0", name, value);
	}
	if (value > QUOTA_MAX_LIMIT && !(may_be_none && value == QUOTA_NONE)) {
		return say(text, "%s is %" PRId64 "; the largest is %" PRId64, name, value,
			   QUOTA_MAX_LIMIT);
	}
	return NULL;
}

static const char *check_window(const struct window *window, char *text)
{
	if (window_valid(window)) {
		return NULL;
	}
	if (window->kind == WINDOW_PER) {
		return say(text, "a window of %" PRId64 " ns; from 1 s to 31 d can be had",
			   window->duration_ns);
	}
	return say(text, "an unknown kind of window");
}

static const char *check_rate(const struct quota_limits *limits, char *text)
{
	struct rate made;

	if (limits->max != QUOTA_NONE || limits->high != QUOTA_NONE || limits->low != 0 ||
	    limits->min != 0) {
		return say(text, "a rate goes with a burst, not with max, high, low or min");
	}
	if (limits->rate < 1) {
		return say(text, "the rate is %" PRId64 "; it must be at least 1", limits->rate);
	}
	if (limits->per_ns < 1 || limits->per_ns > WINDOW_MAX_NS) {
		return say(text, "a rate per %" PRId64 " ns; at most 31 d can be had",
			   limits->per_ns);
	}
	if ((__int128)limits->rate * NS_PER_S > (__int128)limits->per_ns * RATE_MAX_PER_SECOND) {
		return say(text, "the rate is more than %" PRId64 " a second", RATE_MAX_PER_SECOND);
	}
	if (limits->burst < 1) {
		return say(text, "burst is %" PRId64 "; it must be at least 1", limits->burst);
	}
	if (!rate_make(limits->rate, limits->per_ns, limits->burst, &made)) {
		return say(text, "burst is %" PRId64 "; the largest with this rate is %" PRId64,
			   limits->burst, rate_max_burst(limits->rate, limits->per_ns));
	}
	return NULL;
}

static const char *check_counts(const struct window *window, const struct quota_limits *limits,
				char *text)
{
	int64_t most = window_count_max(window);

	if (limits->low != 0 || limits->min != 0) {
		return say(text, "%s protects what is held, which is not known in a window",
			   limits->min != 0 ? "min" : "low");
	}
	if (limits->max != QUOTA_NONE && limits->max > most) {
		return say(text,
			   "max is %" PRId64
			   "; the most that is counted in such a window is %" PRId64,
			   limits->max, most);
	}
	if (limits->high != QUOTA_NONE && limits->high > most) {
		return say(text,
			   "high is %" PRId64
			   "; the most that is counted in such a window is %" PRId64,
			   limits->high, most);
	}
	return NULL;
}

const char *quota_limits_check(const struct window *window, const struct quota_limits *limits,
			       char *text)
{
	const char *wrong = check_window(window, text);

	if (wrong != NULL) {
		return wrong;
	}
	if (window->kind == WINDOW_RATE) {
		return check_rate(limits, text);
	}
	if (limits->rate != 0 || limits->per_ns != 0 || limits->burst != 0) {
		return say(text, "rate and burst go with no window but their own");
	}
	if ((wrong = check_amount("max", limits->max, true, text)) != NULL ||
	    (wrong = check_amount("high", limits->high, true, text)) != NULL ||
	    (wrong = check_amount("low", limits->low, false, text)) != NULL ||
	    (wrong = check_amount("min", limits->min, false, text)) != NULL) {
		return wrong;
	}
	if (window->kind == WINDOW_NONE) {
		return limits->min <= limits->max
			       ? NULL
			       : say(text, "min is %" PRId64 ", more than max, %" PRId64,
				     limits->min, limits->max);
	}
	return check_counts(window, limits, text);
}

bool quota_limits_equal(const struct quota_limits *a, const struct quota_limits *b)
{
	return a->max == b->max && a->high == b->high && a->low == b->low && a->min == b->min &&
	       a->shadow == b->shadow && a->rate == b->rate && a->per_ns == b->per_ns &&
	       a->burst == b->burst;
}
