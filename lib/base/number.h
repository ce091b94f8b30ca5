#pragma once
/*
 * number: exact decimal numbers from text.
 *
 * The whole text must be the number: no blanks, no leading '+', no suffix, no hexadecimal, at least one digit. Leading zeros are
 * accepted and mean nothing. Nothing wraps and nothing saturates.
 *
 * Thread safety: any thread, no state.
 */
#include <stddef.h>
#include <stdint.h>

enum number_error {
	NUMBER_OK = 0,
	NUMBER_E_EMPTY, /* no text at all, or a sign alone */
	NUMBER_E_DIGIT, /* something that is not a digit */
	NUMBER_E_RANGE, /* below the minimum or above the maximum */
};

/* A '-' is NUMBER_E_DIGIT. *ret_value is in min .. max. */
enum number_error number_parse_unsigned(const char *text, size_t len, uint64_t min, uint64_t max,
					uint64_t *ret_value);
enum number_error number_parse_signed(const char *text, size_t len, int64_t min, int64_t max,
				      int64_t *ret_value);

/* What was wrong, to stand after the offending text and a colon: "is not a whole number". */
const char *number_error_text(enum number_error error);
