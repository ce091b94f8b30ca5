#include "lib/base/duration.h"

#include "lib/base/number.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Largest first: duration_format takes the first that divides. */
static const struct unit {
	const char *name;
	int64_t ns;
} units[] = {
	{ "d", DURATION_D },   { "h", DURATION_H },   { "m", DURATION_M },   { "s", DURATION_S },
	{ "ms", DURATION_MS }, { "us", DURATION_US }, { "ns", DURATION_NS },
};
#define N_UNITS (sizeof(units) / sizeof(units[0]))

static const struct unit *unit_find(const char *name, size_t len)
{
	for (size_t i = 0; i < N_UNITS; i++) {
		if (strlen(units[i].name) == len && memcmp(units[i].name, name, len) == 0) {
			return &units[i];
		}
	}
	return NULL;
}

enum duration_error duration_parse(const char *text, size_t len, int64_t *ret_ns)
{
	const struct unit *unit;
	size_t digits = 0;
	int64_t number = 0, ns = 0;
	enum number_error error;

	while (digits < len && text[digits] >= '0' && text[digits] <= '9') {
		digits++;
	}
	if (digits == 0) {
		return DURATION_E_NUMBER;
	}
	error = number_parse_signed(text, digits, 0, INT64_MAX, &number);
	if (digits == len && error == NUMBER_OK && number == 0) {
		*ret_ns = 0;
		return DURATION_OK;
	}
	unit = unit_find(text + digits, len - digits);
	if (unit == NULL) {
		return DURATION_E_UNIT;
	}
	if (error != NUMBER_OK || __builtin_mul_overflow(number, unit->ns, &ns)) {
		return DURATION_E_RANGE;
	}
	*ret_ns = ns;
	return DURATION_OK;
}

const char *duration_error_text(enum duration_error error)
{
	switch (error) {
	case DURATION_OK:
		return "is a duration";
	case DURATION_E_NUMBER:
		return "is not a duration: a whole number and a unit are expected, such as 200ms, 1s, 5m, 1h or 7d";
	case DURATION_E_UNIT:
		return "needs one unit after its whole number: ns, us, ms, s, m, h or d";
	case DURATION_E_RANGE:
		return "is too long a duration, the most is 106751d";
	}
	return "is not understood";
}

const char *duration_format(int64_t ns, char *text)
{
	assert(ns >= 0);

	if (ns == 0) {
		(void)snprintf(text, DURATION_MAX_TEXT, "0");
		return text;
	}
	for (size_t i = 0; i < N_UNITS; i++) {
		if (ns % units[i].ns == 0) {
			(void)snprintf(text, DURATION_MAX_TEXT, "%" PRId64 "%s", ns / units[i].ns,
				       units[i].name);
			break;
		}
	}
	return text;
}
