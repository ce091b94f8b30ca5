#include "daemon/statsd/amount.h"

#define MAX_DIGITS 19u /* any so many fit 64 bits */
#define FAR_EXPONENT \
	100000 /* further than any number of interest; and far from what an int can't hold */

typedef unsigned __int128 uint128;

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Takes one digit in, or its place alone if there are enough. */
static void take_digit(struct statsd_decimal *decimal, unsigned *n_kept, char c, bool in_fraction)
{
	bool keep = *n_kept < MAX_DIGITS;

	if (keep) {
		decimal->digits = decimal->digits * 10 + (uint64_t)(c - '0');
		*n_kept += decimal->digits > 0; /* leading zeros take no room */
	}
	decimal->exponent += keep ? -(int)in_fraction : (int)!in_fraction;
}

static bool parse_exponent(const char *at, const char *end, int *ret_exponent)
{
	bool negative = at < end && *at == '-';
	int exponent = 0;

	if (at < end && (*at == '-' || *at == '+')) {
		at++;
	}
	if (at == end) {
		return false;
	}
	for (; at < end; at++) {
		if (!is_digit(*at)) {
			return false;
		}
		exponent = exponent < FAR_EXPONENT ? exponent * 10 + (*at - '0') : exponent;
	}
	*ret_exponent = negative ? -exponent : exponent;
	return true;
}

bool statsd_decimal_parse(const char *text, size_t len, struct statsd_decimal *ret_decimal)
{
	const char *at = text, *end = text + len;
	struct statsd_decimal decimal = { .negative = len > 0 && text[0] == '-' };
	unsigned n_kept = 0;
	bool any = false;
	int exponent = 0;

	if (len > 0 && (text[0] == '-' || text[0] == '+')) {
		at++;
	}
	for (; at < end && is_digit(*at); at++, any = true) {
		take_digit(&decimal, &n_kept, *at, /* in_fraction= */ false);
	}
	if (at < end && *at == '.') {
		for (at++; at < end && is_digit(*at); at++, any = true) {
			take_digit(&decimal, &n_kept, *at, /* in_fraction= */ true);
		}
	}
	if (!any || (at < end && *at != 'e' && *at != 'E') ||
	    (at < end && !parse_exponent(at + 1, end, &exponent))) {
		return false;
	}
	decimal.exponent += exponent;
	*ret_decimal = decimal;
	return true;
}

/* *n *= 10^power; false: beyond 128 bits. */
static bool scale(uint128 *n, int power)
{
	for (; power > 0; power--) {
		if (__builtin_mul_overflow(*n, (uint128)10, n)) {
			return false;
		}
	}
	return true;
}

bool statsd_decimal_is_rate(const struct statsd_decimal *decimal)
{
	uint128 one = 1, least = 1000000;

	if (decimal->negative || decimal->digits == 0 || decimal->exponent > 0 ||
	    !scale(&one, -decimal->exponent)) {
		return false; /* what can't be scaled is below 10^19 / 2^128 */
	}
	return decimal->digits <= one && decimal->digits * least >= one;
}

/* The floor of n / d, and the rest in 2^-64, rounded up or down. One of n and d at least is below 2^64. */
static uint128 divide(uint128 n, uint128 d, bool up, uint64_t *ret_fraction)
{
	uint128 whole = n / d, rest = n % d;
	/* Below 2^64 either way: less than d if that is, else n itself. */
	uint128 scaled = rest << 64, fraction = scaled / d + (up && scaled % d != 0);

	*ret_fraction = (uint64_t)fraction;
	return whole + (fraction >> 64);
}

bool statsd_amount_of(const struct statsd_decimal *value, const struct statsd_decimal *rate,
		      struct statsd_amount *ret_amount)
{
	uint128 n = value->digits, d = rate != NULL ? rate->digits : 1, whole;
	int power = value->exponent - (rate != NULL ? rate->exponent : 0);
	uint64_t fraction = 0;

	if (n == 0 || (power < 0 && !scale(&d, -power))) {
		/* Nothing; or below 2^-64, and rounded like all else. */
		*ret_amount = (struct statsd_amount){ .fraction = n > 0 && !value->negative };
		return true;
	}
	if (power > 0 && !scale(&n, power)) {
		return false; /* 2^128 over less than 2^64 */
	}
	whole = divide(n, d, !value->negative, &fraction);
	if (whole > INT64_MAX) {
		return false;
	}
	*ret_amount = (struct statsd_amount){ (int64_t)whole, fraction };
	if (value->negative) {
		ret_amount->whole = -ret_amount->whole - (fraction != 0);
		ret_amount->fraction = -fraction;
	}
	return true;
}

bool statsd_amount_add(struct statsd_amount *sum, struct statsd_amount amount)
{
	uint64_t fraction;
	int64_t carry = __builtin_add_overflow(sum->fraction, amount.fraction, &fraction), whole;

	if (__builtin_add_overflow(sum->whole, amount.whole, &whole) ||
	    __builtin_add_overflow(whole, carry, &whole)) {
		return false;
	}
	*sum = (struct statsd_amount){ whole, fraction };
	return true;
}
