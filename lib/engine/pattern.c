#include "lib/engine/pattern.h"

#include <string.h>

static bool is_text(const char *segment, size_t len, const char *text)
{
	return len == strlen(text) && memcmp(segment, text, len) == 0;
}

static const char *parse_segment(const char *segment, size_t len, bool last, struct shape *shape)
{
	enum path_error error;

	if (is_text(segment, len, "**") && shape->depth > 0) {
		if (!last) {
			return "'**' can only be the last segment";
		}
		shape->tail = true;
		return NULL;
	}
	if (shape->depth == PATH_MAX_SEGMENTS) {
		return path_error_text(PATH_E_TOO_DEEP);
	}
	if (is_text(segment, len, "*") || is_text(segment, len, "**")) {
		if (shape->depth == 0) {
			return "the first segment, the metric, can't be a wildcard";
		}
		shape->wild |= (uint16_t)(1u << shape->depth);
	} else {
		error = len > 0 ? path_check_segment(segment, len, NULL) : PATH_E_EMPTY_SEGMENT;
		if (error != PATH_OK) {
			return path_error_text(error);
		}
	}
	shape->depth++;
	return NULL;
}

const char *pattern_parse(const char *text, size_t len, struct shape *ret_shape)
{
	struct shape shape = { 0 };
	size_t begin = 0;

	if (len == 0) {
		return path_error_text(PATH_E_EMPTY);
	}
	if (len > PATH_MAX_BYTES) {
		return path_error_text(PATH_E_TOO_LONG);
	}
	for (;;) {
		const char *slash = memchr(text + begin, '/', len - begin);
		size_t end = slash ? (size_t)(slash - text) : len;
		const char *error = parse_segment(text + begin, end - begin, !slash, &shape);

		if (error) {
			return error;
		}
		if (!slash) {
			break;
		}
		begin = end + 1;
	}
	if (shape.tail && shape.depth == PATH_MAX_SEGMENTS) {
		return path_error_text(PATH_E_TOO_DEEP);
	}
	*ret_shape = shape;
	return NULL;
}

unsigned shape_prefix(struct shape shape)
{
	return (unsigned)__builtin_ctz(shape.wild | 1u << shape.depth);
}

bool shapes_meet(struct shape a, struct shape b)
{
	if (a.tail && b.tail) {
		return true;
	}
	return a.tail ? shape_fits(a, b.depth) : shape_fits(b, a.depth);
}

void segments_split(struct segments *segments, const char *path, size_t len)
{
	segments->path = path;
	segments->n = 0;
	for (size_t i = 0; i < len && segments->n < PATH_MAX_SEGMENTS - 1; i++) {
		if (path[i] == '/') {
			segments->end[segments->n++] = (uint16_t)i;
		}
	}
	segments->end[segments->n++] = (uint16_t)len;
}

static size_t append(char *to, size_t at, const char *text, size_t len)
{
	if (at > 0) {
		to[at++] = '/';
	}
	memcpy(to + at, text, len);
	return at + len;
}

size_t pattern_key(struct shape shape, const struct segments *segments,
		   char key[PATH_MAX_BYTES + 3])
{
	size_t len = 0;

	if (shape.wild == 0) {
		len = segments->end[shape.depth - 1];
		memcpy(key, segments->path, len);
	}
	for (unsigned i = 0; shape.wild != 0 && i < shape.depth; i++) {
		size_t begin = segments_begin(segments, i);

		if (shape.wild >> i & 1) {
			len = append(key, len, "*", 1);
		} else {
			len = append(key, len, segments->path + begin, segments->end[i] - begin);
		}
	}
	return shape.tail ? append(key, len, "**", 2) : len;
}

size_t pattern_common(const char *text, size_t len, struct shape of, struct shape other,
		      char common[PATH_MAX_BYTES])
{
	unsigned depth = of.depth < other.depth ? of.depth : other.depth;
	struct segments segments = { 0 };
	size_t common_len = 0;

	segments_split(&segments, text, len);
	for (unsigned i = 0; i < depth; i++) {
		size_t begin = segments_begin(&segments, i);

		if (((of.wild | other.wild) >> i & 1) == 0) {
			common_len =
				append(common, common_len, text + begin, segments.end[i] - begin);
		}
	}
	return common_len;
}
