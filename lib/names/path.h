#pragma once
/*
 * path: the grammar of counter paths.
 *
 *   path    = segment *( "/" segment )       1 .. 16 segments, at most 512 bytes
 *   segment = 1 .. 128 bytes of valid UTF-8, none of "." ".." "*" "**"
 *
 * A segment holds no control character (U+0000-001F, U+007F-009F) and neither begins nor ends with a blank.
 * Blank is what Unicode calls White_Space: the space, U+00A0, U+1680, U+2000-200A, U+2028, U+2029, U+202F,
 * U+205F, U+3000; inside a segment they are characters like any other. UTF-8 is taken strictly: no overlong
 * forms, no surrogates, nothing above U+10FFFF. Nothing is normalised: two paths are the same if their bytes
 * are.
 *
 * Pure functions on bytes: no state, no allocation, any thread. Paths are not terminated; their length travels
 * with them.
 */
#include <stdbool.h>
#include <stddef.h>

#define PATH_MAX_BYTES 512u
#define PATH_MAX_SEGMENTS 16u
#define PATH_MAX_SEGMENT 128u

enum path_error {
	PATH_OK = 0,
	PATH_E_EMPTY,		 /* no bytes at all; at 0 */
	PATH_E_TOO_LONG,	 /* at the first byte beyond PATH_MAX_BYTES */
	PATH_E_TOO_DEEP,	 /* at the first segment beyond PATH_MAX_SEGMENTS */
	PATH_E_EMPTY_SEGMENT,	 /* at the place where the segment should be */
	PATH_E_SEGMENT_TOO_LONG, /* at the first byte beyond PATH_MAX_SEGMENT */
	PATH_E_UTF8,		 /* at the first byte of the malformed sequence */
	PATH_E_CONTROL,		 /* at the control character */
	PATH_E_BLANKS,	 /* at the leading blank, or else at the last of the trailing ones */
	PATH_E_RESERVED, /* at the segment */
};

/*
 * Is this a path? PATH_OK, or what is wrong with it and at which byte. Of several faults the one reported is
 * the first in this order: EMPTY, TOO_LONG; then segment by segment TOO_DEEP, EMPTY_SEGMENT, SEGMENT_TOO_LONG,
 * UTF8 and CONTROL as they come, BLANKS, RESERVED. ret_offset may be NULL.
 */
enum path_error path_check(const char *path, size_t len, size_t *ret_offset);

/* The same for a single segment; '/' in it is reported as PATH_E_TOO_DEEP at the '/'. */
enum path_error path_check_segment(const char *segment, size_t len, size_t *ret_offset);

/* Valid UTF-8 without control characters? Of any length, and whatever is not allowed in a path otherwise. */
bool path_is_text(const char *text, size_t len);

/* What was wrong and what would be right, as one clause without a full stop. Static; never NULL. */
const char *path_error_text(enum path_error error);

/*
 * `parent`/`segment` into buffer: its length into *ret_len, not terminated. Both parts must be valid already;
 * what can still be wrong is PATH_E_TOO_LONG or PATH_E_TOO_DEEP, and then nothing was written. A parent of
 * length 0 gives the segment alone.
 */
enum path_error path_child(char buffer[PATH_MAX_BYTES], const char *parent, size_t parent_len,
			   const char *segment, size_t segment_len, size_t *ret_len);

/* ---- taking valid paths apart ---- */

/* Length of the prefix that is the parent's path; 0 if `path` has one segment. */
size_t path_parent(const char *path, size_t len);

/* Number of segments; 0 for the empty path. */
unsigned path_depth(const char *path, size_t len);

/*
 * The segments one by one: start with *at = 0. False when there is none left; else [*ret_segment, *ret_len) is
 * the next one, and *at the length of the prefix that ends with it, a path itself.
 */
bool path_segment(const char *path, size_t len, size_t *at, const char **ret_segment,
		  size_t *ret_len);
