#pragma once
/*
 * duration: lengths of time as text, "200ms" or "7d", to and from nanoseconds.
 *
 * A duration is a whole decimal number and one unit without a blank between them; "0" needs no unit. Units: ns, us, ms, s, m
 * (60 s), h (60 m), d (24 h). It is never negative and at most INT64_MAX ns (292 years).
 *
 * Thread safety: any thread, no state.
 */
#include <stddef.h>
#include <stdint.h>

#define DURATION_NS INT64_C(1)
#define DURATION_US INT64_C(1000)
#define DURATION_MS INT64_C(1000000)
#define DURATION_S INT64_C(1000000000)
#define DURATION_M (60 * DURATION_S)
#define DURATION_H (60 * DURATION_M)
#define DURATION_D (24 * DURATION_H)

#define DURATION_MAX_TEXT 24u /* what duration_format needs at most, terminator included */

enum duration_error {
	DURATION_OK = 0,
	DURATION_E_NUMBER, /* does not begin with a digit: empty, a sign, a blank, a word */
	DURATION_E_UNIT, /* no unit, or none of ours; fractions and sums such as "1h30m" end here too */
	DURATION_E_RANGE, /* more than INT64_MAX nanoseconds */
};

enum duration_error duration_parse(const char *text, size_t len, int64_t *ret_ns);

/* What was wrong, to stand after the offending text and a colon. */
const char *duration_error_text(enum duration_error error);

/*
 * The shortest text that duration_parse reads back as the same: in the largest unit that divides it, "0" for 0. ns >= 0. Writes to
 * text[DURATION_MAX_TEXT], terminated, and returns text.
 */
const char *duration_format(int64_t ns, char *text);
