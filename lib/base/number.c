#include "lib/base/number.h"

enum number_error number_parse_unsigned(const char *text, size_t len, uint64_t min, uint64_t max,
					uint64_t *ret_value)
{
	enum number_error error = NUMBER_OK;
	uint64_t value = 0;

	if (len == 0) {
		return NUMBER_E_EMPTY;
	}
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9') {
			return NUMBER_E_DIGIT;
		}
		/* Reads on after an overflow: "99999999999999999999x" is no number, whatever its size. */
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value)) {
			error = NUMBER_E_RANGE;
		}
	}
	if (error != NUMBER_OK || value < min || value > max) {
		return NUMBER_E_RANGE;
	}
	*ret_value = value;
	return NUMBER_OK;
}

enum number_error number_parse_signed(const char *text, size_t len, int64_t min, int64_t max,
				      int64_t *ret_value)
{
	const uint64_t magnitude_of_min = UINT64_C(1) << 63;
	int negative = len > 0 && text[0] == '-';
	uint64_t magnitude = 0;
	int64_t value;
	enum number_error error =
		number_parse_unsigned(text + negative, len - (size_t)negative, 0,
				      negative ? magnitude_of_min : INT64_MAX, &magnitude);

	if (error != NUMBER_OK) {
		return error;
	}
	if (magnitude == magnitude_of_min) {
		value = INT64_MIN;
	} else {
		value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
	}
	if (value < min || value > max) {
		return NUMBER_E_RANGE;
	}
	*ret_value = value;
	return NUMBER_OK;
}

const char *number_error_text(enum number_error error)
{
	switch (error) {
	case NUMBER_OK:
		return "is a number";
	case NUMBER_E_EMPTY:
		return "is empty, a whole number is expected";
	case NUMBER_E_DIGIT:
		return "is not a whole number";
	case NUMBER_E_RANGE:
		return "is out of range";
	}
	return "is not understood";
}
