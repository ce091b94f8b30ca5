#include "clients/cli/amount.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit suffixes[] = {
	{ "", 1 },
	{ "k", 1000 },
	{ "M", 1000 * 1000 },
	{ "G", INT64_C(1000) * 1000 * 1000 },
	{ "T", INT64_C(1000) * 1000 * 1000 * 1000 },
	{ "Ki", INT64_C(1) << 10 },
	{ "Mi", INT64_C(1) << 20 },
	{ "Gi", INT64_C(1) << 30 },
	{ "Ti", INT64_C(1) << 40 },
};

/* Longest last, as amount_format_duration wants them. */
static const struct unit durations[] = {
	{ "ms", 1 },
	{ "s", 1000 },
	{ "m", 60 * 1000 },
	{ "h", 60 * 60 * 1000 },
	{ "d", 24 * 60 * 60 * 1000 },
};

#define N_ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits, taken as negative numbers so that INT64_MIN is one. The end of them in *ret_end, as far as they go. */
static enum amount_error parse_digits(const char *text, const char **ret_end, int64_t *ret_negative)
{
	int64_t value = 0;
	bool fits = true;
	const char *p = text;

	for (; is_digit(*p); p++) {
		fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
		       !__builtin_sub_overflow(value, *p - '0', &value);
	}
	*ret_end = p;
	if (p == text) {
		return AMOUNT_E_SYNTAX;
	}
	if (!fits) {
		return AMOUNT_E_RANGE;
	}
	*ret_negative = value;
	return AMOUNT_OK;
}

static const struct unit *find_unit(const struct unit *units, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(units[i].name, name) == 0) {
			return &units[i];
		}
	}
	return NULL;
}

static enum amount_error parse(const char *text, const struct unit *units, size_t n,
			       int64_t *ret_number)
{
	const char *end = NULL;
	const struct unit *unit = NULL;
	int64_t value = 0;
	bool negative = *text == '-';
	enum amount_error error = AMOUNT_OK;

	if (*text == '\0') {
		return AMOUNT_E_EMPTY;
	}
	if (*text == '-' || *text == '+') {
		text++;
	}
	error = parse_digits(text, &end, &value);
	if (error == AMOUNT_E_SYNTAX) {
		return error;
	}
	if (*end == '.' || *end == ',' || ((*end == 'e' || *end == 'E') && end[1] != '\0')) {
		return AMOUNT_E_FRACTION;
	}
	unit = find_unit(units, n, end);
	if (unit == NULL) {
		return AMOUNT_E_SUFFIX;
	}
	if (error != AMOUNT_OK || __builtin_mul_overflow(value, unit->factor, &value) ||
	    (!negative && __builtin_sub_overflow(0, value, &value))) {
		return AMOUNT_E_RANGE;
	}
	*ret_number = value;
	return AMOUNT_OK;
}

enum amount_error amount_parse(const char *text, int64_t *ret_number)
{
	return parse(text, suffixes, N_ELEMENTS(suffixes), ret_number);
}

enum amount_error amount_parse_duration(const char *text, int64_t *ret_ms)
{
	if (strcmp(text, "never") == 0 || strcmp(text, "0") == 0) {
		*ret_ms = 0;
		return AMOUNT_OK;
	}
	if (*text == '-' || *text == '+') {
		return AMOUNT_E_SYNTAX;
	}
	return parse(text, durations, N_ELEMENTS(durations), ret_ms);
}

const char *amount_error_text(enum amount_error error)
{
	switch (error) {
	case AMOUNT_E_EMPTY:
		return "a number is missing; give one like 12, -3, 4k or 2Mi";
	case AMOUNT_E_SYNTAX:
		return "not a number; give one like 12, -3, 4k or 2Mi";
	case AMOUNT_E_FRACTION:
		return "not a whole number; give one like 12, -3, 4k or 2Mi";
	case AMOUNT_E_SUFFIX:
		return "not a number's suffix; k M G T and Ki Mi Gi Ti are";
	case AMOUNT_E_RANGE:
		return "beyond 64 bits; -9223372036854775808 .. 9223372036854775807 is the range";
	case AMOUNT_OK:
	default:
		return "fine";
	}
}

const char *amount_duration_error_text(enum amount_error error)
{
	switch (error) {
	case AMOUNT_E_FRACTION:
		return "not a whole number; give a duration like 500ms, 10s, 5m, 2h or 7d";
	case AMOUNT_E_SUFFIX:
		return "not a duration's unit; ms s m h d are, as in 500ms or 10s";
	case AMOUNT_E_RANGE:
		return "too long";
	case AMOUNT_E_EMPTY:
	case AMOUNT_E_SYNTAX:
		return "not a duration; give one like 500ms, 10s, 5m, 2h or 7d";
	case AMOUNT_OK:
	default:
		return "fine";
	}
}

char *amount_format_duration(uint64_t ms, char *buffer)
{
	size_t used = 0;

	if (ms == 0) {
		memcpy(buffer, "never", sizeof("never"));
		return buffer;
	}
	for (size_t i = N_ELEMENTS(durations); i-- > 0;) {
		uint64_t factor = (uint64_t)durations[i].factor;

		if (ms >= factor) {
			/* At most 12 digits of days and 2 or 3 of each other unit: it fits. */
			used += (size_t)snprintf(buffer + used, AMOUNT_DURATION_BYTES - used,
						 "%s%" PRIu64 "%s", used > 0 ? " " : "",
						 ms / factor, durations[i].name);
			ms %= factor;
		}
	}
	return buffer;
}
