#pragma once
/*
 * amount: N as people write it on a command line or in a line of input: "12", "-3", "+5k", "2Mi". Exact int64.
 *
 * Suffixes: k M G T (powers of 1000), Ki Mi Gi Ti (powers of 1024). Durations: digits and a unit, "500ms" "10s" "5m" "2h" "7d".
 */
#include <stdint.h>

enum amount_error {
	AMOUNT_OK = 0,
	AMOUNT_E_EMPTY,
	AMOUNT_E_SYNTAX,   /* does not begin like a number */
	AMOUNT_E_FRACTION, /* has a decimal point or an exponent */
	AMOUNT_E_SUFFIX,   /* digits, then what is no suffix */
	AMOUNT_E_RANGE,	   /* beyond int64, or of a duration: beyond int64 milliseconds */
};

/* All of `text`, or an error; *ret_number is untouched then. */
enum amount_error amount_parse(const char *text, int64_t *ret_number);

/* In milliseconds, not negative. "0" needs no unit; "never" is 0. */
enum amount_error amount_parse_duration(const char *text, int64_t *ret_ms);

/* What is wrong and what would be right, to follow "'12x': ". */
const char *amount_error_text(enum amount_error error);
const char *amount_duration_error_text(enum amount_error error);

/* "1h 30m", "never" for 0: exact, to be read by people. `buffer` has AMOUNT_DURATION_BYTES. Returns buffer. */
#define AMOUNT_DURATION_BYTES 64
char *amount_format_duration(uint64_t ms, char *buffer);
