/*
 * The path grammar against a reference that is slow and plainly what the contract says: a character is what some code point
 * encodes to, and each rule is looked at for itself.
 */
#include "lib/names/path.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct verdict {
	enum path_error error;
	size_t offset;
};

static size_t encode(uint32_t character, uint8_t bytes[4])
{
	if (character < 0x80) {
		bytes[0] = (uint8_t)character;
		return 1;
	}
	if (character < 0x800) {
		bytes[0] = (uint8_t)(0xc0 + character / 64);
		bytes[1] = (uint8_t)(0x80 + character % 64);
		return 2;
	}
	if (character < 0x10000) {
		bytes[0] = (uint8_t)(0xe0 + character / 4096);
		bytes[1] = (uint8_t)(0x80 + character / 64 % 64);
		bytes[2] = (uint8_t)(0x80 + character % 64);
		return 3;
	}
	bytes[0] = (uint8_t)(0xf0 + character / 262144);
	bytes[1] = (uint8_t)(0x80 + character / 4096 % 64);
	bytes[2] = (uint8_t)(0x80 + character / 64 % 64);
	bytes[3] = (uint8_t)(0x80 + character % 64);
	return 4;
}

/* A character is what some code point encodes to. Its bits are guessed from each length, then encoded and compared. */
static size_t decode(const uint8_t *bytes, size_t left, uint32_t *ret_character)
{
	for (size_t len = 1; len <= 4 && len <= left; len++) {
		uint32_t character = len == 1 ? bytes[0] : bytes[0] % (128u >> len);
		uint8_t again[4];

		for (size_t i = 1; i < len; i++) {
			character = character * 64 + bytes[i] % 64;
		}
		if (character <= 0x10ffff && !(character >= 0xd800 && character <= 0xdfff) &&
		    encode(character, again) == len && memcmp(again, bytes, len) == 0) {
			*ret_character = character;
			return len;
		}
	}
	return 0;
}

static bool is_blank(uint32_t character)
{
	static const uint32_t blanks[] = { 0x20,   0xa0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003,
					   0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a,
					   0x2028, 0x2029, 0x202f, 0x205f, 0x3000 };

	for (size_t i = 0; i < sizeof(blanks) / sizeof(*blanks); i++) {
		if (character == blanks[i]) {
			return true;
		}
	}
	return false;
}

static struct verdict judge_segment(const uint8_t *segment, size_t len)
{
	static const char *const reserved[] = { ".", "..", "*", "**" };
	uint32_t characters[PATH_MAX_SEGMENT];
	size_t starts[PATH_MAX_SEGMENT];
	size_t n = 0;

	if (len == 0) {
		return (struct verdict){ PATH_E_EMPTY_SEGMENT, 0 };
	}
	if (len > PATH_MAX_SEGMENT) {
		return (struct verdict){ PATH_E_SEGMENT_TOO_LONG, PATH_MAX_SEGMENT };
	}
	for (size_t at = 0; at < len; n++) {
		size_t step = decode(segment + at, len - at, &characters[n]);

		starts[n] = at;
		if (step == 0) {
			return (struct verdict){ PATH_E_UTF8, at };
		}
		if (characters[n] < 32 || (characters[n] >= 127 && characters[n] < 160)) {
			return (struct verdict){ PATH_E_CONTROL, at };
		}
		at += step;
	}
	if (is_blank(characters[0])) {
		return (struct verdict){ PATH_E_BLANKS, 0 };
	}
	if (is_blank(characters[n - 1])) {
		return (struct verdict){ PATH_E_BLANKS, starts[n - 1] };
	}
	for (size_t i = 0; i < 4; i++) {
		if (len == strlen(reserved[i]) && memcmp(segment, reserved[i], len) == 0) {
			return (struct verdict){ PATH_E_RESERVED, 0 };
		}
	}
	return (struct verdict){ PATH_OK, 0 };
}

static struct verdict judge(const uint8_t *path, size_t len)
{
	size_t n_segments = 1;
	size_t start = 0;

	if (len == 0) {
		return (struct verdict){ PATH_E_EMPTY, 0 };
	}
	if (len > PATH_MAX_BYTES) {
		return (struct verdict){ PATH_E_TOO_LONG, PATH_MAX_BYTES };
	}
	for (size_t end = 0; end <= len; end++) {
		struct verdict verdict;

		if (end < len && path[end] != '/') {
			continue;
		}
		if (n_segments > PATH_MAX_SEGMENTS) {
			return (struct verdict){ PATH_E_TOO_DEEP, start };
		}
		verdict = judge_segment(path + start, end - start);
		if (verdict.error) {
			verdict.offset += start;
			return verdict;
		}
		n_segments++;
		start = end + 1;
	}
	return (struct verdict){ PATH_OK, 0 };
}

static void check(bool right, const char *what)
{
	if (!right) {
		(void)fprintf(stderr, "%s\n", what);
		abort();
	}
}

/* A valid path taken apart and put together again is the same. */
static void check_parts(const char *path, size_t len)
{
	char buffer[PATH_MAX_BYTES];
	size_t at = 0, built = 0, segment_len, offset;
	unsigned depth = 0;
	const char *segment;

	while (path_segment(path, len, &at, &segment, &segment_len)) {
		check(path_check_segment(segment, segment_len, &offset) == PATH_OK,
		      "a segment of a path is none");
		check(path_child(buffer, buffer, built, segment, segment_len, &built) == PATH_OK,
		      "no child");
		check(built == at, "another prefix");
		check(path_check(path, at, NULL) == PATH_OK, "a prefix of a path is none");
		check(path_depth(path, at) == ++depth, "another depth");
		check(path_parent(path, at) + (depth > 1) + segment_len == at, "another parent");
	}
	check(built == len && memcmp(buffer, path, len) == 0, "another path");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct verdict expected = judge(data, size);
	size_t offset = 0;
	enum path_error error = path_check((const char *)data, size, &offset);

	check(error == expected.error, "another error");
	check(!error || offset == expected.offset, "another offset");
	check(path_error_text(error) != NULL, "no text");
	(void)path_check_segment((const char *)data, size, &offset);
	if (!error) {
		check_parts((const char *)data, size);
	}
	return 0;
}
