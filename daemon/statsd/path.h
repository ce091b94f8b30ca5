#pragma once
/*
 * path: where a name with tags is counted.
 *
 *	a.b.c			a/b/c
 *	a.b|c|#y:2,x:1		a/b/x=1/y=2		one segment a tag, sorted by key
 *	a|c|#y:2,x:1		a/2/-			where the metric a has `levels = y, z`: their values, - for a missing or empty one;
 *						other tags are dropped
 *	a.b|c|#y:2,x:1		a/b/-			the same: `b` stands for the level y already
 *
 * In a tag `/` and `%` are written %2F and %25, and `=` in a key %3D. So is every character that would make a path of none: blanks at the
 * ends of a segment, and the first byte of segments that are `.` `..` `*` or `**`. A segment of more than 128 bytes is cut, with ~ and 16
 * hexadecimal digits behind it that tell it from others with the same beginning.
 *
 * Pure, any thread.
 */
#include "daemon/statsd/levels.h"
#include "daemon/statsd/reason.h"
#include "lib/names/path.h"

#include <stddef.h>

/*
 * Name and tags are those of a line that was accepted. *ret_dropped: tags that are no level. STATSD_name_too_long: the path would have too many
 * segments or bytes.
 */
enum statsd_reason statsd_path(const char *name, size_t name_len, const char *tags, size_t tags_len,
			       const struct statsd_levels *levels, char path[PATH_MAX_BYTES],
			       size_t *ret_len, unsigned *ret_dropped);
