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
	enum statsd_reason reason = statsd_path(line->name, line->name_len, line->tags,
						line->tags_len, NULL, path, &len, &n_dropped);

	check(reason == STATSD_OK || reason == STATSD_name_too_long, "no path");
	check(reason != STATSD_OK || path_check(path, len, NULL) == PATH_OK, "a path that is none");
	check(n_dropped == 0, "tags were dropped");
}

static void check_quick(const char *line, const char *end, enum statsd_reason reason,
			const struct statsd_line *careful)
{
	const char *at = line;
	struct statsd_line quick;

	if (!statsd_line_quick(&at, end, &quick) || at != end || reason != STATSD_OK) {
		return;
	}
	check(quick.name == line && quick.name_len == careful->name_len, "another name, quickly");
	check(quick.tags_len == careful->tags_len &&
		      (quick.tags_len == 0 || quick.tags == careful->tags),
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
	check(parsed.name == line && parsed.name_len == expected.name_len, "another name");
	check(parsed.n_unknown == expected.n_unknown, "other fields");
	check(parsed.tags_len == expected.tags_len &&
		      (parsed.tags_len == 0 ||
		       memcmp(parsed.tags, expected.tags, parsed.tags_len) == 0),
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
