#pragma once
/*
 * lines: what `rationctl add -` reads.
 *
 *	PATH N		add N to PATH
 *	PATH		add 1; PATH has no blanks in it
 *	# ...		a comment; so is nothing but blanks
 *
 * Blanks are spaces, tabs and a carriage return before the line's end; those around PATH and N are no part of them. A line with
 * blanks inside always ends in its N, so a path with blanks in it is added with its N written out. Nothing is guessed: what could
 * be read in two ways is a bad line.
 */
#include "clients/cli/amount.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A longer line is a bad line. A path has at most 512 bytes. */
#define LINES_MAX_BYTES 4096

enum line_error {
	LINE_OK = 0,
	LINE_E_NOTHING, /* a comment, or blank: not bad, but nothing to add */
	LINE_E_LONG,	/* longer than LINES_MAX_BYTES */
	LINE_E_NUL,	/* a zero byte in it */
	LINE_E_NUMBER,	/* the last word is no number: see `amount_error` */
};

struct line {
	const char *path; /* within the text; terminated */
	int64_t n;
	const char *number; /* LINE_E_NUMBER: the word that is none */
	enum amount_error amount_error;
};

/* Take one line apart in place; `text` has `len` bytes without the newline, and a byte after them that may be overwritten. */
enum line_error line_parse(char *text, size_t len, struct line *ret_line);

/* Cuts a stream of bytes into lines. */
struct lines {
	ssize_t (*read)(void *ctx, void *buffer, size_t size); /* as read(2) */
	void *ctx;
	uint64_t number; /* of the line last returned; the first is 1 */
	size_t begin;
	size_t end;
	bool ended;
	char buffer[16 * LINES_MAX_BYTES];
};

void lines_init(struct lines *lines, ssize_t (*read)(void *ctx, void *buffer, size_t size),
		void *ctx);

/*
 * The next line, without its newline (and without a byte order mark that the stream begins with), valid until the next call. 1: a line. 0: the end. Negative errno: what `read` failed with.
 * Of a line longer than LINES_MAX_BYTES there is nothing but that: *ret_len is LINES_MAX_BYTES + 1, and line_parse answers LINE_E_LONG.
 */
int lines_next(struct lines *lines, char **ret_text, size_t *ret_len);
