#include "daemon/statsd/path.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MAX_TAGS (PATH_MAX_SEGMENTS - 1)
#define MARK_LEN 17u /* "~" and 16 digits */

/* ---- a segment ---- */

struct segment {
	char bytes[PATH_MAX_SEGMENT +
		   8]; /* so much that an escaped character fits behind the most there can be */
	size_t len;
	bool cut;      /* there was more */
	uint64_t hash; /* of all there was: FNV-1a */
};

static void segment_begin(struct segment *segment)
{
	segment->len = 0;
	segment->cut = false;
	segment->hash = UINT64_C(0xcbf29ce484222325);
}

static void put(struct segment *segment, char c)
{
	segment->hash = (segment->hash ^ (unsigned char)c) * UINT64_C(0x100000001b3);
	if (segment->len < PATH_MAX_SEGMENT) {
		segment->bytes[segment->len++] = c;
	} else {
		segment->cut = true;
	}
}

static void put_escaped(struct segment *segment, char c)
{
	static const char digits[] = "0123456789ABCDEF";

	put(segment, '%');
	put(segment, digits[(unsigned char)c >> 4]);
	put(segment, digits[(unsigned char)c & 15]);
}

static void put_all(struct segment *segment, const char *text, size_t len, const char *escaped)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] != '\0' && strchr(escaped, text[i]) != NULL) {
			put_escaped(segment, text[i]);
		} else {
			put(segment, text[i]);
		}
	}
}

/* How many bytes the character takes that begins with `lead`. */
static size_t character_len(char lead)
{
	unsigned char c = (unsigned char)lead;

	return c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* Writes the character at `at` as %XX. */
static void escape_at(struct segment *segment, size_t at)
{
	size_t n = character_len(segment->bytes[at]), behind = segment->len - at - n;
	char text[PATH_MAX_SEGMENT + 8];

	memcpy(text, segment->bytes + at, n + behind);
	segment->len = at;
	for (size_t i = 0; i < n; i++) {
		put_escaped(segment, text[i]);
	}
	put_all(segment, text + n, behind, "");
}

static void shorten(struct segment *segment)
{
	size_t len = PATH_MAX_SEGMENT - MARK_LEN;

	/* Not in the middle of a character. */
	while (((unsigned char)segment->bytes[len] & 0xc0) == 0x80) {
		len--;
	}
	segment->len = len + (size_t)snprintf(segment->bytes + len, MARK_LEN + 1, "~%016" PRIx64,
					      segment->hash);
	segment->cut = false;
}

/* What lib/names takes. */
static void segment_end(struct segment *segment)
{
	size_t at;

	for (;;) {
		if (segment->cut) {
			shorten(segment);
		}
		switch (path_check_segment(segment->bytes, segment->len, &at)) {
		case PATH_E_BLANKS:
		case PATH_E_RESERVED:
			escape_at(segment, at);
			break;
		default:
			return;
		}
	}
}

/* ---- a path ---- */

struct path {
	char *bytes;
	size_t len;
	unsigned depth;
};

static bool append(struct path *path, const struct segment *segment)
{
	return path->depth++ < PATH_MAX_SEGMENTS &&
	       path_child(path->bytes, path->bytes, path->len, segment->bytes, segment->len,
			  &path->len) == PATH_OK;
}

static bool append_name(struct path *path, const char *name, size_t len)
{
	const char *end = name + len;

	while (name < end) {
		struct segment segment;

		segment_begin(&segment);
		while (name < end && *name != '.' && *name != '/') {
			put(&segment, *name++);
		}
		name++;
		segment_end(&segment);
		if (!append(path, &segment)) {
			return false;
		}
	}
	return true;
}

/* ---- tags ---- */

struct tag {
	const char *key, *value;
	size_t key_len, value_len;
};

/* The next one that has a key, behind *at; false: there is none. */
static bool next_tag(const char **at, const char *end, struct tag *ret_tag)
{
	while (*at < end) {
		const char *tag = *at;
		const char *comma = memchr(tag, ',', (size_t)(end - tag));
		const char *stop = comma != NULL ? comma : end, *colon;

		*at = comma != NULL ? comma + 1 : end;
		tag += tag < stop && *tag == '#';
		colon = memchr(tag, ':', (size_t)(stop - tag));
		*ret_tag = (struct tag){
			.key = tag,
			.key_len = (size_t)((colon != NULL ? colon : stop) - tag),
			.value = colon != NULL ? colon + 1 : stop,
			.value_len = colon != NULL ? (size_t)(stop - colon - 1) : 0,
		};
		if (ret_tag->key_len > 0) {
			return true;
		}
	}
	return false;
}

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

/* The values of those levels that the name leaves open, in their order; of a tag that is there twice the last one. */
static bool append_levels(struct path *path, const struct statsd_metric_levels *levels,
			  const char *tags, size_t len, unsigned *n_dropped)
{
	struct tag found[CONFIG_MAX_LEVELS] = { 0 }, tag;
	size_t first = path->depth - 1;
	const char *at = tags;

	while (next_tag(&at, tags + len, &tag)) {
		size_t i = first;

		while (i < levels->n && compare(levels->levels[i].name, levels->levels[i].len,
						tag.key, tag.key_len) != 0) {
			i++;
		}
		if (i < levels->n) {
			found[i] = tag;
		} else {
			++*n_dropped;
		}
	}
	for (size_t i = first; i < levels->n; i++) {
		struct segment segment;

		segment_begin(&segment);
		put_all(&segment, found[i].value, found[i].value_len, "/%");
		if (segment.len == 0) {
			put(&segment, '-');
		}
		segment_end(&segment);
		if (!append(path, &segment)) {
			return false;
		}
	}
	return true;
}

/* Into its place among *n sorted ones, or in place of that with the same key. False: there are too many. */
static bool insert(struct tag tags[MAX_TAGS], size_t *n, const struct tag *tag)
{
	size_t at = *n;
	int order = 1;

	while (at > 0 && (order = compare(tag->key, tag->key_len, tags[at - 1].key,
					  tags[at - 1].key_len)) < 0) {
		at--;
	}
	if (at > 0 && order == 0) {
		tags[at - 1] = *tag;
		return true;
	}
	if (*n == MAX_TAGS) {
		return false;
	}
	memmove(&tags[at + 1], &tags[at], (*n - at) * sizeof(*tags));
	tags[at] = *tag;
	++*n;
	return true;
}

static bool append_tags(struct path *path, const char *tags, size_t len)
{
	struct tag sorted[MAX_TAGS], tag;
	const char *at = tags;
	size_t n = 0;

	while (next_tag(&at, tags + len, &tag)) {
		if (!insert(sorted, &n, &tag)) {
			return false;
		}
	}
	for (size_t i = 0; i < n; i++) {
		struct segment segment;

		segment_begin(&segment);
		put_all(&segment, sorted[i].key, sorted[i].key_len, "/%=");
		put(&segment, '=');
		put_all(&segment, sorted[i].value, sorted[i].value_len, "/%");
		segment_end(&segment);
		if (!append(path, &segment)) {
			return false;
		}
	}
	return true;
}

enum statsd_reason statsd_path(const char *name, size_t name_len, const char *tags, size_t tags_len,
			       const struct statsd_levels *levels, char path[PATH_MAX_BYTES],
			       size_t *ret_len, unsigned *ret_dropped)
{
	struct path built = { .bytes = path };
	const struct statsd_metric_levels *ours;
	unsigned n_dropped = 0;
	size_t metric_len;
	bool fits;

	if (!append_name(&built, name, name_len)) {
		return STATSD_name_too_long;
	}
	metric_len = built.len;
	for (size_t i = 0; i < built.len && metric_len == built.len; i++) {
		metric_len = path[i] == '/' ? i : metric_len;
	}
	ours = levels != NULL ? statsd_levels_find(levels, path, metric_len) : NULL;
	fits = ours != NULL ? append_levels(&built, ours, tags, tags_len, &n_dropped)
			    : append_tags(&built, tags, tags_len);
	if (!fits) {
		return STATSD_name_too_long;
	}
	*ret_len = built.len;
	*ret_dropped = n_dropped;
	return STATSD_OK;
}
