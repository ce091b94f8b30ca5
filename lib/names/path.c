#include "lib/names/path.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/*
 * One character of UTF-8, strictly (Unicode 15, table 3-7): its length, or 0 if the bytes are not well-formed.
 * `left` >= 1.
 */
static size_t decode(const unsigned char *bytes, size_t left, uint32_t *ret_character)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800,
					  0x10000 }; /* shorter forms exist for what is below */
	unsigned char lead = bytes[0];
	size_t len = lead < 0x80   ? 1
		     : lead < 0xc0 ? 0
		     : lead < 0xe0 ? 2
		     : lead < 0xf0 ? 3
		     : lead < 0xf8 ? 4
				   : 0;
	uint32_t character;

	if (len == 0 || len > left) {
		return 0;
	}
	character = len == 1 ? lead : lead & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if ((bytes[i] & 0xc0) != 0x80) {
			return 0;
		}
		character = character << 6 | (bytes[i] & 0x3f);
	}
	if (character < least[len] || character > 0x10ffff ||
	    (character >= 0xd800 && character <= 0xdfff)) {
		return 0;
	}
	*ret_character = character;
	return len;
}

/* Unicode's general category Cc. */
static bool is_control(uint32_t character)
{
	return character < 0x20 || (character >= 0x7f && character <= 0x9f);
}

/* Unicode's property White_Space, less the control characters in it. */
static bool is_blank(uint32_t character)
{
	switch (character) {
	case 0x20:
	case 0xa0:
	case 0x1680:
	case 0x2028:
	case 0x2029:
	case 0x202f:
	case 0x205f:
	case 0x3000:
		return true;
	default:
		return character >= 0x2000 && character <= 0x200a;
	}
}

static bool is_reserved(const unsigned char *segment, size_t len)
{
	return (len == 1 && (segment[0] == '.' || segment[0] == '*')) ||
	       (len == 2 && segment[0] == segment[1] && (segment[0] == '.' || segment[0] == '*'));
}

/* The bytes that need no second look: printable ASCII. */
static size_t skip_plain(const unsigned char *bytes, size_t at, size_t len)
{
	while (at < len && bytes[at] > 0x20 && bytes[at] < 0x7f) {
		at++;
	}
	return at;
}

bool path_is_text(const char *text, size_t len)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t at = 0;

	while ((at = skip_plain(bytes, at, len)) < len) {
		uint32_t character;
		size_t n = decode(bytes + at, len - at, &character);

		if (n == 0 || is_control(character)) {
			return false;
		}
		at += n;
	}
	return true;
}

/* A segment of any bytes but '/', in the order that path_check promises. */
static enum path_error check_segment(const unsigned char *segment, size_t len, size_t *ret_offset)
{
	bool blank_first = false;
	size_t blank_last = len; /* where the last character starts, if that is a blank */
	size_t at = 0;

	if (len == 0) {
		*ret_offset = 0;
		return PATH_E_EMPTY_SEGMENT;
	}
	if (len > PATH_MAX_SEGMENT) {
		*ret_offset = PATH_MAX_SEGMENT;
		return PATH_E_SEGMENT_TOO_LONG;
	}
	while ((at = skip_plain(segment, at, len)) < len) {
		uint32_t character;
		size_t n = decode(segment + at, len - at, &character);

		if (n == 0 || is_control(character)) {
			*ret_offset = at;
			return n == 0 ? PATH_E_UTF8 : PATH_E_CONTROL;
		}
		if (is_blank(character)) {
			blank_first = blank_first || at == 0;
			blank_last = at + n == len ? at : len;
		}
		at += n;
	}
	if (blank_first || blank_last < len) {
		*ret_offset = blank_first ? 0 : blank_last;
		return PATH_E_BLANKS;
	}
	if (is_reserved(segment, len)) {
		*ret_offset = 0;
		return PATH_E_RESERVED;
	}
	return PATH_OK;
}

static enum path_error check(const unsigned char *path, size_t len, size_t *ret_offset)
{
	size_t start = 0;

	*ret_offset = 0;
	if (len == 0) {
		return PATH_E_EMPTY;
	}
	if (len > PATH_MAX_BYTES) {
		*ret_offset = PATH_MAX_BYTES;
		return PATH_E_TOO_LONG;
	}
	for (unsigned depth = 1;; depth++) {
		const unsigned char *slash = memchr(path + start, '/', len - start);
		size_t end = slash ? (size_t)(slash - path) : len;
		enum path_error error;

		if (depth > PATH_MAX_SEGMENTS) {
			*ret_offset = start;
			return PATH_E_TOO_DEEP;
		}
		error = check_segment(path + start, end - start, ret_offset);
		if (error) {
			*ret_offset += start;
			return error;
		}
		if (!slash) {
			return PATH_OK;
		}
		start = end + 1;
	}
}

enum path_error path_check(const char *path, size_t len, size_t *ret_offset)
{
	size_t offset;
	enum path_error error = check((const unsigned char *)path, len, &offset);

	if (error && ret_offset) {
		*ret_offset = offset;
	}
	return error;
}

enum path_error path_check_segment(const char *segment, size_t len, size_t *ret_offset)
{
	const char *slash = len > 0 ? memchr(segment, '/', len) : NULL;
	size_t offset = slash ? (size_t)(slash - segment) : 0;
	enum path_error error = slash ? PATH_E_TOO_DEEP : len == 0 ? PATH_E_EMPTY : PATH_OK;

	if (!error) {
		error = check_segment((const unsigned char *)segment, len, &offset);
	}
	if (error && ret_offset) {
		*ret_offset = offset;
	}
	return error;
}

const char *path_error_text(enum path_error error)
{
	static_assert(PATH_MAX_BYTES == 512 && PATH_MAX_SEGMENTS == 16 && PATH_MAX_SEGMENT == 128,
		      "the texts say so");

	switch (error) {
	case PATH_OK:
		return "this is a path";
	case PATH_E_EMPTY:
		return "the path is empty; it needs at least one segment, the metric";
	case PATH_E_TOO_LONG:
		return "the path is longer than 512 bytes";
	case PATH_E_TOO_DEEP:
		return "the path has more than the allowed number of segments, which is 16";
	case PATH_E_EMPTY_SEGMENT:
		return "a segment is empty; segments are joined by single slashes, with none at either end";
	case PATH_E_SEGMENT_TOO_LONG:
		return "a segment is longer than 128 bytes";
	case PATH_E_UTF8:
		return "this is not valid UTF-8; a path is UTF-8 text";
	case PATH_E_CONTROL:
		return "there is a control character; a segment holds printable text only";
	case PATH_E_BLANKS:
		return "a segment begins or ends with a blank; blanks may stand only inside it";
	case PATH_E_RESERVED:
		return "a segment is '.', '..', '*' or '**'; these are reserved, choose another name";
	}
	return "unknown fault";
}

enum path_error path_child(char buffer[PATH_MAX_BYTES], const char *parent, size_t parent_len,
			   const char *segment, size_t segment_len, size_t *ret_len)
{
	size_t joint = parent_len > 0 ? 1 : 0;

	if (parent_len + joint + segment_len > PATH_MAX_BYTES) {
		return PATH_E_TOO_LONG;
	}
	if (path_depth(parent, parent_len) >= PATH_MAX_SEGMENTS) {
		return PATH_E_TOO_DEEP;
	}
	if (joint) {
		memmove(buffer, parent, parent_len);
		buffer[parent_len] = '/';
	}
	memcpy(buffer + parent_len + joint, segment, segment_len);
	*ret_len = parent_len + joint + segment_len;
	return PATH_OK;
}

size_t path_parent(const char *path, size_t len)
{
	const char *slash = len > 0 ? memrchr(path, '/', len) : NULL;

	return slash ? (size_t)(slash - path) : 0;
}

unsigned path_depth(const char *path, size_t len)
{
	unsigned depth = len > 0 ? 1 : 0;

	for (size_t i = 0; i < len; i++) {
		depth += path[i] == '/';
	}
	return depth;
}

bool path_segment(const char *path, size_t len, size_t *at, const char **ret_segment,
		  size_t *ret_len)
{
	size_t start = *at > 0 ? *at + 1 : 0;
	const char *slash;

	if (start >= len) {
		return false;
	}
	slash = memchr(path + start, '/', len - start);
	*at = slash ? (size_t)(slash - path) : len;
	*ret_segment = path + start;
	*ret_len = *at - start;
	return true;
}
