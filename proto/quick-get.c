#include "proto/quick-get.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "proto/span.h"

/* Tags as they are on the wire: a field's number and its wire type. */
enum {
	VARINT = 0,
	LEN = 2,
	ID = 1 << 3 | VARINT,
	GET = 5 << 3 | LEN,
	PATH = 1 << 3 | LEN,
	CONSISTENCY = 2 << 3 | VARINT,

	VALUES = 6 << 3 | LEN,
	VALUE = 1 << 3 | LEN,
	VIEW = 2 << 3 | LEN,
	VALUE_CODE = 1 << 3 | VARINT,
	VALUE_KIND = 2 << 3 | VARINT,
	VALUE_LEAF = 3 << 3 | VARINT,
	VALUE_OWN = 4 << 3 | VARINT,
	VALUE_TOTAL = 5 << 3 | VARINT,
	VIEW_ERROR_BOUND = 1 << 3 | VARINT,
	VIEW_AGE_MS = 2 << 3 | VARINT,

	/* Bytes: code and kind are below 0x80, else the value is not taken. */
	MAX_VALUE = 2 + 2 + 2 + 11 + 11,
	MAX_VIEW = 11 + 11,
	MAX_BODY = QUICK_MAX_VALUES * (2 + MAX_VALUE) + 2 + MAX_VIEW,
	MAX_FRAME = 1 + 11 + 2 + MAX_BODY,
};

static_assert(MAX_FRAME - 1 < 0x80, "all lengths are of one byte");

/* ---- from bytes ---- */

/* The paths are only counted. */
static bool read_get(struct span body, size_t *ret_n_paths, uint64_t *ret_consistency)
{
	bool seen = false;

	*ret_n_paths = 0;
	*ret_consistency = 0;
	while (body.at < body.end) {
		struct span path;
		uint64_t tag;

		if (!span_varint(&body, UINT32_MAX, &tag)) {
			return false;
		}
		if (tag == PATH && span_inner(&body, &path)) {
			(*ret_n_paths)++;
		} else if (tag == CONSISTENCY && !seen &&
			   span_varint(&body, INT32_MAX, ret_consistency)) {
			seen = true;
		} else {
			return false;
		}
	}
	return true;
}

/* Of a body that read_get found good. */
static void read_paths(struct span body, struct text *paths)
{
	while (body.at < body.end) {
		struct span path;
		uint64_t tag = 0;

		(void)span_varint(&body, UINT32_MAX, &tag);
		if (tag == PATH && span_inner(&body, &path)) {
			*paths++ = (struct text){ .at = (const char *)path.at,
						  .len = (size_t)(path.end - path.at) };
		} else {
			(void)span_varint(&body, INT32_MAX, &tag);
		}
	}
}

int quick_decode_get(struct arena *arena, const uint8_t *bytes, size_t len,
		     struct request *ret_request)
{
	struct span body;
	uint64_t id, consistency;
	size_t n_paths;

	if (!span_only((struct span){ .at = bytes, .end = bytes + len }, ID, GET, &id, &body) ||
	    !read_get(body, &n_paths, &consistency)) {
		return QUICK_E_OTHER;
	}

	/* The paths refer to a copy of the body, made at once. */
	size_t body_len = (size_t)(body.end - body.at);
	struct text *paths = arena_alloc(arena, n_paths * sizeof(*paths) + body_len);
	if (!paths) {
		return -ENOMEM;
	}
	uint8_t *copy = (uint8_t *)(paths + n_paths);
	memcpy(copy, body.at, body_len);
	read_paths((struct span){ .at = copy, .end = copy + body_len }, paths);
	ret_request->id = id;
	ret_request->type = REQUEST_GET;
	ret_request->get = (struct get){
		.n_paths = n_paths,
		.paths = paths,
		.consistency = (enum consistency)consistency,
	};
	return QUICK_OK;
}

/* ---- to bytes ---- */

static bool is_short(const struct value *value)
{
	return value->text.len == 0 && value->code < 0x80 && (unsigned int)value->kind < 0x80;
}

static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static uint8_t *put_value(uint8_t *at, const struct value *value)
{
	*at++ = VALUE;
	uint8_t *body = ++at;
	at = span_put(at, VALUE_CODE, value->code);
	at = span_put(at, VALUE_KIND, (unsigned int)value->kind);
	at = span_put(at, VALUE_LEAF, value->leaf);
	at = span_put(at, VALUE_OWN, zigzag(value->own));
	at = span_put(at, VALUE_TOTAL, zigzag(value->total));
	body[-1] = (uint8_t)(at - body);
	return at;
}

static uint8_t *put_view(uint8_t *at, const struct view *view)
{
	if (!view->present) {
		return at;
	}
	*at++ = VIEW;
	uint8_t *body = ++at;
	at = span_put(at, VIEW_ERROR_BOUND, view->error_bound);
	at = span_put(at, VIEW_AGE_MS, view->age_ms);
	body[-1] = (uint8_t)(at - body);
	return at;
}

int quick_encode_values(struct arena *arena, const struct reply *reply, const uint8_t **ret_bytes,
			size_t *ret_len)
{
	const struct values *values = &reply->values;

	if (reply->type != REPLY_VALUES || values->n_values > QUICK_MAX_VALUES) {
		return QUICK_E_OTHER;
	}
	for (size_t i = 0; i < values->n_values; i++) {
		if (!is_short(&values->values[i])) {
			return QUICK_E_OTHER;
		}
	}
	uint8_t *out = arena_alloc(arena, MAX_FRAME);
	if (!out) {
		return -ENOMEM;
	}
	uint8_t *at = span_put(out + 1, ID, reply->id);
	*at++ = VALUES;
	uint8_t *body = ++at;
	for (size_t i = 0; i < values->n_values; i++) {
		at = put_value(at, &values->values[i]);
	}
	at = put_view(at, &values->view);
	body[-1] = (uint8_t)(at - body);
	out[0] = (uint8_t)(at - out - 1);
	*ret_bytes = out;
	*ret_len = (size_t)(at - out);
	return QUICK_OK;
}
