/*
 * The lines of `rationctl add -`: the stream is cut into the same lines however it arrives, and what a line is taken for can be
 * written down again and read back as the same.
 */
#include "clients/cli/lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct stream {
	const uint8_t *bytes;
	size_t len;
	size_t step;
};

static ssize_t stream_read(void *ctx, void *buffer, size_t size)
{
	struct stream *stream = ctx;
	size_t n = stream->step < stream->len ? stream->step : stream->len;

	n = n < size ? n : size;
	memcpy(buffer, stream->bytes, n);
	stream->bytes += n;
	stream->len -= n;
	return (ssize_t)n;
}

static void check(bool holds)
{
	if (!holds) {
		abort();
	}
}

/* PATH N, as we would write it. */
static void check_round_trip(const struct line *line)
{
	char text[LINES_MAX_BYTES + 32];
	struct line again = { 0 };
	int len = snprintf(text, sizeof(text), "%s %" PRId64, line->path, line->n);

	check(line->path[0] != '\0' && line->path[0] != ' ' && line->path[0] != '#');
	if (len > LINES_MAX_BYTES) {
		return;
	}
	check(line_parse(text, (size_t)len, &again) == LINE_OK);
	check(strcmp(again.path, line->path) == 0 && again.n == line->n);
}

struct outcome {
	uint64_t lines;
	uint64_t good;
	uint64_t sum; /* of a kind: order and values matter */
};

static struct outcome read_all(const uint8_t *data, size_t size, size_t step)
{
	static struct lines lines;
	struct stream stream = { data, size, step };
	struct outcome outcome = { 0 };
	char *text = NULL;
	size_t len = 0;

	lines_init(&lines, stream_read, &stream);
	while (lines_next(&lines, &text, &len) > 0) {
		struct line line = { 0 };
		enum line_error error = line_parse(text, len, &line);

		check(++outcome.lines == lines.number);
		check(len <= LINES_MAX_BYTES || error == LINE_E_LONG);
		if (error == LINE_OK) {
			outcome.good++;
			check_round_trip(&line);
		}
		outcome.sum = outcome.sum * 31 + (uint64_t)error + (uint64_t)line.n * 7 +
			      (error == LINE_OK ? strlen(line.path) : 0);
	}
	return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole = read_all(data, size, SIZE_MAX);

	for (size_t step = 1; step <= 7; step += 3) {
		struct outcome pieces = read_all(data, size, step);

		check(memcmp(&pieces, &whole, sizeof(whole)) == 0);
	}
	return 0;
}
