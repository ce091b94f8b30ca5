#include "daemon/http/accept.h"

#include <string.h>
#include <strings.h>

#define FULL 1000u /* a quality of 1 */

/* What stands between two commas. */
struct range {
	const char *name;
	size_t len;
	unsigned quality; /* in thousandths */
	const char *version;
	size_t version_len; /* 0: none */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && strncasecmp(text, word, len) == 0;
}

/* Up to `stop` or a comma, which may stand in quotes. */
static size_t part_len(const char *at, const char *stop)
{
	bool quoted = false;
	size_t len = 0;

	for (; at[len] != '\0' && (quoted || (at[len] != ',' && strchr(stop, at[len]) == NULL));
	     len++) {
		if (at[len] == '"') {
			quoted = !quoted;
		} else if (quoted && at[len] == '\\' && at[len + 1] != '\0') {
			len++;
		}
	}
	return len;
}

static void trim(const char **text, size_t *len)
{
	while (*len > 0 && is_blank((*text)[0])) {
		(*text)++;
		(*len)--;
	}
	while (*len > 0 && is_blank((*text)[*len - 1])) {
		(*len)--;
	}
}

/* "0.75", at most three digits behind the point. False: malformed. */
static bool read_quality(const char *text, size_t len, unsigned *ret_quality)
{
	unsigned quality, unit = 100;

	if (len == 0 || len > 5 || (text[0] != '0' && text[0] != '1') ||
	    (len > 1 && text[1] != '.')) {
		return false;
	}
	quality = text[0] == '1' ? FULL : 0;
	for (size_t i = 2; i < len; i++, unit /= 10) {
		if (text[i] < '0' || text[i] > '9') {
			return false;
		}
		quality += (unsigned)(text[i] - '0') * unit;
	}
	*ret_quality = quality;
	return quality <= FULL;
}

/* "q=0.5" or "version=1.0.0"; others mean nothing here. */
static bool read_parameter(const char *text, size_t len, struct range *range)
{
	const char *value = memchr(text, '=', len);
	size_t name_len, value_len;

	if (value == NULL) {
		return true;
	}
	name_len = (size_t)(value - text);
	value++;
	value_len = len - name_len - 1;
	trim(&text, &name_len);
	trim(&value, &value_len);
	if (is(text, name_len, "q")) {
		return read_quality(value, value_len, &range->quality);
	}
	if (is(text, name_len, "version")) {
		if (value_len >= 2 && value[0] == '"' && value[value_len - 1] == '"') {
			value++;
			value_len -= 2;
		}
		range->version = value;
		range->version_len = value_len;
	}
	return true;
}

/* The next one that is well-formed; false: there is none left. */
static bool next_range(const char **at, struct range *ret_range)
{
	while (**at != '\0') {
		struct range range = { .name = *at, .len = part_len(*at, ";"), .quality = FULL };
		bool good = true;

		*at += range.len;
		trim(&range.name, &range.len);
		while (**at == ';') {
			const char *text = *at + 1;
			size_t len = part_len(text, ";");

			*at = text + len;
			trim(&text, &len);
			good = read_parameter(text, len, &range) && good;
		}
		*at += **at == ',';
		if (good && range.len > 0) {
			*ret_range = range;
			return true;
		}
	}
	return false;
}

/* ---- media types ---- */

struct media {
	const char *name, *type;
	const char *versions[2];
};

static const struct media openmetrics = { "application/openmetrics-text",
					  "application/*",
					  { "1.0.0", "0.0.1" } };
static const struct media plain = { "text/plain", "text/*", { "0.0.4", "0.0.4" } };

/* How exactly it says this one: 0: it does not. */
static unsigned exactness(const struct range *range, const struct media *media)
{
	if (is(range->name, range->len, media->name)) {
		if (range->version_len == 0) {
			return 3;
		}
		return is(range->version, range->version_len, media->versions[0]) ||
				       is(range->version, range->version_len, media->versions[1])
			       ? 4
			       : 0;
	}
	if (is(range->name, range->len, media->type)) {
		return 2;
	}
	return is(range->name, range->len, "*/*") ? 1 : 0;
}

/* What it is worth to the client; *ret_named: it is there by its name. */
static unsigned weigh(const char *accept, const struct media *media, bool *ret_named)
{
	unsigned best = 0, quality = 0;
	struct range range;

	while (next_range(&accept, &range)) {
		unsigned exact = exactness(&range, media);

		/* Several versions are alternatives: the one that is wanted most. */
		if (exact > best || (exact == best && exact == 4 && range.quality > quality)) {
			best = exact;
			quality = range.quality;
		}
	}
	*ret_named = best >= 3;
	return quality;
}

enum sheet_format accept_format(const char *accept)
{
	bool named, text_named;
	unsigned worth, text_worth;

	if (accept == NULL) {
		return SHEET_TEXT;
	}
	worth = weigh(accept, &openmetrics, &named);
	text_worth = weigh(accept, &plain, &text_named);
	return worth > text_worth || (worth == text_worth && worth > 0 && named) ? SHEET_OPENMETRICS
										 : SHEET_TEXT;
}

/* ---- encodings ---- */

bool accept_gzip(const char *accept_encoding)
{
	unsigned gzip = 0, any = 0, identity = 0;
	bool gzip_named = false;
	struct range range;

	if (accept_encoding == NULL) {
		return false;
	}
	while (next_range(&accept_encoding, &range)) {
		if (is(range.name, range.len, "gzip") || is(range.name, range.len, "x-gzip")) {
			gzip_named = true;
			gzip = range.quality;
		} else if (is(range.name, range.len, "identity")) {
			identity = range.quality;
		} else if (is(range.name, range.len, "*")) {
			any = range.quality;
		}
	}
	if (!gzip_named) {
		gzip = any;
	}
	return gzip > 0 && gzip >= identity;
}
