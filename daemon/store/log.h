#pragma once
/*
 * log: is what SQLite will read of a state file's log all that was once durable in it?
 *
 * SQLite reads a log up to the first frame that has not its checksum and takes the rest for what a crash left half written. That is right for the last commit, which may not have reached the
 * disk when the power went. It is wrong for any before it: each commit was on the disk before the next began to be written. So where
 * a bad frame is followed by the end of a commit and by more after that, something was durable and is not as it was written.
 *
 * That rule needs a log that goes on behind the last commit by no more than one attempt at the next. SQLite leaves what an attempt has written where it is, for
 * the next one to overwrite as far as it comes; so before another is made, that is cut off.
 *
 * What can't be told: damage in the last commit, or to the mark of the end of the one before, which makes one of both; and a log that ends (or was cut off)
 * where a commit ends.
 */
#include "daemon/store/store.h"

#include <sqlite3.h>

/* 0, also without a log; STORE_E_DAMAGED, STORE_E_IO. */
int log_check(const char *path, char why[STORE_MAX_WHY]);

/*
 * Cut off what lies behind the last commit, durably; nothing if nothing does. In a transaction that writes and has not written yet. Returns SQLite's
 * result codes, of which the connection does not know.
 */
int log_cut(sqlite3 *db);
