#pragma once
/*
 * window: which stretch of time a count belongs to.
 *
 * Windows of one kind follow each other without gaps and are numbered: the number of the window that holds a moment is a
 * whole number that grows with it, for any moment that nanoseconds since the epoch can say (1677 to 2262), negative ones included.
 *
 *	WINDOW_NONE	one window, for ever: number 0
 *	WINDOW_PER	`duration_ns` long; number 0 begins at the epoch (1970-01-01 00:00 UTC)
 *	WINDOW_CALENDAR	UTC days, weeks (Monday to Sunday) or months
 *	WINDOW_RATE	no window at all: a bucket that drains steadily (lib/quota/rate.h); number 0
 *
 * UTC has no leap seconds here, as in Unix time. Civil dates by Howard Hinnant's algorithms ("chrono-compatible low-level
 * date algorithms").
 *
 * Thread safety: pure functions.
 */
#include <stdbool.h>
#include <stdint.h>

enum window_kind {
	WINDOW_NONE,
	WINDOW_PER,
	WINDOW_CALENDAR,
	WINDOW_RATE,
};

enum window_unit {
	WINDOW_DAY,
	WINDOW_WEEK,
	WINDOW_MONTH,
};

/* 1 s .. 31 d. */
#define WINDOW_MIN_NS INT64_C(1000000000)
#define WINDOW_MAX_NS (31 * 86400 * INT64_C(1000000000))

struct window {
	enum window_kind kind;
	enum window_unit unit; /* CALENDAR */
	int64_t duration_ns;   /* PER: WINDOW_MIN_NS .. WINDOW_MAX_NS */
};

/*
 * A moment, by both clocks; read together, within QUOTA_SLACK_NS of each other. The wall clock may step either way at any
 * time; the monotonic one is never negative, and of two readings by different threads either may arrive first.
 */
struct quota_time {
	int64_t wall_ns; /* since the epoch: for windows */
	int64_t mono_ns; /* CLOCK_MONOTONIC: for rates, and to tell a late arrival from a clock that was set back */
};

/* The same plane? What does not matter for the kind is not compared. */
bool window_equal(const struct window *a, const struct window *b);

/*
 * Does each window of this kind lie in one of the other, so that nothing is counted in it that the other does not count? PER and CALENDAR
 * only.
 */
bool window_within(const struct window *window, const struct window *other);

/* A window that can be: a known kind and unit, a duration in range. */
bool window_valid(const struct window *window);

int64_t window_number(const struct window *window, int64_t wall_ns);

/* The first moment of a window and the first after it; at the ends of int64 where they lie beyond. */
int64_t window_start(const struct window *window, int64_t number);
int64_t window_end(const struct window *window, int64_t number);

/*
 * How many low bits of the number tell windows apart for at least 68 years (2^31 s), and how much can be counted in the rest
 * of a 64-bit word: 33 bits for windows of a second, 44 for an hour, 49 for a day, 54 for a month. PER and CALENDAR only.
 */
unsigned window_bits(const struct window *window);
/*
 * The largest count of a plane with this window that can be told: all ones are kept for "more than that". INT64_MAX without a window.
 */
int64_t window_count_max(const struct window *window);
