#include "daemon/statsd/line.h"

#include <stdint.h>
#include <string.h>

/* ---- bytes ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

void statsd_line_trim(const char **line, size_t *len)
{
	while (*len > 0 && is_blank((*line)[*len - 1])) {
		--*len;
	}
	while (*len > 0 && is_blank(**line)) {
		++*line;
		--*len;
	}
}

/* Bytes that no line may have; of characters beyond ASCII, see check_utf8. */
static bool has_control(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) {
			return true;
		}
	}
	return false;
}

/* How many bytes continue the character that begins with `lead`, and in which bounds the first of them must be (Unicode 15, table 3-7). */
static int continuation(unsigned char lead, unsigned char *ret_least, unsigned char *ret_most)
{
	*ret_least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
	*ret_most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
	return lead < 0x80   ? 0
	       : lead < 0xc2 ? -1
	       : lead < 0xe0 ? 1
	       : lead < 0xf0 ? 2
	       : lead < 0xf5 ? 3
			     : -1;
}

static enum statsd_reason check_utf8(const char *line, size_t len)
{
	const unsigned char *at = (const unsigned char *)line, *end = at + len;
	bool control = false;

	while (at < end) {
		unsigned char lead = *at++, least, most;
		int n = continuation(lead, &least, &most);

		if (n < 0 || end - at < n || (n > 0 && (at[0] < least || at[0] > most))) {
			return STATSD_bad_utf8;
		}
		for (int i = 1; i < n; i++) {
			if ((at[i] & 0xc0) != 0x80) {
				return STATSD_bad_utf8;
			}
		}
		control = control || (lead == 0xc2 && at[0] < 0xa0); /* U+0080 to U+009F */
		at += n;
	}
	return control ? STATSD_control_char : STATSD_OK;
}

static enum statsd_reason check_bytes(const char *line, size_t len)
{
	if (len > STATSD_MAX_LINE) {
		return STATSD_line_too_long;
	}
	return has_control(line, len) ? STATSD_control_char : check_utf8(line, len);
}

/* ---- the name ---- */

static bool begins_with(const char *text, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && memcmp(text, prefix, n) == 0;
}

/* A slash is as good as a dot: both part the segments of the path. */
static bool parts_segments(char c)
{
	return c == '.' || c == '/';
}

static enum statsd_reason check_name(const char *name, size_t len)
{
	bool empty_segment = len > 0 && (parts_segments(name[0]) || parts_segments(name[len - 1]));

	if (len == 0) {
		return STATSD_empty_name;
	}
	if (len > STATSD_MAX_NAME) {
		return STATSD_name_too_long;
	}
	for (size_t i = 0; i < len; i++) {
		if (strchr(" ,;#=()[]{}\"'\\@$%!*|:", name[i]) != NULL) {
			return STATSD_name_charset;
		}
		empty_segment = empty_segment ||
				(i > 0 && parts_segments(name[i]) && parts_segments(name[i - 1]));
	}
	return empty_segment ? STATSD_empty_path_segment : STATSD_OK;
}

/* ---- the type ---- */

/* Up to the colon, if there is one: what follows it is another sample, in a form that is no longer used. */
static enum statsd_reason check_type(const char *type, size_t len)
{
	static const char *const unsupported[] = { "g", "ms", "h", "s", "d", "C" };
	const char *colon = memchr(type, ':', len);
	size_t n = colon != NULL ? (size_t)(colon - type) : len;

	for (size_t i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); i++) {
		if (n == strlen(unsupported[i]) && memcmp(type, unsupported[i], n) == 0) {
			return STATSD_unsupported_type;
		}
	}
	if (n != 1 || type[0] != 'c') {
		return STATSD_bad_type;
	}
	return colon != NULL ? STATSD_legacy_multisample : STATSD_OK;
}

/* ---- fields ---- */

struct fields {
	struct statsd_decimal rate;
	bool has_rate;
	enum statsd_reason fault; /* of those that fields can have, the first in their order */
	unsigned n_tags;
	char *scratch;
};

static void found(struct fields *fields, enum statsd_reason fault)
{
	if (fields->fault == STATSD_OK || fault < fields->fault) {
		fields->fault = fault;
	}
}

static void take_rate(struct fields *fields, const char *rate, size_t len)
{
	if (memchr(rate, ':', len) != NULL) {
		found(fields, STATSD_legacy_multisample);
	} else if (len == 0 || rate[0] == '+' || !statsd_decimal_parse(rate, len, &fields->rate) ||
		   !statsd_decimal_is_rate(&fields->rate)) {
		found(fields, STATSD_bad_rate);
	} else if (fields->has_rate) {
		found(fields, STATSD_dup_rate);
	}
	fields->has_rate = true;
}

/* The first field of tags is left where it is; with a second one, both go to the scratch. */
static void take_tags(struct fields *fields, struct statsd_line *line, const char *tags, size_t len)
{
	if (fields->n_tags++ == 0) {
		line->key.tags = tags;
		line->key.tags_len = len;
		return;
	}
	if (line->key.tags != fields->scratch) {
		memcpy(fields->scratch, line->key.tags, line->key.tags_len);
		line->key.tags = fields->scratch;
	}
	/* The comma takes the room of a "|#". */
	fields->scratch[line->key.tags_len++] = ',';
	memcpy(fields->scratch + line->key.tags_len, tags, len);
	line->key.tags_len += len;
}

/* All that follows the type, if anything does: it begins with a '|'. */
static void take_fields(struct fields *fields, struct statsd_line *line, const char *at,
			const char *end)
{
	while (at < end) {
		const char *field = at + 1;

		at = scan_for(field, end, '|', '|');
		if (field < at && *field == '@') {
			take_rate(fields, field + 1, (size_t)(at - field - 1));
		} else if (field < at && *field == '#') {
			take_tags(fields, line, field + 1, (size_t)(at - field - 1));
		} else {
			line->n_unknown++;
		}
	}
}

/* ---- values ---- */

/* All values, and what they are together. */
static enum statsd_reason take_values(const char *at, const char *end,
				      const struct statsd_decimal *rate,
				      struct statsd_amount *ret_sum)
{
	enum statsd_reason fault = STATSD_OK;
	bool any = false;

	*ret_sum = (struct statsd_amount){ 0 };
	for (;; at++) {
		const char *value = at;
		struct statsd_decimal decimal;
		struct statsd_amount amount;

		at = scan_for(value, end, ':', ':');
		if (at > value && !statsd_decimal_parse(value, (size_t)(at - value), &decimal)) {
			return STATSD_bad_value;
		}
		if (at > value) {
			any = true;
			if (!statsd_amount_of(&decimal, rate, &amount) ||
			    !statsd_amount_add(ret_sum, amount)) {
				fault = STATSD_out_of_range;
			}
		}
		if (at == end) {
			return any ? fault : STATSD_empty_value;
		}
	}
}

/* ---- all of it ---- */

enum statsd_reason statsd_line_parse(const char *line, size_t len, char *scratch,
				     struct statsd_line *ret_line)
{
	const char *end = line + len, *bar, *colon, *type_end;
	struct statsd_line parsed = { .key = { .name = line, .tags = line } };
	struct fields fields = { .scratch = scratch };
	enum statsd_reason fault = check_bytes(line, len), values;

	if (fault != STATSD_OK) {
		return fault;
	}
	bar = memchr(line, '|', len);
	if (bar == NULL) {
		return STATSD_no_type;
	}
	if (begins_with(line, len, "_sc|") || begins_with(line, len, "_e{")) {
		return STATSD_unsupported_event;
	}
	colon = memchr(line, ':', (size_t)(bar - line));
	if (colon == NULL) {
		return STATSD_no_value;
	}
	parsed.key.name_len = (size_t)(colon - line);
	fault = check_name(line, parsed.key.name_len);
	type_end = scan_for(bar + 1, end, '|', '|');
	if (fault == STATSD_OK) {
		fault = check_type(bar + 1, (size_t)(type_end - bar - 1));
	}
	if (fault != STATSD_OK) {
		return fault;
	}
	take_fields(&fields, &parsed, type_end, end);
	if (fields.fault == STATSD_legacy_multisample) {
		return fields.fault;
	}
	/* Of a rate that is none nothing can be divided by; out_of_range comes after it anyway. */
	values = take_values(colon + 1, bar,
			     fields.has_rate && fields.fault == STATSD_OK ? &fields.rate : NULL,
			     &parsed.amount);
	if (values != STATSD_OK && (fields.fault == STATSD_OK || values < fields.fault)) {
		return values;
	}
	if (fields.fault == STATSD_OK) {
		*ret_line = parsed;
	}
	return fields.fault;
}

const char *statsd_line_quick_fields(const char *at, const char *end, struct statsd_line *line)
{
	const char *next;

	if (end - at > 2 && at[0] == '|' && at[1] == '@') {
		struct statsd_decimal value = { .digits = (uint64_t)line->amount.whole }, rate;

		next = scan_for(at + 2, end, '|', '\n');
		if (at[2] == '+' || !statsd_decimal_parse(at + 2, (size_t)(next - at - 2), &rate) ||
		    !statsd_decimal_is_rate(&rate) ||
		    !statsd_amount_of(&value, &rate, &line->amount)) {
			return NULL;
		}
		at = next;
	}
	if (end - at > 2 && at[0] == '|' && at[1] == '#') {
		next = scan_for(at + 2, end, '|', '\n');
		line->key.tags = at + 2;
		line->key.tags_len = (size_t)(next - at - 2);
		at = next;
	}
	/* Only here can a line be too long. */
	return (at == end || *at == '\n') && at - line->key.name <= STATSD_MAX_LINE ? at : NULL;
}
