#pragma once
/*
 * file: the state file as a file: who has it, how it comes into being, what lies beside it.
 *
 * SQLite keeps two more beside it while it is open, and after a crash: -wal, the log, which is part of the state, and -shm, which is not.
 */
#include "daemon/store/store.h"

#include <stdbool.h>

/*
 * Open the file and lock it against other daemons; make it, whole and with empty tables, if there is none. STORE_E_LOCKED, STORE_E_IO, STORE_E_DAMAGED (a log without its file,
 * or a file that can't be one of SQLite's).
 */
int file_take(const char *path, int *ret_fd, char why[STORE_MAX_WHY]);
/* Without looking at it, and without making it. -ENOENT. */
int file_lock(const char *path, int *ret_fd, char why[STORE_MAX_WHY]);

/* Has it a log with something in it? */
bool file_has_log(const char *path);

/* Rename the file with what lies beside it; durable when this returns 0. Negative errno. */
int file_rename(const char *path, const char *to);

uint64_t file_size(const char *path, const char *suffix);

/* Which file the name leads to: two that are the same have the same number. 0: none. */
uint64_t file_identity(const char *path, const char *suffix);

/* As a URI for SQLite, with `query` at its end; NULL: no memory. */
char *file_uri(const char *path, const char *query);
