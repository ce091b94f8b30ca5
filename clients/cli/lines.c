#include "clients/cli/lines.h"

#include <errno.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

enum line_error line_parse(char *text, size_t len, struct line *ret_line)
{
	char *path = text;
	char *end = text + len;
	char *word = NULL;
	int64_t n = 1;
	enum amount_error error = AMOUNT_OK;

	if (len > LINES_MAX_BYTES) {
		return LINE_E_LONG;
	}
	while (end > path && (is_blank(end[-1]) || end[-1] == '\r')) {
		end--;
	}
	while (path < end && is_blank(*path)) {
		path++;
	}
	if (path == end || *path == '#') {
		return LINE_E_NOTHING;
	}
	if (memchr(path, '\0', (size_t)(end - path)) != NULL) {
		return LINE_E_NUL;
	}
	*end = '\0';
	for (word = end; word > path && !is_blank(word[-1]);) {
		word--;
	}
	if (word > path) {
		error = amount_parse(word, &n);
		if (error != AMOUNT_OK) {
			*ret_line =
				(struct line){ .path = path, .number = word, .amount_error = error };
			return LINE_E_NUMBER;
		}
		while (is_blank(word[-1])) {
			word--;
		}
		*word = '\0';
	}
	*ret_line = (struct line){ .path = path, .n = n };
	return LINE_OK;
}

void lines_init(struct lines *lines, ssize_t (*read)(void *ctx, void *buffer, size_t size),
		void *ctx)
{
	lines->read = read;
	lines->ctx = ctx;
	lines->number = 0;
	lines->begin = 0;
	lines->end = 0;
	lines->ended = false;
}

/* Bring more bytes in behind those that are there. 0, also at the end of the stream, or negative errno. */
static int fill(struct lines *lines)
{
	size_t held = lines->end - lines->begin;
	ssize_t n = 0;

	memmove(lines->buffer, lines->buffer + lines->begin, held);
	lines->begin = 0;
	lines->end = held;
	/* One byte stays free: line_parse terminates a last line that has no newline. */
	n = lines->read(lines->ctx, lines->buffer + held, sizeof(lines->buffer) - held - 1);
	if (n < 0) {
		return -errno;
	}
	lines->ended = n == 0;
	lines->end += (size_t)n;
	return 0;
}

/* Drop the rest of a line, up to its newline. */
static int skip(struct lines *lines)
{
	for (;;) {
		size_t held = lines->end - lines->begin;
		const char *newline = memchr(lines->buffer + lines->begin, '\n', held);
		int r = 0;

		if (newline != NULL) {
			lines->begin = (size_t)(newline - lines->buffer) + 1;
			return 0;
		}
		lines->begin = lines->end;
		if (lines->ended) {
			return 0;
		}
		r = fill(lines);
		if (r < 0) {
			return r;
		}
	}
}

int lines_next(struct lines *lines, char **ret_text, size_t *ret_len)
{
	for (;;) {
		char *text = lines->buffer + lines->begin;
		size_t held = lines->end - lines->begin;
		const char *newline = memchr(text, '\n', held);
		size_t len = newline != NULL ? (size_t)(newline - text) : held;
		int r = 0;

		if (len > LINES_MAX_BYTES) {
			r = skip(lines);
			lines->number++;
			*ret_text = lines->buffer;
			*ret_len = LINES_MAX_BYTES + 1;
			return r < 0 ? r : 1;
		}
		if (newline != NULL || (lines->ended && held > 0)) {
			lines->begin += len + (newline != NULL);
			lines->number++;
			/* Some editors begin a file with the mark of UTF-8; it is no part of a path. */
			if (lines->number == 1 && len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
				text += 3;
				len -= 3;
			}
			*ret_text = text;
			*ret_len = len;
			return 1;
		}
		if (lines->ended) {
			return 0;
		}
		r = fill(lines);
		if (r < 0) {
			return r;
		}
	}
}
