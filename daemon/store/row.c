#include "daemon/store/row.h"

#include <endian.h>
#include <string.h>

const struct table_shape table_shapes[N_TABLES] = {
	[TABLE_META] = {
		"meta", 1, 2,
		{ { "key", CELL_TEXT }, { "value", CELL_NUMBER } },
	},
	[TABLE_COUNTER] = {
		"counter", 1, 4,
		{ { "id", CELL_NUMBER }, { "parent", CELL_NUMBER }, { "path", CELL_TEXT }, { "born", CELL_NUMBER } },
	},
	[TABLE_OWN] = {
		"own", 1, 2,
		{ { "block", CELL_NUMBER }, { "numbers", CELL_BLOB } },
	},
	[TABLE_AHEAD] = {
		"ahead", 1, 2,
		{ { "block", CELL_NUMBER }, { "numbers", CELL_BLOB } },
	},
	[TABLE_METRIC] = {
		"metric", 1, 5,
		{ { "name", CELL_TEXT }, { "kind", CELL_NUMBER }, { "max_counters", CELL_NUMBER },
		  { "overflow", CELL_NUMBER }, { "expire_after", CELL_NUMBER } },
	},
	[TABLE_RULE] = {
		"rule", 4, 12,
		{ { "pattern", CELL_TEXT }, { "kind", CELL_NUMBER }, { "unit", CELL_NUMBER },
		  { "duration", CELL_NUMBER }, { "max", CELL_NUMBER }, { "high", CELL_NUMBER },
		  { "low", CELL_NUMBER }, { "min", CELL_NUMBER }, { "shadow", CELL_NUMBER },
		  { "rate", CELL_NUMBER }, { "per", CELL_NUMBER }, { "burst", CELL_NUMBER } },
	},
	[TABLE_SESSION] = {
		"session", 1, 8,
		{ { "id", CELL_BLOB }, { "over", CELL_NUMBER }, { "last_batch", CELL_NUMBER },
		  { "last_operation", CELL_NUMBER }, { "lifetime", CELL_NUMBER }, { "agent", CELL_BLOB },
		  { "answers", CELL_BLOB }, { "leases", CELL_BLOB } },
	},
	[TABLE_HELD] = {
		"held", 2, 3,
		{ { "session", CELL_BLOB }, { "path", CELL_TEXT }, { "amount", CELL_NUMBER } },
	},
	[TABLE_USAGE] = {
		"usage", 4, 6,
		{ { "path", CELL_TEXT }, { "kind", CELL_NUMBER }, { "unit", CELL_NUMBER },
		  { "duration", CELL_NUMBER }, { "number", CELL_NUMBER }, { "count", CELL_NUMBER } },
	},
};

/* For each word a bijection: what differs before differs after. The multiplier and the shift are those of MurmurHash3's finish (Appleby). */
static uint64_t mix(uint64_t state, uint64_t word)
{
	state = (state ^ word) * UINT64_C(0xff51afd7ed558ccd);
	return state ^ (state >> 33);
}

static uint64_t mix_bytes(uint64_t state, struct bytes_view bytes)
{
	const uint8_t *at = bytes.at;
	size_t left = bytes.len;
	uint64_t word;

	state = mix(state, left);
	for (; left >= sizeof(word); at += sizeof(word), left -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		state = mix(state, be64toh(word));
	}
	if (left > 0) {
		word = 0;
		for (size_t i = 0; i < left; i++) {
			word = word << 8 | at[i];
		}
		state = mix(state, word);
	}
	return state;
}

uint64_t row_hash(const struct row *row, unsigned n)
{
	const struct table_shape *shape = &table_shapes[row->table];
	uint64_t state = mix(UINT64_C(0x9e3779b97f4a7c15), row->table);

	for (unsigned i = 0; i < n; i++) {
		state = shape->columns[i].type == CELL_NUMBER
				? mix(state, (uint64_t)row->cells[i].number)
				: mix_bytes(state, row->cells[i].bytes);
	}
	return mix(state, 0);
}

uint64_t row_sum(const struct row *row)
{
	return row_hash(row, table_shapes[row->table].n_values);
}
