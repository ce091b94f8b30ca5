#include "tests/bench/tarantool.h"

#include "tests/bench/report.h"

#include <string.h>

#define GREETING 128u

/* Of its protocol. */
enum {
	KEY_TYPE = 0x00,
	KEY_SYNC = 0x01,
	KEY_TUPLE = 0x21,
	KEY_FUNCTION = 0x22,
	KEY_DATA = 0x30,
	TYPE_CALL = 0x0a,
};

/*
 * Limits in plain tables of its Lua, a node with a reference to the one above it: nothing in Tarantool is faster, and nothing is lost
 * by it, since what the others count is in memory too. A procedure that does not yield runs alone.
 */
const char tarantool_procedures[] =
	"local nodes = {}\n"
	"function limit(path, max)\n"
	"  nodes[path] = { usage = 0, max = tonumber(max), up = nodes[path:match('(.*)/')] }\n"
	"  return 1\n"
	"end\n"
	"function charge(path, n)\n"
	"  local leaf = nodes[path]\n"
	"  local node = leaf\n"
	"  repeat\n"
	"    if node.usage + n > node.max then return -1 end\n"
	"    node = node.up\n"
	"  until not node\n"
	"  node = leaf\n"
	"  repeat\n"
	"    node.usage = node.usage + n\n"
	"    node = node.up\n"
	"  until not node\n"
	"  return 1\n"
	"end\n"
	"function usage(path) return nodes[path].usage end\n";

void tarantool_greet(struct link *link)
{
	while (link->len - link->off < GREETING) {
		link_fill(link);
	}
	report_require(memcmp(link->bytes + link->off, "Tarantool", 9) == 0,
		       "this is no Tarantool");
	link->off += GREETING;
}

/* ---- MessagePack ---- */

static uint8_t *put_text(uint8_t *at, const char *text)
{
	size_t len = strlen(text);

	*at++ = 0xd9;
	*at++ = (uint8_t)len;
	memcpy(at, text, len);
	return at + len;
}

static uint8_t *put_big_endian(uint8_t *at, uint64_t value, int n_bytes)
{
	for (int shift = (n_bytes - 1) * 8; shift >= 0; shift -= 8) {
		*at++ = (uint8_t)(value >> shift);
	}
	return at;
}

static uint8_t *put_number(uint8_t *at, int64_t n)
{
	if (n < 128) {
		*at++ = (uint8_t)n;
		return at;
	}
	*at++ = 0xcf;
	return put_big_endian(at, (uint64_t)n, 8);
}

static uint64_t big_endian(const uint8_t *at, size_t n_bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n_bytes; i++) {
		value = value << 8 | at[i];
	}
	return value;
}

/* An integer, or the size of a map or array; of other things it knows nothing. */
static int64_t take(const uint8_t **at, const uint8_t *end)
{
	uint8_t type = *(*at)++;
	size_t n_bytes = type >= 0xcc && type <= 0xcf	? (size_t)1 << (type - 0xcc)
			 : type == 0xdc || type == 0xde ? 2
			 : type == 0xdd || type == 0xdf ? 4
							: 0;
	int64_t value;

	if (type < 0x80 || type >= 0xe0) {
		return (int8_t)type;
	}
	if (type < 0xa0) {
		return type & 0x0f;
	}
	report_require(n_bytes > 0 && n_bytes <= (size_t)(end - *at),
		       "Tarantool's answer is not understood");
	value = (int64_t)big_endian(*at, n_bytes);
	*at += n_bytes;
	return value;
}

/* ---- calls ---- */

size_t tarantool_call(uint8_t *out, const char *procedure, const char *path, int64_t n)
{
	static const uint8_t header[] = {
		0x82, KEY_TYPE, TYPE_CALL, KEY_SYNC, 1, 0x82, KEY_FUNCTION
	};
	uint8_t *at = out + 5;

	report_require(strlen(procedure) + strlen(path) + 32 < TARANTOOL_MAX_CALL,
		       "a call is too long");
	memcpy(at, header, sizeof(header));
	at = put_text(at + sizeof(header), procedure);
	*at++ = KEY_TUPLE;
	*at++ = 0x92;
	at = put_number(put_text(at, path), n);
	out[0] = 0xce;
	(void)put_big_endian(out + 1, (uint64_t)(at - out - 5), 4);
	return (size_t)(at - out);
}

/* Its length; 0: not whole yet. */
static size_t answer_len(const uint8_t *bytes, size_t len)
{
	size_t whole;

	if (len < 5) {
		return 0;
	}
	report_require(bytes[0] == 0xce, "Tarantool's answer is not understood");
	whole = 5 + (size_t)big_endian(bytes + 1, 4);
	return whole <= len ? whole : 0;
}

bool tarantool_is_whole(const uint8_t *bytes, size_t len)
{
	return answer_len(bytes, len) > 0;
}

int64_t tarantool_number(struct link *link)
{
	const uint8_t *at, *end;
	size_t whole;
	int64_t result;

	while ((whole = answer_len(link->bytes + link->off, link->len - link->off)) == 0) {
		link_fill(link);
	}
	at = link->bytes + link->off + 5;
	end = link->bytes + link->off + whole;
	for (int64_t left = take(&at, end); left > 0; left--) {
		int64_t key = take(&at, end), value = take(&at, end);

		report_require(key != KEY_TYPE || value == 0, "Tarantool answered: %.*s",
			       (int)(end - at), (const char *)at);
	}
	const int64_t n_keys = take(&at, end), key = take(&at, end), n_values = take(&at, end);

	report_require(n_keys == 1 && key == KEY_DATA && n_values == 1,
		       "Tarantool's answer is not understood");
	result = take(&at, end);
	link->off += whole;
	return result;
}
