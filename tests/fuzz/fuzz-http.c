/*
 * What is read of a request beyond what evhttp does: the first byte says which, the rest is the text, a zero byte ends it.
 *
 * A query is written anew from what was read, every byte escaped, and must be read as the same. Headers must give an answer, the
 * same with blanks around and with an empty range before it.
 */
#include "daemon/http/accept.h"
#include "daemon/http/query.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right, const char *what)
{
	if (!right) {
		(void)fprintf(stderr, "%s\n", what);
		abort();
	}
}

static size_t escape(const char *text, size_t len, char *out)
{
	for (size_t i = 0; i < len; i++) {
		(void)snprintf(out + 3 * i, 4, "%%%02x", (unsigned)(uint8_t)text[i]);
	}
	return 3 * len;
}

static void check_again(const struct query *query)
{
	static char text[3 * (QUERY_MAX_NAME + QUERY_MAX_VALUE) + 2];
	size_t len = escape(query->name, query->name_len, text);
	struct query again;

	text[len++] = '=';
	len += escape(query->value, query->value_len, text + len);
	text[len] = '\0';
	query_init(&again, text);
	check(query_next(&again) == QUERY_OK, "not read again");
	check(again.name_len == query->name_len && again.value_len == query->value_len &&
		      memcmp(again.name, query->name, query->name_len + 1) == 0 &&
		      memcmp(again.value, query->value, query->value_len + 1) == 0,
	      "read as another");
	check(query_next(&again) == QUERY_E_END, "more than one");
}

static void read_query(const char *text)
{
	struct query query;
	enum query_error r;

	query_init(&query, text);
	while ((r = query_next(&query)) == QUERY_OK) {
		check(query.name_len <= QUERY_MAX_NAME && query.value_len <= QUERY_MAX_VALUE,
		      "too long");
		check(query.name[query.name_len] == '\0' && query.value[query.value_len] == '\0',
		      "no end");
		check_again(&query);
	}
	check(r == QUERY_E_END || r == QUERY_E_ESCAPE || r == QUERY_E_LONG, "another error");
}

static void read_headers(const char *text)
{
	size_t len = strlen(text);
	char *more = malloc(len + 4);

	check(more != NULL, "no memory");
	(void)snprintf(more, len + 4, ", %s ", text);
	check(accept_format(text) == accept_format(more), "another format");
	check(accept_gzip(text) == accept_gzip(more), "another encoding");
	free(more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	check(text != NULL, "no memory");
	memcpy(text, data, size);
	text[size] = '\0';
	if (size > 0 && data[0] == 'q') {
		read_query(text + 1);
	} else if (size > 0) {
		read_headers(text + 1);
	}
	free(text);
	return 0;
}
