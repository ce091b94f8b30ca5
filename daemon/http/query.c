#include "daemon/http/query.h"

#include <string.h>

void query_init(struct query *query, const char *text)
{
	query->at = text;
	query->name_len = query->value_len = 0;
	query->name[0] = query->value[0] = '\0';
}

static int hex(char c)
{
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	if (c >= 'a' && c <= 'f') {
		return c - 'a' + 10;
	}
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* `out` has room for `max` bytes and an end. */
static enum query_error decode(const char *text, size_t len, char *out, size_t max, size_t *ret_len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i] == '+' ? ' ' : text[i];

		if (c == '%') {
			int high = i + 2 < len ? hex(text[i + 1]) : -1;
			int low = i + 2 < len ? hex(text[i + 2]) : -1;

			if (high < 0 || low < 0) {
				return QUERY_E_ESCAPE;
			}
			c = (char)(high * 16 + low);
			i += 2;
		}
		if (n == max) {
			return QUERY_E_LONG;
		}
		out[n++] = c;
	}
	out[n] = '\0';
	*ret_len = n;
	return QUERY_OK;
}

enum query_error query_next(struct query *query)
{
	const char *text, *equals;
	size_t len, name_len;
	enum query_error r;

	if (query->at == NULL) {
		return QUERY_E_END;
	}
	query->at += strspn(query->at, "&");
	if (*query->at == '\0') {
		return QUERY_E_END;
	}
	text = query->at;
	len = strcspn(text, "&");
	query->at += len;
	equals = memchr(text, '=', len);
	name_len = equals != NULL ? (size_t)(equals - text) : len;
	r = decode(text, name_len, query->name, QUERY_MAX_NAME, &query->name_len);
	if (r == QUERY_OK && equals != NULL) {
		return decode(equals + 1, len - name_len - 1, query->value, QUERY_MAX_VALUE,
			      &query->value_len);
	}
	query->value_len = 0;
	query->value[0] = '\0';
	return r;
}

bool query_is(const struct query *query, const char *name)
{
	return query->name_len == strlen(name) && memcmp(query->name, name, query->name_len) == 0;
}
