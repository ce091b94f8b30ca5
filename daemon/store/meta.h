#pragma once
/*
 * meta: what a state file says of itself, in the table `meta`: how often and when it was committed, and the tally of each other table.
 */
#include "daemon/store/tables.h"

struct meta {
	int64_t commits;
	int64_t saved_ns; /* wall time of the latest cut in it */
	struct tally tallies[N_TABLES];
};

/* SQLite's result codes. Writes what differs from the file alone. */
int meta_write(struct tables *tables, const struct meta *meta);
/* SQLITE_CORRUPT: not all of it is there, or something else. */
int meta_read(struct tables *tables, struct meta *ret_meta);
