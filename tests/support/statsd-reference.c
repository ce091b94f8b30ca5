#include "tests/support/statsd-reference.h"

#include <string.h>

#define MAX_PARTS 8300u

struct part {
	const char *at;
	size_t len;
};

/* text cut at each `separator`: one part more than there are of those. */
static size_t cut(struct part text, char separator, struct part parts[MAX_PARTS])
{
	size_t n = 0, start = 0;

	for (size_t i = 0; i <= text.len; i++) {
		if (i == text.len || text.at[i] == separator) {
			parts[n++] = (struct part){ text.at + start, i - start };
			start = i + 1;
		}
	}
	return n;
}

static bool is(struct part part, const char *word)
{
	return part.len == strlen(word) && memcmp(part.at, word, part.len) == 0;
}

static bool has(struct part part, char c)
{
	for (size_t i = 0; i < part.len; i++) {
		if (part.at[i] == c) {
			return true;
		}
	}
	return false;
}

/* ---- characters ---- */

/* Guesses the code point from each length there may be, encodes it and compares. 0: none does. */
static size_t decode(const unsigned char *bytes, size_t left, uint32_t *ret_character)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	static const unsigned char leads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	if (bytes[0] < 0x80) {
		*ret_character = bytes[0];
		return 1;
	}
	for (size_t len = 2; len <= 4 && len <= left; len++) {
		uint32_t character = bytes[0] % (128u >> len);
		bool good = (bytes[0] - bytes[0] % (128u >> len)) == leads[len];

		for (size_t i = 1; i < len; i++) {
			good = good && bytes[i] / 64 == 2;
			character = character * 64 + bytes[i] % 64;
		}
		if (good && character >= least[len] && character <= 0x10ffff &&
		    (character < 0xd800 || character > 0xdfff)) {
			*ret_character = character;
			return len;
		}
	}
	return 0;
}

static enum statsd_reason judge_bytes(struct part line)
{
	const unsigned char *bytes = (const unsigned char *)line.at;
	bool control = false;

	if (line.len > 8192) {
		return STATSD_line_too_long;
	}
	for (size_t i = 0; i < line.len; i++) {
		if (bytes[i] < 32 || bytes[i] == 127) {
			return STATSD_control_char;
		}
	}
	for (size_t i = 0; i < line.len;) {
		uint32_t character = 0;
		size_t n = decode(bytes + i, line.len - i, &character);

		if (n == 0) {
			return STATSD_bad_utf8;
		}
		control = control || (character >= 128 && character < 160);
		i += n;
	}
	return control ? STATSD_control_char : STATSD_OK;
}

static enum statsd_reason judge_name(struct part name)
{
	static const char forbidden[] = " ,;#=()[]{}\"'\\@$%!*|:";
	struct part text = name;

	if (name.len == 0) {
		return STATSD_empty_name;
	}
	if (name.len > 255) {
		return STATSD_name_too_long;
	}
	for (size_t i = 0; i < sizeof(forbidden) - 1; i++) {
		if (has(name, forbidden[i])) {
			return STATSD_name_charset;
		}
	}
	for (size_t start = 0, i = 0; i <= text.len; i++) {
		if (i == text.len || text.at[i] == '.' || text.at[i] == '/') {
			if (i == start) {
				return STATSD_empty_path_segment;
			}
			start = i + 1;
		}
	}
	return STATSD_OK;
}

static enum statsd_reason judge_type(struct part type)
{
	struct part base = type;

	for (base.len = 0; base.len < type.len && type.at[base.len] != ':';) {
		base.len++;
	}
	if (is(base, "g") || is(base, "ms") || is(base, "h") || is(base, "s") || is(base, "d") ||
	    is(base, "C")) {
		return STATSD_unsupported_type;
	}
	if (!is(base, "c")) {
		return STATSD_bad_type;
	}
	return has(type, ':') ? STATSD_legacy_multisample : STATSD_OK;
}

/* ---- numbers ---- */

#define LIMBS 2100u /* a line full of digits, and MAX_POWER tens */
#define MAX_POWER 9000

/* A natural number, the lowest 32 bits first; the highest of n limbs is not 0. */
struct big {
	size_t n;
	uint32_t limbs[LIMBS];
};

static void big_take(struct big *big, uint32_t factor, uint32_t summand)
{
	uint64_t carry = summand;

	for (size_t i = 0; i < big->n; i++) {
		carry += (uint64_t)big->limbs[i] * factor;
		big->limbs[i] = (uint32_t)carry;
		carry >>= 32;
	}
	if (carry > 0 && big->n < LIMBS) {
		big->limbs[big->n++] = (uint32_t)carry;
	}
}

static void big_copy(struct big *to, const struct big *from)
{
	to->n = from->n;
	memcpy(to->limbs, from->limbs, from->n * sizeof(from->limbs[0]));
}

static int big_compare(const struct big *a, const struct big *b)
{
	if (a->n != b->n) {
		return a->n > b->n ? 1 : -1;
	}
	for (size_t i = a->n; i-- > 0;) {
		if (a->limbs[i] != b->limbs[i]) {
			return a->limbs[i] > b->limbs[i] ? 1 : -1;
		}
	}
	return 0;
}

/* a >= b */
static void big_subtract(struct big *a, const struct big *b)
{
	int64_t borrow = 0;

	for (size_t i = 0; i < a->n; i++) {
		int64_t limb = (int64_t)a->limbs[i] - (i < b->n ? b->limbs[i] : 0) + borrow;

		a->limbs[i] = (uint32_t)limb;
		borrow = limb < 0 ? -1 : 0;
	}
	while (a->n > 0 && a->limbs[a->n - 1] == 0) {
		a->n--;
	}
}

struct number {
	bool negative, zero;
	struct big digits;
	long power;	 /* of ten */
	size_t n_digits; /* without leading zeros */
};

static bool read_digits(struct part *text, struct number *number, long step, bool *any)
{
	while (text->len > 0 && text->at[0] >= '0' && text->at[0] <= '9') {
		big_take(&number->digits, 10, (uint32_t)(text->at[0] - '0'));
		number->n_digits += number->n_digits > 0 || text->at[0] != '0';
		number->power += step;
		*any = true;
		text->at++;
		text->len--;
	}
	return text->len > 0;
}

static bool skip_sign(struct part *text)
{
	bool negative = text->len > 0 && text->at[0] == '-';

	if (text->len > 0 && (text->at[0] == '-' || text->at[0] == '+')) {
		text->at++;
		text->len--;
	}
	return negative;
}

static bool read_number(struct part text, struct number *number)
{
	bool any = false, negative;
	long power = 0;

	number->digits.n = 0;
	number->power = 0;
	number->n_digits = 0;
	number->negative = skip_sign(&text);
	if (read_digits(&text, number, 0, &any) && text.at[0] == '.') {
		text.at++;
		text.len--;
		(void)read_digits(&text, number, -1, &any);
	}
	number->zero = number->digits.n == 0;
	if (!any || text.len == 0) {
		return any;
	}
	if (text.at[0] != 'e' && text.at[0] != 'E') {
		return false;
	}
	text.at++;
	text.len--;
	negative = skip_sign(&text);
	if (text.len == 0) {
		return false;
	}
	for (; text.len > 0; text.at++, text.len--) {
		if (text.at[0] < '0' || text.at[0] > '9') {
			return false;
		}
		power = power > 1000000 ? power : power * 10 + (text.at[0] - '0');
	}
	number->power += negative ? -power : power;
	return true;
}

/* Of 1 <= times <= 10^6: is number * times at least, or at most, 1? */
static int compare_to_one(const struct number *number, uint32_t times)
{
	static struct big left, right;

	big_copy(&left, &number->digits);
	right.n = 1;
	right.limbs[0] = 1;
	if (number->power > MAX_POWER || number->power < -MAX_POWER) {
		return number->power > 0 ? 1 : -1;
	}
	big_take(&left, times, 0);
	for (long i = 0; i < number->power; i++) {
		big_take(&left, 10, 0);
	}
	for (long i = 0; i < -number->power; i++) {
		big_take(&right, 10, 0);
	}
	return big_compare(&left, &right);
}

static bool is_rate(struct part text, struct number *number)
{
	if (text.len == 0 || text.at[0] == '+' || !read_number(text, number)) {
		return false;
	}
	return !number->negative && !number->zero && compare_to_one(number, 1) <= 0 &&
	       compare_to_one(number, 1000000) >= 0;
}

/* n / d in 2^-64, by shifting and subtracting; false: 2^63 or more. */
static bool divide(struct big *n, const struct big *d, bool up, __int128 *ret_quotient)
{
	unsigned __int128 quotient = 0;
	static struct big bound, shifted;

	big_copy(&bound, d);
	for (int i = 0; i < 63; i++) {
		big_take(&bound, 2, 0);
	}
	if (big_compare(n, &bound) >= 0) {
		return false;
	}
	/* n < d * 2^63: the first bit to find is that of 2^62. */
	for (int i = 0; i < 64; i++) {
		big_take(n, 2, 0);
	}
	for (int bit = 126; bit >= 0; bit--) {
		big_copy(&shifted, d);
		for (int i = 0; i < bit; i += 31) {
			big_take(&shifted, 1u << (bit - i < 31 ? bit - i : 31), 0);
		}
		if (big_compare(n, &shifted) >= 0) {
			big_subtract(n, &shifted);
			quotient |= (unsigned __int128)1 << bit;
		}
	}
	*ret_quotient = (__int128)quotient + (up && n->n > 0);
	return true;
}

static bool amount_of(const struct number *value, const struct number *rate, __int128 *ret_amount)
{
	static struct big n, d;
	long power = value->power - (rate != NULL ? rate->power : 0);

	*ret_amount = !value->zero && !value->negative;
	if (value->zero || power < -MAX_POWER) {
		return true;
	}
	if (power > MAX_POWER) {
		return false;
	}
	big_copy(&n, &value->digits);
	d.n = 1;
	d.limbs[0] = 1;
	if (rate != NULL) {
		big_copy(&d, &rate->digits);
	}
	for (long i = 0; i < power; i++) {
		big_take(&n, 10, 0);
	}
	for (long i = 0; i < -power; i++) {
		big_take(&d, 10, 0);
	}
	if (!divide(&n, &d, !value->negative, ret_amount)) {
		return false;
	}
	*ret_amount = value->negative ? -*ret_amount : *ret_amount;
	return true;
}

/* ---- a line ---- */

static void first(struct reference *ret, enum statsd_reason reason)
{
	if (ret->reason == STATSD_OK || reason < ret->reason) {
		ret->reason = reason;
	}
}

static void read_fields(struct part *fields, size_t n, struct number *rate, unsigned *n_rates,
			struct reference *ret)
{
	static struct number number;
	unsigned n_tags = 0;

	for (size_t i = 0; i < n; i++) {
		struct part rest = { fields[i].at + 1, fields[i].len - 1 };

		if (fields[i].len > 0 && fields[i].at[0] == '@') {
			bool good = is_rate(rest, &number);

			if (has(rest, ':')) {
				first(ret, STATSD_legacy_multisample);
			} else if (!good) {
				first(ret, STATSD_bad_rate);
			}
			rate->power = number.power;
			rate->n_digits = number.n_digits;
			big_copy(&rate->digits, &number.digits);
			if (++*n_rates == 2) {
				first(ret, STATSD_dup_rate);
			}
		} else if (fields[i].len > 0 && fields[i].at[0] == '#') {
			if (n_tags++ > 0) {
				ret->tags[ret->tags_len++] = ',';
			}
			memcpy(ret->tags + ret->tags_len, rest.at, rest.len);
			ret->tags_len += rest.len;
		} else {
			ret->n_unknown++;
		}
	}
}

static void read_values(const struct part *values, size_t n, const struct number *rate,
			struct reference *ret)
{
	static struct number number;
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		__int128 amount = 0;
		bool good;

		if (values[i].len == 0) {
			continue;
		}
		any = true;
		if (!read_number(values[i], &number)) {
			first(ret, STATSD_bad_value);
			continue;
		}
		if (ret->reason != STATSD_OK && ret->reason < STATSD_out_of_range) {
			continue;
		}
		ret->rounded = ret->rounded || number.n_digits > 19;
		good = amount_of(&number, rate, &amount);
		if (!good || __builtin_add_overflow(ret->amount, amount, &ret->amount)) {
			first(ret, STATSD_out_of_range);
			ret->amount = 0;
		}
	}
	if (!any) {
		first(ret, STATSD_empty_value);
	}
}

void reference_read(const char *line, size_t len, struct reference *ret)
{
	static struct part fields[MAX_PARTS], values[MAX_PARTS];
	static struct number rate;
	const struct part whole = { line, len };
	unsigned n_rates = 0;
	size_t n_fields, n_values;

	memset(ret, 0, sizeof(*ret));
	ret->reason = judge_bytes(whole);
	if (ret->reason != STATSD_OK) {
		return;
	}
	n_fields = cut(whole, '|', fields);
	n_values = cut(fields[0], ':', values);
	if (n_fields < 2) {
		ret->reason = STATSD_no_type;
	} else if (is(fields[0], "_sc") || (len >= 3 && memcmp(line, "_e{", 3) == 0)) {
		ret->reason = STATSD_unsupported_event;
	} else if (n_values < 2) {
		ret->reason = STATSD_no_value;
	} else {
		ret->reason = judge_name(values[0]);
	}
	if (ret->reason == STATSD_OK) {
		ret->reason = judge_type(fields[1]);
	}
	if (ret->reason != STATSD_OK) {
		return;
	}
	read_fields(fields + 2, n_fields - 2, &rate, &n_rates, ret);
	ret->rounded = n_rates > 0 && rate.n_digits > 19;
	read_values(values + 1, n_values - 1, n_rates > 0 ? &rate : NULL, ret);
	ret->name_len = values[0].len;
}
