#include "lib/expose/family.h"

#include <stdio.h>
#include <string.h>

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool begins(const char *name, size_t len, const char *with)
{
	return len >= strlen(with) && memcmp(name, with, strlen(with)) == 0;
}

static bool ends(const char *name, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len > n && memcmp(name + len - n, with, n) == 0;
}

static bool is_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!is_letter(name[i]) && (i == 0 || !is_digit(name[i]))) {
			return false;
		}
	}
	return true;
}

/* ---- names that need to be written otherwise ---- */

/* A character of valid UTF-8: how many bytes. */
static size_t take_character(const char *at, unsigned *ret_character)
{
	unsigned char first = (unsigned char)at[0];
	size_t n = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	*ret_character = n == 1 ? first : first & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		*ret_character = *ret_character << 6 | ((unsigned char)at[i] & 0x3f);
	}
	return n;
}

/* At most 4 bytes for each: a character of two bytes has at most three digits of it, one of four at most six. */
static size_t escape(const char *name, size_t len, char *text)
{
	size_t n = 3;

	memcpy(text, "U__", n);
	for (size_t i = 0; i < len;) {
		char hex[16];
		unsigned character;
		size_t bytes = take_character(name + i, &character);

		if (name[i] == '_') {
			memcpy(hex, "__", 3);
		} else if (is_letter(name[i]) || (i > 0 && is_digit(name[i]))) {
			hex[0] = name[i];
			hex[1] = '\0';
		} else {
			(void)snprintf(hex, sizeof(hex), "_%x_", character);
		}
		memcpy(text + n, hex, strlen(hex));
		n += strlen(hex);
		i += bytes;
	}
	return n;
}

/* ---- names that may stay ---- */

struct asking {
	family_exists exists;
	void *ctx;
};

static bool there_is(const struct asking *asking, const char *name, size_t len)
{
	return len <= PATH_MAX_SEGMENT && asking->exists(asking->ctx, name, len);
}

/* The name with `tail` behind it is a metric of its own. */
static bool is_taken(const struct asking *asking, const char *name, size_t len, const char *tail)
{
	char other[FAMILY_MAX_NAME];

	memcpy(other, name, len);
	memcpy(other + len, tail, strlen(tail));
	return there_is(asking, other, len + strlen(tail));
}

/*
 * How much of the name is the family's, without a unit; 0: it can't stay. Samples of a family F are called F, F_total and F_created: so
 * whatever ends in one of these is looked at twice.
 */
static size_t keep(const struct family_metric *metric, const struct asking *asking)
{
	const char *name = metric->name;
	size_t len = metric->len;

	if (!is_name(name, len) || begins(name, len, "U__") || begins(name, len, FAMILY_OWN) ||
	    ends(name, len, "_created")) {
		return 0;
	}
	if (!ends(name, len, "_total")) {
		return len;
	}
	len -= strlen("_total");
	if (ends(name, len, "_total") || ends(name, len, "_created") ||
	    there_is(asking, name, len)) {
		return 0;
	}
	return metric->counter ? len : metric->len;
}

/* Where the unit is to be put: the new length; 0: that is another metric's name. */
static size_t put_unit(const char *unit, const struct asking *asking, char *name, size_t len)
{
	size_t grown = len + 1 + strlen(unit);

	name[len] = '_';
	memcpy(name + len + 1, unit, strlen(unit));
	return there_is(asking, name, grown) || is_taken(asking, name, grown, "_total") ? 0 : grown;
}

static bool has_unit(const char *name, size_t len, const char *unit)
{
	size_t n = strlen(unit);

	return len > n + 1 && name[len - n - 1] == '_' && memcmp(name + len - n, unit, n) == 0;
}

size_t family_name(const struct family_metric *metric, family_exists exists, void *ctx, char *name,
		   bool *ret_unit)
{
	const struct asking asking = { .exists = exists, .ctx = ctx };
	size_t len = keep(metric, &asking);

	*ret_unit = false;
	memcpy(name, metric->name, len);
	if (len > 0 && metric->unit[0] != '\0') {
		if (!has_unit(name, len, metric->unit)) {
			len = put_unit(metric->unit, &asking, name, len);
		}
		len = begins(name, len, FAMILY_OWN) ? 0 : len;
		*ret_unit = len > 0;
	}
	return len > 0 ? len : escape(metric->name, metric->len, name);
}
