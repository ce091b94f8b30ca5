#include "daemon/store/rowset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIN_SLOTS 16u
#define KEEP_ENTRIES 4096u
#define AT_NULL UINT32_MAX /* instead of a length */

/* Values one after the other: numbers as they are, bytes behind their length. */
struct rowset_entry {
	uint64_t hash; /* of the key */
	uint64_t stamp;
	uint32_t key_len, len;
	uint8_t table;
	bool gone;
	uint8_t bytes[];
};

static size_t cell_size(enum cell_type type, const struct cell *cell)
{
	return type == CELL_NUMBER ? sizeof(cell->number) : sizeof(uint32_t) + cell->bytes.len;
}

static uint8_t *encode(uint8_t *at, enum cell_type type, const struct cell *cell)
{
	uint32_t len = (uint32_t)cell->bytes.len;
	uint32_t said = cell->bytes.at != NULL ? len : AT_NULL;

	if (type == CELL_NUMBER) {
		memcpy(at, &cell->number, sizeof(cell->number));
		return at + sizeof(cell->number);
	}
	memcpy(at, &said, sizeof(said));
	if (cell->bytes.at != NULL && len > 0) {
		memcpy(at + sizeof(said), cell->bytes.at, len);
	}
	return at + sizeof(said) + len;
}

static const uint8_t *decode(const uint8_t *at, enum cell_type type, struct cell *cell)
{
	uint32_t len;

	if (type == CELL_NUMBER) {
		memcpy(&cell->number, at, sizeof(cell->number));
		return at + sizeof(cell->number);
	}
	memcpy(&len, at, sizeof(len));
	if (len == AT_NULL) {
		cell->bytes = (struct bytes_view){ .at = NULL };
		return at + sizeof(len);
	}
	cell->bytes = (struct bytes_view){ .at = at + sizeof(len), .len = len };
	return at + sizeof(len) + len;
}

struct rowset_entry *rowset_entry_new(const struct row *row, bool gone)
{
	const struct table_shape *shape = &table_shapes[row->table];
	unsigned n = gone ? shape->n_keys : shape->n_values;
	size_t key_len = 0, len = 0;
	struct rowset_entry *entry;
	uint8_t *at;

	for (unsigned i = 0; i < n; i++) {
		len += cell_size(shape->columns[i].type, &row->cells[i]);
		if (i + 1 == shape->n_keys) {
			key_len = len;
		}
	}
	entry = len <= INT32_MAX ? malloc(sizeof(*entry) + len) : NULL;
	if (entry == NULL) {
		return NULL;
	}
	entry->hash = row_hash(row, shape->n_keys);
	entry->key_len = (uint32_t)key_len;
	entry->len = (uint32_t)len;
	entry->table = (uint8_t)row->table;
	entry->gone = gone;
	entry->stamp = 0;
	at = entry->bytes;
	for (unsigned i = 0; i < n; i++) {
		at = encode(at, shape->columns[i].type, &row->cells[i]);
	}
	return entry;
}

void rowset_entry_row(const struct rowset_entry *entry, struct row *ret_row)
{
	const struct table_shape *shape = &table_shapes[entry->table];
	unsigned n = entry->gone ? shape->n_keys : shape->n_values;
	const uint8_t *at = entry->bytes;

	*ret_row = (struct row){ .table = (enum table)entry->table };
	for (unsigned i = 0; i < n; i++) {
		at = decode(at, shape->columns[i].type, &ret_row->cells[i]);
	}
}

bool rowset_entry_gone(const struct rowset_entry *entry)
{
	return entry->gone;
}

void rowset_entry_add(struct rowset_entry *entry, int64_t n)
{
	uint8_t *at = entry->bytes + entry->len - sizeof(n);
	uint64_t sum;

	memcpy(&sum, at, sizeof(sum));
	sum += (uint64_t)n;
	memcpy(at, &sum, sizeof(sum));
}

static bool same_key(const struct rowset_entry *a, const struct rowset_entry *b)
{
	return a->hash == b->hash && a->key_len == b->key_len &&
	       memcmp(a->bytes, b->bytes, a->key_len) == 0;
}

void rowset_entry_stamp(struct rowset_entry *entry, uint64_t stamp)
{
	entry->stamp = stamp;
}

uint64_t rowset_entry_stamped(const struct rowset_entry *entry)
{
	return entry->stamp;
}

bool rowset_entry_equal(const struct rowset_entry *a, const struct rowset_entry *b)
{
	return a->gone == b->gone && a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* ---- sets ---- */

/* The slot of the entry with this key, or the free one where it would be. */
static uint32_t *slot_of(const struct rowset *set, const struct rowset_entry *key)
{
	size_t mask = set->n_slots - 1;
	size_t i = (size_t)key->hash & mask;

	while (set->slots[i] != 0 && !same_key(set->entries[set->slots[i] - 1], key)) {
		i = (i + 1) & mask;
	}
	return &set->slots[i];
}

static int more_slots(struct rowset *set, size_t n)
{
	size_t n_slots = set->n_slots != 0 ? set->n_slots : MIN_SLOTS;
	uint32_t *slots;

	while (n_slots < n * 2) {
		n_slots *= 2;
	}
	if (n_slots == set->n_slots) {
		return 0;
	}
	slots = calloc(n_slots, sizeof(*slots));
	if (slots == NULL) {
		return -ENOMEM;
	}
	free(set->slots);
	set->slots = slots;
	set->n_slots = n_slots;
	for (size_t i = 0; i < set->n; i++) {
		*slot_of(set, set->entries[i]) = (uint32_t)i + 1;
	}
	return 0;
}

int rowset_reserve(struct rowset *set, size_t n)
{
	size_t wanted = set->n + n;

	if (wanted >= UINT32_MAX / 4) {
		return -ENOMEM;
	}
	if (wanted > set->n_max) {
		size_t n_max = wanted > set->n_max * 2 ? wanted : set->n_max * 2;
		struct rowset_entry **entries =
			reallocarray(set->entries, n_max, sizeof(struct rowset_entry *));

		if (entries == NULL) {
			return -ENOMEM;
		}
		set->entries = entries;
		set->n_max = n_max;
	}
	return wanted > 0 ? more_slots(set, wanted) : 0;
}

void rowset_put(struct rowset *set, struct rowset_entry *entry)
{
	uint32_t *slot = slot_of(set, entry);

	if (*slot != 0) {
		free(set->entries[*slot - 1]);
	} else {
		*slot = (uint32_t)++set->n;
	}
	set->entries[*slot - 1] = entry;
}

static bool same_cell(enum cell_type type, const struct cell *a, const struct cell *b)
{
	if (type == CELL_NUMBER) {
		return a->number == b->number;
	}
	return a->bytes.len == b->bytes.len &&
	       (a->bytes.len == 0 || memcmp(a->bytes.at, b->bytes.at, a->bytes.len) == 0);
}

static bool has_key(const struct rowset_entry *entry, const struct row *row)
{
	const struct table_shape *shape = &table_shapes[entry->table];
	const uint8_t *at = entry->bytes;

	for (unsigned i = 0; i < shape->n_keys; i++) {
		struct cell is = { 0 };

		at = decode(at, shape->columns[i].type, &is);
		if (!same_cell(shape->columns[i].type, &is, &row->cells[i])) {
			return false;
		}
	}
	return true;
}

struct rowset_entry *rowset_find(const struct rowset *set, const struct row *row)
{
	uint64_t hash = row_hash(row, table_shapes[row->table].n_keys);
	size_t mask = set->n_slots - 1;

	if (set->n_slots == 0) {
		return NULL;
	}
	for (size_t i = (size_t)hash & mask; set->slots[i] != 0; i = (i + 1) & mask) {
		struct rowset_entry *entry = set->entries[set->slots[i] - 1];

		if (entry->hash == hash && has_key(entry, row)) {
			return entry;
		}
	}
	return NULL;
}

int rowset_add(struct rowset *set, const struct row *row, bool gone)
{
	int r = rowset_reserve(set, 1);
	struct rowset_entry *entry;

	if (r < 0) {
		return r;
	}
	entry = rowset_entry_new(row, gone);
	if (entry == NULL) {
		return -ENOMEM;
	}
	rowset_put(set, entry);
	return 0;
}

int rowset_move(struct rowset *set, struct rowset *from)
{
	int r = rowset_reserve(set, from->n);

	if (r == 0) {
		for (size_t i = 0; i < from->n; i++) {
			rowset_put(set, from->entries[i]);
		}
		from->n = 0;
		rowset_deinit(from);
	}
	return r;
}

void rowset_clear(struct rowset *set)
{
	if (set->n_max > KEEP_ENTRIES) {
		rowset_deinit(set);
		return;
	}
	for (size_t i = 0; i < set->n; i++) {
		free(set->entries[i]);
	}
	if (set->n > 0) {
		memset(set->slots, 0, set->n_slots * sizeof(*set->slots));
	}
	set->n = 0;
}

void rowset_deinit(struct rowset *set)
{
	for (size_t i = 0; i < set->n; i++) {
		free(set->entries[i]);
	}
	free(set->entries);
	free(set->slots);
	*set = (struct rowset){ 0 };
}
