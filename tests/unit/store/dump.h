#pragma once
/*
 * dump: what a state file says, as one text, so that two of them can be compared; and files to begin with.
 */
#include "daemon/store/store.h"

#include <stdint.h>

/* What a load brings, row by row, in the order of the text. To be freed. NULL: not loaded, why says. */
char *dump_load(struct store *store, int *ret_error, char why[STORE_MAX_WHY]);
/* Opens, loads and closes. */
char *dump_file(const char *path, int *ret_error, char why[STORE_MAX_WHY]);
/* The same of a file that must be good. */
char *dump_of(const char *path);

/* ---- a little of everything ---- */

struct sample {
	struct store *store;
	uint64_t grown; /* of each counter, in seat 0 and 1 */
};

#define SAMPLE_COUNTERS 12u

/* Open an empty file at path, load it, tell of all counters. */
void sample_open(struct sample *sample, const char *path);
/* One more step: growth, sessions, what is held, usage, rules, metrics; and every few steps a counter that goes or comes. No commit. */
void sample_step(struct sample *sample, unsigned step);
/* Another session has so many bytes of answers; 0: it has ended. No commit. */
void sample_session(struct sample *sample, size_t len);
void sample_commit(struct sample *sample);
/* Close and start again; counters have other numbers then, so that others grow. */
void sample_reopen(struct sample *sample, const char *path);
void sample_close(struct sample *sample);
