#pragma once
/*
 * state: what the files of the store have in common: the store itself, and how failures are put into words.
 */
#include "daemon/store/image.h"
#include "daemon/store/meta.h"
#include "daemon/store/rowset.h"
#include "daemon/store/store.h"
#include "daemon/store/tables.h"

#include <sqlite3.h>

struct store {
	char *path;
	int lock; /* the file itself, for flock: to be closed after the database, for that drops SQLite's locks */
	sqlite3 *db;
	uint64_t file_id, log_id; /* of the files in use; 0: not known yet */
	bool writes;		  /* the database was opened to be written to */
	bool migrating;		  /* in a transaction that a load which finds nothing wrong ends */
	struct meta meta;	  /* as in the file */

	int64_t top; /* no counter in the file has a higher row */

	struct tables tables;
	struct image image;
	struct rowset changes[N_TABLES]; /* to be written; OWN and AHEAD are in the image */
	struct rowset ended;		 /* sessions, with all they held before this: stamped */
	uint64_t ends; /* stamps given out; what is held has that of the latest end before it */
	struct rowset metrics, rules; /* as they are to be */
	int64_t wall_ns;	      /* of the latest cut */

	bool ragged;   /* the log may go on behind the last commit */
	int log_pages; /* in the log after the last commit */
	int tidy_at;   /* so many are enough for the next try */
	struct store_stats stats;
};

/* `why` becomes "PATH: what: text"; returns error. */
__attribute__((format(printf, 4, 5))) int store_fail(const struct store *store, int error,
						     char why[STORE_MAX_WHY], const char *format,
						     ...);
/* The same with SQLite's text for what just failed. */
int store_fail_sqlite(const struct store *store, int error, char why[STORE_MAX_WHY],
		      const char *what);

/* Replaces the connection that only looks by one that writes. */
int store_begin_writing(struct store *store, char why[STORE_MAX_WHY]);
