#pragma once
/*
 * disk: a layer under SQLite that fails when told to, and remembers all that was written, so that a power failure can be tried at each moment.
 *
 * Calls that are counted are those that change a file or wait for the disk. A disk that lost power has of each file what was
 * written before it was last waited for, and of what came later anything: nothing, all, or some of it in any order.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/test.h"

/* From now on every database is opened on this disk; for the whole process. */
void disk_install(void);

/* ---- failures ---- */

enum disk_fault {
	DISK_FULL,
	DISK_WRITE, /* an I/O error, of writes, truncations and of opening a file that must be made */
	DISK_SYNC,
	DISK_READ_ONLY,
};

/* The `at`-th call (from 1 on) that can fail so does, and `lasting`, all after it. */
void disk_fail(enum disk_fault fault, unsigned at, bool lasting);
/* No more. Whether a call failed since disk_fail. */
bool disk_heal(void);

/* ---- power ---- */

/* Forgets what was remembered; what the files at path hold now is on the disk. */
void disk_record(const char *path);
/* Goes into the record: the caller's own number of what is promised by now. */
void disk_mark(unsigned mark);
/* How many calls it holds; no more come. */
size_t disk_record_end(void);

enum disk_loss {
	DISK_LOSES_NOTHING, /* as when the process is killed */
	DISK_LOSES_ALL,	    /* that was not waited for */
	DISK_LOSES_SOME,
};

/* The files as they would be found at `path` if the power had failed after the first `len` calls; returns the latest mark by then. */
unsigned disk_after(size_t len, enum disk_loss loss, struct test_random *random, const char *path);
