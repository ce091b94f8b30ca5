#pragma once
/*
 * rowset: rows of one table, each with its key once, or the word that there shall be none: what is to be written, and what is known to be there.
 *
 * A row of its own replaces one with the same key, and takes its place; places are in the order in which keys came.
 *
 * Thread safety: none.
 */
#include "daemon/store/row.h"

struct rowset_entry;

struct rowset {
	struct rowset_entry **entries;
	size_t n, n_max;
	uint32_t *slots; /* entries' places + 1 by hash; 0: free */
	size_t n_slots;	 /* a power of two, or 0 */
};

/* A copy; NULL: no memory. `gone`: only the key counts. Bytes at NULL stay at NULL. */
struct rowset_entry *rowset_entry_new(const struct row *row, bool gone);
void rowset_entry_row(const struct rowset_entry *entry, struct row *ret_row);
bool rowset_entry_gone(const struct rowset_entry *entry);
/* The same key and values, or both gone? */
bool rowset_entry_equal(const struct rowset_entry *a, const struct rowset_entry *b);

/* A number of the caller's, 0 at first: when it was. */
void rowset_entry_stamp(struct rowset_entry *entry, uint64_t stamp);
uint64_t rowset_entry_stamped(const struct rowset_entry *entry);

/* To the last value, which is a number. */
void rowset_entry_add(struct rowset_entry *entry, int64_t n);

/* Room for n more. -ENOMEM. */
int rowset_reserve(struct rowset *set, size_t n);
/* Takes the entry, which there is room for. */
void rowset_put(struct rowset *set, struct rowset_entry *entry);
/* By key; NULL: none. */
struct rowset_entry *rowset_find(const struct rowset *set, const struct row *row);
/* rowset_reserve, rowset_entry_new and rowset_put. -ENOMEM. */
int rowset_add(struct rowset *set, const struct row *row, bool gone);

/* All entries of `from`, which is empty then; or none (-ENOMEM). */
int rowset_move(struct rowset *set, struct rowset *from);

/* Keeps some memory for the next ones. */
void rowset_clear(struct rowset *set);
void rowset_deinit(struct rowset *set);
