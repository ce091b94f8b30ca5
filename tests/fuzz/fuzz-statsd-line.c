/*
 * The reader of StatsD lines against a reference that is slow and plainly what the grammar says; the quick reader against the careful one;
 * and whatever is accepted has a path, the same whatever the order of its tags.
 */
#include "daemon/statsd/line.h"
#include "daemon/statsd/path.h"
#include "daemon/statsd/scan.h"
#include "tests/support/statsd-reference.h"

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

static __int128 amount_of(const struct statsd_line *line)
{
	return (__int128)line->amount.whole * ((__int128)1 << 64) + line->amount.fraction;
}

static void check_amount(const struct statsd_line *line, const struct reference *expected)
{
	__int128 off = amount_of(line) - expected->amount;

	off = off < 0 ? -off : off;
	check(off == 0 || (expected->rounded && off >> 64 <= 1), "another amount");
}

static void check_path(const struct statsd_line *line)
{
	char path[PATH_MAX_BYTES];
	unsigned n_dropped = 0;
	size_t len = 0;
	enum statsd_reason reason = statsd_path(line->key.name, line->key.name_len, line->key.tags,
						line->key.tags_len, NULL, path, &len, &n_dropped);

	check(reason == STATSD_OK || reason == STATSD_name_too_long, "no path");
	check(reason != STATSD_OK || path_check(path, len, NULL) == PATH_OK, "a path that is none");
	check(n_dropped == 0, "tags were dropped");
}

static void check_quick(const char *line, const char *end, enum statsd_reason reason,
			const struct statsd_line *careful)
{
	struct statsd_line quick;

	if (statsd_line_quick(line, end, &quick) != end || reason != STATSD_OK) {
		return;
	}
	check(quick.key.name == line && quick.key.name_len == careful->key.name_len,
	      "another name, quickly");
	check(quick.key.tags_len == careful->key.tags_len &&
		      (quick.key.tags_len == 0 || quick.key.tags == careful->key.tags),
	      "other tags, quickly");
	check(amount_of(&quick) == amount_of(careful), "another amount, quickly");
	check(careful->n_unknown == 0, "a field was missed, quickly");
}

static void check_line(const char *line, size_t len)
{
	static char scratch[STATSD_MAX_LINE + SCAN_SLACK];
	static struct reference expected;
	struct statsd_line parsed = { 0 };
	enum statsd_reason reason = statsd_line_parse(line, len, scratch, &parsed);

	reference_read(line, len, &expected);
	if (expected.rounded && reason != expected.reason) {
		return; /* at the very end of the range */
	}
	check(reason == expected.reason, "another reason");
	check_quick(line, line + len, reason, &parsed);
	if (reason != STATSD_OK) {
		return;
	}
	check(parsed.key.name == line && parsed.key.name_len == expected.name_len, "another name");
	check(parsed.n_unknown == expected.n_unknown, "other fields");
	check(parsed.key.tags_len == expected.tags_len &&
		      (parsed.key.tags_len == 0 ||
		       memcmp(parsed.key.tags, expected.tags, parsed.key.tags_len) == 0),
	      "other tags");
	check_amount(&parsed, &expected);
	check_path(&parsed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = calloc(1, size + SCAN_SLACK);
	const char *line = bytes;
	size_t len = size;

	check(bytes != NULL, "no memory");
	memcpy(bytes, data, size);
	statsd_line_trim(&line, &len);
	if (len > 0) {
		check_line(line, len);
	}
	free(bytes);
	return 0;
}
