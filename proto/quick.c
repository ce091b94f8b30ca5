#include "proto/quick.h"

#include <errno.h>
#include <string.h>

/* Tags as they are on the wire: a field's number and its wire type. */
enum {
	VARINT = 0,
	LEN = 2,
	ID = 1 << 3 | VARINT,
	BODY = 20 << 3 | LEN,	  /* charge in a request, charged in a reply */
	NUMBER = 1 << 3 | VARINT, /* of both */

	CHARGE_ITEM = 2 << 3 | LEN,
	CHARGE_DRY_RUN = 3 << 3 | VARINT,
	CHARGE_DETACHED = 4 << 3 | VARINT,
	CHARGE_WAIT_MS = 5 << 3 | VARINT,
	ITEM_PATH = 1 << 3 | LEN,
	ITEM_AMOUNT = 2 << 3 | VARINT,

	CHARGED_GRANTED = 2 << 3 | VARINT,
	CHARGED_DUPLICATE = 3 << 3 | VARINT,
	CHARGED_OMITTED = 5 << 3 | VARINT,
};

/* ---- from bytes ---- */

/* What is left of a message. Once something is not as it should be both are NULL, so that nothing is left. */
struct reader {
	const uint8_t *at, *end;
};

static uint64_t refuse(struct reader *reader)
{
	reader->at = reader->end = NULL;
	return 0;
}

/* The low seven bits of each of eight bytes, moved together. */
static inline uint64_t squeeze(uint64_t bytes)
{
	bytes = (bytes & UINT64_C(0x007f007f007f007f)) |
		(bytes & UINT64_C(0x7f007f007f007f00)) >> 1;
	bytes = (bytes & UINT64_C(0x00003fff00003fff)) |
		(bytes & UINT64_C(0x3fff00003fff0000)) >> 2;
	return (bytes & UINT64_C(0x000000000fffffff)) | (bytes & UINT64_C(0x0fffffff00000000)) >> 4;
}

/* One of at most eight bytes, where there are eight to be read: without a branch for each. False: it is not such a one. */
static inline bool read_word_varint(struct reader *reader, uint64_t *ret_value)
{
	uint64_t bytes, stops, mask;

	if (reader->end - reader->at < 8) {
		return false;
	}
	memcpy(&bytes, reader->at, sizeof(bytes));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	bytes = __builtin_bswap64(bytes);
#endif
	stops = ~bytes & UINT64_C(0x8080808080808080);
	mask = stops ^ (stops - 1); /* up to the first byte that is the last of a varint */
	if (stops == 0 || (bytes & mask & ~(mask >> 8)) == 0) {
		return false; /* longer; or padded: what its last byte has is 0 */
	}
	*ret_value = squeeze(bytes & mask);
	reader->at += (unsigned int)__builtin_ctzll(stops) / 8 + 1;
	return true;
}

static uint64_t read_long_varint(struct reader *reader, uint64_t max)
{
	uint64_t value = 0;
	if (read_word_varint(reader, &value)) {
		return value <= max ? value : refuse(reader);
	}
	for (unsigned int shift = 0; shift < 64; shift += 7) {
		if (reader->at == reader->end) {
			return refuse(reader);
		}
		uint8_t byte = *reader->at++;
		if ((shift == 63 && byte > 1) || (shift > 0 && byte == 0)) {
			return refuse(
				reader); /* more than 64 bits; padded, which protobuf-c takes here and there */
		}
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			return value <= max ? value : refuse(reader);
		}
	}
	return refuse(reader);
}

/* Nearly all are of one byte. */
static inline uint64_t read_varint(struct reader *reader, uint64_t max)
{
	if (reader->at < reader->end && *reader->at < 0x80 && *reader->at <= max) {
		return *reader->at++;
	}
	return read_long_varint(reader, max);
}

static inline struct reader read_len(struct reader *reader)
{
	uint64_t len = read_varint(reader, MESSAGE_MAX_FRAME);
	const uint8_t *at = reader->at;
	if (!at || len > (size_t)(reader->end - at)) {
		refuse(reader);
		return (struct reader){ 0 };
	}
	reader->at = at + len;
	return (struct reader){ .at = at, .end = at + len };
}

/* False if the item is not good. */
static bool read_item(struct reader reader, struct charge_item *ret_item)
{
	struct charge_item item = { .path = { .at = "" } };
	while (reader.at < reader.end) {
		uint64_t tag = read_varint(&reader, UINT32_MAX);
		if (tag == ITEM_PATH) {
			struct reader path = read_len(&reader);
			item.path.len = (size_t)(path.end - path.at);
			item.path.at = item.path.len > 0 ? (const char *)path.at : "";
		} else if (tag == ITEM_AMOUNT) {
			uint64_t zigzag = read_varint(&reader, UINT64_MAX);
			item.amount = (int64_t)(zigzag >> 1 ^ -(zigzag & 1));
		} else {
			refuse(&reader);
		}
	}
	*ret_item = item;
	return reader.at;
}

/* All but the items, which are only counted; where the last of them is. False if something is not good. */
static bool read_charge(struct reader reader, struct charge *ret_charge, struct reader *ret_item)
{
	struct charge charge = { 0 };
	while (reader.at < reader.end) {
		switch (read_varint(&reader, UINT32_MAX)) {
		case CHARGE_ITEM:
			*ret_item = read_len(&reader);
			charge.n_items++;
			break;
		case NUMBER:
			charge.number = read_varint(&reader, UINT64_MAX);
			break;
		case CHARGE_DRY_RUN:
			charge.dry_run = read_varint(&reader, 1) != 0;
			break;
		case CHARGE_DETACHED:
			charge.detached = read_varint(&reader, 1) != 0;
			break;
		case CHARGE_WAIT_MS:
			charge.wait_ms = (uint32_t)read_varint(&reader, UINT32_MAX);
			break;
		default:
			refuse(&reader);
		}
	}
	*ret_charge = charge;
	return reader.at;
}

/* Of a body that read_charge found good, into items[], as many as it counted. */
static bool read_items(struct reader reader, struct charge_item *items)
{
	bool good = true;
	while (good && reader.at < reader.end) {
		if (read_varint(&reader, UINT32_MAX) == CHARGE_ITEM) {
			good = read_item(read_len(&reader), items++);
		} else {
			(void)read_varint(&reader, UINT64_MAX);
		}
	}
	return good;
}

/* A tag of two bytes, as it is usually written. */
static inline bool read_long_tag(struct reader *reader, unsigned int tag)
{
	if (reader->end - reader->at < 2 || reader->at[0] != ((tag & 0x7f) | 0x80) ||
	    reader->at[1] != tag >> 7) {
		return false;
	}
	reader->at += 2;
	return true;
}

/* The body of a request that has an id or none, then a charge, and nothing else. */
static bool find_charge(const uint8_t *bytes, size_t len, uint64_t *ret_id, struct reader *ret_body)
{
	if (len == 0) {
		return false; /* bytes may be NULL */
	}
	struct reader reader = { .at = bytes, .end = bytes + len };
	uint64_t id = 0;
	if (*reader.at == ID) {
		reader.at++;
		id = read_varint(&reader, UINT64_MAX);
	}
	if (!read_long_tag(&reader, BODY)) {
		return false;
	}
	struct reader body = read_len(&reader);
	*ret_id = id;
	*ret_body = body;
	return reader.at && reader.at == reader.end;
}

int quick_decode_charge(struct arena *arena, const uint8_t *bytes, size_t len,
			struct request *ret_request)
{
	struct charge charge;
	struct reader body, item = { 0 };
	uint64_t id;
	if (!find_charge(bytes, len, &id, &body) || !read_charge(body, &charge, &item)) {
		return QUICK_E_OTHER;
	}

	/* The items refer to a copy of the body, made at once. */
	size_t body_len = (size_t)(body.end - body.at);
	struct charge_item *items = arena_alloc(arena, charge.n_items * sizeof(*items) + body_len);
	if (!items) {
		return -ENOMEM;
	}
	bool good;
	uint8_t *copy = (uint8_t *)(items + charge.n_items);
	memcpy(copy, body.at, body_len);
	if (charge.n_items == 1) {
		/* It need not be looked for again. */
		item = (struct reader){ .at = copy + (item.at - body.at),
					.end = copy + (item.end - body.at) };
		good = read_item(item, items);
	} else {
		good = read_items((struct reader){ .at = copy, .end = copy + body_len }, items);
	}
	if (!good) {
		return QUICK_E_OTHER;
	}
	charge.items = items;
	ret_request->id = id;
	ret_request->type = REQUEST_CHARGE;
	ret_request->charge = charge; /* and not the whole, which is several times as large */
	return QUICK_OK;
}

/* ---- to bytes ---- */

/* A field that is 0 is left out. */
static uint8_t *put_field(uint8_t *at, uint64_t tag, uint64_t value)
{
	if (value == 0) {
		return at;
	}
	*at++ = (uint8_t)tag;
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

int quick_encode_charged(struct arena *arena, const struct reply *reply, const uint8_t **ret_bytes,
			 size_t *ret_len)
{
	/* Both lengths are below 0x80, a byte each, since 1 + 10 + 3 + (1 + 10 + 2 + 2 + 1 + 5) is. */
	enum {
		MAX_BODY = 21,
		MAX_FRAME = 1 + 11 + 3 + MAX_BODY
	};
	const struct charged *charged = &reply->charged;
	if (reply->type != REPLY_CHARGED || charged->n_bindings > 0) {
		return QUICK_E_OTHER;
	}
	uint8_t *out = arena_alloc(arena, MAX_FRAME), *at = out;
	if (!out) {
		return -ENOMEM;
	}
	at = put_field(at + 1, ID, reply->id);
	at = put_field(at, (BODY & 0x7f) | 0x80, BODY >> 7);
	uint8_t *body = ++at;
	at = put_field(at, NUMBER, charged->number);
	at = put_field(at, CHARGED_GRANTED, charged->granted);
	at = put_field(at, CHARGED_DUPLICATE, charged->duplicate);
	at = put_field(at, CHARGED_OMITTED, charged->omitted);
	body[-1] = (uint8_t)(at - body);
	out[0] = (uint8_t)(at - out - 1);
	*ret_bytes = out;
	*ret_len = (size_t)(at - out);
	return QUICK_OK;
}
