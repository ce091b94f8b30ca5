#pragma once
/*
 * amount: values of lines, divided by sample rates, exactly.
 *
 * A number is read as digits times a power of ten, and a value over a rate is one division of whole numbers; what is left of
 * it is rounded up to 2^-64, so that three thirds are one. 19 digits are kept, which is more than 2^63 has.
 *
 * Pure functions, any thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* digits * 10^exponent */
struct statsd_decimal {
	uint64_t digits;
	int exponent;
	bool negative;
};

/* whole + fraction / 2^64, so that whole is the floor: -0.5 is -1 and 2^63. */
struct statsd_amount {
	int64_t whole;
	uint64_t fraction;
};

/* [sign] digits [. digits] [e [sign] digits], with a digit at one side of the point at least. False: it is not that. */
bool statsd_decimal_parse(const char *text, size_t len, struct statsd_decimal *ret_decimal);

/* May it be a sample rate: a number from 1e-6 to 1 without a sign? */
bool statsd_decimal_is_rate(const struct statsd_decimal *decimal);

/* value / rate; `rate` is one, or NULL for 1. False: it is not in -2^63 < amount < 2^63. */
bool statsd_amount_of(const struct statsd_decimal *value, const struct statsd_decimal *rate,
		      struct statsd_amount *ret_amount);

/* *sum += amount. False: beyond 64 bits, and *sum is as it was. */
bool statsd_amount_add(struct statsd_amount *sum, struct statsd_amount amount);
