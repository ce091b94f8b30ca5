#include "tests/support/statsd-table.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef STATSD_TABLE
#define STATSD_TABLE "tests/statsd/lines.tsv"
#endif

/* \n \r \t \\ \xNN */
static size_t unescape(const char *text, size_t len, char *bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '\\') {
			c = text[++i];
			if (c == 'x') {
				char digits[3] = { text[i + 1], text[i + 2], '\0' };

				c = (char)strtoul(digits, NULL, 16);
				i += 2;
			} else {
				c = c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
			}
		}
		bytes[n++] = c;
	}
	return n;
}

/* "ACC c NAME VALUE {tags} [ignored fields]", "REJ reason" */
static struct table_outcome read_outcome(const char *text, size_t len)
{
	struct table_outcome outcome = { 0 };
	char copy[1400];
	const char *at, *list;

	assert_true(len < sizeof(copy));
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (strncmp(copy, "REJ ", 4) == 0) {
		assert_int_equal(sscanf(copy + 4, "%31s", outcome.reason), 1);
		return outcome;
	}
	outcome.accepted = true;
	assert_int_equal(sscanf(copy, "ACC c %299s %63s", outcome.name, outcome.value), 2);
	at = strstr(copy, " {");
	list = at != NULL ? strstr(at, "} [") : strstr(copy, " [");
	if (at != NULL) {
		size_t n = strcspn(at, "\0");

		n = list != NULL ? (size_t)(list - at) - 2 : n - 3;
		assert_true(n < sizeof(outcome.tags));
		memcpy(outcome.tags, at + 2, n);
	}
	/* Container names may have commas; an ignored tag is no field. */
	for (list = list != NULL ? list + strspn(list, "} [") : ""; *list != '\0'; list++) {
		outcome.n_ignored += strncmp(list, "container=", 10) == 0 ||
				     strncmp(list, "unknown_field", 13) == 0 ||
				     strncmp(list, "empty_field", 11) == 0 ||
				     strncmp(list, "timestamp_ignored", 17) == 0;
	}
	return outcome;
}

static struct table_row read_row(const char *text)
{
	const char *expected = strchr(text, '\t'), *end;
	struct table_row row = { 0 };

	assert_non_null(expected);
	(void)snprintf(row.text, sizeof(row.text), "%s", text);
	row.len = unescape(text, (size_t)(expected - text), row.bytes);
	expected++;
	end = expected + strcspn(expected, "\t");
	while (expected < end && strncmp(expected, "NONE", 4) != 0) {
		const char *next = strstr(expected, " ; ");
		const char *stop = next != NULL && next < end ? next : end;

		assert_true(row.n < TABLE_MAX_OUTCOMES);
		row.outcomes[row.n++] = read_outcome(expected, (size_t)(stop - expected));
		expected = stop < end ? stop + 3 : end;
	}
	return row;
}

size_t table_each(void (*take)(void *ctx, const struct table_row *row), void *ctx)
{
	FILE *file = fopen(STATSD_TABLE, "re");
	char *line = NULL;
	size_t size = 0, n = 0;

	assert_non_null(file);
	assert_true(getline(&line, &size, file) > 0); /* the names of the columns */
	while (getline(&line, &size, file) > 0) {
		struct table_row row;

		line[strcspn(line, "\n")] = '\0';
		row = read_row(line);
		take(ctx, &row);
		n++;
	}
	free(line);
	(void)fclose(file);
	return n;
}

void table_path(const struct table_outcome *outcome, char *path, size_t size)
{
	size_t n = 0;

	for (const char *at = outcome->name; *at != '\0'; at++) {
		path[n++] = *at == '.' ? '/' : *at;
	}
	for (const char *at = outcome->tags; *at != '\0'; at++) {
		bool slash = *at == '/', comma = *at == ',';

		assert_true(n + 5 < size);
		if (at == outcome->tags || comma) {
			path[n++] = '/';
		}
		if (slash || *at == '%') {
			n += (size_t)snprintf(path + n, 4, "%%%02X", (unsigned)*at);
		} else if (!comma) {
			path[n++] = *at;
		}
	}
	path[n] = '\0';
}
