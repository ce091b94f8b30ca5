#include "lib/expose/labels.h"

#include <stdio.h>
#include <string.h>

/* How often a path may ask for others before it is shown by `path` alone: there are 15! orders. */
#define MAX_QUESTIONS 64u

struct segment {
	const char *at;
	size_t len;
	size_t key_len; /* 0: plain */
};

/* What is behind the metric. */
struct split {
	const struct levels *levels;
	size_t n_levels; /* segments that are levels */
	struct segment levels_at[LABELS_MAX_LEVELS];
	size_t n;
	struct segment segments[LABELS_MAX_LEVELS];
	size_t head; /* bytes of the path up to the first of `segments` */
	bool whole;  /* to be shown by `path` alone */
};

bool label_name_valid(const char *name, size_t len)
{
	if (len == 0 || (name[0] >= '0' && name[0] <= '9') ||
	    (len >= 2 && name[0] == '_' && name[1] == '_')) {
		return false;
	}
	for (size_t i = 0; i < len; i++) {
		char c = name[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_')) {
			return false;
		}
	}
	return true;
}

static bool is_name(const char *name, size_t len, const char *other, size_t other_len)
{
	return len == other_len && memcmp(name, other, len) == 0;
}

static bool is_level(const struct levels *levels, const char *name, size_t len)
{
	for (size_t i = 0; i < levels->n; i++) {
		if (is_name(name, len, levels->names[i].at, levels->names[i].len)) {
			return true;
		}
	}
	return false;
}

/* The name of the next level. */
static size_t name_level(const struct levels *levels, const char *text, size_t len, char *name)
{
	size_t n = len < LABELS_MAX_LEVEL ? len : LABELS_MAX_LEVEL;

	for (size_t i = 0; i < n; i++) {
		name[i] = label_name_valid(&text[i], 1) || (text[i] >= '0' && text[i] <= '9')
				  ? text[i]
				  : '_';
	}
	if (label_name_valid(name, n) && !is_name(name, n, "path", 4) &&
	    !is_level(levels, name, n)) {
		return n;
	}
	n = (size_t)snprintf(name, LABELS_MAX_LEVEL, "level_%zu", levels->n + 1);
	while (is_level(levels, name, n)) {
		name[n++] = '_';
	}
	return n;
}

void levels_init(struct levels *levels, const char *text)
{
	levels->n = 0;
	while (*text != '\0' && levels->n < LABELS_MAX_LEVELS) {
		size_t len = strcspn(text, ",");

		levels->names[levels->n].len =
			name_level(levels, text, len, levels->names[levels->n].at);
		levels->n++;
		text += len + (text[len] == ',');
	}
}

/* ---- taking a path apart ---- */

/* Any '%' begins %2F or %25, so that no other text is the same when these are decoded. */
static bool can_decode(const char *value, size_t len)
{
	const char *end = value + len;

	while ((value = memchr(value, '%', (size_t)(end - value))) != NULL) {
		if (end - value < 3 || value[1] != '2' || (value[2] != 'F' && value[2] != '5')) {
			return false;
		}
		value += 3;
	}
	return true;
}

/* Of the key, if the segment makes a label; else 0. */
static size_t key_of(const struct levels *levels, const char *at, size_t len)
{
	const char *equals = memchr(at, '=', len);
	size_t key_len = equals != NULL ? (size_t)(equals - at) : 0;

	if (key_len == 0 || key_len + 1 == len || !label_name_valid(at, key_len) ||
	    is_name(at, key_len, "path", 4) || !can_decode(equals + 1, len - key_len - 1)) {
		return 0;
	}
	return is_level(levels, at, key_len) ? 0 : key_len;
}

static void split_path(struct split *split, const struct levels *levels, const char *path,
		       size_t len, size_t metric_len)
{
	size_t at = metric_len;

	*split = (struct split){ .levels = levels, .head = metric_len };
	while (at < len) {
		const char *start = path + at + 1;
		const char *slash = memchr(start, '/', len - at - 1);
		size_t size = slash != NULL ? (size_t)(slash - start) : len - at - 1;

		if (split->n_levels < levels->n) {
			split->levels_at[split->n_levels++] =
				(struct segment){ .at = start, .len = size };
			split->whole |= !can_decode(start, size);
			split->head = at + 1 + size;
		} else {
			split->segments[split->n++] = (struct segment){
				.at = start, .len = size, .key_len = key_of(levels, start, size)
			};
		}
		at += 1 + size;
	}
}

/* ---- the same segments in another order ---- */

static int compare_keys(const struct segment *a, const struct segment *b)
{
	size_t len = a->key_len < b->key_len ? a->key_len : b->key_len;
	int order = memcmp(a->at, b->at, len);

	return order != 0 ? order : (a->key_len > b->key_len) - (a->key_len < b->key_len);
}

/* Plain ones first, then keys by name, none twice. */
static bool is_in_order(const struct split *split)
{
	for (size_t i = 1; i < split->n; i++) {
		const struct segment *before = &split->segments[i - 1], *segment = before + 1;

		if (before->key_len > 0 &&
		    (segment->key_len == 0 || compare_keys(before, segment) >= 0)) {
			return false;
		}
	}
	return true;
}

struct search {
	const struct split *split;
	size_t sorted[LABELS_MAX_LEVELS]; /* segments, in the order in which they are tried */
	bool used[LABELS_MAX_LEVELS];	  /* by place in `sorted` */
	unsigned questions;
	labels_exists exists;
	void *ctx;
	char path[PATH_MAX_BYTES];
};

enum found {
	FOUND_NONE,
	FOUND_MINE,
	FOUND_OTHER,
};

static bool comes_first(const struct segment *a, const struct segment *b)
{
	if (a->key_len == 0 || b->key_len == 0) {
		return a->key_len == 0 && b->key_len != 0;
	}
	return compare_keys(a, b) < 0;
}

/* Plain segments keep their order. False: a key is there twice. */
static bool sort(struct search *search)
{
	const struct split *split = search->split;

	for (size_t i = 0; i < split->n; i++) {
		const struct segment *segment = &split->segments[i];
		size_t at = i;

		while (at > 0 && comes_first(segment, &split->segments[search->sorted[at - 1]])) {
			search->sorted[at] = search->sorted[at - 1];
			at--;
		}
		if (at > 0 && segment->key_len > 0 &&
		    split->segments[search->sorted[at - 1]].key_len > 0 &&
		    compare_keys(segment, &split->segments[search->sorted[at - 1]]) == 0) {
			return false;
		}
		search->sorted[at] = i;
	}
	return true;
}

/* The next segment of a try: FOUND_NONE if there is no such counter. */
static bool try_segment(struct search *search, size_t len, size_t i, bool mine)
{
	const struct segment *segment = &search->split->segments[search->sorted[i]];

	search->path[len] = '/';
	memcpy(search->path + len + 1, segment->at, segment->len);
	return mine || (search->questions > 0 && search->questions-- > 0 &&
			search->exists(search->ctx, search->path, len + 1 + segment->len));
}

/*
 * The first order, beginning with what `len` bytes of search->path hold, of which there is a counter: it is known of my own. `mine`: so far
 * it is my own order, of which `depth` segments are there.
 */
static enum found find_first(struct search *search, size_t len, size_t depth, bool mine)
{
	const struct split *split = search->split;
	bool plain_tried = false;

	if (depth == split->n) {
		return mine ? FOUND_MINE : FOUND_OTHER;
	}
	for (size_t i = 0; i < split->n; i++) {
		const struct segment *segment = &split->segments[search->sorted[i]];
		bool still_mine = mine && search->sorted[i] == depth;
		enum found found;

		if (search->used[i] || (segment->key_len == 0 && plain_tried)) {
			continue;
		}
		plain_tried |= segment->key_len == 0;
		if (!try_segment(search, len, i, still_mine)) {
			if (search->questions == 0) {
				return FOUND_OTHER;
			}
			continue;
		}
		search->used[i] = true;
		found = find_first(search, len + 1 + segment->len, depth + 1, still_mine);
		search->used[i] = false;
		if (found != FOUND_NONE) {
			return found;
		}
	}
	return FOUND_NONE;
}

/* Has this path the labels, of all paths with the same segments behind the levels? */
static bool is_first(const struct split *split, const char *path, labels_exists exists, void *ctx)
{
	struct search search;

	if (is_in_order(split)) {
		return true;
	}
	search.split = split;
	search.questions = MAX_QUESTIONS;
	search.exists = exists;
	search.ctx = ctx;
	memset(search.used, 0, sizeof(search.used));
	memcpy(search.path, path, split->head);
	return sort(&search) && find_first(&search, split->head, 0, true) == FOUND_MINE;
}

/* ---- labels ---- */

static void put_decoded(struct sheet *sheet, const char *value, size_t len)
{
	const char *end = value + len, *percent;

	while ((percent = memchr(value, '%', (size_t)(end - value))) != NULL) {
		sheet_label_text(sheet, value, (size_t)(percent - value));
		sheet_label_text(sheet, percent[2] == 'F' ? "/" : "%", 1);
		value = percent + 3;
	}
	sheet_label_text(sheet, value, (size_t)(end - value));
}

static void put_levels(struct sheet *sheet, const struct split *split)
{
	for (size_t i = 0; i < split->n_levels; i++) {
		sheet_label_begin(sheet, split->levels->names[i].at, split->levels->names[i].len);
		put_decoded(sheet, split->levels_at[i].at, split->levels_at[i].len);
		sheet_label_end(sheet);
	}
}

static void put_keys(struct sheet *sheet, const struct split *split)
{
	for (size_t i = 0; i < split->n; i++) {
		const struct segment *segment = &split->segments[i];

		if (segment->key_len > 0) {
			sheet_label_begin(sheet, segment->at, segment->key_len);
			put_decoded(sheet, segment->at + segment->key_len + 1,
				    segment->len - segment->key_len - 1);
			sheet_label_end(sheet);
		}
	}
}

static void put_plain(struct sheet *sheet, const struct split *split)
{
	bool any = false;

	for (size_t i = 0; i < split->n; i++) {
		const struct segment *segment = &split->segments[i];

		if (segment->key_len > 0) {
			continue;
		}
		if (any) {
			sheet_label_text(sheet, "/", 1);
		} else {
			sheet_label_begin(sheet, "path", 4);
		}
		any = true;
		sheet_label_text(sheet, segment->at, segment->len);
	}
	if (any) {
		sheet_label_end(sheet);
	}
}

void labels_put(struct sheet *sheet, const struct levels *levels, const char *path, size_t len,
		size_t metric_len, labels_exists exists, void *ctx)
{
	struct split split;

	sheet_labels(sheet);
	if (len == metric_len) {
		return;
	}
	split_path(&split, levels, path, len, metric_len);
	if (split.whole || !is_first(&split, path, exists, ctx)) {
		sheet_label(sheet, "path", path + metric_len + 1, len - metric_len - 1);
		return;
	}
	put_levels(sheet, &split);
	put_keys(sheet, &split);
	put_plain(sheet, &split);
}
