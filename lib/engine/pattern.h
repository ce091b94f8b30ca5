#pragma once
/*
 * pattern: what a rule is for. A path, or a template: a path in which a segment may be `*` (any one segment), and whose last one may be
 * `**` (one or more). The first segment, the metric, is literal.
 *
 * Matching a path against many templates: all templates whose wildcards stand at the same places, and that are equally deep, have one
 * shape. The path with its segments at those places replaced by `*` is the text of the only template of that shape that can match it. So
 * a look-up by text for each shape there is answers for any number of templates, and a plain path is just one more shape.
 *
 * Pure functions, any thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/names/path.h"

struct shape {
	uint16_t wild; /* bit i: segment i is `*` */
	uint8_t depth; /* segments, `**` not counted */
	bool tail;     /* ends with `**` */
};

/* A path taken apart: where its segments end. */
struct segments {
	const char *path;
	unsigned n;
	uint16_t end[PATH_MAX_SEGMENTS];
};

/*
 * NULL if it is a pattern; else what is wrong with it, to stand after it and a colon.
 */
const char *pattern_parse(const char *text, size_t len, struct shape *ret_shape);

/* A path, no template. */
static inline bool shape_exact(struct shape shape)
{
	return shape.wild == 0 && !shape.tail;
}

/* Leading segments that are literal. */
unsigned shape_prefix(struct shape shape);

/*
 * The more, the more exact: of two patterns of different shapes that match one path the one with the higher rank holds. A path's own is the highest.
 */
static inline unsigned shape_rank(struct shape shape)
{
	return shape_exact(shape) ? PATH_MAX_SEGMENTS + 1 : shape_prefix(shape);
}

static inline bool shape_equal(struct shape a, struct shape b)
{
	return a.wild == b.wild && a.depth == b.depth && a.tail == b.tail;
}

/* Could a path of this depth match? */
static inline bool shape_fits(struct shape shape, unsigned depth)
{
	return shape.tail ? depth > shape.depth : depth == shape.depth;
}

/* Is there a depth at which paths could match both? */
bool shapes_meet(struct shape a, struct shape b);

/* A path, or a pattern's text, whose `*` and `**` then count as segments. */
void segments_split(struct segments *segments, const char *path, size_t len);

static inline size_t segments_begin(const struct segments *segments, unsigned i)
{
	return i > 0 ? segments->end[i - 1] + 1u : 0;
}

/* The text of the template of this shape that matches; its length. shape_fits. */
size_t pattern_key(struct shape shape, const struct segments *segments,
		   char key[PATH_MAX_BYTES + 3]);

/*
 * Those segments of a pattern of shape `of` that are literal in both shapes, joined; its length. Two patterns whose shapes meet match a
 * common path if these are equal for both.
 */
size_t pattern_common(const char *text, size_t len, struct shape of, struct shape other,
		      char common[PATH_MAX_BYTES]);
