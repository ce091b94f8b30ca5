/*
 * leases of a session, kept as bytes: for each
 *
 *	varint	number, ttl_ms
 *	u8	is it of a gauge
 *	varint	units
 *	varint	length of the path, and the path
 *
 * How long it still had is not kept: it has its time to live once more.
 */
#include "daemon/lease.h"

#include "lib/base/cursor.h"
#include "lib/names/path.h"

#include <errno.h>

#define SAVED_MAX_RECORD (4 * (size_t)CURSOR_MAX_VARINT + 1)

size_t lease_save_bound(const struct lease_table *table)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < table->n; i++) {
		bytes += SAVED_MAX_RECORD + table->leases[i]->len;
	}
	return bytes;
}

void lease_save(const struct lease_table *table, struct cursor_out *out)
{
	for (uint32_t i = 0; i < table->n; i++) {
		const struct lease *lease = table->leases[i];

		cursor_put_varint(out, lease->number);
		cursor_put_varint(out, lease->ttl_ms);
		cursor_put_u8(out, lease->gauge);
		cursor_put_varint(out, (uint64_t)lease->units);
		cursor_put_varint(out, lease->len);
		cursor_put_bytes(out, lease->path, lease->len);
	}
}

int lease_load(struct cursor_in *in, struct lease_terms *ret_terms, int64_t *ret_units)
{
	uint64_t number = cursor_get_varint(in), ttl_ms = cursor_get_varint(in);
	uint8_t gauge = cursor_get_u8(in);
	uint64_t units = cursor_get_varint(in), len = cursor_get_varint(in);
	const uint8_t *path = len <= PATH_MAX_BYTES ? cursor_get_bytes(in, (size_t)len) : NULL;

	if (!cursor_in_ok(in) || path == NULL || number > UINT32_MAX || ttl_ms > UINT32_MAX ||
	    gauge > 1 || units > INT64_MAX) {
		return -EINVAL;
	}
	*ret_terms = (struct lease_terms){
		.path = (const char *)path,
		.len = (size_t)len,
		.agent = "",
		.number = (uint32_t)number,
		.ttl_ms = (uint32_t)ttl_ms,
		.gauge = gauge != 0,
	};
	*ret_units = (int64_t)units;
	return 0;
}
